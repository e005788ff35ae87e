"""`/v1/memory`: all that is remembered of a person, for that person: in entries, rooms, DMs and sessions.

It needs all that `/v1/export` needs, since it shows the same.
"""

import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from bot.web.call import ApiCall, Calling
from bot.web.entry_pages import SORTED, Text, Words
from bot.web.json_answer import json_answer
from bot.web.links import message_link
from bot.web.metering import counts_as
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.routes.exchange import ALL_OF_A_PERSON
from bot.web.shapes.entries import purge_at
from bot.web.shapes.values import AskedMoment
from composer.entries.tools import require_known
from composer.errors import BadInput
from composer.people.own_memory import (
    MAX_MAPPED,
    NO_TOOLS,
    TRASH,
    PlacedItem,
    own_days,
    own_filter,
    own_item,
    own_items,
    own_map,
    own_totals,
)
from composer.people.places import LEFT_ROOM
from composer.ports.memberships import Presence
from composer.repositories.database import Transaction
from composer.repositories.operations import Operation
from composer.repositories.ordering import Order
from composer.repositories.own_data import OwnFilter, OwnTrace
from composer.repositories.tool_reads import ReadRoute
from composer.text.zones import zone_named
from composer.visibility import EntryAccess, Owned, owned_by_bearer

router = Router("/v1/memory", tags=["person"])
MAX_MEMORY_PAGE: Final = 100
MAX_MEMORY_WORDS: Final = 8
COUNTED: Final = ("shelves", "tools", "authors", "tags", "places", "projects")
UNKNOWN_ZONE: Final = "A time zone is named like Europe/Berlin, or UTC."
Shelf = Literal["preferences", "facts", "notes", "decisions", "waiting", "trash"]


class MemoryItem(BaseModel):
    """Something that is remembered of the person. `shelf` and `label` say what it is, `place` and `project` where it is
    filed, `origin` which tool wrote it, or how else it came. `pending`: it waits for approval. `purge_at`: when it is
    erased for good, as it is in the trash."""

    id: uuid.UUID
    kind: str
    shelf: Shelf
    label: str
    text: str
    tags: list[str]
    place: str
    project: str
    author: str
    origin: str
    pending: bool
    created_at: datetime
    updated_at: datetime
    trashed_at: datetime | None
    purge_at: datetime | None


class MemoryList(BaseModel):
    """Items in the order that was asked for. `next` is the cursor of the next page; null after the last. A page looks
    through 10,000 memories: where few of them fit it has fewer items than were asked for, or none, and a `next`."""

    items: list[MemoryItem]
    next: str | None


class LabelCount(BaseModel):
    """How many items have a label."""

    name: str
    count: int


class MemoryLabels(BaseModel):
    """How many items are on each shelf, and of those on shelves how many each tool and person wrote, have each tag, and
    are filed in each place and project. Of each kind the 200 with most. `at_least`: of a person with more than 10,000
    memories the latest 10,000 are counted, so that there may be more with each label."""

    shelves: list[LabelCount]
    tools: list[LabelCount]
    authors: list[LabelCount]
    tags: list[LabelCount]
    places: list[LabelCount]
    projects: list[LabelCount]
    at_least: bool


class MemoryDay(BaseModel):
    """How many items were written on a day, by shelf."""

    day: date
    shelves: dict[str, int]


class MemoryDays(BaseModel):
    """The days on which something was written, the earliest first."""

    items: list[MemoryDay]


class MemoryPoint(BaseModel):
    """Where an item lies on the map, from 0 to 1 in both directions; `text` is its beginning."""

    id: uuid.UUID
    shelf: Shelf
    text: str
    place: str
    created_at: datetime
    x: float
    y: float


class MemoryMap(BaseModel):
    """The latest items by their meaning: what means the same is near. What has no vector is not there."""

    items: Annotated[list[MemoryPoint], Field(max_length=MAX_MAPPED)]


class MemoryReader(BaseModel):
    """Who can, or can't (`may`), be answered from an item now, and why: sentences with names filled in."""

    may: bool
    who: str
    why: str


