"""The rooms that a person is in, and what is remembered there, for that person on a page of theirs.

It shows what everybody in a room may read there, and nothing that was said elsewhere.
"""

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Final

from composer import visibility
from composer.entries.namesakes import Labels, told_apart
from composer.errors import NotFound
from composer.model import Message, RecordingPolicy, Trust
from composer.people.readers import WhoReads, readers_of_room
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.digests import ReadableSummary
from composer.repositories.remembered import KeptItem, KindCount
from composer.text.dates.local_days import start_of_day
from composer.turn.explanation import uploaders_of
from composer.visibility import EntryAccess, JoinedRoom, Readable

UNKNOWN_ROOM: Final = "There is no such room of yours: you are not in it, or it is not there."
MAX_DAY_MESSAGES: Final = 200
MAX_PEOPLE: Final = 50  # of a page
_INSTANT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class RoomOfPerson:
    """A room that the person is in. `project` is the slug of its project (None: it is in none), `pooled` whether that
    recalls what is said here. `counts`: how much it remembers, by kind (composer.repositories.remembered.KindCount).
    `managed`: as of composer.visibility.JoinedRoom.
    `last_at`: the time of the latest of that but summaries."""

    id: uuid.UUID
    name: str
    namespace: str
    private: bool
    platform: str
    recording: RecordingPolicy
    project_id: uuid.UUID | None
    project: str | None
    isolated: bool
    pooled: bool
    counts: Mapping[str, int]
    last_at: datetime | None
    managed: bool

    @property
    def readers(self) -> Sequence[WhoReads]:
        """Who can be answered from what is said there."""
        return readers_of_room(
            self.name, private=self.private, project=self.project, isolated=self.isolated, pooled=self.pooled
        )


@dataclass(frozen=True, slots=True)
class RoomDay:
    """A day in a room: how many messages of people are stored of it, and its summary, if there is one."""

    day: date
    messages: int
    summary: str | None


@dataclass(frozen=True, slots=True)
class RoomWeek:
    """A week in a room, from its Monday on, with its days (those of one month), and its summary, if there is one."""

    monday: date
    days: Sequence[RoomDay]
    summary: str | None


@dataclass(frozen=True, slots=True)
class PersonInRoom:
    """Somebody who is in a room, with one of their accounts (`id`), their name and what they are called there."""

    id: uuid.UUID
    name: str
    called: str
    admin: bool
    own: bool


@dataclass(frozen=True, slots=True)
class RoomPeople:
    """A page of who is in a room, how many there are (0 past the last page), and the next page, if there is one."""

    people: Sequence[PersonInRoom]
    total: int
    next: int | None


async def rooms_of(tx: Transaction, access: EntryAccess, presence: Presence, now: datetime) -> list[RoomOfPerson]:
    """The rooms that the person is in, by name. `presence`: in which private rooms their platforms say they are."""
    joined, trust = await _joined(tx, access, presence)
    return await _described(tx, access, joined, trust, now)


async def joined_rooms(tx: Transaction, access: EntryAccess, presence: Presence) -> Sequence[JoinedRoom]:
    """The same without what they remember."""
    return (await _joined(tx, access, presence))[0]


async def room_of(
    tx: Transaction, access: EntryAccess, id: uuid.UUID, presence: Presence, now: datetime
) -> tuple[RoomOfPerson, Readable]:
    """One of them, and what may be read there. Raises NotFound for any other, as for one that does not exist."""
    joined, trust = await _joined(tx, access, presence)
    found = [room for room in joined if room.room_id == id]
    readable = visibility.readable_rooms(access, found, trust)
    described = await _described(tx, access, found, trust, now)
    if not described or not readable.all_namespaces:
        raise NotFound(UNKNOWN_ROOM)
    return described[0], readable


async def _joined(tx: Transaction, access: EntryAccess, presence: Presence) -> tuple[Sequence[JoinedRoom], Trust]:
    trust = await tx.people.least_trust(access.users)
    joined = await tx.conversations.rooms_joined(access.users, presence)
    return sorted(visibility.rooms_of_person(access, joined, trust), key=lambda room: room.name.casefold()), trust


async def _described(
    tx: Transaction, access: EntryAccess, rooms: Sequence[JoinedRoom], trust: Trust, now: datetime
) -> list[RoomOfPerson]:
    counts = by_namespace(await tx.remembered.counts(visibility.readable_rooms(access, rooms, trust), now))
    return [_room(room, counts.get(room.namespace, ())) for room in rooms]


