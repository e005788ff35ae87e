"""Dates in English text: the days near which a question asks, and the deadline that a statement names. Pure.

All times are aware. Days begin at midnight in the zone of the given time.
"""

import calendar
import re
from datetime import MAXYEAR, UTC, datetime, timedelta, tzinfo
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
DAY_MARGIN_DAYS: Final = 1  # on both sides of a named day: time zones, and people who write after midnight

Period = tuple[datetime, datetime]  # the end is not included

# Among letters of ASCII: without regard to case, "i" would match the dotless one, and "s" the long one.
_WEEKDAY: Final = f"(?a:{'|'.join(WEEKDAYS)})"
_MONTH: Final = f"(?a:{'|'.join(MONTHS)})"
_MONTH_NUMBERS: Final = {name: number for number, name in enumerate(MONTHS, 1)}
_WEEKDAY_NUMBERS: Final = {name: number for number, name in enumerate(WEEKDAYS)}  # as datetime.weekday counts
_ISO_DATE: Final = re.compile(r"(?<![\d-])(\d{4})-(\d\d)-(\d\d)(?![\d-])")
# "May" and "march" are ordinary words too: a month must stand beside a number, or after a word such as "in" or "last".
_NAMED_DATE: Final = re.compile(
    rf"\b(?P<day1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<after>{_MONTH})\b(?:,?\s+(?P<year1>\d{{4}}))?"
    rf"|\b(?P<before>{_MONTH})\s+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s+(?P<year2>\d{{4}}))?"
    rf"|\b(?P<month>{_MONTH}),?\s+(?P<year3>\d{{4}})"
    rf"|\b(?:in|of|since|during|until|by|early|late|mid|this|last)[\s-]+(?P<bare>{_MONTH})\b(?!,?\s+\d)",
    re.IGNORECASE,
)
_RELATIVE_DAYS: Final = {  # days before today's midnight at which the period begins, and its length in days
    "today": (0, 1),
    "yesterday": (2, 3),  # with the margin of a named day on both sides
    "this week": (6, 7),
    "last week": (13, 13),
    "last month": (61, 60),
}
_RELATIVE_PERIODS: Final = tuple((re.compile(rf"\b{name}\b"), days) for name, days in _RELATIVE_DAYS.items())
_ASKS_WHEN: Final = re.compile(r"\b(?:when|how long|(?:what|which) (?:date|day|week|month|year|time))\b", re.IGNORECASE)
_SAYS_WHEN: Final = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|recently|just|this (?:morning|week|weekend|month|year)"
    rf"|{_WEEKDAY}|week|weekend|month|{_MONTH})\b|\d",
    re.IGNORECASE,
)
_DEADLINE: Final = re.compile(
    r"\b(?:until|till|by|before|due(?:\s+on)?|no\s+later\s+than|valid\s+(?:to|until|through)|expires?(?:\s+on)?)\s+(?:the\s+|this\s+|next\s+|end\s+of\s+)*"
    rf"(?P<when>today|tonight|tomorrow|eod|eow|week|month|year|\d{{4}}-\d{{2}}-\d{{2}}|{_WEEKDAY}|{_MONTH}\b(?:\s+\d{{1,2}}\b)?)",
    re.IGNORECASE,
)


def asks_when(question: str) -> bool:
    """Whether a question asks for a time."""
    return _ASKS_WHEN.search(question) is not None


def says_when(text: str) -> bool:
    """Whether a text contains a word of time, or a number."""
    return _SAYS_WHEN.search(text) is not None


def named_periods(question: str, now: datetime) -> list[Period]:
    """The days near which a question asks, for ranking: ISO dates first, then named dates in the order of the text,
    then relative ones such as "last week".

    A named day gets a margin of one day on both sides. A month without a year is the latest one that had begun by
    `now`. Dates that do not exist are left out.
    """
    found = [_named_day(int(y), int(m), int(d), now.tzinfo) for y, m, d in _ISO_DATE.findall(question)]
    found += [_named_date(match, now) for match in _NAMED_DATE.finditer(question)]
    words = " ".join(question.casefold().split())
    for pattern, (days_ago, days) in _RELATIVE_PERIODS:
        if pattern.search(words):
            found.append(_period(now.year, now.month, now.day, first=-days_ago, days=days, zone=now.tzinfo))
    return [period for period in found if period is not None]


