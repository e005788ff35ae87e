"""Files that only their owner may read: whoever else may write in a folder gets nothing of them, and loses nothing to
them."""

import stat
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from bot.console.files import write_private
from bot.console.line_editor import PrivateHistory
from composer.errors import BadInput, Misconfigured
from composer.ports.audit import Head
from composer.settings import Settings, private_files
from composer.stores.audit_keys import HEADS_FILE, KEY_FILE, AuditHeadsFile, AuditKeyRing

THEIRS: Final = "theirs"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file that a link in our folder leads to, and that must neither be written nor become the secret's place."""
    path = tmp_path / "elsewhere" / "target"
    path.parent.mkdir()
    path.write_text(THEIRS)
    path.chmod(0o644)
    return path


def replace_with_secret(path: Path) -> None:
    with private_files.replaced(path) as file:
        file.write(b"secret")


def set_head(path: Path) -> None:
    AuditHeadsFile(path.parent).set(uuid.UUID(int=1), Head(1, b"secret"))


REPLACING: Final[dict[str, Callable[[Path], None]]] = {"backup": replace_with_secret, HEADS_FILE: set_head}


@pytest.mark.parametrize("name", REPLACING)
def test_a_link_is_replaced_and_not_followed(tmp_path: Path, target: Path, name: str) -> None:
    path = tmp_path / "home" / name
    path.parent.mkdir()
    target.write_text("{}")
    path.symlink_to(target)
    REPLACING[name](path)
    assert (path.is_symlink(), mode(path)) == (False, 0o600)
    assert "secret" in path.read_text() or b"secret".hex() in path.read_text()
    assert target.read_text() == "{}"
    assert list(path.parent.iterdir()) == [path]


def test_a_file_of_somebody_else_is_replaced_by_one_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    path.write_text(THEIRS)
    path.chmod(0o666)
    before = path.stat().st_ino
    replace_with_secret(path)
    assert (mode(path), path.read_text()) == (0o600, "secret")
    assert path.stat().st_ino != before


def test_an_export_is_written_to_a_new_name_alone(tmp_path: Path, target: Path) -> None:
    for taken in (tmp_path / "link", tmp_path / "dangling"):
        taken.symlink_to(target if taken.name == "link" else tmp_path / "nothing")
        with pytest.raises(BadInput, match="exists already"):
            write_private(taken, "secret")
    assert target.read_text() == THEIRS
    assert not (tmp_path / "nothing").exists()
    write_private(tmp_path / "new", "secret")
    assert (mode(tmp_path / "new"), (tmp_path / "new").read_text()) == (0o600, "secret")
    assert {path.name for path in tmp_path.iterdir()} == {"link", "dangling", "elsewhere", "new"}


def test_a_key_is_made_behind_no_link(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / KEY_FILE).symlink_to(tmp_path / "theirs")
    with pytest.raises(Misconfigured):
        AuditKeyRing.load(Settings(home=home))
    assert not (tmp_path / "theirs").exists()
    (home / KEY_FILE).unlink()
    AuditKeyRing.load(Settings(home=home))
    assert mode(home / KEY_FILE) == 0o600


def test_what_is_typed_goes_into_no_link(tmp_path: Path, target: Path) -> None:
    path = tmp_path / "chat_history"
    path.symlink_to(target)
    with pytest.raises(BadInput, match="remove it, or make it a file of your own"):
        PrivateHistory(path)
    path.unlink()
    history = PrivateHistory(path)
    history.store_string("my first secret\nof two lines")
    path.rename(tmp_path / "moved")
    path.symlink_to(target)
    with pytest.raises(OSError, match="symbolic"):
        history.store_string("my second secret")
    history.follow("/nexus forget everything --yes")  # the link is replaced
    assert (target.read_text(), path.is_symlink(), path.read_bytes()) == (THEIRS, False, b"")
    assert list(PrivateHistory(tmp_path / "moved").load_history_strings()) == ["my first secret\nof two lines"]


def test_a_writer_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    path.write_text("before")

    def fail() -> None:
        with private_files.replaced(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [each.name for each in tmp_path.iterdir()] == ["backup"]
    assert path.read_text() == "before"
