"""One database for the tests of a worker, emptied after each test, with the service's connections kept open.

A connection that is new knows no table and has planned no statement. That, and making and dropping a database, took two
thirds of the time of a test that uses the app. So the tests of a worker share one database, unless one of them asks for
its own (`@pytest.mark.own_database`); what a test leaves is deleted, and a database that is not as it was made is
replaced.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import asyncpg

from composer.settings.server_urls import ServerUrl
from composer.stores.database.postgres import CONNECT_TIMEOUT_SECONDS, SERVICE_ROLE, SESSION_SETTINGS
from composer.stores.database.process_locks import KEEPALIVE
from composer.stores.database.schema import prepare
from tests.support.databases import TEMPLATE, database_url, run_sql, service_url

MAX_TESTS: Final = 150  # that share a database: deleted rows stay in its files
MAX_CONNECTIONS: Final = 20  # of the service, of all apps of a test together
# What rows do not show: tables, columns, functions, rights, rules and settings, and what the planner knows of the
# tables. Of each catalog, how many rows and which transaction wrote last: a change writes a row, or leaves fewer.
STRUCTURE: Final = " || ".join(
    f"(SELECT concat(count(*), ' ', min(age(xmin)) - age('100'::xid), ' ', {more}, ',') FROM {catalog} WHERE {those})"
    for catalog, those, more in (
        ("pg_class", "oid >= 16384", "md5(string_agg(concat_ws(' ', oid, reltuples), ',' ORDER BY oid))"),
        ("pg_attribute", "attrelid >= 16384", "''"),
        ("pg_proc", "oid >= 16384", "''"),
        ("pg_trigger", "oid >= 16384", "''"),
        ("pg_constraint", "oid >= 16384", "''"),
        ("pg_policy", "true", "''"),
        ("pg_namespace", "true", "''"),
        ("pg_authid", "true", "''"),
        ("pg_database", "datname = current_database()", "''"),
        ("pg_db_role_setting", "setdatabase IN (0, (SELECT oid FROM pg_database"
         " WHERE datname = current_database()))", "''"),
    )
)  # fmt: skip
END_OTHERS: Final = (
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND backend_type = 'client backend'"
    " AND pid <> pg_backend_pid() AND NOT pid = ANY ($1::int[])"
)
CREATE_POOL: Final = asyncpg.create_pool
CONNECT: Final = asyncpg.connect
# How the process locks connect, and nobody else.
LOCKS: Final = {
    "server_settings": SESSION_SETTINGS | KEEPALIVE,
    "timeout": CONNECT_TIMEOUT_SECONDS,
    "command_timeout": CONNECT_TIMEOUT_SECONDS,
}
_numbers = itertools.count(1)


class KeptDatabase:
    """A clone of the template that several tests use one after the other, and the pool of its connections."""

    def __init__(self, base: str, name: str, admin: asyncpg.Connection, rows: str, empty: tuple[str, ...]) -> None:
        self.url = database_url(base, name)
        self.tests = 0
        self.is_as_made = False
        self._base, self._name, self._admin = base, name, admin
        self._loop = asyncio.get_running_loop()
        self._filled = rows  # a query: the rows of the tables that are not empty in the template
        self._empty = empty  # the other tables
        self._made: tuple[str, str] = ("", "")
        self._pool: asyncpg.Pool | None = None
        self._options: dict[str, Any] = {}
        self._locks: LentConnection | None = None  # of the app that opened last

    @classmethod
    async def make(cls, base: str) -> "KeptDatabase":
        """Clone the template, and prepare the clone as an app does: rights on a database itself are not cloned."""
        name = f"kept{next(_numbers)}"
        await run_sql(base, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY file_copy")
        await prepare(database_url(base, name), None)
        admin = await asyncpg.connect(database_url(base, name), statement_cache_size=500)
        tables = [
            row[0]
            for row in await admin.fetch(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1"
            )
        ]
        filled = [table for table in tables if await admin.fetchval(f"SELECT EXISTS (SELECT FROM {table})")]
        rows = " || ".join(
            f"(SELECT coalesce(md5(string_agg(t::text, ',' ORDER BY t::text)), '') FROM {table} AS t)"
            for table in filled
        )
        made = cls(base, name, admin, f"SELECT {rows}", tuple(table for table in tables if table not in filled))
        made._made = await made._fingerprint()
        made.is_as_made = True
        return made

    async def _fingerprint(self) -> tuple[str, str]:
        return await self._admin.fetchval(f"SELECT {STRUCTURE}"), await self._admin.fetchval(self._filled)

    async def reset(self) -> bool:
        """Delete what a test has left, after ending the connections that it left; False when the database is not as it
        was made, and must not be used again."""
        self.tests += 1
        kept = [pid for pid in map(_idle_pid, getattr(self._pool, "_holders", ())) if pid]
        if self._locks is not None and (free := await self._locks.freed()) is not None:
            kept.append(free.get_server_pid())
        await self._admin.fetch(END_OTHERS, kept)
        has_rows = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in self._empty)
        left = [row[0] for row in await self._admin.fetch(has_rows)]
        if left:
            deleted = ";".join(f"DELETE FROM {table}" for table in left)
            await self._admin.execute(f"BEGIN; SET LOCAL session_replication_role = replica; {deleted}; COMMIT")
        self.is_as_made = self.tests < MAX_TESTS and await self._fingerprint() == self._made
        return self.is_as_made

    async def drop(self) -> None:
        """Close the connections and drop the database."""
        if self._pool is not None:
            self._pool.terminate()
        if self._locks is not None and (free := await self._locks.freed()) is not None:
            free.terminate()
        await self._admin.close()
        await run_sql(self._base, f"DROP DATABASE {self._name} WITH (FORCE)")

    async def lend(self, options: dict[str, Any]) -> "LentPool | None":
        """The kept pool, as an app's own; None for an app that needs another one."""
        options = dict(options)
        limit = options.pop("max_size")
        if asyncio.get_running_loop() is not self._loop:
            return None
        if self._pool is None:
            self._options = options
            self._pool = await CREATE_POOL(
                service_url(self.url), **(options | {"min_size": 0}), max_size=MAX_CONNECTIONS,
                max_inactive_connection_lifetime=0,
            )  # fmt: skip
        return LentPool(self._pool, limit) if options == self._options else None

    async def lend_locks(self, options: dict[str, Any]) -> "LentConnection | None":
        """The kept connection of process locks, as an app's own; None while another app has it."""
        if asyncio.get_running_loop() is not self._loop or (self._locks is not None and not self._locks.is_closed()):
            return None
        free = None if self._locks is None else await self._locks.freed()
        if free is None:
            free = await CONNECT(service_url(self.url), **options)
        self._locks = LentConnection(free)
        return self._locks


