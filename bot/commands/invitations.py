"""project accept, project decline: answer an invitation to a project."""

import uuid
from collections.abc import Sequence
from typing import Final

from bot.commands import parameters
from bot.commands.command import PREFIX, Call, Command, CommandAnswer
from composer.entries import teams
from composer.entries.access import access_for_reading
from composer.errors import BadInput, NotFound
from composer.model import EVERY_VENDOR, Role
from composer.people.projects import members
from composer.repositories.database import Transaction
from composer.repositories.invites import Invite
from composer.rights import project_names
from composer.rights.table import Act
from composer.text.names import NOBODY
from composer.visibility import Grants

MAX_SHOWN: Final = 10
_KNOWS: Final = frozenset({Grants.WRITE_TEAMS, Grants.READ_PROJECTS})  # whom somebody knows of in a chat
_INVITED: Final = parameters.word("name", "the project that you are invited to", str.lower)
_OFFERED: Final = parameters.choice(
    "role", "the role that you accept, as /nexus project list shows it", Role, required=False
)


async def invitation_lines(tx: Transaction, call: Call) -> list[str]:
    """The caller's invitations to projects, oldest first: who invites, to what, and how to answer."""
    access = await access_for_reading(tx, call.workspace.tenant_id, call.user, EVERY_VENDOR, _KNOWS)
    invites = _by_name(await teams.invites(tx, access, call.now))
    lines = [_line(name, invite) for name, invite in list(invites.items())[:MAX_SHOWN]]
    return lines if len(invites) <= MAX_SHOWN else [*lines, f"{len(invites) - MAX_SHOWN} more projects invite you."]


async def _project_accept(call: Call) -> CommandAnswer:
    async with call.changing("alone") as tx:
        users, invite = await _invitation(tx, call)
        assert invite.project is not None
        role = await members.accept(tx, invite.project, users, call.arguments.get(_OFFERED), call.now)
    return CommandAnswer(
        f"You are in {invite.place} now, with the role {role}. To put this conversation into it: {PREFIX} project "
        f"assign {invite.place}. To leave it: {PREFIX} project leave {invite.place}"
    )


async def _project_decline(call: Call) -> CommandAnswer:
    async with call.changing("alone") as tx:
        users, invite = await _invitation(tx, call)
        assert invite.project is not None
        await tx.invites.decline(invite.project, users, call.now)
    return CommandAnswer(f"Declined: you are not in {invite.place}.")


async def _invitation(tx: Transaction, call: Call) -> tuple[Sequence[uuid.UUID], Invite]:
    """The users that the caller is, and their invitation to the project that the call names. Raises NotFound, and
    BadInput where that may be several."""
    users, name = await own_users(tx, call), call.arguments[_INVITED]
    named = [
        (shown, each)
        for shown, each in _by_name(await tx.invites.find(call.now, users=users)).items()
        if each.project is not None and project_names.names(name, each.place, each.project)
    ]
    if not named:
        raise NotFound(f"You have no invitation to a project called {name}. To see yours: {PREFIX} project list")
    if len(named) > 1:
        raise BadInput(
            f"Several projects of that name invite you: name one as {' or '.join(shown for shown, _ in named)}."
        )
    return users, named[0][1]


async def own_users(tx: Transaction, call: Call) -> Sequence[uuid.UUID]:
    """All users that the caller is, the one who calls first."""
    return (call.user, *(await tx.people.linked_users([call.user])).get(call.user, ()))


def _by_name(invites: Sequence[Invite]) -> dict[str, Invite]:
    """The invitations to projects, one for each, by what the invited person may call it."""
    ranked = sorted(invites, key=lambda each: list(Role).index(Role(each.role or Role.READ)))  # the best is accepted
    by_id = {each.project: each for each in invites if each.project is not None}
    by_id |= {each.project: each for each in ranked if each.project is not None}
    names = project_names.distinct_names((id, each.place) for id, each in by_id.items())
    return {names[id]: each for id, each in by_id.items()}


def _line(name: str, invite: Invite) -> str:
    kind = "isolated project" if invite.isolated else "project"
    told = "" if invite.role == Role.READ else f" {members.WRITER_TOLD}"
    return (
        f"{invite.by or NOBODY} invites you to the {kind} {name} (role: {invite.role}). Once you accept, your AI "
        "tools, and the conversations of yours that you put into it, are answered also from what its members wrote "
        f"for it.{told} To answer: {PREFIX} project accept {name} {invite.role}, or {PREFIX} project decline {name}"
    )


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "project accept",
        (_INVITED, _OFFERED),
        "Join a project that you are invited to",
        _project_accept,
        "project accept apollo read",
        act=Act.JOIN_PROJECT,
    ),
    Command(
        "project decline",
        (_INVITED,),
        "Decline an invitation to a project",
        _project_decline,
        "project decline apollo",
        act=Act.JOIN_PROJECT,
    ),
)
