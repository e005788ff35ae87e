"""What is remembered of one person, for that person: a list that can be searched, and one item with all about it."""

import uuid
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo
from pathlib import Path
from typing import Final

from composer.errors import NotFound
from composer.memory.affected import ItemRef
from composer.memory.forget import RETRACTED, Receipt, find_reach
from composer.model import API, CONSOLE, DISCORD, SLACK, Trust
from composer.people.erasing import erase
from composer.people.places import NamedPlace, named, room_ids
from composer.people.projection import in_two_dimensions
from composer.people.readers import WhoReads, readers_of
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.ordering import Order
from composer.repositories.own_data import (
    MORE,
    WAITING,
    OwnFilter,
    OwnItem,
    OwnLabel,
    OwnPlace,
    OwnProject,
    OwnTrace,
    before_use,
)
from composer.repositories.quarantine import PENDING_KIND
from composer.repositories.tool_reads import ToolRead
from composer.text.cursors import cursor_of, read_cursor
from composer.text.work import in_thread
from composer.turn.explanation import uploaders_of
from composer.visibility import Owned

SHELVES: Final = ("preferences", "facts", "notes", "decisions")
TRASH: Final = "trash"
NO_TOOLS: Final = frozenset({"", "extracted", "api", CONSOLE, DISCORD, SLACK, API})  # origins that are no tool's
MAX_TRACES: Final = 50
MAX_LABELS: Final = 200  # of a kind: tools, people, tags, places
# Through so many memories of an account a page of a list looks, and the latest so many are counted: of all 100,000 that
# somebody may have, counting takes ten times as long.
MAX_READ: Final = 10_000
MAX_MAPPED: Final = 400  # of twice as many the points lie upon each other, and are more bytes than a page may load
MAPPED_CHARS: Final = 120
# Labels of what may be a memory and a landmark.
_OF_TWINS: Final = ("decision", "pinned", "proposed", "lapsed", "retired")
_OF_ENTRIES: Final = ("entries:", "team:")
UNKNOWN_ITEM: Final = "Nothing of yours has that id: it was forgotten, or was never there."


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """An item, and where it is filed, in words for its person."""

    item: OwnItem
    place: NamedPlace

    @property
    def is_entry(self) -> bool:
        """Whether it is an entry of the person's own: what they, or a tool of theirs, stored over the API or here."""
        return is_own_entry(self.item)


@dataclass(frozen=True, slots=True)
class OwnTotals:
    """How many items are on each shelf, in the trash and wait, and how many of those on shelves each tool and each
    person wrote, have each tag, and are filed in each place and each project: those with most first. `named`: the
    places by their names. `at_least`: the latest `MAX_READ` memories were counted, and there are more."""

    shelves: Mapping[str, int]
    tools: Mapping[str, int]
    authors: Mapping[str, int]
    tags: Mapping[str, int]
    places: Mapping[str, int]
    projects: Mapping[str, int]
    named: Mapping[str, NamedPlace]
    at_least: bool

    @property
    def all(self) -> int:
        """All but what is in the trash or waits."""
        return sum(self.shelves.get(shelf, 0) for shelf in SHELVES)

    @property
    def waiting(self) -> int:
        """What waits for approval: it is listed with the others."""
        return self.shelves.get(WAITING, 0)


@dataclass(frozen=True, slots=True)
class OwnItems:
    """A page of items. `next`: where the following page begins (None: there is none); a page before it holds few items,
    or none, where few of the memories that it looks through fit, at `most` so many. `totals`: if they were asked
    for."""

    items: Sequence[PlacedItem]
    next: str | None
    most: int
    totals: OwnTotals | None = None


@dataclass(frozen=True, slots=True)
class OwnDays:
    """How many items were written on each day, by shelf, the earliest day first. `since`: there are more memories than
    were counted, which are those from this time on (None: all were)."""

    counts: Mapping[date, Mapping[str, int]]
    since: datetime | None


@dataclass(frozen=True, slots=True)
class MappedItem:
    """An item on the map: what is shown of it, and where it is, from 0 to 1 in both directions."""

    id: uuid.UUID
    shelf: str
    text: str
    at: datetime
    place: NamedPlace
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class ItemDetails:
    """One item, who can be answered from it, what it was made from, what it led to, and which tools of the person read
    it when. `is_entry`: it can be edited, and put into the trash."""

    item: OwnItem
    place: NamedPlace
    readers: Sequence[WhoReads]
    sources: Sequence[OwnTrace]
    answers: Sequence[OwnTrace]
    reads: Sequence[ToolRead]

    @property
    def is_entry(self) -> bool:
        """Whether it is an entry of the person's own: what they, or a tool of theirs, stored over the API or here."""
        return is_own_entry(self.item)


def is_own_entry(item: OwnItem) -> bool:
    """Whether an item is an entry of its person's own, which they change."""
    return item.kind == "memory" and not item.pending and item.namespace.startswith(_OF_ENTRIES)


