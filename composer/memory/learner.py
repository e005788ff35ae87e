"""Learn from what people said, in the background: what waits at a source goes to a model in batches, what it finds to
the source's own store.

What was read is taken off the list in the transaction that stores what was found in it, so each message is learnt from
exactly once, whatever fails in between. When the budget of the model is used up, and where there is none, patterns
extract in its place. What is learnt together is of one author, and of what they sent only their own words are read
(composer/memory/authorship.py). A failing batch is retried with a growing delay and half as much in it, then parked
where an admin sees it.
"""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Final, Generic, Protocol, TypeVar

import structlog

from composer.errors import BudgetUsedUp, NexusError, for_operator, skip_reason, where_raised
from composer.memory.authorship import as_said, in_own_words, is_supported, waiting
from composer.memory.index import statements_by_pattern
from composer.model import Message
from composer.ports.clock import EARLIEST, Clock
from composer.ports.extraction import ExtractedStatement, Extractor, MessageBatch
from composer.ports.models import Vectors
from composer.repositories.database import Database, Transaction
from composer.repositories.learning import LearningScope, ReadyRule
from composer.tasks.shares import Places, acting_for
from composer.text.work import off_loop

logger = structlog.get_logger()

QUIET_PERIOD: Final = timedelta(minutes=5)  # without anything new, after which a smaller batch is due
MAX_WAIT: Final = timedelta(hours=4)  # of the oldest, after which a smaller batch is due, quiet or not
CLAIM_DURATION: Final = timedelta(minutes=10)  # after which another attempt may claim the batch
RETRY_DELAY: Final = timedelta(seconds=30)  # after the first failure; doubled with each further one
MAX_DELAY: Final = timedelta(minutes=10)  # of a tenant whose work fails
MAX_ATTEMPTS: Final = 6  # in a row, then the scope is parked
MAX_CONCURRENT: Final = 4  # batches of all tenants
POLL_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class LearningBatch:
    """What one attempt reads: the `ids` of what waits at the source, in its `messages`, all of one author. `owner` is
    the person whose private messages they are; None for public ones."""

    ids: Sequence[uuid.UUID]
    messages: Sequence[Message]
    owner: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement, and the messages that were shown to what found it."""

    statement: ExtractedStatement
    shown: Sequence[Message]


S = TypeVar("S", bound=LearningScope)


class LearningSource(Protocol[S]):
    """Where something waits to be learnt from, and where what was learnt is stored. What is learnt together has one
    scope. `name` begins the events of the program log; a batch of `batch_size` is due at once."""

    name: str
    batch_size: int

    async def due(self, tx: Transaction, rule: ReadyRule) -> list[S]:
        """The scopes that are due, longest waiting first."""
        ...

    async def take(self, tx: Transaction, scope: S, failures: int) -> LearningBatch:
        """The oldest of what waits in a scope: half as much with each failure before, but something."""
        ...

    async def near(self, tx: Transaction, scope: S, vector: Vectors) -> list[tuple[uuid.UUID, str]]:
        """The (id, text) of what the extractor may know of the scope already, nearest to a vector."""
        ...

    async def is_unchanged(self, tx: Transaction, batch: LearningBatch) -> bool:
        """Whether all of a batch still waits, with the same texts; it stays so until the transaction ends."""
        ...

    async def store(self, tx: Transaction, tenant: uuid.UUID, scope: S, found: Sequence[Finding], now: datetime) -> int:
        """Store what was found. Returns how much is new."""
        ...

    async def remove(self, tx: Transaction, ids: Sequence[uuid.UUID], now: datetime) -> None:
        """Take what was read off the list."""
        ...


class Learner(Generic[S]):
    """Takes what waits at one source to the extractor, and what that finds back to the source."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        new_id: Callable[[], uuid.UUID],
        source: LearningSource[S],
        extractor: Extractor | None,
        zone: Callable[[uuid.UUID], tzinfo],
        on_stored: Callable[[uuid.UUID], None],
        places: Places,
    ) -> None:
        """`new_id` names an attempt; `extractor` None: patterns extract; `zone` is a tenant's time zone; `on_stored` is
        called with a tenant that has something new to embed; each batch takes one of `places`."""
        self._database, self._clock, self._new_id = database, clock, new_id
        self._source, self._extractor, self._zone, self._on_stored = source, extractor, zone, on_stored
        self._places = places
        self._unparked: set[uuid.UUID] = set()  # tenants whose parked scopes were let go since the start
        self._failures: dict[uuid.UUID, int] = {}  # rounds in a row, of the tenants whose last one failed
        self._retry_at: dict[uuid.UUID, datetime] = {}

    async def run(self) -> None:
        """Learn from every batch that becomes due, until cancelled. Scopes that were parked are retried at the
        start."""
        while True:
            try:
                await self.learn_all()
            except Exception as error:  # the tenants can't be listed
                self._log_failure(error)
            await asyncio.sleep(POLL_SECONDS)

    async def learn_all(self) -> None:
        """Learn from every batch that is due, of all tenants side by side. A tenant whose work fails is left alone for
        a while; others go on."""
        await asyncio.gather(*(self._learn_of(tenant) for tenant, _ in await self._database.tenants()))

    async def _learn_of(self, tenant: uuid.UUID) -> None:
        if self._clock.now() < self._retry_at.get(tenant, EARLIEST):
            return
        try:
            with acting_for(tenant, background=True):
                await self._learn_all_of(tenant)
        except Exception as error:  # whatever it is, the work of other tenants is done
            self._log_failure(error)
            failures = self._failures[tenant] = self._failures.get(tenant, 0) + 1
            self._retry_at[tenant] = self._clock.now() + min(RETRY_DELAY * 2 ** min(failures, 10), MAX_DELAY)
        else:
            self._failures.pop(tenant, None)
            self._retry_at.pop(tenant, None)

    async def _learn_all_of(self, tenant: uuid.UUID) -> None:
        if tenant not in self._unparked:
            async with self._database.transaction(tenant) as tx:
                await tx.learning.unpark()
            self._unparked.add(tenant)
        while await self.learn_due(tenant):
            pass

    async def learn_due(self, tenant: uuid.UUID) -> int:
        """Learn from one batch of each scope of a tenant that is due, a few at a time; returns how much was read."""
        return sum(await asyncio.gather(*(self._learn(tenant, scope) for scope in await self.due(tenant))))

    async def due(self, tenant: uuid.UUID) -> list[S]:
        """The scopes of a tenant that are next, a few of them."""
        now = self._clock.now()
        rule = ReadyRule(now, self._source.batch_size, now - QUIET_PERIOD, now - MAX_WAIT, MAX_CONCURRENT)
        async with self._database.transaction(tenant, "read") as tx:
            return await self._source.due(tx, rule)

    async def _learn(self, tenant: uuid.UUID, scope: S) -> int:
        """Learn from a batch of a scope, once it has a place: a claim does not last for ever."""
        with acting_for(tenant, scope.user or scope.conversation_id, background=True):
            async with self._places.take():
                return await self._learn_next(tenant, scope)

    async def _learn_next(self, tenant: uuid.UUID, scope: S) -> int:
        claim, now = self._new_id(), self._clock.now()
        async with self._database.transaction(tenant) as tx:
            failures = await tx.learning.claim(scope, claim, now, now + CLAIM_DURATION)
            if failures is None:
                return 0
            batch = await self._source.take(tx, scope, failures)
        try:
            found = await self._find(tenant, scope, batch) if batch.messages else []
            return await self._store(tenant, scope, claim, batch, found)
        except Exception as error:  # of whatever kind: the batch must not be lost, nor hold up others
            await self._record_failure(tenant, scope, claim, batch, error)
            return 0

    async def _find(self, tenant: uuid.UUID, scope: S, batch: LearningBatch) -> list[Finding]:
        """The statements in messages: found by the model or, without one or a budget for it, by patterns."""

        async def near(vector: Vectors) -> list[tuple[uuid.UUID, str]]:
            async with self._database.transaction(tenant, "read") as tx:
                return await self._source.near(tx, scope, vector)

        chars = sum(len(message.text) for message in batch.messages)
        said = await off_loop(chars, lambda: in_own_words(batch.messages))
        if self._extractor is not None and said:
            messages = MessageBatch(tenant, scope.conversation_id, said, self._zone(tenant), batch.owner)
            try:
                found = await self._extractor.extract(messages, near)
                supported = [each for each in found if is_supported(each.text, said)]
                whole = await off_loop(chars, lambda: as_said(waiting(supported, said), said))
                return [Finding(each, said) for each in whole]
            except BudgetUsedUp:
                logger.info(f"{self._source.name}.by_pattern", messages=len(batch.messages))
        return await off_loop(
            chars, lambda: [Finding(s, [message]) for message in batch.messages for s in statements_by_pattern(message)]
        )

    async def _store(
        self, tenant: uuid.UUID, scope: S, claim: uuid.UUID, batch: LearningBatch, found: Sequence[Finding]
    ) -> int:
        """Store what was found and take what was read off the list, in one transaction: an erasure goes before it, or
        finds what is stored here.

        Does neither when something was erased or edited meanwhile: then the rest is read again.
        """
        async with self._database.transaction(tenant) as tx:
            if await tx.learning.hold(scope, claim) is None:
                return 0
            if not await self._source.is_unchanged(tx, batch):
                await tx.learning.release(scope, claim)
                return 0
            now = self._clock.now()
            stored = await self._source.store(tx, tenant, scope, found, now)
            await self._source.remove(tx, batch.ids, now)
            await tx.learning.end(scope, claim)
        if stored:
            self._on_stored(tenant)
        logger.info(f"{self._source.name}.done", read=len(batch.ids), extracted=len(found), stored=stored)
        return len(batch.ids)

    async def _record_failure(
        self, tenant: uuid.UUID, scope: S, claim: uuid.UUID, batch: LearningBatch, error: Exception
    ) -> None:
        """End a failed attempt. After the last one the scope is parked; but what alone raises an error of our own is
        skipped, and the scope goes on with the next."""
        now = self._clock.now()
        known = isinstance(error, NexusError)
        sentence = for_operator(error) if known else f"{type(error).__name__} in extraction."
        async with self._database.transaction(tenant) as tx:
            failures = await tx.learning.hold(scope, claim)
            if failures is None:
                return
            attempts = failures + 1
            if attempts >= MAX_ATTEMPTS and not known and len(batch.ids) == 1:
                await self._source.remove(tx, batch.ids, now)
                await tx.learning.end(scope, claim)
                await tx.recall.skip(batch.ids[0], skip_reason(error))
                logger.error(f"{self._source.name}.skipped", id=str(batch.ids[0]), **where_raised(error))
                return
            parked_at = now if attempts >= MAX_ATTEMPTS else None
            due_at = now + RETRY_DELAY * 2 ** (attempts - 1)
            await tx.learning.release(scope, claim, sentence, due_at, parked_at)
        logger.warning(
            f"{self._source.name}.failed",
            attempts=attempts,
            parked=parked_at is not None,
            **({} if scope.conversation_id is None else {"conversation": str(scope.conversation_id)}),
            **({"error": sentence} if known else where_raised(error)),
        )

    def _log_failure(self, error: Exception) -> None:
        if isinstance(error, NexusError):
            logger.warning(f"{self._source.name}.retrying", error=for_operator(error))
        else:
            logger.error(f"{self._source.name}.failed_unexpectedly", **where_raised(error))
