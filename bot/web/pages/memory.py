"""`/memory`: all that is remembered of a person, searched as they type, by day and by meaning, and one item with who
reads it, where it came from and what it led to."""

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response

from bot.web.pages.memory_wanted import MEMORY, WantedMemory, Wanting
from bot.web.pages.rendering import Dates, page
from bot.web.pages.viewer import PageRouter, Reading, SignedIn, Viewer, is_script
from bot.web.shapes.entries import purge_at
from composer.entries import listing
from composer.people import own_memory
from composer.people.own_memory import (
    MAX_MAPPED,
    SHELVES,
    ItemDetails,
    MappedItem,
    OwnItems,
    PlacedItem,
    forget_preview,
    own_days,
    own_filter,
    own_item,
    own_items,
    own_map,
)
from composer.repositories.entries import Entry, EntryVersion
from composer.repositories.ordering import Order
from composer.repositories.own_data import WAITING, OwnFilter
from composer.repositories.teams import Team
from composer.text.cleaning import shorten
from composer.text.moments import FIRST_YEAR
from composer.visibility import may_see_teams

PAGE_ITEMS: Final = 50
LISTED_POINTS: Final = 60  # of the map, beside it
FEW_POINTS: Final = 300  # fewer are drawn larger, with all that is shown of their texts
TITLE_CHARS: Final = 36
PLACE_COLOURS: Final = 7  # the other places have one colour
MAP_SIZE: Final = (940, 580)  # the width and the height of the plane on which points lie
MAP_BORDER: Final = 30
# An item on the map: its id, what is shown of it there, and where its middle is drawn, from the left and the top.
Drawn = tuple[uuid.UUID, str, int, int]
router = PageRouter(MEMORY)


@dataclass(frozen=True, slots=True)
class ShownItem:
    """One item with all that its card shows. `entry`: it as an entry of the person's own, which can be changed (None:
    it is none), with its `versions`; `teams`: those that it can be shared with; `purge_at`: when it is erased, as it is
    in the trash."""

    about: ItemDetails
    entry: Entry | None
    versions: Sequence[EntryVersion]
    teams: Sequence[Team]
    purge_at: datetime | None


@dataclass(frozen=True, slots=True)
class Bar:
    """A day of the timeline: how much of each shelf was learnt on it, as parts of the height of a bar (0 to 100) from
    the bottom up. `is_whole`: all of the day was counted."""

    day: date
    count: int
    is_whole: bool
    parts: Sequence[tuple[str, float, float]]


@dataclass(frozen=True, slots=True)
class Point:
    """An item in the list beside the map. `group`: what has its colour."""

    id: uuid.UUID
    text: str
    group: str


@router.get("")
async def show_memory(
    request: Request, viewer: SignedIn, wanted: Wanting, item: uuid.UUID | None = None, *, quiet: bool = False
) -> Response:
    """The list; for a script that asks for its rows alone, these. `quiet`: they are asked for again, and the address
    stays."""
    async with viewer.reading() as reading:
        rows_only = is_script(request)
        values = await _list(viewer, reading, wanted, with_totals=not rows_only)
        if not rows_only:
            values["detail"] = None if item is None else await details(viewer, reading, item)
    if not rows_only:
        return page(request, "memory.html", viewer.language, **values)
    answer = page(request, "parts/memory_rows.html", viewer.language, **values)
    if wanted.cursor is None and not quiet:
        answer.headers["HX-Push-Url"] = wanted.address()
    return answer


