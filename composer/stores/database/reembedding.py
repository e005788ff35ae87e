"""Vectors of the next embedder, in a table beside the recall index, and the switch to them."""

import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from typing import Final

import asyncpg

from composer.errors import Refused, Unavailable
from composer.ports.database import Vector
from composer.ports.models import EmbeddingInput, Vectors
from composer.ports.reembedding import EmbedderIdentity, ReembedStatus
from composer.settings.server_urls import ServerUrl
from composer.stores.database.postgres import CONNECT_TIMEOUT_SECONDS, PostgresDatabase, translate_postgres_errors
from composer.stores.database.statements import PostgresStatements

LOCK: Final = 0x4E65787573 + 1  # next to the lock of migrations
SWITCH_TIMEOUT_SECONDS: Final = 6 * 3600.0  # a million rows take minutes
MAX_SWITCH_ATTEMPTS: Final = 5  # after deadlocks


class PostgresReembedding:
    """composer.ports.reembedding.Reembedding."""

    def __init__(self, url: ServerUrl, database: PostgresDatabase) -> None:
        self._url = url
        self._database = database

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Be the only process that re-embeds. The lock ends with its connection."""
        async with translate_postgres_errors(self._url):
            connection = await asyncpg.connect(self._url, timeout=CONNECT_TIMEOUT_SECONDS)
        try:
            async with translate_postgres_errors(self._url):
                locked = await PostgresStatements(connection).fetch_value("reembed_lock", key=LOCK)
            if not locked:
                raise Refused(
                    "Another nexus reembed is running on this database; nexus reembed --status shows its progress."
                )
            yield
        finally:
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await connection.reset(timeout=CONNECT_TIMEOUT_SECONDS)  # unlocks now: the server notices an end later
            connection.terminate()

    async def status(self) -> ReembedStatus:
        """The progress."""
        async with self._database.installation() as sql:
            current = _identity(await sql.fetch_value("deployment_get", key="embedder"))
            target = _identity(await sql.fetch_value("deployment_get", key="reembed"))
            running = await sql.fetch_value("reembed_running", key=LOCK)
        prepared = items = 0
        for tenant, _ in await self._database.tenants():
            async with self._tenant(tenant) as sql:
                (row,) = await sql.fetch("reembed_count")
            prepared, items = prepared + row["prepared"], items + row["items"]
        return ReembedStatus(current, target, prepared, items, running)

    async def begin(self, target: EmbedderIdentity) -> None:
        """Prepare vectors of this embedder. Vectors prepared for another one are deleted."""
        async with self._database.installation() as sql:
            begun = _identity(await sql.fetch_value("deployment_get", key="reembed"))
        if begun != target:
            await self._clear()
        async with self._database.installation() as sql:
            await sql.execute("deployment_set", key="reembed", value=_json(target), keep=False)

    async def abandon(self) -> None:
        """Delete prepared vectors."""
        await self._clear()
        async with self._database.installation() as sql:
            await sql.execute("deployment_set", key="reembed", value=None, keep=False)

    async def _clear(self) -> None:
        for tenant, _ in await self._database.tenants():
            async with self._tenant(tenant) as sql:
                await sql.execute("reembed_clear", SWITCH_TIMEOUT_SECONDS)

    async def pending(self, tenant: uuid.UUID, after: tuple[uuid.UUID, int], limit: int) -> list[EmbeddingInput]:
        """The next passages, by id and part, without a prepared vector."""
        async with self._tenant(tenant) as sql:
            rows = await sql.fetch("reembed_pending", after=after[0], after_part=after[1], limit=limit)
        return [EmbeddingInput(row["id"], row["part"], row["version"], row["text"]) for row in rows]

    async def store(self, tenant: uuid.UUID, items: Sequence[EmbeddingInput], vectors: Vectors) -> None:
        """Store prepared vectors, except of items that changed since they were read."""
        ids, versions = [item.id for item in items], [item.version for item in items]
        async with self._tenant(tenant) as sql:
            await sql.execute(
                "reembed_store",
                ids=ids,
                parts=[item.part for item in items],
                versions=versions,
                vectors=[Vector(vector) for vector in vectors],
            )

    async def switch(self, current: EmbedderIdentity, target: EmbedderIdentity) -> None:
        """Replace the vectors in use in one transaction. It is retried after a deadlock with a writer."""
        for _ in range(MAX_SWITCH_ATTEMPTS):
            try:
                await self._switch(current, target)
            except asyncpg.DeadlockDetectedError:
                continue
            return
        raise Unavailable("Other changes block the switch to the new vectors; run nexus reembed again later.")

    async def _switch(self, current: EmbedderIdentity, target: EmbedderIdentity) -> None:
        async with self._database.connection() as connection, connection.transaction():
            sql = PostgresStatements(connection)
            # First of all: writers of vectors wait for this row, and then see that it has changed.
            if not await sql.fetch_value("embedder_switch", new=_json(target), old=_json(current)):
                raise Refused(f"The embedder in use is no longer {current.name}: run nexus reembed again.")
            for row in await sql.fetch("tenant_list"):
                await connection.execute(f"SET LOCAL nexus.tenant = '{row['tenant_id']}'")
                for query in ("reembed_switch", "reembed_clear"):
                    await PostgresStatements(connection, row["tenant_id"]).execute(query, SWITCH_TIMEOUT_SECONDS)
            await sql.execute("deployment_set", key="reembed", value=None, keep=False)

    @asynccontextmanager
    async def _tenant(self, tenant: uuid.UUID) -> AsyncIterator[PostgresStatements]:
        """A transaction that sees one tenant."""
        async with self._database.connection() as connection, connection.transaction():
            await connection.execute(f"SET LOCAL nexus.tenant = '{tenant}'")
            yield PostgresStatements(connection, tenant)


def _identity(stored: str | None) -> EmbedderIdentity | None:
    return None if stored is None else EmbedderIdentity(**json.loads(stored))


def _json(embedder: EmbedderIdentity) -> str:
    return json.dumps(asdict(embedder))
