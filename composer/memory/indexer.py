"""Background indexing: store episodes, statements and vectors for new messages, after the turns that they cause."""

import asyncio
import uuid
from collections.abc import Callable, Collection
from enum import Enum, auto
from typing import Final

import structlog
from tenacity import AsyncRetrying, RetryCallState, wait_exponential

from composer.errors import BudgetUsedUp, NexusError, for_operator, where_raised
from composer.memory.forget import forget
from composer.memory.index import INDEX_BATCH_SIZE, EmbeddedCount, embed_next, index_next
from composer.model import Trust
from composer.ports.clock import Clock
from composer.ports.extraction import Extraction
from composer.ports.models import MeteredEmbedder
from composer.repositories.database import Database
from composer.repositories.table_statistics import TableStatistics
from composer.tasks.shares import acting_for
from composer.tasks.signals import InteractivePriority

logger = structlog.get_logger()

EPHEMERAL_BATCH_SIZE: Final = 500  # messages
MAX_EMBED_CALLS: Final = 8  # of one tenant in one round, before the next tenant has its turn
INDEXER_RETRY_SECONDS: Final = 0.5  # after the first failure; doubled with each further one
MAX_BACKOFF_SECONDS: Final = 15.0
MAX_DOUBLINGS: Final = 10  # of the delay; it is cut to MAX_BACKOFF_SECONDS long before


class Left(Enum):
    """What a round leaves to do: nothing; perhaps more; or messages that another transaction holds."""

    NOTHING = auto()
    MORE = auto()
    HELD = auto()


