"""`/waiting`: what tools proposed and which decisions were found, for the person to accept or reject; and what of
theirs waits for somebody else."""

import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.pages.decisions import DecisionAct
from bot.web.pages.rendering import page
from bot.web.pages.viewer import PageRouter, Reading, SignedIn, Viewer
from composer.entries import listing
from composer.errors import NotFound
from composer.model import project_namespace
from composer.people import decisions
from composer.people.decisions import waiting_decisions
from composer.people.own_memory import WAITING as WAITING_SHELF
from composer.people.own_memory import PlacedItem, own_items
from composer.people.places import NamedPlace, named
from composer.repositories.own_data import OwnFilter
from composer.repositories.quarantine import PendingItem

WAITING: Final = "/waiting"
SHOWN_OF_OTHERS: Final = 50  # of the person's own that others decide about
STORED: Final = "store"
ERASED: Final = "erase"
ACTS: Final = (STORED, ERASED, *DecisionAct)
router = PageRouter(WAITING)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What waits for the person to decide, and where it would be filed. `project`: the id of the project that it is
    for; empty: it is for the person alone."""

    item: PendingItem
    place: NamedPlace
    project: str


@dataclass(frozen=True, slots=True)
class Settled:
    """What was just done with something that waited, and where what came of it stands. `place` is empty for the
    person's own memory."""

    act: str
    place: str
    address: str


@router.get("")
async def show_waiting(
    request: Request,
    viewer: SignedIn,
    done: Annotated[str, Query(max_length=20)] = "",
    room: uuid.UUID | None = None,
    project: uuid.UUID | None = None,
) -> Response:
    """What waits: for the person, oldest first, and for others, newest first. `done`: what they have just done here, in
    a room or a project of theirs."""
    now = viewer.call.now
    async with viewer.reading() as reading:
        tx, owned = reading.tx, reading.owned
        found = await listing.decidable(tx, reading.access)
        proposed = await waiting_decisions(tx, reading.access, reading.presence, viewer.quarantine, now)
        projects = await tx.own_data.projects(owned) if found else []
        wanted = OwnFilter(shelf=WAITING_SHELF)
        own = await own_items(tx, owned, wanted, None, SHOWN_OF_OTHERS, now, reading.presence)
        settled = await _settled(viewer, reading, done, room, project)
    ids = {project_namespace(each.id): str(each.id) for each in reading.access.projects}
    proposals = [
        Proposal(item, named(item.namespace, [], projects, owned.users), ids.get(item.namespace, "")) for item in found
    ]
    decided_here = {item.id for item in found}
    others: list[PlacedItem] = [each for each in own.items if each.item.id not in decided_here]
    values: dict[str, Any] = {
        "chrome": reading.chrome,
        "now": now,
        "proposals": proposals,
        "decisions": proposed,
        "zone": viewer.zone,
        "others": others,
        "more": own.next,
        "settled": settled,
    }
    return page(request, "waiting.html", viewer.language, **values)


async def _settled(
    viewer: Viewer, reading: Reading, act: str, room: uuid.UUID | None, project: uuid.UUID | None
) -> Settled | None:
    if act not in ACTS:
        return None
    try:
        if room is not None:
            here = await decisions.in_room(
                reading.tx, reading.access, room, reading.presence, viewer.quarantine, viewer.call.now
            )
            return Settled(act, f"#{here.name}", f"/rooms/{room}?view=decisions")
        if project is not None:
            place = await decisions.in_project(reading.tx, reading.access, project, viewer.quarantine)
            view = "entries" if act in (STORED, ERASED) else "decisions"
            return Settled(act, place.name, f"/projects/{project}?view={view}")
    except NotFound:
        return None
    return Settled(act, "", "/memory")


@router.post("/{id}/accept")
async def accept(
    viewer: SignedIn, id: uuid.UUID, csrf: Annotated[str, Form()], project: Annotated[str, Form(max_length=36)] = ""
) -> Response:
    """Store it, as if its writer had been trusted."""
    return await _decide(viewer, id, csrf, project, approved=True)


@router.post("/{id}/reject")
async def reject(
    viewer: SignedIn, id: uuid.UUID, csrf: Annotated[str, Form()], project: Annotated[str, Form(max_length=36)] = ""
) -> Response:
    """Erase it: it is not stored."""
    return await _decide(viewer, id, csrf, project, approved=False)


async def _decide(viewer: Viewer, id: uuid.UUID, csrf: str, project: str, *, approved: bool) -> Response:
    viewer.require_form(csrf)
    call = viewer.call
    async with call.writing(project or None, alone=True) as (tx, access):
        call.erased.append(await listing.decide(tx, access, id, call.now, approved=approved))
    where = f"&project={project}" if project else ""
    return RedirectResponse(f"{WAITING}?done={STORED if approved else ERASED}{where}", 303)
