"""Make a project, and see one's own. Chat commands and the API make projects by the same function."""

import re
import uuid
from dataclasses import replace
from datetime import datetime
from typing import Final

from composer import visibility
from composer.errors import BadInput, Conflict, NotFound, Refused
from composer.model import Role
from composer.repositories.database import Transaction
from composer.repositories.projects import Project
from composer.rights.relations import MembershipFacts
from composer.rights.table import Act, judge
from composer.visibility import EntryAccess, Grants

_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}", re.ASCII)


def new_slug(text: str) -> str:
    """The name of a new project, in lower case. Raises BadInput."""
    slug = text.lower()
    if not _SLUG.fullmatch(slug):
        raise BadInput("A project's name is 1 to 32 characters of a-z, 0-9, - and _.")
    return slug


async def create(tx: Transaction, id: uuid.UUID, slug: str, user: uuid.UUID, now: datetime, *, isolated: bool) -> None:
    """Make a project with a user as its admin, in a transaction that is alone. Others may have its name.
    Raises Conflict where the person is in one of that name already."""
    await require_free_name(tx, slug, user)
    await tx.projects.create(id, slug, isolated, user, now)
    await tx.projects.join(id, user, Role.ADMIN)


async def create_over_api(
    tx: Transaction, access: EntryAccess, id: uuid.UUID, name: str, now: datetime, *, isolated: bool
) -> Project:
    """`create` for a request over the API. Raises besides BadInput for what is no name, and Refused for a tool or a key
    that may not."""
    require_writing(access)
    tx.audit.act_for(access.user)
    await create(tx, id, new_slug(name), access.user, now, isolated=isolated)
    return next(project for project in await tx.projects.find_for(access.user) if project.id == id)


async def rename_over_api(tx: Transaction, access: EntryAccess, id: uuid.UUID, name: str) -> Project:
    """Give a project another name, as one of its admins. Raises BadInput, Conflict where the person is in another one
    of that name, and as `judge_over_api`."""
    facts, slug = await judge_over_api(tx, access, Act.RENAME_PROJECT, id), new_slug(name)
    assert facts.project is not None
    if slug != facts.project.slug:
        await require_free_name(tx, slug, access.user)
        await tx.projects.rename(id, slug, access.user)
    return await own_project(tx, access, id)


async def require_free_name(tx: Transaction, slug: str, user: uuid.UUID) -> None:
    """Return if a person is in no project of a name. Raises Conflict."""
    if any(project.slug == slug for project in await tx.projects.find_for(user)):
        raise Conflict(f"You are in a project called {slug} already; choose another name.")


async def own_projects(tx: Transaction, access: EntryAccess) -> list[Project]:
    """The projects that the person is in, as far as the credential may see them, by name."""
    found = await tx.projects.find_for(access.user)
    return [project for project in found if visibility.readable_project(access, project.id) is not None]


async def own_project(tx: Transaction, access: EntryAccess, id: uuid.UUID) -> Project:
    """One of them. Raises NotFound."""
    found = next((project for project in await own_projects(tx, access) if project.id == id), None)
    if found is None:
        raise NotFound(visibility.unknown_project_sentence(str(id)))
    return found


async def judge_over_api(
    tx: Transaction, access: EntryAccess, act: Act, id: uuid.UUID, *, of_self: bool = False
) -> MembershipFacts:
    """The facts by which an act on a project is judged over the API, if the person may do it by this credential.

    Raises NotFound for a project that they may not know of, Refused for what their role or the credential is not
    enough for.
    """
    project = visibility.readable_project(access, id)
    if project is not None and act is not Act.SEE_PROJECT:
        admins, _ = await tx.projects.admins(id, access.user)
        project = replace(project, admins=admins)
    facts = MembershipFacts(project, str(id), of_self)
    judge((act,), facts)
    if act is not Act.SEE_PROJECT:
        require_writing(access, id)
    return facts


def require_writing(access: EntryAccess, id: uuid.UUID | None = None) -> None:
    """Return if a credential may change projects: a person's own, with the permission for one of them, or for all
    (None). Raises Refused."""
    if not access.is_person:
        raise Refused("A tool may not change projects: its person does that themselves.")
    needed = {Grants.WRITE_PROJECTS} | (set() if id is None else {Grants.of_project(id, "write")})
    visibility.require_grant(access, needed, "change projects")