async def own_items(
    tx: Transaction,
    owned: Owned,
    wanted: OwnFilter,
    cursor: str | None,
    limit: int,
    now: datetime,
    presence: Presence,
    *,
    place: str | None = None,
    project: str | None = None,
    with_totals: bool = False,
) -> OwnItems:
    """A page of the person's items, in the order that is wanted; `place` and `project` are as for `own_filter`;
    `with_totals`: and how much they have. A page looks through `MAX_READ` memories of an account for what fits, and
    leaves the others to the next. Raises BadInput for a cursor that no page gave."""
    after = None if cursor is None else read_cursor(cursor, wanted.order, before_use(wanted.order))
    wanted = replace(wanted, after=after, most=MAX_READ)
    wanted, names = await _placed(tx, owned, wanted, now, presence, place, project)
    found = await tx.own_data.memory(owned, wanted, limit + 1, now)
    labels = await tx.own_data.labels(owned, MAX_LABELS, now, most=MAX_READ) if with_totals else ()
    page, last = found[:limit], found[limit - 1] if len(found) > limit else None
    ends = [] if last is None else [(last.sorted_at, last.id)]
    if (last is None or not _is_read_before(last, wanted.order)) and (not with_totals or _has_more(labels)):
        read_to = await tx.own_data.read_to(owned, wanted)
        ends += [] if read_to is None else [read_to]
    latest = wanted.order.is_latest_first
    ends_at = (max if latest else min)(ends, default=None)
    if ends_at is not None:
        placed = [((item.sorted_at, item.id), item) for item in page]
        page = [item for at, item in placed if (at >= ends_at if latest else at <= ends_at)]
    places = sorted({*(item.namespace for item in page), *_labelled(labels)})
    if not names.keys() >= set(places):
        names = await _namespaces(tx, owned, places, presence)
    return OwnItems(
        [PlacedItem(item, names[item.namespace]) for item in page],
        None if ends_at is None else cursor_of(*ends_at, wanted.order),
        MAX_READ,
        _totals(labels, names) if with_totals else None,
    )


def _is_read_before(last: OwnItem, order: Order) -> bool:
    """Whether all memories that come before the last item of a page were looked through: where it is one itself."""
    after_unused = order is Order.LONGEST_UNUSED and last.used_at is not None
    return last.kind == "memory" and not last.pending and not after_unused


async def own_totals(tx: Transaction, owned: Owned, now: datetime, presence: Presence) -> OwnTotals:
    """How much the person has."""
    labels = await tx.own_data.labels(owned, MAX_LABELS, now, most=MAX_READ)
    return _totals(labels, await _namespaces(tx, owned, _labelled(labels), presence))


def _labelled(labels: Sequence[OwnLabel]) -> Sequence[str]:
    return [each.value for each in labels if each.label == "namespace"]


def _has_more(labels: Sequence[OwnLabel]) -> bool:
    return any(each.label == MORE for each in labels)


def _totals(labels: Sequence[OwnLabel], names: Mapping[str, NamedPlace]) -> OwnTotals:
    found = defaultdict[str, Counter[str]](Counter)
    for each in labels:
        found[each.label][each.value] += each.count
    places, projects, known = Counter[str](), Counter[str](), dict[str, NamedPlace]()
    for namespace, count in found["namespace"].items():
        place = names[namespace]
        places[place.name] += count
        known[place.name] = place
        if place.project:
            projects[place.project] += count
    tools = {tool: count for tool, count in found["tool"].items() if tool not in NO_TOOLS}
    return OwnTotals(
        found["shelf"],
        tools,
        found["author"],
        found["tag"],
        dict(places.most_common()),
        dict(projects.most_common()),
        known,
        _has_more(labels),
    )


async def own_filter(
    tx: Transaction,
    owned: Owned,
    wanted: OwnFilter,
    now: datetime,
    presence: Presence,
    *,
    place: str | None = None,
    project: str | None = None,
) -> OwnFilter:
    """What is wanted, of one place and of one project alone, by the names that `own_totals` gives them (None: of
    all)."""
    return (await _placed(tx, owned, wanted, now, presence, place, project))[0]


async def _placed(
    tx: Transaction,
    owned: Owned,
    wanted: OwnFilter,
    now: datetime,
    presence: Presence,
    place: str | None,
    project: str | None,
) -> tuple[OwnFilter, Mapping[str, NamedPlace]]:
    """The same, with the names of all places."""
    if place is None and project is None:
        return wanted, {}
    names = await _namespaces(tx, owned, await tx.own_data.namespaces(owned, now), presence)
    fitting = (
        namespace
        for namespace, named in names.items()
        if place in (None, named.name) and project in (None, named.project)
    )
    return replace(wanted, namespaces=tuple(fitting)), names


