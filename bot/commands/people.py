"""memory, opt-out, opt-in, link, unlink: what is stored of a room or a person, and which accounts are one person."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context, has_right
from bot.commands.command import PREFIX, ROOMS, Call, Command, CommandAnswer, Right
from bot.commands.parameters import Kind, Parameter
from composer.errors import BadInput, NotFound, Refused
from composer.model import RecordingPolicy

_POLICIES: Final = {
    RecordingPolicy.ON: "on, every message is remembered",
    RecordingPolicy.MENTIONS: "mentions only, messages to me are remembered",
    RecordingPolicy.OFF: "off, nothing is remembered once a question is answered",
}
CODE_LIFETIME: Final = timedelta(minutes=10)
_CODE_LENGTH: Final = 8
_CODE_LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that look alike

_POLICY: Final = parameters.choice(
    "mode",
    "which messages of this room are remembered; leave it out to see the present setting",
    RecordingPolicy,
    aliases={f"{policy} only": policy for policy in RecordingPolicy},
    required=False,
)
_CODE: Final[Parameter[str]] = Parameter(
    "code",
    Kind.TEXT,
    str.upper,
    "the code that /nexus link showed you on the other platform; leave it out to get one",
    required=False,
)


async def _memory(call: Call) -> CommandAnswer:
    room, policy = call.conversation.room_id or call.conversation.id, call.arguments.get(_POLICY)
    async with call.changing() as tx:
        access = await access_context(tx, call)
        name = access.conversation.name
        if policy is None:
            return CommandAnswer(
                f"Memory in #{name}: {_POLICIES[(await tx.conversations.lock([room]))[room].recording]}."
            )
        if not await has_right(tx, call, access):
            raise Refused(
                f"Only an admin of #{name} may change what is stored from it. For your own messages use "
                f"{PREFIX} opt-out."
            )
        await tx.conversations.set_recording_policy(room, policy)
    return CommandAnswer(f"Memory in #{name} from now on: {_POLICIES[policy]}.")


async def _opt_out(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        await tx.people.set_opted_out(call.user, True)
    return CommandAnswer(
        "From now on your messages are not stored, except a question until it is answered. What was stored before "
        f"stays: to erase it, {PREFIX} forget everything --yes. To be remembered again: {PREFIX} opt-in"
    )


async def _opt_in(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        await tx.people.set_opted_out(call.user, False)
    return CommandAnswer("Your messages are stored again from now on, unless a room's setting excludes them.")


async def _link(call: Call) -> CommandAnswer:
    entered = call.arguments.get(_CODE)
    async with call.changing() as tx:
        if entered is None:
            code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(_CODE_LENGTH))
            await tx.people.store_link_code(_hash(code), call.user, call.now + CODE_LIFETIME)
            minutes = int(CODE_LIFETIME.total_seconds() // 60)
            return CommandAnswer(
                f"Within {minutes} minutes, enter this on the other platform, in private: {PREFIX} link {code}\n"
                "Whoever enters it can read your private memories: show it to nobody."
            )
        other = await tx.people.redeem_link_code(_hash(entered), call.now)
        if other is None:
            raise NotFound(f"That code is wrong or has expired; {PREFIX} link on the other platform shows a new one.")
        if other == call.user:
            raise BadInput("That is your own code: enter it on the other platform.")
        await tx.people.link(call.user, other)
        name = (await tx.people.names([other])).get(other, "")
    return CommandAnswer(
        f"Linked with {name}: your memories are available from both accounts. To undo: {PREFIX} unlink"
    )


async def _unlink(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        if not await tx.people.linked_users([call.user]):
            raise NotFound("Your account is not linked with another one. To link one: /nexus link")
        await tx.people.unlink(call.user)
    return CommandAnswer("Your accounts are separate again. Each keeps what was stored through it.")


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "memory",
        (_POLICY,),
        "Show or set which messages of this room are remembered",
        _memory,
        "memory mentions",
        places=ROOMS,
        right=Right.ROOM_ADMIN,
        view_right=Right.PARTICIPANT,
        elsewhere=f"For your own messages use {PREFIX} opt-out.",
    ),
    Command("opt-out", (), "Stop storing what I say, everywhere", _opt_out, "opt-out"),
    Command("opt-in", (), "Store what I say again", _opt_in, "opt-in"),
    Command("link", (_CODE,), "Join your accounts on two platforms", _link, "link"),
    Command("unlink", (), "Separate your accounts again", _unlink, "unlink"),
)
