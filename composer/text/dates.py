"""Dates in English text: the periods that a question names, and the deadline that a statement names. Pure.

All times are aware. Days begin at midnight UTC for questions, and at midnight of the given time's zone for deadlines.
"""

import calendar
import re
from datetime import UTC, datetime, timedelta
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
DAY_MARGIN: Final = timedelta(days=1)  # on both sides of a named day: time zones, and people who write after midnight

Period = tuple[datetime, datetime]  # the end is not included

_WEEKDAY: Final = "|".join(WEEKDAYS)
_MONTH: Final = "|".join(MONTHS)
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
    rf"(?P<when>today|tonight|tomorrow|eod|eow|week|month|year|\d{{4}}-\d{{2}}-\d{{2}}|{_WEEKDAY}|(?:{_MONTH})\b(?:\s+\d{{1,2}}\b)?)",
    re.IGNORECASE,
)


def asks_when(question: str) -> bool:
    """Whether a question asks for a time."""
    return _ASKS_WHEN.search(question) is not None


def says_when(text: str) -> bool:
    """Whether a text contains a word of time, or a number."""
    return _SAYS_WHEN.search(text) is not None


def named_periods(question: str, now: datetime) -> list[Period]:
    """The periods that a question names: ISO dates first, then named dates in the order of the text, then relative
    ones such as "last week".

    A named day gets a margin of one day on both sides. A month without a year is the latest one that had begun by
    `now`. Dates that do not exist are left out.
    """
    found = [_day(*map(int, iso.groups())) for iso in _ISO_DATE.finditer(question)]
    found += [_named_date(match, now) for match in _NAMED_DATE.finditer(question)]
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    words = " ".join(question.casefold().split())
    for pattern, (days_ago, days) in _RELATIVE_PERIODS:
        if pattern.search(words):
            start = midnight - timedelta(days=days_ago)
            found.append((start, start + timedelta(days=days)))
    return [period for period in found if period is not None]


def named_deadline(statement: str) -> str | None:
    """The first deadline that a statement names, in lower case as `deadline_end` takes it; None without one."""
    match = _DEADLINE.search(statement)
    return None if match is None else match.group("when").lower()


def deadline_end(deadline: str, at: datetime) -> datetime | None:
    """The midnight after a deadline that was named at `at`: the last day itself still counts.

    A weekday, a week, a month and a year are taken generously, since "next Friday" may mean the one after. None for a
    date that does not exist.
    """
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if deadline in ("today", "tonight", "eod"):
        return day + timedelta(days=1)
    if deadline == "tomorrow":
        return day + timedelta(days=2)
    if deadline in ("week", "eow"):
        return day + timedelta(days=7 + (6 - day.weekday()) + 1)
    if deadline in ("month", "year"):
        return day + timedelta(days=62 if deadline == "month" else 731)
    if deadline in WEEKDAYS:
        return day + timedelta(days=(WEEKDAYS.index(deadline) - day.weekday()) % 7 + 8)
    if deadline[:1].isdigit():
        try:
            return datetime.fromisoformat(deadline).replace(tzinfo=at.tzinfo) + timedelta(days=1)
        except ValueError:
            return None
    name, _, number = deadline.partition(" ")
    month = MONTHS.index(name) + 1
    year = at.year + (month < at.month)
    last = calendar.monthrange(year, month)[1]
    date = min(int(number), last) if number.strip() and int(number) > 0 else last
    return day.replace(year=year, month=month, day=date) + timedelta(days=1)


def _named_date(match: re.Match[str], now: datetime) -> Period | None:
    name = match["after"] or match["before"] or match["month"] or match["bare"]
    month = MONTHS.index(name.casefold()) + 1
    named_year = match["year1"] or match["year2"] or match["year3"]
    year = int(named_year) if named_year else now.year - (month > now.month)
    day = match["day1"] or match["day2"]
    if day is not None:
        return _day(year, month, int(day))
    try:
        start = datetime(year, month, 1, tzinfo=UTC)
        return start, datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    except ValueError:
        return None  # the year 0, or 9999


def _day(year: int, month: int, day: int) -> Period | None:
    """A day with its margin; None when there is no such day, such as the 31st of June."""
    try:
        start = datetime(year, month, day, tzinfo=UTC)
        return start - DAY_MARGIN, start + timedelta(days=1) + DAY_MARGIN
    except (ValueError, OverflowError):
        return None
