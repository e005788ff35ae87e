"""`/v1/teams` and `/v1/invites`: people who share entries."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Response
from pydantic import BaseModel, Field

from bot.web.call import IS_REPLAYED, ONCE, Calling, Event
from bot.web.conditions import VERSIONED
from bot.web.json_answer import json_answer
from bot.web.metering import counts_as
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.routes.entries import answer
from bot.web.shapes.entries import EntryResponse, RequestBody
from composer.entries import teams
from composer.errors import Conflict, NotFound
from composer.model import TeamRole
from composer.repositories.database import Transaction
from composer.repositories.invites import Invite
from composer.repositories.operations import Operation
from composer.repositories.teams import Team
from composer.visibility import UNKNOWN_TEAM, EntryAccess

TeamName = Annotated[str, Field(min_length=1, max_length=80)]
TeamRoleName = Literal["member", "admin"]


class NewTeam(RequestBody):
    """A team to be created; who creates it is its admin."""

    name: TeamName


class TeamUpdate(RequestBody):
    """Another name for a team."""

    name: TeamName


class TeamResponse(BaseModel):
    """A team that the person is in, with their role in it."""

    id: uuid.UUID
    name: str
    role: TeamRoleName
    members: int
    created_at: datetime


class TeamList(BaseModel):
    """Teams, by name."""

    items: list[TeamResponse]


class TeamMemberResponse(BaseModel):
    """A person in a team. `names`: those of their accounts that were made members."""

    id: uuid.UUID
    names: list[str]
    role: TeamRoleName
    joined_at: datetime


class TeamMemberList(BaseModel):
    """The people of a team."""

    items: list[TeamMemberResponse]


class TeamRoleUpdate(RequestBody):
    """What a member may do in a team."""

    role: TeamRoleName


class NewInvitation(RequestBody):
    """Whom to invite: the id of a person of the workspace."""

    user: uuid.UUID


class SentInvitation(BaseModel):
    """An open invitation to a team, as its admins see it. `by`: who invited, and their id."""

    id: uuid.UUID
    user: uuid.UUID
    name: str
    by: str
    by_id: uuid.UUID | None
    created_at: datetime
    expires_at: datetime


class SentInvitationList(BaseModel):
    """Open invitations to a team, oldest first."""

    items: list[SentInvitation]


class ReceivedInvitation(BaseModel):
    """An open invitation to a team (`team`), or to a project (`project`) in a role. `name`: of that; `by`: who invited,
    with a number where others have that name or nearly, and their id. Once it is accepted, tools and questions are
    answered also from what others share with the team, or wrote for the project."""

    id: uuid.UUID
    team: uuid.UUID | None
    project: uuid.UUID | None
    name: str
    role: Literal["read", "write", "admin"] | None
    by: str
    by_id: uuid.UUID | None
    created_at: datetime
    expires_at: datetime


class ReceivedInvitationList(BaseModel):
    """Open invitations."""

    items: list[ReceivedInvitation]


class CreatedId(BaseModel):
    """The id of what was made."""

    id: uuid.UUID


def team_list(found: Sequence[Team]) -> dict[str, Any]:
    """Teams as TeamList shows them."""
    return {"items": [team_values(team) for team in found]}


def team_values(team: Team) -> dict[str, Any]:
    """A team as TeamResponse shows it."""
    return {
        "id": team.id,
        "name": team.name,
        "role": str(team.role),
        "members": team.members,
        "created_at": team.created_at,
    }


def invitee_values(invite: Invite) -> dict[str, Any]:
    """An invitation as SentInvitation shows it."""
    return {
        "id": invite.id,
        "user": invite.user,
        "name": invite.name,
        "by": invite.by,
        "by_id": invite.by_id,
        "created_at": invite.created_at,
        "expires_at": invite.expires_at,
    }


router = Router(tags=["teams"])
ENDED_BEFORE: Final = "An earlier request with this Idempotency-Key ended that."
_DONE: Final = documented(400, 401, 403, 404, 409, 422)
_MADE: Final[dict[int | str, dict[str, Any]]] = {
    201: {"description": "The id of what was made", "model": CreatedId, "headers": ONCE},
    **documented(400, 401, 403, 404, 409, 410, 422),
}


@router.get("/v1/teams", summary="List teams", response_class=Response, responses={200: {"model": TeamList}, **_DONE})
async def list_teams(call: Calling) -> Response:
    """The teams that the person is in, with their role."""
    async with call.reading() as (tx, access):
        return json_answer(team_list(await teams.teams(tx, access)))


@router.post("/v1/teams", summary="Create a team", response_class=Response, status_code=201, responses=_MADE)
async def create_team(call: Calling, sent: NewTeam) -> Response:
    """Who creates it is its admin."""

    async def make(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, uuid.UUID]:
        id = await teams.create(tx, access, sent.name, event.id, call.now)
        return id, id

    id, repeated = await call.once(make, _still_there, alone=True)
    return json_answer({"id": id}, 201, IS_REPLAYED if repeated else {})


@router.get(
    "/v1/teams/{id}", summary="Get a team", response_class=Response, responses={200: {"model": TeamResponse}, **_DONE}
)
async def get_team(call: Calling, id: uuid.UUID) -> Response:
    """For its members."""
    async with call.reading() as (tx, access):
        return json_answer(team_values(await teams.get(tx, access, id, call.now)))


@router.patch(
    "/v1/teams/{id}",
    summary="Rename a team",
    response_class=Response,
    responses={200: {"model": TeamResponse, "headers": ONCE}, **_DONE, **documented(410)},
)
async def rename_team(call: Calling, id: uuid.UUID, sent: TeamUpdate) -> Response:
    """For its admins."""
    found, repeated = await call.change(
        lambda tx, access: teams.rename(tx, access, id, sent.name, call.now),
        lambda tx, access: teams.get(tx, access, id, call.now),
        alone=True,
    )
    return json_answer(team_values(found), headers=IS_REPLAYED if repeated else None)


@router.delete("/v1/teams/{id}", summary="Delete a team", status_code=204, responses=_DONE)
async def delete_team(call: Calling, id: uuid.UUID) -> None:
    """For its admins. What was shared with it is its owners' alone again, also of former members; its invitations
    end."""
    await call.act(lambda tx, access: teams.delete(tx, access, id, call.now), alone=True)


@router.get(
    "/v1/teams/{id}/members",
    summary="List the members of a team",
    response_class=Response,
    responses={200: {"model": TeamMemberList}, **_DONE},
)
async def list_team_members(call: Calling, id: uuid.UUID) -> Response:
    """For its members."""
    async with call.reading() as (tx, access):
        found = await teams.members(tx, access, id, call.now)
    items = [{"id": m.id, "names": list(m.names), "role": str(m.role), "joined_at": m.joined_at} for m in found]
    return json_answer({"items": items})


@router.patch("/v1/teams/{id}/members/{user}", summary="Set what a member may do", status_code=204, responses=_DONE)
async def set_team_role(call: Calling, id: uuid.UUID, user: uuid.UUID, sent: TeamRoleUpdate) -> None:
    """For the team's admins. The only one of them stays one."""
    await call.act(lambda tx, access: teams.set_role(tx, access, id, user, TeamRole(sent.role), call.now), alone=True)


