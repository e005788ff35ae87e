"""Run the named queries of sql/queries on one connection."""

import uuid
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from typing import Any

import asyncpg

from composer.stores.lock_waits import LockWaits
from sql.loader import queries

Connection = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy


def of_tenant(name: str, tenant_id: uuid.UUID) -> str:
    """The text of a query whose only parameter is the tenant, to be sent together with others."""
    query = queries()[name]
    if query.parameters != ("tenant_id",):
        raise TypeError(f"query {name}: takes more than :tenant_id")
    return query.sql.replace("$1", f"'{tenant_id}'")


def attempt_of(lock: str) -> str:
    """What takes a lock as this statement does, if nobody has to be waited for: it has a row if it is taken."""
    return f"SELECT FROM ({lock.replace('pg_advisory', 'pg_try_advisory')}) AS attempt (taken) WHERE taken"


class PostgresStatements:
    """The statements of one transaction (composer.ports.database.Statements). A given `tenant_id` is supplied to every
    query that names it; callers may not pass another. `waits`: with whom it waits for locks (None: with nobody);
    `locked`: the kinds of those that it has already."""

    def __init__(
        self,
        connection: Connection,
        tenant_id: uuid.UUID | None = None,
        waits: LockWaits | None = None,
        locked: Collection[str] = (),
    ) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._waits = waits
        self._locked = set(locked)

    async def fetch(self, query: str, /, **values: Any) -> list[asyncpg.Record]:
        """All rows."""
        sql, arguments = self._bound(query, values)
        return await self._connection.fetch(sql, *arguments)

    async def fetch_one(self, query: str, /, **values: Any) -> asyncpg.Record | None:
        """The first row, or None."""
        sql, arguments = self._bound(query, values)
        return await self._connection.fetchrow(sql, *arguments)

    async def fetch_value(self, query: str, /, **values: Any) -> Any:
        """The first column of the first row, or None."""
        sql, arguments = self._bound(query, values)
        return await self._connection.fetchval(sql, *arguments)

    async def execute(self, query: str, /, timeout_seconds: float | None = None, **values: Any) -> None:
        """Run a query without reading rows."""
        sql, arguments = self._bound(query, values)
        await self._connection.execute(sql, *arguments, timeout=timeout_seconds)

    async def lock(self, query: str, kind: str, /, **values: Any) -> None:
        """Run a query that takes an advisory lock until the transaction ends. Raises Unavailable where too many wait
        for locks of this kind."""
        sql, arguments = self._bound(query, values)
        if not await self._connection.fetch(attempt_of(sql), *arguments):
            # Who has such a lock takes it another way, and needs no place: who has one may be waiting for them.
            waits = None if kind in self._locked else self._waits
            async with nullcontext() if waits is None else waits.place(kind, self._tenant_id):
                await self._connection.execute(sql, *arguments)
        self._locked.add(kind)

    def _bound(self, name: str, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
        query = queries()[name]
        if self._tenant_id is not None and "tenant_id" in query.parameters:
            if "tenant_id" in values:
                raise TypeError(f"query {name}: :tenant_id is the transaction's own, so do not pass it")
            values = {**values, "tenant_id": self._tenant_id}
        return query.sql, query.bind(values)