@router.get("/timeline")
async def show_timeline(
    request: Request, viewer: SignedIn, wanted: Wanting, month: Annotated[str, Query(max_length=7)] = ""
) -> Response:
    """What was learnt in a month, by day."""
    async with viewer.reading() as reading:
        today = viewer.call.now.astimezone(reading.chrome.zone).date()
        first = _first_of(month or wanted.since[:7], today)
        last = _month_after(first) - timedelta(days=1)
        whole = replace(wanted, since=first.isoformat(), until=last.isoformat())
        wanted = wanted if whole.since <= wanted.since <= wanted.until <= whole.until else whole
        values = await _list(viewer, reading, wanted)
        chosen = await _filter(viewer, reading, whole, own_memory.MAX_READ)
        days = await own_days(reading.tx, reading.owned, chosen, reading.chrome.zone, viewer.call.now)
    if is_script(request):
        return page(request, "parts/memory_rows.html", viewer.language, **values)
    counts, since = days.counts, None if days.since is None else days.since.astimezone(reading.chrome.zone).date()
    most = max((sum(each.values()) for each in counts.values()), default=0)
    shown_days = [first + timedelta(days=n) for n in range(last.day)]
    bars = [_bar(each, counts.get(each, {}), most, since) for each in shown_days]
    values |= {
        "bars": bars,
        "first": first,
        "total": sum(each.count for each in bars),
        "since": since,
        "before": _month_after(first - timedelta(days=40)),
        "after": _month_after(first) if last < today else None,
        "shelf_counts": {shelf: sum(each.get(shelf, 0) for each in counts.values()) for shelf in (*SHELVES, WAITING)},
    }
    return page(request, "memory_timeline.html", viewer.language, **values)


@router.get("/map")
async def show_map(
    request: Request, viewer: SignedIn, wanted: Wanting, colour: Annotated[str, Query(max_length=10)] = "kind"
) -> Response:
    """What is remembered, by what it means: what means the same is near."""
    by_place = colour == "place"
    async with viewer.reading() as reading:
        chosen = await _filter(viewer, reading, wanted)
        points = await own_map(reading.tx, reading.owned, chosen, viewer.call.now, reading.presence)
    few = len(points) < FEW_POINTS
    counts = Counter(each.place.name if by_place else each.shelf for each in points)
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    groups = {name: str(min(n, PLACE_COLOURS)) if by_place else name for n, name in enumerate(ranked)}
    of_points = [groups[each.place.name if by_place else each.shelf] for each in points]
    drawn: dict[str, list[Drawn]] = {group: [] for group in sorted(groups.values())}
    for group, each in zip(of_points, points, strict=True):
        drawn[group].append(_drawn(each, few=few))
    values: dict[str, Any] = {
        "chrome": reading.chrome,
        "now": viewer.call.now,
        "wanted": wanted,
        "points": [Point(each.id, each.text, of_points[n]) for n, each in enumerate(points[:LISTED_POINTS])],
        "count": len(points),
        "drawn": drawn,
        "few": few,
        "by_place": by_place,
        "groups": groups,
        "counts": counts,
        "named": {each.place.name: each.place for each in points},
        "most": MAX_MAPPED,
    }
    return page(request, "memory_map.html", viewer.language, **values)


@router.get("/add")
async def show_adding(request: Request, viewer: SignedIn) -> Response:
    """A form for something new."""
    async with viewer.reading() as reading:
        values: dict[str, Any] = {"chrome": reading.chrome, "teams": await _teams(reading)}
    return shown(request, viewer, "memory_add", values)


@router.get("/{id}")
async def show_item(request: Request, viewer: SignedIn, id: uuid.UUID, wanted: Wanting) -> Response:
    """One item: beside the list, or for a script alone."""
    if not is_script(request):
        return await show_memory(request, viewer, wanted, id)
    async with viewer.reading() as reading:
        values: dict[str, Any] = {"chrome": reading.chrome, "wanted": wanted}
        values["detail"] = await details(viewer, reading, id)
    return page(request, "parts/memory_item.html", viewer.language, now=viewer.call.now, **values)


@router.get("/{id}/forget")
async def show_forgetting(request: Request, viewer: SignedIn, id: uuid.UUID) -> Response:
    """What forgetting an item erases with it, before it does."""
    async with viewer.reading() as reading:
        detail = await own_item(reading.tx, reading.owned, id, viewer.call.now, reading.presence)
        preview = await forget_preview(reading.tx, reading.owned, detail)
        values: dict[str, Any] = {"chrome": reading.chrome, "detail": detail, "preview": preview}
    return shown(request, viewer, "memory_forget", values)


