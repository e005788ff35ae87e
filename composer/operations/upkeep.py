"""Operations on a whole installation: migrate, back up, restore, re-embed. Each starts the servers it needs."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from composer.ingest.tenants import TenantDirectory, configured_prices
from composer.memory import reembed as reembedding
from composer.ports.reembedding import ReembedStatus
from composer.repositories.audit import AuditSigner
from composer.settings import Settings
from composer.stores.audit_keys import AuditHeadsFile, AuditKeyRing
from composer.stores.backup.backup import DatabaseBackup, Manifest
from composer.stores.clock import SystemClock
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.reembedding import PostgresReembedding
from composer.stores.database.schema import apply_migrations, create_login, prepare
from composer.stores.embedded.servers import EmbeddedServers
from composer.stores.installation_keys import key_ring
from composer.stores.models.configured import Addresses, configured_embedder, start_servers
from composer.stores.models.tokens import tokenizer_for
from composer.usage.embedding import EmbeddingMeter
from composer.usage.ledger import CallLedger, UsageRules


@asynccontextmanager
async def _addresses(settings: Settings) -> AsyncIterator[Addresses]:
    """The URLs of the database. An embedded server that was started for it is stopped again."""
    servers = EmbeddedServers(settings.home)
    try:
        yield await start_servers(settings, servers)
    finally:
        await asyncio.to_thread(servers.stop)


def abandon_servers() -> None:
    """Tell the embedded servers that this process alone uses to stop, and wait for nothing: it is about to end."""
    for servers in tuple(EmbeddedServers.in_use):
        servers.abandon()


async def migrate(settings: Settings) -> list[str]:
    """Apply pending migrations to the configured database, and return their names. With the URLs of an owner and of a
    service, the service's login is created too."""
    async with _addresses(settings) as where:
        applied = await apply_migrations(where.for_owner)
        if settings.owner_database_url is not None:
            await create_login(where.database, where.for_owner)
        return applied


async def backup(settings: Settings, path: Path, now: datetime) -> Manifest:
    """Write a backup of the configured database to a file. Other processes may go on using it."""
    async with _addresses(settings) as where:
        keys = await key_ring(settings, await prepare(where.database, where.owner))
        return await DatabaseBackup(where.for_owner, keys).write(path, now)


async def restore(settings: Settings, path: Path, *, trust: bool = False) -> Manifest:
    """Fill the configured database, which must be empty, from a backup. `trust`: also from one that another data folder
    has signed, or none. Every tenant's audit log records it."""
    async with _addresses(settings) as where:
        keys = AuditKeyRing.load(settings)
        backup = DatabaseBackup(where.for_owner, keys)
        signer = AuditSigner(keys, SystemClock(), uuid.uuid4)
        clear = AuditHeadsFile(settings.home).clear  # the restored logs end earlier
        return await backup.restore(path, trust=trust, signer=signer, before_commit=clear)


async def reembed(settings: Settings, progress: Callable[[int, int], None]) -> ReembedStatus:
    """Replace the stored vectors by those of the configured embedder. Other processes may go on using the database.

    Raises BadInput (nothing to do), Refused (another process does it), Unavailable (run it again later).
    """
    async with _addresses(settings) as where:
        url = await prepare(where.database, where.owner)
        embedder = configured_embedder(settings)
        await embedder.load()
        database = await PostgresDatabase.open(url, connections=2)
        try:
            database.use_embedder(embedder.name, embedder.width)
            vectors = PostgresReembedding(url, database)
            directory = await TenantDirectory.load(settings, database)
            # No budget refuses it: who runs it has decided on it, and half of it is of no use.
            rules = UsageRules(settings.known_models, configured_prices(settings), lambda _: (), directory.zone)
            meter = EmbeddingMeter(embedder, CallLedger(database, SystemClock(), uuid.uuid4, rules), tokenizer_for)
            await reembedding.reembed(vectors, database, reembedding.identity_of(embedder), meter, progress)
            return await vectors.status()
        finally:
            await database.close()


async def reembed_status(settings: Settings) -> ReembedStatus:
    """The progress of a change of embedder."""
    async with _addresses(settings) as where:
        url = await prepare(where.database, where.owner)
        database = await PostgresDatabase.open(url, connections=1)
        try:
            return await PostgresReembedding(url, database).status()
        finally:
            await database.close()
