"""Runs the named statements of sql/queries on one connection, for one tenant, which is always their $1."""

import uuid
from typing import Any

import asyncpg

from composer.ports import Vectors
from composer.visibility import Readable
from sql.loader import queries

Connection = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy


class Statements:
    """The statements of one transaction."""

    def __init__(self, connection: Connection, tenant_id: uuid.UUID) -> None:
        self._connection = connection
        self.tenant_id = tenant_id

    async def fetch(self, name: str, *args: Any) -> list[asyncpg.Record]:
        """All rows."""
        return await self._connection.fetch(queries()[name], self.tenant_id, *args)

    async def row(self, name: str, *args: Any) -> asyncpg.Record | None:
        """The first row, if any."""
        return await self._connection.fetchrow(queries()[name], self.tenant_id, *args)

    async def value(self, name: str, *args: Any) -> Any:
        """The first column of the first row."""
        return await self._connection.fetchval(queries()[name], self.tenant_id, *args)

    async def installation(self, name: str, *args: Any) -> Any:
        """The first column of the first row of a statement about the installation, which no tenant is named to."""
        return await self._connection.fetchval(queries()[name], *args)

    async def execute(self, name: str, *args: Any) -> None:
        """Run it for its effect."""
        await self._connection.execute(queries()[name], self.tenant_id, *args)


def vector_bytes(vector: Vectors) -> bytes:
    """A vector of shape (width,) as pgvector sends and receives it: its width, two empty bytes, its numbers."""
    return len(vector).to_bytes(2, "big") + b"\0\0" + vector.astype(">f4").tobytes()


def scope(readable: Readable) -> tuple[list[str], list[str], list[str], list[uuid.UUID], str]:
    """A Readable as parameters $2 to $6 of a reading statement: runs, pooled, visibilities, readers, vendor."""
    return (
        list(readable.all_namespaces),
        list(readable.pooled),
        [str(mark) for mark in readable.visibilities],
        list(readable.readers),
        readable.vendor,
    )
