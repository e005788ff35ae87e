"""How many transactions of a process wait for a lock of a tenant at once: each of them has a connection meanwhile."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from composer.errors import Unavailable

PATIENCE_SECONDS: Final = 5.0  # for others to have waited long enough, with a connection that they might need
BUSY: Final = "Something else that takes long is being done; try again in a moment."


class Places:
    """Places for those who wait. One tenant may have all but one of them, so that it holds up no other."""

    def __init__(self, most: int) -> None:
        """`most`: of one tenant."""
        self._most = most
        self._all = asyncio.Semaphore(most + 1)
        self._own: dict[uuid.UUID, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def take(self, tenant: uuid.UUID | None) -> AsyncIterator[None]:
        """Wait for a place of a tenant (None: of those without one)."""
        async with self._own.setdefault(tenant or uuid.UUID(int=0), asyncio.Semaphore(self._most)), self._all:
            yield


class LockWaits:
    """Leaves connections to those who wait for no lock, however long one is held (as by an erasure of a year of
    messages). `connections`: how many the process has."""

    def __init__(self, connections: int) -> None:
        self._most = max(1, connections // 3)
        self._waiting: dict[str, Places] = {}
        self.begins = Places(max(1, connections // 5))  # of transactions that begin with waiting

    @asynccontextmanager
    async def place(self, kind: str, tenant: uuid.UUID | None) -> AsyncIterator[None]:
        """A place among those who wait for locks of a kind. Each kind has places of its own: whoever has a lock of one
        may wait for one of another. Raises Unavailable where none becomes free soon."""
        places = self._waiting.setdefault(kind, Places(self._most))
        async with AsyncExitStack() as taken:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await taken.enter_async_context(places.take(tenant))
            except TimeoutError:
                raise Unavailable(BUSY) from None
            yield
