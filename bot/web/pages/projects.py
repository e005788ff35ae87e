"""`/projects`: what one project remembers, the conversations with agents in it, who is in it with which role, and its
invitations."""

import uuid
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.pages.decisions import (
    ActOnDecision,
    DecidedOn,
    DecidedThere,
    NewText,
    back_from_declining,
    back_to,
    board_values,
    settle,
)
from bot.web.pages.rendering import page
from bot.web.pages.rooms import ROOMS, Day, FactKey, ViewName, WantedView, day_or_none, fact_values
from bot.web.pages.viewer import PageRouter, Reading, SignedIn, Viewer
from composer.entries import listing
from composer.entries.namesakes import told_apart
from composer.model import Role
from composer.people import decisions, remembered
from composer.people.credentials.principal import KeyPermission
from composer.people.decisions import PlaceOfDecisions
from composer.people.known_people import find_people
from composer.people.projects import members, projects
from composer.people.projects.rooms import moves_into
from composer.people.readers import readers_of_project
from composer.people.sessions.history import list_project_sessions
from composer.repositories.entries import EntryFilter
from composer.repositories.projects import Project

PROJECTS: Final = "/projects"
PROJECT_VIEWS: Final = ("decisions", "facts", "entries", "sessions", "people")
SHOWN_ENTRIES: Final = 50
SHOWN_SESSIONS: Final = 40
router = PageRouter(PROJECTS)
RoleName = Annotated[Role, Form()]
Token = Annotated[str, Form()]


@router.post("")
async def create(
    viewer: SignedIn,
    csrf: Token,
    name: Annotated[str, Form(max_length=200)],
    isolated: Annotated[bool, Form()] = False,
) -> Response:
    """Make a project, with the person as its admin."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        made = await projects.create_over_api(tx, access, uuid.uuid4(), name, viewer.call.now, isolated=isolated)
    return RedirectResponse(f"{PROJECTS}/{made.id}?view=people", 303)


@router.get("/{id}")
async def show_project(
    request: Request,
    viewer: SignedIn,
    id: uuid.UUID,
    view: ViewName = "",
    on: Day = "",
    key: FactKey = None,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    q: Annotated[str, Query(max_length=80)] = "",
) -> Response:
    """What a project remembers, and who can be answered from it."""
    chosen = view if view in PROJECT_VIEWS else PROJECT_VIEWS[0]
    wanted = WantedView(f"{PROJECTS}/{id}", chosen, day_or_none(on), key)
    now = viewer.call.now
    async with viewer.reading() as reading:
        tx, access = reading.tx, reading.access
        project = await projects.own_project(tx, access, id)
        joined = await tx.conversations.joined_ids(access.users, reading.presence)
        values: dict[str, Any] = {
            "chrome": reading.chrome,
            "now": now,
            "project": project,
            "wanted": wanted,
            "counts": (await remembered.project_counts(tx, access, now)).get(id, {}),
            "who_reads": readers_of_project(project.slug, isolated=project.isolated),
            "rooms": await tx.projects.rooms(id, joined),
            "joined": joined,
            "movable": await moves_into(tx, access, id, reading.presence) if project.role.writes else (),
        }
        if chosen == "people":
            values |= await _people(viewer, reading, project, q)
        elif chosen == "entries":
            values |= await _entries(viewer, reading, id, cursor)
        elif chosen == "sessions":
            viewer.principal.require(KeyPermission.CHAT)
            values["found"] = await list_project_sessions(tx, access, id, limit=SHOWN_SESSIONS, before=cursor)
        elif chosen == "decisions":
            place = await decisions.in_project(tx, access, id, viewer.quarantine)
            values |= await board_values(viewer, reading, place)
        else:
            readable = remembered.readable_of_project(access, id)
            values |= await fact_values(reading, readable, wanted, viewer)
    return page(request, "project.html", viewer.language, **values)


@router.post("/{id}/decisions/{landmark}")
async def act_on_decision(
    viewer: SignedIn,
    id: uuid.UUID,
    landmark: uuid.UUID,
    csrf: Token,
    act: ActOnDecision,
    text: NewText = "",
    on: DecidedThere = DecidedOn.BOARD,
) -> Response:
    """Accept, amend, or reject and retire a decision of a project."""
    viewer.require_form(csrf)
    async with viewer.call.writing() as (tx, access):
        place = await decisions.in_project(tx, access, id, viewer.quarantine)
        await settle(viewer, tx, access, place, landmark, act, text)
    return back_to(on, PlaceOfDecisions.PROJECT, id, act)


@router.post("/{id}/members")
async def set_member(
    viewer: SignedIn, id: uuid.UUID, csrf: Token, user: Annotated[uuid.UUID, Form()], role: RoleName
) -> Response:
    """Invite somebody, or set a member's role."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await members.set_member_over_api(tx, access, id, user, role, viewer.call.now)
    return _to_people(id)


