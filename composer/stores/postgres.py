"""PostgreSQL: the connection pool, transactions of one tenant, migrations, and errors of the server."""

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
from composer.ports.database import Bits, Vector
from composer.repositories.audit import AuditPen
from composer.repositories.database import Transaction
from composer.stores.statements import Connection, PostgresStatements
from sql.loader import migrations, queries

logger = structlog.get_logger()

SERVICE_ROLE: Final = "nexus_service"
# Without statistics (right after an import) whole tables would be scanned; every read of a large table has an index.
# Memoizing and JIT only cost time here.
SESSION_SETTINGS: Final = {
    "plan_cache_mode": "force_custom_plan",
    "enable_seqscan": "off",
    "enable_memoize": "off",
    "jit": "off",
    "application_name": "nexus",
}
MIGRATION_LOCK: Final = 0x4E65787573  # "Nexus": one process migrates at a time
CONNECT_TIMEOUT_SECONDS: Final = 5.0
STATEMENT_TIMEOUT_SECONDS: Final = 60.0
CLOSE_TIMEOUT_SECONDS: Final = 10.0  # for connections in use, when the pool is closed

BEGIN_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Planning takes longer than most reads (recall: 1.3 of 2.9 ms), and one plan serves scopes of any size. But a plan that
# was made while the tables were empty uses the wrong index for ever, so plans are cached once there are statistics.
CACHE_PLANS: Final = "SET LOCAL plan_cache_mode = force_generic_plan"
STATISTICS_POLL_SECONDS: Final = 10.0  # until the largest tables have statistics

UNAVAILABLE_ERRORS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the connection broke between two steps of a statement
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.DiskFullError,
)


