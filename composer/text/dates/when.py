"""Read when something is to happen, as people write it before or after what it is: "in 20 minutes", "tomorrow 3 p.m.",
"on Friday at 14:00", "2026-05-04 09:00", "every weekday at 9:30", in many languages (`tongues`). Pure.

A time that is understood in part is none: its reader asks. The beginning of a text is read up to where the time ends,
else its end.
"""

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from composer.text.dates.clock import FLAGS, SKIP, ClockTime, clock_at
from composer.text.dates.repeats import EVERY_DAY, WORKDAYS, Repeat, clock_note, local_moment
from composer.text.dates.tongues import FRACTION, SLASHED, Told, told_in_english
from composer.text.dates.vocabulary import (
    DAY_MONTH,
    ISO_DAY,
    MONTH,
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
NIGHT_ENDS: Final = 5  # the hour
END_OF_DAY: Final = time(17)
_MAX_STARTS: Final = 40  # places at which a time that ends a text is looked for
_NUMBER: Final = "|".join(NUMBERS)
_SHORT_DAYS: Final = "mon|tues?|wed|thu(?:rs?)?|fri|sat|sun"

_SPAN: Final = re.compile(
    rf"(?:(?P<half>half\s{{1,8}}an?\s{{1,8}}hour|a\s{{1,8}}half\s{{1,8}}hour|half\s{{1,8}}hour)|(?P<quarter>a\s{{1,8}}quarter\s{{1,8}}of\s{{1,8}}an\s{{1,8}}hour)"
    rf"|(?P<count>\d{{1,4}}(?:[.,]5)?|an?|{_NUMBER})(?P<more>\s{{1,8}}and\s{{1,8}}a\s{{1,8}}half)?\s{{0,8}}"
    r"(?P<unit>minutes?|mins?|months?|m|hours?|hrs?|h|days?|d|weeks?|w)(?![a-z])(?P<after>\s{1,8}and\s{1,8}a\s{1,8}half\b)?)",
    FLAGS,
)
_MINUTES: Final = re.compile(r"[0-5]\d(?![\da-z])", FLAGS)  # of "2h30"
_AND: Final = re.compile(r"(?:\s{0,8},)?\s{0,8}(?:and\s{1,8})?", FLAGS)
_IN: Final = re.compile(r"(?:in|after)\s{1,8}", FLAGS)
_FROM_NOW: Final = re.compile(r"\s{1,8}(?:from\s{1,8}now|later)\b", FLAGS)
_EVERY: Final = re.compile(
    rf"(?:every\s{{1,8}}(?:week\s{{1,8}}on\s{{1,8}})?(?P<day>day|weekday|workday|{WEEKDAY})\b|(?P<daily>daily|weekdays|(?P<plural>{WEEKDAY})s)\b"
    rf"|every\s{{1,8}}(?P<part>morning|afternoon|evening|night)\b"
    rf"|(?:(?:on\s{{1,8}})?(?:the\s{{1,8}})?(?P<first>first|\d{{1,2}}(?:st|nd|rd|th)?)\s{{1,8}}(?:day\s{{1,8}})?of\s{{1,8}}(?:every|each|the)\s{{1,8}}month\b"
    rf"|(?:every\s{{1,8}}month|monthly){SKIP}{{1,8}}(?:on\s{{1,8}})?(?:the\s{{1,8}})?(?P<nth>first|\d{{1,2}})(?:st|nd|rd|th|\.)?(?![\w:.]\d)(?:\u00b7(?=\s))?))",
    FLAGS,
)
_OTHER_EVERY: Final = re.compile(r"(?:every|each|hourly|weekly|monthly|yearly)\b", FLAGS)
_AND_DAY: Final = re.compile(
    rf"(?:\s{{0,8}},\s{{0,8}}(?:and\s{{1,8}})?|[\s~]{{1,8}}(?:and\s{{1,8}})?(?:on\s{{1,8}})?)(?P<day>{WEEKDAY})\b",
    FLAGS,
)
_NEAR: Final = re.compile(
    r"(?P<day>today|tonight|tomorrow|(?:the\s{1,8})?day\s{1,8}after\s{1,8}tomorrow|this\s(?=(?:morning|afternoon|evening|night)\b))(?:\b|(?<=\s))",
    FLAGS,
)
_WEEKDAY: Final = re.compile(
    rf"(?:(?:on|this|next)\s{{1,8}})?(?:(?P<day>{WEEKDAY})\b|(?P<short>{_SHORT_DAYS})\b\.?(?=\s{{1,8}}(?:at\b|\d)))",
    FLAGS,
)
_NEXT_WEEK: Final = re.compile(
    rf"(?:next\s{{1,8}}week\b{SKIP}{{0,8}},?{SKIP}{{0,8}}(?:on\s{{1,8}})?(?P<day>{WEEKDAY})\b"
    rf"|(?:on\s{{1,8}})?(?P<day2>{WEEKDAY})\b{SKIP}{{0,8}}(?:of\s{{1,8}})?{SKIP}{{0,8}}next\s{{1,8}}week\b(?!'))",
    FLAGS,
)
_END: Final = re.compile(
    r"(?:(?:at|by)\s{1,8})?(?:the\s{1,8})?(?:end\s{1,8}of\s{1,8}(?:the\s{1,8}|this\s{1,8})?(?P<of>day|week|month|year)|(?P<eod>eod))\b",
    FLAGS,
)
_ISO: Final = re.compile(rf"(?:on\s{{1,8}})?{ISO_DAY}(?:T(?=\d)|(?![\w-]))", FLAGS)
_NAMED: Final = re.compile(
    r"(?:on\s{1,8})?(?:the\s{1,8})?"
    rf"(?:{DAY_MONTH}|{MONTH_DAY})(?!\w)"
    r"(?:,?\s{1,8}(?P<year>\d{4})(?!\w))?",
    FLAGS,
)
_NTH: Final = re.compile(r"on\s{1,8}(?:the\s{1,8})?(?P<nth>\d{1,2})(?:st|nd|rd|th)\b(?!\s{1,8}of\b)", FLAGS)
_PAST_DAY: Final = re.compile(
    rf"(?:on\s{{1,8}})?(?P<day>today|yesterday|(?:this|last)\s{{1,8}}week|(?:last\s{{1,8}})?{WEEKDAY}|(?:the\s{{1,8}})?day\s{{1,8}}before\s{{1,8}}yesterday)\b",
    FLAGS,
)
_OVER_DAY: Final = re.compile(r"(?:yesterday|the\s{1,8}day\s{1,8}before|last\s{1,8}(?:night|week|month|year))\b", FLAGS)
_LONG_SPAN: Final = re.compile(
    r"(?:in\s{1,8})?(?P<count>\d{1,12})\s{0,8}(?P<unit>minute|hour|day|week|month|year)s?(?![a-z])", FLAGS
)
_LONG_UNITS: Final = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1, "week": 7, "month": 30, "year": 365}  # in days
_LAST: Final = re.compile(r"(?:(?:for\s{1,8})?the\s{1,8}last|for)\s{1,8}", FLAGS)
_SPAN_OVER: Final = re.compile(rf"(?:{_SPAN.pattern})\s{{1,8}}ago\b", FLAGS)
_AGO: Final = re.compile(r"(?:\s{1,8}ago)?\s{0,8}\Z", FLAGS)
_BETWEEN: Final = re.compile(rf"{SKIP}{{0,8}},?{SKIP}{{0,8}}")
_BEFORE: Final = re.compile(rf"{SKIP}{{0,8}}")
_REST: Final = re.compile(r"\s{0,8}[:,\u2013-]?\s{0,8}(?:to\s{1,8}|that\s{1,8})?", FLAGS)
_PARTICLE: Final = re.compile(r"(?:\u306b\u306f?|\uc5d0\ub294?)\s{0,4}")  # "at", after its hour
_TO: Final = re.compile(r"(?:to|that)\s{1,8}", FLAGS)
_DONE: Final = re.compile(
    r"[\s~.!?,\u3002\uff01]{0,8}(?:pl(?:ea)?[sz]e?[\s~.!?\u3002\uff01]{0,8})?\Z",
    FLAGS,
)
_START: Final = re.compile(r"(?<!\S)\S|(?<=\u00b7)[^\u00b7\s]")
# A time in what is left over: at its beginning, and anywhere.
_TIME_LEFT: Final = (
    r"(?:\d{1,2}[:h]\d\d|\d{1,2}\s?[ap]\.?\s?m\b|noon\b|midday\b|midnight\b|(?:half|quarter)\s{1,4}(?:past|to)\b"
    r"|o'?\s?clock\b|(?:in\s{1,4}the\s{1,4})(?:morning|afternoon|evening)\b|at\s{1,4}night\b|at\s{1,4}\d{1,2}\b)"
)
_DAY_LEFT: Final = (
    rf"(?:today|tonight|tomorrow|(?:on\s{{1,4}})?{WEEKDAY}|next\s{{1,4}}(?:week|month|year)(?!')"
    rf"|every\s{{1,4}}(?:other|day|week|month|{WEEKDAY})|in\s{{1,4}}(?:\d{{1,3}}|{_NUMBER})\s{{1,4}}(?:minute|hour|day|week|month)s?)\b"
)
_LEFT_FIRST: Final = re.compile(
    rf"[\s~,.;:\u2013-]{{0,8}}(?:(?:and|or|until|till|to|before|after|around|about|from|past|by|between|sometime|o)\s{{1,4}}|\u2013|-)?(?:the\s{{1,4}})?(?:{_TIME_LEFT}|{_DAY_LEFT})",
    FLAGS,
)
_LEFT_LATER: Final = re.compile(rf"[\s~,]{{0,8}}\u00b7{{1,6}}[\s~]{{1,4}}(?:on\s)?(?:{_TIME_LEFT}|{_DAY_LEFT})", FLAGS)
# The same just before a time that ends a text: "on the 25th at 3pm", "yesterday at 5", "two weeks from Monday".
_BEFORE_CHARS: Final = 60
_LEFT_BEFORE: Final = re.compile(
    rf"(?:(?<!\w)(?:{_DAY_LEFT}|yesterday\b|(?:last|before|after|until|till|or|not|from|past|eod|cob|every|each|other)\b"
    r"|(?:bi-?weekly|fortnightly|hourly|weekly|monthly|yearly|quarterly|close\s{1,4}of\s{1,4}business|weekends?)\b"
    r"|\d{1,2}(?:st|nd|rd|th)\b|(?:christmas|new\s{1,4}year'?s?|easter)(?:\s{1,4}(?:eve|day))?\b"
    rf"|\d{{1,2}}\s{{1,4}}{MONTH}(?:,?\s\d{{4}})?|{MONTH}\s{{1,4}}\d{{1,2}}(?:,?\s\d{{4}})?|{_TIME_LEFT})|[\u2013-])"
    r"[\s~,]{0,8}(?:\u00b7{1,6}[\s~,]{0,4})?\Z",
    FLAGS,
)
_LEFT_VAGUE: Final = re.compile(
    r"[\s~,]{0,8}(?:sometime|around|about\s{1,4}\d|before\s|after\s|until\s|till\s|or\s|eod\b|cob\b|half\s|quarter\s"
    r"|(?:at|by|between|from)\s{1,4}(?:\d|half\b|quarter\b)|\d{1,2}[:.]\d|(?:[01]\d|2[0-3])[0-5]\d(?!\d))",
    FLAGS,
)
# A number joined to an hour ("9-10", "9 or 10"), and a word of another language that goes on with one ("et demie").
_LEFT_JOINED: Final = re.compile(r"[:.,/+h]?\d|\s{0,4}[\u2013-]\s{0,4}\d|\s{1,4}or\s{1,4}\d", FLAGS)
_LEFT_OF_HOUR: Final = re.compile(
    rf"[\s~,]{{0,8}}(?:\u00b7{{1,6}}[\s~]{{1,4}})?(?:{FRACTION}|(?:half|quarter)\s(?:past|to)\s\d)", FLAGS
)
_LEFT_ANYWHERE: Final = re.compile(rf"(?<![\w\d]){_TIME_LEFT}", FLAGS)
# A zone after an hour. The usual abbreviations are several zones each: IST is one of India, of Ireland and of Israel.
_ZONE: Final = re.compile(
    r"(?P<clock>\d|(?i:[ap]m|[ap]\.m\.|clock|noon|midnight|uhr|\dh))\s{1,3}\(?(?P<zone>(?:UTC|GMT)(?:[+-]\d{1,2}(?::?\d\d)?)?"
    r"|(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)/[A-Za-z_]{2,30}(?:/[A-Za-z_]{2,30})?"
    r"|[A-Z][a-z]{2,20}(?:\s[A-Z][a-z]{2,20})?\stime|[ECMP]T|[ECMP][SD]T|CES?T|EES?T|WES?T|BST|IST|MSK|JST|AE[SD]T)\)?(?![\w/])"
)
_HOURS_OFF: Final = re.compile(r"(?:UTC|GMT)([+-])(\d{1,2})(?::?00)?")
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@dataclass(frozen=True, slots=True)
class When:
    """A moment in UTC, which may be over, and how it repeats (None: once). `note`: what its reader assumed."""

    at: datetime
    repeat: Repeat | None = None
    note: str = ""


