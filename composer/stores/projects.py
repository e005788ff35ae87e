"""Projects in Postgres."""

import uuid
from datetime import datetime

from composer.model import Role
from composer.ports import Project
from composer.stores.statements import Statements


class PostgresProjects:
    """composer.ports.Projects."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def create(self, id: uuid.UUID, slug: str, isolated: bool, by: uuid.UUID, now: datetime) -> bool:
        """False when the name is taken."""
        return await self._sql.row("project_insert", id, slug, isolated, by, now) is not None

    async def find(self, slug: str, user: uuid.UUID) -> Project | None:
        """A project by name, with this person's role."""
        row = await self._sql.row("project_find", slug, user)
        return None if row is None else Project(row["id"], row["slug"], row["isolated"], _role(row["role"]))

    async def all(self, user: uuid.UUID, admin: bool) -> list[Project]:
        """Those that a person is in; every one for an admin."""
        rows = await self._sql.fetch("project_list", user, admin)
        return [Project(row["id"], row["slug"], row["isolated"], _role(row["role"]), row["members"]) for row in rows]

    async def put_member(self, project: uuid.UUID, user: uuid.UUID, role: Role) -> None:
        """Give a role."""
        await self._sql.execute("project_member_put", project, user, str(role))

    async def remove_member(self, project: uuid.UUID, user: uuid.UUID) -> bool:
        """False when they were not in it."""
        return await self._sql.row("project_member_remove", project, user) is not None

    async def members(self, project: uuid.UUID) -> list[tuple[str, Role]]:
        """Names and roles."""
        return [(row["name"], Role(row["role"])) for row in await self._sql.fetch("project_members", project)]

    async def rooms(self, project: uuid.UUID, user: uuid.UUID) -> list[tuple[str, bool, bool]]:
        """(name, private, pooled) of its rooms that this person may know of."""
        rows = await self._sql.fetch("project_rooms", project, user)
        return [(row["name"], row["private"], row["pooled"]) for row in rows]


def _role(text: str | None) -> Role | None:
    return None if text is None else Role(text)
