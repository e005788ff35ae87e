"""Teams and their members. Who is a member is one with all users that they are, and has one role."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.model import TeamRole
from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct
from composer.rights.relations import TeamFacts


@dataclass(frozen=True, slots=True)
class Team:
    """A team, the asker's role in it, and how many people are members."""

    id: uuid.UUID
    name: str
    role: TeamRole
    members: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TeamMember:
    """A person in a team: one of their users, the names of those that were made members, their role, and since when."""

    id: uuid.UUID
    names: tuple[str, ...]
    role: TeamRole
    joined_at: datetime


class Teams:
    """Stored teams. Who changes one is alone, and records it in the audit log."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def create(self, id: uuid.UUID, name: str, by: uuid.UUID, now: datetime) -> bool:
        """Create a team, whose first admin is who made it; False when it exists."""
        if await self._sql.fetch_one("team_insert", id=id, name=name, user_id=by, now=now) is None:
            return False
        await self._audit.record(AuditAct.TEAM_CREATED, actor=by, details={"team": str(id)})
        await self.add_member(id, by, TeamRole.ADMIN, by, now)
        return True

    async def facts(self, team: uuid.UUID, user: uuid.UUID, other: uuid.UUID | None, now: datetime) -> TeamFacts | None:
        """What a person, and another one, are to a team; None for an unknown team."""
        row = await self._sql.fetch_one("team_facts", team_id=team, user_id=user, other_id=other, now=now)
        if row is None:
            return None
        role, other_role = (None if row[name] is None else TeamRole(row[name]) for name in ("role", "other_role"))
        return TeamFacts(row["name"], role, row["invited"], other_role, row["of_self"], row["last_admin"])

    async def find_for(self, users: Sequence[uuid.UUID]) -> list[Team]:
        """The teams that a person is a member of, by name."""
        return await self._sql.fetch_as(Team, "team_list", user_ids=list(users))

    async def members(self, team: uuid.UUID) -> list[TeamMember]:
        """The people of a team, by name."""
        return await self._sql.fetch_as(TeamMember, "team_members_list", team_id=team)

    async def add_member(self, team: uuid.UUID, user: uuid.UUID, role: TeamRole, by: uuid.UUID, now: datetime) -> None:
        """Make a user a member; one who is keeps their role."""
        added = await self._sql.fetch_one("team_member_add", team_id=team, user_id=user, role=str(role), now=now)
        if added is not None:
            await self._audit.record(AuditAct.TEAM_MEMBER, users=[user], actor=by, details=_details(team, role))

    async def set_role(self, team: uuid.UUID, user: uuid.UUID, role: TeamRole, by: uuid.UUID) -> bool:
        """Set a person's role, with all their users that are members; False for who is none."""
        rows = await self._sql.fetch("team_member_set", team_id=team, user_id=user, role=str(role))
        users = sorted(row["user_id"] for row in rows)
        if users:
            await self._audit.record(AuditAct.TEAM_MEMBER, users=users, actor=by, details=_details(team, role))
        return bool(users)

    async def remove_member(self, team: uuid.UUID, user: uuid.UUID, by: uuid.UUID) -> bool:
        """Remove a person with all their users; False for who is no member."""
        rows = await self._sql.fetch("place_member_remove", place_id=team, user_id=user)
        users = sorted(row["user_id"] for row in rows)
        if users:
            await self._audit.record(AuditAct.TEAM_MEMBER_REMOVED, users=users, actor=by, details=_details(team))
        return bool(users)

    async def rename(self, id: uuid.UUID, name: str, by: uuid.UUID) -> None:
        """Give a team another name. Others may have it too."""
        await self._sql.execute("place_rename", place_id=id, name=name)
        await self._audit.record(AuditAct.TEAM_RENAMED, actor=by, details=_details(id))

    async def delete(self, id: uuid.UUID, by: uuid.UUID) -> None:
        """Delete a team that nothing is filed under, with its invitations."""
        users = [row["user_id"] for row in await self._sql.fetch("place_delete", place_id=id)]
        await self._audit.record(AuditAct.TEAM_DELETED, users=users, actor=by, details=_details(id))


def _details(team: uuid.UUID, role: TeamRole | None = None) -> dict[str, str]:
    return {"team": str(team)} | ({} if role is None else {"role": str(role)})
