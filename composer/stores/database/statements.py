"""Run the named queries of sql/queries on one connection."""

import uuid
from collections.abc import Mapping
from typing import Any, TypeVar

import asyncpg

from composer.stores.database.typed_rows import typed
from sql.loader import queries

T = TypeVar("T")
Connection = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy


def of_tenant(name: str, tenant_id: uuid.UUID) -> str:
    """The text of a query whose only parameter is the tenant, to be sent together with others."""
    query = queries()[name]
    if query.parameters != ("tenant_id",):
        raise TypeError(f"query {name}: takes more than :tenant_id")
    return query.sql.replace("$1", f"'{tenant_id}'")


class PostgresStatements:
    """The statements of one transaction (composer.ports.database.Statements). A given `tenant_id` is supplied to every
    query that names it; callers may not pass another."""

    def __init__(self, connection: Connection, tenant_id: uuid.UUID | None = None) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    async def fetch(self, query: str, /, **values: Any) -> list[asyncpg.Record]:
        """All rows."""
        sql, arguments = self._bound(query, values)
        return await self._connection.fetch(sql, *arguments)

    async def fetch_one(self, query: str, /, **values: Any) -> asyncpg.Record | None:
        """The first row, or None."""
        sql, arguments = self._bound(query, values)
        return await self._connection.fetchrow(sql, *arguments)

    async def fetch_as(self, kind: type[T], query: str, /, **values: Any) -> list[T]:
        """All rows, each as a `kind`."""
        return typed(kind, await self.fetch(query, **values))

    async def fetch_one_as(self, kind: type[T], query: str, /, **values: Any) -> T | None:
        """The first row as a `kind`, or None."""
        row = await self.fetch_one(query, **values)
        return None if row is None else typed(kind, [row])[0]

    async def fetch_value(self, query: str, /, **values: Any) -> Any:
        """The first column of the first row, or None."""
        sql, arguments = self._bound(query, values)
        return await self._connection.fetchval(sql, *arguments)

    async def execute(self, query: str, /, timeout_seconds: float | None = None, **values: Any) -> None:
        """Run a query without reading rows."""
        sql, arguments = self._bound(query, values)
        await self._connection.execute(sql, *arguments, timeout=timeout_seconds)

    def _bound(self, name: str, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
        query = queries()[name]
        if self._tenant_id is not None and "tenant_id" in query.parameters:
            if "tenant_id" in values:
                raise TypeError(f"query {name}: :tenant_id is the transaction's own, so do not pass it")
            values = {**values, "tenant_id": self._tenant_id}
        return query.sql, query.bind(values)
