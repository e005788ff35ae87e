"""Read when something is to happen, as people write it before what it is: "in 20 minutes", "tomorrow 9:00",
"on Friday at 14:00", "2026-05-04 09:00", "every weekday at 9:30". Pure.

Written for reminders: a small grammar that refuses what it does not know is safer here than a library that guesses, and
reads the beginning of a text up to where the time ends.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Final

from composer.text.dates.repeats import EVERY_DAY, WORKDAYS, Repeat, local_moment
from composer.text.dates.vocabulary import (
    DAY_MONTH,
    ISO_DAY,
    MONTH_DAY,
    NUMBERS,
    WEEKDAY,
    WEEKDAYS,
    iso_day,
    month_and_day,
    weekday_number,
)

MAX_WHEN_CHARS: Final = 200  # of a text, in which its time is read
DEFAULT_TIME: Final = time(9)  # of a day that is named alone
TONIGHT: Final = time(20)
_FLAGS: Final = re.IGNORECASE | re.ASCII

_TIME: Final = re.compile(
    r"(?:at\s{1,8}(?P<at>\d{1,2})(?!\d)(?::(?P<at_minute>\d\d))?|(?P<hour>\d{1,2}):(?P<minute>\d\d)"
    r"|(?P<bare>\d{1,2})(?=\s?[ap]m\b))(?:\s?(?P<half>[ap])m)?(?![\w:])",
    _FLAGS,
)
_SPAN: Final = re.compile(
    rf"(?P<count>\d{{1,4}}|an?|{'|'.join(NUMBERS)}|half\s{{1,8}}an)\s{{0,8}}"
    r"(?P<unit>minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)(?![a-z])",
    _FLAGS,
)
_AND: Final = re.compile(r"(?:\s{0,8},)?\s{0,8}(?:and\s{1,8})?", _FLAGS)
_IN: Final = re.compile(r"in\s{1,8}", _FLAGS)
_EVERY: Final = re.compile(rf"every\s{{1,8}}(?P<day>day|weekday|{WEEKDAY})\b", _FLAGS)
_AND_DAY: Final = re.compile(
    rf"(?:\s{{0,8}},\s{{0,8}}(?:and\s{{1,8}})?|\s{{1,8}}and\s{{1,8}})(?P<day>{WEEKDAY})\b", _FLAGS
)
_NEAR: Final = re.compile(r"(?P<day>today|tonight|tomorrow)\b", _FLAGS)
_WEEKDAY: Final = re.compile(rf"(?:(?:on|this|next)\s{{1,8}})?(?P<day>{WEEKDAY})\b", _FLAGS)
_ISO: Final = re.compile(rf"(?:on\s{{1,8}})?{ISO_DAY}(?:T(?=\d)|(?![\w-]))", _FLAGS)
_NAMED: Final = re.compile(
    r"(?:on\s{1,8})?(?:the\s{1,8})?"
    rf"(?:{DAY_MONTH}|{MONTH_DAY})(?!\w)"
    r"(?:,?\s{1,8}(?P<year>\d{4})(?!\w))?",
    _FLAGS,
)
_PAST_DAY: Final = re.compile(
    rf"(?:on\s{{1,8}})?(?P<day>today|yesterday|(?:this|last)\s{{1,8}}week|{WEEKDAY})\b", _FLAGS
)
_OVER_DAY: Final = re.compile(r"(?:yesterday|last\s{1,8}(?:night|week|month|year))\b", _FLAGS)
_LONG_SPAN: Final = re.compile(
    r"(?:in\s{1,8})?(?P<count>\d{1,12})\s{0,8}(?P<unit>minute|hour|day|week|month|year)s?(?![a-z])", _FLAGS
)
_LONG_UNITS: Final = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1, "week": 7, "month": 30, "year": 365}  # in days
_LAST: Final = re.compile(r"(?:(?:for\s{1,8})?the\s{1,8}last|for)\s{1,8}", _FLAGS)
_SPAN_OVER: Final = re.compile(rf"(?:{_SPAN.pattern})\s{{1,8}}ago\b", _FLAGS)
_AGO: Final = re.compile(r"(?:\s{1,8}ago)?\s{0,8}\Z", _FLAGS)
_BETWEEN: Final = re.compile(r"\s{0,8},?\s{0,8}")
_REST: Final = re.compile(r"\s{0,8}[:,–-]?\s{0,8}(?:to\s{1,8}|that\s{1,8})?", _FLAGS)  # noqa: RUF001
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@dataclass(frozen=True, slots=True)
class When:
    """A moment in UTC, which may be over, and how it repeats (None: once)."""

    at: datetime
    repeat: Repeat | None = None


def read_when(text: str, now: datetime, zone: tzinfo) -> tuple[When, str] | None:
    """The time with which a text begins, and the rest of the text; None if it begins with none, or with a day or an
    hour that does not exist. Days and hours are those of `zone`; a weekday and an hour are the next ones after `now`.
    """
    text = text.strip()
    head = text[:MAX_WHEN_CHARS]
    for read in (_repeated, _after, _dated):
        try:
            found = read(head, now.astimezone(zone), zone)
        except (ValueError, OverflowError):  # the calendar or the clock has no such day or hour
            return None
        if found is not None:
            when, end = found
            rest = _REST.match(text, end)
            return when, text[rest.end() if rest else end :].strip()
    return None


class Unreadable(StrEnum):
    """Why a text that begins as a time does can't be read as one to come."""

    ABSENT = "the calendar or the clock has no such day or hour"
    OVER = "it has passed"
    FAR = "it is too far away"


