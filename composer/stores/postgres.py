"""The database: connections, one transaction of one tenant at a time, migrations, and what it says when it is down."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

import asyncpg
import structlog

from composer.errors import Misconfigured, NexusError, Unavailable
from composer.stores.compactions import PostgresCompactions
from composer.stores.doors import PostgresDoors
from composer.stores.erasing import PostgresErasing
from composer.stores.log import PostgresLog
from composer.stores.memories import PostgresMemories
from composer.stores.projects import PostgresProjects
from composer.stores.recall import PostgresRecall
from composer.stores.statements import Connection, Statements
from composer.stores.structured import PostgresStructured
from composer.stores.summaries import PostgresSummaries, PostgresUpkeep
from composer.stores.tenant_settings import PostgresSettings
from composer.stores.turns import PostgresTurns
from sql.loader import migrations, queries

logger = structlog.get_logger()

SERVICE_ROLE: Final = "nexus_service"
# Without statistics (right after an import) whole tables would be scanned; what we read in large ones has an index.
# Memoizing and JIT only cost here.
SESSION: Final = {
    "plan_cache_mode": "force_custom_plan",
    "enable_seqscan": "off",
    "enable_memoize": "off",
    "jit": "off",
    "application_name": "nexus",
}
MIGRATION_LOCK: Final = 0x4E65787573  # "Nexus": one process migrates at a time
CONNECT_TIMEOUT: Final = 5.0  # seconds
STATEMENT_TIMEOUT: Final = 60.0  # seconds
CLOSING: Final = 10.0  # seconds that connections in use have when all are let go

READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Planning anew takes longer than most reads do (recall: 1.3 of 2.9 ms), and one plan serves scopes of any size; but a
# plan that was made while the tables were empty takes the wrong index for ever. So plans are kept where statistics are.
KEEP_PLANS: Final = "SET LOCAL plan_cache_mode = force_generic_plan"
LOOK_EVERY: Final = 10.0  # seconds, until there are statistics

GONE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # what asyncpg says when the connection broke between two steps of a statement
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.DiskFullError,
)


class PostgresTransaction:
    """One transaction of one tenant, by noun (composer.ports.Transaction)."""

    def __init__(self, statements: Statements, embedder: str | None) -> None:
        self.log = PostgresLog(statements)
        self.turns = PostgresTurns(statements)
        self.projects = PostgresProjects(statements)
        self.recall = PostgresRecall(statements, embedder)
        self.structured = PostgresStructured(statements)
        self.memories = PostgresMemories(statements, embedder)
        self.settings = PostgresSettings(statements)
        self.erasing = PostgresErasing(statements)
        self.doors = PostgresDoors(statements)
        self.compactions = PostgresCompactions(statements)
        self.summaries = PostgresSummaries(statements)
        self.upkeep = PostgresUpkeep(statements)


class Database:
    """A pool of connections under the service's own role, which row-level security binds."""

    def __init__(self, url: str, pool: asyncpg.Pool) -> None:
        self._url = url
        self._pool = pool
        self._embedder: str | None = None  # as stored beside vectors; None: this process stores and asks none
        self._measured = False
        self._look_at = 0.0

    @classmethod
    async def open(cls, url: str, *, connections: int = 10) -> "Database":
        """Connect to a migrated database. Raises Unavailable or Misconfigured."""
        with_role = SESSION | {"role": SERVICE_ROLE}
        async with explained(url):
            pool = await asyncpg.create_pool(
                url,
                min_size=1,
                max_size=connections,
                server_settings=with_role,
                timeout=CONNECT_TIMEOUT,
                command_timeout=STATEMENT_TIMEOUT,
                max_cached_statement_lifetime=0,
                init=with_vectors,
                reset=_unchanged,
            )
        return cls(url, pool)

    async def close(self) -> None:
        """Let the connections go, after a while also those in use; never raises for a server that is gone already."""
        try:
            async with asyncio.timeout(CLOSING):
                await self._pool.close()
        except GONE:
            self._pool.terminate()

    @asynccontextmanager
    async def transaction(self, tenant_id: uuid.UUID, *, snapshot: bool = False) -> AsyncIterator[PostgresTransaction]:
        """A transaction that sees one tenant (composer.ports.Store)."""
        async with explained(self._url), self._pool.acquire() as connection:
            begin = "BEGIN"
            if snapshot:
                begin = f"{READ}; {KEEP_PLANS}" if await self._has_statistics(connection) else READ
            try:
                # One round trip; row-level security reads the setting, which ends with the transaction.
                await connection.execute(f"{begin}; SET LOCAL nexus.tenant = '{tenant_id}'")
                yield PostgresTransaction(Statements(connection, tenant_id), self._embedder)
            except BaseException as error:
                with suppress(*GONE):  # then the server has rolled back by itself
                    await connection.execute("ROLLBACK")
                if isinstance(error, asyncpg.DeadlockDetectedError):  # it had to give way, and can go again
                    raise Unavailable("Others were changing the same at this moment; try again.") from error
                raise
            await connection.execute("COMMIT")

    async def _has_statistics(self, connection: Connection) -> bool:
        """Whether the server has counted large tables; once it has, it goes on doing so."""
        if not self._measured and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_EVERY
            self._measured = await connection.fetchval(queries()["schema_measured"])
        return self._measured

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection that sees no tenant, for what belongs to the installation."""
        async with explained(self._url), self._pool.acquire() as connection:
            yield connection

    async def tenants(self) -> list[tuple[uuid.UUID, str]]:
        """Ids and slugs of all tenants."""
        async with explained(self._url), self._pool.acquire() as connection:
            rows = await connection.fetch(queries()["tenant_list"])
        return [(row["tenant_id"], row["slug"]) for row in rows]

    async def check_separation(self) -> str:
        """Prove that row-level security binds this connection. Raises Misconfigured when it does not."""
        async with explained(self._url), self._pool.acquire() as connection:
            row = await connection.fetchrow(queries()["separation"])
        if row is None or row["exempt"] or row["unprotected"]:
            raise Misconfigured(
                "Row-level security does not bind the service: it must not run as a superuser or a role with BYPASSRLS."
            )
        return f"row-level security binds the role {row['role']}"

    async def require_embedder(self, name: str, width: int) -> None:
        """Note the embedder of this database's vectors, which are this process's too, or refuse another one.

        Raises Misconfigured when the stored vectors come from another model or have another width.
        """
        mine = {"name": name, "width": width}
        async with explained(self._url), self._pool.acquire() as connection, connection.transaction():
            await connection.execute(queries()["deployment_put"], "embedder", json.dumps(mine))
            stored = json.loads(await connection.fetchval(queries()["deployment_get"], "embedder"))
        if stored != mine:
            raise Misconfigured(
                f"This database holds vectors of the embedder {stored['name']} ({stored['width']} dimensions), but "
                f"NEXUS_EMBEDDER is {name} ({width}): set NEXUS_EMBEDDER={stored['name']}, or bring "
                "the vectors over with nexus reembed."
            )
        self.embeds_with(name, width)

    def embeds_with(self, name: str, width: int) -> None:
        """Whose vectors this process stores and asks with. None are mixed: while the database holds those of another
        embedder, such a process stores none and finds by words alone."""
        self._embedder = json.dumps({"name": name, "width": width})


async def with_vectors(connection: asyncpg.Connection) -> None:
    """Let a connection send vectors as they are: as text one takes longer to write and to read than a short search."""
    schema = await connection.fetchval(queries()["vector_schema"])
    await connection.set_type_codec("vector", schema=schema, encoder=bytes, decoder=bytes, format="binary")


async def _unchanged(_: asyncpg.Connection) -> None:
    """What a connection needs before its next use: nothing, for all that we set is set for one transaction."""


async def describe(url: str) -> str:
    """The server's version and its pgvector's. Raises Unavailable."""
    async with explained(url):
        connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT)
        try:
            version = await connection.fetchval(queries()["server_version"])
            vector = await connection.fetchval(queries()["vector_version"])
        finally:
            connection.terminate()
    if vector is None:
        raise Misconfigured(
            f"The database at {_place(url)} has no pgvector: install the extension vector on the server."
        )
    return f"PostgreSQL {version}, pgvector {vector}"


async def pending_migrations(url: str) -> list[str]:
    """The migrations that this database lacks."""
    async with explained(url):
        connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT)
        try:
            if await connection.fetchval(queries()["schema_exists"]) is None:
                return [step.name for step in migrations()]
            applied = {row["version"] for row in await connection.fetch(queries()["schema_applied"])}
        finally:
            connection.terminate()
    return [step.name for step in migrations() if step.version not in applied]


async def apply_migrations(url: str) -> list[str]:
    """Bring the schema up to date and return the names of the steps taken.

    Each step and its ledger row commit together, under one advisory lock. Raises Misconfigured when an
    applied file was changed or the database is from a newer Nexus; Unavailable when it can't be reached.
    """
    async with explained(url):
        connection = await asyncpg.connect(url, server_settings=dict(SESSION), timeout=CONNECT_TIMEOUT)
    try:
        async with explained(url):
            await connection.execute("SELECT pg_advisory_lock($1)", MIGRATION_LOCK)
            return await _migrate(connection)
    finally:
        connection.terminate()


async def _migrate(connection: asyncpg.Connection) -> list[str]:
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations (version int PRIMARY KEY, name text NOT NULL,"
        " checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    applied = {row["version"]: row for row in await connection.fetch(queries()["schema_applied"])}
    known = {step.version: step for step in migrations()}
    for version, row in applied.items():
        step = known.get(version)
        if step is None:
            raise Misconfigured(
                f"The database has migration {version:04} ({row['name']}), which this version of Nexus does not know: "
                "install the newer version that made it."
            )
        if step.checksum != row["checksum"]:
            raise Misconfigured(
                f"Migration {version:04} ({row['name']}) was changed after it had been applied: restore the file."
            )
    taken = []
    for step in migrations():
        if step.version in applied:
            continue
        async with connection.transaction():
            await connection.execute(step.sql)
            await connection.execute(queries()["schema_record"], step.version, step.name, step.checksum)
        logger.info("migration.applied", version=step.version, name=step.name)
        taken.append(f"{step.version:04}_{step.name}")
    if taken and applied:  # a table that was written anew is read without its heap only when that is known of its pages
        await connection.execute("VACUUM (ANALYZE)")
    return taken


@asynccontextmanager
async def explained(url: str) -> AsyncIterator[None]:
    """Turn a driver's error about the server into one sentence; errors in what we ask stay as they are."""
    try:
        yield
    except NexusError:
        raise
    except (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError) as error:
        raise Misconfigured(f"The database at {_place(url)} refuses: {error}. Check NEXUS_DATABASE_URL.") from error
    except asyncpg.ClientConfigurationError as error:
        raise Misconfigured(
            f"NEXUS_DATABASE_URL is no PostgreSQL address ({error}); for example postgresql://nexus@127.0.0.1/nexus."
        ) from error
    except asyncpg.InsufficientPrivilegeError as error:
        raise Misconfigured(
            f"The database user at {_place(url)} may not do what Nexus needs ({error}): give it CREATEROLE and the "
            "right to create extensions, or create the extension vector and the role nexus_service beforehand."
        ) from error
    except asyncpg.DiskFullError as error:
        raise Unavailable(f"The database at {_place(url)} has no disk space left; nothing was stored.") from error
    except GONE as error:
        if isinstance(error, asyncpg.InterfaceError) and "argument" in str(error):
            raise  # we asked wrongly: no outage, and no use in trying again
        logger.warning("database.unavailable", error=type(error).__name__)
        raise Unavailable(f"The database at {_place(url)} does not answer; try again in a moment.") from error


def _place(url: str) -> str:
    """Where a database is, without its password."""
    parts = urlsplit(url)
    return parts.hostname or parts.query.removeprefix("host=") or "its socket"
