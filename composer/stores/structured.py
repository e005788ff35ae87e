"""Facts, landmarks and memories in Postgres, with their lineage."""

import uuid
from collections.abc import Sequence
from datetime import datetime

import asyncpg

from composer.model import Visibility
from composer.ports import Fact, Landmark, LandmarkState, NewMemory
from composer.stores.statements import Statements, scope
from composer.visibility import AccessTag, Readable


class PostgresStructured:
    """composer.ports.Structured."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def facts(self, readable: Readable, at: datetime, key: str | None = None) -> list[Fact]:
        """The facts that held at a time."""
        rows = await self._sql.fetch("facts_readable", *scope(readable.without_pool()), key, at)
        return [_fact(row) for row in rows]

    async def history(self, readable: Readable, key: str) -> list[Fact]:
        """Every value a key has had, oldest first."""
        return [_fact(row) for row in await self._sql.fetch("facts_history", *scope(readable.without_pool()), key)]

    async def set_fact(self, id: uuid.UUID, mark: AccessTag, agent: uuid.UUID | None, fact: Fact, origin: str) -> None:
        """Let a value hold from `fact.valid_from`; the one before it ends then."""
        closed = await self._sql.row("fact_close", mark.namespace, str(mark.visibility), fact.key, fact.valid_from, id)
        begins = fact.valid_from if closed is None else max(fact.valid_from, closed["valid_to"])
        await self._sql.execute(
            "fact_insert",
            id,
            mark.namespace,
            mark.user_id,
            agent,
            str(mark.visibility),
            fact.key,
            fact.value,
            fact.author,
            origin,
            begins,
        )

    async def landmarks(self, readable: Readable, at: datetime, *, retired: bool = False) -> list[Landmark]:
        """The decisions that had been made by a time, oldest first; those that are no longer pinned if `retired`."""
        rows = await self._sql.fetch("landmarks_readable", *scope(readable.without_pool()), at, retired)
        return [
            Landmark(
                row["id"],
                row["namespace"],
                Visibility(row["visibility"]),
                row["user_id"],
                row["text"],
                row["author"],
                row["decided_at"],
                LandmarkState(row["state"]),
                row["settled_by"],
                row["replaces"],
                tuple(row["messages"]),
            )
            for row in rows
        ]

    async def add_landmarks(self, landmarks: Sequence[Landmark]) -> None:
        """Pin or propose decisions, with their lineage; what is known stays as it is."""
        rows = await self._sql.fetch(
            "landmarks_insert",
            [mark.id for mark in landmarks],
            [mark.namespace for mark in landmarks],
            [mark.user_id for mark in landmarks],
            [None for _ in landmarks],
            [str(mark.visibility) for mark in landmarks],
            [mark.text for mark in landmarks],
            [mark.author for mark in landmarks],
            [mark.decided_at for mark in landmarks],
            [str(mark.state) for mark in landmarks],
            [mark.replaces for mark in landmarks],
        )
        new = {row["id"] for row in rows}
        links = [("landmark", mark.id, *source) for mark in landmarks if mark.id in new for source in mark.sources]
        if links:
            await self._sql.execute("lineage_insert", *(list(column) for column in zip(*links, strict=True)))

    async def set_landmark_state(self, id: uuid.UUID, state: LandmarkState, by: str, now: datetime) -> bool:
        """Accept or retire a decision; False when it is so already, or was retired."""
        return await self._sql.row("landmark_settle", id, str(state), by, now) is not None

    async def remember(self, memories: Sequence[NewMemory]) -> set[uuid.UUID]:
        """Store memories with their lineage; the ids of those that are new."""
        rows = await self._sql.fetch(
            "memories_insert",
            [m.id for m in memories],
            [m.mark.namespace for m in memories],
            [m.mark.user_id for m in memories],
            [m.agent_id for m in memories],
            [str(m.mark.visibility) for m in memories],
            [m.kind for m in memories],
            [m.key for m in memories],
            [m.text for m in memories],
            [m.author for m in memories],
            [m.origin for m in memories],
            [m.at for m in memories],
            [m.expires_at for m in memories],
        )
        new = {row["id"] for row in rows}
        links = [(m.id, source) for m in memories if m.id in new for source in m.sources]
        await self._sql.execute(
            "lineage_insert",
            ["memory"] * len(links),
            [item for item, _ in links],
            ["message"] * len(links),
            [source for _, source in links],
        )
        return new


def _fact(row: asyncpg.Record) -> Fact:
    return Fact(
        row["id"],
        row["namespace"],
        Visibility(row["visibility"]),
        row["user_id"],
        row["key"],
        row["value"],
        row["author"],
        row["valid_from"],
        row["valid_to"],
        row["subject"] or "",
    )
