"""Memories in Postgres as they stand beside each other, and the queue of what a model is to look at."""

import uuid
from collections.abc import Sequence
from datetime import datetime

import asyncpg

from composer.memory.rules import StoredMemory
from composer.model import Message, Visibility
from composer.ports import Scope, SimilarMemory, Successor, SupersededMemory, Vectors
from composer.stores.log import message_of
from composer.stores.statements import Statements, scope, vector_bytes
from composer.visibility import AccessTag, Readable


class PostgresMemories:
    """composer.ports.Memories."""

    def __init__(self, statements: Statements, embedder: str | None) -> None:
        self._sql = statements
        self._embedder = embedder

    async def lock(self) -> None:
        """One at a time judges how a tenant's statements stand, until the transaction ends."""
        await self._sql.execute("memories_lock")

    async def known(self, ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        """Which of these are stored."""
        return {row["id"] for row in await self._sql.fetch("memories_known", list(ids))}

    async def held(self, mark: AccessTag, terms: Sequence[str]) -> list[StoredMemory]:
        """What stands in one scope and shares a term, oldest first."""
        rows = await self._sql.fetch("memories_held", mark.namespace, str(mark.visibility), mark.user_id, list(terms))
        return [_held(row) for row in rows]

    async def restate(self, id: uuid.UUID, sources: Sequence[uuid.UUID], at: datetime, ends: datetime | None) -> None:
        """Note that more messages state a memory."""
        many = len(sources)
        await self._sql.execute("lineage_insert", ["memory"] * many, [id] * many, ["message"] * many, list(sources))
        await self._sql.execute("memories_restated", id, at, ends)

    async def drawn(self, ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """Which of these are statements drawn from talk that stand for themselves, as they were said."""
        return [row["id"] for row in await self._sql.fetch("memories_drawn", list(ids))]

    async def alike(self, id: uuid.UUID, least: float) -> list[SimilarMemory]:
        """A statement with its own, and those of its scope and kind that are at least so near to it."""
        rows = await self._sql.fetch("memories_alike", id, least)
        return [SimilarMemory(_held(row), row["cosine"], row["superseded_by"]) for row in rows]

    async def merge(self, gone: uuid.UUID, stays: uuid.UUID, proposed: uuid.UUID) -> None:
        """Make one statement of two."""
        await self._sql.execute("memories_merge", gone, stays, proposed)

    async def merged(self, ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """The statements that are one with these, in other words."""
        return [row["id"] for row in await self._sql.fetch("memories_merged", list(ids))]

    async def supersede(self, old: Sequence[uuid.UUID], new: uuid.UUID, at: datetime) -> None:
        """Let a memory take the place of older ones from a time on."""
        await self._sql.execute("memories_outdate", list(old), new, at)

    async def remake(self, memories: Sequence[uuid.UUID], without: Sequence[uuid.UUID]) -> None:
        """Read the messages of memories that go again, without those that go themselves."""
        await self._sql.execute("memories_remake", list(memories), list(without))

    async def superseded(
        self, readable: Readable, terms: Sequence[str], most: int, at: datetime
    ) -> list[SupersededMemory]:
        """What held once and was superseded since, latest first."""
        rows = await self._sql.fetch("memories_outdated", *scope(readable), at, list(terms), most)
        return [
            SupersededMemory(
                row["namespace"],
                Visibility(row["visibility"]),
                row["user_id"],
                tuple(row["allowed_vendors"]),
                row["text"],
                row["author"],
                row["created_at"],
                row["valid_to"],
                None
                if row["newer"] is None
                else Successor(
                    row["newer_run_id"],
                    Visibility(row["newer_visibility"]),
                    row["newer_user_id"],
                    tuple(row["newer_vendors"]),
                    row["newer"],
                ),
            )
            for row in rows
        ]

    async def near(
        self, talk: Scope, owner: uuid.UUID | None, vector: Vectors, most: int
    ) -> list[tuple[uuid.UUID, str]]:
        """(id, text) of the memories of a talk's own scope that are nearest to it."""
        rows = await self._sql.fetch(
            "memories_near", talk.namespace, str(talk.visibility), owner, vector_bytes(vector), most, self._embedder
        )
        return [(row["id"], row["text"]) for row in rows]

    async def built_on(self, id: uuid.UUID, memories: Sequence[uuid.UUID]) -> None:
        """Note from which other memories one was made."""
        many = len(memories)
        await self._sql.execute("lineage_insert", ["memory"] * many, [id] * many, ["memory"] * many, list(memories))

    async def queue(self, messages: Sequence[uuid.UUID]) -> None:
        """Let a model look at messages."""
        await self._sql.execute("extraction_queue_put", list(messages))

    async def due(self, now: datetime, enough: int, quiet_since: datetime, most: int) -> list[Scope]:
        """Scopes whose turn it is, longest waiting first."""
        rows = await self._sql.fetch("extraction_due", now, enough, quiet_since, most)
        return [Scope(row["conversation_id"], row["namespace"], Visibility(row["visibility"])) for row in rows]

    async def claim(
        self, talk: Scope, claim: uuid.UUID, now: datetime, until: datetime, most: int
    ) -> list[Message] | None:
        """The oldest messages of a scope's queue, for one attempt; None while another one has them."""
        if await self._sql.row("extraction_claim", *_talk(talk), claim, now, until) is None:
            return None
        return [message_of(row) for row in await self._sql.fetch("extraction_messages", *_talk(talk), most)]

    async def unchanged(self, talk: Scope, claim: uuid.UUID, messages: Sequence[Message]) -> bool:
        """Whether an attempt still has its claim, and its messages still say what they said; they do until the
        transaction ends."""
        if await self._sql.row("extraction_claimed", *_talk(talk), claim) is None:
            return False
        rows = await self._sql.fetch("extraction_unchanged", [m.id for m in messages], [m.text for m in messages])
        return len(rows) == len(messages)

    async def done(self, talk: Scope, claim: uuid.UUID, messages: Sequence[uuid.UUID]) -> None:
        """Take messages out of the queue, with the claim."""
        await self._sql.execute("extraction_done", *_talk(talk), claim, list(messages))

    async def release(self, talk: Scope, claim: uuid.UUID) -> None:
        """Give an attempt up, without a failure."""
        await self._sql.execute("extraction_release", *_talk(talk), claim)

    async def attempts(self, talk: Scope) -> int:
        """How often a scope's queue has failed in a row."""
        return await self._sql.value("extraction_attempts", *_talk(talk)) or 0

    async def failed(
        self, talk: Scope, claim: uuid.UUID, sentence: str, due: datetime, parked: datetime | None
    ) -> None:
        """Try again at a time, or not before an admin says so."""
        await self._sql.execute("extraction_failed", *_talk(talk), claim, sentence, due, parked)

    async def unpark(self) -> int:
        """Let everything that is parked be tried again; how many scopes that are."""
        return len(await self._sql.fetch("extraction_unpark"))

    async def backlog(self) -> tuple[int, int, str | None]:
        """(messages waiting, scopes parked, the sentence of the last one that was)."""
        row = await self._sql.row("extraction_backlog")
        return (0, 0, None) if row is None else (row["waiting"], row["parked"], row["error"])


def _held(row: asyncpg.Record) -> StoredMemory:
    return StoredMemory(
        row["id"], row["kind"], row["text"], row["created_at"], row["stated"], row["valid_to"], tuple(row["also"])
    )


def _talk(talk: Scope) -> tuple[uuid.UUID, str, str]:
    return talk.conversation_id, talk.namespace, str(talk.visibility)
