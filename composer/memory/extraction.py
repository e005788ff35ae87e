"""What is learnt from conversations: their queued messages, and the memories that are found in them."""

import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer.memory.consolidation import consolidate
from composer.memory.index import memory_entries
from composer.memory.learner import Finding, LearningBatch
from composer.memory.quarantine import admitted
from composer.model import Message, Trust, Visibility, derived_id
from composer.ports.extraction import ExtractedStatement
from composer.ports.models import Tokenizer, Vectors
from composer.repositories.database import Transaction
from composer.repositories.extraction_queue import ExtractionScope
from composer.repositories.learning import ReadyRule
from composer.repositories.memories import NewMemory
from composer.text.work import in_thread
from composer.visibility import AccessTag

MAX_BATCH_SIZE: Final = 60  # messages; so many are due at once
LINE_TOKENS: Final = 20  # around a message in the prompt: its number, day, time and speaker
MAX_KNOWN_MEMORIES: Final = 10  # of the same scope, in the model's prompt


@dataclass(frozen=True, slots=True)
class BatchRules:
    """How messages are put into batches: at most `tokens` tokens of messages, as `tokenizer` counts them, but at least
    one message."""

    tokens: int
    tokenizer: Tokenizer

    def cut(self, messages: Sequence[Message], halvings: int) -> list[Message]:
        """The messages that fit into a batch which was halved so often, the first ones of those that are trusted alike:
        of an author who was a guest before they became a member.
        """
        left, batch = self.tokens >> halvings, list[Message]()
        for message in (each for each in messages if each.trust is messages[0].trust):
            left -= self.tokenizer.count(message.text) + LINE_TOKENS
            if batch and left < 0:
                break
            batch.append(message)
        return batch


class ConversationSource:
    """The queued messages of conversations, and the memories of their scopes. `quarantined` says whose statements wait
    for approval in a tenant."""

    name = "extraction"
    batch_size = MAX_BATCH_SIZE

    def __init__(self, quarantined: Callable[[uuid.UUID], Collection[Trust]], rules: BatchRules) -> None:
        self._quarantined, self._rules = quarantined, rules

    async def due(self, tx: Transaction, rule: ReadyRule) -> list[ExtractionScope]:
        """The scopes whose messages are due."""
        return await tx.extraction_queue.due(rule)

    async def take(self, tx: Transaction, scope: ExtractionScope, failures: int) -> LearningBatch:
        """The oldest messages of a scope, as many as fit; nothing is read of somebody who has opted out since."""
        queued = await tx.extraction_queue.messages(scope, max(1, self.batch_size >> failures))
        if await tx.people.has_opted_out((scope.user,)):
            return LearningBatch([message.id for message in queued], [])
        messages = await in_thread(self._rules.cut, queued, failures)
        return LearningBatch([message.id for message in messages], messages, _owner(messages))

    async def near(self, tx: Transaction, scope: ExtractionScope, vector: Vectors) -> list[tuple[uuid.UUID, str]]:
        """The nearest memories of the same scope: of the author alone, as nobody else's may say what this one said."""
        return await tx.memories.find_nearest(scope, vector, MAX_KNOWN_MEMORIES)

    async def is_unchanged(self, tx: Transaction, batch: LearningBatch) -> bool:
        """Whether none of the messages was erased or edited."""
        return await tx.extraction_queue.are_unchanged(batch.messages)

    async def store(
        self, tx: Transaction, tenant: uuid.UUID, scope: ExtractionScope, found: Sequence[Finding], now: datetime
    ) -> int:
        """Store memories of the scope, unless its person has opted out; those of the quarantined wait for approval,
        and those that stand below the first line of a message for their author."""
        if found and await tx.people.has_opted_out((scope.user,)):
            return 0
        memories = dict[uuid.UUID, NewMemory]()
        built_on = dict[uuid.UUID, tuple[uuid.UUID, ...]]()
        for each in found:
            memory = extracted_memory(each.statement, each.shown)
            memories[memory.id], built_on[memory.id] = memory, each.statement.built_on
        admissible = await admitted(tx, list(memories.values()), self._quarantined(tenant))
        stored = await consolidate(tx, admissible)
        for memory, _ in stored:
            await tx.memories.add_sources(memory.id, built_on[memory.id])
        await tx.recall.index([], [entry for memory, until in stored for entry in memory_entries(memory, until)], [])
        return len(stored)

    async def remove(self, tx: Transaction, ids: Sequence[uuid.UUID], now: datetime) -> None:
        """Take messages off the queue."""
        await tx.extraction_queue.remove(ids)


def extracted_memory(statement: ExtractedStatement, messages: Sequence[Message]) -> NewMemory:
    """A statement as a memory in the scope and in the name of the author of all of the messages.

    Which of them state it, the model says. It derives from all that the model was shown: forgetting trusts no model.
    """
    by_id = {message.id: message for message in messages}
    sources = [by_id[id] for id in statement.sources]
    first = sources[0]
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
        waits=statement.waits,
    )


def _owner(messages: Sequence[Message]) -> uuid.UUID | None:
    """The person whose private messages these are; None for public ones."""
    return next((message.user_id for message in messages if message.visibility is Visibility.PRIVATE), None)
