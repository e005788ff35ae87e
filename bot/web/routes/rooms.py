"""`/v1/rooms`: the rooms that a person is in, and what is remembered there. For the person who is signed in: no key
opens a room."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Response
from pydantic import BaseModel, Field

from bot.web.call import IS_REPLAYED, ONCE, ApiCall, Calling
from bot.web.json_answer import json_answer
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.settling import settled_decision
from bot.web.shapes.entries import RequestBody
from bot.web.shapes.remembered import (
    DecisionList,
    DecisionResponse,
    DecisionUpdate,
    FactList,
    decision_list,
    fact_list,
)
from bot.web.shapes.values import Count, Flag
from composer.errors import Refused
from composer.people import decisions, remembered, rooms
from composer.people.credentials.principal import Source
from composer.people.projects.rooms import do_move, move
from composer.people.rooms import RoomOfPerson
from composer.people.rooms_in_dms import DmRooms, dm_rooms, set_dm_rooms
from composer.repositories.database import Transaction
from composer.repositories.digests import Digest, DigestPeriod
from composer.rights.table import Act, judge
from composer.text.moments import known_day, moment
from composer.turn.scheduled.digests import DEFAULT_HOUR, set_digest
from composer.visibility import EntryAccess, Readable

NO_KEY: Final = "Rooms are for the person who is signed in in a browser: no key opens one."


class RemembersResponse(BaseModel):
    """How much a room remembers now: decisions that hold and proposed ones, facts, memories, and summaries of days and
    weeks."""

    decisions: int
    proposals: int
    facts: int
    memories: int
    days: int
    weeks: int


class RoomResponse(BaseModel):
    """A room that the person is in. `recording`: which of its messages are stored. `project`: the id of its project;
    `pooled`: what is said here is recalled in all of that; `isolated`: nothing of that is used outside it. `last_at`:
    the time of the latest that it remembers but summaries."""

    id: uuid.UUID
    name: str
    private: bool
    platform: str
    recording: Literal["on", "mentions", "off"]
    project: uuid.UUID | None
    project_name: str | None
    pooled: bool
    isolated: bool
    remembers: RemembersResponse
    last_at: datetime | None


class RoomList(BaseModel):
    """Rooms, by name."""

    items: list[RoomResponse]


class RoomDayResponse(BaseModel):
    """A day in a room: how many messages of people are stored of it, and its summary (null: there is none)."""

    day: date
    messages: int
    summary: str | None


class RoomWeekResponse(BaseModel):
    """A week, from its Monday on, and its summary (null: there is none)."""

    monday: date
    days: list[RoomDayResponse]
    summary: str | None


class RoomMonth(BaseModel):
    """The weeks of a month, oldest first, with its days."""

    items: list[RoomWeekResponse]


class RoomMessage(BaseModel):
    """What somebody said in a room. `uploaded_by`: the admin from whose file it came (empty: from none)."""

    id: uuid.UUID
    author: str
    text: str
    at: datetime
    uploaded_by: str


class RoomMessageList(BaseModel):
    """Messages, oldest first."""

    items: list[RoomMessage]


class RoomMember(BaseModel):
    """Somebody who is in a room, by one of their accounts. `admin`: as the chat platform says, of the person who asks
    alone; elsewhere who opened the room. `own`: the person who asks."""

    id: uuid.UUID
    name: str
    admin: bool
    own: bool


class RoomAgent(BaseModel):
    """An agent that can be asked in a room."""

    slug: str
    name: str


class RoomMembers(BaseModel):
    """People, by name, and apart from them the agents. `total`: how many people there are (0 past the last page);
    `next`: the number of the next page, null: there is none."""

    items: list[RoomMember]
    agents: list[RoomAgent]
    total: int
    next: int | None


class DigestResponse(BaseModel):
    """The summary that is posted to a room: of the day before, or of the week before on Mondays, at an `hour` of the
    workspace's time zone, and next at `next_at`. Null where none is."""

    period: DigestPeriod | None
    hour: Annotated[int, Field(ge=0, le=23)] | None
    next_at: datetime | None