class Unreadable(StrEnum):
    """Why a text that has a time can't be read as one to come."""

    ABSENT = "the calendar or the clock has no such day or hour"
    OVER = "it has passed"
    FAR = "it is too far away"
    PART = "only a part of it is understood"
    TWO_DAYS = "it may be two days"
    REPEAT = "it repeats in a way that is not kept"
    ZONE = "it is not known for sure which zone that is"


class _UnreadError(Exception):
    """`why` a time is not read."""

    def __init__(self, why: Unreadable) -> None:
        super().__init__(str(why))
        self.why = why


def read_when(text: str, now: datetime, zone: tzinfo) -> tuple[When, str] | None:
    """The time with which a text begins, else with which it ends, and the rest of the text; None if it has none there,
    or only one that `why_unread` explains. Days and hours are those of `zone`; a weekday and an hour are the next ones
    after `now`."""
    try:
        return _read(text, now, zone)
    except _UnreadError:
        return None


def why_unread(text: str, now: datetime, zone: tzinfo, ahead: timedelta) -> Unreadable | None:
    """Why `read_when` reads no time of a text; None when none seems meant. `ahead`: how far one may be."""
    head = text.strip()[:MAX_WHEN_CHARS]
    span = _LONG_SPAN.match(head)
    if span is not None and int(span["count"]) * _LONG_UNITS[span["unit"].lower()] > ahead / timedelta(days=1):
        return Unreadable.FAR
    try:
        found = _read(text, now, zone)
    except _UnreadError as error:
        return error.why
    if found is None and any(
        _OVER_DAY.match(t.text.lstrip()) or _SPAN_OVER.match(t.text.lstrip()) for t in told_in_english(head, ahead=True)
    ):
        return Unreadable.OVER
    return None


