"""Reads IRC logs as events: lines `[12:18] <nick> text`, of one room and one day or several."""

import re
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

from bot.script.events import Line, check_event
from composer.errors import BadInput
from composer.text.moments import day_of, moment

HALF_DAY: Final = timedelta(hours=12)
BACK: Final = timedelta(hours=1)  # that the clock of a log may go back with no noon or midnight between
_MESSAGE: Final = re.compile(r"^\[(\d\d):(\d\d)(?::(\d\d))?\] <([^>]+)> ?(.*)$")
_ACTION: Final = re.compile(r"^\[(\d\d):(\d\d)(?::(\d\d))?\] +\* (\S+) ?(.*)$")
_MOVED: Final = re.compile(r"^=== (\S+) (?:\[[^\]]*\] +)?has (joined|left|quit)\b")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def is_irc_line(line: str) -> bool:
    """Whether a line is one of an IRC log."""
    return bool(_MESSAGE.match(line) or _ACTION.match(line) or line.startswith("==="))


def read_irc_log(path: Path, room: str) -> list[Line]:
    """Read a log of lines `[12:18] <nick> text`.

    Its day is the date in the file's name (2004-11-15…), else the date of the file; a clock that goes back has passed
    midnight, or noon where it is one of 12 hours (`_has_half_days`). A message's id is the file's name up to the first
    dot and its line, counted from 0, as annotations of such logs count.
    """
    found = _DATE.search(path.name)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
        day = day_of(found[0]) if found else moment(datetime.fromtimestamp(path.stat().st_mtime, UTC)).date()
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror or error}.") from error
    except (BadInput, ValueError, OverflowError) as error:
        what = "its name contains no valid date" if found else "the file's own time is no valid one"
        raise BadInput(f"{path}: {what} ({str(error).removesuffix('.')}).") from error
    clock = _LogClock(day, _has_half_days(text))
    lines: list[Line] = []
    for number, line in enumerate(text.split("\n")):
        written = _MESSAGE.match(line) or _ACTION.match(line)
        moved = _MOVED.match(line)
        if written:
            hour, minute, second, nick, words = written.groups()
            if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
                raise BadInput(f"{path}:{number + 1}: this is not a time of day; expected 00:00 to 23:59.")
            clock.advance(int(hour), int(minute), int(second or 0))
            if words.strip():
                id = f"{path.name.split('.')[0]}:{number}"
                said = {"type": "message", "at": clock.now, "room": room, "user": nick, "id": id, "text": words}
                lines.append(Line(str(path), number + 1, check_event(said, path, number + 1)))
        elif moved:
            kind = "join" if moved[2] == "joined" else "leave"
            event = check_event({"type": kind, "at": clock.now, "room": room, "user": moved[1]}, path, number + 1)
            lines.append(Line(str(path), number + 1, event))
        elif line.strip() and not line.startswith("==="):
            raise BadInput(f"{path}:{number + 1}: this is not a line of an IRC log; expected [hh:mm] <nick> text.")
    return lines


def _has_half_days(text: str) -> bool:
    """Whether a log has a clock of 12 hours: no line has an hour outside 1 to 12, and the clock goes back by more than
    an hour, as from 12:59 to 01:00."""
    found = (_MESSAGE.match(line) or _ACTION.match(line) for line in text.split("\n"))
    minutes = [int(each[1]) * 60 + int(each[2]) for each in found if each]
    if any(not 60 <= minute < 13 * 60 for minute in minutes):
        return False
    return any(before - after > BACK / timedelta(minutes=1) for before, after in pairwise(minutes))


class _LogClock:
    """The time of each line of a log, from what its clock shows. The first line's is as written.

    `half_days`: the clock has 12 hours, and shows each time twice a day.
    """

    def __init__(self, day: date, half_days: bool) -> None:
        self.now = datetime(day.year, day.month, day.day, tzinfo=UTC)
        self._half_days, self._started = half_days, False

    def advance(self, hour: int, minute: int, second: int) -> None:
        """Set `now` to the time of the next line."""
        then = self.now.replace(hour=hour, minute=minute, second=second)
        if self._half_days and self._started:
            ahead = (then - self.now) % HALF_DAY
            then = self.now + (ahead - HALF_DAY if ahead >= HALF_DAY - BACK else ahead)
        elif then < self.now - HALF_DAY:
            then += timedelta(days=1)
        self.now, self._started = then, True
