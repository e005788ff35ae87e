"""Projects and their members. Who is a member is one with all users that they are, and has one role."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.model import Role, User, project_namespace
from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct
from composer.rights import project_names


@dataclass(frozen=True, slots=True)
class Project:
    """A project, what the asker calls it (`name`: with its id where they are in several of one slug), their role in it,
    and how many members it has."""

    id: uuid.UUID
    slug: str
    name: str
    isolated: bool
    role: Role
    members: int


@dataclass(frozen=True, slots=True)
class ProjectMember:
    """A person in a project: one of their users, the names of those that were made members, and their role."""

    id: uuid.UUID
    names: tuple[str, ...]
    role: Role


@dataclass(frozen=True, slots=True)
class ProjectRoom:
    """A room of a project. `pooled`: the project recalls what is said in it, also where it is private."""

    id: uuid.UUID
    name: str
    private: bool
    pooled: bool


@dataclass(frozen=True, slots=True)
class ProjectItem:
    """Something that was written for a project: its kind and id, whose it is (None: nobody's), and whether it is in use
    now."""

    kind: str
    id: uuid.UUID
    user_id: uuid.UUID | None
    current: bool


class Projects:
    """Stored projects."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def create(self, id: uuid.UUID, slug: str, isolated: bool, by: uuid.UUID, now: datetime) -> None:
        """Create a project. Others may have the same name."""
        await self._sql.execute("project_insert", id=id, slug=slug, isolated=isolated, user_id=by, now=now)
        await self._audit.record(AuditAct.PROJECT_CREATED, actor=by, project=id, details={"isolated": isolated})

    async def named(self, typed: str) -> list[uuid.UUID]:
        """All projects that a typed name means, whoever is in them: for admins of the tenant alone."""
        slug = project_names.slug_of(typed)
        rows = await self._sql.fetch("projects_of_slug", slug=slug)
        return [row["id"] for row in rows if project_names.names(typed, slug, row["id"])]

    async def find_for(self, user: uuid.UUID) -> list[Project]:
        """The projects that a person is a member of."""
        rows = await self._sql.fetch("project_list", user_ids=[user])
        names = project_names.distinct_names((row["id"], row["slug"]) for row in rows)
        return [
            Project(row["id"], row["slug"], names[row["id"]], row["isolated"], Role(row["role"]), row["members"])
            for row in rows
        ]

    async def admins(self, project: uuid.UUID, user: uuid.UUID) -> tuple[int, bool]:
        """How many people are admins of a project, and whether a person is one of them."""
        row = await self._sql.fetch_one("project_admins", project_id=project, user_id=user)
        return (0, False) if row is None else (row["admins"], row["is_one"])

    async def find_member(self, project: uuid.UUID, names: Sequence[str]) -> list[User]:
        """The members whose id on any platform, or whose name in lower case, is one of these: one user for each
        person."""
        return await self._sql.fetch_as(User, "project_member_find", project_id=project, names=list(names))

    async def join(self, project: uuid.UUID, user: uuid.UUID, role: Role) -> None:
        """Make a user a member, who made the project or accepts; a person who is one gets this role with all users."""
        await self._set(project, user, role, joins=True)

    async def set_role(self, project: uuid.UUID, user: uuid.UUID, role: Role) -> bool:
        """Set a member's role, with all their users that are members; False for who is none."""
        return await self._set(project, user, role, joins=False)

    async def _set(self, project: uuid.UUID, user: uuid.UUID, role: Role, *, joins: bool) -> bool:
        rows = await self._sql.fetch(
            "project_member_set", project_id=project, user_id=user, role=str(role), joins=joins
        )
        if rows:
            users, details = sorted(row["user_id"] for row in rows), {"role": str(role)}
            await self._audit.record(AuditAct.PROJECT_MEMBER, users=users, project=project, details=details)
        return bool(rows)

    async def remove_member(self, project: uuid.UUID, user: uuid.UUID) -> bool:
        """Remove a person with all their users; False when they were no member."""
        rows = await self._sql.fetch("place_member_remove", place_id=project, user_id=user)
        if rows:
            users = sorted(row["user_id"] for row in rows)
            await self._audit.record(AuditAct.PROJECT_MEMBER_REMOVED, users=users, project=project)
        return bool(rows)

    async def rename(self, id: uuid.UUID, slug: str, by: uuid.UUID) -> None:
        """Give a project another name. Others may have it too."""
        await self._sql.execute("place_rename", place_id=id, name=slug)
        await self._audit.record(AuditAct.PROJECT_RENAMED, actor=by, project=id)

    async def delete(self, id: uuid.UUID, by: uuid.UUID) -> None:
        """Delete a project that nothing is filed under and no conversation is in."""
        rows = await self._sql.fetch("place_delete", place_id=id)
        users = [row["user_id"] for row in rows]
        await self._audit.record(AuditAct.PROJECT_DELETED, actor=by, users=users, project=id)

    async def conversations(self, id: uuid.UUID) -> list[uuid.UUID]:
        """The ids of the rooms, DMs and sessions that are in a project."""
        return [row["id"] for row in await self._sql.fetch("conversation_ids", id=None, project_id=id)]

    async def items(self, id: uuid.UUID, now: datetime) -> list[ProjectItem]:
        """What was written for a project, whatever has become of it."""
        return await self._sql.fetch_as(ProjectItem, "project_items", namespace=project_namespace(id), now=now)

    async def members(self, project: uuid.UUID) -> list[ProjectMember]:
        """The people of a project, by name."""
        return await self._sql.fetch_as(ProjectMember, "project_members", project_id=project)

    async def rooms(self, project: uuid.UUID, joined: Collection[uuid.UUID]) -> list[ProjectRoom]:
        """Its rooms, by name; of the private ones only those that the viewer is in (`joined`)."""
        rows = await self._sql.fetch("project_rooms", project_id=project, joined_ids=list(joined))
        return [ProjectRoom(row["id"], row["name"], row["private"], row["pooled"]) for row in rows]