class PostgresDatabase:
    """A pool of connections (composer.repositories.database.Database) under the service's own role, which row-level
    security binds."""

    def __init__(self, url: str, pool: asyncpg.Pool, pen: AuditPen | None = None) -> None:
        self._url = url
        self._pool = pool
        self._pen = pen
        self._embedder: str | None = None  # as stored with the vectors; None: this process has none
        self._has_statistics = False
        self._next_statistics_check = 0.0  # time.monotonic()

    @classmethod
    async def open(cls, url: str, *, connections: int = 10, pen: AuditPen | None = None) -> "PostgresDatabase":
        """Connect to a migrated database. Without a `pen` nothing can be done that the audit log records.

        Raises Unavailable or Misconfigured.
        """
        with_role = SESSION_SETTINGS | {"role": SERVICE_ROLE}
        async with translate_postgres_errors(url):
            pool = await asyncpg.create_pool(
                url,
                min_size=1,
                max_size=connections,
                server_settings=with_role,
                timeout=CONNECT_TIMEOUT_SECONDS,
                command_timeout=STATEMENT_TIMEOUT_SECONDS,
                max_cached_statement_lifetime=0,
                init=register_codecs,
                reset=_no_reset,
            )
        return cls(url, pool, pen)

    async def close(self) -> None:
        """Close the connections, after a timeout also those in use. Never raises when the server is down already."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                await self._pool.close()
        except UNAVAILABLE_ERRORS:
            self._pool.terminate()

    @asynccontextmanager
    async def transaction(self, tenant_id: uuid.UUID, *, snapshot: bool = False) -> AsyncIterator[Transaction]:
        """A transaction that sees one tenant. `snapshot`: read-only, with all reads as of one moment."""
        async with translate_postgres_errors(self._url), self._pool.acquire() as connection:
            begin = "BEGIN"
            if snapshot:
                begin = (
                    f"{BEGIN_SNAPSHOT}; {CACHE_PLANS}" if await self._statistics_exist(connection) else BEGIN_SNAPSHOT
                )
            try:
                # In one round trip. Row-level security reads the setting, which ends with the transaction.
                await connection.execute(f"{begin}; SET LOCAL nexus.tenant = '{tenant_id}'")
                yield Transaction(PostgresStatements(connection, tenant_id), tenant_id, self._embedder, self._pen)
            except BaseException as error:
                with suppress(*UNAVAILABLE_ERRORS):  # then the server has rolled back itself
                    await connection.execute("ROLLBACK")
                if isinstance(error, asyncpg.DeadlockDetectedError):  # the server ended this one of the two
                    raise Unavailable("Another change of the same data was in progress; try again.") from error
                raise
            await connection.execute("COMMIT")

    async def _statistics_exist(self, connection: Connection) -> bool:
        """Whether the server has statistics of the large tables. Once it has, it keeps them up to date itself."""
        if not self._has_statistics and time.monotonic() >= self._next_statistics_check:
            self._next_statistics_check = time.monotonic() + STATISTICS_POLL_SECONDS
            self._has_statistics = await PostgresStatements(connection).fetch_value("tables_have_statistics")
        return self._has_statistics

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection that sees no tenant."""
        async with translate_postgres_errors(self._url), self._pool.acquire() as connection:
            yield connection

    @asynccontextmanager
    async def installation(self) -> AsyncIterator[PostgresStatements]:
        """Statements that see no tenant, for tables of the installation. Each commits by itself."""
        async with self.connection() as connection:
            yield PostgresStatements(connection)

    async def tenants(self) -> list[tuple[uuid.UUID, str]]:
        """Ids and slugs of all tenants."""
        async with self.installation() as sql:
            rows = await sql.fetch("tenant_list")
        return [(row["tenant_id"], row["slug"]) for row in rows]

    async def check_tenant_isolation(self) -> str:
        """Check that row-level security binds this connection. Raises Misconfigured when it does not."""
        async with self.installation() as sql:
            row = await sql.fetch_one("tenant_isolation")
        if row is None or row["exempt"] or row["unprotected"]:
            raise Misconfigured(
                "Row-level security is not enforced for the database role: use one that is neither a "
                "superuser nor has BYPASSRLS."
            )
        return f"row-level security binds the role {row['role']}"

    async def require_embedder(self, name: str, width: int) -> None:
        """Store vectors of this embedder, and search with them. The first embedder is recorded for the whole database.

        Raises Misconfigured when the stored vectors belong to another model or have another width.
        """
        mine = {"name": name, "width": width}
        async with self.connection() as connection, connection.transaction():
            sql = PostgresStatements(connection)
            await sql.execute("deployment_insert", key="embedder", value=json.dumps(mine))
            stored = json.loads(await sql.fetch_value("deployment_get", key="embedder"))
        if stored != mine:
            raise Misconfigured(
                f"This database holds vectors of the embedder {stored['name']} ({stored['width']} dimensions), but "
                f"NEXUS_EMBEDDER is {name} ({width}): set NEXUS_EMBEDDER={stored['name']}, or replace "
                "the vectors with nexus reembed."
            )
        self.use_embedder(name, width)

    def use_embedder(self, name: str, width: int) -> None:
        """Store vectors of this embedder, and search with them, without checking it. Vectors are never mixed: while the
        database holds those of another one, none are stored and recall searches words only."""
        self._embedder = json.dumps({"name": name, "width": width})


async def register_codecs(connection: asyncpg.Connection) -> None:
    """Send vectors and bit strings in binary: as text, a vector takes longer to write and read than a short search."""
    schema = await connection.fetchval(queries()["vector_schema"].sql)
    await connection.set_type_codec("vector", schema=schema, encoder=_encode_vector, decoder=bytes, format="binary")
    await connection.set_type_codec(
        "varbit", schema="pg_catalog", encoder=_encode_bits, decoder=_decode_bits, format="binary"
    )


def _encode_vector(vector: Vector) -> bytes:
    """pgvector's format: the width, two empty bytes, the numbers."""
    return len(vector.values).to_bytes(2, "big") + b"\0\0" + vector.values.astype(">f4").tobytes()


def _encode_bits(bits: Bits) -> bytes:
    return bits.length.to_bytes(4, "big") + bits.data


def _decode_bits(data: bytes) -> Bits:
    return Bits(data[4:], int.from_bytes(data[:4], "big"))


