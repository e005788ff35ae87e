"""What is remembered in rooms and projects, as one viewer may read it: numbers, memories, and days."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.model import Visibility
from composer.ports.database import Statements
from composer.repositories.landmarks import MAX_PROPOSED, PROPOSAL_LIFETIME
from composer.repositories.readable import readable_parameters
from composer.visibility import Readable


@dataclass(frozen=True, slots=True)
class KindCount:
    """How much of a kind holds now in a namespace, and the time of the latest of it. The kinds are fact, decision,
    proposal, memory, and day and week, which are summaries."""

    namespace: str
    kind: str
    count: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class KeptItem:
    """A memory that holds now, as whoever may read it there sees it; or something that was written or changed for a
    team or a project, set, decided, or retired by `author`, or (joined) who has joined a team."""

    id: uuid.UUID
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    vendors: tuple[str, ...]
    kind: str
    text: str
    author: str
    at: datetime


class Remembered:
    """Reads of what rooms and projects remember: each takes a Readable."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def counts(self, readable: Readable, now: datetime) -> list[KindCount]:
        """How much of each kind a viewer may read in each namespace; what there is nothing of is left out."""
        if not readable.all_namespaces:
            return []
        return await self._sql.fetch_as(
            KindCount,
            "remembered_counts",
            **readable_parameters(readable.without_pool()),
            now=now,
            max_proposed=MAX_PROPOSED,
            lifetime=PROPOSAL_LIFETIME,
        )

    async def memories(self, readable: Readable, now: datetime, limit: int) -> list[KeptItem]:
        """The latest memories that a viewer may read, newest first."""
        found = await self._sql.fetch_as(
            KeptItem,
            "remembered_memories",
            **readable_parameters(readable.without_pool()),
            now=now,
            limit=limit,
        )
        return [each for each in found if readable.admits(each)]

    async def changes(self, readable: Readable, since: datetime, now: datetime, limit: int) -> list[KeptItem]:
        """What was lately written for teams and projects, set and decided, that a viewer may read, and who joined
        their teams, newest first."""
        found = await self._sql.fetch_as(
            KeptItem,
            "changes_readable",
            **readable_parameters(readable),
            since=since,
            now=now,
            limit=limit,
        )
        return [each for each in found if readable.admits(each)]

    async def message_days(self, readable: Readable, room: uuid.UUID, starts: Sequence[datetime]) -> list[int]:
        """How many of people's messages a viewer may read of each day in a room and its public threads. `starts`: when
        each day begins, oldest first, and when the last one ends."""
        found = await self._sql.fetch(
            "message_days",
            room_id=room,
            starts=list(starts),
            since=starts[0],
            until=starts[-1],
            **readable_parameters(readable),
        )
        counts = {row["day"]: row["count"] for row in found}
        return [counts.get(number, 0) for number in range(len(starts) - 1)]
