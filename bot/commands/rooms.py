"""rooms: let one's own DMs read the rooms that one is in."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context
from bot.commands.command import DM_PLACES, PREFIX, Call, Case, Command, CommandAnswer
from composer import visibility
from composer.rights.table import Act
from composer.text.names import in_quotes
from composer.visibility import AccessContext, JoinedRoom

MAX_LISTED_ROOMS: Final = 50  # rooms


class RoomReading(StrEnum):
    """Whether a person's DMs read the rooms that they are in."""

    ON = "on"
    OFF = "off"


_READING: Final = parameters.choice(
    "mode",
    "whether I also recall in your DMs with me what was said in rooms that you are in; leave it out to see the setting",
    RoomReading,
    required=False,
)


async def _rooms(call: Call) -> CommandAnswer:
    wanted = call.arguments.get(_READING)
    async with call.changing() as tx:
        if wanted is not None:
            await tx.people.set_reads_rooms(call.user, wanted is RoomReading.ON)
        access = await access_context(tx, call)
        # While it is off, a turn does not gather them.
        joined = await tx.conversations.rooms_joined(access.linked_users(call.user), call.presence)
    rooms = visibility.rooms_for_dm(replace(access, joined_rooms=joined))
    unsaid = "" if call.presence.complete else f"\n{_UNSAID}"
    return CommandAnswer(_text(access, rooms, changed=wanted is not None) + unsaid)


def _text(access: AccessContext, rooms: Sequence[JoinedRoom], *, changed: bool) -> str:
    project = visibility.effective_project(access)
    isolated = project is not None and project.isolated
    which = "the rooms of this project that you are in" if isolated else "the rooms that you are in"
    if not access.reads_rooms:
        when = "from now on " if changed else ""
        head = f"Rooms are {when}not read in your DMs with me. With {PREFIX} rooms on I also recall in this DM {which}."
    else:
        when = "From now on" if changed else "Now"
        head = (
            f"{when} I also recall in this DM {which}, for as long as you are in them. Nobody else sees more by that. "
            f"To end it: {PREFIX} rooms off"
        )
    return f"{head}\n{_listed(rooms)}\n{_ISOLATED if isolated else _OUTSIDE}"


_HOLDS: Final = "This holds for the DMs of this account of yours, with every agent."
_OUTSIDE: Final = (
    "Rooms of isolated projects are left out, and on Slack and Discord private channels and private threads that are "
    f"archived, or that I am not in. {_HOLDS}"
)
_UNSAID: Final = (
    "Slack or Discord does not tell me now which private channels you are in: until it does, I recall none of them."
)
_ISOLATED: Final = f"This DM is in an isolated project, so no other room is read here. {_HOLDS}"


def _listed(rooms: Sequence[JoinedRoom]) -> str:
    if not rooms:
        return "I know of none now: I learn that you are in a room when you write there, or when the platform says so."
    names = [f"{'the private room ' if room.private else ''}{in_quotes(f'#{room.name}')}" for room in rooms]
    more = len(names) - MAX_LISTED_ROOMS
    return f"Rooms: {', '.join(names[:MAX_LISTED_ROOMS])}{f' and {more:,} more' if more > 0 else ''}."


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "rooms",
        (_READING,),
        "Show or set whether our DMs recall the rooms that I am in",
        _rooms,
        "rooms on",
        places=DM_PLACES,
        act=Act.OPEN_ROOMS,
        names_rooms=True,
        cases=(Case(Act.READ, lambda given: given.get(_READING) is None, "to look only"),),
        elsewhere="Write to me directly: it is about your own DMs.",
    ),
)