def _read(text: str, now: datetime, zone: tzinfo) -> tuple[When, str] | None:
    """In the zone that stands after the hour, if one does. Raises _UnreadError for a time that can't be kept as it
    stands."""
    text = text.strip()
    named = _ZONE.search(text[:MAX_WHEN_CHARS])
    if named is None:
        return _read_in(text, now, zone)
    place, other = named.end("clock"), _zone_of(named["zone"])
    without = text[:place] + text[named.end() :]
    found = _read_in(without, now, other or zone)
    if found is None:
        return None
    when, what = found
    first = without.endswith(what) and place <= len(without) - len(what)
    if not first and not (without.startswith(what) and place > len(what)):
        return _read_in(text, now, zone)  # the zone is of another hour, which is part of the text
    if other is None:
        raise _UnreadError(Unreadable.ZONE)
    return replace(when, repeat=when.repeat and replace(when.repeat, zone=other.key)), what


def _zone_of(name: str) -> ZoneInfo | None:
    try:
        if (hours := _HOURS_OFF.fullmatch(name)) is not None:  # whose names are of the other sign
            return ZoneInfo(f"Etc/GMT{'-' if hours[1] == '+' else '+'}{int(hours[2])}")
        return ZoneInfo(name) if "/" in name or name in ("UTC", "GMT") else None
    except (ValueError, OSError, KeyError):
        return None


