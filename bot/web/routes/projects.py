"""`/v1/projects`: the person's projects, and who is in them, by the rules of `/nexus project`."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Response
from pydantic import BaseModel, Field

from bot.web.call import IS_REPLAYED, ONCE, Calling, Event
from bot.web.json_answer import json_answer
from bot.web.problems import documented, header
from bot.web.router import Router
from bot.web.routes.forgetting import FORGET_RESPONSES, receipt_answer
from bot.web.routes.teams import SentInvitation, invitee_values
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
from bot.web.shapes.values import Flag
from composer.memory.forget import Receipt
from composer.model import Role, derived_id
from composer.people import decisions, remembered
from composer.people.credentials.principal import KeyPermission
from composer.people.projects import members, projects
from composer.people.projects.deletion import delete_over_api
from composer.people.sessions.history import (
    DEFAULT_SESSION_MESSAGES,
    MAX_SESSION_MESSAGES,
    list_project_sessions,
)
from composer.repositories.database import Transaction
from composer.repositories.projects import Project, ProjectMember
from composer.text.moments import moment
from composer.visibility import EntryAccess

ProjectRoleName = Literal["read", "write", "admin"]
ProjectName = Annotated[str, Field(max_length=200, description="1 to 32 characters of a-z, 0-9, - and _.")]


class NewProject(RequestBody):
    """A project to be made; who makes it is its admin. Of an `isolated` one nothing is used outside, and nothing from
    outside is used in it."""

    name: ProjectName
    isolated: Flag = False


class ProjectUpdate(RequestBody):
    """Another name for a project. Whether it is isolated stays."""

    name: ProjectName


class ProjectRoleUpdate(RequestBody):
    """What a member may do in a project: read it, add to it too, or manage its members too."""

    role: ProjectRoleName


class ProjectResponse(BaseModel):
    """A project that the person is in, with their role. An `isolated` one is read by requests alone that name it."""

    id: uuid.UUID
    name: str
    isolated: bool
    role: ProjectRoleName


class ProjectList(BaseModel):
    """Projects, by name."""

    items: list[ProjectResponse]


class ProjectWithMembers(ProjectResponse):
    """The same, with how many people are in it."""

    members: int


class ProjectWithMembersList(BaseModel):
    """Projects, by name."""

    items: list[ProjectWithMembers]


class ProjectMemberResponse(BaseModel):
    """A person in a project. `names`: those of their accounts that were made members."""

    id: uuid.UUID
    names: list[str]
    role: ProjectRoleName


class ProjectMemberList(BaseModel):
    """The people of a project, by name."""

    items: list[ProjectMemberResponse]


class ProjectInvitation(SentInvitation):
    """An open invitation to a project, as its admins see it, with the role. `by`: who invited."""

    role: ProjectRoleName


class ProjectInvitationList(BaseModel):
    """Open invitations to a project, oldest first."""

    items: list[ProjectInvitation]


class ProjectSessionResponse(BaseModel):
    """A session of a project: its name, its agent, whose it is, and when the last message was sent. `session` is null
    for another person's: it is not named to anybody else."""

    session: str | None
    agent: str
    person: str
    last_at: datetime


class ProjectSessionList(BaseModel):
    """Sessions, the one with the latest message first. `next` is the cursor of the next page; null after the last."""

    items: list[ProjectSessionResponse]
    next: str | None


def project_values(project: Project) -> dict[str, Any]:
    """A project as ProjectWithMembers shows it."""
    return {
        "id": project.id,
        "name": project.slug,
        "isolated": project.isolated,
        "role": str(project.role),
        "members": project.members,
    }


def member_values(members: Sequence[ProjectMember]) -> dict[str, Any]:
    """The people of a project as ProjectMemberList shows them."""
    return {"items": [{"id": each.id, "names": list(each.names), "role": str(each.role)} for each in members]}


router = Router("/v1/projects", tags=["projects"])
_DONE: Final = documented(400, 401, 403, 404, 409, 422)
_MADE: Final[dict[int | str, dict[str, Any]]] = {
    201: {
        "description": "The new project",
        "model": ProjectWithMembers,
        "headers": {**ONCE, "Location": header("The address of the project.")},
    },
    **documented(400, 401, 403, 409, 410, 422),
}


@router.get(
    "", summary="List projects", response_class=Response, responses={200: {"model": ProjectWithMembersList}, **_DONE}
)
async def list_projects(call: Calling) -> Response:
    """The projects that the person is in, with their role."""
    async with call.reading() as (tx, access):
        found = await projects.own_projects(tx, access)
    return json_answer({"items": [project_values(each) for each in found]})


