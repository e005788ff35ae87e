"""What is typed into the terminal is its owner's alone, and forgotten with the rest."""

from pathlib import Path

import pytest

from bot.console.line_editor import PrivateHistory, open_history


def test_the_history_is_private_and_in_the_persons_own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    open_history().append_string("my salary is zqtyped")
    own = tmp_path / "home" / ".local" / "state" / "nexus" / "chat_history"
    assert own.stat().st_mode & 0o777 == 0o600
    assert own.parent.stat().st_mode & 0o777 == 0o700
    assert list(open_history().load_history_strings()) == ["my salary is zqtyped"]


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("/nexus forget zqtyped", None),
        ("/nexus forget item 1f0c9a2b", None),
        ("/nexus forget item 1f0c9a2b --yes", []),
        ("/forget ZQTYPED --yes", ["we ship on Fridays"]),
        ("/nexus forget everything --yes", []),
        ("/nexus forget here --yes", []),
        ("/nexus forget message 12", []),
        ("/nexus forget everything", None),
        ("/nexus recall zqtyped", None),
    ],
)
def test_a_command_that_forgets_takes_it_out_of_the_history(
    tmp_path: Path, command: str, left: list[str] | None
) -> None:
    history = PrivateHistory(tmp_path / "history")
    typed = ["we ship on Fridays", "my salary is zqtyped", command]
    for line in typed:
        history.append_string(line)
    history.follow(command)
    assert list(PrivateHistory(tmp_path / "history").load_history_strings())[::-1] == (typed if left is None else left)
    assert history.get_strings() == (typed if left is None else left)
