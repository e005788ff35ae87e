"""Off the turn: make what was said findable. Messages become episodes, statements become memories, both
get vectors; decisions are proposed as landmarks."""

import re
import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from composer.layers.semantic import episode_id
from composer.memory.consolidation import keep, merge
from composer.memory.patterns import extract
from composer.model import Message, derived_id
from composer.ports.models import Embedder
from composer.repositories.database import Database, Transaction
from composer.repositories.memories import NewMemory
from composer.repositories.recall import IndexEntry
from composer.text.terms import terms
from composer.visibility import AccessTag

INDEX_BATCH: Final = 500  # messages a transaction
EMBED_BATCH: Final = 64  # texts a call
LONGEST_EMBEDDED: Final = 2_000  # characters; models read a few hundred tokens
_MENTION = re.compile(r"(?<!\w)@[\w.-]+")


def searchable(text: str) -> str:
    """A text as it is embedded and searched for: without mentions, whose names outrank what was said."""
    plain = " ".join(_MENTION.sub(" ", text).split())
    return (plain or text.strip())[:LONGEST_EMBEDDED]


class Extraction(StrEnum):
    """How statements are drawn from what is said: by pattern at once, by a model later, or not at all."""

    PATTERN = "pattern"
    MEM0 = "mem0"
    OFF = "off"


async def index_next(store: Database, tenant_id: uuid.UUID, extraction: Extraction = Extraction.PATTERN) -> int:
    """Index the next messages of a tenant in one transaction; how many there were (0: nothing left)."""
    async with store.transaction(tenant_id) as tx:
        messages = await tx.recall.unindexed_messages(INDEX_BATCH)
        if messages:
            await index(tx, messages, extraction)
    return len(messages)


async def index(tx: Transaction, messages: Sequence[Message], extraction: Extraction = Extraction.PATTERN) -> None:
    """Make messages findable by word, and remember what they state, or queue them for the model that does."""
    said = [message for message in messages if not message.by_agent]
    findable = [as_episode(message) for message in said]
    if extraction is Extraction.PATTERN:
        kept = await keep(tx, [memory for message in said for memory in memories_of(message)])
        findable += [index_entry(memory, until) for memory, until in kept]
    elif extraction is Extraction.MEM0:
        await tx.extraction_queue.add([message.id for message in said if message.text.strip()])
    await tx.recall.index(
        [(episode_id(message), message.id) for message in said], findable, [message.id for message in messages]
    )


def memories_of(message: Message) -> list[NewMemory]:
    """What a message states, filed in the very run that it was said in."""
    if message.user_id is None or message.by_agent:
        return []
    mark = AccessTag(message.namespace, message.visibility, message.user_id)
    return [
        NewMemory(
            derived_id("memory", str(message.id), str(number)),
            mark,
            None,
            statement.kind,
            statement.text,
            message.author,
            "extracted",
            message.at,
            (message.id,),
        )
        for number, statement in enumerate(extract(message.text))
    ]


def as_episode(message: Message) -> IndexEntry:
    """A message as recall finds it, with the text of its attachments."""
    text = "\n".join((searchable_words(message.text), *(f"{a.name} {a.text}" for a in message.attachments)))
    return IndexEntry(
        episode_id(message),
        "episode",
        message.namespace,
        message.visibility,
        message.user_id,
        message.at,
        Counter(terms(text)),
    )


def searchable_words(text: str) -> str:
    """A text for word search: without mentions, but whole."""
    return _MENTION.sub(" ", text)


def index_entry(memory: NewMemory, until: datetime | None = None) -> IndexEntry:
    """A memory as recall finds it, until a time."""
    mark, words = memory.tag, Counter(terms(memory.text))
    return IndexEntry(
        memory.id, "memory", mark.namespace, mark.visibility, mark.user_id, memory.at, words, expires_at=until
    )


async def embed_next(store: Database, embedder: Embedder, tenant_id: uuid.UUID) -> int:
    """Embed the next items of a tenant; how many there were (0: nothing left). Statements that prove near become one.

    No connection is held while the embedder works. Raises Unavailable when it does not answer.
    """
    async with store.transaction(tenant_id, snapshot=True) as tx:
        waiting = await tx.recall.unembedded_items(EMBED_BATCH)
    if not waiting:
        return 0
    vectors = await embedder.embed([searchable(item.text) for item in waiting])
    async with store.transaction(tenant_id) as tx:
        statements = await tx.memories.find_extracted([item.id for item in waiting])
        if statements:
            await tx.memories.lock()  # before any row is: as `keep` does
        stored = await tx.recall.store_vectors(waiting, vectors)
        await merge(tx, [id for id in statements if id in stored])
    return len(waiting)
