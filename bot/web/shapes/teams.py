"""Teams, as the API takes and answers them."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from bot.web.shapes.entries import RequestBody
from composer.repositories.teams import Team, TeamInvitee

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
    """An open invitation to a team, as its admins see it. `by`: who invited."""

    id: uuid.UUID
    user: uuid.UUID
    name: str
    by: str
    created_at: datetime
    expires_at: datetime


class SentInvitationList(BaseModel):
    """Open invitations to a team, oldest first."""

    items: list[SentInvitation]


class ReceivedInvitation(BaseModel):
    """An open invitation to a team. `by`: who invited."""

    id: uuid.UUID
    team: uuid.UUID
    team_name: str
    by: str
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


def invitee_values(invite: TeamInvitee) -> dict[str, Any]:
    """An invitation as SentInvitation shows it."""
    return {
        "id": invite.id,
        "user": invite.user,
        "name": invite.name,
        "by": invite.by,
        "created_at": invite.created_at,
        "expires_at": invite.expires_at,
    }
