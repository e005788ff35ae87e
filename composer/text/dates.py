"""Times that a text names: which days a question is about, and whether a text says when something was."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

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
_MONTH: Final = "|".join(MONTHS)
_ISO = re.compile(r"(?<![\d-])(\d{4})-(\d\d)-(\d\d)(?![\d-])")
# "May" and "march" are words too: a month stands beside a number, or after a word that says so.
_DATED = re.compile(
    rf"\b(?P<day1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<after>{_MONTH})\b(?:,?\s+(?P<year1>\d{{4}}))?"
    rf"|\b(?P<before>{_MONTH})\s+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s+(?P<year2>\d{{4}}))?"
    rf"|\b(?P<month>{_MONTH}),?\s+(?P<year3>\d{{4}})"
    rf"|\b(?:in|of|since|during|until|by|early|late|mid|this|last)[\s-]+(?P<bare>{_MONTH})\b(?!,?\s+\d)",
    re.IGNORECASE,
)
_RELATIVE: Final = {  # how many days ago it begins, and how many it lasts
    "today": (0, 1),
    "yesterday": (2, 3),  # with a day on both sides, as a named day
    "this week": (6, 7),
    "last week": (13, 13),
    "last month": (61, 60),
}
_ASKS_WHEN = re.compile(r"\b(?:when|how long|(?:what|which) (?:date|day|week|month|year|time))\b", re.IGNORECASE)
_SAYS_WHEN = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|recently|just|this (?:morning|week|weekend|month|year)"
    rf"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|week|weekend|month|{_MONTH})\b|\d",
    re.IGNORECASE,
)
NEAR: Final = timedelta(days=1)  # clocks of different places, and people who write after midnight

Span = tuple[datetime, datetime]


def asks_when(question: str) -> bool:
    """Whether a question wants a time for its answer."""
    return _ASKS_WHEN.search(question) is not None


def says_when(text: str) -> bool:
    """Whether a text holds a word of time, or a number."""
    return _SAYS_WHEN.search(text) is not None


def spans(question: str, now: datetime) -> list[Span]:
    """The times that a question names, as (from, up to and without), in the order in which they stand.

    A day is taken one day wider on both sides. A month without a year is its latest that had begun by `now`.
    """
    found = [_widened(*map(int, iso.groups())) for iso in _ISO.finditer(question)]
    found += [_dated(match, now) for match in _DATED.finditer(question)]
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    said = " ".join(question.casefold().split())
    for words, (ago, days) in _RELATIVE.items():
        if re.search(rf"\b{words}\b", said):
            start = midnight - timedelta(days=ago)
            found.append((start, start + timedelta(days=days)))
    return [span for span in found if span is not None]


def _dated(match: re.Match[str], now: datetime) -> Span | None:
    name = match["after"] or match["before"] or match["month"] or match["bare"]
    month = MONTHS.index(name.casefold()) + 1
    named = match["year1"] or match["year2"] or match["year3"]
    year = int(named) if named else now.year - (month > now.month)
    day = match["day1"] or match["day2"]
    if day is not None:
        return _widened(year, month, int(day))
    try:
        start = datetime(year, month, 1, tzinfo=UTC)
        return start, datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    except ValueError:
        return None  # the year 0, or 9999


def _widened(year: int, month: int, day: int) -> Span | None:
    try:
        start = datetime(year, month, day, tzinfo=UTC)
        return start - NEAR, start + timedelta(days=1) + NEAR
    except (ValueError, OverflowError):
        return None  # the 31st of June