async def own_days(tx: Transaction, owned: Owned, wanted: OwnFilter, zone: tzinfo, now: datetime) -> OwnDays:
    """How many of the wanted items were written on each day of a zone."""
    days, since = dict[date, Counter[str]](), None
    for each in await tx.own_data.times(owned, wanted, now):
        if each.shelf == MORE:
            since = each.at
        else:
            days.setdefault(each.at.astimezone(zone).date(), Counter())[each.shelf] += each.count
    return OwnDays(days, since)


async def own_map(
    tx: Transaction, owned: Owned, wanted: OwnFilter, now: datetime, presence: Presence
) -> Sequence[MappedItem]:
    """The latest of the wanted items by their meaning: what means the same is near. Where each is depends on these
    items alone. Facts and decisions of rooms have no vectors, and are not there."""
    found = await tx.own_data.vectors(owned, wanted, MAX_MAPPED, MAPPED_CHARS, now)
    found = [each for each in found if len(each.vector) == len(found[0].vector)]
    names = await _namespaces(tx, owned, sorted({each.namespace for each in found}), presence)
    places = await in_thread(in_two_dimensions, [each.vector for each in found]) if found else []
    return [
        MappedItem(each.id, each.shelf, each.text, each.at, names[each.namespace], x, y)
        for each, (x, y) in zip(found, places, strict=True)
    ]


async def own_item(tx: Transaction, owned: Owned, id: uuid.UUID, now: datetime, presence: Presence) -> ItemDetails:
    """One item of the person, also one in the trash. Raises NotFound."""
    found = await tx.own_data.of_id(owned, id.hex, 1, now)
    if not found:
        raise NotFound(UNKNOWN_ITEM)
    item = found[0]
    joined = await tx.conversations.joined_ids(owned.users, presence)
    places, projects = await _around(tx, owned, [item.namespace], joined)
    public = await tx.people.least_trust(owned.users) is Trust.MEMBER
    traces = await tx.own_data.traces(owned, item.id, joined, MAX_TRACES, public=public)
    sources = [trace for trace in traces if trace.part == "source"]
    uploaders = await uploaders_of(tx, {trace.id for trace in sources})
    return ItemDetails(
        item,
        named(item.namespace, places, projects, owned.users),
        readers_of(item, places, projects),
        [replace(trace, uploaded_by=uploaders.get(trace.id, "")) for trace in sources],
        [trace for trace in traces if trace.part == "answer"],
        await tx.tool_reads.of_item(owned, item.id, MAX_TRACES),
    )


async def _namespaces(
    tx: Transaction, owned: Owned, namespaces: Sequence[str], presence: Presence
) -> Mapping[str, NamedPlace]:
    """Some namespaces, in words for the person."""
    joined = await tx.conversations.joined_ids(owned.users, presence)
    places, projects = await _around(tx, owned, namespaces, joined)
    return {namespace: named(namespace, places, projects, owned.users) for namespace in namespaces}


async def _around(
    tx: Transaction, owned: Owned, namespaces: Sequence[str], joined: Sequence[uuid.UUID]
) -> tuple[list[OwnPlace], list[OwnProject]]:
    return await tx.own_data.places(owned, room_ids(namespaces), joined), await tx.own_data.projects(owned)


@dataclass(frozen=True, slots=True)
class ForgetPreview:
    """What forgetting an item erases with it and its messages: other items, by kind, answers of the person's own that
    are replaced by a notice, and whether answers in other people's conversations may be, which are not counted for
    anybody."""

    made_of_it: Mapping[str, int]
    answers: Sequence[str]
    others: int


async def forget_preview(tx: Transaction, owned: Owned, detail: ItemDetails) -> ForgetPreview:
    """What would go with an item, and with the person's messages that it came from. As for a receipt, only answers in
    its own conversation and in the person's own count: else it would tell how often others asked elsewhere."""
    item = detail.item
    named = await _references(tx, owned, item)
    reach = await find_reach(tx, [each.id for each in detail.sources], named, None)
    made, answers, others = Counter[str](), list[str](), 0
    for kind, id in {*reach.found.items, *named}:
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
    tx: Transaction, owned: Owned, home: Path, detail: ItemDetails, now: datetime, *, key: bytes, messages: bool
) -> Receipt:
    """Erase an item for good, with all that was made from it. `messages`: with the person's messages that it came from,
    from which agents would answer on. `home` and `key` are as for `erase`. The caller gives the receipt to
    `app.forgotten` after the commit."""
    named = await _references(tx, owned, detail.item)
    said = [each.id for each in detail.sources] if messages else []
    return await erase(tx, home, said, named, now, None, key=key, exports_of=owned.users)


async def _references(tx: Transaction, owned: Owned, item: OwnItem) -> Sequence[ItemRef]:
    """What an item is stored as: a decision that was found in a message also as a landmark."""
    twins = await tx.own_data.twins(owned, item.id) if item.label in _OF_TWINS else []
    return [(PENDING_KIND if item.pending else item.kind, item.id), *(("landmark", id) for id in twins)]