@router.delete("/v1/teams/{id}/members/{user}", summary="Remove a member", status_code=204, responses=_DONE)
async def remove_team_member(call: Calling, id: uuid.UUID, user: uuid.UUID) -> None:
    """For the team's admins, and for oneself. What they shared stays shared, marked as of a former member, until they
    or an admin of the team end that."""
    await call.act(lambda tx, access: teams.remove(tx, access, id, user, call.now), alone=True)


@router.post("/v1/teams/{id}/leave", summary="Leave a team", status_code=204, responses=_DONE)
async def leave_team(call: Calling, id: uuid.UUID) -> None:
    """What one shared stays shared until one ends that. The only admin can't leave."""
    await call.act(lambda tx, access: teams.remove(tx, access, id, access.user, call.now), alone=True)


@router.delete(
    "/v1/teams/{id}/entries/{entry}",
    summary="End what a former member shares",
    response_class=Response,
    responses={200: {"model": EntryResponse, "headers": VERSIONED}, **_DONE},
)
@counts_as(Operation.REMOVALS)
async def unshare_entry_of_former_member(call: Calling, id: uuid.UUID, entry: uuid.UUID) -> Response:
    """For the team's admins. The entry stays its owner's."""

    async def end(tx: Transaction, access: EntryAccess) -> Response:
        return await answer(tx, access, await teams.unshare_of_former(tx, access, id, entry, call.now))

    async def ended(tx: Transaction, access: EntryAccess) -> Response:
        raise Conflict(ENDED_BEFORE)  # the admin may not read it any more

    return (await call.change(end, ended))[0]