class MemoryTrace(BaseModel):
    """A message that an item was made from, or a question whose answer used it. `asker` is empty: the person.
    `uploaded_by`: the admin from whose file the message came (empty: from none). `link` leads to it on Discord or
    Slack; null where it has none, or the person may not enter its place."""

    at: datetime
    text: str
    place: str
    asker: str
    uploaded_by: str
    link: str | None


class MemoryRead(BaseModel):
    """When a tool of the person was last handed an item out: over the API, over MCP, or put into a request by the
    gateway."""

    tool: str
    route: ReadRoute
    at: datetime


class MemoryDetails(MemoryItem):
    """One item, who can be answered from it now and why, the person's own messages that it was made from, the answers
    that used it (to the person, and in rooms that they may read), and which tools of the person read it in 30 days."""

    readers: list[MemoryReader]
    sources: list[MemoryTrace]
    uses: list[MemoryTrace]
    reads: list[MemoryRead]


@dataclass(frozen=True, slots=True)
class _WantedItems:
    """What of a person's memory is asked for."""

    filter: OwnFilter
    place: str | None
    project: str | None


async def _wanted(
    shelf: Shelf | None = None,
    tool: Annotated[Words | None, Query(description="Written by any of these tools.")] = None,
    author: Annotated[Words | None, Query(description="Written by any of these people.")] = None,
    tag: Annotated[Words | None, Query(description="All of these tags.")] = None,
    place: Annotated[Text | None, Query(description="Filed there, by its name in the labels.")] = None,
    project: Annotated[Text | None, Query(description="Filed in this project, by its name in the labels.")] = None,
    q: Annotated[Text | None, Query(description="Words that all stand in it.")] = None,
    since: Annotated[AskedMoment | None, Query(description="Written at this time or later.")] = None,
    before: Annotated[AskedMoment | None, Query(description="Written before this time.")] = None,
) -> _WantedItems:
    found = OwnFilter(
        shelf=None if shelf == TRASH else shelf,
        origins=None if tool is None else tuple(tool),
        authors=None if author is None else tuple(author),
        tags=tuple(tag or ()),
        words=tuple((q or "").split()[:MAX_MEMORY_WORDS]),
        since=since,
        until=before,
        trashed=shelf == TRASH,
    )
    return _WantedItems(found, place, project)


Listed = Annotated[_WantedItems, Depends(_wanted)]


@router.get("", summary="List one's memory", response_model=MemoryList, responses=documented(400, 401, 403, 422))
@counts_as(Operation.READS)
async def list_memory(
    call: Calling,
    asked: Listed,
    sort: Annotated[Order, Query(description=SORTED)] = Order.NEWEST,
    limit: Annotated[int, Query(ge=1, le=MAX_MEMORY_PAGE)] = 20,
    cursor: Annotated[Text | None, Query(description="`next` of the page before.")] = None,
) -> Response:
    """All that is remembered of the person, wherever it is filed: in entries, rooms, DMs and sessions."""
    async with _own(call) as (tx, access, owned, presence):
        wanted, place, project = replace(asked.filter, order=sort), asked.place, asked.project
        found = await own_items(tx, owned, wanted, cursor, limit, call.now, presence, place=place, project=project)
        named = {*(wanted.origins or ())} - {each.item.origin for each in found.items} - NO_TOOLS
        await require_known(tx, access, named, call.now)
    items = [item_values(each, access) for each in found.items]
    return json_answer({"items": items, "next": found.next})


@router.get("/labels", summary="Count one's memory", response_model=MemoryLabels, responses=documented(401, 403, 422))
@counts_as(Operation.READS)
async def memory_labels(call: Calling) -> Response:
    """What a list can be narrowed down to, with how many items each has."""
    async with _own(call) as (tx, _, owned, presence):
        found = await own_totals(tx, owned, call.now, presence)
    counts = {name: _counts(getattr(found, name)) for name in COUNTED}
    return json_answer(counts | {"at_least": found.at_least})


