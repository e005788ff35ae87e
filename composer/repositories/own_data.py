"""What one person owns, wherever it is filed: counts, places, and every row in full, for the person themself."""

import json
import uuid
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from composer.model import ConversationKind, Role, Visibility
from composer.ports.database import Row, Statements
from composer.repositories.explanations import MessageAddress, address_from_row
from composer.repositories.landmarks import PROPOSAL_LIFETIME
from composer.repositories.ordering import Order
from composer.repositories.readable import pattern_of
from composer.visibility import Owned, may_enter_room

OWN_DATA_PAGE: Final = 1_000  # messages that are read at once
EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
LATEST: Final = datetime.max.replace(tzinfo=UTC)
LEAST_ID: Final = uuid.UUID(int=0)
NEVER: Final = timedelta(days=200 * 365)  # before it was written something counts as used that never was
WAITING: Final = "waiting"  # the shelf of what waits
MORE: Final = "more"  # in place of a shelf or a label: not all memories were counted


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows of a kind are filed under a namespace and visibility."""

    kind: str
    namespace: str
    visibility: Visibility
    count: int


@dataclass(frozen=True, slots=True)
class OwnPlace:
    """A conversation that a person's rows are filed under. `joined`: whether they are a member of the room now. `role`
    is theirs in its project."""

    id: uuid.UUID
    kind: ConversationKind
    name: str
    namespace: str
    private: bool
    pooled: bool
    agent: str | None
    project_id: uuid.UUID | None
    project: str | None
    isolated: bool
    joined: bool | None
    role: Role | None

    @property
    def readable(self) -> bool:
        """Whether the person may read the conversation now."""
        return self.kind is not ConversationKind.ROOM or may_enter_room(private=self.private, joined=self.joined)


@dataclass(frozen=True, slots=True)
class OwnProject:
    """A project that a person is in."""

    id: uuid.UUID
    slug: str
    isolated: bool
    role: Role


@dataclass(frozen=True, slots=True)
class Asker:
    """Somebody whose `answers` in a room drew on what another person owns."""

    room: uuid.UUID
    room_name: str
    name: str
    answers: int
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class OwnItem:
    """A current memory, fact or landmark of a person. `text` is one of a memory or landmark, or `key = value` of a
    fact. `shelf` says what it is in a list: preferences, facts, decisions, notes or waiting; `label` more exactly.
    `origin`: a tool that wrote it, or how else it came. `pending`: it waits for approval, and nobody reads it yet; its
    id is that in the quarantine. `trashed_at`: when it was put into the trash. `sorted_at`: the
    time by which its list is sorted; `used_at`: when it was last used in an answer to the person, in a list by that."""

    kind: str
    id: uuid.UUID
    user_id: uuid.UUID
    namespace: str
    visibility: Visibility
    shelf: str
    label: str
    text: str
    key: str | None
    at: datetime
    author: str
    origin: str
    vendors: tuple[str, ...]
    tags: tuple[str, ...]
    pending: bool
    trashed_at: datetime | None
    updated_at: datetime
    sorted_at: datetime
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class OwnFilter:
    """Which of a person's items to list: those of a `shelf`, written by `origins` and `authors`, filed in `namespaces`
    (of each, None: all), that have all of these `tags` and `words`, were written `since` a time and before (`until`)
    another one, and come `after` an item of this time and id. `most`: how many memories of an account are looked
    through for them, the first in the order, of which what was used at all is no part (None: all)."""

    shelf: str | None = None
    origins: tuple[str, ...] | None = None
    authors: tuple[str, ...] | None = None
    namespaces: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    trashed: bool = False
    order: Order = Order.NEWEST
    after: tuple[datetime, uuid.UUID] | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class OwnLabel:
    """How many items have a label: are on a `shelf` (`trash` is the trash), were written by a `tool` or an `author`,
    are filed in a `namespace`, or have a `tag`. `value` says which. `more`: there may be memories that were not
    counted."""

    label: str
    value: str
    count: int


@dataclass(frozen=True, slots=True)
class OwnTimes:
    """How many items of a shelf were written in the quarter of an hour that begins at a time. The shelf `more`: up to
    this time the latest `most` memories of an account were counted, and perhaps not all."""

    at: datetime
    shelf: str
    count: int


@dataclass(frozen=True, slots=True)
class OwnVector:
    """An item with the vector of what it means, as bytes: four, then numbers of four bytes, the greatest first."""

    id: uuid.UUID
    user_id: uuid.UUID
    namespace: str
    shelf: str
    text: str
    at: datetime
    vector: bytes


@dataclass(frozen=True, slots=True)
class OwnTrace:
    """A message that an item was made from (`part` source), or a question whose answer it led to (answer). `own`: it is
    the person's; else `asker` asked. `place` is empty for a private room that the person is not in. `address`: where it
    stands on its platform; None where the person may not enter. `uploaded_by`: the admin from whose file the message
    came, by name."""

    part: str
    id: uuid.UUID
    at: datetime
    text: str
    place_kind: ConversationKind
    place: str
    own: bool
    asker: str
    address: MessageAddress | None = None
    uploaded_by: str = ""


class OwnData:
    """Reads everything that one person owns. Every read takes an `Owned`, which only composer/visibility.py makes."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def counts(self, owned: Owned) -> list[Count]:
        """How much of each kind is filed where."""
        return await self._sql.fetch_as(Count, "own_counts", user_ids=list(owned.users))

    async def memory(self, owned: Owned, wanted: OwnFilter, limit: int, now: datetime) -> list[OwnItem]:
        """The person's current and pending items that are wanted, in the order that is; what comes after `read_to` may
        be incomplete."""
        fitting = _fitting(owned, wanted, now)
        if wanted.order.by == "used":
            times = {"wanted_since": wanted.since or EARLIEST, "wanted_until": wanted.until or LATEST}
            values = fitting | wanted.order.parameters(wanted.after) | times
            found = await self._sql.fetch_as(OwnItem, "own_memory_used", **values, never=NEVER, limit=limit)
        else:  # as their indexes have them
            query = "own_memory_latest" if wanted.order.is_latest_first else "own_memory_earliest"
            found = await self._sql.fetch_as(OwnItem, query, **fitting, limit=limit)
        return [item for item in found if owned.admits(item.user_id)]

    async def read_to(self, owned: Owned, wanted: OwnFilter) -> tuple[datetime, uuid.UUID] | None:
        """The time and the id of the memory up to which `memory` looked through `most`; None: through all."""
        row = await self._sql.fetch_one(
            "own_memory_read_to",
            user_ids=list(owned.users),
            **_reach(wanted),
            most=wanted.most,
            direction=1 if wanted.order.is_latest_first else -1,
        )
        return None if row is None else (row["at"] - before_use(wanted.order), row["id"])

    async def of_id(self, owned: Owned, beginning: str, limit: int, now: datetime) -> list[OwnItem]:
        """The person's items whose ids begin with some hexadecimal digits: current and pending ones, then those in the
        trash; also a landmark that is listed as the memory of the same words."""
        first, last = (uuid.UUID(beginning.ljust(32, digit)) for digit in "0f")
        found = await self._sql.fetch_as(
            OwnItem,
            "own_memory_of_id",
            user_ids=list(owned.users),
            first=first,
            last=last,
            limit=limit,
            now=now,
            lifetime=PROPOSAL_LIFETIME,
            twins=True,
        )
        return [item for item in found if owned.admits(item.user_id)]

    async def namespaces(self, owned: Owned, now: datetime) -> list[str]:
        """Where the person's items are filed, also those that hold no more."""
        rows = await self._sql.fetch(
            "own_memory_namespaces", user_ids=list(owned.users), now=now, lifetime=PROPOSAL_LIFETIME, twins=False
        )
        return [row["namespace"] for row in rows]

    async def labels(self, owned: Owned, limit: int, now: datetime, *, most: int) -> list[OwnLabel]:
        """How many items the person has with each label: of one kind of labels at most `limit`, those with most. Of the
        memories of an account the latest `most` are counted."""
        rows = _rows(owned, OwnFilter(most=most), now)
        return await self._sql.fetch_as(OwnLabel, "own_memory_labels", **rows, limit=limit, direction=1)

    async def twins(self, owned: Owned, id: uuid.UUID) -> list[uuid.UUID]:
        """The landmarks of the person that one of their memories is listed for: a decision has the words of both."""
        rows = await self._sql.fetch("own_memory_twins", user_ids=list(owned.users), id=id)
        return [row["id"] for row in rows]

    async def times(self, owned: Owned, wanted: OwnFilter, now: datetime) -> list[OwnTimes]:
        """How many of the wanted items were written when, the oldest first; `most` are the latest."""
        fitting = _fitting(owned, replace(wanted, order=Order.NEWEST), now)
        return await self._sql.fetch_as(OwnTimes, "own_memory_times", **fitting, direction=1)

    async def vectors(self, owned: Owned, wanted: OwnFilter, limit: int, chars: int, now: datetime) -> list[OwnVector]:
        """The latest of the wanted items that have a vector, with the first `chars` characters of their texts."""
        fitting = _fitting(owned, replace(wanted, order=Order.NEWEST), now)
        found = await self._sql.fetch_as(OwnVector, "own_memory_vectors", **fitting, limit=limit, chars=chars)
        return [item for item in found if owned.admits(item.user_id)]

    async def traces(
        self, owned: Owned, id: uuid.UUID, joined: Collection[uuid.UUID], limit: int, *, public: bool
    ) -> list[OwnTrace]:
        """What an item was made from and led to, as far as the person may know it, latest first. `public`: they may
        enter public rooms that they are not in."""
        rows = await self._sql.fetch(
            "own_memory_traces",
            user_ids=list(owned.users),
            id=id,
            joined_ids=list(joined),
            public=public,
            limit=limit,
        )
        return [
            OwnTrace(
                row["part"],
                row["id"],
                row["at"],
                row["text"],
                ConversationKind(row["kind"]),
                row["place"],
                row["own"],
                row["asker"],
                address_from_row(row) if row["may_enter"] else None,
            )
            for row in rows
        ]

    async def places(self, owned: Owned, rooms: Sequence[uuid.UUID], joined: Collection[uuid.UUID]) -> list[OwnPlace]:
        """The person's DMs and sessions, the rooms they are or were in, and these rooms. `joined`: the rooms that they
        are in now."""
        return await self._sql.fetch_as(
            OwnPlace, "own_places", user_ids=list(owned.users), room_ids=list(rooms), joined_ids=list(joined)
        )

    async def projects(self, owned: Owned) -> list[OwnProject]:
        """The projects that the person is in."""
        return await self._sql.fetch_as(OwnProject, "project_list", user_ids=list(owned.users))

    async def askers(self, owned: Owned, joined: Collection[uuid.UUID], *, public: bool) -> list[Asker]:
        """Who was answered from what the person owns, in the rooms that the person may read now. `joined`: those that
        they are in; `public`: they may enter public ones."""
        rows = await self._sql.fetch("own_askers", user_ids=list(owned.users), joined_ids=list(joined), public=public)
        return [
            Asker(row["room_id"], row["name"], row["asker"], row["answers"], row["last_at"])
            for row in rows
            if may_enter_room(private=row["private"], joined=row["joined"])
        ]

    async def messages(self, owned: Owned) -> AsyncIterator[list[Row]]:
        """The person's messages, oldest first, in pages: there may be very many."""
        ids = await self._sql.fetch_value("own_message_ids", user_ids=list(owned.users))
        for start in range(0, len(ids), OWN_DATA_PAGE):
            yield await self._own("own_messages", owned, ids=ids[start : start + OWN_DATA_PAGE])

    async def turns(self, owned: Owned) -> Sequence[Row]:
        """The answers to the person's questions, oldest first."""
        return await self._own("own_turns", owned)

    async def items(self, owned: Owned, kinds: Collection[str]) -> dict[str, list[dict[str, Any]]]:
        """What else the person owns of some kinds, by kind, oldest first: what the document of an export says of it
        (composer/people/export_document.py). The value of a fact is a text of JSON."""
        found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
        for row in await self._own("own_items", owned, kinds=list(kinds)):
            found[row["kind"]].append(json.loads(row["item"]))
        return found

    async def _own(self, query: str, owned: Owned, **values: Any) -> list[Row]:
        """The rows of a query, each checked again."""
        rows = await self._sql.fetch(query, user_ids=list(owned.users), **values)
        return [row for row in rows if owned.admits(row["user_id"])]


