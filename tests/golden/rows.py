"""The rows of tenants, read by SQL alone: of every table that has a tenant, with names in place of ids."""

import hashlib
import json
import re
import uuid
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import asyncpg

from tests.golden.names import Names, unordered

COLUMNS: Final = """
    SELECT table_name, column_name, data_type, udt_name FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name IN (
        SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'tenant_id')
    AND table_name IN (SELECT tablename FROM pg_tables WHERE schemaname = 'public')
    ORDER BY table_name, ordinal_position
"""
# Made from the columns beside them.
DERIVED: Final = ("signature", "magnitude")
# Numbers of processes, which are made up by chance.
PROCESSES: Final = ("claimed_by", "process")
# Of rows of one moment, which is first is made up by chance.
PLACES: Final = (("audit_seals", "number"), ("audit_anchors", "number"))
# When a platform was asked last, which is a matter of the real clock.
ASKED: Final = ("privacy_at", "public_at", "outsiders_at")
DURATIONS: Final = "timings_ms"
ANONYMOUS: Final = {"tenant_id", "id", "erased_at"}
# What a row is known by, in the order in which they are looked for.
NATURAL: Final = ("external_id", "slug", "name")
# What rows are ordered by, before all else of them.
FIRST: Final = (
    "at",
    "created_at",
    "valid_from",
    "decided_at",
    "queued_at",
    "starts_at",
    "seq",
    "part",
    "text",
    "value",
)
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CHANCE: Final = re.compile(r"[0-9a-f]{8,}|127\.0\.0\.1:\d+")
_LETTERS: Final = str.maketrans("0123456789abcdef", "ghijklmnopqrstuv")  # a mark is no id
Row = dict[str, Any]
Tables = dict[str, list[Row]]


async def columns_of(raw: asyncpg.Connection) -> dict[str, dict[str, str]]:
    """The tables that have tenants, each with its columns and their types."""
    found: dict[str, dict[str, str]] = {}
    for row in await raw.fetch(COLUMNS):
        kind = row["udt_name"] if row["data_type"] in ("USER-DEFINED", "ARRAY") else row["data_type"]
        found.setdefault(row["table_name"], {})[row["column_name"]] = kind
    return found


async def tenants_of(raw: asyncpg.Connection) -> dict[uuid.UUID, str]:
    """The tenants by their ids, with their slugs."""
    return {row["tenant_id"]: row["slug"] for row in await raw.fetch("SELECT tenant_id, slug FROM tenants")}


async def read_rows(
    raw: asyncpg.Connection,
    columns: dict[str, dict[str, str]],
    tenants: Sequence[uuid.UUID],
    names: Names,
    *,
    asked: bool = True,
) -> Tables:
    """All rows of these tenants by their tables, with names in place of ids. `names` learns what the ids stand for.
    `asked`: with the times at which a platform was asked."""
    tables: Tables = {}
    for table, kinds in columns.items():
        kinds = {name: kind for name, kind in kinds.items() if (table, name) not in PLACES}
        rows = [_plain(row, kinds) for row in await raw.fetch(_select(table, kinds), list(tenants))]
        for row in rows if table == "requests" else ():
            if row.get("caller") == "operation":  # stored when it is counted, by the real clock
                row["created_at"] = row["expires_at"] = "<counted>"
        for row in rows if not asked else ():
            row.update({name: "<asked>" for name in ASKED if row.get(name)})
        if rows:
            tables[table] = rows
    marks = _name(tables, names)
    for rows in tables.values():  # so that what is made up is numbered alike each time
        rows.sort(key=lambda row: (_first(row), _mark(row, marks)))
    return {table: unordered([names.value(row) for row in rows]) for table, rows in tables.items()}