def shown(request: Request, viewer: Viewer, name: str, values: dict[str, Any]) -> Response:
    """A part beside the list for a script, else a page of its own."""
    template = f"parts/{name}.html" if is_script(request) else "memory_one.html"
    return page(request, template, viewer.language, now=viewer.call.now, part=f"parts/{name}.html", **values)


async def details(viewer: Viewer, reading: Reading, id: uuid.UUID) -> ShownItem:
    """One item with all that its card shows. Raises NotFound."""
    about = await own_item(reading.tx, reading.owned, id, viewer.call.now, reading.presence)
    access = reading.access
    erased = purge_at(about.item.trashed_at, access)
    if not about.is_entry:
        return ShownItem(about, None, (), (), erased)
    entry = await listing.get(reading.tx, access, id, viewer.call.now)
    versions = await listing.versions(reading.tx, access, id, viewer.call.now) if entry.version > 1 else ()
    return ShownItem(about, entry, versions, await _teams(reading), erased)


async def _teams(reading: Reading) -> Sequence[Team]:
    return await reading.tx.teams.find_for(reading.access.users) if may_see_teams(reading.access) else ()


async def _filter(viewer: Viewer, reading: Reading, wanted: WantedMemory, most: int | None = None) -> OwnFilter:
    return await own_filter(
        reading.tx,
        reading.owned,
        replace(wanted.filter(reading.chrome.zone), order=Order.NEWEST, most=most),
        viewer.call.now,
        reading.presence,
        place=wanted.place or None,
        project=wanted.project or None,
    )


async def _list(viewer: Viewer, reading: Reading, wanted: WantedMemory, *, with_totals: bool = False) -> dict[str, Any]:
    now = viewer.call.now
    found = await own_items(
        reading.tx,
        reading.owned,
        wanted.filter(reading.chrome.zone),
        wanted.cursor,
        PAGE_ITEMS,
        now,
        reading.presence,
        place=wanted.place or None,
        project=wanted.project or None,
        with_totals=with_totals,
    )
    dates = Dates(viewer.language, reading.chrome.zone, now)
    return {
        "chrome": reading.chrome,
        "now": now,
        "wanted": wanted,
        "found": found,
        "totals": found.totals,
        "days": _by_day(found, dates, wanted.order),
        "shelves": SHELVES,
        "teams": await _teams(reading) if wanted.is_table else (),
        "purges": {
            each.item.id: purge_at(each.item.trashed_at, reading.access)
            for each in found.items
            if each.item.trashed_at is not None
        },
    }


def _by_day(found: OwnItems, dates: Dates, order: Order) -> list[tuple[str, list[PlacedItem]]]:
    """The items with the day that each group of them is of in this order, in words ("" for what was never used)."""

    def day(placed: PlacedItem) -> str:
        at = placed.item.used_at if order.by == "used" else placed.item.sorted_at
        return "" if at is None else dates.day(at)

    return [(day, list(items)) for day, items in groupby(found.items, day)]


def _bar(day: date, counts: Any, most: int, since: date | None) -> Bar:
    parts, bottom = [], 0.0
    for shelf in (*SHELVES, WAITING):
        height = 100 * counts.get(shelf, 0) / most if most else 0
        if height:
            bottom += height
            parts.append((shelf, round(100 - bottom, 2), round(height, 2)))
    return Bar(day, sum(counts.values()), since is None or day > since, parts)


def _drawn(item: MappedItem, *, few: bool) -> Drawn:
    width, height = MAP_SIZE
    x, y = MAP_BORDER + width * item.x, MAP_BORDER + height * (1 - item.y)
    return item.id, item.text if few else shorten(item.text, TITLE_CHARS), round(x), round(y)


def _first_of(month: str, today: date) -> date:
    """The first day of a month (`2026-11`); of the present one for what is none, is to come, or is too long ago
    for anything to be stored of it."""
    try:
        found = date.fromisoformat(f"{month}-01")
    except ValueError:
        found = today
    return (found if found.year >= FIRST_YEAR and found < today else today).replace(day=1)


def _month_after(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