def _read_in(text: str, now: datetime, zone: tzinfo) -> tuple[When, str] | None:
    guesses = list(told_in_english(text[:MAX_WHEN_CHARS], ahead=True))
    for told in guesses:
        start = _BEFORE.match(told.text)
        found = _found(told.text, start.end() if start else 0, now, zone)
        if found is not None:
            return _with_rest(text, told, found)
    for told in guesses if len(text) <= MAX_WHEN_CHARS else ():
        for place in list(_START.finditer(told.text))[1:_MAX_STARTS]:
            found = _found(told.text, place.start(), now, zone)
            if found is not None and _DONE.match(told.text, found[1]):
                before = told.text[: place.start()]
                if _OVER_DAY.fullmatch(before.strip(" ~")):
                    raise _UnreadError(Unreadable.OVER)
                if _LEFT_BEFORE.search(before[-_BEFORE_CHARS:]):
                    raise _UnreadError(Unreadable.PART)
                what = text[: told.origin(place.start())].rstrip(" ,:;\u2013-")
                return found[0], _TO.sub("", what, count=1) if _TO.match(what) else what
    return None


def _found(text: str, start: int, now: datetime, zone: tzinfo) -> "_Found | None":
    for read in (_repeated, _after, _dated):
        try:
            found = read(text, start, now.astimezone(zone), zone)
        except OverflowError:
            raise _UnreadError(Unreadable.FAR) from None
        except ValueError:  # the calendar or the clock has no such day or hour
            raise _UnreadError(Unreadable.ABSENT) from None
        if found is not None:
            return found
    return None


