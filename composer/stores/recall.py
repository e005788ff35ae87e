"""The recall index in Postgres: search by meaning and by words inside a viewer's scope, and what fills it."""

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache

import asyncpg

from composer.model import Item, Message, Visibility
from composer.ports import ALWAYS, Findable, Found, Vectors
from composer.stores.log import message_of
from composer.stores.statements import Statements, scope
from composer.visibility import Readable


class PostgresRecall:
    """composer.ports.Recall."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def search(
        self,
        readable: Readable,
        vector: Vectors | None,
        terms: Sequence[str],
        most: int,
        leave_out: Sequence[uuid.UUID],
        now: datetime,
        since: datetime = ALWAYS,
    ) -> list[Found]:
        """Up to `most` candidates by each way and the neighbours of the best, in the order of their ids, with texts."""
        asked = None if vector is None else vector_text(vector)
        rows = await self._sql.fetch(
            "recall", *scope(readable), now, asked, sorted(terms), most, list(leave_out), since
        )
        return [_found(row) for row in rows]

    async def summaries(self, readable: Readable, tiers: Mapping[str, int], at: datetime) -> list[Item]:
        """The latest of each tier in each run at a time, oldest first."""
        rows = await self._sql.fetch("summaries_readable", *scope(readable), list(tiers), list(tiers.values()), at)
        return [
            Item(
                "episodic",
                row["tier"],
                str(row["id"]),
                row["text"],
                row["ends_at"],
                row["run_id"],
                Visibility(row["visibility"]),
                row["user_id"],
                messages=tuple(row["messages"]),
            )
            for row in rows
        ]

    async def to_index(self, most: int) -> list[Message]:
        """Messages that recall can't find yet, locked."""
        return [message_of(row) for row in await self._sql.fetch("messages_unindexed", most)]

    async def index(
        self, episodes: Sequence[tuple[uuid.UUID, uuid.UUID]], findable: Sequence[Findable], done: Sequence[uuid.UUID]
    ) -> None:
        """Store episodes (id, message), make items findable by words, and mark messages as done."""
        await self._sql.execute("episodes_insert", [id for id, _ in episodes], [message for _, message in episodes])
        rows = await self._sql.fetch(
            "recall_insert",
            [f.id for f in findable],
            [f.kind for f in findable],
            [f.run_id for f in findable],
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
        await self._sql.execute("messages_mark_indexed", list(done))

    async def to_embed(self, most: int) -> list[tuple[uuid.UUID, str]]:
        """Items without a vector, with the text to embed."""
        return [(row["id"], row["text"]) for row in await self._sql.fetch("recall_unembedded", most)]

    async def embed(self, ids: Sequence[uuid.UUID], vectors: Vectors) -> None:
        """Store vectors."""
        await self._sql.execute("recall_embed", list(ids), [vector_text(vector) for vector in vectors])

    async def backlog(self) -> tuple[int, int]:
        """(messages to index, items to embed)."""
        row = await self._sql.row("backlog")
        return (0, 0) if row is None else (row["unindexed"], row["unembedded"])

    async def forget(self, ids: Sequence[uuid.UUID]) -> None:
        """Take items out of the index."""
        await self._sql.execute("recall_delete", list(ids))


def vector_text(vector: Vectors) -> str:
    """A vector of shape (width,) as pgvector reads it; nine digits give a float32 back exactly."""
    return f"[{_format(len(vector)) % tuple(vector.tolist())}]"


@cache
def _format(width: int) -> str:
    return ",".join(["%.9g"] * width)


def _found(row: asyncpg.Record) -> Found:
    id, kind, run_id, visibility, user_id, vendors, at, meaning, words, text, author, detail, messages, *rest = row
    item = Item(
        "semantic",
        detail if kind == "memory" else kind,
        str(id),
        text or "",
        at,
        run_id,
        Visibility(visibility),
        user_id,
        ("*",) if vendors is None else tuple(vendors),
        author,
        tuple(messages),
    )
    *beside, matched = rest
    before, after = (None if near is None else str(near) for near in beside)
    return Found(item, meaning, words, before, after, matched)
