"""The loader of sql/: migrations in order and whole, every statement under one name."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sql import loader


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that the loader reads in place of its own."""
    (tmp_path / "migrations").mkdir()
    (tmp_path / "queries").mkdir()
    monkeypatch.setattr(loader, "_HERE", tmp_path)
    loader.migrations.cache_clear()
    loader.queries.cache_clear()
    yield tmp_path
    loader.migrations.cache_clear()
    loader.queries.cache_clear()


def test_migrations_come_in_the_order_of_their_numbers_with_their_checksums(folder: Path) -> None:
    for name in ("0002_second", "0001_first", "0003_the_third"):
        (folder / "migrations" / f"{name}.sql").write_text(f"-- {name}")
    steps = loader.migrations()
    assert [(step.version, step.name) for step in steps] == [(1, "first"), (2, "second"), (3, "the_third")]
    assert steps[1].sql == "-- 0002_second"
    assert steps[1].checksum == hashlib.sha256(b"-- 0002_second").hexdigest()


@pytest.mark.parametrize("names", [("0001_a", "0003_b"), ("0002_a",), ("0001_a", "0001_b")])
def test_numbers_that_repeat_or_leave_a_gap_are_refused(folder: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (folder / "migrations" / f"{name}.sql").write_text("SELECT 1")
    with pytest.raises(ValueError, match="without a gap"):
        loader.migrations()


def test_a_changed_file_has_another_checksum(folder: Path) -> None:
    path = folder / "migrations" / "0001_a.sql"
    path.write_text("SELECT 1")
    before = loader.migrations()[0].checksum
    loader.migrations.cache_clear()
    path.write_text("SELECT 1 ")
    assert loader.migrations()[0].checksum != before


def test_statements_are_found_by_name_across_files(folder: Path) -> None:
    (folder / "queries" / "a.sql").write_text("-- name: one\n-- What for: x.\nSELECT 1\n\n-- name: two\nSELECT 2\n")
    (folder / "queries" / "b.sql").write_text("-- name: three\nSELECT 3\n")
    assert dict(loader.queries()) == {"one": "-- What for: x.\nSELECT 1", "two": "SELECT 2", "three": "SELECT 3"}


def test_a_name_that_two_statements_have_is_refused(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / "queries" / f"{name}.sql").write_text("-- name: same\nSELECT 1\n")
    with pytest.raises(ValueError, match=r"b\.sql: the query same is defined twice"):
        loader.queries()


def test_nobody_changes_what_was_loaded() -> None:
    with pytest.raises(TypeError):
        loader.queries()["recall"] = "SELECT 1"  # type: ignore[index]


def test_every_statement_says_what_it_is_for_and_is_one_statement() -> None:
    for name, statement in loader.queries().items():
        assert statement.startswith("-- What for: "), name
        code = re.sub(r"--.*", "", statement)
        assert code.strip(), name
        assert ";" not in code, name


def test_every_statement_explains_its_parameters() -> None:
    for name, statement in loader.queries().items():
        comment = "".join(line for line in statement.splitlines() if line.startswith("--"))
        used = set(re.findall(r"\$\d+", re.sub(r"--.*", "", statement)))
        if "Parameters" in comment:
            continue  # named there: those of another statement
        told = set(re.findall(r"\$\d+", comment))
        for first, last in re.findall(r"\$(\d+) (?:to|and) \$(\d+)", comment):
            told |= {f"${n}" for n in range(int(first), int(last) + 1)}
        assert used <= told, f"{name} does not say what {sorted(used - told)} is"


def test_every_statement_is_asked_by_somebody() -> None:
    root = Path(loader.__file__).parents[1]
    code = "".join(p.read_text() for part in ("composer", "bot", "jobs", "tests") for p in (root / part).rglob("*.py"))
    assert [name for name in loader.queries() if f'"{name}"' not in code] == []
