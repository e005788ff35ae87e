"""PostgreSQL: the connection pool, transactions of one tenant, and errors of the server."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

import asyncpg
import structlog

from composer.errors import Misconfigured, NexusError, Overtaken, Unavailable
from composer.ports.database import Bits, Mode, Vector
from composer.repositories.audit import AuditSigner
from composer.repositories.database import Transaction
from composer.settings.server_urls import OWNER_SETTING, ServerUrl
from composer.stores.database.statements import Connection, PostgresStatements, of_tenant
from composer.tasks.shares import Places
from sql.loader import migrations, queries

logger = structlog.get_logger()

SERVICE_ROLE: Final = "nexus_service"  # the login of the service, or the role that its login is a member of
# Without statistics (right after an import) whole tables would be scanned; every read of a large table has an index.
# Memoizing and JIT only cost time here. Row security is on whatever has been set for the login (ALTER ROLE … SET).
SESSION_SETTINGS: Final = {
    "plan_cache_mode": "auto",
    "enable_seqscan": "off",
    "enable_memoize": "off",
    "jit": "off",
    "application_name": "nexus",
    "row_security": "on",
    "timezone": "UTC",  # of times within JSON
}
CONNECT_TIMEOUT_SECONDS: Final = 5.0
STATEMENT_TIMEOUT_SECONDS: Final = 60.0
LOCK_TIMEOUT_SECONDS: Final = 3  # with a connection in hand, which others may need
LOCK_WAIT_SECONDS: Final = 10.0  # for the lock of a tenant, in between without a connection
PLACE_SECONDS: Final = 20.0  # for a connection
# Of each connection: about as many as there are. One that is dropped is parsed and planned again, which takes longer
# than most of them do.
STATEMENT_CACHE_SIZE: Final = 500
CLOSE_TIMEOUT_SECONDS: Final = 10.0  # for connections in use, when the pool is closed

BEGIN_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Planning takes longer than most statements, and with every row that is stored, the server also runs the checks of its
# foreign keys, each by a plan of its own. So plans are kept: in a snapshot always, since one plan serves scopes of any
# size; elsewhere, if the server expects nothing better of a new one. But a plan that was made while the tables were
# empty uses the wrong index, so no transaction keeps any before there are statistics;
# composer.repositories.table_statistics takes them anew as the tables grow, and each time the server plans anew.
CACHE_PLANS: Final = "SET LOCAL plan_cache_mode = force_generic_plan"
PLAN_ANEW: Final = "SET LOCAL plan_cache_mode = force_custom_plan"
STATISTICS_POLL_SECONDS: Final = 10.0  # until the largest tables have statistics
BUSY: Final = "Another change is still being made here; try again in a moment."
# The server ended one of two that wait for each other; what was read a moment ago was deleted since.
OVERTAKEN_ERRORS = (asyncpg.DeadlockDetectedError, asyncpg.ForeignKeyViolationError)

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
    asyncpg.ReadOnlySQLTransactionError,  # another server takes over, or a hosted one has no disk space left
)


class PostgresDatabase:
    """A pool of connections (composer.repositories.database.Database) of the service's own login, which row-level
    security binds.

    Each connection is somebody's place (composer.tasks.shares). Where the tenant's lock isn't free, a few of each wait
    for it with a connection, the others without one.
    """

    def __init__(
        self, url: ServerUrl, pool: asyncpg.Pool, signer: AuditSigner | None = None, *, connections: int = 10
    ) -> None:
        self._url = url
        self._pool = pool
        self._places = Places(connections, PLACE_SECONDS)
        self._locking = Places(max(1, connections // 2), LOCK_WAIT_SECONDS)
        self._signer = signer
        self._embedder: str | None = None  # as stored with the vectors; None: this process has none
        self._has_statistics = False
        self._next_statistics_check = 0.0  # time.monotonic()

    @classmethod
    async def open(cls, url: str, *, connections: int = 10, signer: AuditSigner | None = None) -> "PostgresDatabase":
        """Connect to a migrated database as the service, by so many connections and one for a task that needs a second
        one. Without a `signer`, what the audit log records can't be done.

        Raises Unavailable, or Misconfigured for the login of a superuser or of the database's owner: what is set, a
        session can set back.
        """
        address = ServerUrl(url)
        async with translate_postgres_errors(address):
            pool = await asyncpg.create_pool(
                address,
                min_size=1,
                max_size=connections + 1,
                server_settings=SESSION_SETTINGS | {"lock_timeout": f"{LOCK_TIMEOUT_SECONDS}s"},
                timeout=CONNECT_TIMEOUT_SECONDS,
                command_timeout=STATEMENT_TIMEOUT_SECONDS,
                statement_cache_size=STATEMENT_CACHE_SIZE,
                max_cached_statement_lifetime=0,
                max_cacheable_statement_size=0,  # by default, one of more than 15 KiB is planned anew each time
                init=_set_up,
                reset=_no_reset,
            )
        return cls(address, pool, signer, connections=connections)

    @property
    def waiting_for_locks(self) -> int:
        """How many wait for a tenant's lock without a connection."""
        return self._locking.waiting

    async def close(self) -> None:
        """Close the connections, after a timeout also those in use. Never raises when the server is down already."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                await self._pool.close()
        except UNAVAILABLE_ERRORS:
            self._pool.terminate()

    @asynccontextmanager
    async def transaction(self, tenant_id: uuid.UUID, mode: Mode = "share") -> AsyncIterator[Transaction]:
        """A transaction that sees one tenant, and holds its lock as the mode says (composer.ports.database.Mode)."""
        async with translate_postgres_errors(self._url), self._begun(tenant_id, mode) as connection:
            try:
                statements = PostgresStatements(connection, tenant_id)
                yield Transaction(statements, tenant_id, self._embedder, self._signer, mode)
            except BaseException as error:
                await _roll_back(connection)
                if isinstance(error, OVERTAKEN_ERRORS):
                    raise Overtaken("Another change of the same data was in progress; try again.") from error
                raise
            await connection.execute("COMMIT")

    @asynccontextmanager
    async def _begun(self, tenant_id: uuid.UUID, mode: Mode) -> AsyncIterator[Connection]:
        """A connection in a transaction that has its tenant's lock. Where others have it for long, the connection is
        given back in between."""
        until = time.monotonic() + LOCK_WAIT_SECONDS
        while True:
            async with AsyncExitStack() as stack:
                if mode == "read":
                    connection = await stack.enter_async_context(self._connection(tenant_id))
                    await self._begin(connection, tenant_id, mode)
                else:
                    async with self._locking.take(tenant_id):
                        connection = await stack.enter_async_context(self._connection(tenant_id))
                        try:
                            await self._begin(connection, tenant_id, mode)
                        except asyncpg.LockNotAvailableError:
                            if time.monotonic() >= until:
                                raise
                            continue
                yield connection
                return

    async def _begin(self, connection: Connection, tenant_id: uuid.UUID, mode: Mode) -> None:
        """Begin a transaction in one round trip. Where that fails, there is none."""
        reads = mode == "read"
        begin = [BEGIN_SNAPSHOT if reads else "BEGIN"]
        try:
            if not await self._statistics_exist(connection):
                begin.append(PLAN_ANEW)
            elif reads:
                begin.append(CACHE_PLANS)
            begin.append(f"SET LOCAL nexus.tenant = '{tenant_id}'")  # row-level security reads it
            if not reads:  # by a statement of its own: the next ones see what was stored while it waited
                begin.append(of_tenant(f"tenant_{mode}", tenant_id))
            await connection.execute("; ".join(begin))
        except BaseException:
            await _roll_back(connection)
            raise

    @asynccontextmanager
    async def _connection(self, tenant_id: uuid.UUID | None = None) -> AsyncIterator[Connection]:
        """A connection, in turns with all others who need one."""
        async with self._places.take(tenant_id), self._pool.acquire(timeout=PLACE_SECONDS) as connection:
            yield connection

    @asynccontextmanager
    async def statement(self, tenant_id: uuid.UUID) -> AsyncIterator[Transaction]:
        """One statement that sets its tenant itself, in one round trip. Any other one sees no tenant."""
        async with translate_postgres_errors(self._url), self._connection(tenant_id) as connection:
            yield Transaction(PostgresStatements(connection, tenant_id), tenant_id, self._embedder, self._signer)

    async def _statistics_exist(self, connection: Connection) -> bool:
        """Whether the server has statistics of the large tables. Once it has, it keeps them up to date itself."""
        if not self._has_statistics and time.monotonic() >= self._next_statistics_check:
            self._next_statistics_check = time.monotonic() + STATISTICS_POLL_SECONDS
            self._has_statistics = await PostgresStatements(connection).fetch_value("tables_have_statistics")
        return self._has_statistics

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection that sees no tenant."""
        async with translate_postgres_errors(self._url), self._connection() as connection:
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

    async def tenants_with_open_work(self) -> list[uuid.UUID]:
        """The tenants that have open turns, or files to be read."""
        async with self.installation() as sql:
            return [row["tenant_id"] for row in await sql.fetch("tenants_with_open_work")]

    async def pending_migrations(self) -> list[str]:
        """Names of the migrations that are not applied."""
        async with self.installation() as sql:
            applied = {row["version"] for row in await sql.fetch("schema_applied")}
        return [step.name for step in migrations() if step.version not in applied]

    async def check_tenant_isolation(self) -> str:
        """Check that row-level security binds this connection. Raises Misconfigured when it does not."""
        async with self.installation() as sql:
            row = await sql.fetch_one("tenant_isolation")
        if row is None or row["exempt"] or row["unprotected"]:
            raise Misconfigured(
                "Row-level security is not enforced for the database role: use one that is neither a "
                "superuser nor has BYPASSRLS."
            )
        return f"row-level security binds the login {row['role']}, which can become no other role"

    async def stored_embedder(self) -> str:
        """The name of the embedder of the stored vectors; "" in a new database."""
        async with self.installation() as sql:
            stored = await sql.fetch_value("deployment_get", key="embedder")
        return "" if stored is None else str(json.loads(stored)["name"])

    async def require_embedder(self, name: str, width: int) -> None:
        """Store vectors of this embedder, and search with them. The first embedder is recorded for the whole database.

        Raises Misconfigured when the stored vectors belong to another model or have another width.
        """
        mine = {"name": name, "width": width}
        async with self.connection() as connection, connection.transaction():
            sql = PostgresStatements(connection)
            value = json.dumps(mine)
            stored = json.loads(await sql.fetch_value("deployment_set", key="embedder", value=value, keep=True))
        if stored != mine:
            raise Misconfigured(
                f"This database holds vectors of the embedder {stored['name']} ({stored['width']} dimensions), but "
                f"NEXUS_EMBEDDER is {name} ({width}): set NEXUS_EMBEDDER to that one again, or replace "
                "the vectors with nexus reembed."
            )
        self.use_embedder(name, width)

    def use_embedder(self, name: str, width: int) -> None:
        """Store vectors of this embedder, and search with them, without checking it. Vectors are never mixed: while the
        database holds those of another one, none are stored and recall searches words only."""
        self._embedder = json.dumps({"name": name, "width": width})


