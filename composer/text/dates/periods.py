"""The periods that a question asks for, as people mean them: "last night", "on Friday", "mid-May", "in Q2". Pure.

Each kind of phrase is a row of RULES: a pattern, and what makes a period of its match. Longer phrases come first, and
what a row has read no later row reads: "the day before yesterday" is not yesterday too. Days, weeks and months are
those of the zone of the time that is given as now.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from composer.text.dates.tongues import Told, told_in_english
from composer.text.dates.vocabulary import (
    DAY_MONTH,
    ISO_DAY,
    MONTH,
    MONTH_DAY,
    NUMBERS,
    WEEKDAY,
    Period,
    iso_day,
    month_and_day,
    month_number,
    weekday_number,
)

PeriodOf = Callable[[re.Match[str], datetime, bool], Period | None]
Rule = tuple[re.Pattern[str], PeriodOf]

MAX_PERIODS: Final = 3  # that one question names
MAX_CHARS_WITH_PERIODS: Final = 2_000  # of a question; a time is named in a sentence
NIGHT_ENDS: Final = 5  # the hour until which "tonight" is the night that began the day before

_PART: Final = "morning|afternoon|evening|night"
_HOURS: Final = {
    "morning": (4, 12),
    "afternoon": (12, 18),
    "evening": (17, 24),
    "night": (18, 30),
}  # of the day's start
_SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # first months, of the north
_SEASON: Final = "|".join(_SEASONS)
_FEW: Final = {"few": (2, 5), "couple": (2, 3), "several": (3, 7)}  # from how many to how many
COUNT: Final = rf"(?P<count>\d{{1,3}}|an?(?! (?:few|couple))|(?:a )?(?:few|couple(?: of)?)|several|{'|'.join(NUMBERS)})"
_DAYS: Final = {"day": 1.0, "week": 7.0, "month": 30.5, "year": 365.25}
_YEAR: Final = r"(?:(?:,| of| in)? (?P<year>\d{4})\b|,?(?: of)? (?P<which>last|this) year\b)"

# A question with such a word, and none of the past, is about what lies ahead: "what is planned on Friday?"
_AHEAD: Final = re.compile(
    r"\b(?:is|are|am|do|does|will|shall|should|must|can|won't|gonna|plan|plans|planned|planning|schedule|scheduled"
    r"|upcoming|coming|next|tomorrow|happens|(?:what|who|when|where|it|that|there)'s|\w{1,20}'ll"
    r"|who (?!has\b|knows|remembers|recalls|thinks|says)\w{1,20}s)\b"  # "who arrives on Friday?"
)
_NO_TENSE: Final = re.compile(r"\b(?:can|could|would|do|does|is|are) (?:you|anyone|anybody)\b")  # "can you tell me …"
_PAST: Final = re.compile(
    r"\b(?:did|didn't|was|wasn't|were|weren't|had|been|said|told|asked|talked|discussed|decided|agreed|happened|wrote"
    r"|spoke|went|came|made|sent|shipped|missed|changed|announced|mentioned|posted|shared|reported)\b"
)
# How a date begins after a preposition: "by Bob" and "since we moved" name none.
_A_DATE: Final = (
    r"\s(?>(?:(?:the|early|late|mid|last|this|beginning of|start of|middle of|end of)[ -])*)"
    rf"(?:\d|q[1-4]|(?:{MONTH}|{WEEKDAY}|{_SEASON}|{_PART}|yesterday|today|tonight|weekend|week|month|quarter|year)\b)"
)
_SINCE: Final = re.compile(rf"\bsince{_A_DATE}")
_RANGE: Final = re.compile(rf"\b(?:between|from){_A_DATE}")
_BEFORE: Final = re.compile(rf"(?<!day )\b(?:before|until|till|by){_A_DATE}")  # without a beginning: not searched


def asked_periods(question: str, now: datetime) -> list[Period]:
    """The periods that a question names, in UTC: a day is that day, last week is from its Monday to its Sunday, "on
    Friday" the latest one that is over (none where the question is about what lies ahead); "since May" and "from May to
    June" are one span. In no order, without repeats, without what lies after `now`, and at most MAX_PERIODS. The end is
    not included.
    """
    return periods_of(told_in_english(question[:MAX_CHARS_WITH_PERIODS], ahead=False), now)


def periods_of(tellings: Iterable[Told], now: datetime) -> list[Period]:
    """The periods of the first telling of a question that names any."""
    for told in tellings:
        found = _periods(" ".join(told.text.casefold().split()), now)
        if found:
            return found
    return []


def is_past(words: str) -> bool:
    """Whether words in lower case have one of the past: "who came on Friday?"."""
    return _PAST.search(words) is not None


def lies_ahead(words: str) -> bool:
    """Whether words in lower case are about what is to come: "who comes on Friday?"."""
    return not is_past(words) and _AHEAD.search(_NO_TENSE.sub(" ", words)) is not None


def matches_of(rules: Sequence[Rule], words: str) -> tuple[list[tuple[PeriodOf, re.Match[str]]], str]:
    """What the rows match, each in what the rows before it left, with what makes a period of it; and what is left."""
    found: list[tuple[PeriodOf, re.Match[str]]] = []
    for pattern, period_of in rules:
        matches = list(pattern.finditer(words))
        found += [(period_of, match) for match in matches]
        words = pattern.sub(" ; ", words) if matches else words
    return found, words


def _periods(words: str, now: datetime) -> list[Period]:
    ahead = lies_ahead(words)
    matches, left = matches_of(PERIOD_RULES, words)
    found = [period for period_of, match in matches if (period := in_utc(period_of, match, now, ahead)) is not None]
    if not found:
        found = [p for match in _ONLY_YEAR.finditer(left) if (p := in_utc(_of_year, match, now, ahead)) is not None]
    begun = [period for period in dict.fromkeys(found) if period[0] <= now]
    if len(begun) > 1 and _RANGE.search(words):
        return [(min(start for start, _ in begun), max(end for _, end in begun))]
    if not begun or _BEFORE.search(words):
        return []
    if _SINCE.search(words):
        return [(min(start for start, _ in begun), now.astimezone(UTC))]
    return begun[:MAX_PERIODS]


def in_utc(period_of: PeriodOf, match: re.Match[str], now: datetime, ahead: bool) -> Period | None:
    """What a rule makes of its match; None where the calendar has no such day."""
    try:
        period = period_of(match, now, ahead)
        return None if period is None else (period[0].astimezone(UTC), period[1].astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def days_from(now: datetime, first: int, count: int = 1) -> Period:
    """So many days, from the one that comes `first` days after today."""
    start = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0) + timedelta(days=first)
    return start, start + timedelta(days=count)


def _months(now: datetime, first: int, count: int = 1) -> Period:
    """So many months, from the one of a number: that of January of the year 0 is 0."""
    start, end = (datetime(n // 12, n % 12 + 1, 1, tzinfo=now.tzinfo) for n in (first, first + count))
    return start, end


def _this_month(now: datetime) -> int:
    return now.year * 12 + now.month - 1


def _season(match: re.Match[str], now: datetime, ahead: bool, month: int, count: int) -> Period | None:
    """The months from `month` on, of the year that is named, else the latest that has begun; "last": that is over."""
    this, named = _this_month(now), match.groupdict()
    if named.get("year"):
        return _months(now, int(named["year"]) * 12 + month - 1, count)
    if named.get("which"):
        return _months(now, (now.year - (named["which"] == "last")) * 12 + month - 1, count)
    first = now.year * 12 + month - 1
    if first > this:
        if ahead or named.get("how") == "this":
            return None
        first -= 12
    if named.get("how") == "last" and first + count > this:
        first -= 12
    return _months(now, first, count)


def _iso_day(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    start = datetime(*iso_day(match), tzinfo=now.tzinfo)
    return start, start + timedelta(days=1)


def _months_between(match: re.Match[str], now: datetime, ahead: bool) -> Period | None:
    first, last = month_number(match["first"]), month_number(match["month"])
    return _season(match, now, ahead, first, (last - first) % 12 + 1)


def _month(match: re.Match[str], now: datetime, ahead: bool) -> Period | None:
    return _season(match, now, ahead, month_number(match["month"]), 1)


def _day_of_month(match: re.Match[str], now: datetime, ahead: bool) -> Period | None:
    number, day = month_and_day(match)
    month = _season(match, now, ahead, number, 1)
    if month is None:
        return None
    start = month[0].replace(day=day)
    return start, start + timedelta(days=1)


def _part_of_month(match: re.Match[str], now: datetime, ahead: bool) -> Period | None:
    month = _month(match, now, ahead)
    if month is None:
        return None
    start, end = month[0], month[1]
    tenth, twentieth = start + timedelta(days=10), start + timedelta(days=20)
    parts = {"mid": (tenth, twentieth), "middle": (tenth, twentieth), "late": (twentieth, end), "end": (twentieth, end)}
    return parts.get(match["part"] or match["portion"], (start, tenth))


def _quarter(match: re.Match[str], now: datetime, ahead: bool) -> Period | None:
    return _season(match, now, ahead, int(match["quarter"]) * 3 - 2, 3)


def _year_season(match: re.Match[str], now: datetime, ahead: bool) -> Period | None:
    return _season(match, now, ahead, _SEASONS[match["season"]], 3)


def _of_year(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    return _months(now, int(match["year"]) * 12, 12)


def _weekend(match: re.Match[str], now: datetime, ahead: bool) -> Period | None:
    """From Saturday to Sunday: the last one that is over, this one, or the latest that has begun."""
    begun = (now.weekday() - 5) % 7  # days since Saturday
    over = begun > 1
    if match["how"] in ("last", "past", "previous"):
        return days_from(now, -begun if over else -begun - 7, 2)
    return None if over and (ahead or match["how"] == "this") else days_from(now, -begun, 2)


def _last_night(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    return _part_of_day(now, -1, "night")


def _tonight(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    return _part_of_day(now, -(now.hour < NIGHT_ENDS), "night")


def _named_part(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    return _part_of_day(now, -(match["day"] == "yesterday"), match["part"])


def _part_of_day(now: datetime, day: int, part: str | None) -> Period:
    start, end = days_from(now, day)
    if part is None:
        return start, end
    first, last = _HOURS[part]
    return start + timedelta(hours=first), start + timedelta(hours=last)


def _weekday(match: re.Match[str], now: datetime, ahead: bool) -> Period | None:
    if match["how"] is None and match["part"] is None:
        return None
    if ahead and match["how"] in ("on", None):
        return None
    days_ago = (now.weekday() - weekday_number(match["weekday"]) - 1) % 7 + 1
    return _part_of_day(now, -days_ago, match["part"])


def count_of(match: re.Match[str]) -> tuple[int, int]:
    """From how many to how many units a phrase names."""
    number = match["count"]
    if number.isdecimal():
        return int(number), int(number)
    words = number.removeprefix("a ").removesuffix(" of")
    count = NUMBERS.index(words) + 1 if words in NUMBERS else 1
    return _FEW.get(words, (count, count))


def _lately(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    """The last so many hours, or days with today."""
    _, most = count_of(match)
    if match["unit"] == "hour":
        return now - timedelta(hours=most), now
    days = round(most * _DAYS[match["unit"]])
    return days_from(now, -days, days + 1)


def _last_hour(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    return now - timedelta(hours=1), now


def _ago(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    least, most = count_of(match)
    return units_ago(now, match["unit"], least, most)


def units_ago(now: datetime, unit: str, least: int, most: int) -> Period:
    """The hours around that time, the days, the weeks (from Monday), the months or the years so many of them ago; below
    zero, to come."""
    if unit == "fortnight":
        return units_ago(now, "week", 2 * least, 2 * most)
    if unit == "hour":
        return now - timedelta(hours=most + 0.5), now - timedelta(hours=least - 0.5)
    if unit == "day":
        return days_from(now, -most, most - least + 1)
    if unit == "week":
        return days_from(now, -now.weekday() - 7 * most, 7 * (most - least + 1))
    if unit == "quarter":
        return _months(now, _this_month(now) // 3 * 3 - 3 * most, 3 * (most - least + 1))
    size = 12 if unit == "year" else 1
    return _months(now, _this_month(now) // size * size - size * most, size * (most - least + 1))


def _named_day(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    return days_from(now, {"today": 0, "yesterday": -1, "the day before yesterday": -2}[match[0]])


def _week_before_last(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    return units_ago(now, "week", 2, 2)


def _this_or_last(match: re.Match[str], now: datetime, ahead: bool) -> Period:
    """The week, month, quarter or year before, or this one until the end of today."""
    ago = int(match["how"] != "this")
    start, end = units_ago(now, match["unit"], ago, ago)
    return start, end if ago else days_from(now, 0)[1]


_ONLY_YEAR: Final = re.compile(r"\b(?:in|during|of|since) (?P<year>(?:19|20)\d{2})\b(?!-)")
# "May", "march" and "fall" are ordinary words too: they must stand beside a number, a year, or a word such as "in".
PERIOD_RULES: Final[tuple[Rule, ...]] = tuple(
    (re.compile(pattern), period_of)
    for pattern, period_of in (
        (rf"(?<![\d-]){ISO_DAY}(?![\d-])", _iso_day),
        (
            rf"\b(?:from|between) (?P<first>{MONTH}) (?:to|and|until|till|through) (?P<month>{MONTH})\b"
            rf"(?! \d{{1,2}}\b){_YEAR}?",
            _months_between,
        ),
        (rf"\b{DAY_MONTH}\b{_YEAR}?", _day_of_month),
        (rf"\b{MONTH_DAY}(?!\d){_YEAR}?", _day_of_month),
        (
            r"\b(?:(?P<part>early|mid|late)(?: in)?|(?P<portion>beginning|start|middle|end) of)[ -]"
            rf"(?P<month>{MONTH})\b{_YEAR}?",
            _part_of_month,
        ),
        (rf"\b(?P<month>{MONTH})\b{_YEAR}", _month),
        (rf"\b(?:in|of|since|during|until|by|(?P<how>this(?! may \w)|last)) (?P<month>{MONTH})\b(?!,? \d)", _month),
        (rf"\bq(?P<quarter>[1-4])\b{_YEAR}", _quarter),
        (r"\b(?:in|of|since|during|for|until|by|(?P<how>this|last)) q(?P<quarter>[1-4])\b", _quarter),
        (rf"\b(?P<season>{_SEASON})\b{_YEAR}", _year_season),
        (rf"\b(?:(?:in|of|since|during|over) the|(?P<how>this|last)) (?P<season>{_SEASON})\b", _year_season),
        (r"\b(?:(?:at|on|over|during|since) the|(?P<how>this|last|past|previous)) (?P<weekend>weekend)\b", _weekend),
        (r"\bthe week before last\b", _week_before_last),
        (r"\bthe day before yesterday\b", _named_day),
        (r"\blast night\b", _last_night),
        (r"\btonight\b", _tonight),
        (r"\b(?P<day>this|yesterday) (?P<part>morning|afternoon|evening|night)\b", _named_part),
        (rf"\b(?:(?P<how>on|last|this past|since) )?(?P<weekday>{WEEKDAY})(?: (?P<part>{_PART}))?\b", _weekday),
        (r"\b(?:last|past) hour\b", _last_hour),
        (rf"\b(?:last|past|previous) {COUNT} (?P<unit>hour|day|week|month|year)s?\b", _lately),
        (rf"\b{COUNT} (?P<unit>hour|day|week|fortnight|month|quarter|year)s? ago\b", _ago),
        (r"\b(?:today|yesterday)\b", _named_day),
        (r"\b(?P<how>this|last|past|previous) (?P<unit>week|month|quarter|year)\b", _this_or_last),
    )
)