class DigestUpdate(RequestBody):
    """How often a summary is to be posted, null: never, and at which hour of the workspace's time zone."""

    period: DigestPeriod | None
    hour: Annotated[Count, Field(ge=0, le=23)] = DEFAULT_HOUR


class RoomProject(RequestBody):
    """The project that a room is put into. `pool`: of a private room, everyone in it recalls what is said there."""

    project: uuid.UUID
    pool: Flag = False


class DmRoomsResponse(BaseModel):
    """One of the person's accounts, and whether its DMs with agents recall the rooms that the person is in."""

    account: uuid.UUID
    name: str
    platforms: list[str]
    on: bool


class DmRoomsList(BaseModel):
    """The person's accounts."""

    items: list[DmRoomsResponse]


class DmRoomsUpdate(RequestBody):
    """Whether the DMs of an account of one's own recall the rooms that one is in."""

    account: uuid.UUID
    on: Flag


@dataclass(frozen=True, slots=True)
class _RoomReading:
    """A room that is read: the transaction, who reads, the room, and what may be read in it."""

    tx: Transaction
    access: EntryAccess
    room: RoomOfPerson
    readable: Readable


router = Router("/v1/rooms", tags=["rooms"])
consent = Router("/v1/settings/rooms", tags=["rooms"])
_DONE: Final = documented(401, 403, 404, 422)
_MOVED: Final = documented(401, 403, 404, 409, 410, 422)
_Confirm = Annotated[bool, Query(description="Without it nothing changes, and 409 says what would happen.")]


def require_signed_in(call: ApiCall) -> None:
    """Return if the person is signed in in a browser. Raises Refused for a key."""
    if call.principal.source is not Source.WEB_SESSION:
        raise Refused(NO_KEY)


@asynccontextmanager
async def _reading(call: ApiCall, id: uuid.UUID) -> AsyncIterator[_RoomReading]:
    require_signed_in(call)
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)
    async with call.reading() as (tx, access):
        room, readable = await rooms.room_of(tx, access, id, presence, call.now)
        yield _RoomReading(tx, access, room, readable)


@router.get("", summary="List rooms", response_class=Response, responses={200: {"model": RoomList}, **_DONE})
async def list_rooms(call: Calling) -> Response:
    """The rooms that the person is in, with how much each remembers."""
    require_signed_in(call)
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)
    async with call.reading() as (tx, access):
        found = await rooms.rooms_of(tx, access, presence, call.now)
    return json_answer({"items": [_room(each) for each in found]})


@router.get("/{id}", summary="Get a room", response_class=Response, responses={200: {"model": RoomResponse}, **_DONE})
async def get_room(call: Calling, id: uuid.UUID) -> Response:
    """One of the rooms that the person is in."""
    async with _reading(call, id) as shown:
        return json_answer(_room(shown.room))


@router.get(
    "/{id}/facts",
    summary="List the facts of a room",
    response_class=Response,
    responses={200: {"model": FactList}, **_DONE},
)
async def list_room_facts(
    call: Calling,
    id: uuid.UUID,
    on: Annotated[datetime | None, Query(description="As they held at this time; by default now.")] = None,
    history: Annotated[
        str | None, Query(min_length=1, max_length=200, description="All values that this key has had, instead.")
    ] = None,
) -> Response:
    """Those that were set in the room."""
    async with _reading(call, id) as shown:
        if history is not None:
            return json_answer(
                fact_list(await remembered.fact_history(shown.tx, shown.access, shown.readable, history))
            )
        at = call.now if on is None else moment(on)
        return json_answer(fact_list(await remembered.facts_of(shown.tx, shown.access, shown.readable, at)))


@router.get(
    "/{id}/landmarks",
    summary="List the decisions of a room",
    response_class=Response,
    responses={200: {"model": DecisionList}, **_DONE},
)
async def list_room_decisions(call: Calling, id: uuid.UUID) -> Response:
    """Those that were pinned or found in the room."""
    async with _reading(call, id) as shown:
        board = await remembered.decisions_of(shown.tx, shown.access, shown.readable, call.now)
        sources = await decisions.messages_of(
            shown.tx, shown.access, shown.readable, (each.landmark for each in board.all)
        )
    return json_answer(decision_list(board, sources))