def _with_rest(text: str, told: Told, found: "_Found") -> tuple[When, str]:
    """What was read with the rest of the text, unless a time is left over there."""
    when, end, guessed = found
    left = told.text[end:]
    if (
        _LEFT_FIRST.match(left)
        or _LEFT_JOINED.match(left)
        or _LEFT_OF_HOUR.match(left)
        or (guessed and (_LEFT_LATER.match(left) or _LEFT_ANYWHERE.search(left) or _LEFT_VAGUE.match(left)))
    ):
        raise _UnreadError(Unreadable.PART)
    rest = _REST.match(told.text, end)
    what = text[told.origin(rest.end() if rest else end) :].strip()
    particle = _PARTICLE.match(what)
    return when, what[particle.end() :] if particle and told.foreign else what


_Found = tuple[When, int, bool]  # with where it ends, and whether its hour was assumed


def _repeated(text: str, start: int, now: datetime, zone: tzinfo) -> _Found | None:
    before = clock_at(text, start, after_day=False)
    between = _BETWEEN.match(text, before.end) if before and not before.guessed else None
    match = _EVERY.match(text, between.end() if between else start)
    if match is None:
        if _OTHER_EVERY.match(text, between.end() if between else start):
            raise _UnreadError(Unreadable.REPEAT)
        return None
    nth = match["first"] or match["nth"]
    end, days = match.end(), frozenset[int]()
    if not nth:
        word = (match["day"] or match["plural"] or match["daily"] or "day").lower()
        days = {
            "day": EVERY_DAY,
            "daily": EVERY_DAY,
            "weekday": WORKDAYS,
            "workday": WORKDAYS,
            "weekdays": WORKDAYS,
        }.get(word) or frozenset({weekday_number(word)})
        while (more := _AND_DAY.match(text, end)) is not None:
            days, end = days | {weekday_number(more["day"])}, more.end()
    clock = before if before and between else None
    if clock is None and match["part"]:
        end = match.start("part")
    if clock is None:
        clock, end = _time_after(text, end)
    month_day = 0 if not nth else 1 if nth.lower() == "first" else int(nth.rstrip("stndrh"))
    repeat = Repeat(days, clock.at if clock else DEFAULT_TIME, month_day)
    return When(repeat.after(now, zone), repeat, _note(clock)), end, clock is None or clock.guessed


def _after(text: str, start: int, now: datetime, zone: tzinfo) -> _Found | None:
    """ "in 2 days at 9:00": hours and minutes are exact, days, weeks and months keep the time of the day."""
    match = _IN.match(text, start)
    exact, days, months, end = timedelta(), timedelta(), 0, match.end() if match else start
    span = _SPAN.match(text, end)
    while span is not None:
        length, unit = _length(span), (span["unit"] or "h").lower()
        if unit.startswith("mo"):
            months += int(span["count"]) if span["count"].isdecimal() else round(_count(span["count"]))
        elif unit[0] in "dw":
            days += length
        else:
            exact += length
        end = span.end()
        if unit == "h" and (minutes := _MINUTES.match(text, end)) is not None:
            exact, end = exact + timedelta(minutes=int(minutes[0])), minutes.end()
        joined = _AND.match(text, end)
        span = _SPAN.match(text, joined.end() if joined else end)
    later = None if match else _FROM_NOW.match(text, end)
    if (match is None and later is None) or not (exact or days or months):
        return None
    end = later.end() if later else end
    clock, end = _time_after(text, end, bare=False) if (days or months) and not exact else (None, end)
    if days or months:
        moved = _months_later(now.date(), months) + days
        at = clock.at if clock else now.time()
        return When(local_moment(moved, at, zone) + exact, note=_note(clock, moved, zone) if clock else ""), end, False
    return When(now.astimezone(UTC) + exact), end, False