def _room(room: JoinedRoom, counts: Sequence[KindCount]) -> RoomOfPerson:
    assert room.room_id is not None  # it is stored
    return RoomOfPerson(
        room.room_id,
        room.name,
        room.namespace,
        room.private,
        room.platform,
        room.recording,
        room.project_id,
        room.project,
        room.isolated,
        room.project_id is not None and (room.pooled or not room.private),
        {each.kind: each.count for each in counts},
        max((each.last_at for each in counts if each.kind not in ("day", "week")), default=None),
        room.managed,
    )


def by_namespace(counts: Sequence[KindCount]) -> Mapping[str, Sequence[KindCount]]:
    """Counts by the namespace that they are of."""
    found = defaultdict[str, list[KindCount]](list)
    for each in counts:
        found[each.namespace].append(each)
    return found


async def room_month(tx: Transaction, readable: Readable, room: uuid.UUID, month: date, zone: tzinfo) -> list[RoomWeek]:
    """The weeks of a month in a room, with the days of that month, oldest first. `month` is any day of it; `zone` is
    the one by whose days summaries are made."""
    days = _days_of(month)
    starts = [start_of_day(day, zone) for day in [*days, days[-1] + timedelta(days=1)]]
    messages = await tx.remembered.message_days(readable, room, starts)
    found = await tx.digests.summaries(readable, room, "day", starts[0], starts[-1])
    of_days = {_day(each, zone): each.text for each in found}
    mondays = sorted({day - timedelta(days=day.weekday()) for day in days})
    weeks = await tx.digests.summaries(
        readable, room, "week", start_of_day(mondays[0], zone), start_of_day(mondays[-1] + timedelta(days=7), zone)
    )
    of_weeks = {_day(each, zone): each.text for each in weeks}
    described = [RoomDay(day, count, of_days.get(day)) for day, count in zip(days, messages, strict=True)]
    return [
        RoomWeek(
            monday,
            [each for each in described if each.day - timedelta(days=each.day.weekday()) == monday],
            of_weeks.get(monday),
        )
        for monday in mondays
    ]


async def room_messages(
    tx: Transaction, access: EntryAccess, readable: Readable, room: uuid.UUID, day: date, zone: tzinfo
) -> list[tuple[Message, str]]:
    """What people said in a room on a day, oldest first, each with the admin from whose file it came, by name; of more
    than 200 messages the latest."""
    since, until = start_of_day(day, zone), start_of_day(day + timedelta(days=1), zone)
    found = await tx.digests.messages_since(readable, room, since - _INSTANT, MAX_DAY_MESSAGES, until)
    uploaders = await uploaders_of(tx, {message.id for message, _ in found})
    return [(each, uploaders.get(each.id, "")) for each in told_apart(access, [message for message, _ in found])]


async def room_people(tx: Transaction, access: EntryAccess, room: RoomOfPerson, page: int) -> RoomPeople:
    """Who is in a room that the person is in, by name, 50 a page. Of chat platforms these are who wrote or joined while
    Nexus was there, and left not that it was told of; and nobody but the person is asked for as an admin."""
    found = await tx.conversations.room_members(room.id, MAX_PEOPLE, (page - 1) * MAX_PEOPLE)
    labels = Labels(access, ((each.name, each.id) for each in found))
    own = {*access.users}
    return RoomPeople(
        [
            PersonInRoom(
                each.id,
                each.name,
                labels(each.name, each.id),
                each.admin or (each.id in own and room.managed),
                each.id in own,
            )
            for each in found
        ],
        max((each.total for each in found), default=0),
        page + 1 if found and page * MAX_PEOPLE < found[0].total else None,
    )


async def room_memories(
    tx: Transaction, access: EntryAccess, readable: Readable, now: datetime, limit: int
) -> list[KeptItem]:
    """The latest memories of a room, newest first."""
    return told_apart(access, await tx.remembered.memories(readable, now, limit))


def _day(summary: ReadableSummary, zone: tzinfo) -> date:
    return summary.starts_at.astimezone(zone).date()


def _days_of(month: date) -> list[date]:
    first = month.replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    return [first + timedelta(days=number) for number in range((following - first).days)]
