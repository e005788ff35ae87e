"""Operations on a whole installation: migrate, back up, restore, re-embed. Each starts the servers it needs."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from composer.memory import reembed as reembedding
from composer.ports.reembedding import ReembedStatus
from composer.settings import Settings
from composer.stores.backup import DatabaseBackup, Manifest
from composer.stores.configured import configured_embedder, start_servers
from composer.stores.embedded.servers import EmbeddedServers
from composer.stores.postgres import PostgresDatabase, apply_migrations
from composer.stores.reembedding import PostgresReembedding


@asynccontextmanager
async def _database_url(settings: Settings) -> AsyncIterator[str]:
    """The URL of the database. An embedded server that was started for it is stopped again."""
    servers = EmbeddedServers(settings.home)
    try:
        yield (await start_servers(settings, servers)).database_url
    finally:
        await asyncio.to_thread(servers.stop)


async def migrate(settings: Settings) -> list[str]:
    """Apply pending migrations to the configured database, and return their names."""
    async with _database_url(settings) as url:
        return await apply_migrations(url)


async def backup(settings: Settings, path: Path, now: datetime) -> Manifest:
    """Write a backup of the configured database to a file. Other processes may go on using it."""
    async with _database_url(settings) as url:
        await apply_migrations(url)
        return await DatabaseBackup(url).write(path, now)


async def restore(settings: Settings, path: Path) -> Manifest:
    """Fill the configured database, which must be empty, from a backup."""
    async with _database_url(settings) as url:
        return await DatabaseBackup(url).restore(path)


async def reembed(settings: Settings, progress: Callable[[int, int], None]) -> ReembedStatus:
    """Replace the stored vectors by those of the configured embedder. Other processes may go on using the database.

    Raises BadInput (nothing to do), Refused (another process does it), Unavailable (run it again later).
    """
    async with _database_url(settings) as url:
        await apply_migrations(url)
        embedder = configured_embedder(settings)
        await embedder.load()
        database = await PostgresDatabase.open(url, connections=2)
        try:
            database.use_embedder(embedder.name, embedder.width)
            vectors = PostgresReembedding(url, database)
            await reembedding.reembed(vectors, database, embedder, progress)
            return await vectors.status()
        finally:
            await database.close()


async def reembed_status(settings: Settings) -> ReembedStatus:
    """The progress of a change of embedder."""
    async with _database_url(settings) as url:
        await apply_migrations(url)
        database = await PostgresDatabase.open(url, connections=1)
        try:
            return await PostgresReembedding(url, database).status()
        finally:
            await database.close()