@router.patch(
    "/{id}/landmarks/{landmark}",
    summary="Accept, amend or retire a decision of a room",
    response_class=Response,
    responses={200: {"model": DecisionResponse, "headers": ONCE}, **_DONE, **documented(400, 409, 410)},
)
async def settle_room_decision(call: Calling, id: uuid.UUID, landmark: uuid.UUID, sent: DecisionUpdate) -> Response:
    """Whoever is in the room accepts or rejects what is proposed; what holds, who pinned it amends and retires, and who
    opened a room that is on no chat platform. An amended one stays in the history, and its new version is answered."""
    require_signed_in(call)
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)

    async def place(tx: Transaction, access: EntryAccess) -> decisions.DecidingIn:
        quarantine = call.app.directory.quarantine(access.tenant_id)
        return await decisions.in_room(tx, access, id, presence, quarantine, call.now)

    return await settled_decision(call, place, landmark, sent)


@router.get(
    "/{id}/days",
    summary="Show a month of a room",
    response_class=Response,
    responses={200: {"model": RoomMonth}, **_DONE},
)
async def show_room_month(
    call: Calling, id: uuid.UUID, month: Annotated[date, Query(description="Any day of the month.")]
) -> Response:
    """Its weeks and days, with their summaries. Days are those of the workspace's time zone."""
    zone = call.app.directory.zone(call.principal.tenant_id)
    async with _reading(call, id) as shown:
        weeks = await rooms.room_month(shown.tx, shown.readable, id, known_day(month), zone)
    items = [
        {
            "monday": week.monday,
            "days": [{"day": d.day, "messages": d.messages, "summary": d.summary} for d in week.days],
            "summary": week.summary,
        }
        for week in weeks
    ]
    return json_answer({"items": items})


@router.get(
    "/{id}/messages",
    summary="List what was said in a room on a day",
    response_class=Response,
    responses={200: {"model": RoomMessageList}, **_DONE},
)
async def list_room_messages(call: Calling, id: uuid.UUID, day: date) -> Response:
    """What people said, oldest first; of more than 200 messages the latest. Those of people who opted out, and the
    agents', are left out."""
    zone = call.app.directory.zone(call.principal.tenant_id)
    async with _reading(call, id) as shown:
        found = await rooms.room_messages(shown.tx, shown.access, shown.readable, id, known_day(day), zone)
    items = [{"id": m.id, "author": m.author, "text": m.text, "at": m.at, "uploaded_by": by} for m, by in found]
    return json_answer({"items": items})


@router.get(
    "/{id}/members",
    summary="List who is in a room",
    response_class=Response,
    responses={200: {"model": RoomMembers}, **_DONE},
)
async def list_room_members(call: Calling, id: uuid.UUID, page: Annotated[int, Query(ge=1, le=1_000)] = 1) -> Response:
    """Those who wrote or joined there, and have not left as far as Nexus was told; 50 a page."""
    async with _reading(call, id) as shown:
        found = await rooms.room_people(shown.tx, shown.access, shown.room, page)
    people = [{"id": each.id, "name": each.called, "admin": each.admin, "own": each.own} for each in found.people]
    agents = [{"slug": each.slug, "name": each.name} for each in call.app.directory.agents(call.principal.tenant_id)]
    return json_answer({"items": people, "agents": agents, "total": found.total, "next": found.next})


@router.get(
    "/{id}/digest",
    summary="Show the digest of a room",
    response_class=Response,
    responses={200: {"model": DigestResponse}, **_DONE},
)
async def show_room_digest(call: Calling, id: uuid.UUID) -> Response:
    """Whether a summary of it is posted to it, and when."""
    async with _reading(call, id) as shown:
        found = await shown.tx.digests.get(shown.room.id)
    return json_answer(_digest(found))


