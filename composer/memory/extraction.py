"""Extraction of statements by a model, in the background: a conversation's queued messages go to it in batches.

A message leaves the queue in the transaction that stores what was found in it, so each is extracted exactly once,
whatever fails in between. When the budget for extraction is used up, patterns extract in the model's place. A failing
batch is retried with a growing delay and half its messages, then parked where an admin sees it.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Final

import structlog

from composer.errors import BudgetUsedUp, NexusError, for_operator, skip_reason, where_raised
from composer.memory.consolidation import consolidate
from composer.memory.index import extracted_memories, memory_entry
from composer.memory.quarantine import admitted
from composer.model import Message, Trust, Visibility, derived_id
from composer.ports.clock import EARLIEST, Clock
from composer.ports.extraction import ExtractedStatement, Extractor, MessageBatch
from composer.ports.models import Tokenizer, Vectors
from composer.repositories.database import Database
from composer.repositories.extraction_queue import ExtractionScope
from composer.repositories.memories import NewMemory
from composer.visibility import AccessTag

logger = structlog.get_logger()

MAX_BATCH_SIZE: Final = 60  # messages; so many are due at once
QUIET_PERIOD: Final = timedelta(minutes=5)  # without a message, after which a smaller batch is due
MAX_WAIT: Final = timedelta(hours=1)  # of the oldest message, after which a smaller batch is due, quiet or not
LINE_TOKENS: Final = 20  # around a message in the prompt: its number, day, time and speaker
MAX_KNOWN_MEMORIES: Final = 10  # of the same scope, in the model's prompt
CLAIM_DURATION: Final = timedelta(minutes=10)  # after which another attempt may claim the batch
RETRY_DELAY: Final = timedelta(seconds=30)  # after the first failure; doubled with each further one
MAX_DELAY: Final = timedelta(minutes=10)  # of a tenant whose work fails
MAX_ATTEMPTS: Final = 6  # in a row, then the scope is parked
MAX_CONCURRENT: Final = 4  # batches of one tenant
POLL_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class BatchRules:
    """How messages are put into batches: at most `tokens` tokens of messages, as `tokenizer` counts them, but at least
    one message. `zone` is a tenant's time zone, for their days."""

    tokens: int
    tokenizer: Tokenizer
    zone: Callable[[uuid.UUID], tzinfo]

    def cut(self, messages: Sequence[Message], halvings: int) -> list[Message]:
        """The messages that fit into a batch which was halved so often, the first ones of those that are trusted alike.

        The trusted and the untrusted are never in one batch: what one says must not colour what the other is taken to
        have said.
        """
        left, batch = self.tokens >> halvings, list[Message]()
        for message in (each for each in messages if each.trust is messages[0].trust):
            left -= self.tokenizer.count(message.text) + LINE_TOKENS
            if batch and left < 0:
                break
            batch.append(message)
        return batch


@dataclass(frozen=True, slots=True)
class _FoundMemory:
    """A memory that was found in messages, and the memories that it was built on."""

    memory: NewMemory
    built_on: tuple[uuid.UUID, ...] = ()


