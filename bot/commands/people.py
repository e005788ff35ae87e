"""memory, follow, opt-out, opt-in, timezone, link, unlink: what is stored of a room or a person, what is answered in
its threads, the time zone of a person, and which accounts are one person."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context
from bot.commands.command import CONFIRM, DM_PLACES, PREFIX, ROOM_PLACES, Call, Case, Command, CommandAnswer
from bot.commands.parameters import Parameter, ParameterKind
from composer import visibility
from composer.errors import BadInput, NotFound
from composer.memory.reminding import local_time
from composer.model import EVERY_VENDOR, RecordingPolicy
from composer.people.credentials.issuing import require_enabled
from composer.people.opting import opt_in, opt_out
from composer.people.own_settings import change_own_settings
from composer.repositories.database import Transaction
from composer.repositories.one_time_codes import CodePurpose
from composer.rights.relations import ActorFacts
from composer.rights.table import Act
from composer.text.zones import zone_of_text

_POLICIES: Final = {
    RecordingPolicy.ON: "on, every message is remembered",
    RecordingPolicy.MENTIONS: "mentions only, messages to me are remembered",
    RecordingPolicy.OFF: "off, nothing is remembered once a question is answered",
}
LINK_CODE_LIFETIME: Final = timedelta(minutes=10)
_CODE_LENGTH: Final = 8
_CODE_LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that look alike

_UNKNOWN_CODE: Final = f"That code is wrong or has expired; {PREFIX} link on the other platform shows a new one."

_POLICY: Final = parameters.choice(
    "mode",
    "which messages of this room are remembered; leave it out to see the present setting",
    RecordingPolicy,
    aliases={f"{policy} only": policy for policy in RecordingPolicy},
    required=False,
)


class FollowUps(StrEnum):
    """Whether what follows up an answer in a thread needs no mention."""

    ON = "on"
    OFF = "off"


_FOLLOW_UPS: Final = parameters.choice(
    "mode",
    "whether I answer follow-ups in this room's threads without a mention; leave it out to see the setting",
    FollowUps,
    required=False,
)
_CODE: Final[Parameter[str]] = Parameter(
    "code",
    ParameterKind.TEXT,
    str.upper,
    "the code that /nexus link showed you on the other platform; leave it out to get one",
    required=False,
)

_NO_ZONE: Final = "off"
_ZONE: Final[Parameter[str]] = Parameter(
    "zone",
    ParameterKind.TEXT,
    lambda text: "" if text.strip().lower() == _NO_ZONE else zone_of_text(text),
    f"your time zone, such as Europe/Berlin, or your city; {_NO_ZONE} takes it back. Leave it out to see it",
    label=f"ZONE|{_NO_ZONE}",
    required=False,
)


async def _memory(call: Call) -> CommandAnswer:
    policy = call.arguments.get(_POLICY)
    async with call.changing() as tx:
        name = (await access_context(tx, call)).conversation.name
        if policy is None:
            present = (await tx.conversations.lock([call.room]))[call.room].recording
            return CommandAnswer(f"Memory in #{name}: {_POLICIES[present]}.")
        await tx.conversations.set_recording_policy(call.room, policy, call.now)
    return CommandAnswer(f"Memory in #{name} from now on: {_POLICIES[policy]}.")


async def _follow(call: Call) -> CommandAnswer:
    wanted = call.arguments.get(_FOLLOW_UPS)
    async with call.changing() as tx:
        name = (await access_context(tx, call)).conversation.name
        if wanted is not None:
            await tx.conversations.set_follow_ups(call.room, wanted is FollowUps.ON)
        room = (await tx.conversations.lock([call.room]))[call.room]
    minutes = call.app.settings.follow_up_minutes
    if minutes == 0:
        return CommandAnswer("Follow-ups need a mention everywhere: whoever runs Nexus has switched them off.")
    if not room.follow_ups:
        return CommandAnswer(
            f"In the threads of #{name} I answer only who mentions me. To change that: {PREFIX} follow on"
        )
    if room.recording is not RecordingPolicy.ON:
        return CommandAnswer(
            f"Not every message of #{name} is remembered ({PREFIX} memory), so follow-ups need a mention."
        )
    return CommandAnswer(
        f"In the threads of #{name} a follow-up to my answer needs no mention, for {minutes:,} minutes, while nobody "
        f"else writes there. To end that: {PREFIX} follow off"
    )


async def _opt_out(call: Call) -> CommandAnswer:
    async with call.changing("alone") as tx:
        await opt_out(tx, call.user, visibility.owned_by(await access_context(tx, call)))
    return CommandAnswer(
        "From now on your messages are not stored, except a question until it is answered, and your reminders have "
        "ended. What else was stored before "
        f"stays: to erase it, {PREFIX} forget everything --yes. To be remembered again: {PREFIX} opt-in"
    )


async def _opt_in(call: Call) -> CommandAnswer:
    async with call.changing("alone") as tx:
        await opt_in(tx, call.user, call.now)
    return CommandAnswer("Your messages are stored again from now on, unless a room's setting excludes them.")


async def _timezone(call: Call) -> CommandAnswer:
    wanted, tenant = call.arguments.get(_ZONE), call.workspace.tenant_id
    common = call.app.directory.zone(tenant)
    async with call.changing("alone") as tx:
        access = await tx.people.entry_access(tenant, call.user, EVERY_VENDOR, frozenset())
        if access is not None and wanted is not None:
            await change_own_settings(tx, access, {"timezone": wanted or None}, call.now, common)
            access = await tx.people.entry_access(tenant, call.user, EVERY_VENDOR, frozenset())
    own = None if access is None else access.zone
    stated = access is not None and access.settings.timezone is not None
    whose = "as you set it" if stated else "as your profile says" if own is not None else "that of the organisation"
    used = "Days and hours that you write are read in it, and nobody else is told of it."
    return CommandAnswer(
        f"Your time zone is {own or common}, {whose}. There it is {local_time(call.now, own or common)}. {used}\n"
        + (
            f"To take it back: {PREFIX} timezone {_NO_ZONE}"
            if stated
            else f"To set another: {PREFIX} timezone Europe/Berlin"
        )
    )


async def _link_code(call: Call) -> CommandAnswer:
    code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(_CODE_LENGTH))
    expires_at = call.now + LINK_CODE_LIFETIME
    async with call.changing() as tx:
        await tx.one_time_codes.store(CodePurpose.LINK, call.user, _digest(code), expires_at)
    minutes = int(LINK_CODE_LIFETIME.total_seconds() // 60)
    return CommandAnswer(
        f"Within {minutes} minutes, enter this with your account on the other platform, in a DM with me: {PREFIX} link "
        f"{code}\nWhoever enters it can read your private memories: show it to nobody."
    )


async def _link(call: Call) -> CommandAnswer:
    entered = call.arguments.get(_CODE)
    if entered is None:
        return await _link_code(call)
    async with call.changing("alone") as tx:
        now = call.app.clock.now()
        owner = await tx.one_time_codes.find(CodePurpose.LINK, _digest(entered), now, redeem=True)
        if owner is None:
            raise NotFound(_UNKNOWN_CODE)
        other = owner.id
        for each in (call.user, other):  # one account's key would open the other's memory
            await require_enabled(tx, each)
        opted_out = await tx.people.link(call.user, other)
        name = (await tx.people.names([other])).get(other, "")
    opted = f"\nYou have opted out, so nothing is stored of either. To change that: {PREFIX} opt-in"
    return CommandAnswer(
        f"Linked with {name}: your memories are available from both accounts. To undo: {PREFIX} unlink"
        + (opted if opted_out else "")
    )


async def _with_account(tx: Transaction, call: Call, facts: ActorFacts) -> ActorFacts:
    """The account whose code was entered is the one to be linked. Raises NotFound and BadInput."""
    entered = call.arguments.get(_CODE)
    if entered is None:
        return facts
    owner = await tx.one_time_codes.find(CodePurpose.LINK, _digest(entered), call.app.clock.now())
    if owner is None:
        raise NotFound(_UNKNOWN_CODE)
    if owner.id in facts.access.linked_users(call.user):
        raise BadInput("That is your own code: enter it on the other platform.")
    return replace(facts, account=await tx.permissions.account(call.user, owner.id))


async def _unlink(call: Call) -> CommandAnswer:
    async with call.changing("alone") as tx:
        others = (await tx.people.linked_users([call.user])).get(call.user, ())
        if not others:
            raise NotFound("Your account is not linked with another one. To link one: /nexus link")
        await tx.people.unlink(call.user)
        await tx.conversations.leave_projects([call.user, *others])
    return CommandAnswer("Your accounts are separate again. Each keeps what was stored through it.")


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode()).digest()


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "memory",
        (_POLICY,),
        "Show or set which messages of this room are remembered",
        _memory,
        "memory mentions",
        places=ROOM_PLACES,
        act=Act.SET_RECORDING,
        cases=(Case(Act.READ, lambda given: given.get(_POLICY) is None, "to look only"),),
        elsewhere=f"For your own messages use {PREFIX} opt-out.",
    ),
    Command(
        "follow",
        (_FOLLOW_UPS,),
        "Show or set whether follow-ups in this room's threads need no mention",
        _follow,
        "follow off",
        places=ROOM_PLACES,
        act=Act.SET_FOLLOW_UPS,
        cases=(Case(Act.READ, lambda given: given.get(_FOLLOW_UPS) is None, "to look only"),),
        elsewhere="Here I answer every message.",
    ),
    Command(
        "opt-out",
        (),
        "Stop storing what I say, everywhere",
        _opt_out,
        "opt-out",
        act=Act.SET_CONSENT,
        finishes=True,
    ),
    Command("opt-in", (), "Store what I say again", _opt_in, "opt-in", act=Act.SET_CONSENT),
    Command(
        "timezone",
        (_ZONE,),
        "Show or set the time zone in which your days and hours are read",
        _timezone,
        "timezone Europe/Berlin",
        act=Act.SEE_OWN,
    ),
    Command(
        "link",
        (_CODE,),
        "Join your accounts on two platforms",
        _link,
        "link",
        (CONFIRM,),
        places=DM_PLACES,
        act=Act.LINK,
        cases=(Case(Act.GET_LINK_CODE, lambda given: given.get(_CODE) is None, "to get a code"),),
        gather=_with_account,
        elsewhere="Write to me directly: a code is for nobody else's eyes.",
    ),
    Command("unlink", (), "Separate your accounts again", _unlink, "unlink", act=Act.UNLINK),
)
