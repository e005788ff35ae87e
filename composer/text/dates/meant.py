"""The periods that a text means, seen from when it was said: over or to come, "the day after tomorrow" too. Pure."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from composer.text.dates.periods import (
    COUNT,
    PERIOD_RULES,
    PeriodOf,
    Rule,
    count_of,
    days_from,
    in_utc,
    is_past,
    lies_ahead,
    matches_of,
    units_ago,
)
from composer.text.dates.tongues import Told, told_in_english
from composer.text.dates.vocabulary import WEEKDAY, Period, weekday_number

MAX_CHARS_WITH_DAYS: Final = 400  # of a text
MAX_MEANT: Final = 8  # periods of one text

_WEEK, _YEAR = timedelta(days=7), timedelta(days=365)
# After how long a phrase with such a group means another time.
_AGAIN: Final = {
    "weekday": _WEEK,
    "weekend": _WEEK,
    "month": _YEAR,
    "month2": _YEAR,
    "quarter": _YEAR,
    "season": _YEAR,
}
_ONE: Final = ("year", "which")  # groups by which it means one alone
_OVER: Final = frozenset({"last", "past", "previous", "this past", "since"})


def days_meant(text: str, at: datetime) -> list[Period]:
    """The periods that a text means which was said at a time, as `meant_periods`, in the days of the zone of `at`."""
    return meant_periods(told_in_english(text[:MAX_CHARS_WITH_DAYS], ahead=False), at, tells=True)


def meant_periods(tellings: Iterable[Told], at: datetime, *, tells: bool = False) -> list[Period]:
    """The periods in UTC that a text means which was said at a time: those of its first telling that names any.

    "On Friday" and "3 May" are the latest and the next one; the latest alone where the text has a word of the past, the
    next alone where it is about what lies ahead, or `tells` something in English without a word of the past. "Next
    Friday" is the first one and the one after: people mean either. Without repeats, and at most MAX_MEANT.
    """
    for told in tellings:
        found = _meant(" ".join(told.text.casefold().split()), at, no_past_lies_ahead=tells and not told.foreign)
        if found:
            return found
    return []


def _meant(words: str, at: datetime, *, no_past_lies_ahead: bool) -> list[Period]:
    past = is_past(words)
    ahead = lies_ahead(words) or (no_past_lies_ahead and not past)
    matches, _ = matches_of(_RULES, words)
    found = [period for of, match in matches for period in _periods_of(of, match, at, ahead=ahead, past=past)]
    return list(dict.fromkeys(found))[:MAX_MEANT]


def _periods_of(period_of: PeriodOf, match: re.Match[str], at: datetime, *, ahead: bool, past: bool) -> list[Period]:
    period, groups = in_utc(period_of, match, at, False), match.groupdict()
    again = next((_AGAIN[name] for name in groups if name in _AGAIN), None)
    if again is None or any(groups.get(name) for name in _ONE) or groups.get("how") in _OVER:
        return [] if period is None else [period]
    try:
        later = in_utc(period_of, match, at + again, False)
    except OverflowError:  # the calendar ends before
        later = None
    first, second = not ahead, not past
    if period is not None and period[1] > at:  # the first one is not over
        first, second = True, groups.get("how") == "next"
    return [each for each, meant in ((period, first), (later, second)) if meant and each is not None]


def _tomorrow(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    return days_from(now, 1 if match[0] == "tomorrow" else 2)


def _in_next_week(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    number = weekday_number(match["of_next"] or match["of_next2"])
    return days_from(now, 7 - now.weekday() + number)


def _next_weekday(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    begun = match["how"] == "next"  # today is this Friday, and not the next one
    return days_from(now, (weekday_number(match["weekday"]) - now.weekday() - begun) % 7 + begun)


def _units_ahead(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    least, most = count_of(match)
    return units_ago(now, match["unit"], -most, -least)


def _next_unit(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    return units_ago(now, match["unit"], -1, -1)


def _coming_weekend(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    begun = now.weekday() >= weekday_number("saturday")
    return days_from(now, 5 - now.weekday() + 7 * (begun and match["how"] == "next"), 2)


_RULES: Final[tuple[Rule, ...]] = (
    *(
        (re.compile(pattern), period_of)
        for pattern, period_of in (
            (r"\b(?:the day after tomorrow|day after tomorrow|tomorrow)\b", _tomorrow),
            (
                rf"\b(?P<of_next>{WEEKDAY}) (?:of )?next week\b(?!')|\bnext week (?:on )?(?P<of_next2>{WEEKDAY})\b",
                _in_next_week,
            ),
            (rf"\b(?P<how>next|coming|this(?: coming)?) (?P<weekday>{WEEKDAY})\b", _next_weekday),
            (rf"\bin {COUNT} (?P<unit>day|week|fortnight|month|year)s?\b", _units_ahead),
            (rf"\b{COUNT} (?P<unit>day|week|fortnight|month|year)s? from now\b", _units_ahead),
            (r"\b(?P<how>this|next|coming) weekend\b", _coming_weekend),
            (r"\bnext (?P<unit>week|month|quarter|year)\b(?!')", _next_unit),
        )
    ),
    *PERIOD_RULES,
)
