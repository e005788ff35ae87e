"""Invitations to teams and projects: whoever is invited is a member once they accept."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.model import Role
from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct

INVITE_LIFETIME: Final = timedelta(days=14)
DECLINED_LIFETIME: Final = timedelta(days=30)  # in which who declined is not invited to the same again


@dataclass(frozen=True, slots=True)
class Invite:
    """An open invitation to a team, or to a project in a `role`: the name of that (`place`), whether it is isolated,
    who is invited (`user`) with their name, and the name and id of who invited (`by`, `by_id`)."""

    id: uuid.UUID
    team: uuid.UUID | None
    project: uuid.UUID | None
    place: str
    isolated: bool
    role: str | None
    user: uuid.UUID
    name: str
    by: str
    by_id: uuid.UUID | None
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class OfferedRole:
    """What an invitation offers: a role in a project (None: it is to a team), and whether an earlier one, which the
    person may have been shown, offered less."""

    role: Role | None
    raised: bool


class Invites:
    """Stored invitations. Who changes one is alone, and records it in the audit log."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def to_team(self, id: uuid.UUID, team: uuid.UUID, user: uuid.UUID, by: uuid.UUID, now: datetime) -> None:
        """Invite a user to a team, in place of an earlier invitation."""
        await self._put(id, user, by, now, team_id=team, project_id=None, role=None)
        await self._audit.record(AuditAct.TEAM_INVITED, users=[user], actor=by, details={"team": str(team)})

    async def to_project(
        self, id: uuid.UUID, project: uuid.UUID, user: uuid.UUID, role: Role, by: uuid.UUID, now: datetime
    ) -> None:
        """Invite a user to a project, in place of an earlier invitation."""
        await self._put(id, user, by, now, team_id=None, project_id=project, role=str(role))
        details = {"role": str(role)}
        await self._audit.record(AuditAct.PROJECT_INVITED, users=[user], actor=by, project=project, details=details)

    async def _put(
        self,
        id: uuid.UUID,
        user: uuid.UUID,
        by: uuid.UUID,
        now: datetime,
        *,
        team_id: uuid.UUID | None,
        project_id: uuid.UUID | None,
        role: str | None,
    ) -> None:
        await self._sql.execute(
            "invite_put",
            id=id,
            team_id=team_id,
            project_id=project_id,
            role=role,
            user_id=user,
            created_by=by,
            now=now,
            expires_at=now + INVITE_LIFETIME,
            forgotten_at=now - INVITE_LIFETIME,
        )

    async def find(
        self,
        now: datetime,
        *,
        place: uuid.UUID | None = None,
        users: Sequence[uuid.UUID] = (),
        by: Sequence[uuid.UUID] = (),
    ) -> list[Invite]:
        """The open invitations to a team or project, or those of a person to any, or by a person, oldest first."""
        return await self._sql.fetch_as(
            Invite, "invites_list", place_id=place, user_ids=list(users), by_ids=list(by), now=now
        )

    async def take(self, place: uuid.UUID, users: Sequence[uuid.UUID], now: datetime) -> dict[uuid.UUID, OfferedRole]:
        """Delete a person's invitations to a team or project, which they accept. Returns those of their users that had
        an open one, with what it offered."""
        rows = await self._sql.fetch("invites_take", place_id=place, user_ids=list(users), id=None, now=now)
        taken = {
            row["user_id"]: OfferedRole(row["role"] and Role(row["role"]), row["raised"]) for row in rows if row["open"]
        }
        return {user: taken[user] for user in sorted(taken)}

    async def decline(self, place: uuid.UUID, users: Sequence[uuid.UUID], now: datetime) -> bool:
        """End a person's open invitations to a team or project; False for none. They are not invited there again within
        DECLINED_LIFETIME."""
        return await self._end(place, users, now, declined=True)

    async def has_declined(self, place: uuid.UUID, users: Sequence[uuid.UUID], now: datetime) -> bool:
        """Whether a person has declined an invitation to a team or project within DECLINED_LIFETIME."""
        since = now - DECLINED_LIFETIME
        row = await self._sql.fetch_one("invites_declined", place_id=place, user_ids=list(users), since=since)
        return row is not None and bool(row["declined"])

    async def withdraw(self, project: uuid.UUID, users: Sequence[uuid.UUID], now: datetime) -> bool:
        """End a person's open invitations to a project; False for none. That they were stays known for a while, so
        that another one that offers more is not taken for what they were shown."""
        return await self._end(project, users, now, declined=False)

    async def _end(self, place: uuid.UUID, users: Sequence[uuid.UUID], now: datetime, *, declined: bool) -> bool:
        given = {"place_id": place, "user_ids": list(users), "now": now, "declined": declined}
        return bool(await self._sql.fetch("invites_end", **given))

    async def revoke_to_team(self, team: uuid.UUID, id: uuid.UUID, by: uuid.UUID, now: datetime) -> bool:
        """Delete an open invitation to a team; False where there is none."""
        row = await self._sql.fetch_one("invites_take", place_id=team, user_ids=[], id=id, now=now)
        if row is not None:
            users, details = [row["user_id"]], {"team": str(team)}
            await self._audit.record(AuditAct.TEAM_INVITE_REVOKED, users=users, actor=by, details=details)
        return row is not None
