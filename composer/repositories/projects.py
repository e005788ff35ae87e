"""Projects and their members."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from composer.model import Role
from composer.ports.database import Statements
from composer.repositories.audit import Act, Audit


@dataclass(frozen=True, slots=True)
class Project:
    """A project and the asker's role in it (None: not a member)."""

    id: uuid.UUID
    slug: str
    isolated: bool
    role: Role | None
    members: int = 0


class Projects:
    """Stored projects."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def create(self, id: uuid.UUID, slug: str, isolated: bool, by: uuid.UUID, now: datetime) -> bool:
        """Create a project; False when its name is taken."""
        row = await self._sql.fetch_one("project_insert", id=id, slug=slug, isolated=isolated, user_id=by, now=now)
        if row is not None:
            await self._audit.record(Act.PROJECT_CREATED, actor=by, project=id, details={"isolated": isolated})
        return row is not None

    async def find(self, slug: str, user: uuid.UUID) -> Project | None:
        """A project by name, with this person's role."""
        row = await self._sql.fetch_one("project_find", slug=slug, user_id=user)
        return None if row is None else Project(row["id"], row["slug"], row["isolated"], _role(row["role"]))

    async def find_for(self, user: uuid.UUID) -> list[Project]:
        """The projects that a user is a member of."""
        rows = await self._sql.fetch("project_list", user_id=user)
        return [Project(row["id"], row["slug"], row["isolated"], _role(row["role"]), row["members"]) for row in rows]

    async def set_member(self, project: uuid.UUID, user: uuid.UUID, role: Role) -> None:
        """Set a person's role."""
        await self._sql.execute("project_member_set", project_id=project, user_id=user, role=str(role))
        await self._audit.record(Act.PROJECT_MEMBER, users=[user], project=project, details={"role": str(role)})

    async def remove_member(self, project: uuid.UUID, user: uuid.UUID) -> bool:
        """Remove a person; False when they were no member."""
        removed = await self._sql.fetch_one("project_member_remove", project_id=project, user_id=user) is not None
        if removed:
            await self._audit.record(Act.PROJECT_MEMBER_REMOVED, users=[user], project=project)
        return removed

    async def members(self, project: uuid.UUID) -> list[tuple[str, Role]]:
        """Names and roles of the members."""
        rows = await self._sql.fetch("project_members", project_id=project)
        return [(row["name"], Role(row["role"])) for row in rows]

    async def rooms(self, project: uuid.UUID, user: uuid.UUID) -> list[tuple[str, bool, bool]]:
        """(name, private, pooled) of its rooms; of the private ones only those that this person is in."""
        rows = await self._sql.fetch("project_rooms", project_id=project, user_id=user)
        return [(row["name"], row["private"], row["pooled"]) for row in rows]


def _role(text: str | None) -> Role | None:
    return None if text is None else Role(text)
