"""The deadline that a statement names: "until Friday", "by May 3", "valid until 2026-05-04". Pure."""

import calendar
import re
from datetime import MAXYEAR, datetime
from typing import Final

from composer.text.dates.vocabulary import MONTH, MONTHS, WEEKDAY, WEEKDAYS, day_or_none, month_number, weekday_number

_DEADLINE: Final = re.compile(
    r"\b(?:until|till|by|before|due(?:\s+on)?|no\s+later\s+than|valid\s+(?:to|until|through)|expires?(?:\s+on)?)\s+(?:the\s+|this\s+|next\s+|end\s+of\s+)*"
    rf"(?P<when>today|tonight|tomorrow|eod|eow|week|month|year|\d{{4}}-\d{{2}}-\d{{2}}|{WEEKDAY}|{MONTH}\b(?:\s+\d{{1,2}}\b)?)",
    re.IGNORECASE,
)


def named_deadline(statement: str) -> str | None:
    """The first deadline that a statement names, in lower case as `deadline_end` takes it; None without one."""
    match = _DEADLINE.search(statement)
    return None if match is None else match.group("when").casefold()


def deadline_end(deadline: str, at: datetime) -> datetime | None:
    """The midnight after a deadline that was named at `at`: the last day itself still counts.

    Days begin at midnight in the zone of `at`. A weekday, a week, a month and a year are taken generously, since "next
    Friday" may mean the one after. None for a date that does not exist, for the last day of the calendar, and for what
    is no deadline.
    """
    days = _days_left(deadline, at)
    if days is not None:
        return day_or_none(at.year, at.month, at.day, later=days, zone=at.tzinfo)
    if deadline[:1].isdigit():
        numbers = [int(number) if number.isdecimal() else 0 for number in deadline.split("-")]
        return day_or_none(*numbers, later=1, zone=at.tzinfo) if len(numbers) == len("ymd") else None
    name, _, number = deadline.partition(" ")
    if name not in MONTHS:
        return None
    month = month_number(name)
    year = at.year + (month < at.month)
    if year > MAXYEAR:
        return None
    last = calendar.monthrange(year, month)[1]
    named = int(number) if number.strip().isdecimal() else 0
    return day_or_none(year, month, min(named, last) or last, later=1, zone=at.tzinfo)


def _days_left(deadline: str, at: datetime) -> int | None:
    """The days from the one of `at` to the midnight after a deadline that is told from today; None for others."""
    if deadline in WEEKDAYS:
        return (weekday_number(deadline) - at.weekday()) % 7 + 8
    if deadline in ("week", "eow"):
        return 7 + (6 - at.weekday()) + 1
    return {"today": 1, "tonight": 1, "eod": 1, "tomorrow": 2, "month": 62, "year": 731}.get(deadline)
