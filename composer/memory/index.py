"""Indexing of messages: each becomes an episode that recall can find, and the statements in it become memories.

Runs after the turn. Word statistics are stored first; vectors follow in batches of their own.
"""

import re
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

import structlog

from composer.errors import NexusError, skip_reason, where_raised
from composer.memory.authorship import may_learn_from
from composer.memory.consolidation import consolidate, merge_paraphrases
from composer.memory.patterns import extract
from composer.memory.quarantine import UNTRUSTED, admitted
from composer.model import Message, Trust, derived_id
from composer.ports.extraction import ExtractedStatement, Extraction
from composer.ports.models import MeteredEmbedder, UsageAccount, WorkKind
from composer.repositories.database import Database, Transaction
from composer.repositories.memories import NewMemory
from composer.repositories.recall import IndexEntry, episode_id_of
from composer.text.passages import passages
from composer.text.terms import terms
from composer.text.work import off_loop
from composer.visibility import AccessTag

logger = structlog.get_logger()

INDEX_BATCH_SIZE: Final = 500  # messages per transaction
EMBED_BATCH_SIZE: Final = 64  # texts per call of the embedder
MAX_EMBEDDED_CHARS: Final = 2_000  # embedding models read a few hundred tokens
MAX_READ_CHARS: Final = 20_000  # of a text to embed, before mentions and white space are taken out of it
_MENTION: Final = re.compile(r"(?<!\w)@[\w.-]+")


@dataclass(frozen=True, slots=True)
class EmbeddedCount:
    """How many passages were embedded. `more`: others may be left, or some that changed meanwhile."""

    items: int = 0
    more: bool = False


def without_mentions(text: str) -> str:
    """A text as it is indexed by words: mentions are removed, since names would outrank the content."""
    return _MENTION.sub(" ", text)


def embedding_text(text: str) -> str:
    """A text as it is embedded: without mentions, on one line, cut to MAX_EMBEDDED_CHARS. A text of nothing but
    mentions stays as it is."""
    beginning = text[:MAX_READ_CHARS]
    plain = " ".join(without_mentions(beginning).split())
    return (plain or beginning.strip())[:MAX_EMBEDDED_CHARS]


async def index_next(
    database: Database,
    tenant_id: uuid.UUID,
    extraction: Extraction = Extraction.PATTERN,
    quarantined: Collection[Trust] = UNTRUSTED,
) -> int:
    """Index the next batch of a tenant's messages. Returns their number; 0 when none are left but those that other
    transactions hold.

    A message that can't be indexed does not stop the others: when a batch fails, its messages are indexed one by one,
    and whichever fails is skipped: marked as indexed, with the reason, and named in the program log. Raises
    NexusError.
    """
    try:
        return await _index_batch(database, tenant_id, extraction, quarantined)
    except NexusError:
        raise
    except Exception as error:
        logger.warning("index.one_by_one", tenant=str(tenant_id), **where_raised(error))
    count = 0
    while count < INDEX_BATCH_SIZE and await _index_one(database, tenant_id, extraction, quarantined):
        count += 1
    return count


async def _index_batch(
    database: Database, tenant_id: uuid.UUID, extraction: Extraction, quarantined: Collection[Trust]
) -> int:
    async with database.transaction(tenant_id) as tx:
        messages = await tx.recall.unindexed_messages(INDEX_BATCH_SIZE)
        if messages:
            await index(tx, messages, extraction, quarantined)
    return len(messages)


async def _index_one(
    database: Database, tenant_id: uuid.UUID, extraction: Extraction, quarantined: Collection[Trust]
) -> int:
    """Index the next message, or mark it as indexed when that fails. Returns 0 when none is left."""
    messages: list[Message] = []
    try:
        async with database.transaction(tenant_id) as tx:
            messages = await tx.recall.unindexed_messages(1)
            if messages:
                await index(tx, messages, extraction, quarantined)
    except NexusError:
        raise
    except Exception as error:
        if not messages:
            raise
        async with database.transaction(tenant_id) as tx:
            await tx.recall.skip(messages[0].id, skip_reason(error))
        logger.error("index.message_skipped", message=str(messages[0].id), **where_raised(error))
    return len(messages)


async def index(
    tx: Transaction, messages: Sequence[Message], extraction: Extraction, quarantined: Collection[Trust]
) -> None:
    """Index messages for word search, and store the statements in them or queue them for the model that extracts. What
    is extracted from messages of the `quarantined` waits for approval.

    The answers of agents are marked as indexed, but never recalled or extracted from.
    """
    from_people = [message for message in messages if not message.by_agent]
    chars = sum(len(m.text) + sum(len(a.text) for a in m.attachments) for m in from_people)
    entries, statements = await off_loop(chars, partial(_read, from_people, extraction))
    if extraction is Extraction.PATTERN:
        admissible = await admitted(tx, statements, quarantined)
        for memory, until in await consolidate(tx, admissible):
            entries += memory_entries(memory, until)
    elif extraction is Extraction.MEM0:
        await tx.extraction_queue.add([message.id for message in from_people if message.text.strip()])
    await tx.recall.index(
        [(episode_id_of(message.id), message.id) for message in from_people],
        entries,
        [message.id for message in messages],
    )


