"""`/waiting`: what tools and guests wrote and which decisions were found, for the person to accept, amend or reject;
and what of theirs waits for somebody else."""

import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.pages.decisions import DecisionAct
from bot.web.pages.rendering import fact_value, page
from bot.web.pages.viewer import PageRouter, Reading, SignedIn, Viewer
from composer.entries import listing
from composer.errors import NotFound
from composer.memory.remember import MAX_STATEMENT_CHARS
from composer.model import project_namespace
from composer.people import decisions, reviewing
from composer.people.decisions import waiting_decisions
from composer.people.own_memory import WAITING as WAITING_SHELF
from composer.people.own_memory import PlacedItem, own_items
from composer.people.places import NamedPlace, named
from composer.people.reviewing import ReviewAct
from composer.repositories.own_data import OwnFilter
from composer.repositories.quarantine import PendingItem
from composer.visibility import JoinedRoom

WAITING: Final = "/waiting"
SHOWN_OF_OTHERS: Final = 50  # of the person's own that others decide about
STORED: Final = "store"
ERASED: Final = "erase"
ACTS: Final = (STORED, ERASED, *DecisionAct)
# Where what was stored of each kind of item stands in a room and in a project.
VIEWS: Final = {"memory": "memories", "fact": "facts", "landmark": "decisions"}
router = PageRouter(WAITING)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What waits for the person to decide, and where it would be filed. `project`: the id of the project that it is
    for, `room` that of the room that it was written in; both empty: it is for the person alone."""

    item: PendingItem
    place: NamedPlace
    project: str
    room: str = ""

    @property
    def words(self) -> str:
        """What it says."""
        return f"{self.item.detail} = {fact_value(self.item.text)}" if self.item.kind == "fact" else self.item.text


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
    kind: Annotated[str, Query(max_length=20)] = "",
    room: uuid.UUID | None = None,
    project: uuid.UUID | None = None,
) -> Response:
    """What waits: for the person, oldest first, and for others, newest first. `done`: what they have just done here
    with something of a `kind`, in a room or a project of theirs."""
    now = viewer.call.now
    async with viewer.reading() as reading:
        tx, owned = reading.tx, reading.owned
        found = await reviewing.waiting_items(tx, reading.access, reading.presence)
        proposed = await waiting_decisions(tx, reading.access, reading.presence, viewer.quarantine, now)
        projects = await tx.own_data.projects(owned) if found else []
        wanted = OwnFilter(shelf=WAITING_SHELF)
        own = await own_items(tx, owned, wanted, None, SHOWN_OF_OTHERS, now, reading.presence)
        settled = await _settled(viewer, reading, done, kind, room, project)
    ids = {project_namespace(each.id): str(each.id) for each in reading.access.projects}

    def proposal(item: PendingItem, room: JoinedRoom | None) -> Proposal:
        if room is not None:
            return Proposal(item, NamedPlace("#%(room)s", "", names=(("room", room.name),)), "", str(room.room_id))
        place = named(item.namespace, [], projects, owned.users)
        return Proposal(item, place, ids.get(item.namespace, ""))

    proposals = [proposal(each.item, each.room) for each in found]
    decided_here = {each.item.id for each in proposals}
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
    viewer: Viewer, reading: Reading, act: str, kind: str, room: uuid.UUID | None, project: uuid.UUID | None
) -> Settled | None:
    if act not in ACTS:
        return None
    try:
        if room is not None:
            here = await decisions.in_room(
                reading.tx, reading.access, room, reading.presence, viewer.quarantine, viewer.call.now
            )
            return Settled(act, f"#{here.name}", f"/rooms/{room}?view={VIEWS.get(kind, 'decisions')}")
        if project is not None:
            place = await decisions.in_project(reading.tx, reading.access, project, viewer.quarantine)
            view = VIEWS.get(kind) or ("entries" if act in (STORED, ERASED) else "decisions")
            return Settled(act, place.name, f"/projects/{project}?view={view}")
    except NotFound:
        return None
    return Settled(act, "", "/memory")


@router.post("/{id}/accept")
async def accept(
    viewer: SignedIn, id: uuid.UUID, csrf: Annotated[str, Form()], project: Annotated[str, Form(max_length=36)] = ""
) -> Response:
    """Store it, as if its writer had been trusted."""
    return await _decide(viewer, id, csrf, project, ReviewAct.APPROVE)


@router.post("/{id}/reject")
async def reject(
    viewer: SignedIn, id: uuid.UUID, csrf: Annotated[str, Form()], project: Annotated[str, Form(max_length=36)] = ""
) -> Response:
    """Erase it: it is not stored."""
    return await _decide(viewer, id, csrf, project, ReviewAct.REJECT)


@router.post("/{id}/amend")
async def amend(
    viewer: SignedIn,
    id: uuid.UUID,
    csrf: Annotated[str, Form()],
    text: Annotated[str, Form(max_length=MAX_STATEMENT_CHARS)],
    project: Annotated[str, Form(max_length=36)] = "",
) -> Response:
    """Store other words in its place, those of the person who decides."""
    return await _decide(viewer, id, csrf, project, ReviewAct.AMEND, text)


async def _decide(viewer: Viewer, id: uuid.UUID, csrf: str, project: str, what: ReviewAct, text: str = "") -> Response:
    viewer.require_form(csrf)
    call, act = viewer.call, ERASED if what is ReviewAct.REJECT else STORED
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)
    where = f"&project={project}" if project else ""
    async with call.writing(project or None, alone=True) as (tx, access):
        try:
            event = uuid.uuid4().hex
            found, receipt = await reviewing.decide(tx, access, presence, id, what, text, event, call.now)
            kind = "" if found.item.entry is not None else f"&kind={found.item.kind}"
            where = kind + (where if found.room is None else f"&room={found.room.room_id}")
        except NotFound:
            if what is ReviewAct.AMEND:
                raise
            receipt = await listing.decide(tx, access, id, call.now, approved=what is ReviewAct.APPROVE)
        call.erased.append(receipt)
    return RedirectResponse(f"{WAITING}?done={act}{where}", 303)
