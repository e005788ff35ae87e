"""Facts, landmarks and memories in Postgres, with their lineage."""

import uuid
from collections.abc import Sequence
from datetime import datetime

import asyncpg

from composer.model import Visibility
from composer.ports import Fact, Landmark, NewMemory
from composer.stores.statements import Statements, scope
from composer.visibility import Mark, Readable


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

    async def set_fact(self, id: uuid.UUID, mark: Mark, agent: uuid.UUID | None, fact: Fact, origin: str) -> None:
        """Let a value hold from `fact.valid_from`; the one before it ends then."""
        closed = await self._sql.row("fact_close", mark.run_id, str(mark.visibility), fact.key, fact.valid_from, id)
        begins = fact.valid_from if closed is None else max(fact.valid_from, closed["valid_to"])
        await self._sql.execute(
            "fact_insert",
            id,
            mark.run_id,
            mark.user_id,
            agent,
            str(mark.visibility),
            fact.key,
            fact.value,
            fact.author,
            origin,
            begins,
        )

    async def landmarks(self, readable: Readable, at: datetime) -> list[Landmark]:
        """The decisions that had been made by a time and stand, oldest first."""
        rows = await self._sql.fetch("landmarks_readable", *scope(readable.without_pool()), at)
        return [
            Landmark(
                row["id"],
                row["run_id"],
                Visibility(row["visibility"]),
                row["user_id"],
                row["text"],
                row["author"],
                row["decided_at"],
            )
            for row in rows
        ]

    async def add_landmark(self, landmark: Landmark, agent: uuid.UUID | None) -> None:
        """Pin a decision."""
        await self._sql.execute(
            "landmark_insert",
            landmark.id,
            landmark.run_id,
            landmark.user_id,
            agent,
            str(landmark.visibility),
            landmark.text,
            landmark.author,
            landmark.decided_at,
        )

    async def remember(self, memories: Sequence[NewMemory]) -> set[uuid.UUID]:
        """Store memories with their lineage; the ids of those that are new."""
        rows = await self._sql.fetch(
            "memories_insert",
            [m.id for m in memories],
            [m.mark.run_id for m in memories],
            [m.mark.user_id for m in memories],
            [m.agent_id for m in memories],
            [str(m.mark.visibility) for m in memories],
            [m.kind for m in memories],
            [m.key for m in memories],
            [m.text for m in memories],
            [m.author for m in memories],
            [m.origin for m in memories],
            [m.at for m in memories],
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
        row["run_id"],
        Visibility(row["visibility"]),
        row["user_id"],
        row["key"],
        row["value"],
        row["author"],
        row["valid_from"],
        row["valid_to"],
    )
