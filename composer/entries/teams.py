"""Teams: people who read what its members share with it. Membership belongs to the person, with all users that they
are.

Each function judges by facts as of now (`composer.entries.access.access_for_writing`); those that change who is in a
team are called in a transaction that is alone.
"""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from composer.entries.entries import file
from composer.entries.namesakes import called, invitations_told_apart, members_told_apart
from composer.errors import BadInput, Conflict, NotFound, Refused
from composer.model import TeamRole, derived_id, team_namespace
from composer.repositories.database import Transaction
from composer.repositories.entries import Entry
from composer.repositories.invites import DECLINED_LIFETIME, Invite
from composer.repositories.teams import Team, TeamMember
from composer.rights import table as rights
from composer.rights.relations import TeamFacts
from composer.rights.table import Act
from composer.text.cleaning import clean_line, is_storable
from composer.visibility import (
    UNKNOWN_ENTRY,
    UNKNOWN_TEAM,
    EntryAccess,
    Grants,
    readable_team,
    require_grant,
    unshared_tag,
)

MAX_TEAM_NAME_CHARS: Final = 80
MAX_TEAMS: Final = 100  # that one person is in
MAX_INVITES: Final = 50  # open ones by one person
UNKNOWN_USER: Final = "There is no such user."
UNKNOWN_INVITE: Final = "There is no such invitation."
DECLINED: Final = (
    f"That person has declined an invitation to it within the last {DECLINED_LIFETIME.days} days, and is not "
    "asked again before those are over."
)


async def create(tx: Transaction, access: EntryAccess, name: str, event: str, now: datetime) -> uuid.UUID:
    """Create a team with the person as its admin; return its id. `event` identifies the request. Raises BadInput, and
    Refused for a tool or a key that may not."""
    _require_person(access)
    cleaned = _name(name)
    if len(await tx.teams.find_for(access.users)) >= MAX_TEAMS:
        raise BadInput(f"You are in {MAX_TEAMS} teams, which is the limit: leave one first.")
    id = derived_id("team", str(access.user), event)
    await tx.teams.create(id, cleaned, access.user, now)
    return id


async def rename(tx: Transaction, access: EntryAccess, team: uuid.UUID, name: str, now: datetime) -> Team:
    """Give a team another name. Raises BadInput, NotFound for an unknown team, Refused for who is no admin."""
    _require_person(access)
    await _judge(tx, access, Act.RENAME_TEAM, team, now)
    await tx.teams.rename(team, _name(name), access.user)
    return await get(tx, access, team, now)


async def delete(tx: Transaction, access: EntryAccess, team: uuid.UUID, now: datetime) -> None:
    """Delete a team. What was shared with it is its owners' alone again, also of who has left it. Raises as
    `rename`."""
    _require_person(access)
    await _judge(tx, access, Act.DELETE_TEAM, team, now)
    await dissolve(tx, team, access.user, now)


async def dissolve(tx: Transaction, team: uuid.UUID, by: uuid.UUID, now: datetime) -> None:
    """Delete a team for whoever may, which was judged."""
    await tx.entries.return_to_owners(team_namespace(team), by, now)
    await tx.teams.delete(team, by)


async def get(tx: Transaction, access: EntryAccess, team: uuid.UUID, now: datetime) -> Team:
    """One team, for its members. Raises NotFound for a team that the person may not know of, Refused."""
    _require_reading(access)
    await _judge(tx, access, Act.SEE_TEAM, team, now)
    return next(each for each in await tx.teams.find_for(access.users) if each.id == team)


async def teams(tx: Transaction, access: EntryAccess) -> list[Team]:
    """The teams that the person is in, as far as the credential may see them."""
    _require_reading(access)
    return await tx.teams.find_for(access.users)


async def members(tx: Transaction, access: EntryAccess, team: uuid.UUID, now: datetime) -> list[TeamMember]:
    """The people of a team, for its members. Raises NotFound for a team that the person may not know of, Refused."""
    _require_reading(access)
    await _judge(tx, access, Act.SEE_TEAM, team, now)
    return members_told_apart(access, await tx.teams.members(team))


async def invites(tx: Transaction, access: EntryAccess, now: datetime) -> list[Invite]:
    """The person's own open invitations. In each, `by` is told from others of nearly that name. Raises Refused for a
    tool."""
    _require_person(access)
    found = await tx.invites.find(now, users=access.users)
    names = await called(tx, access, {each.by_id: each.by for each in found if each.by_id is not None})
    return [each if each.by_id is None else replace(each, by=names[each.by_id]) for each in found]


async def invite(
    tx: Transaction, access: EntryAccess, team: uuid.UUID, user: uuid.UUID, event: str, now: datetime
) -> uuid.UUID:
    """Invite a user of the workspace; who they are they show by accepting. Return the invitation's id.

    Raises NotFound for an unknown team or user, Refused for who is no admin, BadInput for who is a member, Conflict for
    who has declined lately.
    """
    _require_person(access)
    facts = await _judge(tx, access, Act.INVITE_TO_TEAM, team, now, user)
    if not await tx.people.names([user]):
        raise NotFound(UNKNOWN_USER)
    if facts.other_role is not None:
        raise BadInput("That person is a member of this team already.")
    await require_may_invite(tx, access.users, team, user, now)
    id = derived_id("team invite", str(team), str(user), event)
    await tx.invites.to_team(id, team, user, access.user, now)
    return id