async def _set_up(connection: asyncpg.Connection) -> None:
    """Check whose connection this is, and register its codecs, with one query."""
    found = await connection.fetchrow(queries()["session_check"].sql)
    if found is not None and found["hidden"]:
        raise Misconfigured(
            "The database's login does not find Nexus's tables; its admin has to look at that.",
            operator="The service's login at the database does not find Nexus's tables: its search_path was changed, "
            "or there are none yet. As the owner, run nexus migrate, which takes back what was set for that login.",
        )
    if found is None or found["exempt"]:
        raise Misconfigured(
            "The service's login at the database is a superuser's or the owner's: set NEXUS_DATABASE_URL to a login of "
            "its own, and NEXUS_OWNER_DATABASE_URL to this one."
        )
    await register_codecs(connection, found["schema"])


async def register_codecs(connection: asyncpg.Connection, schema: str) -> None:
    """Send vectors and bit strings in binary: as text, a vector takes longer to write and read than a short search.
    `schema` is the one of pgvector's types."""
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


async def _roll_back(connection: Connection) -> None:
    with suppress(*UNAVAILABLE_ERRORS):  # then the server has rolled back itself, or it has not begun
        await connection.execute("ROLLBACK")


async def _no_reset(_: asyncpg.Connection) -> None:
    """Leave a returned connection as it is: everything that is set ends with its transaction."""