class ExtractionWorker:
    """Takes queued messages to the extractor and stores the statements that it finds."""

    def __init__(
        self,
        database: Database,
        extractor: Extractor,
        clock: Clock,
        new_id: Callable[[], uuid.UUID],
        on_stored: Callable[[uuid.UUID], None],
        quarantined: Callable[[uuid.UUID], Collection[Trust]],
        rules: BatchRules,
    ) -> None:
        """`new_id` names an attempt; `on_stored` is called with a tenant that has new memories to embed; `quarantined`
        says whose statements wait for approval in a tenant."""
        self._database, self._extractor, self._clock = database, extractor, clock
        self._new_id, self._on_stored, self._quarantined = new_id, on_stored, quarantined
        self._rules = rules
        self._unparked: set[uuid.UUID] = set()  # tenants whose parked scopes were let go since the start
        self._failures: dict[uuid.UUID, int] = {}  # rounds in a row, of the tenants whose last one failed
        self._retry_at: dict[uuid.UUID, datetime] = {}

    async def run(self) -> None:
        """Extract every batch that becomes due, until cancelled. Scopes that were parked are retried at the start."""
        while True:
            try:
                await self.extract_all()
            except Exception as error:  # the tenants can't be listed
                _log_failure(error)
            await asyncio.sleep(POLL_SECONDS)

    async def extract_all(self) -> None:
        """Extract every batch that is due. A tenant whose work fails is left alone for a while; others go on."""
        for tenant, _ in await self._database.tenants():
            if self._clock.now() < self._retry_at.get(tenant, EARLIEST):
                continue
            try:
                await self._extract_all_of(tenant)
            except Exception as error:  # whatever it is, the work of other tenants is done
                _log_failure(error)
                failures = self._failures[tenant] = self._failures.get(tenant, 0) + 1
                self._retry_at[tenant] = self._clock.now() + min(RETRY_DELAY * 2 ** min(failures, 10), MAX_DELAY)
            else:
                self._failures.pop(tenant, None)
                self._retry_at.pop(tenant, None)

    async def _extract_all_of(self, tenant: uuid.UUID) -> None:
        if tenant not in self._unparked:
            async with self._database.transaction(tenant) as tx:
                await tx.extraction_queue.unpark()
            self._unparked.add(tenant)
        while await self.extract_due(tenant):
            pass

    async def extract_due(self, tenant: uuid.UUID) -> int:
        """Extract one batch of each scope of a tenant that is due, a few at a time; returns the number of messages."""
        now = self._clock.now()
        async with self._database.transaction(tenant, "read") as tx:
            scopes = await tx.extraction_queue.due(
                now, MAX_BATCH_SIZE, now - QUIET_PERIOD, now - MAX_WAIT, MAX_CONCURRENT
            )
        return sum(await asyncio.gather(*(self._extract(tenant, scope) for scope in scopes)))

    async def _extract(self, tenant: uuid.UUID, scope: ExtractionScope) -> int:
        claim, now = self._new_id(), self._clock.now()
        async with self._database.transaction(tenant) as tx:
            failures = await tx.extraction_queue.attempts(scope)
            size = max(1, MAX_BATCH_SIZE >> failures)  # halved with each failure
            queued = await tx.extraction_queue.claim(scope, claim, now, now + CLAIM_DURATION, size)
        if queued is None:
            return 0
        messages = await asyncio.to_thread(self._rules.cut, queued, failures)

        async def nearest_memories(vector: Vectors) -> list[tuple[uuid.UUID, str]]:
            async with self._database.transaction(tenant, "read") as reading:
                return await reading.memories.find_nearest(scope, _owner(messages), vector, MAX_KNOWN_MEMORIES)

        try:
            zone = self._rules.zone(tenant)
            batch = MessageBatch(tenant, scope.conversation_id, messages, zone, _owner(messages))
            found = await self._find(batch, nearest_memories) if messages else {}
            return await self._store_found(tenant, scope, claim, messages, found)
        except Exception as error:  # of whatever kind: the batch must not be lost, nor hold up others
            await self._record_failure(tenant, scope, claim, messages, error)
            return 0

    async def _find(
        self, batch: MessageBatch, near: Callable[[Vectors], Awaitable[list[tuple[uuid.UUID, str]]]]
    ) -> dict[uuid.UUID, _FoundMemory]:
        """The memories in messages: found by the model or, when its budget is used up, by patterns."""
        try:
            extracted = await self._extractor.extract(batch, near)
        except BudgetUsedUp:
            logger.info("extraction.by_pattern", conversation=str(batch.conversation_id), messages=len(batch.messages))
            by_pattern = await asyncio.to_thread(
                lambda: [m for each in batch.messages for m in extracted_memories(each)]
            )
            return {memory.id: _FoundMemory(memory) for memory in by_pattern}
        memories = [_FoundMemory(extracted_memory(each, batch.messages), each.built_on) for each in extracted]
        return {found.memory.id: found for found in memories}

    async def _store_found(
        self,
        tenant: uuid.UUID,
        scope: ExtractionScope,
        claim: uuid.UUID,
        messages: Sequence[Message],
        found: Mapping[uuid.UUID, _FoundMemory],
    ) -> int:
        """Store memories and take their messages out of the queue, in one transaction.

        Does neither when a message was erased or edited meanwhile: then the batch is extracted again.
        """
        async with self._database.transaction(tenant) as tx:
            if not await tx.extraction_queue.confirm_claim(scope, claim, messages):
                await tx.extraction_queue.release(scope, claim)
                return 0
            memories = [each.memory for each in found.values()]
            stored = await consolidate(tx, await admitted(tx, memories, self._quarantined(tenant)))
            for memory, _ in stored:
                await tx.memories.add_sources(memory.id, found[memory.id].built_on)
            await tx.recall.index([], [memory_entry(memory, until) for memory, until in stored], [])
            await tx.extraction_queue.complete(scope, claim, [message.id for message in messages])
        if stored:
            self._on_stored(tenant)
        logger.info("extraction.done", messages=len(messages), extracted=len(found), stored=len(stored))
        return len(messages)

    async def _record_failure(
        self,
        tenant: uuid.UUID,
        scope: ExtractionScope,
        claim: uuid.UUID,
        messages: Sequence[Message],
        error: Exception,
    ) -> None:
        """End a failed attempt. After the last one the scope is parked; but a single message that raises an error of
        our own is skipped, and the scope goes on with the next."""
        now = self._clock.now()
        known = isinstance(error, NexusError)
        sentence = for_operator(error) if known else f"{type(error).__name__} in extraction."
        async with self._database.transaction(tenant) as tx:
            attempts = await tx.extraction_queue.attempts(scope)
            if attempts + 1 >= MAX_ATTEMPTS and not known and len(messages) == 1:
                await tx.extraction_queue.complete(scope, claim, [messages[0].id])
                await tx.recall.skip(messages[0].id, skip_reason(error))
                logger.error("extraction.message_skipped", message=str(messages[0].id), **where_raised(error))
                return
            parked_at = now if attempts + 1 >= MAX_ATTEMPTS else None
            await tx.extraction_queue.record_failure(scope, claim, sentence, now + RETRY_DELAY * 2**attempts, parked_at)
        logger.warning(
            "extraction.failed",
            conversation=str(scope.conversation_id),
            attempts=attempts + 1,
            parked=parked_at is not None,
            **({"error": sentence} if known else where_raised(error)),
        )


