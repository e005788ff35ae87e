"""How many transactions of a process wait for a lock of a tenant at once: each of them has a connection meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from composer.errors import Unavailable

PATIENCE_SECONDS: Final = 5.0  # for others to have waited long enough, with a connection that they might need
BUSY: Final = "Something else that takes long is being done; try again in a moment."


class LockWaits:
    """Leaves connections to those who wait for no lock, however long one is held (as by an erasure of a year of
    messages). `connections`: how many the process has."""

    def __init__(self, connections: int) -> None:
        self._most = max(1, connections // 3)
        self._waiting: dict[str, asyncio.Semaphore] = {}
        self.begins = asyncio.Semaphore(max(1, connections // 5))  # of transactions that begin with waiting

    @asynccontextmanager
    async def place(self, kind: str) -> AsyncIterator[None]:
        """A place among those who wait for locks of a kind. Each kind has places of its own: whoever has a lock of one
        may wait for one of another. Raises Unavailable where none becomes free soon."""
        places = self._waiting.setdefault(kind, asyncio.Semaphore(self._most))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await places.acquire()
        except TimeoutError:
            raise Unavailable(BUSY) from None
        try:
            yield
        finally:
            places.release()