def before_use(order: Order) -> timedelta:
    """How much earlier than it was written something counts as used that never was: not, in other orders."""
    return NEVER if order.by == "used" else timedelta()


def _reach(wanted: OwnFilter) -> dict[str, Any]:
    """Between which times and ids the items are, and in which order their memories are read, none that comes before an
    item of `after`."""
    since, until = (wanted.since or EARLIEST, LEAST_ID), (wanted.until or LATEST, LEAST_ID)
    if wanted.after is not None and wanted.order.by != "updated":
        at = wanted.after[0] + before_use(wanted.order), wanted.after[1]
        since, until = (since, min(until, at)) if wanted.order.is_latest_first else (max(since, at), until)
    first = LATEST if wanted.order.is_latest_first else EARLIEST
    after_at, after_id = wanted.after or (first, LEAST_ID)
    return {
        **dict(zip(("since", "since_id", "until", "until_id"), since + until, strict=True)),
        "memories": wanted.shelf != WAITING,  # which no memory is on
        "by": wanted.order.by,
        "after_at": after_at,
        "after_id": after_id,
    }


def _rows(owned: Owned, wanted: OwnFilter, now: datetime) -> dict[str, Any]:
    """The parameters of `own_memory_rows`."""
    return _reach(wanted) | {
        "user_ids": list(owned.users),
        "most": wanted.most,
        "now": now,
        "lifetime": PROPOSAL_LIFETIME,
        "twins": False,
    }


def _fitting(owned: Owned, wanted: OwnFilter, now: datetime) -> dict[str, Any]:
    """The parameters of `own_memory_fitting`."""

    def of(values: tuple[str, ...] | None) -> list[str] | None:
        return None if values is None else list(values)

    return _rows(owned, wanted, now) | {
        "shelf": wanted.shelf,
        "origins": of(wanted.origins),
        "authors": of(wanted.authors),
        "namespaces": of(wanted.namespaces),
        "tags": of(wanted.tags or None),
        "patterns": [pattern_of(word) for word in wanted.words],
        "trashed": wanted.trashed,
    }
