"""The days near which a question asks, for ranking, and texts that contain words of time. Pure.

All times are aware. Days begin at midnight in the zone of the given time.
"""

import re
from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import Final

from composer.text.dates.tongues import Told, told_in_english
from composer.text.dates.vocabulary import (
    DAY_MONTH,
    ISO_DAY,
    MONTH,
    MONTH_DAY,
    WEEKDAY,
    Period,
    day_or_none,
    iso_day,
    month_and_day,
    month_number,
)

DAY_MARGIN_DAYS: Final = 1  # on both sides of a named day: time zones, and people who write after midnight

_ISO_DATE: Final = re.compile(rf"(?<![\d-]){ISO_DAY}(?![\d-])")
# "May" and "march" are ordinary words too: a month must stand beside a number, or after a word such as "in" or "last".
_NAMED_DATE: Final = re.compile(
    rf"\b{DAY_MONTH}\b(?:,?\s+(?P<year1>\d{{4}}))?"
    rf"|\b{MONTH_DAY}(?!\d)(?:,?\s+(?P<year2>\d{{4}}))?"
    rf"|\b(?P<whole>{MONTH}),?\s+(?P<year3>\d{{4}})"
    rf"|\b(?:in|of|since|during|until|by|early|late|mid|this|last)[\s-]+(?P<bare>{MONTH})\b(?!,?\s+\d)",
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
    rf"|{WEEKDAY}|week|weekend|month|{MONTH})\b|\d",
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

    A named day gets a margin of one day on both sides, also one that only bounds what is asked: "the week before 9
    June" is near it. A month without a year is the latest one that had begun by `now`. Dates that do not exist are
    left out.
    """
    return days_near(told_in_english(question, ahead=False), now)


def days_near(tellings: Iterable[Told], now: datetime) -> list[Period]:
    """The days of the first telling of a question that names any."""
    for told in tellings:
        found = _periods(told.text, now)
        if found:
            return found
    return []


def _periods(question: str, now: datetime) -> list[Period]:
    found = [_named_day(*iso_day(match), now.tzinfo) for match in _ISO_DATE.finditer(question)]
    found += [_named_date(match, now) for match in _NAMED_DATE.finditer(question)]
    words = " ".join(question.casefold().split())
    for pattern, (days_ago, days) in _RELATIVE_PERIODS:
        if pattern.search(words):
            found.append(_period(now.year, now.month, now.day, first=-days_ago, days=days, zone=now.tzinfo))
    return [period for period in found if period is not None]


def _named_date(match: re.Match[str], now: datetime) -> Period | None:
    name = match["whole"] or match["bare"]
    month, day = (month_number(name), None) if name else month_and_day(match)
    named_year = match["year1"] or match["year2"] or match["year3"]
    year = int(named_year) if named_year else now.year - (month > now.month)
    if day is not None:
        return _named_day(year, month, day, now.tzinfo)
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
