"""Projects and teams without an admin: an admin of the tenant makes a member of one its admin, or deletes it. Never
what is filed there."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

from composer.entries import teams
from composer.entries.namesakes import Labels
from composer.errors import Conflict, NotFound
from composer.memory.forget import Receipt
from composer.model import Role, TeamRole, User
from composer.people.projects import deletion, members
from composer.repositories.database import Transaction
from composer.repositories.people import NAMELESS
from composer.repositories.tenant_figures import PlaceWithoutAdmin
from composer.rights.relations import TenantFacts
from composer.rights.table import Act, judge
from composer.visibility import EntryAccess, ProjectFacts

MAX_ORPHANS: Final = 50
UNKNOWN_ORPHAN: Final = "There is no such project or team without an admin."
NO_MEMBER: Final = "That person is no member of it: only its members can be made admins."
NOT_CONFIRMED: Final = "It is deleted for everybody in it: send it with confirm=true."


class OrphanKind(StrEnum):
    """What has no admin."""

    PROJECT = "project"
    TEAM = "team"


@dataclass(frozen=True, slots=True)
class OrphanMember:
    """A member who can be made an admin: the id of one of their accounts, and the names of those that are members.
    `is_asked`: they may only read, and are invited first."""

    id: uuid.UUID
    names: Sequence[str]
    is_asked: bool


@dataclass(frozen=True, slots=True)
class Orphan:
    """A project or team that has no admin any more, or only some of whom everything was erased, and its members, whom
    of them can be made an admin."""

    kind: OrphanKind
    id: uuid.UUID
    name: str
    isolated: bool
    since: datetime
    members: Sequence[OrphanMember]


async def orphans(tx: Transaction, access: EntryAccess) -> Sequence[Orphan]:
    """All of the tenant, at most `MAX_ORPHANS`, projects first, by name, with members who are told apart: one of them
    is made an admin. Raises AdminNeeded."""
    return [_told_apart(access, await _orphan(tx, each)) for each in await _places(tx, access)]


async def appoint(tx: Transaction, access: EntryAccess, id: uuid.UUID, user: uuid.UUID, now: datetime) -> bool:
    """Make a member the admin of a project or team that has none, in a transaction that is alone; return whether they
    are one now. Who may only read a project is invited: what they say in it is recalled by others once they accept.
    Raises NotFound, AdminNeeded, and as `members.set_member`."""
    found = await _found(tx, access, id)
    member = next((each for each in found.members if each.id == user), None)
    if member is None:
        raise NotFound(NO_MEMBER)
    tx.audit.act_for(access.user)
    if found.kind is OrphanKind.TEAM:
        return await tx.teams.set_role(id, user, TeamRole.ADMIN, access.user)
    named = User(member.id, member.names[0])
    return await members.set_member(tx, _facts(found), named, Role.ADMIN, access.user, now)


async def delete(
    tx: Transaction,
    access: EntryAccess,
    home: Path,
    id: uuid.UUID,
    now: datetime,
    *,
    key: bytes,
    confirmed: bool,
) -> Receipt:
    """Delete a project or team that has no admin, as one of its admins would, in a transaction that is alone. `home`,
    `key` and the receipt are as of `deletion.delete`. Raises Conflict where it is not confirmed, and as
    `deletion.delete`; NotFound and AdminNeeded."""
    found = await _found(tx, access, id)
    if not confirmed:
        raise Conflict(NOT_CONFIRMED)
    tx.audit.act_for(access.user)
    if found.kind is OrphanKind.TEAM:
        await teams.dissolve(tx, id, access.user, now)
        return Receipt()
    return await deletion.delete(tx, _facts(found), access.user, home, now, key=key)


async def _places(tx: Transaction, access: EntryAccess) -> Sequence[PlaceWithoutAdmin]:
    judge([Act.MANAGE_ORPHANS], TenantFacts(await tx.people.is_admin(access.user)))
    return await tx.tenant_figures.without_admin(MAX_ORPHANS)


async def _found(tx: Transaction, access: EntryAccess, id: uuid.UUID) -> Orphan:
    found = next((each for each in await _places(tx, access) if each.id == id), None)
    if found is None:
        raise NotFound(UNKNOWN_ORPHAN)
    return await _orphan(tx, found)


async def _orphan(tx: Transaction, place: PlaceWithoutAdmin) -> Orphan:
    kind = OrphanKind(place.kind)
    found = await (tx.projects.members(place.id) if kind is OrphanKind.PROJECT else tx.teams.members(place.id))
    named = [
        OrphanMember(each.id, each.names, each.role is Role.READ)
        for each in found
        if any(name != NAMELESS for name in each.names)
    ]
    return Orphan(kind, place.id, place.name, place.isolated, place.created_at, named)


def _told_apart(access: EntryAccess, orphan: Orphan) -> Orphan:
    labels = Labels(access, ((name, each.id) for each in orphan.members for name in each.names))
    return replace(
        orphan,
        members=[replace(each, names=[labels(name, each.id) for name in each.names]) for each in orphan.members],
    )


def _facts(orphan: Orphan) -> ProjectFacts:
    return ProjectFacts(orphan.id, orphan.name, orphan.isolated, None, admins=0)
