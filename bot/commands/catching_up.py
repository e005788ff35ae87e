"""catch-up: tell somebody what they missed in a room."""

from collections.abc import Sequence
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context
from bot.commands.command import PREFIX, ROOMS, Call, Command, CommandAnswer
from composer.people.catch_up import missed_text, read_missed
from composer.rights import Act
from composer.text.dates.when import read_since

BRIEF_TOKENS: Final = 250  # of the summary of what no day's summary tells of

_SINCE: Final = parameters.text(
    "since",
    "since when: 2 hours, yesterday, on Monday at 14:00, 2026-05-04; by default since you last wrote here",
    required=False,
)


async def _catch_up(call: Call) -> CommandAnswer:
    given, zone = call.arguments.get(_SINCE), call.app.settings.zone_of(call.workspace.tenant)
    since = None if given is None else read_since(given, call.now, zone)
    if given is not None and since is None:
        raise call.command.usage_error(
            f"'{given}' is no time before now that I know. Write 2 hours, yesterday, on Monday at 14:00, 9:30 or "
            "2026-05-04."
        )
    async with call.app.database.transaction(call.workspace.tenant_id, snapshot=True) as tx:
        missed = await read_missed(tx, await access_context(tx, call), since, call.now, zone)
    writer = next((agent for agent in call.agents if agent.for_summaries.model), None)
    untold = missed.untold
    brief = ""
    if untold:
        tenant = call.workspace.tenant_id
        brief = await call.app.tiers.summarise(tenant, untold, BRIEF_TOKENS, writer, call.user, call.room)
    return CommandAnswer(missed_text(missed, brief, call.permalink, zone))


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "catch-up",
        (_SINCE,),
        "Sum up what you missed in this room, for you alone",
        _catch_up,
        "catch-up yesterday",
        places=ROOMS,
        act=Act.READ,
        elsewhere=f"It is about a room. In a DM, ask: {PREFIX} recall WORDS",
    ),
)
