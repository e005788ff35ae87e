"""That this process is alive, and which conversations it is answering in: advisory locks on one connection.

They go with the process, however it ends, so nothing is left to clean up after a crash.
"""

import asyncio
import uuid
from typing import Final

import asyncpg
import structlog

from composer.stores.postgres import CONNECT_TIMEOUT, SESSION, explained

logger = structlog.get_logger()

CONVERSATION_LOCKS: Final = 0x4E58  # first key of two; a process's own lock has one key of 64 bits


class ProcessLocks:
    """The locks of one process (composer.ports.Locks). `number` is its own, 62 random bits."""

    def __init__(self, url: str, number: int) -> None:
        self.number = number
        self._url = url
        self._connection: asyncpg.Connection | None = None
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Be present. Raises Unavailable when the database does not answer."""
        async with self._turn:
            await self._connected()

    async def close(self) -> None:
        """Be gone: what is unanswered may be adopted."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def take(self, conversation: uuid.UUID) -> bool:
        """Take a conversation for answering; False while another process has it."""
        return bool(await self._ask("SELECT pg_try_advisory_lock($1, $2)", conversation))

    async def release(self, conversation: uuid.UUID) -> None:
        """Let another process answer there."""
        await self._ask("SELECT pg_advisory_unlock($1, $2)", conversation)

    async def _ask(self, statement: str, conversation: uuid.UUID) -> object:
        key = int.from_bytes(conversation.bytes[:4], "big", signed=True)
        async with self._turn, explained(self._url):
            try:
                return await (await self._connected()).fetchval(statement, CONVERSATION_LOCKS, key)
            except asyncpg.InternalClientError:  # it broke, and does not always say of itself that it is closed
                await self.close()
                raise

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            async with explained(self._url):
                self._connection = await asyncpg.connect(
                    self._url, server_settings=SESSION, timeout=CONNECT_TIMEOUT, command_timeout=CONNECT_TIMEOUT
                )
                await self._connection.execute("SELECT pg_advisory_lock($1)", self.number)
        return self._connection