@router.get(
    "/days", summary="Count one's memory by day", response_model=MemoryDays, responses=documented(400, 401, 403, 422)
)
@counts_as(Operation.READS)
async def memory_days(
    call: Calling, asked: Listed, zone: Annotated[Text | None, Query(description="Whose days: UTC.")] = None
) -> Response:
    """How much was learnt on each day."""
    async with _own(call) as (tx, _, owned, presence):
        wanted = await _filter(tx, owned, asked, call.now, presence)
        days = await own_days(tx, owned, wanted, _zone(zone), call.now)
    return json_answer({"items": [{"day": day, "shelves": dict(counts)} for day, counts in days.counts.items()]})


@router.get("/map", summary="Map one's memory", response_model=MemoryMap, responses=documented(400, 401, 403, 422))
@counts_as(Operation.READS)
async def memory_map(call: Calling, asked: Listed) -> Response:
    """The latest 400 of what is wanted in two dimensions, by what they mean. Where each lies depends on these."""
    async with _own(call) as (tx, _, owned, presence):
        wanted = await _filter(tx, owned, asked, call.now, presence)
        found = await own_map(tx, owned, wanted, call.now, presence)
    items = [
        {
            "id": each.id,
            "shelf": each.shelf,
            "text": each.text,
            "place": each.place.name,
            "created_at": each.at,
            "x": each.x,
            "y": each.y,
        }
        for each in found
    ]
    return json_answer({"items": items})


@router.get(
    "/{id}", summary="Get one of one's memory", response_model=MemoryDetails, responses=documented(401, 403, 404, 422)
)
@counts_as(Operation.READS)
async def get_memory(call: Calling, id: uuid.UUID) -> Response:
    """One item, also in the trash, with who can be answered from it and why, where it came from, and what used it."""
    async with _own(call) as (tx, access, owned, presence):
        found = await own_item(tx, owned, id, call.now, presence)
    readers = [{"may": each.may, "who": each.who % each.names, "why": each.why % each.names} for each in found.readers]
    values = item_values(PlacedItem(found.item, found.place), access)
    return json_answer(
        {
            **values,
            "readers": readers,
            "sources": [_trace(each) for each in found.sources],
            "uses": [_trace(each) for each in found.answers],
            "reads": [{"tool": each.vendor, "route": each.route, "at": each.at} for each in found.reads],
        }
    )


def item_values(placed: PlacedItem, access: EntryAccess) -> dict[str, Any]:
    """An item as MemoryItem shows it."""
    item = placed.item
    return {
        "id": item.id,
        "kind": item.kind,
        "shelf": TRASH if item.trashed_at is not None else item.shelf,
        "label": item.label,
        "text": item.text,
        "tags": list(item.tags),
        "place": placed.place.name,
        "project": placed.place.project,
        "author": item.author,
        "origin": item.origin,
        "pending": item.pending,
        "created_at": item.at,
        "updated_at": item.updated_at,
        "trashed_at": item.trashed_at,
        "purge_at": purge_at(item.trashed_at, access),
    }


def _trace(trace: OwnTrace) -> dict[str, Any]:
    asker = "" if trace.own else trace.asker
    place, by = trace.place or LEFT_ROOM, trace.uploaded_by
    found = {"at": trace.at, "text": trace.text, "place": place, "asker": asker, "uploaded_by": by}
    return found | {"link": message_link(trace.address)}


def _counts(found: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "count": count} for name, count in found.items()]


def _zone(name: str | None) -> tzinfo:
    found = zone_named("UTC" if name is None else name)
    if found is None:
        raise BadInput(UNKNOWN_ZONE)
    return found


async def _filter(tx: Transaction, owned: Owned, asked: _WantedItems, now: datetime, presence: Presence) -> OwnFilter:
    return await own_filter(tx, owned, asked.filter, now, presence, place=asked.place, project=asked.project)


@asynccontextmanager
async def _own(call: ApiCall) -> AsyncIterator[tuple[Transaction, EntryAccess, Owned, Presence]]:
    for permission in ALL_OF_A_PERSON:
        call.principal.require(permission)
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)
    async with call.reading() as (tx, access):
        yield tx, access, owned_by_bearer(access), presence
