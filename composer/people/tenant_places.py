"""All projects and teams of a tenant, for its admins: how many people and rooms are in each, and who manages it. Of one
without an admin they make a member its admin, or delete it. Never what is filed there.

What a team that has an admin is called, its members decided among themselves: who is not in it is not told.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
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
from composer.repositories.tenant_figures import TenantPlace, TenantPlaceKind
from composer.rights.relations import TenantFacts
from composer.rights.table import Act, judge
from composer.text.cursors import cursor_of, read_cursor
from composer.visibility import EntryAccess, ProjectFacts, may_see_teams

UNKNOWN_ORPHAN: Final = "There is no such project or team without an admin."
NO_MEMBER: Final = "That person is no member of it: only its members can be made admins."
NOT_CONFIRMED: Final = "It is deleted for everybody in it: send it with confirm=true."


@dataclass(frozen=True, slots=True)
class Appointable:
    """A member who can be made an admin: the id of one of their accounts, and the names of those that are members.
    `is_asked`: they may only read, and are invited first."""

    id: uuid.UUID
    names: Sequence[str]
    is_asked: bool


@dataclass(frozen=True, slots=True)
class OverseenPlace:
    """A project or a team, as an admin of the tenant sees it. `name`: None for a team that has an admin and that they
    are not in. `admins`: an account and a name of each; where there is none, whom of its members one can be made of
    (`candidates`)."""

    kind: TenantPlaceKind
    id: uuid.UUID
    name: str | None
    isolated: bool
    created_at: datetime
    members: int
    rooms: int
    admins: Sequence[tuple[uuid.UUID, str]]
    candidates: Sequence[Appointable] = ()

    @property
    def orphaned(self) -> bool:
        """Whether it has no admin any more, or only some of whom everything was erased."""
        return not self.admins


@dataclass(frozen=True, slots=True)
class WantedPlaces:
    """Which places are wanted: of a kind (None: both), with these words in what is told of their names or in the name
    of an admin of theirs, without an admin."""

    kind: TenantPlaceKind | None = None
    words: str = ""
    orphaned: bool = False


@dataclass(frozen=True, slots=True)
class PlacePage:
    """Some of them, the newest first. `next` is the cursor of the next page; None after the last."""

    places: Sequence[OverseenPlace]
    next: str | None


async def places_page(
    tx: Transaction, access: EntryAccess, wanted: WantedPlaces, limit: int, cursor: str | None = None
) -> PlacePage:
    """Some places of the tenant, after those of a cursor, with people who are told apart. Raises AdminNeeded, and
    BadInput for a wrong cursor."""
    await _require_admin(tx, access)
    after, words = None if cursor is None else read_cursor(cursor), " ".join(wanted.words.split()).lower()
    found = await tx.tenant_figures.places(
        _own_teams(access), limit + 1, after, kind=wanted.kind, words=words or None, orphaned=wanted.orphaned
    )
    shown = found[:limit]
    following = cursor_of(shown[-1].created_at, shown[-1].id) if len(found) > limit else None
    candidates = {each.id: await _candidates(tx, each) for each in shown if not each.admin_ids}
    people = [named for each in shown for named in zip(each.admin_names, each.admin_ids, strict=True)]
    people += [(name, each.id) for found in candidates.values() for each in found for name in each.names]
    labels = Labels(access, people)
    return PlacePage([_overseen(each, candidates.get(each.id, ()), labels) for each in shown], following)


async def without_admin(
    tx: Transaction, access: EntryAccess, id: uuid.UUID, kind: TenantPlaceKind | None = None
) -> TenantPlace | None:
    """A project or team (of a kind) that has no admin; None for any other. Raises AdminNeeded."""
    await _require_admin(tx, access)
    found = await tx.tenant_figures.places((), 1, kind=kind, orphaned=True, id=id)
    return found[0] if found else None


async def appoint(
    tx: Transaction,
    access: EntryAccess,
    id: uuid.UUID,
    user: uuid.UUID,
    now: datetime,
    kind: TenantPlaceKind | None = None,
) -> bool:
    """Make a member the admin of a project or team (of a kind) that has none, in a transaction that is alone; return
    whether they are one now. Who may only read a project is invited: what they say in it is recalled by others once
    they accept. Raises NotFound, AdminNeeded, and as `members.set_member`."""
    found = await _found(tx, access, id, kind)
    member = next((each for each in await _candidates(tx, found) if each.id == user), None)
    if member is None:
        raise NotFound(NO_MEMBER)
    tx.audit.act_for(access.user)
    if found.kind is TenantPlaceKind.TEAM:
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
    kind: TenantPlaceKind | None = None,
) -> Receipt:
    """Delete a project or team (of a kind) that has no admin, as one of its admins would, in a transaction that is
    alone. `home`, `key` and the receipt are as of `deletion.delete`. Raises Conflict where it is not confirmed, and as
    `deletion.delete`; NotFound and AdminNeeded."""
    found = await _found(tx, access, id, kind)
    if not confirmed:
        raise Conflict(NOT_CONFIRMED)
    tx.audit.act_for(access.user)
    if found.kind is TenantPlaceKind.TEAM:
        await teams.dissolve(tx, id, access.user, now)
        return Receipt()
    return await deletion.delete(tx, _facts(found), access.user, home, now, key=key)


async def _require_admin(tx: Transaction, access: EntryAccess) -> None:
    judge([Act.OVERSEE_PLACES], TenantFacts(await tx.people.is_admin(access.user)))


async def _found(tx: Transaction, access: EntryAccess, id: uuid.UUID, kind: TenantPlaceKind | None) -> TenantPlace:
    found = await without_admin(tx, access, id, kind)
    if found is None:
        raise NotFound(UNKNOWN_ORPHAN)
    return found


def _own_teams(access: EntryAccess) -> Sequence[uuid.UUID]:
    return tuple(access.teams) if may_see_teams(access) else ()


async def _candidates(tx: Transaction, place: TenantPlace) -> Sequence[Appointable]:
    project = place.kind is TenantPlaceKind.PROJECT
    found = await (tx.projects.members(place.id) if project else tx.teams.members(place.id))
    return [
        Appointable(each.id, each.names, each.role is Role.READ)
        for each in found
        if any(name != NAMELESS for name in each.names)
    ]


def _overseen(place: TenantPlace, candidates: Sequence[Appointable], labels: Labels) -> OverseenPlace:
    return OverseenPlace(
        place.kind,
        place.id,
        place.name,
        place.isolated,
        place.created_at,
        place.members,
        place.rooms,
        [(id, labels(name, id)) for id, name in zip(place.admin_ids, place.admin_names, strict=True)],
        [Appointable(each.id, [labels(name, each.id) for name in each.names], each.is_asked) for each in candidates],
    )


def _facts(place: TenantPlace) -> ProjectFacts:
    return ProjectFacts(place.id, place.name or "", place.isolated, None, admins=0)
