"""`--on DAY`: look at facts and memories as of an earlier day."""

from datetime import date, datetime
from typing import Final

from bot.commands import parameters
from bot.commands.command import Call, valued
from composer.errors import BadInput
from composer.summaries.periods import end_of_day
from composer.text.dates.named import day_named, day_or_words

_DAY: Final = parameters.word(
    "on",
    "as of the end of this day, such as 2026-05-01, yesterday or monday; by default now",
    day_or_words,
    label="DAY",
)
ON: Final = valued(_DAY)


def named_day(call: Call, parameter: parameters.Parameter[date | str]) -> date | None:
    """The day that a parameter names (read by `day_or_words`), in the workspace's zone; None when it is left out."""
    given = call.arguments.get(parameter)
    return None if given is None else day_named(given, call.now, call.app.settings.zone_of(call.workspace.tenant))


def as_of(call: Call) -> datetime:
    """The moment that `--on` names: the end of that day in the workspace's time zone, or now if that is earlier.

    Raises BadInput for a day to come.
    """
    day, zone = named_day(call, _DAY), call.app.settings.zone_of(call.workspace.tenant)
    if day is None:
        return call.now
    if day > call.now.astimezone(zone).date():
        raise BadInput(f"{day} is still to come: name a day until today.")
    return min(end_of_day(day, zone), call.now)


def day_suffix(call: Call) -> str:
    """ " on 2026-05-01" for an answer about an earlier day, else nothing."""
    day = named_day(call, _DAY)
    return "" if day is None else f" on {day}"
