"""`/team`: the teams that a person is in, what is shared with each, who is in it with which role, and who lately did
what where the person is."""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, product
from typing import Annotated, Any, Final

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.metering import counts_as
from bot.web.pages.decisions import DecidedOn, DecidedThere, back_from_declining
from bot.web.pages.rendering import Dates, page
from bot.web.pages.viewer import PageRouter, Reading, SignedIn, Viewer
from composer.entries import listing, teams
from composer.entries.namesakes import told_apart
from composer.errors import Refused
from composer.model import TeamRole
from composer.people.activity import activity_of
from composer.people.known_people import MAX_FOUND_PEOPLE, admins_to_ask, find_people
from composer.people.readers import TEAM_READERS
from composer.repositories.entries import EntryFilter
from composer.repositories.operations import Operation
from composer.repositories.people import KnownPerson
from composer.repositories.teams import Team

TEAM: Final = "/team"
SHOWN_SHARED: Final = 50
SHOWN_OF_PEOPLE: Final = 3  # of whom it is shown what they share
router = PageRouter(TEAM)
Token = Annotated[str, Form()]


@router.get("")
async def show_teams(request: Request, viewer: SignedIn, q: Annotated[str, Query(max_length=80)] = "") -> Response:
    """The teams, who invites to one, people by name, and who lately did what."""
    now = viewer.call.now
    async with viewer.reading() as reading:
        tx, access = reading.tx, reading.access
        found = await teams.teams(tx, access)
        activity = await activity_of(tx, access, reading.presence, now)
        people = await find_people(tx, access, q, reading.presence)
        if people and q.strip():
            activity = [each for each in activity if each.user_id in {person.id for person in people}]
        dates = Dates(viewer.language, reading.chrome.zone, now)
        values: dict[str, Any] = {
            "chrome": reading.chrome,
            "now": now,
            "teams": found,
            "shared": {team.id: await _shared(viewer, reading, team.id) for team in found},
            "invitations": [each for each in await teams.invites(tx, access, now) if each.team is not None],
            "words": q.strip(),
            "people": people,
            "are_all": len(people) < MAX_FOUND_PEOPLE,
            "theirs": await _shared_by(viewer, reading, found, people[: SHOWN_OF_PEOPLE if q.strip() else 0]),
            "to_ask": await admins_to_ask(tx, access) if not found else (),
            "days": [(day, list(of_day)) for day, of_day in groupby(activity, lambda each: dates.day(each.at))],
        }
    return page(request, "team.html", viewer.language, **values)


@router.post("")
async def create(viewer: SignedIn, csrf: Token, name: Annotated[str, Form(max_length=200)]) -> Response:
    """Make a team, with the person as its admin."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        made = await teams.create(tx, access, name, uuid.uuid4().hex, viewer.call.now)
    return _to_people(made)


@router.get("/{id}")
async def show_team(
    request: Request,
    viewer: SignedIn,
    id: uuid.UUID,
    view: Annotated[str, Query(max_length=20)] = "",
    q: Annotated[str, Query(max_length=80)] = "",
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    by: uuid.UUID | None = None,
) -> Response:
    """What is shared with a team, all or by one person, or who is in it."""
    chosen, now = "people" if view == "people" else "entries", viewer.call.now
    async with viewer.reading() as reading:
        tx, access = reading.tx, reading.access
        team = await teams.get(tx, access, id, now)
        values: dict[str, Any] = {
            "chrome": reading.chrome,
            "now": now,
            "team": team,
            "view": chosen,
            "count": await _shared(viewer, reading, id),
            "who_reads": TEAM_READERS,
        }
        if chosen == "people":
            values |= await _people(viewer, reading, team, q)
        else:
            found = await listing.page(tx, access, _of(by), now, team=id, limit=SHOWN_SHARED, cursor=cursor)
            shown = told_apart(access, found.entries)
            values |= {"entries": shown, "more": found.cursor, "own": set(access.users), "by": by}
    return page(request, "team_one.html", viewer.language, **values)


@router.post("/{id}/invites")
async def invite(viewer: SignedIn, id: uuid.UUID, csrf: Token, user: Annotated[uuid.UUID, Form()]) -> Response:
    """Invite somebody."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await teams.invite(tx, access, id, user, uuid.uuid4().hex, viewer.call.now)
    return _to_people(id)


@router.post("/{id}/invites/{invite}/withdraw")
async def withdraw(viewer: SignedIn, id: uuid.UUID, invite: uuid.UUID, csrf: Token) -> Response:
    """End an invitation."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await teams.revoke_invite(tx, access, id, invite, viewer.call.now)
    return _to_people(id)


@router.post("/{id}/members/{user}/role")
async def set_role(
    viewer: SignedIn, id: uuid.UUID, user: uuid.UUID, csrf: Token, role: Annotated[TeamRole, Form()]
) -> Response:
    """Set what a member may do."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await teams.set_role(tx, access, id, user, role, viewer.call.now)
    return _to_people(id)


