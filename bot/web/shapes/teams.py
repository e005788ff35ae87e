"""Teams, as the API takes and answers them."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from bot.web.shapes.entries import Taken
from composer.repositories.teams import Team, TeamInvitee

TeamName = Annotated[str, Field(min_length=1, max_length=80)]
TeamRoleName = Literal["member", "admin"]


class NewTeam(Taken):
    """A team to be created; who creates it is its admin."""

    name: TeamName


class ChangedTeam(Taken):
    """Another name for a team."""

    name: TeamName


class TeamAnswer(BaseModel):
    """A team that the person is in, with their role in it."""

    id: uuid.UUID
    name: str
    role: TeamRoleName
    members: int
    created_at: datetime


class TeamList(BaseModel):
    """Teams, by name."""

    items: list[TeamAnswer]


class MemberAnswer(BaseModel):
    """A person in a team. `names`: those of their accounts that were made members."""

    id: uuid.UUID
    names: list[str]
    role: TeamRoleName
    joined_at: datetime


class MemberList(BaseModel):
    """The people of a team."""

    items: list[MemberAnswer]


class TeamRoleToSet(Taken):
    """What a member may do in a team."""

    role: TeamRoleName


class Invitation(Taken):
    """Whom to invite: the id of a person of the workspace."""

    user: uuid.UUID


class InviteeAnswer(BaseModel):
    """An open invitation to a team, as its admins see it. `by`: who invited."""

    id: uuid.UUID
    user: uuid.UUID
    name: str
    by: str
    created_at: datetime
    expires_at: datetime


class InviteeList(BaseModel):
    """Open invitations to a team, oldest first."""

    items: list[InviteeAnswer]


class InviteAnswer(BaseModel):
    """An open invitation to a team. `by`: who invited."""

    id: uuid.UUID
    team: uuid.UUID
    team_name: str
    by: str
    created_at: datetime
    expires_at: datetime


class InviteList(BaseModel):
    """Open invitations."""

    items: list[InviteAnswer]


class Made(BaseModel):
    """The id of what was made."""

    id: uuid.UUID


def team_list(found: Sequence[Team]) -> dict[str, Any]:
    """Teams as TeamList shows them."""
    return {"items": [team_values(team) for team in found]}


def team_values(team: Team) -> dict[str, Any]:
    """A team as TeamAnswer shows it."""
    return {
        "id": team.id,
        "name": team.name,
        "role": str(team.role),
        "members": team.members,
        "created_at": team.created_at,
    }


def invitee_values(invite: TeamInvitee) -> dict[str, Any]:
    """An invitation as InviteeAnswer shows it."""
    return {
        "id": invite.id,
        "user": invite.user,
        "name": invite.name,
        "by": invite.by,
        "created_at": invite.created_at,
        "expires_at": invite.expires_at,
    }
