"""Read a time of day in English: "15:00", "16.30", "15h30", "3 p.m.", "half past three", "noon", "in the morning".
Pure."""

import re
from dataclasses import dataclass
from datetime import time
from typing import Final

from composer.text.dates.vocabulary import NUMBERS

FLAGS: Final = re.IGNORECASE | re.ASCII
SKIP: Final = r"[\s~]"  # ~ stands for a small word of another language
_NUMBER: Final = "|".join(NUMBERS)
_HALF_DAY: Final = r"(?:\s?(?P<half>[ap])(?:m\b|\.\s?m\b\.?))?"
_PARTS: Final = r"(?P<part>morning|afternoon|evening|night)\b"
_CLOCK: Final = re.compile(
    r"(?:(?P<at>at|by|around|@)\s{0,8})?(?:about\s{1,4})?(?:"
    r"(?P<named>noon|midday|midnight)\b"
    rf"|(?P<past>half|a?\s?quarter|\d{{1,2}}|five|ten|twenty)(?:\s{{1,4}}minutes)?\s{{1,4}}(?P<side>past|to|before|after)\s{{1,4}}"
    rf"(?P<of>\d{{1,2}}|{_NUMBER})(?![\w:])"
    r"|(?P<hour>\d{1,2})(?P<dot>[:.h])(?P<minute>\d\d)(?!\d)(?:\s?h\b)?"
    r"|(?P<oclock>\d{1,2}|" + _NUMBER + r")\s?(?:o'?\s?clock\b|h\b)"
    r"|(?P<bare>\d{1,2})(?![\d:.,]\d)"
    rf"|(?P<word>{_NUMBER})\b"
    r")" + _HALF_DAY + r"(?![\w%]|:\d)",
    FLAGS,
)
_PART_FIRST: Final = re.compile(rf"(?:(?:in\s{{1,4}}the|this|at)\s{{1,4}})?{_PARTS}{SKIP}{{0,4}}", FLAGS)
_PART_AFTER: Final = re.compile(rf",?{SKIP}{{0,4}}(?:in\s{{1,4}}the|this|at)\s{{1,4}}{_PARTS}", FLAGS)
_NO_HOUR: Final = re.compile(  # what a number counts
    rf"{SKIP}{{0,4}}(?:%|\$|st\b|nd\b|rd\b|th\b|minutes?\b|mins?\b|hours?\b|days?\b|weeks?\b|months?\b|years?\b"
    r"|january|february|march|april|may|june|july|august|september|october|november|december)",
    FLAGS,
)
PARTS: Final = {"morning": time(9), "afternoon": time(14), "evening": time(18), "night": time(20)}
_MORNING: Final = 7  # an hour below is named for the afternoon as often
_STEPS: Final = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20}


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A time of day, where it ends in its text, and what is to be said of it. `guessed`: only a part of the day is
    named."""

    at: time
    end: int
    note: str = ""
    guessed: bool = False


def clock_at(text: str, start: int, *, after_day: bool) -> ClockTime | None:
    """The time of day that stands at a place; None without one. A number alone is one only after a day, and so is one
    with a dot, without "at". Raises ValueError for an hour that does not exist."""
    first = _PART_FIRST.match(text, start)
    begin = first.end() if first else start
    match = _CLOCK.match(text, begin)
    if match is None or not _is_time(match, text, after_day=after_day or first is not None):
        return (
            None
            if first is None
            else ClockTime(PARTS[first["part"].lower()], start + len(first[0].rstrip(" ~\t\n")), guessed=True)
        )
    last = None if first else _PART_AFTER.match(text, match.end())
    named = first or last
    part = "" if named is None else named["part"].lower()
    at, note = _time_of(match, part)
    return ClockTime(at, last.end() if last else match.end(), note)


def _is_time(match: re.Match[str], text: str, *, after_day: bool) -> bool:
    """Whether a match of _CLOCK is one where it stands."""
    if match["half"] or (match["at"] and not match["word"]):
        return not (match["bare"] and not match["half"] and _NO_HOUR.match(text, match.end()))
    if match["word"]:
        return bool(match["at"]) and not _NO_HOUR.match(text, match.end())
    if match["bare"]:
        return after_day and int(match["bare"]) < 24 and _NO_HOUR.match(text, match.end()) is None
    return after_day or match["dot"] != "."


def _time_of(match: re.Match[str], part: str) -> tuple[time, str]:
    """Raises ValueError."""
    if match["named"]:
        return time(0 if match["named"].lower() == "midnight" else 12), ""
    hour, minute = (
        match["hour"] or match["oclock"] or match["bare"] or match["word"] or match["of"],
        int(match["minute"] or 0),
    )
    number = int(hour) if hour.isdecimal() else NUMBERS.index(hour.lower()) + 1
    if match["past"]:
        step = match["past"].lower().removeprefix("a").strip()
        minutes = number * 60 + (int(step) if step.isdecimal() else _STEPS[step]) * (
            1 if match["side"].lower() in ("past", "after") else -1
        )
        number, minute = minutes // 60, minutes % 60
    half = (match["half"] or "").lower()
    if half:
        if not 1 <= (number or 12) <= 12:
            raise ValueError("an hour of the forenoon or the afternoon is from 1 to 12")
        note = ""
        if number == 12:
            note = "12 p.m. is noon." if half == "p" else "12 a.m. is midnight, when the day begins."
        return time(number % 12 + (12 if half == "p" else 0), minute), note
    if part and 1 <= number <= 12:
        number %= 12
        if part in ("afternoon", "evening") or (part == "night" and number > 5):
            number += 12
    if part or not 1 <= number < _MORNING or hour.startswith("0"):
        return time(number, minute), ""
    if match["past"] or match["word"] or (match["oclock"] and not hour.isdecimal()):  # so people say the afternoon
        at = time(number + 12, minute)
        return at, f"For the morning, write {number:02}:{minute:02}."
    return time(number, minute), f"That is in the morning: for the afternoon, write {number + 12}:{minute:02}."