def _log_failure(error: Exception) -> None:
    if isinstance(error, NexusError):
        logger.warning("extraction.retrying", error=for_operator(error))
    else:
        logger.error("extraction.failed_unexpectedly", **where_raised(error))


def extracted_memory(statement: ExtractedStatement, messages: Sequence[Message]) -> NewMemory:
    """A statement as a memory in the scope of its messages; its author is that of the first one by a person.

    Which messages state it, the model says. It derives from all that the model was shown: forgetting trusts no model.
    """
    by_id = {message.id: message for message in messages}
    sources = [by_id[id] for id in statement.sources]
    first = next((message for message in sources if message.user_id is not None), sources[0])
    assert first.user_id is not None, "only messages by people are queued"
    ids = sorted(str(message.id) for message in sources)
    return NewMemory(
        id=derived_id("drawn", *ids, statement.text),
        tag=AccessTag(first.namespace, first.visibility, first.user_id),
        agent_id=None,
        kind=statement.kind,
        text=statement.text,
        author=first.author,
        origin="extracted",
        at=max(message.at for message in sources),
        sources=statement.sources,
        shown=tuple(message.id for message in messages),
        trust=first.trust,
    )


def _owner(messages: Sequence[Message]) -> uuid.UUID | None:
    """The person whose private messages these are; None for public ones."""
    return next((message.user_id for message in messages if message.visibility is Visibility.PRIVATE), None)
