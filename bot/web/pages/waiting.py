"""`/waiting`: what tools and guests wrote and which decisions were found, for the person to accept, amend or reject,
what of theirs waits for somebody else, and who invites them to a team or project."""

import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.pages.decisions import DecisionAct
from bot.web.pages.rendering import page
from bot.web.pages.viewer import PageRouter, Reading, SignedIn, Viewer
from composer.entries import teams
from composer.errors import NotFound
from composer.layers.structured import plain_value
from composer.memory.remember import MAX_STATEMENT_CHARS
from composer.memory.review import whole_text
from composer.model import Trust, project_namespace
from composer.people import decisions, reviewing
from composer.people.decisions import PlaceOfDecisions, WaitingDecision
from composer.people.own_memory import PlacedItem, own_items
from composer.people.places import NamedPlace, named, session_in
from composer.people.reviewing import ReviewAct, WaitingItem
from composer.repositories.own_data import WAITING as WAITING_SHELF
from composer.repositories.own_data import OwnFilter
from composer.repositories.quarantine import PendingItem

WAITING: Final = "/waiting"
SHOWN_OF_OTHERS: Final = 50  # of the person's own that others decide about
STORED: Final = "store"
ERASED: Final = "erase"
ACTS: Final = (STORED, ERASED, *DecisionAct)
OF_DECISIONS: Final = {
    ReviewAct.APPROVE: DecisionAct.ACCEPT,
    ReviewAct.AMEND: DecisionAct.AMEND,
    ReviewAct.REJECT: DecisionAct.RETIRE,
}
# Where what was stored of each kind of item stands in a room and in a project.
VIEWS: Final = {"memory": "memories", "fact": "facts", "landmark": "decisions"}
router = PageRouter(WAITING)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What waits for the person to decide, where it would be filed, the id of the `room` that it was written in
    (empty: in none), and in which section it stands: `said` (found in their own messages), `own` (in their own DMs and
    sessions), `guests` or `tools`."""

    item: PendingItem
    place: NamedPlace
    room: str
    section: str

    @property
    def words(self) -> str:
        """What it says, all of it."""
        if self.item.kind == "fact":
            return f"{self.item.detail} = {plain_value(self.item.text)}"
        return whole_text(self.item)


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
        waits = await reviewing.waiting(tx, reading.access, reading.presence, viewer.quarantine, now)
        found, of_talks = waits.items, [each for each in waits.decisions if each.place.kind is PlaceOfDecisions.TALK]
        projects = await tx.own_data.projects(owned) if found or of_talks else []
        talks = await tx.own_data.places(owned, (), ()) if of_talks or any(each.own for each in found) else []
        wanted = OwnFilter(shelf=WAITING_SHELF)
        own = await own_items(tx, owned, wanted, None, SHOWN_OF_OTHERS, now, reading.presence)
        invitations = await teams.invites(tx, reading.access, now)
        settled = await _settled(viewer, reading, done, kind, room, project)
    slugs = {each.id: each.slug for each in projects}

    def proposal(waiting: WaitingItem) -> Proposal:
        item = waiting.item
        of_others = "own" if waiting.own else "guests" if item.trust is Trust.GUEST else "tools"
        section = "said" if item.trust is Trust.MEMBER else of_others
        if waiting.room is not None:
            place = NamedPlace("#%(room)s", "", names=(("room", waiting.room.name),))
            return Proposal(item, place, str(waiting.room.room_id), section)
        if waiting.project in slugs and item.namespace != project_namespace(waiting.project):
            return Proposal(item, session_in(slugs[waiting.project]), "", section)
        return Proposal(item, named(item.namespace, talks, projects, owned.users), "", section)

    proposals = [proposal(each) for each in found]
    decided_here = {each.item.id for each in proposals}
    others: list[PlacedItem] = [each for each in own.items if each.item.id not in decided_here]
    values: dict[str, Any] = {
        "chrome": reading.chrome,
        "now": now,
        "proposals": proposals,
        "decisions": waits.decisions,
        "invitations": invitations,
        "talks": {each.landmark.id: named(each.landmark.namespace, talks, projects, owned.users) for each in of_talks},
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
async def accept(viewer: SignedIn, id: uuid.UUID, csrf: Annotated[str, Form()]) -> Response:
    """Store it, as if its writer had been trusted."""
    return await _decide(viewer, id, csrf, ReviewAct.APPROVE)


@router.post("/{id}/reject")
async def reject(viewer: SignedIn, id: uuid.UUID, csrf: Annotated[str, Form()]) -> Response:
    """Erase it: it is not stored."""
    return await _decide(viewer, id, csrf, ReviewAct.REJECT)


@router.post("/{id}/amend")
async def amend(
    viewer: SignedIn,
    id: uuid.UUID,
    csrf: Annotated[str, Form()],
    text: Annotated[str, Form(max_length=MAX_STATEMENT_CHARS)],
) -> Response:
    """Store other words in its place, those of the person who decides."""
    return await _decide(viewer, id, csrf, ReviewAct.AMEND, text)


async def _decide(viewer: Viewer, id: uuid.UUID, csrf: str, what: ReviewAct, text: str = "") -> Response:
    viewer.require_form(csrf)
    call = viewer.call
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)
    async with call.writing(alone=True) as (tx, access):
        writer, event = await viewer.writer(tx, access), uuid.uuid4().hex
        found, receipt = await reviewing.decide(tx, access, presence, id, what, text, writer, event, call.now)
        call.erased.append(receipt)
    if isinstance(found, WaitingDecision):
        return RedirectResponse(f"{WAITING}?done={OF_DECISIONS[what]}", 303)
    act = ERASED if what is ReviewAct.REJECT else STORED
    where = "" if found.item.entry is not None else f"&kind={found.item.kind}"
    if found.room is not None:
        where += f"&room={found.room.room_id}"
    elif found.project is not None:
        where += f"&project={found.project}"
    return RedirectResponse(f"{WAITING}?done={act}{where}", 303)
