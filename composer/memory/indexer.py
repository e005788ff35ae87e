"""The indexer: makes stored messages findable in the background, behind the turns."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Final

import structlog

from composer.errors import NexusError
from composer.memory.forget import forget
from composer.memory.index import Extraction, embed_next, index_next
from composer.ports.clock import Clock
from composer.ports.models import Embedder
from composer.priority import InteractivePriority
from composer.repositories.database import Database

logger = structlog.get_logger()

PASSED_AT_ONCE: Final = 500
EMBEDS_A_ROUND: Final = 8  # calls of the embedder for one tenant, before the next one has its turn
TRY_AGAIN: Final = 0.5  # seconds, doubled up to the next
LONGEST_PAUSE: Final = 15.0


class Indexer:
    """Makes what was said findable, behind the turns; nothing waits for it but who asks to."""

    def __init__(
        self,
        store: Database,
        embedder: Embedder,
        clock: Clock,
        calm: InteractivePriority,
        extraction: Extraction = Extraction.PATTERN,
    ) -> None:
        self._store = store
        self._priority = calm
        self._extraction = extraction
        self._clock = clock
        self._embedder = embedder
        self._due: dict[uuid.UUID, None] = {}  # in the order in which they became due
        self._wake = asyncio.Event()
        self._one = asyncio.Lock()  # of `run` and `catch_up`, one at a time: two would do the same work

    def due(self, tenant: uuid.UUID) -> None:
        """There is something to index in a tenant."""
        self._due[tenant] = None
        self._wake.set()

    async def run(self) -> None:
        """Index whatever becomes due, until cancelled. Starts with what an earlier process left."""
        pause = TRY_AGAIN
        everyone = True
        while True:
            try:
                if everyone:
                    self._due.update(dict.fromkeys(tenant for tenant, _ in await self._store.tenants()))
                    everyone = False
                while self._due:
                    await self._catch_up_next()
                pause = TRY_AGAIN
                self._wake.clear()
                await self._wake.wait()
                continue
            except NexusError as error:
                logger.warning("index.waiting", error=str(error))
            except Exception:
                logger.exception("index.failed")
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _catch_up_next(self) -> None:
        """A round for one tenant that is due; what becomes due meanwhile is due again. One that has more to do, or
        fails, goes behind the others."""
        tenant = next(iter(self._due))
        del self._due[tenant]
        more = True
        try:
            more = await self._round(tenant, None, embed=True)
        finally:
            if more:
                self._due[tenant] = None

    async def catch_up(
        self, tenant: uuid.UUID, progress: Callable[[int, int], None] | None = None, *, embed: bool = True
    ) -> None:
        """Index and embed all that a tenant has; `progress` is told how many were (indexed, embedded) just now.

        Raises Unavailable when the database or the embedder does not answer.
        """
        while await self._round(tenant, progress, embed=embed):
            pass

    async def _round(self, tenant: uuid.UUID, progress: Callable[[int, int], None] | None, *, embed: bool) -> bool:
        """Index what there is of a tenant, or else embed some of it; whether there may be more to do."""
        async with self._one:
            await self._priority.wait()
            if count := await index_next(self._store, tenant, self._extraction):
                if progress is not None:
                    progress(count, 0)
                return True
            await self._erase_passed(tenant)
            for _ in range(EMBEDS_A_ROUND if embed else 0):
                if not (count := await embed_next(self._store, self._embedder, tenant)):
                    return False
                if progress is not None:
                    progress(0, count)
                await self._priority.wait()
            return embed

    async def _erase_passed(self, tenant: uuid.UUID) -> None:
        """Erase what was kept for an answer alone, now that the answer was sent."""
        async with self._store.transaction(tenant) as tx:
            passed = await tx.messages.answered_ephemeral(PASSED_AT_ONCE)
            if passed:
                await forget(tx, passed, [], self._clock.now(), shown=False)  # the answer is theirs to keep
