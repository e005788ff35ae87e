"""`/rooms`: the rooms and projects that a person is in, and what each room remembers: as a calendar, as a board of
decisions, as a table of facts that held on a day."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.pages.decisions import ActOnDecision, DecidedOn, DecidedThere, NewText, back_to, board_values, settle
from bot.web.pages.rendering import page
from bot.web.pages.viewer import PageRouter, Reading, SignedIn, Viewer
from composer.entries import teams
from composer.errors import BadInput
from composer.people import decisions, remembered, rooms
from composer.people.decisions import DecidingIn, PlaceOfDecisions
from composer.people.known_people import admins_to_ask
from composer.people.projects import projects
from composer.people.projects.rooms import Move, do_move, movable_room, move, moves_of
from composer.people.rooms import RoomOfPerson, RoomWeek
from composer.people.rooms_in_dms import dm_rooms, set_dm_rooms
from composer.text.dates.local_days import end_of_day
from composer.text.moments import day_of, known_day
from composer.visibility import Readable

ROOMS: Final = "/rooms"
ROOM_VIEWS: Final = ("days", "decisions", "facts", "memories", "people")
SHOWN_MEMORIES: Final = 100
router = PageRouter(ROOMS)


@dataclass(frozen=True, slots=True)
class WantedView:
    """What of a room or a project is wanted, as the address of its page says: the view, of facts as they held on a day
    (None: now), the history of one key, a day or a month of the calendar. `path` is the page's."""

    path: str
    view: str
    on: date | None = None
    key: str | None = None
    day: date | None = None
    month: date | None = None

    def address(self, **changed: object) -> str:
        """The address of the same page with something changed."""
        values = {"view": self.view, "on": self.on, "key": self.key, "day": self.day} | changed
        return f"{self.path}?{urlencode({name: str(value) for name, value in values.items() if value})}"


Day = Annotated[str, Query(max_length=10)]
ViewName = Annotated[str, Query(max_length=20)]
FactKey = Annotated[str | None, Query(min_length=1, max_length=200)]


def day_or_none(text: str) -> date | None:
    """The day that a form sends; None where it is empty. Raises BadInput."""
    return day_of(text) if text else None


@router.get("")
async def show_rooms(request: Request, viewer: SignedIn) -> Response:
    """The rooms and projects, with how much each remembers; and who invites to a project."""
    now = viewer.call.now
    async with viewer.reading() as reading:
        tx, access = reading.tx, reading.access
        values: dict[str, Any] = {
            "chrome": reading.chrome,
            "now": now,
            "rooms": await rooms.rooms_of(tx, access, reading.presence, now),
            "projects": await projects.own_projects(tx, access),
            "counts": await remembered.project_counts(tx, access, now),
            "invitations": [each for each in await teams.invites(tx, access, now) if each.project is not None],
            "accounts": await dm_rooms(tx, access),
        }
        alone = not (values["rooms"] or values["projects"])
        values["to_ask"] = await admins_to_ask(tx, access) if alone else ()
    return page(request, "rooms.html", viewer.language, **values)


@router.post("/in-dms")
async def change_dm_rooms(
    viewer: SignedIn, csrf: Annotated[str, Form()], account: Annotated[uuid.UUID, Form()], on: Annotated[bool, Form()]
) -> Response:
    """Set whether the DMs of an account of the person's own recall the rooms that they are in."""
    viewer.require_form(csrf)
    async with viewer.call.writing() as (tx, access):
        await set_dm_rooms(tx, access, account, on=on)
    return RedirectResponse(ROOMS, 303)


@router.get("/{id}")
async def show_room(
    request: Request,
    viewer: SignedIn,
    id: uuid.UUID,
    view: ViewName = "",
    on: Day = "",
    key: FactKey = None,
    day: Day = "",
    month: Day = "",
    page_of_people: Annotated[int, Query(alias="page", ge=1, le=1_000)] = 1,
) -> Response:
    """What one room remembers, who is in it, and who can be answered from it."""
    chosen = view if view in ROOM_VIEWS else ROOM_VIEWS[0]
    wanted = WantedView(f"{ROOMS}/{id}", chosen, day_or_none(on), key, day_or_none(day), day_or_none(month))
    now = viewer.call.now
    async with viewer.reading() as reading:
        room, readable = await rooms.room_of(reading.tx, reading.access, id, reading.presence, now)
        values: dict[str, Any] = {"chrome": reading.chrome, "now": now, "room": room, "wanted": wanted}
        values["moves"] = await _moves(reading, room)
        if chosen == "days":
            values |= await _calendar(viewer, reading, room, readable, wanted)
        elif chosen == "memories":
            values["memories"] = await rooms.room_memories(reading.tx, reading.access, readable, now, SHOWN_MEMORIES)
        elif chosen == "people":
            values["found"] = await rooms.room_people(reading.tx, reading.access, room, page_of_people)
            values["page_number"] = page_of_people
            values["agents"] = viewer.call.app.directory.agents(reading.access.tenant_id)
        elif chosen == "decisions":
            values |= await board_values(viewer, reading, await _deciding(viewer, reading, id))
        else:
            values |= await fact_values(reading, readable, wanted, viewer)
    return page(request, "room.html", viewer.language, **values)


