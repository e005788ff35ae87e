"""What one person owns, wherever it is filed: counts, places, and every row in full, for the person themself."""

import json
import uuid
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from composer.model import ConversationKind, Role, Visibility
from composer.ports.database import Row, Statements
from composer.visibility import Owned, may_enter_room

OWN_DATA_PAGE: Final = 1_000  # messages that are read at once


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
    id is that in the quarantine. `trashed_at`: when it was put into the trash."""

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


@dataclass(frozen=True, slots=True)
class OwnFilter:
    """Which of a person's items to list: those of a `shelf`, written by `origins` (of both, None: all), that have all
    of these `words`, and come `before` an item of this time and id."""

    beginning: str = ""
    shelf: str | None = None
    origins: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()
    trashed: bool = False
    before: tuple[datetime, uuid.UUID] | None = None


@dataclass(frozen=True, slots=True)
class OwnCount:
    """How many items are on a shelf that came from an origin. The shelf `trash` is the trash."""

    shelf: str
    origin: str
    count: int


@dataclass(frozen=True, slots=True)
class OwnTrace:
    """A message that an item was made from (`part` source), or a question whose answer it led to (answer). `own`: it is
    the person's; else `asker` asked."""

    part: str
    id: uuid.UUID
    at: datetime
    text: str
    place_kind: ConversationKind
    place: str
    own: bool
    asker: str


class OwnData:
    """Reads everything that one person owns. Every read takes an `Owned`, which only composer/visibility.py makes."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def counts(self, owned: Owned) -> list[Count]:
        """How much of each kind is filed where."""
        return await self._sql.fetch_as(Count, "own_counts", user_ids=list(owned.users))

    async def memory(self, owned: Owned, wanted: OwnFilter, limit: int, now: datetime) -> list[OwnItem]:
        """The person's current and pending items, latest first."""
        before_at, before_id = wanted.before or (None, None)
        found = await self._sql.fetch_as(
            OwnItem,
            "own_memory",
            user_ids=list(owned.users),
            beginning=wanted.beginning,
            shelf=wanted.shelf,
            origins=None if wanted.origins is None else list(wanted.origins),
            patterns=[f"%{_escaped(word)}%" for word in wanted.words],
            trashed=wanted.trashed,
            before_at=before_at,
            before_id=before_id,
            limit=limit,
            now=now,
        )
        return [item for item in found if owned.admits(item.user_id)]

    async def memory_counts(self, owned: Owned, now: datetime) -> list[OwnCount]:
        """How many items the person has, by shelf and origin."""
        return await self._sql.fetch_as(OwnCount, "own_memory_counts", user_ids=list(owned.users), now=now)

    async def traces(self, owned: Owned, id: uuid.UUID, joined: Collection[uuid.UUID], limit: int) -> list[OwnTrace]:
        """What an item was made from and led to, as far as the person may know it, latest first."""
        return await self._sql.fetch_as(
            OwnTrace,
            "own_memory_traces",
            user_ids=list(owned.users),
            id=id,
            joined_ids=list(joined),
            limit=limit,
        )

    async def places(self, owned: Owned, rooms: Sequence[uuid.UUID], joined: Collection[uuid.UUID]) -> list[OwnPlace]:
        """The person's DMs and sessions, the rooms they are or were in, and these rooms. `joined`: the rooms that they
        are in now."""
        return await self._sql.fetch_as(
            OwnPlace, "own_places", user_ids=list(owned.users), room_ids=list(rooms), joined_ids=list(joined)
        )

    async def projects(self, owned: Owned) -> list[OwnProject]:
        """The projects that the person is in."""
        return await self._sql.fetch_as(OwnProject, "project_list", user_ids=list(owned.users))

    async def askers(self, owned: Owned, joined: Collection[uuid.UUID]) -> list[Asker]:
        """Who was answered from what the person owns, in the rooms that the person may read now. `joined`: those that
        they are in."""
        rows = await self._sql.fetch("own_askers", user_ids=list(owned.users), joined_ids=list(joined))
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


def _escaped(word: str) -> str:
    """A word as a pattern of LIKE, which has no meaning of its own."""
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