@router.post("", summary="Make a project", response_class=Response, status_code=201, responses=_MADE)
async def create_project(call: Calling, sent: NewProject) -> Response:
    """Who makes it is its admin. Others may have a project of the same name."""

    async def make(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, Project]:
        id = derived_id("project", str(access.tenant_id), event.id, str(access.user))
        return id, await projects.create_over_api(tx, access, id, sent.name, call.now, isolated=sent.isolated)

    async def again(tx: Transaction, access: EntryAccess, event: Event, id: uuid.UUID) -> Project:
        return await projects.own_project(tx, access, id)

    made, repeated = await call.once(make, again, alone=True)
    headers = {"Location": f"/v1/projects/{made.id}"} | (IS_REPLAYED if repeated else {})
    return json_answer(project_values(made), 201, headers)


@router.get(
    "/{id}", summary="Get a project", response_class=Response, responses={200: {"model": ProjectWithMembers}, **_DONE}
)
async def get_project(call: Calling, id: uuid.UUID) -> Response:
    """One of the person's projects."""
    async with call.reading() as (tx, access):
        return json_answer(project_values(await projects.own_project(tx, access, id)))


@router.patch(
    "/{id}",
    summary="Rename a project",
    response_class=Response,
    responses={200: {"model": ProjectWithMembers, "headers": ONCE}, **_DONE, **documented(410)},
)
async def rename_project(call: Calling, id: uuid.UUID, sent: ProjectUpdate) -> Response:
    """For its admins."""
    found, repeated = await call.change(
        lambda tx, access: projects.rename_over_api(tx, access, id, sent.name),
        lambda tx, access: projects.own_project(tx, access, id),
        alone=True,
    )
    return json_answer(project_values(found), headers=IS_REPLAYED if repeated else None)


@router.delete(
    "/{id}",
    summary="Delete a project",
    response_class=Response,
    responses={**_DONE, **FORGET_RESPONSES},
)
async def delete_project(
    call: Calling,
    id: uuid.UUID,
    confirm: Annotated[
        bool, Query(description="Without it nothing is deleted, and 409 says what would happen.")
    ] = False,
) -> Response:
    """For its admins. Its conversations leave it, memories that were written for it go back to whoever wrote them, and
    its facts and decisions are forgotten for good."""
    home = call.app.settings.home

    async def erase(tx: Transaction, access: EntryAccess, key: bytes) -> Receipt:
        return await delete_over_api(tx, access, home, id, call.now, key=key, confirmed=confirm)

    return receipt_answer(*await call.erase(erase))


@router.get(
    "/{id}/members",
    summary="List the members of a project",
    response_class=Response,
    responses={200: {"model": ProjectMemberList}, **_DONE},
)
async def list_project_members(call: Calling, id: uuid.UUID) -> Response:
    """For its members."""
    async with call.reading() as (tx, access):
        return json_answer(member_values(await members.list_members(tx, access, id)))


@router.put(
    "/{id}/members/{user}",
    summary="Invite a person, or change a member's role",
    response_class=Response,
    status_code=204,
    responses={202: {"description": "Invited: they have the role once they accept, for 14 days"}, **_DONE},
)
async def set_project_member(call: Calling, id: uuid.UUID, user: uuid.UUID, sent: ProjectRoleUpdate) -> Response:
    """For the project's admins. Who is no member yet is invited (202), and so is who may only read, to a role that
    writes: what they say in their sessions in it is recalled by its members then. The only admin stays one."""

    async def again(tx: Transaction, access: EntryAccess) -> bool:
        return any(user == each.id for each in await members.list_members(tx, access, id))

    is_member, _ = await call.change(
        lambda tx, access: members.set_member_over_api(tx, access, id, user, Role(sent.role), call.now),
        again,
        alone=True,
    )
    return Response(status_code=204 if is_member else 202)


@router.get(
    "/{id}/invites",
    summary="List the invitations to a project",
    response_class=Response,
    responses={200: {"model": ProjectInvitationList}, **_DONE},
)
async def list_project_invitations(call: Calling, id: uuid.UUID) -> Response:
    """Those that are open, for the project's admins. To withdraw one, remove the person."""
    async with call.reading() as (tx, access):
        found = await members.list_invited(tx, access, id, call.now)
    return json_answer({"items": [{**invitee_values(each), "role": each.role} for each in found]})


@router.get(
    "/{id}/facts",
    summary="List the facts of a project",
    response_class=Response,
    responses={200: {"model": FactList}, **_DONE},
)
async def list_project_facts(
    call: Calling,
    id: uuid.UUID,
    on: Annotated[datetime | None, Query(description="As they held at this time; by default now.")] = None,
    history: Annotated[
        str | None, Query(min_length=1, max_length=200, description="All values that this key has had, instead.")
    ] = None,
) -> Response:
    """Those that were set for the project, for its members."""
    async with call.reading() as (tx, access):
        readable = remembered.readable_of_project(access, id)
        if history is not None:
            return json_answer(fact_list(await remembered.fact_history(tx, access, readable, history)))
        at = call.now if on is None else moment(on)
        return json_answer(fact_list(await remembered.facts_of(tx, access, readable, at)))


