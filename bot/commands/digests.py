"""digest: let the summary of a room's days or weeks be posted to it."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context
from bot.commands.command import PREFIX, ROOM_PLACES, Call, Case, Command, CommandAnswer
from composer.errors import BadInput
from composer.model import RecordingPolicy
from composer.repositories.digests import DigestPeriod
from composer.rights.table import Act
from composer.turn.scheduled.digests import DEFAULT_HOUR, set_digest


class DigestMode(StrEnum):
    """What is posted."""

    DAILY = "daily"
    WEEKLY = "weekly"
    OFF = "off"


def _hour(given: str) -> int:
    hour = given.removesuffix(":00")
    if not (hour.isascii() and hour.isdecimal() and len(hour) <= 2 and int(hour) <= 23):
        raise BadInput(f"'{given}' is no full hour: write 0 to 23, such as 9 or 17:00.")
    return int(hour)


_MODE: Final = parameters.choice(
    "mode", "how often this room gets its summary; leave it out to see the setting", DigestMode, required=False
)
_HOUR: Final = parameters.word(
    "hour", "the hour at which it is posted, 0 to 23, by default 9; a weekly one on Mondays", _hour, required=False
)


async def _digest(call: Call) -> CommandAnswer:
    mode, hour = call.arguments.get(_MODE), call.arguments.get(_HOUR)
    async with call.changing() as tx:
        name = (await access_context(tx, call)).conversation.name
        stores = (await tx.conversations.lock([call.room]))[call.room].recording is not RecordingPolicy.OFF
        if mode is not None:
            period = None if mode is DigestMode.OFF else DigestPeriod(mode)
            zone = call.app.settings.zone_of(call.workspace.tenant)
            await set_digest(tx, call.room, period, DEFAULT_HOUR if hour is None else hour, call.now, zone)
        digest = await tx.digests.get(call.room)
    if digest is None:
        return CommandAnswer(f"No digest is posted in #{name}. To get one: {PREFIX} digest daily")
    of = {DigestPeriod.DAILY: "the day before", DigestPeriod.WEEKLY: "the week before"}[digest.period]
    silent = "" if stores else f" Nothing is stored of this room, so there is nothing to post ({PREFIX} memory)."
    return CommandAnswer(
        f"In #{name} a summary of {of} is posted, if anything was said: next on {_local(call, digest.due_at)}."
        f"{silent} To end it: {PREFIX} digest off"
    )


def _local(call: Call, at: datetime) -> str:
    zone = call.app.settings.zone_of(call.workspace.tenant)
    return f"{at.astimezone(zone):%a %Y-%m-%d at %H:%M} ({zone.key})"


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "digest",
        (_MODE, _HOUR),
        "Show or set whether a summary of this room is posted to it",
        _digest,
        "digest daily 9",
        places=ROOM_PLACES,
        act=Act.SET_DIGEST,
        cases=(Case(Act.READ, lambda given: given.get(_MODE) is None, "to look only"),),
        elsewhere="A digest is of a room.",
    ),
)
