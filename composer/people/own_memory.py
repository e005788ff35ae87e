"""What is remembered of one person, for that person: a list that can be searched, and one item with all about it."""

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from composer.errors import BadInput, NotFound
from composer.model import API, CONSOLE, DISCORD, SLACK
from composer.people.places import NamedPlace, named, room_ids
from composer.people.readers import Reader, readers_of
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.own_data import OwnFilter, OwnItem, OwnPlace, OwnProject, OwnTrace
from composer.visibility import Owned

SHELVES: Final = ("preferences", "facts", "notes", "decisions")
TRASH: Final = "trash"
WAITING: Final = "waiting"
NO_TOOLS: Final = frozenset({"", "extracted", "api", CONSOLE, DISCORD, SLACK, API})  # origins that are no tool's
MAX_TRACES: Final = 50
UNKNOWN_ITEM: Final = "Nothing of yours has that id: it was forgotten, or was never there."


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """An item, and where it is filed, in words for its person."""

    item: OwnItem
    place: NamedPlace


@dataclass(frozen=True, slots=True)
class OwnItems:
    """A page of items. `next`: where the following page begins (None: there is none)."""

    items: Sequence[PlacedItem]
    next: str | None


@dataclass(frozen=True, slots=True)
class OwnTotals:
    """How many items are on each shelf, how many each tool wrote, and how many are in the trash and wait."""

    shelves: dict[str, int]
    tools: dict[str, int]

    @property
    def all(self) -> int:
        """All but what is in the trash or waits."""
        return sum(self.shelves.get(shelf, 0) for shelf in SHELVES)


@dataclass(frozen=True, slots=True)
class ItemDetails:
    """One item, who can be answered from it, what it was made from, and what it led to."""

    item: OwnItem
    place: NamedPlace
    readers: Sequence[Reader]
    sources: Sequence[OwnTrace]
    answers: Sequence[OwnTrace]


async def own_items(
    tx: Transaction, owned: Owned, wanted: OwnFilter, cursor: str | None, limit: int, now: datetime, presence: Presence
) -> OwnItems:
    """A page of the person's items, latest first. Raises BadInput for a cursor that no page gave."""
    if cursor is not None:
        wanted = replace(wanted, before=_position(cursor))
    found = await tx.own_data.memory(owned, wanted, limit + 1, now)
    page = found[:limit]
    places, projects = await _around(tx, owned, page, presence)
    items = [PlacedItem(item, named(item.namespace, places, projects, owned.users)) for item in page]
    return OwnItems(items, _cursor(page[-1]) if len(found) > limit else None)


async def own_totals(tx: Transaction, owned: Owned, now: datetime) -> OwnTotals:
    """How much the person has."""
    shelves, tools = Counter[str](), Counter[str]()
    for each in await tx.own_data.memory_counts(owned, now):
        shelves[each.shelf] += each.count
        if each.origin not in NO_TOOLS and each.shelf in SHELVES:
            tools[each.origin] += each.count
    return OwnTotals(dict(shelves), dict(tools))


async def own_item(tx: Transaction, owned: Owned, id: uuid.UUID, now: datetime, presence: Presence) -> ItemDetails:
    """One item of the person, also one in the trash. Raises NotFound."""
    wanted = OwnFilter(beginning=id.hex)
    found = await tx.own_data.memory(owned, wanted, 1, now) or await tx.own_data.memory(
        owned, replace(wanted, trashed=True), 1, now
    )
    if not found:
        raise NotFound(UNKNOWN_ITEM)
    item = found[0]
    places, projects = await _around(tx, owned, found, presence)
    joined = await tx.conversations.joined_ids(owned.users, presence)
    traces = await tx.own_data.traces(owned, item.id, joined, MAX_TRACES)
    return ItemDetails(
        item,
        named(item.namespace, places, projects, owned.users),
        readers_of(item, places, projects),
        [trace for trace in traces if trace.part == "source"],
        [trace for trace in traces if trace.part == "answer"],
    )


async def _around(
    tx: Transaction, owned: Owned, items: Sequence[OwnItem], presence: Presence
) -> tuple[list[OwnPlace], list[OwnProject]]:
    joined = await tx.conversations.joined_ids(owned.users, presence)
    rooms = room_ids(item.namespace for item in items)
    return await tx.own_data.places(owned, rooms, joined), await tx.own_data.projects(owned)


def _cursor(item: OwnItem) -> str:
    return f"{item.at.isoformat()}_{item.id.hex}"


def _position(cursor: str) -> tuple[datetime, uuid.UUID]:
    at, _, id = cursor.rpartition("_")
    try:
        position = datetime.fromisoformat(at), uuid.UUID(hex=id)
    except ValueError:
        raise BadInput("That is not where a page of this list begins.") from None
    if position[0].tzinfo is None:
        raise BadInput("That is not where a page of this list begins.")
    return position
