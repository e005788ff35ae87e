"""The recall index in Postgres: search by meaning and by words inside a viewer's scope, and what fills it."""

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import asyncpg
import numpy as np
import structlog

from composer.errors import Misconfigured
from composer.model import Conversation, Item, Message, Visibility
from composer.ports import ALWAYS, Background, Candidate, EmbeddingInput, IndexEntry, Vectors
from composer.stores.compactions import compaction_of
from composer.stores.log import message_of
from composer.stores.statements import Statements, scope, vector_bytes
from composer.visibility import Readable

logger = structlog.get_logger()

REEMBEDDED: Final = (
    "The stored vectors are of another embedder since nexus reembed: "
    "restart this process with NEXUS_EMBEDDER set to that one."
)


class PostgresRecall:
    """composer.ports.Recall."""

    def __init__(self, statements: Statements, embedder: str | None) -> None:
        self._sql = statements
        self._embedder = embedder

    async def search(
        self,
        readable: Readable,
        vector: Vectors | None,
        terms: Sequence[str],
        most: int,
        leave_out: Sequence[uuid.UUID],
        now: datetime,
        since: datetime = ALWAYS,
    ) -> list[Candidate]:
        """Up to `most` candidates by each way and the neighbours of the best, in the order of their ids, with texts."""
        asked = None if vector is None else vector_bytes(vector)
        weighed = None if vector is None else weights(vector)
        rows = await self._sql.fetch(
            "recall", *scope(readable), now, asked, sorted(terms), most, list(leave_out), since, self._embedder, weighed
        )
        if vector is not None and all(row["meaning"] is None for row in rows):
            await self._note_another_embedder()
        return [_found(row) for row in rows]

    async def background(
        self,
        own: Readable,
        conversation: Conversation,
        agent: uuid.UUID,
        before: Message,
        tiers: Mapping[str, int],
        people: Sequence[uuid.UUID],
    ) -> Background:
        """What a turn knows of its conversation before it recalls anything, in one statement."""
        row = await self._sql.row(
            "background",
            *scope(own),
            conversation.id,
            agent,
            conversation.namespace,
            before.at,
            before.seq,
            list(tiers),
            list(tiers.values()),
            list(people),
        )
        settings, links, compactions, summaries = row or ((), (), (), ())
        linked: dict[uuid.UUID, tuple[uuid.UUID, ...]] = {}
        for user, other in links:
            linked[user] = (*linked.get(user, ()), other)
        return Background(
            dict(settings),
            linked,
            compaction_of(compactions[0]) if compactions else None,
            [_summary(summary) for summary in summaries],
        )

    async def _note_another_embedder(self) -> None:
        stored = await self._sql.installation("deployment_get", "embedder")
        if self._embedder is None or stored is None or json.loads(stored) != json.loads(self._embedder):
            logger.warning("recall.by_words_alone", why=REEMBEDDED)

    async def to_index(self, most: int) -> list[Message]:
        """Messages that recall can't find yet, locked."""
        return [message_of(row) for row in await self._sql.fetch("messages_unindexed", most)]

    async def index(
        self, episodes: Sequence[tuple[uuid.UUID, uuid.UUID]], findable: Sequence[IndexEntry], done: Sequence[uuid.UUID]
    ) -> None:
        """Store episodes (id, message), make items findable by words, and mark messages as done."""
        if episodes:
            await self._sql.execute("episodes_insert", [id for id, _ in episodes], [message for _, message in episodes])
        rows = await self._sql.fetch(
            "recall_insert",
            [f.id for f in findable],
            [f.kind for f in findable],
            [f.namespace for f in findable],
            [f.user_id for f in findable],
            [str(f.visibility) for f in findable],
            [None if f.vendors is None else json.dumps(f.vendors) for f in findable],
            [f.at for f in findable],
            [f.expires_at for f in findable],
            [sum(f.terms.values()) for f in findable],
        )
        new = {row["id"] for row in rows}  # what is findable already has its postings
        postings = [(f.id, term, min(count, 32767)) for f in findable if f.id in new for term, count in f.terms.items()]
        await self._sql.execute(
            "terms_insert", [p[0] for p in postings], [p[1] for p in postings], [p[2] for p in postings]
        )
        if done:
            await self._sql.execute("messages_mark_indexed", list(done))

    async def to_embed(self, most: int) -> list[EmbeddingInput]:
        """Items without a vector, with the text to embed."""
        rows = await self._sql.fetch("recall_unembedded", most)
        return [EmbeddingInput(row["id"], row["version"], row["text"]) for row in rows]

    async def embed(self, items: Sequence[EmbeddingInput], vectors: Vectors) -> set[uuid.UUID]:
        """Store vectors, but of items that have changed since. Raises Misconfigured when those that are stored are of
        another embedder by now."""
        if not await self._sql.installation("embedder_held", self._embedder):
            raise Misconfigured(REEMBEDDED)
        ids, versions = [item.id for item in items], [item.version for item in items]
        sent = [vector_bytes(vector) for vector in vectors]
        return {row["id"] for row in await self._sql.fetch("recall_embed", ids, versions, sent)}

    async def backlog(self) -> tuple[int, int]:
        """(messages to index, items to embed)."""
        row = await self._sql.row("backlog")
        return (0, 0) if row is None else (row["unindexed"], row["unembedded"])

    async def forget(self, ids: Sequence[uuid.UUID]) -> None:
        """Take items out of the index."""
        await self._sql.execute("recall_delete", list(ids))


def _summary(row: Sequence[Any]) -> Item:
    id, namespace, visibility, user_id, tier, text, at, messages = row
    return Item(
        "episodic", tier, str(id), text, at, namespace, Visibility(visibility), user_id, messages=tuple(messages)
    )


def weights(vector: Vectors) -> list[asyncpg.BitString]:
    """How much each dimension of a vector of shape (width,) weighs, 0 to 3 (two standard deviations and more): two bit
    strings, the lower bit first."""
    deviation = max(float(np.linalg.norm(vector)) / len(vector) ** 0.5, 1e-30)
    weight = np.minimum(np.rint(np.abs(vector) * (1.5 / deviation)), 3).astype(np.uint8)
    planes = (np.packbits(weight >> bit & 1).tobytes() for bit in range(2))
    return [asyncpg.BitString.frombytes(plane, len(vector)) for plane in planes]


def _found(row: asyncpg.Record) -> Candidate:
    id, kind, namespace, visibility, user_id, vendors, at, meaning, words, text, author, detail, messages, *rest = row
    item = Item(
        "semantic",
        detail if kind == "memory" else kind,
        str(id),
        text or "",
        at,
        namespace,
        Visibility(visibility),
        user_id,
        ("*",) if vendors is None else tuple(vendors),
        author,
        tuple(messages),
    )
    *beside, matched = rest
    before, after = (None if near is None else str(near) for near in beside)
    return Candidate(item, meaning, words, before, after, matched)