async def require_may_invite(
    tx: Transaction, by: Sequence[uuid.UUID], place: uuid.UUID, user: uuid.UUID, now: datetime
) -> None:
    """Return if a person (`by`) may invite a user to a team or project, which may be in place of an earlier invitation.
    Raises BadInput where too many of theirs are open, and Conflict where the person has declined lately."""
    person = [user, *(await tx.people.linked_users([user])).get(user, ())]
    if await tx.invites.has_declined(place, person, now):
        raise Conflict(DECLINED)
    found = await tx.invites.find(now, by=by)
    if len([each for each in found if (each.team or each.project, each.user) != (place, user)]) >= MAX_INVITES:
        raise BadInput(f"{MAX_INVITES} invitations of yours are open, which is the limit: withdraw one first.")


async def invitees(tx: Transaction, access: EntryAccess, team: uuid.UUID, now: datetime) -> list[Invite]:
    """The open invitations to a team, for its admins. Raises as `invite`."""
    _require_reading(access)
    await _judge(tx, access, Act.INVITE_TO_TEAM, team, now)
    return invitations_told_apart(access, await tx.invites.find(now, place=team))


async def revoke_invite(tx: Transaction, access: EntryAccess, team: uuid.UUID, id: uuid.UUID, now: datetime) -> None:
    """End an open invitation, as an admin of its team. Raises NotFound for an unknown team or invitation, Refused."""
    _require_person(access)
    await _judge(tx, access, Act.INVITE_TO_TEAM, team, now)
    if not await tx.invites.revoke_to_team(team, id, access.user, now):
        raise NotFound(UNKNOWN_INVITE)


async def accept(tx: Transaction, access: EntryAccess, team: uuid.UUID, now: datetime) -> None:
    """Join a team that the person is invited to. Raises NotFound for a team that they may not know of."""
    _require_person(access)
    facts = await _judge(tx, access, Act.JOIN_TEAM, team, now)
    if len(await tx.teams.find_for(access.users)) >= MAX_TEAMS:
        raise BadInput(f"You are in {MAX_TEAMS} teams, which is the limit: leave one first.")
    for user in await tx.invites.take(team, access.users, now):
        await tx.teams.add_member(team, user, facts.role or TeamRole.MEMBER, access.user, now)


async def decline(tx: Transaction, access: EntryAccess, team: uuid.UUID, now: datetime) -> None:
    """Decline an invitation. Raises NotFound for a team that the person may not know of."""
    _require_person(access)
    await _judge(tx, access, Act.JOIN_TEAM, team, now)
    await tx.invites.decline(team, access.users, now)


async def remove(tx: Transaction, access: EntryAccess, team: uuid.UUID, user: uuid.UUID, now: datetime) -> None:
    """Remove a member, or leave (one's own user). What they share stays shared, marked as of a former member.

    An invitation of that user goes too. Raises NotFound for an unknown team and for who is no member, Refused for who
    is no admin, Conflict for the only admin.
    """
    _require_person(access)
    facts = await _judge(tx, access, Act.REMOVE_FROM_TEAM, team, now, user)
    withdrawn = await tx.invites.take(team, [user], now) if facts.role is TeamRole.ADMIN else {}
    if facts.other_role is None and not withdrawn:
        raise NotFound(UNKNOWN_USER)
    if facts.other_role is TeamRole.ADMIN and facts.last_admin:
        raise Conflict("That is the only admin of this team: make somebody else one first.")
    await tx.teams.remove_member(team, user, access.user)


async def set_role(
    tx: Transaction, access: EntryAccess, team: uuid.UUID, user: uuid.UUID, role: TeamRole, now: datetime
) -> None:
    """Set what a member may do. Raises as `remove`."""
    _require_person(access)
    facts = await _judge(tx, access, Act.SET_TEAM_ROLE, team, now, user)
    if facts.other_role is None:
        raise NotFound(UNKNOWN_USER)
    if facts.other_role is TeamRole.ADMIN and role is not TeamRole.ADMIN and facts.last_admin:
        raise Conflict("That is the only admin of this team: make somebody else one first.")
    await tx.teams.set_role(team, user, role, access.user)


async def unshare_of_former(
    tx: Transaction, access: EntryAccess, team: uuid.UUID, entry: uuid.UUID, now: datetime
) -> Entry:
    """End, as an admin of the team, what a former member shares with it. It stays theirs. Raises NotFound for what is
    not shared with the team, Refused for who is no admin and for an entry of a member."""
    _require_person(access)
    await _judge(tx, access, Act.UNSHARE_OF_FORMER, team, now)
    found = await tx.entries.get(readable_team(access, team), entry, now)
    if found is None or found.namespace != team_namespace(team):
        raise NotFound(UNKNOWN_ENTRY)
    if not found.former:
        raise Refused("That is shared by a member of this team: only they may unshare it.")
    return await file(tx, access, found, unshared_tag(found.user_id), now)


def _name(name: str) -> str:
    cleaned = clean_line(name, MAX_TEAM_NAME_CHARS + 1) if is_storable(name) else ""
    if not cleaned or len(cleaned) > MAX_TEAM_NAME_CHARS:
        raise BadInput(f"A team's name is a text of 1 to {MAX_TEAM_NAME_CHARS} characters.")
    return cleaned


async def _judge(
    tx: Transaction,
    access: EntryAccess,
    act: Act,
    team: uuid.UUID,
    now: datetime,
    other: uuid.UUID | None = None,
) -> TeamFacts:
    facts = await tx.teams.facts(team, access.user, other, now)
    if facts is None:
        raise NotFound(UNKNOWN_TEAM)
    rights.judge((act,), facts)
    return facts


def _require_person(access: EntryAccess) -> None:
    if not access.is_person:
        raise Refused("A tool may not change who is in a team: its person does that themselves.")
    require_grant(access, {Grants.WRITE_TEAMS}, "change teams")


def _require_reading(access: EntryAccess) -> None:
    if not {Grants.READ_TEAMS, Grants.WRITE_TEAMS} & access.grants:
        raise Refused(f"This key may not see teams. It would need {Grants.READ_TEAMS}.")
