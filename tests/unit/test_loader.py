"""The loader of sql/: migrations in order and complete, each statement under one name."""

import hashlib
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from composer.stores.database.statements import PostgresStatements
from sql import loader


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder that the loader reads in place of sql/."""
    (tmp_path / "migrations").mkdir()
    (tmp_path / "queries").mkdir()
    (tmp_path / "schema.sql").write_text("-- baseline")
    monkeypatch.setattr(loader, "_HERE", tmp_path)
    loader.migrations.cache_clear()
    loader.queries.cache_clear()
    yield tmp_path
    loader.migrations.cache_clear()
    loader.queries.cache_clear()


def test_the_baseline_comes_first_and_then_migrations_in_the_order_of_their_numbers(folder: Path) -> None:
    for name in ("0070_second", "0069_first", "0071_the_third"):
        (folder / "migrations" / f"{name}.sql").write_text(f"-- {name}")
    steps = loader.migrations()
    found = [(step.version, step.name) for step in steps]
    assert found == [(68, "baseline"), (69, "first"), (70, "second"), (71, "the_third")]
    assert [step.sql for step in steps[:3]] == ["-- baseline", "-- 0069_first", "-- 0070_second"]
    assert steps[2].checksum == hashlib.sha256(b"-- 0070_second").hexdigest()


@pytest.mark.parametrize("names", [("0069_a", "0071_b"), ("0070_a",), ("0069_a", "0069_b"), ("0001_a",)])
def test_migration_numbers_that_repeat_or_leave_a_gap_are_refused(folder: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (folder / "migrations" / f"{name}.sql").write_text("SELECT 1")
    with pytest.raises(ValueError, match="without a gap"):
        loader.migrations()


def test_a_changed_file_has_another_checksum(folder: Path) -> None:
    path = folder / "migrations" / "0069_a.sql"
    path.write_text("SELECT 1")
    before = loader.migrations()[1].checksum
    loader.migrations.cache_clear()
    path.write_text("SELECT 1 ")
    assert loader.migrations()[1].checksum != before


def test_statements_are_found_by_name_across_files(folder: Path) -> None:
    (folder / "queries" / "a.sql").write_text("-- name: one\n-- Get one.\nSELECT 1\n\n-- name: two\nSELECT 2\n")
    (folder / "queries" / "b.sql").write_text("-- name: three\nSELECT 3\n")
    sources = {name: query.source for name, query in loader.queries().items()}
    assert sources == {"one": "-- Get one.\nSELECT 1", "two": "SELECT 2", "three": "SELECT 3"}


def test_a_part_is_no_statement_by_itself_and_stands_in_those_that_include_it(folder: Path) -> None:
    text = "-- part: rows\nSELECT :a FROM owner\n\n-- name: all\n-- Get all.\nSELECT * FROM ({{rows}}) AS r\n"
    (folder / "queries" / "a.sql").write_text(text)
    assert {name: query.sql for name, query in loader.queries().items()} == {
        "all": "-- Get all.\nSELECT * FROM (SELECT $1 FROM owner) AS r"
    }


def test_two_statements_with_one_name_are_refused(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / "queries" / f"{name}.sql").write_text("-- name: same\nSELECT 1\n")
    with pytest.raises(ValueError, match=r"b\.sql: the query same is defined twice"):
        loader.queries()


@pytest.mark.parametrize(
    "taken", ["pg_advisory_xact_lock(:key)", "pg_try_advisory_lock(:key)", "PG_ADVISORY_LOCK_SHARED(:key)"]
)
def test_a_statement_that_takes_a_lock_of_its_own_is_refused(folder: Path, taken: str) -> None:
    (folder / "queries" / "a.sql").write_text(f"-- name: mine\n-- Lock.\nSELECT {taken}\n")
    with pytest.raises(ValueError, match=r'(?i)query mine: calls pg_.*open it as "share" or "alone"'):
        loader.queries()


def test_the_two_ways_to_begin_a_transaction_take_the_lock_of_the_tenant() -> None:
    own = {name: query.source for name, query in loader.queries().items() if "advisory_xact" in query.source}
    assert set(own) == {"tenant_share", "tenant_alone"}


def test_loaded_statements_are_read_only() -> None:
    with pytest.raises(TypeError):
        loader.queries()["recall"] = "SELECT 1"  # type: ignore[index]


def test_every_query_begins_with_a_sentence_and_is_a_single_statement() -> None:
    for name, query in loader.queries().items():
        assert re.match(r"-- [A-Z`]", query.source), name
        code = re.sub(r"--.*", "", query.source)
        assert code.strip(), name
        assert ";" not in code, name


def test_every_statement_is_used() -> None:
    root = Path(loader.__file__).parents[1]
    code = "".join(p.read_text() for part in ("composer", "bot", "jobs", "tests") for p in (root / part).rglob("*.py"))
    statements = "".join(p.read_text() for p in (root / "sql" / "queries").glob("*.sql"))
    unused = [name for name in loader.queries() if f'"{name}"' not in code and f"{{{{{name}}}}}" not in statements]
    assert unused == []


# --- named parameters ------------------------------------------------------------------------------------------------


def test_named_parameters_are_numbered_in_order_of_first_appearance() -> None:
    query = loader.parse_query("q", "SELECT :b, :a WHERE x = :b AND y IN (:c)")
    assert query.sql == "SELECT $1, $2 WHERE x = $1 AND y IN ($3)"
    assert query.parameters == ("b", "a", "c")
    assert query.bind({"a": 1, "b": 2, "c": 3}) == [2, 1, 3]


@pytest.mark.parametrize(
    ("source", "sql"),
    [
        ("SELECT :a::text", "SELECT $1::text"),
        ("SELECT (:a::text[])[1]", "SELECT ($1::text[])[1]"),
        ("SELECT x::uuid, :a", "SELECT x::uuid, $1"),
        ("SELECT xs[1:2], xs[n:m], xs[f(1):m], :a", "SELECT xs[1:2], xs[n:m], xs[f(1):m], $1"),
        ("SELECT xs[1 : :a]", "SELECT xs[1 : $1]"),
        ("SELECT ':no', 'it''s :no', :a", "SELECT ':no', 'it''s :no', $1"),
        ("SELECT E'it\\'s :no', :a", "SELECT E'it\\'s :no', $1"),
        ('SELECT ":no", "a "" :no", :a', 'SELECT ":no", "a "" :no", $1'),
        ("SELECT :a -- :no, it's\n, :a", "SELECT $1 -- :no, it's\n, $1"),
        ("SELECT :a /* :no\n' :no */, :a", "SELECT $1 /* :no\n' :no */, $1"),
        ("SELECT $$ :no ' $$, $tag$ :no $$ :no $tag$, :a", "SELECT $$ :no ' $$, $tag$ :no $$ :no $tag$, $1"),
        ("SELECT f(x => :a, y := :a), '12:30'", "SELECT f(x => $1, y := $1), '12:30'"),
    ],
)
def test_casts_slices_strings_and_comments_contain_no_parameters(source: str, sql: str) -> None:
    query = loader.parse_query("q", source)
    assert (query.sql, query.parameters) == (sql, ("a",))


def test_a_numbered_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match=r"query q: give the parameter \$1 a name"):
        loader.parse_query("q", "SELECT $1")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"a": 1}, "query q: :b missing"),
        ({"a": 1, "b": 2, "c": 3}, "query q: :c unknown"),
        ({"a": 1, "c": 3}, "query q: :b missing; :c unknown"),
        ({}, "query q: :a, :b missing"),
    ],
)
def test_missing_and_unknown_parameters_are_refused_by_name(values: dict[str, int], sentence: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(sentence)}$"):
        loader.parse_query("q", "SELECT :a, :b").bind(values)


async def test_only_the_transaction_supplies_the_tenant() -> None:
    class Connection:
        async def fetch(self, sql: str, *arguments: object) -> list[object]:
            return list(arguments)

    tenant = uuid.uuid4()
    statements = PostgresStatements(Connection(), tenant)  # type: ignore[arg-type]
    assert await statements.fetch("settings_all") == [tenant]
    with pytest.raises(TypeError, match="query settings_all: :tenant_id is the transaction's own"):
        await statements.fetch("settings_all", tenant_id=uuid.uuid4())


def test_a_statement_includes_others_by_name(folder: Path) -> None:
    (folder / "queries" / "a.sql").write_text("-- name: both\nSELECT ARRAY(\n{{names}}\n) AS names, :at AS at\n")
    (folder / "queries" / "b.sql").write_text("-- name: names\nSELECT name FROM users WHERE id = :id\n")
    both = loader.queries()["both"]
    assert both.source == "SELECT ARRAY(\nSELECT name FROM users WHERE id = :id\n) AS names, :at AS at"
    assert both.parameters == ("id", "at")


def test_a_statement_that_includes_an_unknown_one_is_refused(folder: Path) -> None:
    (folder / "queries" / "a.sql").write_text("-- name: both\nSELECT ARRAY({{nmaes}})\n")
    with pytest.raises(ValueError, match="nmaes, which does not exist"):
        loader.queries()
