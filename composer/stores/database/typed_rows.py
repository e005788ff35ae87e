"""Rows as the dataclasses that repositories return."""

import types
from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

import asyncpg

T = TypeVar("T")


def typed(kind: type[T], rows: Iterable[asyncpg.Record]) -> list[T]:
    """Each row as a `kind`, a dataclass: of the columns that are named as its fields. An array becomes a tuple, a text
    an enumeration, where the field is one."""
    columns = _columns(cast("Hashable", kind))
    return [kind(*(row[name] if convert is None else convert(row[name]) for name, convert in columns)) for row in rows]


@cache
def _columns(kind: Any) -> list[tuple[str, Callable[[Any], Any] | None]]:
    """The fields of a dataclass, in order, each with what makes a column's value one of its type (None: it is one)."""
    hints = get_type_hints(kind)
    return [(field.name, _conversion(hints[field.name])) for field in fields(kind)]


def _conversion(hint: Any) -> Callable[[Any], Any] | None:
    if get_origin(hint) is types.UnionType:
        [present] = (each for each in get_args(hint) if each is not types.NoneType)
        convert = _conversion(present)
        return None if convert is None else lambda value: None if value is None else convert(value)
    if get_origin(hint) is tuple:
        return tuple
    return hint if isinstance(hint, type) and issubclass(hint, Enum) else None
