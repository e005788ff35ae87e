"""catch-up: tell somebody what they missed in a room."""

from collections.abc import Sequence
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context
from bot.commands.command import OUTDATED, PREFIX, ROOM_PLACES, Call, Command, CommandAnswer
from composer.errors import Refused
from composer.people.catch_up import Missed, missed_text, read_missed, still_holds
from composer.rights.table import Act
from composer.text.dates.when import read_since

BRIEF_TOKENS: Final = 250  # of the summary of what no day's summary tells of
MAX_CATCH_UP_ATTEMPTS: Final = 3  # where something of it is forgotten or edited while it is summed up

_SINCE: Final = parameters.text(
    "since",
    "since when: 2 hours, yesterday, on Monday at 14:00, 2026-05-04; by default since you last wrote here",
    required=False,
)


async def _catch_up(call: Call) -> CommandAnswer:
    given, zone = call.arguments.get(_SINCE), call.zone
    since = None if given is None else read_since(given, call.now, zone)
    if given is not None and since is None:
        raise call.command.usage_error(
            f"'{given}' is no time before now that I know. Write 2 hours, yesterday, on Monday at 14:00, 9:30 or "
            "2026-05-04."
        )
    for _ in range(MAX_CATCH_UP_ATTEMPTS):
        async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
            missed = await read_missed(tx, await access_context(tx, call), since, call.now, zone)
        brief = await _brief(call, missed)
        if not brief or await _is_unchanged(call, missed):
            return CommandAnswer(missed_text(missed, brief, call.permalink, zone))
    raise Refused(OUTDATED)


async def _brief(call: Call, missed: Missed) -> str:
    """A summary of what no day's summary tells of."""
    untold, writer = missed.unsummarised, next((agent for agent in call.agents if agent.for_summaries.model), None)
    if not untold:
        return ""
    tenant = call.workspace.tenant_id
    return await call.app.tiers.summarise(tenant, untold, BRIEF_TOKENS, writer, call.user, call.room)


async def _is_unchanged(call: Call, missed: Missed) -> bool:
    """Whether what was read before a model was asked may still be told. Raises NotFound for who may not be here now."""
    async with call.app.database.transaction(call.workspace.tenant_id, "read") as tx:
        return await still_holds(tx, await access_context(tx, call), missed)


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "catch-up",
        (_SINCE,),
        "Sum up what you missed in this room, for you alone",
        _catch_up,
        "catch-up yesterday",
        places=ROOM_PLACES,
        act=Act.READ,
        elsewhere=f"It is about a room. In a DM, ask: {PREFIX} recall WORDS",
    ),
)
