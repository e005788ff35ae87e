"""Who is in a project, with which role. Membership belongs to the person, with all users that they are, and begins when
they accept: from then on they are answered from what others write for it.

Whoever changes it was judged (composer/rights/table.py), in the same transaction, which is alone.
"""

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from composer.entries.namesakes import invitations_told_apart, members_told_apart
from composer.entries.teams import UNKNOWN_INVITE, UNKNOWN_USER, require_may_invite
from composer.errors import Conflict, NotFound, Refused
from composer.model import Role, User, derived_id
from composer.people.projects.projects import judge_over_api, require_writing
from composer.repositories.database import Transaction
from composer.repositories.invites import Invite
from composer.repositories.projects import ProjectMember
from composer.rights.table import Act, leaving_alone
from composer.visibility import EntryAccess, ProjectFacts

WRITER_TOLD: Final = "What you say in sessions that you put into it all in it can recall."


async def set_member(
    tx: Transaction, project: ProjectFacts, user: User, role: Role, by: uuid.UUID, now: datetime
) -> bool:
    """Set a member's role, or invite somebody who is none; return whether they have the role now.

    Who may only read is invited to a role that writes, too: from then on what they say in sessions that they put into
    the project, and said there before, is recalled by everybody in it. Raises Conflict where no admin would be left,
    and for who has declined lately.
    """
    if role is not Role.ADMIN and await tx.projects.admins(project.id, user.id) == (1, True):
        raise Conflict(
            f"{user.name} is the only admin of {project.slug}: make somebody else an admin first "
            f"(/nexus project member add {project.slug} USER admin)."
        )
    known = await _role(tx, project.id, user.id)
    opens_sessions = known is Role.READ and role is not Role.READ
    if known is not None and (not opens_sessions or await _is_same(tx, user.id, by)):
        await tx.projects.set_role(project.id, user.id, role)
        await tx.invites.withdraw(project.id, [user.id], now)
        return True
    own = [by, *(await tx.people.linked_users([by])).get(by, ())]
    await require_may_invite(tx, own, project.id, user.id, now)
    id = derived_id("project invite", str(project.id), str(user.id), str(role))
    await tx.invites.to_project(id, project.id, user.id, role, by, now)
    return False


async def remove_member(tx: Transaction, project: ProjectFacts, user: User, now: datetime) -> bool:
    """Remove somebody, or withdraw their invitation; False for who has neither. Raises Conflict for the only admin."""
    if await tx.projects.admins(project.id, user.id) == (1, True):
        raise Conflict(
            f"{user.name} is the only admin of {project.slug}: they may leave (/nexus project leave {project.slug})."
        )
    users = [user.id, *(await tx.people.linked_users([user.id])).get(user.id, ())]
    withdrawn = await tx.invites.withdraw(project.id, users, now)
    return await _end(tx, project.id, users) or withdrawn


async def leave(tx: Transaction, project: uuid.UUID, users: Sequence[uuid.UUID], now: datetime) -> bool:
    """Let a person leave a project, and decline what they are invited to in it; False for who is neither."""
    invited = await tx.invites.decline(project, users, now)
    return await _end(tx, project, users) or invited


async def _end(tx: Transaction, project: uuid.UUID, users: Sequence[uuid.UUID]) -> bool:
    """End a membership. The person's DMs and sessions leave the project with them: what they say there from now on is
    in no pool, also when they are members again."""
    removed = await tx.projects.remove_member(project, users[0])
    await tx.conversations.leave_projects(users)
    return removed


async def accept(
    tx: Transaction, project: uuid.UUID, users: Sequence[uuid.UUID], shown: Role | None, now: datetime
) -> Role:
    """Make a person a member of a project that they are invited to, with all users that are, and return their role: the
    best that is offered, or that they have.

    `shown` is the role that they accept, as they were shown it; who names none (None) accepts what was not raised since
    they may have been. Raises NotFound, and Conflict where another role is offered by now.
    """
    invited = await tx.invites.take(project, users, now)
    if not invited:
        raise NotFound(UNKNOWN_INVITE)
    best = best_role(offer.role for offer in invited.values())
    if shown is not best and (shown is not None or any(offer.raised for offer in invited.values())):
        raise Conflict(
            f"That invitation has changed: it offers the role {best} now. To accept it, name that role. "
            f"{WRITER_TOLD if best.writes else ''}".rstrip()
        )
    role = best_role((best, await _role(tx, project, users[0])))
    for user in invited:
        await tx.projects.join(project, user, role)
    return role


