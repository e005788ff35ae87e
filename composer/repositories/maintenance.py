"""Maintenance: what has expired."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from composer.ports.database import Statements
from composer.ports.process_locks import PROCESS_NUMBERS, RANDOM_BITS
from composer.repositories.invites import DECLINED_LIFETIME, INVITE_LIFETIME


@dataclass(frozen=True, slots=True)
class TenantBacklog:
    """Messages to index, items to embed, and messages that wait for extraction. Of `parked` conversations extraction
    failed too often; `why` is our own sentence about one of them."""

    unindexed: int
    unembedded: int
    unextracted: int
    parked: int
    why: str

    @property
    def indexing(self) -> tuple[int, int]:
        """How many messages are to be indexed, and items to be embedded."""
        return self.unindexed, self.unembedded


class Maintenance:
    """What the nightly jobs look for and delete."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def backlog(self) -> TenantBacklog:
        """What the tenant's background work has still to do."""
        found = await self._sql.fetch_one_as(TenantBacklog, "backlog")
        assert found is not None  # it counts
        return found

    async def processes(self) -> int:
        """How many processes of Nexus live, on whatever machine: they hold locks of their numbers."""
        found = await self._sql.fetch_value("processes_count", numbers=PROCESS_NUMBERS, random_bits=RANDOM_BITS)
        return int(found or 0)

    async def expired_memories(self, now: datetime, limit: int) -> list[uuid.UUID]:
        """Expired memories that people or tools wrote."""
        return [row["id"] for row in await self._sql.fetch("memories_expired", now=now, limit=limit)]

    async def memories_to_purge(self, now: datetime, days: int, limit: int) -> list[uuid.UUID]:
        """Memories that have been in the trash for as long as their person has set, else for `days`; and entries that
        tools wrote for somebody alone, and that are older than that person keeps such entries."""
        return [row["id"] for row in await self._sql.fetch("memories_to_purge", now=now, days=days, limit=limit)]

    async def messages_before(self, before: datetime, limit: int) -> list[uuid.UUID]:
        """Messages from before a time, for retention."""
        return [row["id"] for row in await self._sql.fetch("messages_before", before=before, limit=limit)]

    async def count_messages_before(self, before: datetime) -> int:
        """How many messages there are from before a time."""
        return int(await self._sql.fetch_value("messages_count_before", before=before) or 0)

    async def delete_expired(
        self,
        now: datetime,
        *,
        keys_before: datetime,
        turns_before: datetime,
        reads_before: datetime,
        exchanges_before: datetime,
    ) -> None:
        """Delete what opens nothing any more, and records that are not needed any more: keys that ended, what tools
        read, and what the gateway noted of turns and exchanges, before a time each."""
        await self._sql.execute(
            "expired_delete",
            now=now,
            keys_before=keys_before,
            invites_before=now - INVITE_LIFETIME,
            declined_before=now - DECLINED_LIFETIME,
            turns_before=turns_before,
            reads_before=reads_before,
            exchanges_before=exchanges_before,
        )

    async def expire_prompts(self, before: datetime, limit: int) -> int:
        """Empty the stored prompts of at most `limit` answers from before a time; returns how many."""
        return len(await self._sql.fetch("prompts_expire", before=before, limit=limit))