@router.put(
    "/{id}/digest",
    summary="Set the digest of a room",
    response_class=Response,
    responses={200: {"model": DigestResponse, "headers": ONCE}, **_DONE, **documented(400, 409, 410)},
)
async def set_room_digest(call: Calling, id: uuid.UUID, sent: DigestUpdate) -> Response:
    """As `/nexus digest` does in the room, for its admins."""
    require_signed_in(call)
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)

    async def change(tx: Transaction, access: EntryAccess) -> Digest | None:
        directory, tenant = call.app.directory, access.tenant_id
        place = await decisions.in_room(tx, access, id, presence, directory.quarantine(tenant), call.now)
        judge((Act.SET_DIGEST,), place.facts)
        await set_digest(tx, id, sent.period, sent.hour, call.now, directory.zone(tenant))
        return await tx.digests.get(id)

    async def shown(tx: Transaction, access: EntryAccess) -> Digest | None:
        room, _ = await rooms.room_of(tx, access, id, presence, call.now)
        return await tx.digests.get(room.id)

    found, repeated = await call.change(change, shown)
    return json_answer(_digest(found), headers=IS_REPLAYED if repeated else None)


@router.put(
    "/{id}/project",
    summary="Put a room into a project",
    response_class=Response,
    status_code=204,
    responses=_MOVED,
)
async def put_room_into_project(call: Calling, id: uuid.UUID, sent: RoomProject, confirm: _Confirm = False) -> None:
    """As `/nexus project assign` does in the room, for its admins who may write in the project. With `pool` the project
    recalls what is said in a private room, too. Without `confirm` 409 says who would read what."""
    await _move(call, id, sent.project, pooled=sent.pool, confirmed=confirm)


@router.delete(
    "/{id}/project",
    summary="Take a room out of its project",
    response_class=Response,
    status_code=204,
    responses=_MOVED,
)
async def take_room_out_of_project(call: Calling, id: uuid.UUID, confirm: _Confirm = False) -> None:
    """As `/nexus project unassign` does in the room, for its admins and those of the project. Without `confirm` 409
    says what stays where."""
    await _move(call, id, None, pooled=False, confirmed=confirm)


async def _move(call: ApiCall, id: uuid.UUID, to: uuid.UUID | None, *, pooled: bool, confirmed: bool) -> None:
    require_signed_in(call)
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)

    async def change(tx: Transaction, access: EntryAccess) -> None:
        await do_move(tx, access, await move(tx, access, id, to, presence, pooled=pooled), confirmed=confirmed)

    await call.act(change, alone=True)


@consent.get(
    "",
    summary="Show whether DMs recall rooms",
    response_class=Response,
    responses={200: {"model": DmRoomsList}, **documented(401, 403)},
)
async def show_dm_rooms(call: Calling) -> Response:
    """For each of the person's accounts."""
    require_signed_in(call)
    async with call.reading() as (tx, access):
        return json_answer({"items": [_account(each) for each in await dm_rooms(tx, access)]})


@consent.put("", summary="Set whether DMs recall rooms", status_code=204, responses=documented(400, 401, 403, 404, 422))
async def change_dm_rooms(call: Calling, sent: DmRoomsUpdate) -> None:
    """As `/nexus rooms on` and `off` do in a DM. Nobody else sees more by that."""
    require_signed_in(call)

    async def change(tx: Transaction, access: EntryAccess) -> None:
        await set_dm_rooms(tx, access, sent.account, on=sent.on)

    await call.act(change)


def _room(room: RoomOfPerson) -> dict[str, Any]:
    counts = room.counts
    return {
        "id": room.id,
        "name": room.name,
        "private": room.private,
        "platform": room.platform,
        "recording": str(room.recording),
        "project": room.project_id,
        "project_name": room.project,
        "pooled": room.pooled,
        "isolated": room.isolated,
        "remembers": {
            "decisions": counts.get("decision", 0),
            "proposals": counts.get("proposal", 0),
            "facts": counts.get("fact", 0),
            "memories": counts.get("memory", 0),
            "days": counts.get("day", 0),
            "weeks": counts.get("week", 0),
        },
        "last_at": room.last_at,
    }


def _digest(digest: Digest | None) -> dict[str, Any]:
    if digest is None:
        return {"period": None, "hour": None, "next_at": None}
    return {"period": digest.period, "hour": digest.hour, "next_at": digest.due_at}


def _account(account: DmRooms) -> dict[str, Any]:
    return {"account": account.user, "name": account.name, "platforms": list(account.platforms), "on": account.on}
