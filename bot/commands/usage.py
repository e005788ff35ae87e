"""usage: what models were used for, by how many tokens and for how much: one's own, or everyone's for admins."""

from collections.abc import Sequence
from datetime import date
from typing import Final

from bot.commands import parameters
from bot.commands.access import access_context
from bot.commands.command import Call, Command, CommandAnswer, Flag, valued
from bot.commands.days import named_day
from composer import visibility
from composer.errors import BadInput
from composer.ingest.tenants import configured_prices
from composer.repositories.usage import Dimension
from composer.rights.table import Act
from composer.usage.budgets import states
from composer.usage.report import figures_text, operation_lines, total
from composer.usage.view import UsageSpan, model_usage

EVERYONE: Final = "everyone"
MAX_LINES: Final = 40

_BY: Final = parameters.choice("by", "what to show it by; by default day", Dimension)
_SINCE: Final = parameters.day(
    "since", "only from this day on, such as yesterday; by default from the first of this month on"
)
_UNTIL: Final = parameters.day("until", "only until the end of this day")


async def _usage(call: Call) -> CommandAnswer:
    by = call.arguments.get(_BY) or Dimension.DAY
    since, until = _days(call)
    prices, tenant = configured_prices(call.app.settings), call.workspace.tenant_id
    async with call.app.database.transaction(tenant, "read") as tx:
        owned = visibility.owned_by(await access_context(tx, call))
        month, everyone = since.replace(day=1), EVERYONE in call.flags
        found = await model_usage(tx, by, UsageSpan(since, until), owned, call.presence, everyone=everyone)
        if everyone:
            spent = states(call.app.directory.budgets(tenant), await tx.usage.spent(_today(call)))
            totals, quotas = await tx.operations.of_everyone(month), await call.app.operations.quotas(tx, tenant)
        else:
            spent, totals, quotas = [], await tx.operations.of_owner(month, owned), []
    whose = "of everyone" if EVERYONE in call.flags else "in your name"
    span = f"from {since} until {until}"
    if not found:
        text = [f"No call of a model is recorded {whose} {span}."]
    else:
        text = [f"Calls of models {whose} {span}, by {by}:"]
        text += [f"  {line.describe(prices)}" for line in found[:MAX_LINES]]
        text += [f"  and {len(found) - MAX_LINES:,} more lines"] if len(found) > MAX_LINES else []
        text += [f"Together: {figures_text(total(found), prices)}"]
    done = operation_lines(totals, until)
    text += [f"Done over the API {whose}:", *(f"  {line}" for line in done)] if done else []
    text += ["Plan, now:"] if quotas else []
    text += [f"  {state.description} used" for state in quotas]
    text += ["Budgets, now:"] if spent else []
    text += [f"  {state.describe(prices)}" for state in spent]
    return CommandAnswer("\n".join(text))


def _today(call: Call) -> date:
    return call.now.astimezone(call.app.settings.zone_of(call.workspace.tenant)).date()


def _days(call: Call) -> tuple[date, date]:
    until = named_day(call, _UNTIL) or _today(call)
    since = named_day(call, _SINCE) or until.replace(day=1)
    if until < since:
        raise BadInput(f"--until {until} is before --since {since}: exchange them.")
    return since, until


COMMANDS: Final[Sequence[Command]] = (
    Command(
        "usage",
        (),
        "Show how often models were asked in your name, with tokens and cost",
        _usage,
        "usage --by model --since 2026-05-01",
        (
            Flag(EVERYONE, "that of everyone here, with the budgets", Act.SEE_USAGE),
            valued(_BY),
            valued(_SINCE),
            valued(_UNTIL),
        ),
        act=Act.SEE_OWN,
        names_rooms=True,
    ),
)