async def _no_reset(_: asyncpg.Connection) -> None:
    """Leave a returned connection as it is: everything that is set ends with its transaction."""


async def describe(url: str) -> str:
    """The versions of the server and of pgvector. Raises Unavailable, or Misconfigured without pgvector."""
    async with translate_postgres_errors(url):
        connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_SECONDS)
        try:
            version = await connection.fetchval(queries()["server_version"].sql)
            vector = await connection.fetchval(queries()["vector_version"].sql)
        finally:
            connection.terminate()
    if vector is None:
        raise Misconfigured(
            f"The database at {_place(url)} has no pgvector: install the extension vector on the server."
        )
    return f"PostgreSQL {version}, pgvector {vector}"


async def pending_migrations(url: str) -> list[str]:
    """Names of the migrations that are not applied to this database."""
    async with translate_postgres_errors(url):
        connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_SECONDS)
        try:
            if await connection.fetchval(queries()["schema_exists"].sql) is None:
                return [step.name for step in migrations()]
            applied = {row["version"] for row in await connection.fetch(queries()["schema_applied"].sql)}
        finally:
            connection.terminate()
    return [step.name for step in migrations() if step.version not in applied]


async def apply_migrations(url: str) -> list[str]:
    """Apply pending migrations and return their names.

    Each migration and its ledger row commit together, under one advisory lock. Raises Misconfigured when an
    applied file was changed or the database belongs to a newer Nexus, Unavailable when it does not answer.
    """
    async with translate_postgres_errors(url):
        connection = await asyncpg.connect(url, server_settings=dict(SESSION_SETTINGS), timeout=CONNECT_TIMEOUT_SECONDS)
    try:
        async with translate_postgres_errors(url):
            await connection.execute("SELECT pg_advisory_lock($1)", MIGRATION_LOCK)
            return await _migrate(connection)
    finally:
        connection.terminate()


async def _migrate(connection: asyncpg.Connection) -> list[str]:
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations (version int PRIMARY KEY, name text NOT NULL,"
        " checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    applied = {row["version"]: row for row in await connection.fetch(queries()["schema_applied"].sql)}
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
            await connection.execute(queries()["schema_record"].sql, step.version, step.name, step.checksum)
        logger.info("migration.applied", version=step.version, name=step.name)
        taken.append(f"{step.version:04}_{step.name}")
    if taken and applied:  # index-only scans of a rewritten table need its visibility map
        await connection.execute("VACUUM (ANALYZE)")
    return taken


@asynccontextmanager
async def translate_postgres_errors(url: str) -> AsyncIterator[None]:
    """Translate the driver's errors about the server into one sentence. Errors of a statement stay as they are."""
    try:
        yield
    except NexusError:
        raise
    except (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError) as error:
        raise Misconfigured(
            f"The database at {_place(url)} refused the connection: {error}. Check NEXUS_DATABASE_URL."
        ) from error
    except asyncpg.ClientConfigurationError as error:
        raise Misconfigured(
            f"NEXUS_DATABASE_URL is not a PostgreSQL address ({error}); write it like postgresql://nexus@127.0.0.1/nexus."
        ) from error
    except asyncpg.InsufficientPrivilegeError as error:
        raise Misconfigured(
            f"The database user at {_place(url)} lacks a right that Nexus needs ({error}): grant it CREATEROLE and "
            "the right to create extensions, or create the extension vector and the role nexus_service beforehand."
        ) from error
    except asyncpg.DiskFullError as error:
        raise Unavailable(f"The database at {_place(url)} has no disk space left; nothing was stored.") from error
    except UNAVAILABLE_ERRORS as error:
        if isinstance(error, asyncpg.InterfaceError) and "argument" in str(error):
            raise  # a bug of the caller, not an outage
        logger.warning("database.unavailable", error=type(error).__name__)
        raise Unavailable(f"The database at {_place(url)} does not answer; try again in a moment.") from error


def _place(url: str) -> str:
    """The address of a database, without its password."""
    parts = urlsplit(url)
    return parts.hostname or parts.query.removeprefix("host=") or "its socket"
