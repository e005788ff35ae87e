"""memory, opt-out, opt-in, link, unlink: what is kept of a room or a person, and who is who."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from bot.commands.command import (
    Call,
    Command,
    CommandAnswer,
    Parameter,
    access_context,
    is_room_admin,
)
from composer.errors import BadInput, NotFound, Refused
from composer.model import RecordingPolicy

_MEMORY: Final = {
    RecordingPolicy.ON: "on, what is said is remembered",
    RecordingPolicy.MENTIONS: "mentions only, what is said to me is remembered",
    RecordingPolicy.OFF: "off, nothing is remembered beyond an answer",
}
CODE_LASTS: Final = timedelta(minutes=10)
_CODE_LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that look alike


async def _memory(call: Call) -> CommandAnswer:
    if call.conversation.user_id is not None:
        raise BadInput("This is for rooms; for yourself there is /nexus opt-out.")
    room = call.conversation.room_id or call.conversation.id
    async with call.changing() as tx:
        access = await access_context(tx, call)
        if not call.words:
            policy = (await tx.conversations.lock([room]))[room].recording
            return CommandAnswer(f"Memory in #{access.conversation.name}: {_MEMORY[policy]}.")
        try:
            wanted = RecordingPolicy(call.words.lower().removesuffix(" only"))
        except ValueError:
            raise BadInput(f"There is no '{call.words}'; there is on, mentions and off.") from None
        if not (access.asker_admin or await is_room_admin(tx, call)):
            raise Refused(f"Only an admin of #{access.conversation.name} may change what is kept of it.")
        await tx.conversations.set_recording_policy(room, wanted)
    return CommandAnswer(f"Memory in #{access.conversation.name} from now on: {_MEMORY[wanted]}.")


async def _opt_out(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        await tx.people.set_opted_out(call.user, True)
    return CommandAnswer(
        "From now on nothing that you say is kept beyond the answer that you ask for. What was kept before stays until "
        "/nexus forget everything --yes. Back again: /nexus opt-in"
    )


async def _opt_in(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        await tx.people.set_opted_out(call.user, False)
    return CommandAnswer("From now on I keep what you say, as each room wants it.")


async def _link(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        if not call.words:
            code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(8))
            await tx.people.store_link_code(_hash(code), call.user, call.now + CODE_LASTS)
            minutes = int(CODE_LASTS.total_seconds() // 60)
            return CommandAnswer(
                f"Within {minutes} minutes, enter this where else you are, in private: /nexus link {code}\n"
                "Whoever enters it becomes one person with you: show it to nobody."
            )
        other = await tx.people.redeem_link_code(_hash(call.words.strip().upper()), call.now)
        if other is None:
            raise NotFound("That code is wrong or too old; /nexus link in the other place shows a new one.")
        if other == call.user:
            raise BadInput("That is your own code: enter it on the other platform.")
        await tx.people.link(call.user, other)
        name = (await tx.people.names([other])).get(other, "")
    return CommandAnswer(f"You and {name} are one person now: what is yours follows you. Undo: /nexus unlink")


async def _unlink(call: Call) -> CommandAnswer:
    async with call.changing() as tx:
        if not await tx.people.linked_users([call.user]):
            raise NotFound("You are linked with nobody.")
        await tx.people.unlink(call.user)
    return CommandAnswer("You are a person of your own again here; each keeps what was said as them.")


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "memory",
        (Parameter("kept", required=False, choices=tuple(RecordingPolicy)),),
        "what is kept of this room",
        _memory,
    ),
    Command("opt-out", (), "keep nothing that I say", _opt_out),
    Command("opt-in", (), "keep what I say again", _opt_in),
    Command("link", (Parameter("code", required=False),), "be one person on two platforms", _link),
    Command("unlink", (), "part them again", _unlink),
)