def _months_later(day: date, months: int) -> date:
    count = day.year * 12 + day.month - 1 + months
    year, month = count // 12, count % 12 + 1
    return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


def _dated(text: str, start: int, now: datetime, zone: tzinfo) -> _Found | None:
    """A day, with or without a time before or after it; or a time alone."""
    before = clock_at(text, start, after_day=False)
    clock = None if before is None or before.guessed else before
    between = _BETWEEN.match(text, clock.end) if clock else None
    day = _day(text, between.end() if between else start)
    if day is None:
        if before is None or (text[start : before.end].isdecimal()):
            return None
        moment = local_moment(now.date(), before.at, zone)
        chosen = now.date() if moment > now else now.date() + timedelta(days=1)
        return When(local_moment(chosen, before.at, zone), note=_note(before, chosen, zone)), before.end, before.guessed
    days, default, end = day
    if clock is None:
        clock, end = _time_after(text, end)
    at = clock.at if clock else default
    if at is None:
        return None  # "today" alone says no time
    moment = days(now, at, zone)
    note = _note(clock, moment.astimezone(zone).date(), zone, at)
    return When(moment, note=note), end, clock is None or clock.guessed


def _note(clock: ClockTime | None, day: date | None = None, zone: tzinfo | None = None, at: time | None = None) -> str:
    """What is to be said of a time: that its hour was assumed, and what the clocks do on that day."""
    if clock is None or clock.guessed:
        return "You named no hour: to change it, cancel this and say the hour."
    changed = "" if day is None or zone is None else clock_note(day, at or clock.at, zone)
    return " ".join(filter(None, (clock.note, changed)))


_Resolve = Callable[[datetime, time, tzinfo], datetime]


def _day(text: str, start: int) -> tuple[_Resolve, time | None, int] | None:
    """The day that stands at a place: what makes a moment of it, the time that it has by default, and where it ends."""
    if (match := _NEAR.match(text, start)) is not None:
        word = " ".join(match["day"].lower().split())
        default = None if word in ("today", "this") else TONIGHT if word == "tonight" else DEFAULT_TIME
        later = timedelta(days=2 if "after" in word else word == "tomorrow")

        def near(now: datetime, at: time, zone: tzinfo) -> datetime:
            if word == "tonight" and at.hour == 12:
                at = at.replace(hour=0)
            night = timedelta(days=word == "tonight" and at.hour < NIGHT_ENDS <= now.hour)
            return local_moment(now.date() + later + night, _tonight(word, at), zone)

        return near, default, match.end()
    if (match := _NEXT_WEEK.match(text, start)) is not None:
        number = weekday_number(match["day"] or match["day2"])
        return (
            (lambda now, at, zone: local_moment(now.date() + timedelta(7 - now.weekday() + number), at, zone)),
            DEFAULT_TIME,
            match.end(),
        )
    if (match := _WEEKDAY.match(text, start)) is not None:
        name = match["day"] or next(day for day in WEEKDAYS if day.startswith(match["short"].lower()[:3]))
        weekday = frozenset({weekday_number(name)})
        return (lambda now, at, zone: Repeat(weekday, at).after(now, zone)), DEFAULT_TIME, match.end()
    if (match := _END.match(text, start)) is not None:
        of = (match["of"] or "day").lower()
        return (lambda now, at, zone: local_moment(_last_day(now.date(), of), at, zone)), END_OF_DAY, match.end()
    if (match := _NTH.match(text, start)) is not None:
        nth = int(match["nth"])
        return (lambda now, at, zone: Repeat(frozenset(), at, nth).after(now, zone)), DEFAULT_TIME, match.end()
    if (match := _ISO.match(text, start)) is not None:
        day = date(*iso_day(match))
        return (lambda now, at, zone: local_moment(day, at, zone)), DEFAULT_TIME, match.end()
    if (match := _NAMED.match(text, start)) is not None:
        (month, number), year = month_and_day(match), match["year"]
        return (lambda now, at, zone: _in_year(year, month, number, now, at, zone)), DEFAULT_TIME, match.end()
    if (slashed := SLASHED.match(text, start)) is not None and max(int(slashed[1]), int(slashed[2])) <= 12:
        raise _UnreadError(Unreadable.TWO_DAYS)
    return None