def preparing(kept: Callable[[str], KeptDatabase | None]) -> Callable[..., Awaitable[ServerUrl]]:
    """What replaces composer.stores.database.schema.prepare in an app: of the apps of a test, the first finds the kept
    database as it was made, and so migrated. Preparing it again takes longer than all else that an app does to open."""

    async def prepare_once(database_url: ServerUrl, owner_url: ServerUrl | None) -> ServerUrl:
        service = database_url.with_login(SERVICE_ROLE)
        database = kept(service)
        owns = database is not None and str.__str__(database.url) == str.__str__(database_url)
        if database is not None and owns and owner_url is None and database.is_as_made:
            database.is_as_made = False
            return service
        return await prepare(database_url, owner_url)

    return prepare_once


def _idle_pid(holder: Any) -> int:
    """The server's process of a connection that nobody uses; else 0."""
    connection = holder._con
    unused = connection is not None and not connection.is_closed() and holder._in_use is None
    return int(connection.get_server_pid()) if unused else 0


class LentPool:
    """A pool (asyncpg.Pool) whose connections stay open when it is closed."""

    def __init__(self, pool: asyncpg.Pool, limit: int) -> None:
        self._pool, self._free, self._limit = pool, asyncio.Semaphore(limit), limit
        self._used: set[Any] = set()
        self._unused = asyncio.Event()
        self._unused.set()
        self._closed = False

    def get_max_size(self) -> int:
        """How many connections may be in use at once."""
        return self._limit

    @asynccontextmanager
    async def acquire(self, *, timeout: float | None = None) -> AsyncIterator[Any]:  # noqa: ASYNC109  (as asyncpg)
        """A connection, for the time of a block. Raises TimeoutError."""
        if self._closed:
            raise asyncpg.InterfaceError("pool is closed")
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(timeout):
                await stack.enter_async_context(self._free)
            connection = await stack.enter_async_context(self._pool.acquire())
            if self._closed:  # while this waited: its app is gone, and nobody would end what it began
                raise asyncpg.InterfaceError("pool is closed")
            self._used.add(connection)
            self._unused.clear()
            try:
                yield connection
            finally:
                self._used.discard(connection)
                if not self._used:
                    self._unused.set()

    async def close(self) -> None:
        """Wait until no connection is in use; from now on none can be acquired."""
        self._closed = True
        await self._unused.wait()

    def terminate(self) -> None:
        """Cut the connections that are in use."""
        self._closed = True
        for connection in self._used:
            connection.terminate()


