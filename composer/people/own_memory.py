"""What is remembered of one person, for that person: a list that can be searched, and one item with all about it."""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from composer.errors import NotFound
from composer.memory.affected import ItemRef
from composer.memory.forget import RETRACTED, Receipt, find_reach
from composer.model import API, CONSOLE, DISCORD, SLACK
from composer.people.erasing import erase
from composer.people.places import NamedPlace, named, room_ids
from composer.people.readers import WhoReads, readers_of
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.own_data import OwnFilter, OwnItem, OwnPlace, OwnProject, OwnTrace
from composer.repositories.quarantine import PENDING_KIND
from composer.text.cursors import cursor_of, read_cursor
from composer.visibility import Owned

SHELVES: Final = ("preferences", "facts", "notes", "decisions")
TRASH: Final = "trash"
WAITING: Final = "waiting"
NO_TOOLS: Final = frozenset({"", "extracted", "api", CONSOLE, DISCORD, SLACK, API})  # origins that are no tool's
MAX_TRACES: Final = 50
_OF_ENTRIES: Final = ("entries:", "team:")
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
    """One item, who can be answered from it, what it was made from, and what it led to. `is_entry`: it can be edited,
    and put into the trash."""

    item: OwnItem
    place: NamedPlace
    readers: Sequence[WhoReads]
    sources: Sequence[OwnTrace]
    answers: Sequence[OwnTrace]

    @property
    def is_entry(self) -> bool:
        """Whether it is an entry of the person's own: what they, or a tool of theirs, stored over the API or here."""
        return self.item.kind == "memory" and not self.item.pending and self.item.namespace.startswith(_OF_ENTRIES)


async def own_items(
    tx: Transaction, owned: Owned, wanted: OwnFilter, cursor: str | None, limit: int, now: datetime, presence: Presence
) -> OwnItems:
    """A page of the person's items, latest first. Raises BadInput for a cursor that no page gave."""
    if cursor is not None:
        wanted = replace(wanted, before=read_cursor(cursor))
    found = await tx.own_data.memory(owned, wanted, limit + 1, now)
    page = found[:limit]
    joined = await tx.conversations.joined_ids(owned.users, presence)
    places, projects = await _around(tx, owned, page, joined)
    items = [PlacedItem(item, named(item.namespace, places, projects, owned.users)) for item in page]
    return OwnItems(items, cursor_of(page[-1].at, page[-1].id) if len(found) > limit else None)


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
    joined = await tx.conversations.joined_ids(owned.users, presence)
    places, projects = await _around(tx, owned, found, joined)
    traces = await tx.own_data.traces(owned, item.id, joined, MAX_TRACES)
    return ItemDetails(
        item,
        named(item.namespace, places, projects, owned.users),
        readers_of(item, places, projects),
        [trace for trace in traces if trace.part == "source"],
        [trace for trace in traces if trace.part == "answer"],
    )


async def _around(
    tx: Transaction, owned: Owned, items: Sequence[OwnItem], joined: Sequence[uuid.UUID]
) -> tuple[list[OwnPlace], list[OwnProject]]:
    rooms = room_ids(item.namespace for item in items)
    return await tx.own_data.places(owned, rooms, joined), await tx.own_data.projects(owned)


@dataclass(frozen=True, slots=True)
class ForgetPreview:
    """What forgetting an item erases with it: other items, by kind, answers of the person's own that are replaced by a
    notice, and whether answers in other people's conversations may be, which are not counted for anybody."""

    made_of_it: Mapping[str, int]
    answers: Sequence[str]
    others: int


async def forget_preview(tx: Transaction, owned: Owned, item: OwnItem) -> ForgetPreview:
    """What would go with an item. As for a receipt, only answers in its own conversation and in the person's own count:
    else it would tell how often others asked elsewhere."""
    reach = await find_reach(tx, [], [_reference(item)], None)
    made, answers, others = Counter[str](), list[str](), 0
    for kind, id in reach.found.items:
        if id != item.id:
            made[kind] += 1
    for reply in reach.found.replies:
        message = None if reply.text == RETRACTED else await tx.messages.get(reply.id)
        if message is None:
            continue
        if message.user_id in owned.users:
            answers.append(message.text)
        elif reply.conversation_id in reach.counted_in:
            others += 1
    return ForgetPreview(dict(made), answers, others)


async def forget_item(
    tx: Transaction, owned: Owned, home: Path, item: OwnItem, now: datetime, *, key: bytes
) -> Receipt:
    """Erase an item for good, with all that was made from it. `home` and `key` are as for `erase`. The caller gives the
    receipt to `app.forgotten` after the commit."""
    return await erase(tx, home, [], [_reference(item)], now, None, key=key, exports_of=owned.users)


def _reference(item: OwnItem) -> ItemRef:
    return (PENDING_KIND if item.pending else item.kind, item.id)