def _select(table: str, kinds: dict[str, str]) -> str:
    if table == "recall_terms":  # a row for each word: together, they are the words of an item
        rest = [name for name in kinds if name not in ("term", "tf")]
        return (
            f"SELECT {', '.join(rest)}, string_agg(term || ':' || tf, ' ' ORDER BY term, tf) AS terms FROM {table} "
            f"WHERE tenant_id = ANY($1::uuid[]) GROUP BY {', '.join(rest)}"
        )
    wanted = [name for name in kinds if name not in DERIVED or kinds[name] == "bytea"]
    return f"SELECT {', '.join(wanted)} FROM {table} WHERE tenant_id = ANY($1::uuid[])"


def _plain(row: asyncpg.Record, kinds: dict[str, str]) -> Row:
    """A row as values of JSON, ids as texts."""
    plain = {
        name: "<process>" if name in PROCESSES else _value(value, kinds.get(name, "")) for name, value in row.items()
    }
    if isinstance(plain.get(DURATIONS), dict):
        plain[DURATIONS] = sorted(plain[DURATIONS])
    return plain


def _value(value: Any, kind: str) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if kind in ("jsonb", "json"):
        return json.loads(value)
    if kind == "vector":
        return f"<vector {hashlib.sha256(str(value).encode()).hexdigest()[:6]}>"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list | tuple | set):
        return [_value(each, "") for each in value]
    return str(value)


def _name(tables: Tables, names: Names) -> dict[str, str]:
    """Let `names` know every id of these rows: by what its row is called, or by its place among the rows of its table,
    as their contents order them. Returns what tells each from others."""
    homes: dict[str, tuple[str, Row]] = {}
    for table, rows in tables.items():
        for row in filter(_has_id, rows):  # of several tables with an id, the one that says most of it
            if row["id"] not in homes or len(row) > len(homes[row["id"]][1]):
                homes[row["id"]] = table, row
    tenants = {row["tenant_id"]: str(row["slug"]) for row in tables.get("tenants", ())}
    for id, slug in tenants.items():
        names.know(uuid.UUID(id), f"tenant {slug}")
    marks = tenants | {id: _mark(row, {}) for id, (_, row) in homes.items()}
    for _ in range(3):  # so that rows that are alike differ by what they belong to
        marks = tenants | {id: _mark(row, marks) for id, (_, row) in homes.items()}
    order = sorted(homes, key=lambda id: (homes[id][0], _first(homes[id][1]), marks[id]))
    taken: set[str] = set()
    counts: dict[str, int] = {}
    for id in order:
        table, row = homes[id]
        if set(row) <= ANONYMOUS:  # nothing tells such rows apart: ids of what is erased
            names.know(uuid.UUID(id), table)
            continue
        name = _natural(table, row, names)
        if not name or name in taken:
            counts[table] = counts.get(table, 0) + 1
            name = f"{name or table} {counts[table]}"
        taken.add(name)
        if _ID.fullmatch(id):
            names.know(uuid.UUID(id), name)
        else:
            names.know_text(id, name)
        if row.get("external_id") and not names.name_of(row["external_id"]):
            names.know_text(row["external_id"], f"external id of {name}")
    return marks


def _has_id(row: Row) -> bool:
    """Whether a row has an id of its own that is made up."""
    return isinstance(row.get("id"), str) and bool(_ID.fullmatch(row["id"]) or _CHANCE.fullmatch(row["id"]))


def _natural(table: str, row: Row, names: Names) -> str:
    known = next((names.name_of(str(row[name])) for name in NATURAL if row.get(name)), "")
    if not known:
        return ""
    parts = [table, known, row.get("kind"), names.name_of(str(row.get("thread") or ""))]
    return " ".join(str(part) for part in parts if part)


def _first(row: Row) -> str:
    return _CHANCE.sub("·", json.dumps([row.get(name) for name in FIRST], sort_keys=True, ensure_ascii=False))


def _mark(row: Row, marks: dict[str, str]) -> str:
    """What tells a row from others, but for what is made up by chance."""
    whole = json.dumps({k: v for k, v in row.items() if k != "id"}, sort_keys=True, ensure_ascii=False)
    whole = _CHANCE.sub("·", _ID.sub(lambda found: marks.get(found[0], "·"), whole))
    return hashlib.sha256(whole.encode()).hexdigest().translate(_LETTERS)