class Indexer:
    """Indexes and embeds new messages in the background, one tenant at a time and never while a turn is answered."""

    def __init__(
        self,
        database: Database,
        embedder: MeteredEmbedder,
        clock: Clock,
        priority: InteractivePriority,
        extraction: Extraction = Extraction.PATTERN,
        *,
        quarantined: Callable[[uuid.UUID], Collection[Trust]],
    ) -> None:
        """`quarantined` says whose statements wait for approval in a tenant."""
        self._database = database
        self._priority = priority
        self._extraction = extraction
        self._quarantined = quarantined
        self._clock = clock
        self._embedder = embedder
        self._due: dict[uuid.UUID, None] = {}  # in the order in which they became due
        self._fresh: set[uuid.UUID] = set()  # tenants of which nothing was done since the start
        self._failures: dict[uuid.UUID, int] = {}  # rounds in a row, of the tenants whose last one failed
        self._waiting: set[uuid.UUID] = set()  # tenants that failed and are not due again yet
        self._held: set[uuid.UUID] = set()  # tenants that are due again soon, for what other transactions hold
        self._wake = asyncio.Event()
        self._statistics = TableStatistics(database)
        self._exclusive = asyncio.Lock()  # `run` and `catch_up` side by side would do the same work twice

    def due(self, tenant: uuid.UUID) -> None:
        """Schedule a tenant that has something to index; after a failure not before its delay has passed."""
        if tenant not in self._waiting:
            self._due[tenant] = None
            self._wake.set()

    async def run(self) -> None:
        """Index every tenant that becomes due, until cancelled. All tenants are due at first: an earlier process may
        have left work.

        An error is logged and the tenant's work retried, with a backoff of its own: others go on meanwhile.
        """
        retrying = AsyncRetrying(
            wait=wait_exponential(multiplier=INDEXER_RETRY_SECONDS, max=MAX_BACKOFF_SECONDS), before_sleep=_log_attempt
        )
        self._due.update(dict.fromkeys(await retrying(self._tenants)))
        self._fresh = set(self._due)
        while True:
            self._wake.clear()  # before the work: what becomes due during it wakes the loop once more
            while self._due:
                await self._index_next_tenant()
            await self._wake.wait()

    async def _tenants(self) -> list[uuid.UUID]:
        return [tenant for tenant, _ in await self._database.tenants()]

    async def _index_next_tenant(self) -> None:
        """Do one round for the tenant that has been due longest.

        If work remains, the tenant is due again, behind the others. If the round fails, or another process holds the
        messages, it is due after a delay.
        """
        tenant = next(iter(self._due))
        del self._due[tenant]
        try:
            if tenant in self._fresh:
                await self._retry_skipped(tenant)
            left = await self._round(tenant, None, embed=True)
        except Exception as error:  # whatever it is, other tenants are indexed
            self._retry_later(tenant, error)
            return
        self._failures.pop(tenant, None)
        if left is Left.MORE:
            self._due[tenant] = None
        elif left is Left.HELD and tenant not in self._held:
            self._held.add(tenant)
            asyncio.get_running_loop().call_later(INDEXER_RETRY_SECONDS, self._look_again, tenant)

    def _look_again(self, tenant: uuid.UUID) -> None:
        self._held.discard(tenant)
        self.due(tenant)

    async def _retry_skipped(self, tenant: uuid.UUID) -> None:
        """Once after a start, which may be of a version that can index what the one before could not."""
        async with self._database.transaction(tenant) as tx:
            await tx.recall.retry_skipped()
        self._fresh.discard(tenant)

    def _retry_later(self, tenant: uuid.UUID, error: Exception) -> None:
        failures = self._failures[tenant] = self._failures.get(tenant, 0) + 1
        _log_failure(error)
        self._waiting.add(tenant)
        delay = min(INDEXER_RETRY_SECONDS * 2 ** min(failures - 1, MAX_DOUBLINGS), MAX_BACKOFF_SECONDS)
        asyncio.get_running_loop().call_later(delay, self._retry, tenant)

    def _retry(self, tenant: uuid.UUID) -> None:
        self._waiting.discard(tenant)
        self.due(tenant)

    async def catch_up(
        self, tenant: uuid.UUID, progress: Callable[[int, int], None] | None = None, *, embed: bool = True
    ) -> None:
        """Index and embed everything that a tenant has waiting.

        `progress` is called after each batch with the numbers of messages indexed and items embedded in that batch.
        Raises Unavailable when the database or the embedder does not answer.
        """
        while (left := await self._round(tenant, progress, embed=embed)) is not Left.NOTHING:
            if left is Left.HELD:
                await asyncio.sleep(INDEXER_RETRY_SECONDS)

    async def _round(self, tenant: uuid.UUID, progress: Callable[[int, int], None] | None, *, embed: bool) -> Left:
        """Erase what was answered; index one batch of a tenant's messages and, when that was the last one, embed some
        of its items.
        """
        with acting_for(tenant, background=True):
            async with self._exclusive:
                return await self._round_alone(tenant, progress, embed=embed)

    async def _round_alone(
        self, tenant: uuid.UUID, progress: Callable[[int, int], None] | None, *, embed: bool
    ) -> Left:
        await self._priority.wait()
        async with self._database.statement(tenant) as tx:
            waiting = await tx.recall.waiting()
        if waiting.answered:
            await self._erase_ephemeral(tenant)  # first: it must not wait for anything that can fail
        if not (waiting.messages or waiting.items):
            return Left.NOTHING
        left = Left.NOTHING
        if waiting.messages:
            count = await index_next(self._database, tenant, self._extraction, self._quarantined(tenant))
            await self._statistics.rows_written(count)
            if progress is not None and count:
                progress(count, 0)
            if count == INDEX_BATCH_SIZE:
                return Left.MORE
            # Whoever holds some may index them, or may not: with these the next round says whether any are left.
            left = Left.MORE if count else Left.HELD
            await self._priority.wait()
        for _ in range(MAX_EMBED_CALLS if embed else 0):
            done = await self._embed_next(tenant)
            if progress is not None and done.items:
                progress(0, done.items)
            if not done.more:
                return left
            if self._due:  # somebody has said something meanwhile: that is indexed first
                return Left.MORE
            await self._priority.wait()
        return Left.MORE if embed else left

    async def _embed_next(self, tenant: uuid.UUID) -> EmbeddedCount:
        """Embed some items. When the budget is used up they wait without a vector, where words find them, until the job
        `embedding` or a new message comes: a retry with a backoff would only be refused again."""
        try:
            return await embed_next(self._database, self._embedder, tenant)
        except BudgetUsedUp:
            return EmbeddedCount()  # the ledger has said so, once

    async def _erase_ephemeral(self, tenant: uuid.UUID) -> None:
        """Erase ephemeral messages whose answer was sent: they were stored for that answer alone."""
        async with self._database.transaction(tenant, "read") as tx:
            if not await tx.messages.answered_ephemeral(1):
                return
        async with self._database.transaction(tenant, "alone") as tx:
            answered = await tx.messages.answered_ephemeral(EPHEMERAL_BATCH_SIZE)
            if answered:
                # The posted answers stay: they belong to their readers.
                await forget(tx, list(answered), [], self._clock.now(), posts_stay=set(answered.values()))


def _log_attempt(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome is not None else None
    if error is not None:
        _log_failure(error)


def _log_failure(error: BaseException) -> None:
    if isinstance(error, NexusError):
        logger.warning("index.retrying", error=for_operator(error))
    else:
        logger.error("index.failed", **where_raised(error))