@router.get(
    "/{id}/landmarks",
    summary="List the decisions of a project",
    response_class=Response,
    responses={200: {"model": DecisionList}, **_DONE},
)
async def list_project_decisions(call: Calling, id: uuid.UUID) -> Response:
    """Those that were pinned for the project, for its members."""
    async with call.reading() as (tx, access):
        readable = remembered.readable_of_project(access, id)
        board = await remembered.decisions_of(tx, access, readable, call.now)
        sources = await decisions.messages_of(tx, access, readable, (each.landmark for each in board.all))
    return json_answer(decision_list(board, sources))


@router.patch(
    "/{id}/landmarks/{landmark}",
    summary="Accept, amend or retire a decision of a project",
    response_class=Response,
    responses={200: {"model": DecisionResponse, "headers": ONCE}, **_DONE, **documented(410)},
)
async def settle_project_decision(call: Calling, id: uuid.UUID, landmark: uuid.UUID, sent: DecisionUpdate) -> Response:
    """Whoever may write for the project accepts or rejects what is proposed; what holds, who pinned it and the
    project's admins amend and retire. An amended one stays in the history, and its new version is answered."""

    async def place(tx: Transaction, access: EntryAccess) -> decisions.DecidingIn:
        return await decisions.in_project(tx, access, id, call.app.directory.quarantine(access.tenant_id))

    return await settled_decision(call, place, landmark, sent)


@router.get(
    "/{id}/sessions",
    summary="List the sessions of a project",
    response_class=Response,
    responses={200: {"model": ProjectSessionList}, **_DONE},
)
async def list_sessions_of_project(
    call: Calling,
    id: uuid.UUID,
    limit: Annotated[int, Query(ge=1, le=MAX_SESSION_MESSAGES)] = DEFAULT_SESSION_MESSAGES,
    cursor: Annotated[str | None, Query(max_length=200, description="`next` of the page before.")] = None,
) -> Response:
    """One's own, and those from which the project's members are answered, for its members."""
    call.principal.require(KeyPermission.CHAT)
    async with call.reading() as (tx, access):
        found = await list_project_sessions(tx, access, id, limit=limit, before=cursor)
    items = [
        {
            "session": each.session.name if each.own else None,
            "agent": each.session.agent,
            "person": each.author,
            "last_at": each.last_at,
        }
        for each in found.sessions
    ]
    return json_answer({"items": items, "next": found.cursor})


@router.post("/{id}/accept", summary="Accept an invitation to a project", status_code=204, responses=_DONE)
async def accept_project_invitation(
    call: Calling,
    id: uuid.UUID,
    role: Annotated[
        ProjectRoleName | None,
        Query(
            description="The role that is accepted, as the invitation shows it: 409 where it offers another by now. "
            "Without it, 409 where the role was raised since it was first offered."
        ),
    ] = None,
) -> None:
    """Join the project that one is invited to. From then on one's tools and questions are answered also from what its
    members wrote for it."""
    shown = None if role is None else Role(role)
    await call.act(lambda tx, access: members.accept_over_api(tx, access, id, shown, call.now), alone=True)


@router.post("/{id}/decline", summary="Decline an invitation to a project", status_code=204, responses=_DONE)
async def decline_project_invitation(call: Calling, id: uuid.UUID) -> None:
    """It is gone then."""
    await call.act(lambda tx, access: members.decline_over_api(tx, access, id, call.now), alone=True)


@router.post("/{id}/leave", summary="Leave a project", status_code=204, responses=_DONE)
async def leave_project(
    call: Calling,
    id: uuid.UUID,
    confirm: Annotated[
        bool, Query(description="Without it the only admin does not leave, and 409 says what would happen.")
    ] = False,
) -> None:
    """What one wrote for it stays there until one forgets it; one's DMs and sessions leave it. A project without an
    admin is its members': each may do what an admin may."""
    await call.act(lambda tx, access: members.leave_over_api(tx, access, id, call.now, confirmed=confirm), alone=True)


@router.delete("/{id}/members/{user}", summary="Remove a member", status_code=204, responses=_DONE)
async def remove_project_member(call: Calling, id: uuid.UUID, user: uuid.UUID) -> None:
    """For the project's admins, also to withdraw an invitation, and for oneself. The only admin leaves by
    `/leave`."""
    await call.act(lambda tx, access: members.remove_member_over_api(tx, access, id, user, call.now), alone=True)