@asynccontextmanager
async def translate_postgres_errors(url: ServerUrl) -> AsyncIterator[None]:
    """Translate the driver's errors about the server into one sentence. Errors of a statement stay as they are."""
    try:
        yield
    except NexusError:
        raise
    except (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError) as error:
        again = (
            f"; if it is right, run nexus migrate with {OWNER_SETTING}: it gives the service's login that password "
            "again"
        )
        is_login = isinstance(error, asyncpg.InvalidAuthorizationSpecificationError)
        hint = again if is_login and url.setting != OWNER_SETTING else ""
        raise Misconfigured(
            "The database refuses Nexus; its admin has to look at that.",
            operator=f"The database at {url.place} refused the connection: {error}. Check {url.setting}{hint}.",
        ) from error
    except asyncpg.ClientConfigurationError as error:  # its text may quote the URL
        raise Misconfigured(f"{url.setting} has a parameter that is wrong; docs/settings.md has examples.") from error
    except asyncpg.InsufficientPrivilegeError as error:
        remedy = "As the owner, run nexus migrate. It" if url.setting != OWNER_SETTING else "The database's owner"
        raise Misconfigured(
            "The database lacks a right that Nexus needs; its admin has to look at that.",
            operator=f"The database user at {url.place} lacks a right that Nexus needs ({str(error).splitlines()[0]}). "
            f"{remedy} needs CREATEROLE and the right to create the extension vector; or let a superuser do it "
            "beforehand (CREATE EXTENSION vector, for the restore test in template1).",
        ) from error
    except asyncpg.LockNotAvailableError as error:
        raise Unavailable(BUSY) from error
    except asyncpg.DiskFullError as error:
        raise Unavailable(
            "The database has no disk space left; try again in a moment.",
            operator=f"The database at {url.place} has no disk space left; nothing was stored.",
        ) from error
    except UNAVAILABLE_ERRORS as error:
        if isinstance(error, asyncpg.InterfaceError) and "argument" in str(error):
            raise  # a bug of the caller, not an outage
        logger.warning("database.unavailable", error=type(error).__name__)
        raise Unavailable(
            "The database does not answer; try again in a moment.",
            operator=f"The database at {url.place} does not answer; try again in a moment.",
        ) from error
