"""Names of days, months and numbers, how a day is written, and what the calendar has. Pure."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS: Final = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
NUMBERS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

Period = tuple[datetime, datetime]  # the end is not included

# Patterns, without what bounds them. Names are letters of ASCII: without regard to case, "i" would match the dotless
# one, and "s" the long one.
WEEKDAY: Final = f"(?a:{'|'.join(WEEKDAYS)})"
MONTH: Final = f"(?a:{'|'.join(MONTHS)})"
ISO_DAY: Final = r"(?P<iso_year>\d{4})-(?P<iso_month>\d\d)-(?P<iso_day>\d\d)"
DAY_MONTH: Final = rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s{{1,8}}(?:of\s{{1,8}})?(?P<month>{MONTH})"
MONTH_DAY: Final = rf"(?P<month2>{MONTH})\s{{1,8}}(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?"


def weekday_number(name: str) -> int:
    """As datetime.weekday counts, 0 for Monday. Raises ValueError for what is no weekday."""
    return WEEKDAYS.index(name.casefold())


def month_number(name: str) -> int:
    """1 for January. Raises ValueError for what is no month."""
    return MONTHS.index(name.casefold()) + 1


def iso_day(match: re.Match[str]) -> tuple[int, int, int]:
    """The year, month and day of a match of ISO_DAY, which the calendar need not have."""
    return int(match["iso_year"]), int(match["iso_month"]), int(match["iso_day"])


def month_and_day(match: re.Match[str]) -> tuple[int, int]:
    """The month and the day of a match of DAY_MONTH or of MONTH_DAY, or of a pattern with either."""
    found = match.groupdict()
    name, day = found.get("month") or found["month2"], found.get("day") or found["day2"]
    return month_number(name), int(day)


def day_or_none(year: int, month: int, day: int, *, later: int = 0, zone: tzinfo | None = UTC) -> datetime | None:
    """The midnight at which a day begins, or the one so many days `later`; None where the calendar has no such day."""
    try:
        return datetime(year, month, day, tzinfo=zone) + timedelta(days=later)
    except (ValueError, OverflowError):
        return None
