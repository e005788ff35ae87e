"""Who is in a project, with which role. Membership belongs to the person, with all users that they are.

Whoever changes it was judged (composer/rights/table.py), in the same transaction, which is alone.
"""

import uuid

from composer.entries.teams import UNKNOWN_USER
from composer.errors import Conflict, NotFound
from composer.model import Role, User
from composer.people.projects.projects import judge_over_api
from composer.repositories.database import Transaction
from composer.repositories.projects import ProjectMember
from composer.rights.table import Act
from composer.visibility import EntryAccess, ProjectFacts


async def set_member(tx: Transaction, project: ProjectFacts, user: User, role: Role) -> None:
    """Make somebody a member, or change their role. Raises Conflict where no admin would be left."""
    if role is not Role.ADMIN:
        await _require_another_admin(tx, project, user)
    await tx.projects.set_member(project.id, user.id, role)


async def remove_member(tx: Transaction, project: ProjectFacts, user: User) -> bool:
    """Remove somebody; False for who is no member. Raises Conflict for the only admin."""
    await _require_another_admin(tx, project, user)
    return await tx.projects.remove_member(project.id, user.id)


async def list_members(tx: Transaction, access: EntryAccess, id: uuid.UUID) -> list[ProjectMember]:
    """The people of a project, for its members. Raises NotFound."""
    judge_over_api(access, Act.SEE_PROJECT, id)
    return await tx.projects.members(id)


async def set_member_over_api(tx: Transaction, access: EntryAccess, id: uuid.UUID, user: uuid.UUID, role: Role) -> None:
    """`set_member` for a request over the API. Raises besides NotFound and Refused, as `judge_over_api` does."""
    facts = judge_over_api(access, Act.ADD_MEMBER, id)
    assert facts.project is not None
    tx.audit.act_for(access.user)
    await set_member(tx, facts.project, await _user(tx, user), role)


async def remove_member_over_api(tx: Transaction, access: EntryAccess, id: uuid.UUID, user: uuid.UUID) -> None:
    """`remove_member` for a request over the API, also to leave. Raises besides as `judge_over_api`."""
    facts = judge_over_api(access, Act.REMOVE_MEMBER, id, of_self=user in access.users)
    assert facts.project is not None
    tx.audit.act_for(access.user)
    if not await remove_member(tx, facts.project, await _user(tx, user)):
        raise NotFound(UNKNOWN_USER)


async def _user(tx: Transaction, id: uuid.UUID) -> User:
    names = await tx.people.names([id])
    if id not in names:
        raise NotFound(UNKNOWN_USER)
    return User(id, names[id], False)


async def _require_another_admin(tx: Transaction, project: ProjectFacts, leaving: User) -> None:
    """Raise Conflict where the project would be left without an admin: nobody could take a room out of it again."""
    if await tx.projects.is_last_admin(project.id, leaving.id):
        raise Conflict(
            f"{leaving.name} is the only admin of {project.slug}: make somebody else an admin first "
            f"(/nexus project member add {project.slug} USER admin)."
        )
