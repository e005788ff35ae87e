"""Vectors of the next embedder in Postgres, in a table beside the index, and their switch with those in use."""

import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Final

import asyncpg

from composer.errors import Refused, Unavailable
from composer.ports import EmbedderMark, EmbeddingInput, ReembedStatus, Vectors
from composer.stores.postgres import CONNECT_TIMEOUT, Database, explained
from composer.stores.statements import Connection, vector_bytes
from sql.loader import queries

LOCK: Final = 0x4E65787573 + 1  # next to the lock of migrations
SWITCH_TIMEOUT: Final = 6 * 3600.0  # seconds: a million rows take minutes
ATTEMPTS: Final = 5  # at a switch that a deadlock ended


class PostgresReembedding:
    """composer.ports.Reembedding."""

    def __init__(self, url: str, database: Database) -> None:
        self._url = url
        self._database = database

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Be the one process that re-embeds; the lock goes with its connection."""
        async with explained(self._url):
            connection = await asyncpg.connect(self._url, timeout=CONNECT_TIMEOUT)
        try:
            async with explained(self._url):
                free = await connection.fetchval(queries()["reembed_lock"], LOCK)
            if not free:
                raise Refused("Another nexus reembed is at work on this database; nexus reembed --status says how far.")
            yield
        finally:
            connection.terminate()

    async def status(self) -> ReembedStatus:
        """How far it is."""
        async with self._database.connection() as connection:
            current = _mark(await connection.fetchval(queries()["deployment_get"], "embedder"))
            target = _mark(await connection.fetchval(queries()["deployment_get"], "reembed"))
            running = await connection.fetchval(queries()["reembed_running"], LOCK)
        prepared = items = 0
        for tenant, _ in await self._database.tenants():
            async with self._tenant(tenant) as connection:
                (row,) = await connection.fetch(queries()["reembed_count"], tenant)
            prepared, items = prepared + row["prepared"], items + row["items"]
        return ReembedStatus(current, target, prepared, items, running)

    async def begin(self, target: EmbedderMark) -> None:
        """Prepare vectors of this embedder; those that were prepared of another one are dropped."""
        async with self._database.connection() as connection:
            begun = _mark(await connection.fetchval(queries()["deployment_get"], "reembed"))
        if begun != target:
            await self._clear()
        async with self._database.connection() as connection:
            await connection.execute(queries()["deployment_set"], "reembed", _json(target))

    async def abandon(self) -> None:
        """Drop what was prepared."""
        await self._clear()
        async with self._database.connection() as connection:
            await connection.execute(queries()["deployment_delete"], "reembed")

    async def _clear(self) -> None:
        for tenant, _ in await self._database.tenants():
            async with self._tenant(tenant) as connection:
                await connection.execute(queries()["reembed_clear"], tenant, timeout=SWITCH_TIMEOUT)

    async def waiting(self, tenant: uuid.UUID, after: uuid.UUID, most: int) -> list[EmbeddingInput]:
        """The next items, by id, without a vector of the next embedder."""
        async with self._tenant(tenant) as connection:
            rows = await connection.fetch(queries()["reembed_waiting"], tenant, after, most)
        return [EmbeddingInput(row["id"], row["version"], row["text"]) for row in rows]

    async def store(self, tenant: uuid.UUID, items: Sequence[EmbeddingInput], vectors: Vectors) -> None:
        """Put vectors beside the ones in use; items that have changed since they were read are left out."""
        ids, versions = [item.id for item in items], [item.version for item in items]
        sent = [vector_bytes(vector) for vector in vectors]
        async with self._tenant(tenant) as connection:
            await connection.execute(queries()["reembed_store"], tenant, ids, versions, sent)

    async def switch(self, current: EmbedderMark, target: EmbedderMark) -> None:
        """All in one transaction; it is tried again when it and a writer wait for each other."""
        for _ in range(ATTEMPTS):
            try:
                await self._switch(current, target)
            except asyncpg.DeadlockDetectedError:
                continue
            return
        raise Unavailable("Too much is being forgotten at this moment to switch; run nexus reembed again in a while.")

    async def _switch(self, current: EmbedderMark, target: EmbedderMark) -> None:
        async with self._database.connection() as connection, connection.transaction():
            # First of all: whoever stores vectors waits for this row, and then sees that it has changed.
            if not await connection.fetchval(queries()["embedder_switch"], _json(target), _json(current)):
                raise Refused(f"The embedder in use is no longer {current.name}: run nexus reembed again.")
            for row in await connection.fetch(queries()["tenant_list"]):
                tenant = row["tenant_id"]
                await connection.execute(f"SET LOCAL nexus.tenant = '{tenant}'")
                for name in ("reembed_switch", "reembed_unprepared", "reembed_clear"):
                    await connection.execute(queries()[name], tenant, timeout=SWITCH_TIMEOUT)
            await connection.execute(queries()["deployment_delete"], "reembed")

    @asynccontextmanager
    async def _tenant(self, tenant: uuid.UUID) -> AsyncIterator[Connection]:
        """A transaction that sees one tenant."""
        async with self._database.connection() as connection, connection.transaction():
            await connection.execute(f"SET LOCAL nexus.tenant = '{tenant}'")
            yield connection


def _mark(stored: str | None) -> EmbedderMark | None:
    return None if stored is None else EmbedderMark(**json.loads(stored))


def _json(mark: EmbedderMark) -> str:
    return json.dumps(asdict(mark))