@router.get("/{id}/project")
async def show_moving(request: Request, viewer: SignedIn, id: uuid.UUID, to: uuid.UUID | None = None) -> Response:
    """What it means that a room goes into a project or, with none, out of its own, before it does."""
    async with viewer.reading() as reading:
        wanted = await move(reading.tx, reading.access, id, to, reading.presence)
        may_pool = replace(wanted, pooled=True).allowed
        values: dict[str, Any] = {"chrome": reading.chrome, "room": wanted.room, "into": wanted.facts.named}
    values |= {"may_pool": may_pool and wanted.room.private, "left": wanted.facts.left}
    return page(request, "room_project.html", viewer.language, now=viewer.call.now, **values)


@router.post("/{id}/project")
async def move_room(
    viewer: SignedIn,
    id: uuid.UUID,
    csrf: Annotated[str, Form()],
    to: Annotated[uuid.UUID | None, Form()] = None,
    pooled: Annotated[bool, Form()] = False,
) -> Response:
    """Put a room into a project, or take it out; the page has said what that means."""
    viewer.require_form(csrf)
    call = viewer.call
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)
    async with call.writing(alone=True) as (tx, access):
        await do_move(tx, access, await move(tx, access, id, to, presence, pooled=pooled), confirmed=True)
    return RedirectResponse(ROOMS if to is None else f"/projects/{to}", 303)


@router.post("/{id}/decisions/{landmark}")
async def act_on_decision(
    viewer: SignedIn,
    id: uuid.UUID,
    landmark: uuid.UUID,
    csrf: Annotated[str, Form()],
    act: ActOnDecision,
    text: NewText = "",
    on: DecidedThere = DecidedOn.BOARD,
) -> Response:
    """Accept, amend, or reject and retire a decision of a room."""
    viewer.require_form(csrf)
    call = viewer.call
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)
    async with call.writing() as (tx, access):
        place = await decisions.in_room(tx, access, id, presence, viewer.quarantine, call.now)
        await settle(viewer, tx, access, place, landmark, act, text)
    return back_to(on, PlaceOfDecisions.ROOM, id, act)


async def _moves(reading: Reading, room: RoomOfPerson) -> Sequence[Move]:
    """What the person may do with the room as to projects."""
    if not room.managed and room.project_id is None:
        return ()
    found = await movable_room(reading.tx, reading.access, room.id, reading.presence)
    return () if found is None else await moves_of(reading.tx, reading.access, found)


async def _deciding(viewer: Viewer, reading: Reading, id: uuid.UUID) -> DecidingIn:
    now = viewer.call.now
    return await decisions.in_room(reading.tx, reading.access, id, reading.presence, viewer.quarantine, now)


async def fact_values(reading: Reading, readable: Readable, wanted: WantedView, viewer: Viewer) -> dict[str, Any]:
    """What the view of facts shows of a room or a project."""
    now = viewer.call.now
    at = now if wanted.on is None else end_of_day(wanted.on, viewer.call.app.directory.zone(reading.access.tenant_id))
    history = []
    if wanted.key is not None:
        history = list(reversed(await remembered.fact_history(reading.tx, reading.access, readable, wanted.key)))
    return {"facts": await remembered.facts_of(reading.tx, reading.access, readable, at), "history": history}


async def _calendar(
    viewer: Viewer, reading: Reading, room: RoomOfPerson, readable: Readable, wanted: WantedView
) -> dict[str, Any]:
    """The month of the day that is chosen, or of the month that is: by default of today, with the day."""
    zone = viewer.call.app.directory.zone(reading.access.tenant_id)
    today = viewer.call.now.astimezone(zone).date()
    month = known_day((wanted.day or wanted.month or today).replace(day=1))
    if not date(1970, 2, 1) <= month <= date(2200, 11, 1):
        raise BadInput("The calendar shows months from February 1970 to November 2200.")
    weeks = await rooms.room_month(reading.tx, readable, room.id, month, zone)
    day = wanted.day or (_last_day(weeks) if wanted.month is None else None)
    messages = []
    if day is not None:
        messages = await rooms.room_messages(reading.tx, reading.access, readable, room.id, day, zone)
    following = (month + timedelta(days=32)).replace(day=1)
    return {
        "weeks": weeks,
        "month": month,
        "before": (month - timedelta(days=1)).replace(day=1),
        "after": following if following <= today else None,
        "day": day,
        "shown": next((each for week in weeks for each in week.days if each.day == day), None),
        "week": next((week for week in weeks if day is not None and week.monday == _monday(day)), None),
        "messages": messages,
        "full": len(messages) >= rooms.MAX_DAY_MESSAGES,
        "most": max((each.messages for week in weeks for each in week.days), default=0),
    }


def _last_day(weeks: list[RoomWeek]) -> date | None:
    return next(
        (each.day for week in reversed(weeks) for each in reversed(week.days) if each.messages or each.summary), None
    )


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())
