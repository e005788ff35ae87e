"""Moments and days from outside: what people, platforms and files say when something was. Pure.

Whatever is within the years 1970 to 2200 can be moved by days, weeks, lifetimes and time zones without leaving the
calendar, so everything behind this module calculates with times as it likes.
"""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

from composer.errors import BadInput

FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2200
YEARS: Final = f"the years {FIRST_YEAR} to {LAST_YEAR}"
_FIRST: Final = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
_AFTER: Final = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC)
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SECONDS: Final = re.compile(r"([0-9]{1,11})(?:\.([0-9]{1,9}))?")


def moment(at: datetime) -> datetime:
    """The same moment in UTC. Raises BadInput for one without a time zone, or outside the years 1970 to 2200."""
    if at.tzinfo is None:
        raise BadInput("A time needs its zone, for example 2026-05-04T09:00:00Z.")
    try:
        utc = at.astimezone(UTC)
    except OverflowError:  # at the ends of the calendar
        utc = datetime.min.replace(tzinfo=UTC)
    if not _FIRST <= utc < _AFTER:
        raise BadInput(f"The time {at.isoformat()} is not within {YEARS}.")
    return utc


def moment_of(text: str) -> datetime:
    """The moment that a text names in ISO 8601, in UTC. Raises BadInput as `moment`."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise BadInput(f"'{text}' is not a time with a time zone; write for example 2026-05-04T09:00:00Z.")
    return moment(at)


def moment_of_seconds(text: str) -> datetime:
    """The moment that a text names in seconds since 1970, with at most nine decimals; after the sixth they are cut.
    Raises BadInput as `moment`."""
    found = _SECONDS.fullmatch(text)
    if found is None:
        raise BadInput(f"'{text[:40]}' is not a time in seconds; expected for example 1777885200.000100.")
    at = _FIRST + timedelta(seconds=int(found[1]), microseconds=int((found[2] or "")[:6].ljust(6, "0")))
    return moment(at)


def day_of(text: str) -> date:
    """The day that a text names, as 2026-05-01. Raises BadInput, also outside the years 1970 to 2200."""
    try:
        day = date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None:
        raise BadInput(f"'{text}' is not a day: write it as 2026-05-01.")
    return known_day(day)


def known_day(day: date) -> date:
    """The same day. Raises BadInput outside the years 1970 to 2200."""
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise BadInput(f"The day {day.isoformat()} is not within {YEARS}.")
    return day