async def list_members(tx: Transaction, access: EntryAccess, id: uuid.UUID) -> list[ProjectMember]:
    """The people of a project, for its members. Raises NotFound."""
    await judge_over_api(tx, access, Act.SEE_PROJECT, id)
    return members_told_apart(access, await tx.projects.members(id))


async def may_manage(tx: Transaction, access: EntryAccess, id: uuid.UUID) -> bool:
    """Whether the person may invite people to one of their projects, and change the roles of its members. Raises
    NotFound."""
    try:
        await judge_over_api(tx, access, Act.ADD_MEMBER, id)
    except Refused:
        return False
    return True


async def list_invited(tx: Transaction, access: EntryAccess, id: uuid.UUID, now: datetime) -> list[Invite]:
    """The open invitations to a project, for its admins. Raises as `judge_over_api`."""
    await judge_over_api(tx, access, Act.ADD_MEMBER, id)
    return invitations_told_apart(access, await tx.invites.find(now, place=id))


async def set_member_over_api(
    tx: Transaction, access: EntryAccess, id: uuid.UUID, user: uuid.UUID, role: Role, now: datetime
) -> bool:
    """`set_member` for a request over the API. Raises besides NotFound and Refused, as `judge_over_api` does."""
    facts = await judge_over_api(tx, access, Act.ADD_MEMBER, id)
    assert facts.project is not None
    tx.audit.act_for(access.user)
    return await set_member(tx, facts.project, await _user(tx, user), role, access.user, now)


async def remove_member_over_api(
    tx: Transaction, access: EntryAccess, id: uuid.UUID, user: uuid.UUID, now: datetime
) -> None:
    """`remove_member` for a request over the API. Raises besides as `judge_over_api`."""
    facts = await judge_over_api(tx, access, Act.REMOVE_MEMBER, id, of_self=user in access.users)
    assert facts.project is not None
    tx.audit.act_for(access.user)
    if not await remove_member(tx, facts.project, await _user(tx, user), now):
        raise NotFound(UNKNOWN_USER)


async def leave_over_api(
    tx: Transaction, access: EntryAccess, id: uuid.UUID, now: datetime, *, confirmed: bool
) -> None:
    """Leave a project. Raises as `judge_over_api`, and Conflict for its only admin where it is not `confirmed`."""
    facts = await judge_over_api(tx, access, Act.LEAVE_PROJECT, id)
    assert facts.project is not None
    if not confirmed and (opened := leaving_alone(facts.project, facts.project.slug)):
        raise Conflict(f"{opened} To leave all the same, send it with confirm=true.")
    tx.audit.act_for(access.user)
    await leave(tx, id, access.users, now)


async def accept_over_api(
    tx: Transaction, access: EntryAccess, id: uuid.UUID, shown: Role | None, now: datetime
) -> None:
    """`accept` for a request over the API. Raises besides Refused for a tool or a key that may not."""
    require_writing(access)
    tx.audit.act_for(access.user)
    await accept(tx, id, access.users, shown, now)


async def decline_over_api(tx: Transaction, access: EntryAccess, id: uuid.UUID, now: datetime) -> None:
    """Decline an invitation. Raises NotFound, and Refused as `accept_over_api`."""
    require_writing(access)
    tx.audit.act_for(access.user)
    if not await tx.invites.decline(id, access.users, now):
        raise NotFound(UNKNOWN_INVITE)


def best_role(roles: Iterable[Role | None]) -> Role:
    """The one of these roles that may most; there is one."""
    return max((role for role in roles if role is not None), key=list(Role).index)


async def _role(tx: Transaction, project: uuid.UUID, user: uuid.UUID) -> Role | None:
    return next((each.role for each in await tx.projects.find_for(user) if each.id == project), None)


async def _is_same(tx: Transaction, user: uuid.UUID, other: uuid.UUID) -> bool:
    return user == other or other in (await tx.people.linked_users([user])).get(user, ())


async def _user(tx: Transaction, id: uuid.UUID) -> User:
    names = await tx.people.names([id])
    if id not in names:
        raise NotFound(UNKNOWN_USER)
    return User(id, names[id], False)