def why_unread(text: str, now: datetime, zone: tzinfo, ahead: timedelta) -> Unreadable | None:
    """Why `read_when` reads no time at the beginning of a text; None when none seems meant. `ahead`: how far one may
    be."""
    head = text.strip()[:MAX_WHEN_CHARS]
    span = _LONG_SPAN.match(head)
    if span is not None and int(span["count"]) * _LONG_UNITS[span["unit"].lower()] > ahead / timedelta(days=1):
        return Unreadable.FAR
    if _OVER_DAY.match(head) or _SPAN_OVER.match(head):
        return Unreadable.OVER
    for read in (_repeated, _after, _dated):
        try:
            read(head, now.astimezone(zone), zone)
        except OverflowError:
            return Unreadable.FAR
        except ValueError:
            return Unreadable.ABSENT
    return None


_Found = tuple[When, int]  # with where it ends


def _repeated(text: str, now: datetime, zone: tzinfo) -> _Found | None:
    match = _EVERY.match(text)
    if match is None:
        return None
    days = {"day": EVERY_DAY, "weekday": WORKDAYS}.get(match["day"].lower()) or {weekday_number(match["day"])}
    end = match.end()
    while (more := _AND_DAY.match(text, end)) is not None:
        days, end = {*days, weekday_number(more["day"])}, more.end()
    at, end = _time_after(text, end)
    repeat = Repeat(frozenset(days), at or DEFAULT_TIME)
    return When(repeat.after(now, zone), repeat), end


def _after(text: str, now: datetime, zone: tzinfo) -> _Found | None:
    """ "in 2 days at 9:00": hours and minutes are exact, days and weeks keep the time of the day."""
    match = _IN.match(text)
    if match is None:
        return None
    exact, days, end = timedelta(), timedelta(), match.end()
    span = _SPAN.match(text, end)
    while span is not None:
        length, unit = _length(span), span["unit"][0].lower()
        exact, days = (exact, days + length) if unit in "dw" else (exact + length, days)
        end = span.end()
        joined = _AND.match(text, end)
        span = _SPAN.match(text, joined.end() if joined else end)
    if not exact and not days:
        return None
    at, end = _time_after(text, end) if days and not exact else (None, end)
    if days:
        moved = now.date() + days
        return When(local_moment(moved, at or now.time(), zone) + exact), end
    return When(now.astimezone(UTC) + exact), end


def _dated(text: str, now: datetime, zone: tzinfo) -> _Found | None:
    """A day, with or without a time before or after it; or a time alone."""
    at, start = _time_at(text, 0)
    between = _BETWEEN.match(text, start)
    day = _day(text, between.end() if between and at else start)
    if day is None:
        if at is None:
            return None
        moment = local_moment(now.date(), at, zone)
        return When(moment if moment > now else local_moment(now.date() + timedelta(days=1), at, zone)), start
    days, default, end = day
    if at is None:
        at, end = _time_after(text, end)
    at = at or default
    if at is None:
        return None  # "today" alone says no time
    return When(days(now, at, zone)), end


_Resolve = Callable[[datetime, time, tzinfo], datetime]