def named_deadline(statement: str) -> str | None:
    """The first deadline that a statement names, in lower case as `deadline_end` takes it; None without one."""
    match = _DEADLINE.search(statement)
    return None if match is None else match.group("when").casefold()


def deadline_end(deadline: str, at: datetime) -> datetime | None:
    """The midnight after a deadline that was named at `at`: the last day itself still counts.

    A weekday, a week, a month and a year are taken generously, since "next Friday" may mean the one after. None for a
    date that does not exist, for the last day of the calendar, and for what is no deadline.
    """
    days = _days_left(deadline, at)
    if days is not None:
        return day_or_none(at.year, at.month, at.day, later=days, zone=at.tzinfo)
    if deadline[:1].isdigit():
        numbers = [int(number) if number.isdecimal() else 0 for number in deadline.split("-")]
        return day_or_none(*numbers, later=1, zone=at.tzinfo) if len(numbers) == len("ymd") else None
    name, _, number = deadline.partition(" ")
    month = _MONTH_NUMBERS.get(name)
    if month is None:
        return None
    year = at.year + (month < at.month)
    if year > MAXYEAR:
        return None
    last = calendar.monthrange(year, month)[1]
    named = int(number) if number.strip().isdecimal() else 0
    return day_or_none(year, month, min(named, last) or last, later=1, zone=at.tzinfo)


def day_or_none(year: int, month: int, day: int, *, later: int = 0, zone: tzinfo | None = UTC) -> datetime | None:
    """The midnight at which a day begins, or the one so many days `later`; None where the calendar has no such day."""
    try:
        return datetime(year, month, day, tzinfo=zone) + timedelta(days=later)
    except (ValueError, OverflowError):
        return None


def _days_left(deadline: str, at: datetime) -> int | None:
    """The days from the one of `at` to the midnight after a deadline that is told from today; None for others."""
    if deadline in _WEEKDAY_NUMBERS:
        return (_WEEKDAY_NUMBERS[deadline] - at.weekday()) % 7 + 8
    if deadline in ("week", "eow"):
        return 7 + (6 - at.weekday()) + 1
    return {"today": 1, "tonight": 1, "eod": 1, "tomorrow": 2, "month": 62, "year": 731}.get(deadline)


def _named_date(match: re.Match[str], now: datetime) -> Period | None:
    month = _MONTH_NUMBERS.get((match["after"] or match["before"] or match["month"] or match["bare"]).casefold())
    if month is None:
        return None
    named_year = match["year1"] or match["year2"] or match["year3"]
    year = int(named_year) if named_year else now.year - (month > now.month)
    day = match["day1"] or match["day2"]
    if day is not None:
        return _named_day(year, month, int(day), now.tzinfo)
    start = day_or_none(year, month, 1, zone=now.tzinfo)
    end = day_or_none(year + month // 12, month % 12 + 1, 1, zone=now.tzinfo)
    return None if start is None or end is None else (start, end)


def _named_day(year: int, month: int, day: int, zone: tzinfo | None) -> Period | None:
    """A day with its margin; None when there is no such day, such as the 31st of June."""
    return _period(year, month, day, first=-DAY_MARGIN_DAYS, days=1 + 2 * DAY_MARGIN_DAYS, zone=zone)


def _period(year: int, month: int, day: int, *, first: int, days: int, zone: tzinfo | None) -> Period | None:
    """So many `days`, from the one that comes `first` days after a day; None where the calendar lacks one of them."""
    start, end = (day_or_none(year, month, day, later=later, zone=zone) for later in (first, first + days))
    return None if start is None or end is None else (start, end)