@router.post("/{id}/members/{user}/remove")
async def remove_member(viewer: SignedIn, id: uuid.UUID, user: uuid.UUID, csrf: Token) -> Response:
    """Remove a member, or withdraw an invitation."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await members.remove_member_over_api(tx, access, id, user, viewer.call.now)
    return _to_people(id)


@router.post("/{id}/rename")
async def rename(viewer: SignedIn, id: uuid.UUID, csrf: Token, name: Annotated[str, Form(max_length=200)]) -> Response:
    """Give it another name."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await projects.rename_over_api(tx, access, id, name)
    return _to_people(id)


@router.post("/{id}/accept")
async def accept(viewer: SignedIn, id: uuid.UUID, csrf: Token, role: RoleName) -> Response:
    """Join a project, in the role that the page has shown."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await members.accept_over_api(tx, access, id, role, viewer.call.now)
    return RedirectResponse(f"{PROJECTS}/{id}", 303)


@router.post("/{id}/decline")
async def decline(viewer: SignedIn, id: uuid.UUID, csrf: Token, on: DecidedThere = DecidedOn.BOARD) -> Response:
    """Decline an invitation to a project."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await members.decline_over_api(tx, access, id, viewer.call.now)
    return back_from_declining(on, ROOMS)


@router.get("/{id}/leave")
async def show_leaving(request: Request, viewer: SignedIn, id: uuid.UUID) -> Response:
    """What leaving a project means, before one does."""
    async with viewer.reading() as reading:
        project = await projects.own_project(reading.tx, reading.access, id)
        admins, is_one = await reading.tx.projects.admins(id, reading.access.user)
        alone = is_one and admins == 1
        values: dict[str, Any] = {"chrome": reading.chrome, "project": project, "alone": alone}
    return page(request, "project_leave.html", viewer.language, now=viewer.call.now, **values)


@router.post("/{id}/leave")
async def leave(viewer: SignedIn, id: uuid.UUID, csrf: Token) -> Response:
    """Leave a project."""
    viewer.require_form(csrf)
    async with viewer.call.writing(alone=True) as (tx, access):
        await members.leave_over_api(tx, access, id, viewer.call.now, confirmed=True)
    return RedirectResponse(ROOMS, 303)


def _to_people(id: uuid.UUID) -> Response:
    return RedirectResponse(f"{PROJECTS}/{id}?view=people", 303)


async def _people(viewer: Viewer, reading: Reading, project: Project, words: str) -> dict[str, Any]:
    """Who is in a project, and for its admins who is invited, and whom a search finds to be invited too."""
    tx, access = reading.tx, reading.access
    found = await members.list_members(tx, access, project.id)
    manages = await members.may_manage(tx, access, project.id)
    invited = await members.list_invited(tx, access, project.id, viewer.call.now) if manages else []
    known = await find_people(tx, access, words, reading.presence) if manages and words.strip() else []
    inside = {each.id for each in found} | {each.user for each in invited}
    return {
        "members": found,
        "own": set(access.users),
        "manages": manages,
        "invited": invited,
        "words": words,
        "people": [each for each in known if each.id not in inside],
        "roles": list(Role),
    }


async def _entries(viewer: Viewer, reading: Reading, id: uuid.UUID, cursor: str | None) -> dict[str, Any]:
    """What people and tools wrote for a project, newest first."""
    named = replace(reading.access, project=id)
    found = await listing.page(
        reading.tx, named, EntryFilter(), viewer.call.now, only_project=True, limit=SHOWN_ENTRIES, cursor=cursor
    )
    return {"entries": told_apart(reading.access, found.entries), "more": found.cursor, "cursor": cursor}