@router.post("/{id}/members/{user}/remove")
async def remove(viewer: SignedIn, id: uuid.UUID, user: uuid.UUID, csrf: Token) -> Response:
    """Remove a member."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await teams.remove(tx, access, id, user, viewer.call.now)
    return _to_people(id)


@router.post("/{id}/rename")
async def rename(viewer: SignedIn, id: uuid.UUID, csrf: Token, name: Annotated[str, Form(max_length=200)]) -> Response:
    """Give it another name."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await teams.rename(tx, access, id, name, viewer.call.now)
    return _to_people(id)


@router.post("/{id}/entries/{entry}/unshare")
@counts_as(Operation.REMOVALS)
async def unshare(viewer: SignedIn, id: uuid.UUID, entry: uuid.UUID, csrf: Token) -> Response:
    """End what a former member shares with it. It stays theirs."""
    viewer.require_form(csrf)
    async with viewer.call.writing() as (tx, access):
        await teams.unshare_of_former(tx, access, id, entry, viewer.call.now)
    return RedirectResponse(f"{TEAM}/{id}", 303)


@router.post("/{id}/accept")
async def accept(viewer: SignedIn, id: uuid.UUID, csrf: Token) -> Response:
    """Join a team."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await teams.accept(tx, access, id, viewer.call.now)
    return RedirectResponse(f"{TEAM}/{id}", 303)


@router.post("/{id}/decline")
async def decline(viewer: SignedIn, id: uuid.UUID, csrf: Token, on: DecidedThere = DecidedOn.BOARD) -> Response:
    """Decline an invitation to a team."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await teams.decline(tx, access, id, viewer.call.now)
    return back_from_declining(on, TEAM)


@router.get("/{id}/leave")
async def show_leaving(request: Request, viewer: SignedIn, id: uuid.UUID) -> Response:
    """What leaving a team means, before one does."""
    async with viewer.reading() as reading:
        team = await teams.get(reading.tx, reading.access, id, viewer.call.now)
        values: dict[str, Any] = {"chrome": reading.chrome, "team": team}
    return page(request, "team_leave.html", viewer.language, now=viewer.call.now, **values)


@router.post("/{id}/leave")
async def leave(viewer: SignedIn, id: uuid.UUID, csrf: Token) -> Response:
    """Leave a team."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await teams.remove(tx, access, id, access.user, viewer.call.now)
    return RedirectResponse(TEAM, 303)


def _to_people(id: uuid.UUID) -> Response:
    return RedirectResponse(f"{TEAM}/{id}?view=people", 303)


async def _shared(viewer: Viewer, reading: Reading, team: uuid.UUID, by: uuid.UUID | None = None) -> int:
    """How many entries are shared with a team that the person may read; of one person alone (`by`)."""
    found = await listing.counts(reading.tx, reading.access, _of(by), viewer.call.now, team=team)
    return Counter({each.kind: each.count for each in found}).total()


def _of(person: uuid.UUID | None) -> EntryFilter:
    return EntryFilter() if person is None else EntryFilter(authors=(person,))


async def _shared_by(
    viewer: Viewer, reading: Reading, found: Sequence[Team], people: Sequence[KnownPerson]
) -> Mapping[uuid.UUID, Sequence[tuple[Team, int]]]:
    """The teams with which some people share entries that the person may read, and how many, by person."""
    shared: dict[uuid.UUID, list[tuple[Team, int]]] = {}
    for person, team in product(people, found):
        if count := await _shared(viewer, reading, team.id, person.id):
            shared.setdefault(person.id, []).append((team, count))
    return shared


async def _people(viewer: Viewer, reading: Reading, team: Team, words: str) -> dict[str, Any]:
    """Who is in a team, and for its admins who is invited, and whom a search finds to be invited too."""
    tx, access, now = reading.tx, reading.access, viewer.call.now
    members = await teams.members(tx, access, team.id, now)
    try:
        invited, manages = await teams.invitees(tx, access, team.id, now), True
    except Refused:
        invited, manages = [], False
    known = await find_people(tx, access, words, reading.presence) if manages and words.strip() else []
    inside = {each.id for each in members} | {each.user for each in invited}
    return {
        "members": members,
        "own": set(access.users),
        "manages": manages,
        "invited": invited,
        "words": words,
        "people": [each for each in known if each.id not in inside],
        "roles": list(TeamRole),
    }