class LentConnection:
    """A connection (asyncpg.Connection) of process locks that stays open when it is terminated, and gives up its
    locks."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._release: asyncio.Task[None] | None = None
        self._listeners: list[tuple[str, Callable[..., None]]] = []
        self._termination_listeners: list[Callable[..., None]] = []

    async def execute(self, statement: str, *values: Any) -> Any:
        return await self._own().execute(statement, *values)

    async def fetch(self, statement: str, *values: Any) -> Any:
        return await self._own().fetch(statement, *values)

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None:
        await self._own().add_listener(channel, callback)
        self._listeners.append((channel, callback))

    def add_termination_listener(self, callback: Callable[..., None]) -> None:
        self._own().add_termination_listener(callback)
        self._termination_listeners.append(callback)

    def is_closed(self) -> bool:
        return self._release is not None or self._connection.is_closed()

    def terminate(self) -> None:
        """Give up the locks."""
        if self._release is None:
            for callback in self._termination_listeners:
                self._connection.remove_termination_listener(callback)
            self._release = asyncio.get_running_loop().create_task(self._unlock())

    async def freed(self) -> asyncpg.Connection | None:
        """The connection without locks, for the next app; None when it is closed, as it is if an app still has it."""
        if self._release is None:
            self._connection.terminate()
        else:
            await self._release
        return None if self._connection.is_closed() else self._connection

    def _own(self) -> asyncpg.Connection:
        if self._release is not None:
            raise asyncpg.InterfaceError("connection is closed")
        return self._connection

    async def _unlock(self) -> None:
        try:
            for channel, callback in self._listeners:
                await self._connection.remove_listener(channel, callback)
            await self._connection.execute("SELECT pg_advisory_unlock_all()")
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):  # closed, or a statement is still running
            self._connection.terminate()


def connecting(kept: Callable[[str], KeptDatabase | None]) -> Callable[..., Awaitable[Any]]:
    """What replaces asyncpg.connect: process locks get the connection that is kept for them. Making one takes longer
    than all else that an app does to open."""

    async def connect(*url: str, **options: Any) -> Any:
        database = kept(ServerUrl(*url)) if options == LOCKS else None
        lent = None if database is None else await database.lend_locks(options)
        return lent if lent is not None else await CONNECT(*url, **options)

    return connect


def lending(kept: Callable[[str], KeptDatabase | None]) -> Callable[..., Awaitable[Any]]:
    """What replaces asyncpg.create_pool: it lends the connections of the kept database that has this URL, if any."""

    async def create_pool(url: str, **options: Any) -> Any:
        database = kept(ServerUrl(url))
        lent = None if database is None else await database.lend(options)
        return lent if lent is not None else await CREATE_POOL(url, **options)

    return create_pool
