"""Extraction by a model, behind the turns: a talk's queued messages go to it in batches, and what it states is kept.

A message leaves the queue in the transaction that stores what was found in it. So none is extracted twice, whatever
dies in between, and none never: what fails is tried again later and later, then parked where an admin sees it.
"""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

import structlog

from composer.errors import NexusError
from composer.memory.consolidation import keep
from composer.memory.index import index_entry
from composer.model import Message, Visibility, derived_id
from composer.ports.clock import Clock
from composer.ports.extraction import ExtractedStatement, Extractor
from composer.ports.models import Vectors
from composer.repositories.database import Database
from composer.repositories.extraction_queue import ExtractionScope
from composer.repositories.memories import NewMemory
from composer.visibility import AccessTag

logger = structlog.get_logger()

ENOUGH: Final = 12  # messages that are waited for
MOST: Final = 20  # of one batch
QUIET: Final = timedelta(minutes=5)  # after which fewer will do
SHOWN: Final = 10  # earlier memories of the scope
CLAIMED_FOR: Final = timedelta(minutes=10)
FIRST_PAUSE: Final = timedelta(seconds=30)  # doubled with each failure
MOST_ATTEMPTS: Final = 6
AT_ONCE: Final = 4  # talks
LOOK_EVERY: Final = 15.0  # seconds


class ExtractionWorker:
    """Takes what is queued to the extractor."""

    def __init__(
        self,
        store: Database,
        extractor: Extractor,
        clock: Clock,
        new_id: Callable[[], uuid.UUID],
        found: Callable[[uuid.UUID], None],
    ) -> None:
        """`new_id` names an attempt; `found` is told the tenant in which there is something new to embed."""
        self._store, self._extractor, self._clock = store, extractor, clock
        self._new_id, self._found = new_id, found

    async def run(self) -> None:
        """Extract whatever becomes due, until cancelled. What was parked is tried again first."""
        fresh = True
        while True:
            try:
                for tenant, _ in await self._store.tenants():
                    if fresh:
                        async with self._store.transaction(tenant) as tx:
                            await tx.extraction_queue.unpark()
                    while await self.extract_due(tenant):
                        pass
                fresh = False
            except NexusError as error:
                logger.warning("extraction.waiting", error=str(error))
            except Exception:
                logger.exception("extraction.stuck")
            await asyncio.sleep(LOOK_EVERY)

    async def extract_due(self, tenant: uuid.UUID) -> int:
        """One batch of every talk of a tenant whose turn it is, a few side by side; how many messages are done."""
        now = self._clock.now()
        async with self._store.transaction(tenant, snapshot=True) as tx:
            talks = await tx.extraction_queue.due(now, ENOUGH, now - QUIET, AT_ONCE)
        return sum(await asyncio.gather(*(self._extract(tenant, talk) for talk in talks)))

    async def _extract(self, tenant: uuid.UUID, talk: ExtractionScope) -> int:
        claim, now = self._new_id(), self._clock.now()
        async with self._store.transaction(tenant) as tx:
            messages = await tx.extraction_queue.claim(talk, claim, now, now + CLAIMED_FOR, MOST)
        if messages is None:
            return 0

        async def near(vector: Vectors) -> list[tuple[uuid.UUID, str]]:
            async with self._store.transaction(tenant, snapshot=True) as reading:
                return await reading.memories.find_nearest(talk, _owner(messages), vector, SHOWN)

        try:
            drawn = await self._extractor.extract(messages, near) if messages else []
        except Exception as error:  # whatever it is, the batch must not be lost
            sentence = str(error) if isinstance(error, NexusError) else f"{type(error).__name__} in the extractor."
            await self._failed(tenant, talk, claim, sentence)
            return 0
        return await self._store_drawn(tenant, talk, claim, messages, drawn)

    async def _store_drawn(
        self,
        tenant: uuid.UUID,
        talk: ExtractionScope,
        claim: uuid.UUID,
        messages: Sequence[Message],
        drawn: Sequence[ExtractedStatement],
    ) -> int:
        """Keep what was found and take its messages out of the queue, at once; nothing of either when a message was
        erased or edited meanwhile: then they are read anew."""
        async with self._store.transaction(tenant) as tx:
            if not await tx.extraction_queue.confirm_claim(talk, claim, messages):
                await tx.extraction_queue.release(talk, claim)
                return 0
            made = {memory.id: (memory, one) for one in drawn for memory in [as_memory(one, messages)]}
            kept = await keep(tx, [memory for memory, _ in made.values()])
            for memory, _ in kept:
                await tx.memories.add_sources(memory.id, made[memory.id][1].built_on)
            await tx.recall.index([], [index_entry(memory, until) for memory, until in kept], [])
            await tx.extraction_queue.complete(talk, claim, [message.id for message in messages])
        if kept:
            self._found(tenant)
        logger.info("extraction.done", messages=len(messages), drawn=len(drawn), kept=len(kept))
        return len(messages)

    async def _failed(self, tenant: uuid.UUID, talk: ExtractionScope, claim: uuid.UUID, sentence: str) -> None:
        now = self._clock.now()
        async with self._store.transaction(tenant) as tx:
            attempts = await tx.extraction_queue.attempts(talk)
            parked = now if attempts + 1 >= MOST_ATTEMPTS else None
            await tx.extraction_queue.record_failure(talk, claim, sentence, now + FIRST_PAUSE * 2**attempts, parked)
        logger.warning("extraction.failed", conversation=str(talk.conversation_id), attempts=attempts + 1)


def as_memory(drawn: ExtractedStatement, messages: Sequence[Message]) -> NewMemory:
    """A statement, filed where its messages were said, as the words of who said the first of them."""
    by_id = {message.id: message for message in messages}
    sources = [by_id[id] for id in drawn.sources]
    first = next((message for message in sources if message.user_id is not None), sources[0])
    assert first.user_id is not None, "only what people say is queued"
    ids = sorted(str(message.id) for message in sources)
    return NewMemory(
        derived_id("drawn", *ids, drawn.text),
        AccessTag(first.namespace, first.visibility, first.user_id),
        None,
        drawn.kind,
        drawn.text,
        first.author,
        "extracted",
        max(message.at for message in sources),
        drawn.sources,
    )


def _owner(messages: Sequence[Message]) -> uuid.UUID | None:
    """Whose talk it is, where it is private."""
    private = [message.user_id for message in messages if message.visibility is Visibility.PRIVATE]
    return private[0] if private else None
