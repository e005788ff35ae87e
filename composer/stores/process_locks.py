"""Process locks: advisory locks on one connection. They show that this process lives, and in which conversations it
answers.

They end with the process, however it ends, so nothing is left to clean up after a crash.
"""

import asyncio
import uuid
from typing import Final

import asyncpg
import structlog

from composer.server_urls import ServerUrl
from composer.stores.postgres import CONNECT_TIMEOUT_SECONDS, SESSION_SETTINGS, translate_postgres_errors

logger = structlog.get_logger()

CONVERSATION_LOCKS: Final = 0x4E58  # first key of two; a process's own lock has one key of 64 bits


class PostgresProcessLocks:
    """The locks of one process (composer.ports.process_locks.ProcessLocks). `number` is its own, 62 random bits."""

    def __init__(self, url: ServerUrl, number: int) -> None:
        self.number = number
        self._url = url
        self._connection: asyncpg.Connection | None = None
        self._mutex = asyncio.Lock()

    async def open(self) -> None:
        """Lock this process's number. Raises Unavailable when the database does not answer."""
        async with self._mutex:
            await self._connected()

    async def close(self) -> None:
        """Release all locks, so that other processes may adopt unfinished work."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def take(self, conversation: uuid.UUID) -> bool:
        """Lock a conversation; False while another process has it."""
        return bool(await self._query("SELECT pg_try_advisory_lock($1, $2)", conversation))

    async def release(self, conversation: uuid.UUID) -> None:
        """Unlock a conversation."""
        await self._query("SELECT pg_advisory_unlock($1, $2)", conversation)

    async def _query(self, statement: str, conversation: uuid.UUID) -> object:
        key = int.from_bytes(conversation.bytes[:4], "big", signed=True)
        async with self._mutex, translate_postgres_errors(self._url):
            try:
                return await (await self._connected()).fetchval(statement, CONVERSATION_LOCKS, key)
            except asyncpg.InternalClientError:  # broken, though is_closed() may deny it
                await self.close()
                raise

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            async with translate_postgres_errors(self._url):
                self._connection = await asyncpg.connect(
                    self._url,
                    server_settings=SESSION_SETTINGS,
                    timeout=CONNECT_TIMEOUT_SECONDS,
                    command_timeout=CONNECT_TIMEOUT_SECONDS,
                )
                await self._connection.execute("SELECT pg_advisory_lock($1)", self.number)
        return self._connection