def _day(text: str, start: int) -> tuple[_Resolve, time | None, int] | None:
    """The day that stands at a place: what makes a moment of it, the time that it has by default, and where it ends."""
    if (match := _NEAR.match(text, start)) is not None:
        word = match["day"].lower()
        default = {"tonight": TONIGHT, "tomorrow": DEFAULT_TIME}.get(word)
        later = timedelta(days=word == "tomorrow")
        return (lambda now, at, zone: local_moment(now.date() + later, at, zone)), default, match.end()
    if (match := _WEEKDAY.match(text, start)) is not None:
        weekday = frozenset({weekday_number(match["day"])})
        return (lambda now, at, zone: Repeat(weekday, at).after(now, zone)), DEFAULT_TIME, match.end()
    if (match := _ISO.match(text, start)) is not None:
        day = date(*iso_day(match))
        return (lambda now, at, zone: local_moment(day, at, zone)), DEFAULT_TIME, match.end()
    if (match := _NAMED.match(text, start)) is not None:
        (month, number), year = month_and_day(match), match["year"]
        return (lambda now, at, zone: _in_year(year, month, number, now, at, zone)), DEFAULT_TIME, match.end()
    return None


def _in_year(year: str | None, month: int, day: int, now: datetime, at: time, zone: tzinfo) -> datetime:
    """A day of a month, of the year that is named, else the next one."""
    found = local_moment(date(int(year) if year else now.year, month, day), at, zone)
    return found if year or found > now else local_moment(date(now.year + 1, month, day), at, zone)


def _time_after(text: str, end: int) -> tuple[time | None, int]:
    """The time that follows, and where it ends; without one, None and the same place."""
    between = _BETWEEN.match(text, end)
    at, after = _time_at(text, between.end() if between else end)
    return (None, end) if at is None else (at, after)


def _time_at(text: str, start: int) -> tuple[time | None, int]:
    """Raises ValueError for an hour that does not exist."""
    match = _TIME.match(text, start)
    if match is None:
        return None, start
    hour, minute = int(match["at"] or match["hour"] or match["bare"]), int(match["at_minute"] or match["minute"] or 0)
    if match["half"]:
        if not 1 <= hour <= 12:
            raise ValueError("an hour of the forenoon or the afternoon is from 1 to 12")
        hour = hour % 12 + (12 if match["half"].lower() == "p" else 0)
    return time(hour, minute), match.end()


def _length(span: re.Match[str]) -> timedelta:
    """How long a match of _SPAN is."""
    count = span["count"].lower()
    if count.startswith("half"):
        number = 0.5
    elif count in ("a", "an"):
        number = 1.0
    else:
        number = float(NUMBERS.index(count) + 1 if count in NUMBERS else count)
    return number * _UNITS[span["unit"][0].lower()]


def read_since(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    """The moment up to `now` that a text names, in UTC: "2 hours", "yesterday", "on Monday at 14:00", "9:30",
    "2026-05-04"; a day alone is its beginning, and a weekday or an hour the latest one. None for any other text, and
    for what is still to come."""
    text = text.strip().removeprefix("since ").strip()[:MAX_WHEN_CHARS]
    try:
        found = _span_ago(text, now) or _past_moment(text, now.astimezone(zone), zone)
    except (ValueError, OverflowError):  # the calendar or the clock has no such day or hour
        return None
    return found if found is not None and found <= now else None


def _span_ago(text: str, now: datetime) -> datetime | None:
    last = _LAST.match(text)
    span = _SPAN.match(text, last.end() if last else 0)
    if span is None or _AGO.match(text, span.end()) is None:
        return None
    return now.astimezone(UTC) - _length(span)


def _past_moment(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    at, start = _time_at(text, 0)
    between = _BETWEEN.match(text, start)
    day = _past_day(text, between.end() if between and at else start, now)
    if day is None:
        if at is None or text[start:].strip():
            return None
        moment = local_moment(now.date(), at, zone)
        return moment if moment <= now else local_moment(now.date() - timedelta(days=1), at, zone)
    date_, end = day
    if at is None:
        at, end = _time_after(text, end)
    return None if text[end:].strip() else local_moment(date_, at or time(0), zone)


def _past_day(text: str, start: int, now: datetime) -> tuple[date, int] | None:
    """The day that stands at a place, the latest one that has begun, and where it ends."""
    today = now.date()
    if (match := _PAST_DAY.match(text, start)) is not None:
        word = " ".join(match["day"].lower().split())
        if word in WEEKDAYS:
            return today - timedelta(days=(today.weekday() - weekday_number(word)) % len(WEEKDAYS)), match.end()
        weeks = {"this week": 0, "last week": 1}.get(word)
        back = int(word == "yesterday") if weeks is None else today.weekday() + len(WEEKDAYS) * weeks
        return today - timedelta(days=back), match.end()
    if (match := _ISO.match(text, start)) is not None:
        return date(*iso_day(match)), match.end()
    if (match := _NAMED.match(text, start)) is not None:
        (month, number), year = month_and_day(match), match["year"]
        found = date(int(year) if year else today.year, month, number)
        return (found if year or found <= today else date(today.year - 1, month, number)), match.end()
    return None
