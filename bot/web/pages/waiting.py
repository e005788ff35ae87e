"""`/waiting`: what tools and guests wrote and which decisions were found, for the person to accept, amend or reject,
what of theirs waits for somebody else, and who invites them to a team or project."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.pages.decisions import DECLINED, DecisionAct
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
SECTIONS: Final = ("said", "own", "guests", "tools")
SHOWN_OF_OTHERS: Final = 50  # of the person's own that others decide about


class StoringAct(StrEnum):
    """What is done with what was written, one thing or several."""

    STORE = "store"
    ERASE = "erase"


ACTS: Final = (*StoringAct, DECLINED, *DecisionAct)
OF_MANY: Final = {StoringAct.STORE: ReviewAct.APPROVE, StoringAct.ERASE: ReviewAct.REJECT}
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
class Together:
    """What waits in one section and was written by one, for one place: it can be decided about at once. Of decisions
    it is what was found in one place."""

    things: Sequence[Any]
    may_accept: bool = True
    may_reject: bool = True

    @property
    def are_many(self) -> bool:
        """Whether they are more than one, and not too many for one form."""
        return 1 < len(self.things) <= reviewing.MAX_DECIDED


@dataclass(frozen=True, slots=True)
class Settled:
    """What was just done with something that waited, and where what came of it stands. `place` is empty for the
    person's own memory; `many`: how many things it was done with at once (0: with one)."""

    act: str
    place: str
    address: str
    many: int = 0


@router.get("")
async def show_waiting(
    request: Request,
    viewer: SignedIn,
    done: Annotated[str, Query(max_length=20)] = "",
    kind: Annotated[str, Query(max_length=20)] = "",
    room: uuid.UUID | None = None,
    project: uuid.UUID | None = None,
    many: Annotated[int, Query(ge=0, le=reviewing.MAX_DECIDED)] = 0,
) -> Response:
    """What waits: for the person, oldest first, and for others, newest first. `done`: what they have just done here
    with something of a `kind`, in a room or a project of theirs, or with `many` things at once."""
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
        settled = Settled(done, "", "", many) if many and done in set(StoringAct) else None
        settled = settled or await _settled(viewer, reading, done, kind, room, project)
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
        "waiting": len(proposals) + len(waits.decisions) + len(invitations),
        "sections": {name: _together(each for each in proposals if each.section == name) for name in SECTIONS},
        "decisions": _decisions_together(waits.decisions),
        "invitations": invitations,
        "talks": {each.landmark.id: named(each.landmark.namespace, talks, projects, owned.users) for each in of_talks},
        "zone": viewer.zone,
        "others": others,
        "more": own.next,
        "settled": settled,
    }
    return page(request, "waiting.html", viewer.language, **values)


def _together(proposals: Iterable[Proposal]) -> Sequence[Together]:
    """Proposals of a section, those of one author for one place together, as the oldest of each stand."""
    found = defaultdict[object, list[Proposal]](list)
    for each in proposals:
        found[each.item.author, each.item.namespace, each.room].append(each)
    return [Together(each) for each in found.values()]


def _decisions_together(decisions: Iterable[WaitingDecision]) -> Sequence[Together]:
    found = defaultdict[str, list[WaitingDecision]](list)
    for each in decisions:
        found[each.landmark.namespace].append(each)
    return [
        Together(
            of_place,
            all(each.place.may_accept(each.landmark) for each in of_place),
            all(each.place.may_settle(each.landmark) for each in of_place),
        )
        for of_place in found.values()
    ]


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
            view = VIEWS.get(kind) or ("entries" if act in set(StoringAct) else "decisions")
            return Settled(act, place.name, f"/projects/{project}?view={view}")
    except NotFound:
        return None
    return Settled(act, "", "/memory")


@router.post("/all")
async def decide_all(
    viewer: SignedIn,
    csrf: Annotated[str, Form()],
    act: Annotated[StoringAct, Form()],
    id: Annotated[list[uuid.UUID], Form(max_length=reviewing.MAX_DECIDED)],
) -> Response:
    """Accept or reject all that was shown together."""
    viewer.require_form(csrf)
    call = viewer.call
    presence = await call.app.memberships.of(call.principal.tenant_id, call.principal.user)
    async with call.writing(alone=True) as (tx, access):
        writer, event, what = await viewer.writer(tx, access), uuid.uuid4().hex, OF_MANY[act]
        receipts = await reviewing.decide_all(tx, access, presence, id, what, writer, event, call.now)
        call.erased.extend(receipts)
    return RedirectResponse(f"{WAITING}?done={act}&many={len(receipts)}", 303)


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
    act = StoringAct.ERASE if what is ReviewAct.REJECT else StoringAct.STORE
    where = "" if found.item.entry is not None else f"&kind={found.item.kind}"
    if found.room is not None:
        where += f"&room={found.room.room_id}"
    elif found.project is not None:
        where += f"&project={found.project}"
    return RedirectResponse(f"{WAITING}?done={act}{where}", 303)
