"""Upkeep: settings of tenants, the jobs' ledger, what the jobs look through."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


class TenantSettings(Protocol):
    """What the admins of a tenant have set. Nothing that was said."""

    async def all(self) -> dict[str, str]:
        """Every setting that was changed, as JSON text by its key."""
        ...

    async def put(self, key: str, value: str, now: datetime) -> None:
        """Set one, to JSON text."""
        ...

    async def reset(self, key: str) -> None:
        """Let what is configured hold again."""
        ...


class Upkeep(Protocol):
    """What has had its time."""

    async def expired(self, now: datetime, most: int) -> list[uuid.UUID]:
        """Memories that have run out."""
        ...

    async def trashed(self, before: datetime, most: int) -> list[uuid.UUID]:
        """Memories that were put into the trash before a moment."""
        ...

    async def retained(self, before: datetime, most: int) -> list[uuid.UUID]:
        """Messages from before a moment."""
        ...

    async def drop_codes(self, now: datetime) -> None:
        """Forget codes that nobody entered in time."""
        ...

    async def drop_commands(self, before: datetime) -> None:
        """Forget which commands were run before a moment."""
        ...

    async def roll_up(self, until: datetime) -> None:
        """Add up what was used, by day, agent and model."""
        ...


@dataclass(frozen=True, slots=True)
class JobRun:
    """What is known of one run of a job; `slot` is the moment that it stands for."""

    name: str
    slot: datetime
    state: str
    attempts: int
    started_at: datetime
    ended_at: datetime | None
    done: int
    failed: int
    said: str


class Ledger(Protocol):
    """What the schedule has done. It holds figures, and nothing that anybody said."""

    async def begin(self, name: str, slot: datetime, now: datetime) -> bool:
        """A run begins; False when this slot is done."""
        ...

    async def end(
        self, name: str, slot: datetime, state: str, now: datetime, done: int, failed: int, said: str
    ) -> None:
        """A run has ended."""
        ...

    async def latest(self) -> list[JobRun]:
        """The last run of each job."""
        ...

    async def last_done(self, now: datetime) -> dict[str, datetime]:
        """The last slot up to now of each job that is done."""
        ...

    async def prune(self, before: datetime) -> None:
        """Forget runs of long ago."""
        ...
