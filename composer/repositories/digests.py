"""Digests of rooms: when they are due, and what they and a catch-up are made from."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from composer.model import Message, Visibility
from composer.ports.database import Statements
from composer.repositories.explanations import MessageAddress, address_from_row
from composer.repositories.messages import message_from_row
from composer.repositories.readable import readable_parameters
from composer.visibility import Readable


class DigestPeriod(StrEnum):
    """What a digest is of."""

    DAILY = "daily"
    WEEKLY = "weekly"


@dataclass(frozen=True, slots=True)
class Digest:
    """The digest of a room: posted at an hour (0 to 23) of the tenant's time zone, and next at `due_at`."""

    conversation_id: uuid.UUID
    period: DigestPeriod
    hour: int
    due_at: datetime
    platform: str = ""


@dataclass(frozen=True, slots=True)
class ReadableSummary:
    """A stored summary with its access tag, and the span of time that it covers."""

    id: uuid.UUID
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    starts_at: datetime
    ends_at: datetime
    text: str

    @property
    def vendors(self) -> tuple[str, ...]:
        """Summaries are not restricted by vendor."""
        return ("*",)


class Digests:
    """The digests of rooms, and what one may read of a room since a time."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def set(self, digest: Digest) -> None:
        """Let a digest be posted, instead of the one that the room has."""
        await self._sql.execute(
            "digest_set",
            conversation_id=digest.conversation_id,
            period=str(digest.period),
            hour=digest.hour,
            due_at=digest.due_at,
        )

    async def end(self, room: uuid.UUID) -> None:
        """Let no digest of a room be posted any more."""
        await self._sql.execute("digest_set", conversation_id=room, period=None, hour=None, due_at=None)

    async def get(self, room: uuid.UUID) -> Digest | None:
        """The digest of a room."""
        return await self._sql.fetch_one_as(Digest, "digest_get", conversation_id=room)

    async def take_due(
        self, now: datetime, served: Sequence[str], room: uuid.UUID | None, excluded: Sequence[uuid.UUID]
    ) -> Digest | None:
        """The earliest digest that is due where this process delivers and that no other process holds, except for those
        of some rooms, locked until the transaction ends; of one `room` only, if it is given."""
        return await self._sql.fetch_one_as(
            Digest, "digest_take_due", now=now, served=list(served), excluded_ids=list(excluded), position_id=room
        )

    async def awaits_summaries(
        self, room: uuid.UUID, namespace: str, tiers: Sequence[str], since: datetime, until: datetime
    ) -> bool:
        """Whether these tiers have yet to summarise something of a room within a span of time."""
        return bool(
            await self._sql.fetch_value(
                "summaries_awaited",
                conversation_id=room,
                namespace=namespace,
                tiers=list(tiers),
                since=since,
                until=until,
            )
        )

    async def summaries(
        self, readable: Readable, room: uuid.UUID, tier: str, since: datetime, until: datetime
    ) -> list[ReadableSummary]:
        """The readable summaries of a room, of one tier and within a span of time, oldest first."""
        found = await self._sql.fetch_as(
            ReadableSummary,
            "summaries_readable",
            conversation_id=room,
            tier=tier,
            since=since,
            until=until,
            **readable_parameters(readable),
        )
        return [summary for summary in found if readable.admits(summary)]

    async def messages_since(
        self, readable: Readable, room: uuid.UUID, since: datetime, limit: int, until: datetime | None = None
    ) -> list[tuple[Message, MessageAddress]]:
        """The latest `limit` of people's readable messages in a room and its public threads after a time, and before
        another one (None: there is none), oldest first, each with its place on the platform; without those of people
        who opted out."""
        rows = await self._sql.fetch(
            "messages_since", room_id=room, since=since, until=until, limit=limit, **readable_parameters(readable)
        )
        found = [
            (replace(message_from_row(row), edited_at=row["edited_at"]), address_from_row(row))
            for row in reversed(rows)
        ]
        return [(message, address) for message, address in found if readable.admits(message)]

    async def last_own(self, room: uuid.UUID, namespace: str, users: Sequence[uuid.UUID]) -> datetime | None:
        """When a person, who is all of these users, last wrote in a room or its public threads."""
        at: datetime | None = await self._sql.fetch_value(
            "messages_last_own", room_id=room, namespace=namespace, user_ids=list(users)
        )
        return at
