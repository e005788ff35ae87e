"""Rows as dataclasses: each query that a repository reads so has a column for every field, of the field's type."""

import ast
import importlib
import types
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints
from uuid import UUID

import asyncpg

import composer
from sql.loader import queries

ROOT: Final = Path(composer.__file__).parent
TYPES: Final = {
    "text": str,
    "json": str,
    "jsonb": str,
    "int2": int,
    "int4": int,
    "int8": int,
    "float8": float,
    "numeric": Decimal,
    "bool": bool,
    "uuid": UUID,
    "bytea": bytes,
    "vector": bytes,  # as it is on the wire
    "timestamptz": datetime,
    "date": date,
}


def typed_reads() -> list[tuple[type, str]]:
    """(dataclass, query) of every fetch_as and fetch_one_as."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr in ("fetch_as", "fetch_one_as") and isinstance(call.args[1], ast.Constant):
                module = importlib.import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
                found.append((getattr(module, ast.unparse(call.args[0])), str(call.args[1].value)))
    return found


def fits(hint: Any, column: str) -> bool:
    """Whether a column of this PostgreSQL type may be a field of this type."""
    if get_origin(hint) is types.UnionType:
        return all(fits(each, column) for each in get_args(hint) if each is not types.NoneType)
    if get_origin(hint) is tuple:
        return column.endswith("[]") and fits(get_args(hint)[0], column.removesuffix("[]"))
    if isinstance(hint, type) and issubclass(hint, Enum):
        hint = str
    return TYPES.get(column) is hint


def test_typed_reads_are_found() -> None:
    assert len(typed_reads()) > 30


async def test_every_query_has_a_column_for_every_field_of_what_its_rows_become(fresh_url: str) -> None:
    connection = await asyncpg.connect(fresh_url)
    described = {name: (await connection.prepare(queries()[name].sql)).get_attributes() for _, name in typed_reads()}
    await connection.close()
    for kind, name in typed_reads():
        columns = {each.name: each.type.name for each in described[name]}
        hints = get_type_hints(kind)
        wrong = {
            field.name: columns.get(field.name)
            for field in fields(kind)
            if not fits(hints[field.name], columns.get(field.name, ""))
        }
        assert not wrong, (name, kind.__name__, wrong)
