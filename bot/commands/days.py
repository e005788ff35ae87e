"""Days that people name after an option, by date or in words: which they are. `--on DAY`: as of an earlier day."""

from dataclasses import replace
from datetime import date, datetime
from typing import Final

from bot.commands import parameters
from bot.commands.command import CONFIRM, Call, valued
from composer.errors import BadInput
from composer.text.dates.local_days import end_of_day
from composer.text.dates.named import day_named

_DAY: Final = parameters.day("on", "as of the end of this day, such as 2026-05-01, yesterday or monday; by default now")
ON: Final = valued(_DAY)


def named_day(call: Call, parameter: parameters.Parameter[date | str]) -> date | None:
    """The day that a parameter names, in the caller's zone; None when it is left out."""
    given = call.arguments.get(parameter)
    return None if given is None else day_named(given, call.now, call.zone)


def with_dates(call: Call, *days: parameters.Parameter[date | str]) -> Call:
    """A call that erases, with its days written as dates: when it is confirmed, they mean no others. Where a day was
    given in words, it is not confirmed yet: its sender has not seen which day that is."""
    named = {each.name: str(day) for each in days if (day := named_day(call, each)) is not None}
    in_words = any(isinstance(call.arguments.values.get(each.name), str) for each in days)
    flags = call.flags - {CONFIRM.name} if in_words else call.flags
    return replace(call, arguments=replace(call.arguments, texts={**call.arguments.texts, **named}, flags=flags))


def as_of(call: Call) -> datetime:
    """The moment that `--on` names: the end of that day in the caller's time zone, or now if that is earlier.

    Raises BadInput for a day to come.
    """
    day, zone = named_day(call, _DAY), call.zone
    if day is None:
        return call.now
    if day > call.now.astimezone(zone).date():
        raise BadInput(f"{day} is still to come: name a day until today.")
    return min(end_of_day(day, zone), call.now)


def day_suffix(call: Call) -> str:
    """ " on 2026-05-01" for an answer about an earlier day, else nothing."""
    day = named_day(call, _DAY)
    return "" if day is None else f" on {day}"