@router.post(
    "/v1/teams/{id}/invites", summary="Invite a person", response_class=Response, status_code=201, responses=_MADE
)
async def invite_to_team(call: Calling, id: uuid.UUID, sent: NewInvitation) -> Response:
    """For the team's admins. It holds for 14 days, and the person is a member once they accept."""

    async def make(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, uuid.UUID]:
        made = await teams.invite(tx, access, id, sent.user, event.id, call.now)
        return made, made

    async def again(tx: Transaction, access: EntryAccess, event: Event, made: uuid.UUID) -> uuid.UUID:
        return made

    made, repeated = await call.once(make, again, alone=True)
    return json_answer({"id": made}, 201, IS_REPLAYED if repeated else {})


@router.get(
    "/v1/teams/{id}/invites",
    summary="List the invitations to a team",
    response_class=Response,
    responses={200: {"model": SentInvitationList}, **_DONE},
)
async def list_team_invitations(call: Calling, id: uuid.UUID) -> Response:
    """Those that are open, for the team's admins."""
    async with call.reading() as (tx, access):
        found = await teams.invitees(tx, access, id, call.now)
    return json_answer({"items": [invitee_values(each) for each in found]})


@router.delete("/v1/teams/{id}/invites/{invite}", summary="End an invitation", status_code=204, responses=_DONE)
async def revoke_invitation(call: Calling, id: uuid.UUID, invite: uuid.UUID) -> None:
    """For the team's admins, while it is open."""
    await call.act(lambda tx, access: teams.revoke_invite(tx, access, id, invite, call.now), alone=True)


@router.get(
    "/v1/invites",
    summary="List invitations",
    response_class=Response,
    responses={200: {"model": ReceivedInvitationList}, **_DONE},
)
async def list_invitations(call: Calling) -> Response:
    """The person's own open invitations, to teams and to projects."""
    async with call.reading() as (tx, access):
        found = await teams.invites(tx, access, call.now)
    items = [
        {
            "id": i.id,
            "team": i.team,
            "project": i.project,
            "name": i.place,
            "role": i.role,
            "by": i.by,
            "by_id": i.by_id,
            "created_at": i.created_at,
            "expires_at": i.expires_at,
        }
        for i in found
    ]
    return json_answer({"items": items})


@router.post("/v1/teams/{id}/accept", summary="Accept an invitation", status_code=204, responses=_DONE)
async def accept_invitation(call: Calling, id: uuid.UUID) -> None:
    """Join the team that one is invited to."""
    await call.act(lambda tx, access: teams.accept(tx, access, id, call.now), alone=True)


@router.post("/v1/teams/{id}/decline", summary="Decline an invitation", status_code=204, responses=_DONE)
async def decline_invitation(call: Calling, id: uuid.UUID) -> None:
    """It is gone then."""
    await call.act(lambda tx, access: teams.decline(tx, access, id, call.now), alone=True)


async def _still_there(tx: Transaction, access: EntryAccess, event: Event, id: uuid.UUID) -> uuid.UUID:
    if id not in access.teams:
        raise NotFound(UNKNOWN_TEAM)
    return id
