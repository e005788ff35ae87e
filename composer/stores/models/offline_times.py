"""The times that a question names, and which lines of a prompt are of them: for answers without a model. Pure."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from composer.ports.models import ChatMessage
from composer.text.asked import Asked
from composer.text.dates.periods import asked_periods
from composer.text.dates.vocabulary import Period

SUMMARY_HEADER: Final = re.compile(r"(?P<kind>week|day|session|thread), (?P<at>\d{4}-\d\d-\d\d[\d: to-]{0,30}): ")
_TODAY: Final = re.compile(r"^Today is \w+, \d{4}-\d\d-\d\d in (?P<zone>[\w/+-]{1,60}); times are UTC\b", re.MULTILINE)
_DAY: Final = "%Y-%m-%d"
_MINUTE: Final = "%Y-%m-%d %H:%M"


def zone_of(messages: Sequence[ChatMessage]) -> tzinfo:
    """The time zone that CONTEXT names, in whose days a question is asked; else UTC."""
    found = next((match for each in messages[:2] if (match := _TODAY.search(each.content))), None)
    try:
        return UTC if found is None else ZoneInfo(found["zone"])
    except (ValueError, OSError, KeyError):
        return UTC


def in_zone(at: str, zone: tzinfo) -> str:
    """The time of a line of the prompt as a zone's clocks showed it; days, and what is no time, stay as they are."""
    first, _, last = at.partition(" to ")
    if last and len(last) == len("09:00"):
        last = f"{first[: len('2026-05-04')]} {last}"
    start, end = _asked_at(first), _asked_at(last or first)
    if start is None or end is None:
        return at
    start, end = start.astimezone(zone), end.astimezone(zone)
    if not last:
        return f"{start:{_MINUTE}}"
    return (
        f"{start:{_MINUTE}} to {end:%H:%M}" if start.date() == end.date() else f"{start:{_MINUTE}} to {end:{_MINUTE}}"
    )


def named_periods(question: str, asked_at: str, zone: tzinfo) -> list[Period]:
    """The periods that a question names; `asked_at` is its time in the prompt, "2026-05-04 09:00" in UTC."""
    now = _asked_at(asked_at)
    return [] if now is None else asked_periods(question, now.astimezone(zone))


def period_since(since: str, asked_at: str) -> list[Period]:
    """The period between two times of the prompt."""
    start, end = _asked_at(since), _asked_at(asked_at)
    return [] if start is None or end is None else [(start, end + timedelta(minutes=1))]


def names_a_wish(asked: Asked, asked_at: str, zone: tzinfo) -> bool:
    """Whether a message asks to be reminded, with a time that is understood; `asked_at` as `named_periods` takes it."""
    now = _asked_at(asked_at)
    return now is not None and asked.wish(now, zone) is not None


def _asked_at(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, _MINUTE).replace(tzinfo=UTC)
    except ValueError:
        return None


def is_within(at: str, periods: Sequence[Period], zone: tzinfo) -> bool:
    """Whether a line is of one of the periods. `at` is its time in the prompt: a minute in UTC, a day, or a span of
    either. A span is of a period if at least half of the shorter of the two lies within the other."""
    span = _span(at, zone)
    if span is None:
        return False
    first, last = span
    shared = ((min(last, end) - max(first, start), min(end - start, last - first)) for start, end in periods)
    return any(common > timedelta() and common * 2 >= shorter for common, shorter in shared)


def _span(at: str, zone: tzinfo) -> Period | None:
    """The time of a line, with its end excluded."""
    first, _, last = at.partition(" to ")
    if last and len(last) == len("09:00"):
        last = f"{first[: len('2026-05-04')]} {last}"
    try:
        start, end = _moment(first, zone), _moment(last or first, zone)
        return start[0], end[1]
    except (ValueError, OverflowError):
        return None


def _moment(at: str, zone: tzinfo) -> Period:
    """A day of the zone, or a minute in UTC."""
    if len(at) > len("2026-05-04"):
        start = datetime.strptime(at, _MINUTE).replace(tzinfo=UTC)
        return start, start + timedelta(minutes=1)
    day = datetime.strptime(at, _DAY).replace(tzinfo=zone)
    return day.astimezone(UTC), (day + timedelta(days=1)).astimezone(UTC)