def _tonight(word: str, at: time) -> time:
    """ "tonight at 8" is in the evening."""
    return at.replace(hour=at.hour + 12) if word == "tonight" and 5 <= at.hour < 12 else at


def _last_day(today: date, of: str) -> date:
    """The last day of this week (its Friday), month or year, or today."""
    if of == "week":
        return today + timedelta(days=(4 - today.weekday()) % 7)
    if of == "month":
        return today.replace(day=calendar.monthrange(today.year, today.month)[1])
    return date(today.year, 12, 31) if of == "year" else today


def _in_year(year: str | None, month: int, day: int, now: datetime, at: time, zone: tzinfo) -> datetime:
    """A day of a month, of the year that is named, else the next one that has it."""
    if year:
        return local_moment(date(int(year), month, day), at, zone)
    years = [now.year + later for later in range(9) if day <= calendar.monthrange(now.year + later, month)[1]]
    moments = (local_moment(date(each, month, day), at, zone) for each in years)
    found = next((moment for moment in moments if moment > now), None)
    if found is None:
        raise ValueError("no year has that day")
    return found


def _time_after(text: str, end: int, *, bare: bool = True) -> tuple[ClockTime | None, int]:
    """The time that follows, and where it ends; without one, None and the same place. `bare`: a number alone is one."""
    between = _BETWEEN.match(text, end)
    clock = clock_at(text, between.end() if between else end, after_day=bare)
    return (None, end) if clock is None else (clock, clock.end)


def _count(words: str) -> float:
    words = words.lower()
    if words in NUMBERS:
        return NUMBERS.index(words) + 1.0
    return 1.0 if words in ("a", "an") else float(words.replace(",", "."))


def _length(span: re.Match[str]) -> timedelta:
    """How long a match of _SPAN is."""
    if span["half"] or span["quarter"]:
        return timedelta(minutes=30 if span["half"] else 15)
    number = _count(span["count"]) + (0.5 if span["more"] or span["after"] else 0)
    return timedelta() if span["unit"].lower().startswith("mo") else number * _UNITS[span["unit"][0].lower()]


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
    clock = clock_at(text, 0, after_day=False)
    at, start = (None, 0) if clock is None or clock.guessed else (clock.at, clock.end)
    between = _BETWEEN.match(text, start)
    day = _past_day(text, between.end() if between and at else start, now)
    if day is None:
        if at is None or text[start:].strip():
            return None
        moment = local_moment(now.date(), at, zone)
        return moment if moment <= now else local_moment(now.date() - timedelta(days=1), at, zone)
    date_, end = day
    if at is None:
        later, end = _time_after(text, end)
        at = later.at if later else None
    return None if text[end:].strip() else local_moment(date_, at or time(0), zone)


def _past_day(text: str, start: int, now: datetime) -> tuple[date, int] | None:
    """The day that stands at a place, the latest one that has begun, and where it ends."""
    today = now.date()
    if (match := _PAST_DAY.match(text, start)) is not None:
        word = (
            " ".join(match["day"].lower().split()).removeprefix("last ")
            if "week" not in match["day"].lower()
            else " ".join(match["day"].lower().split())
        )
        if word in WEEKDAYS:
            return today - timedelta(days=(today.weekday() - weekday_number(word)) % len(WEEKDAYS)), match.end()
        weeks = {"this week": 0, "last week": 1}.get(word)
        back = (
            2
            if "before" in word
            else int(word == "yesterday")
            if weeks is None
            else today.weekday() + len(WEEKDAYS) * weeks
        )
        return today - timedelta(days=back), match.end()
    if (match := _ISO.match(text, start)) is not None:
        return date(*iso_day(match)), match.end()
    if (match := _NAMED.match(text, start)) is not None:
        (month, number), year = month_and_day(match), match["year"]
        found = date(int(year) if year else today.year, month, number)
        return (found if year or found <= today else date(today.year - 1, month, number)), match.end()
    return None
