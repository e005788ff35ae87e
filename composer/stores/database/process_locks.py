"""Process locks: advisory locks on one connection. They show that this process lives, and what it works on.

They end with the connection, and so with the process, however it ends: nothing is left to clean up after a crash. The
same connection hears what other processes say to all (NOTIFY).
"""

import asyncio
import uuid
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final, TypeVar

import asyncpg

from composer.settings.server_urls import ServerUrl
from composer.stores.database.postgres import CONNECT_TIMEOUT_SECONDS, SESSION_SETTINGS, translate_postgres_errors
from sql.loader import queries

CHANNEL: Final = "turns"
# The server notices after eleven seconds that a machine is gone, and releases its locks: later than the process itself
# notices that it can't reach the server (`check`, every three seconds), and stops what it works on.
KEEPALIVE: Final = {"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3"}
T = TypeVar("T")


class PostgresProcessLocks:
    """The locks of one process (composer.ports.process_locks.ProcessLocks). `number` is its own, 62 random bits."""

    def __init__(self, url: ServerUrl, number: int) -> None:
        self.number = number
        self._url = url
        self._connection: asyncpg.Connection | None = None
        self._mutex = asyncio.Lock()
        self._held: dict[uuid.UUID, int] = {}
        self._taken = 0  # locks, ever
        self._on_notice: Callable[[str], None] = lambda _: None
        self._on_lost: Callable[[], None] = lambda: None

    async def open(
        self, on_notice: Callable[[str], None] = lambda _: None, on_lost: Callable[[], None] = lambda: None
    ) -> None:
        """Lock this process's number. `on_notice` is called with what processes say to all, this one too; `on_lost`
        when every lock was lost, since their connection broke. Raises Unavailable when the database does not answer."""
        self._on_notice, self._on_lost = on_notice, on_lost
        async with self._mutex:
            await self._connected()

    async def close(self) -> None:
        """Release all locks, so that other processes take over unfinished work."""
        self._on_lost = lambda: None
        self._end(self._connection)

    async def check(self) -> None:
        """See whether the connection lasts, and open another one where it does not. Raises Unavailable."""
        await self._alone(self._run("process_locks_take", ids=[]))

    async def take(self, ids: Collection[uuid.UUID], *, reconnect: bool = True) -> Mapping[uuid.UUID, int]:
        """Lock those that no other process has; returns the numbers of the locks that this one has."""
        return await self._alone(self._take(ids, reconnect))

    async def release(self, ids: Collection[uuid.UUID]) -> None:
        """Unlock these."""
        await self._alone(self._release(ids))

    def held(self, id: uuid.UUID) -> int | None:
        """The number of a lock; None where it is not held."""
        return self._held.get(id)

    async def _take(self, ids: Collection[uuid.UUID], reconnect: bool) -> Mapping[uuid.UUID, int]:
        missing = [id for id in dict.fromkeys(ids) if id not in self._held]
        if missing and (reconnect or self._is_connected()):
            for row in await self._run("process_locks_take", ids=missing):
                self._taken += 1
                self._held[row["id"]] = self._taken
        return {id: self._held[id] for id in ids if id in self._held}

    async def _release(self, ids: Collection[uuid.UUID]) -> None:
        held = [id for id in dict.fromkeys(ids) if self._held.pop(id, None) is not None]
        if held and self._is_connected():
            await self._run("process_locks_release", ids=held)

    async def _alone(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which no other work runs beside. It goes on where its caller is cancelled: what the
        server did would not be known otherwise."""

        async def run() -> T:
            async with self._mutex:
                return await work

        return await asyncio.shield(asyncio.create_task(run()))

    async def _run(self, name: str, **values: object) -> list[asyncpg.Record]:
        """Run a query on the connection. Where that fails, the connection is ended, and its locks with it: what the
        server made of it is not known."""
        async with translate_postgres_errors(self._url):
            connection, query = await self._connected(), queries()[name]
            try:
                return await connection.fetch(query.sql, *query.bind(values))
            except BaseException:
                self._end(connection)
                raise

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is not None and self._is_connected():
            return self._connection
        self._end(self._connection)
        async with translate_postgres_errors(self._url):
            made: asyncpg.Connection = await asyncpg.connect(
                self._url,
                server_settings=SESSION_SETTINGS | KEEPALIVE,
                timeout=CONNECT_TIMEOUT_SECONDS,
                command_timeout=CONNECT_TIMEOUT_SECONDS,
            )
            try:
                query = queries()["process_locks_live"]
                await made.execute(query.sql, *query.bind({"number": self.number}))
                await made.add_listener(CHANNEL, lambda *heard: self._on_notice(str(heard[-1])))
            except BaseException:
                made.terminate()
                raise
            made.add_termination_listener(lambda _: self._end(made))
            self._connection = made
        return made

    def _is_connected(self) -> bool:
        return self._connection is not None and not self._connection.is_closed()

    def _end(self, connection: asyncpg.Connection | None) -> None:
        """End a connection, if it is the present one: its locks are lost."""
        if connection is None or connection is not self._connection:
            return
        self._connection = None
        self._held.clear()
        connection.terminate()
        self._on_lost()