def _read(messages: Sequence[Message], extraction: Extraction) -> tuple[list[IndexEntry], list[NewMemory]]:
    """The index entries of messages, and the statements that patterns find in them."""
    entries = [entry for message in messages for entry in episode_entries(message)]
    if extraction is not Extraction.PATTERN:
        return entries, []
    return entries, [memory for message in messages for memory in extracted_memories(message)]


def extracted_memories(message: Message) -> list[NewMemory]:
    """The statements that patterns find in a person's message, filed in the message's own namespace."""
    if message.user_id is None:
        return []
    tag = AccessTag(message.namespace, message.visibility, message.user_id)
    return [
        NewMemory(
            id=derived_id("memory", str(message.id), str(number)),
            tag=tag,
            agent_id=None,
            kind=statement.kind,
            text=statement.text,
            author=message.author,
            origin="extracted",
            at=message.at,
            sources=(message.id,),
            trust=message.trust,
            waits=statement.waits,
        )
        for number, statement in enumerate(statements_by_pattern(message))
    ]


def statements_by_pattern(message: Message) -> list[ExtractedStatement]:
    """The statements that patterns find in a person's message."""
    if message.user_id is None or message.by_agent or not may_learn_from(message):
        return []
    found = extract(message.text)
    return [ExtractedStatement(each.kind, each.text, (message.id,), waits=each.waits) for each in found]


def episode_entries(message: Message) -> list[IndexEntry]:
    """The index entries of a message's passages. The first has the names of its attachments without a text, too."""
    said, files = message.text, [each.passage for each in message.attachments]
    others = " ".join(each.words for each in message.attachments if not each.passage)
    entry = IndexEntry(
        episode_id_of(message.id), "episode", message.namespace, message.visibility, message.user_id, message.at, {}
    )

    def of_text(start: int, text: str) -> list[str]:
        inside = max(len(said) - start, 0)  # how much of the passage was typed: there alone, "@" begins a mention
        return terms(f"{without_mentions(text[:inside])}{text[inside:]}" + (f"\n{others}" if not start else ""))

    return passage_entries(entry, "\n".join(filter(None, (said, *files))), of_text)


def passage_entries(
    entry: IndexEntry, text: str, terms_of: Callable[[int, str], Sequence[str]] = lambda _, text: terms(text)
) -> list[IndexEntry]:
    """An index entry for each passage of a text. `terms_of` gives the terms of a passage that begins somewhere."""
    return [
        replace(entry, terms=Counter(terms_of(passage.start, passage.of(text))), passage=passage)
        for passage in passages(text)
    ]


def memory_entries(memory: NewMemory, expires_at: datetime | None = None) -> list[IndexEntry]:
    """The index entries of a memory's passages, which recall leaves out from `expires_at` on."""
    tag = memory.tag
    entry = IndexEntry(
        memory.id, "memory", tag.namespace, tag.visibility, tag.user_id, memory.at, {}, expires_at=expires_at
    )
    return passage_entries(entry, memory.text)


async def embed_next(
    database: Database,
    embedder: MeteredEmbedder,
    tenant_id: uuid.UUID,
    namespaces: Collection[str] | None = None,
    most: int | None = None,
) -> EmbeddedCount:
    """Embed the latest of a tenant's items that wait, of some namespaces (None: of all), a batch of them or `most`, and
    merge memories that prove to be paraphrases.

    No connection is held while the embedder works. Raises Unavailable when the embedder does not answer, and
    BudgetUsedUp.
    """
    limit = most or EMBED_BATCH_SIZE
    async with database.statement(tenant_id) as tx:
        waiting = await tx.recall.unembedded_items(limit, namespaces)
    if not waiting:
        return EmbeddedCount()
    account = UsageAccount(tenant_id, WorkKind.EMBEDDING)  # of many conversations, so in nobody's name
    vectors = await embedder.embed([embedding_text(item.text) for item in waiting], account)
    async with database.transaction(tenant_id) as tx:
        statements = await tx.memories.find_extracted([item.id for item in waiting])
        if statements:
            await tx.serialize()  # before any row is changed, as `consolidate` does
        stored = await tx.recall.store_vectors(waiting, vectors)
        await merge_paraphrases(tx, [id for id in statements if (id, 1) in stored], embedder.scale)
    return EmbeddedCount(len(waiting), more=len(waiting) == limit or len(stored) < len(waiting))
