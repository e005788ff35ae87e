"""The database, as far as the repositories need it: run a named query of sql/queries with named values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from composer.ports.models import Vectors

T = TypeVar("T")

# What a transaction does, and so how it holds its tenant's lock, from its beginning to its end. `read`: it only reads,
# all as of one moment, and holds none. `share`: it writes, beside others that do. `alone`: it erases, or changes who is
# one person, who is in a project or which conversations belong to one; nothing else is written meanwhile, and all that
# was being written before is there.
Mode = Literal["read", "share", "alone"]


class Row(Protocol):
    """A row of a result; `row["column"]` is a column's value."""

    def __getitem__(self, column: str, /) -> Any:
        """The value of a column. Raises KeyError for an unknown one."""
        ...


class Statements(Protocol):
    """Runs queries by name. Those of a tenant's transaction supply `tenant_id` themselves.

    Vectors are passed as `Vector`, bit strings as `Bits`. Raises TypeError when a query's
    parameters and the values differ, Unavailable when the database does not answer.
    """

    async def fetch(self, query: str, /, **values: Any) -> Sequence[Row]:
        """All rows."""
        ...

    async def fetch_one(self, query: str, /, **values: Any) -> Row | None:
        """The first row, or None."""
        ...

    async def fetch_as(self, kind: type[T], query: str, /, **values: Any) -> list[T]:
        """All rows, each as a `kind`: a dataclass with fields that are named as columns of the query. An array becomes
        a tuple, a text an enumeration, where the field is one."""
        ...

    async def fetch_one_as(self, kind: type[T], query: str, /, **values: Any) -> T | None:
        """The first row as a `kind`, or None."""
        ...

    async def fetch_value(self, query: str, /, **values: Any) -> Any:
        """The first column of the first row, or None."""
        ...

    async def execute(self, query: str, /, **values: Any) -> None:
        """Run a query without reading rows."""
        ...


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector of shape (width,)."""

    values: Vectors


@dataclass(frozen=True, slots=True)
class Bits:
    """A bit string of `length` bits, eight in a byte, the first bit the highest of the first byte."""

    data: bytes
    length: int
