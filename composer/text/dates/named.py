"""Read a day or a time that stands alone, such as after `--since`: 2026-05-01, a word for a day that is past, or a time
with its zone. Pure."""

from datetime import UTC, date, datetime, time, tzinfo
from typing import Final

from composer.text.dates.repeats import local_moment
from composer.text.dates.when import read_since
from composer.text.moments import day_of, moment_of

_ANY_TIME: Final = datetime(2026, 5, 4, 12, tzinfo=UTC)  # whether a word names a day does not depend on the time
_DAY_CHARS: Final = 10  # of 2026-05-01; what is longer and begins with a digit is a time


def day_or_words(text: str) -> date | str:
    """The day, or the text if which day it names depends on the time or the zone: today, yesterday, monday, or a time
    with its zone. Raises BadInput."""
    day = day_named(text, _ANY_TIME, UTC)
    return text if text.isalpha() or _is_time(text) else day


def moment_text(text: str) -> str:
    """The text, if it names a time as `moment_named` reads it. Raises BadInput."""
    moment_named(text, _ANY_TIME, UTC)
    return text


def day_named(text: date | str, now: datetime, zone: tzinfo) -> date:
    """The day that a text names, in a time zone; a weekday is the latest one. Raises BadInput for any other text."""
    if isinstance(text, date):
        return text
    if _is_time(text):
        return moment_of(text).astimezone(zone).date()
    fixed = read_since(text, _ANY_TIME, UTC) if text.isalpha() else None
    found = None if fixed is None or fixed.time() != time() else read_since(text, now, zone)
    return day_of(text) if found is None else found.astimezone(zone).date()


def moment_named(text: str, now: datetime, zone: tzinfo) -> datetime:
    """The time that a text names, in UTC; a day is its beginning. Raises BadInput as `day_named`."""
    return moment_of(text) if _is_time(text) else local_moment(day_named(text, now, zone), time(), zone)


def _is_time(text: str) -> bool:
    return text[:1].isdigit() and len(text) > _DAY_CHARS
