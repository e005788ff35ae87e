"""`--on DAY`: look at facts and memories as of an earlier day."""

from datetime import UTC, date, datetime, time
from typing import Final

from bot.commands import parameters
from bot.commands.command import Call, valued
from composer.errors import BadInput
from composer.moments import day_of
from composer.summaries.periods import end_of_day
from composer.text.dates.when import read_since

_ANY_TIME: Final = datetime(2026, 5, 4, 12, tzinfo=UTC)  # whether a word names a day does not depend on the time


def _read(text: str) -> date | str:
    """A day, or a word for one that is past: today, yesterday, monday. Raises BadInput."""
    if text.isalpha():
        found = read_since(text, _ANY_TIME, UTC)
        if found is not None and found.time() == time():
            return text
    return day_of(text)


_DAY: Final = parameters.word(
    "on", "as of the end of this day, such as 2026-05-01, yesterday or monday; by default now", _read, label="DAY"
)
ON: Final = valued(_DAY)


def _day(call: Call) -> date | None:
    """The day that `--on` names, in the workspace's time zone."""
    given, zone = call.arguments.get(_DAY), call.app.settings.zone_of(call.workspace.tenant)
    if not isinstance(given, str):
        return given
    start = read_since(given, call.now, zone)
    return None if start is None else start.astimezone(zone).date()


def as_of(call: Call) -> datetime:
    """The moment that `--on` names: the end of that day in the workspace's time zone, or now if that is earlier.

    Raises BadInput for a day to come.
    """
    day, zone = _day(call), call.app.settings.zone_of(call.workspace.tenant)
    if day is None:
        return call.now
    if day > call.now.astimezone(zone).date():
        raise BadInput(f"{day} is still to come: name a day until today.")
    return min(end_of_day(day, zone), call.now)


def day_suffix(call: Call) -> str:
    """ " on 2026-05-01" for an answer about an earlier day, else nothing."""
    day = _day(call)
    return "" if day is None else f" on {day}"
