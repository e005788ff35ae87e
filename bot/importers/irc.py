"""Reads IRC logs as events, as the usual programs write them: irssi, WeeChat, ZNC, HexChat, mIRC, The Lounge and those
that write `[12:18] <nick> text`. A log is of one room and one day or several."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

from bot.script.events import Line, check_event
from composer.errors import BadInput
from composer.text.decoding import decode_text
from composer.text.moments import day_of, moment

HALF_DAY: Final = timedelta(hours=12)
BACK: Final = timedelta(hours=1)  # that the clock of a log may go back with no noon or midnight between
_TIME: Final = r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?(?:[.,]\d+)?(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
_DAY: Final = (
    r"(?:(?P<date>\d{4}-\d\d-\d\d)[T ]|(?P<numbers>\d{1,2}[./]\d{1,2}[./]\d{2,4}),? +"
    r"|(?:[A-Z][a-z]{2} +)?(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) +)"
)
_ZONE: Final = r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
_NAMED_ZONE: Final = r"(?: (?:Uhr|[A-Z]{3,4})(?=[\])]))?"  # which is not read: times without a number are UTC
_YEAR: Final = r"(?: (?P<year>\d{4})(?=[\]) ]))?"
_STAMP: Final = re.compile(rf"\A\s*[\[(]?{_DAY}?{_TIME}{_ZONE}{_NAMED_ZONE}{_YEAR}[\])]?(?P<gap>[ \t]+)(?P<rest>.*)")
_STAMP_BEHIND: Final = re.compile(r"[ \t]{2}(\[\d{1,2}:\d\d(?::\d\d)?\])\s?\Z")  # ERC
_COLOURS: Final = re.compile(  # mIRC's: colours, and one character for bold, reset, reverse, italics, underline
    "\x03(?:\\d{1,2}(?:,\\d{1,2})?)?|\x04(?:[0-9a-fA-F]{6}(?:,[0-9a-fA-F]{6})?)?|[\x02\x0f\x11\x16\x1d\x1e\x1f]"
    "|\x1b\\[[\\d;]*m|\x19(?:F[\\d@|]*|.)"  # of terminals; of WeeChat
)
_LOST_COLOUR: Final = re.compile(r"\A\d\d(?=\[\d)")  # of mIRC, whose codes were taken out
_SECONDS: Final = re.compile(r"(\d{9,10})[ \t]+(?=[<*-])")  # ii
_LONG_DAY: Final = re.compile(r"\A\s*\[([^\[\]]{8,60})\] (?=\[\d)")  # Konversation, before each time
_SAID: Final = re.compile(r"\A<(?P<nick>[^>]+)>[ \t]?(?P<text>.*)")
_ACTION: Final = re.compile(r"(?:(?:\*|•|\u2014|-\*-|Action:)[ \t]+|\*\*\*(?=\S))(?P<nick>\S+?):?(?: (?P<text>.*))?\Z")
_COLON: Final = re.compile(r"\A(?P<nick>[^\s:<>*=-][^\s:<>]{0,40}):[ \t](?P<text>.*)")  # LimeChat, Pidgin
_SPOKEN_NOTICE: Final = re.compile(r"\A-(?P<nick>[^\s.()/:-][^\s.()/:]{0,40}?)(?:[:/][#&][^\s-]+)?-[ \t]+(?P<text>.*)")
_COLUMN: Final = re.compile(r"\A(?P<nick>[^\s\t]+)\t(?P<text>.*)")  # WeeChat
_COLUMN_ACTION: Final = re.compile(r" ?\*\t(?P<nick>\S+)(?: (?P<text>.*))?")
_NOTICE: Final = re.compile(
    r"\A(?:(?:Join|Part|Quit|Nick|Mode|Topic|Kick|Notice|Names|Away|Info|Error|Whois|Ctcp|Invite)\t|"  # Konversation
    r"-!-|\*\*\*|-->\|?|<--|<-\*|--|=!=|===?|[→←⇐⇒!⚡\u2139]|>>?|-[^\s-]\S*-|(?=.* has (?:joined|left|quit)\b)|"
    r"(?=\S+ \([^)]*\) (?:joined|left) |Topic changed on |Nick change: |\S+: mode change |\S+ kicked from |"  # Eggdrop
    r"\S+ is now known as \S+\Z|\S+ (?:\[[^\]]*\] )?(?:entered|left) the room\b))"  # Textual, Pidgin
    r"[ \t]*(?P<rest>.*)"
)
_MOVED: Final = re.compile(
    r"\A(?P<nick>\S+) (?:[\[(<][^\])>]*[\])>] )?(?:has )?(?P<verb>joined|left|quit|entered)\b",
)
_ZNC_MOVED: Final = re.compile(r"(?P<verb>Joins|Parts|Quits): (?P<nick>\S+)")
_LEFT: Final = frozenset({"left", "quit", "Parts", "Quits"})
_EVENT: Final = re.compile(  # what HexChat and mIRC write behind the star of an action; these texts are not translated
    r"\A(?:\S+ (?:\([^)]*\) |\[[^\]]*\] )?(?:(?:has )?(?:joined|left|quit)"
    r"(?= ?(?:\Z|[(\[#&]|IRC\b|this (?:channel|server)))|is now known as \S+\Z|"
    r"has (?:changed|kicked)\b|sets? mode|(?:gives|removes) (?:channel|voice)|was kicked|"
    r"changes topic)|\S+ \([^)]*\) (?:has )?(?:joined|left|quit)\b|(?:Joins|Parts|Quits|Kicks): |"
    r"Now talking|Topic (?:for|is|set)\b|Channel|You are now|Disconnected|Rejoined|Set by|Retrieving|Attempting)"
)
_SERVICES: Final = ("serv",)  # the ends of names of a network's own services, which notify one person
_OPENED: Final = re.compile(  # a line of the program about its log: opened, closed, or a new day
    r"\A\s*(?:---|\*{4} ?(?:BEGIN|ENDING) LOGGING AT|Session (?:Start|Time|Close):|IRC log (?:started|ended)|"
    r"Conversation with .{1,200} at |on (?=\w{2,4} \w{3} +\d))\s*(?P<rest>.*)",
    re.IGNORECASE,
)
_MARKED: Final = re.compile(r"\A\s*(?:Session |#|\*\*\* |Logfile started\Z|(?:Begin|End): )")  # another, without a time
_WRITTEN_DAY: Final = re.compile(
    r"(?P<month>[A-Z][a-z]{2})\w* +(?P<day>\d{1,2}),? +(?:[\d:]+ +)?(?P<year>\d{4})"
    r"|(?P<day_before>\d{1,2})\.? +(?P<month_behind>[A-Z][a-z]{2})\w* +(?P<year_behind>\d{4})"
)
_OTHER_DAY: Final = re.compile(  # in another language
    r"(?P<month>[^\W\d_]{2,12})\.? +(?P<day>\d{1,2}),? +(?:[\d:]+ +)?(?P<year>\d{4})"
    r"|(?P<day_before>\d{1,2})\.? +(?:de +)?(?P<month_behind>[^\W\d_]{2,12})\.?,? +(?:de +)?(?P<year_behind>\d{4})"
)
MAX_DAY_CHARS: Final = 60
_DAY_ALONE: Final = re.compile(  # Eggdrop, ERC
    r"\A(?:\[[\d:]+\] )?\W*(?:\w+,? )?(?P<day>\w{3,9} +\d{1,2},? \d{4})\W*"
)
_EXTENSION: Final = re.compile(r"\.(?:weechatlog|log|txt)\Z", re.IGNORECASE)
_CHANNEL_NAME: Final = re.compile(r"[#&][^\s/]+")
_ISO_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_FILE_DAY: Final = re.compile(r"(?<!\d)(\d{4})(-?)(\d{2})\2(\d{2})(?!\d)")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_STATUS: Final = "~&@%+! "  # what a nick has before it in a channel


def is_irc_line(line: str) -> bool:
    """Whether a line is one of an IRC log."""
    line = _stamped(_without_colours(line))
    stamp = _STAMP.match(_LONG_DAY.sub("", _SECONDS.sub("00:00 ", line), count=1))
    if stamp is None:
        return bool(_OPENED.match(line)) or line.startswith("===")
    rest = stamp["rest"]
    forms = (_SAID, _ACTION, _NOTICE, _COLON)
    return any(form.match(rest) for form in forms) or _is_weechat(stamp)


def _stamped(line: str) -> str:
    """A line with its time in front, where a program writes it behind."""
    behind = _stamp_behind(line)
    return f"{behind[1]} {line[: behind.start()].rstrip()}" if behind else _LOST_COLOUR.sub("", line)


def _stamp_behind(line: str) -> re.Match[str] | None:
    return _STAMP_BEHIND.search(line) if line.startswith(("<", "*", "-", "=")) else None


def room_of_log(path: Path) -> str:
    """The room that a log is about: its file's name, without a day and the network before it."""
    name = _EXTENSION.sub("", path.name)
    channel = _CHANNEL_NAME.search(name)
    name = _FILE_DAY.sub("", channel[0] if channel else name).strip(" ._-")
    parent = path.resolve().parent.name
    return name or (parent if parent[:1] in ("#", "&") else path.stem)


def read_irc_log(path: Path, room: str, odd: Callable[[str], None]) -> list[Line]:
    """Read a log. `odd` receives a sentence for each line that is none of a log.

    The day is what the log says, else the date in the file's name (2004-11-15…), else the date of the file; a clock
    that goes back has passed midnight, or noon where it is one of 12 hours (`_has_half_days`). A message's id is the
    file's name and its line, counted from 0, as annotations of such logs count. Raises BadInput when most lines are of
    no log.
    """
    try:
        text = decode_text(path.read_bytes())
        modified = moment(datetime.fromtimestamp(path.stat().st_mtime, UTC)).date()
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror or error}.") from error
    except (BadInput, ValueError, OverflowError) as error:
        what = str(error).removesuffix(".")
        raise BadInput(f"{path}: the file's own time is no valid one ({what}).") from error
    bare = [_without_colours(line.rstrip("\r")) for line in text.split("\n")]
    shown = [_stamped(line) for line in bare]
    clock = _LogClock(_day_of_file(path) or modified, _has_half_days(shown), _has_month_first(shown))
    reading = _LogReading(path, room, clock, times_behind=any(map(_stamp_behind, bare)))
    strange: list[str] = []
    for number, line in enumerate(shown):
        problem = reading.read(number, line)
        if problem:
            strange.append(f"{path}:{number + 1}: {problem}")
    if strange and 2 * len(strange) > sum(bool(line.strip()) for line in shown):
        raise BadInput(strange[0])
    for sentence in strange:
        odd(sentence)
    return reading.lines


def _day_of_file(path: Path) -> date | None:
    found = _FILE_DAY.search(path.name)
    if found is None:
        return None
    try:
        return day_of(f"{found[1]}-{found[3]}-{found[4]}")
    except BadInput as error:
        if not found[2]:
            return None  # a number, and no day
        what = str(error).removesuffix(".")
        raise BadInput(f"{path}: its name contains no valid date ({what}).") from error


class _LogReading:
    """The events of one log, as far as it was read."""

    def __init__(self, path: Path, room: str, clock: "_LogClock", *, times_behind: bool) -> None:
        """`times_behind`: the time stands behind a line, and only where it is another than before."""
        self._times_behind = times_behind
        first = path.name.split(".")[0]
        self._path, self._room, self._clock = path, room, clock
        self._name = first if _FILE_DAY.search(first) else path.name
        self.lines: list[Line] = []

    def read(self, number: int, line: str) -> str:
        """Read one line; what is wrong with it, or ""."""
        if not line.strip():
            return ""
        opened = _OPENED.match(line)
        if opened:
            self._clock.open(opened["rest"], next_day="day changed" in line.lower())
            return ""
        if line.startswith("==="):
            return self._move(number, line.lstrip("= "))
        alone = _DAY_ALONE.fullmatch(line) if len(line) <= MAX_DAY_CHARS else None
        if alone:
            self._clock.open(alone["day"], next_day=False)
            return ""
        seconds = _SECONDS.match(line)
        if seconds:
            at = datetime.fromtimestamp(int(seconds[1]), UTC)
            line = f"{at:%Y-%m-%d %H:%M:%S} {line[seconds.end() :]}"
        day = _LONG_DAY.match(line)
        if day:
            self._clock.open(day[1], next_day=False)
            line = line[day.end() :]
        stamp = _STAMP.match(line)
        if stamp is None and self._times_behind and (said := _SAID.fullmatch(line) or _ACTION.fullmatch(line)):
            return self._say(number, said["nick"].strip(_STATUS), said["text"] or "")
        if stamp is None:
            return "" if _MARKED.match(line) else "this is not a line of an IRC log; expected [hh:mm] <nick> text."
        try:
            self._clock.advance(_ShownTime.of(stamp, month_first=self._clock.month_first))
        except ValueError:
            return "this is not a time of day; expected 00:00 to 23:59."
        return self._body(number, stamp)

    def _body(self, number: int, stamp: re.Match[str]) -> str:
        rest = stamp["rest"]
        action = _ACTION.match(rest)
        if action and _EVENT.match(rest.lstrip("*• \t")):
            return self._move(number, rest.lstrip("*• \t"))
        said = _SAID.fullmatch(rest) or (_column(stamp) if _is_weechat(stamp) else action or _spoken_notice(rest))
        if said is None and not _is_weechat(stamp) and not _NOTICE.match(rest):
            said = _COLON.fullmatch(rest)
        if said is not None and said["nick"].strip(_STATUS):
            return self._say(number, said["nick"].strip(_STATUS), said["text"] or "")
        notice = _NOTICE.match(rest)
        if notice or _is_weechat(stamp):
            return self._move(number, notice["rest"] if notice else rest)
        return "this is not a line of an IRC log; expected [hh:mm] <nick> text."

    def _say(self, number: int, nick: str, text: str) -> str:
        if text.strip():
            id = f"{self._name}:{number}"
            self._add(number, {"type": "message", "user": nick, "id": id, "text": text})
        return ""

    def _move(self, number: int, text: str) -> str:
        """Note who joined or left; other notices say nothing that is kept."""
        moved = _ZNC_MOVED.match(text) or _MOVED.match(text)
        if moved:
            kind = "leave" if moved["verb"] in _LEFT else "join"
            self._add(number, {"type": kind, "user": moved["nick"].strip(_STATUS) or moved["nick"]})
        return ""

    def _add(self, number: int, event: dict[str, object]) -> None:
        whole = {"at": self._clock.now, "room": self._room, **event}
        self.lines.append(Line(str(self._path), number + 1, check_event(whole, self._path, number + 1)))


def _spoken_notice(rest: str) -> re.Match[str] | None:
    """A notice in the channel, as bots write them; those of services are for one person."""
    found = _SPOKEN_NOTICE.fullmatch(rest)
    return None if found is None or found["nick"].lower().endswith(_SERVICES) else found


def _is_weechat(stamp: re.Match[str]) -> bool:
    """Whether a line has columns: a date with its time, then a tab."""
    return stamp["date"] is not None and stamp["gap"].startswith("\t")


def _column(stamp: re.Match[str]) -> re.Match[str] | None:
    """The nick and the text of a line of WeeChat, where somebody speaks."""
    whole = stamp["gap"][1:] + stamp["rest"]
    action = _COLUMN_ACTION.fullmatch(whole)
    if action or _NOTICE.match(whole):
        return action
    return _COLUMN.fullmatch(whole)


def _has_half_days(lines: list[str]) -> bool:
    """Whether a log has a clock of 12 hours without saying which half: no line has an hour outside 1 to 12, and the
    clock goes back by more than an hour, as from 12:59 to 01:00."""
    found = (_STAMP.match(line) for line in lines)
    stamps = [each for each in found if each]
    if any(each["half"] or each["date"] for each in stamps):
        return False
    minutes = [int(each["hour"]) * 60 + int(each["minute"]) for each in stamps]
    if any(not 60 <= minute < 13 * 60 for minute in minutes):
        return False
    return any(before - after > BACK / timedelta(minutes=1) for before, after in pairwise(minutes))


def _has_month_first(lines: list[str]) -> bool:
    """Whether days such as 05/04/2026 begin with the month: no day fits otherwise, or the clock is of 12 hours."""
    found = [stamp for each in lines if (stamp := _STAMP.match(each)) and stamp["numbers"] and "/" in stamp["numbers"]]
    parts = [tuple(map(int, stamp["numbers"].split("/")[:2])) for stamp in found]
    if any(first > 12 for first, _ in parts):
        return False
    return any(second > 12 for _, second in parts) or any(stamp["half"] for stamp in found)


@dataclass(frozen=True, slots=True)
class _ShownTime:
    """What the clock of a line shows: a time of day, and the day where the line has it."""

    hour: int
    minute: int
    second: int
    on: date | None = None
    month_day: tuple[int, int] | None = None  # without a year
    offset: timedelta = timedelta()

    @classmethod
    def of(cls, stamp: re.Match[str], *, month_first: bool) -> "_ShownTime":
        """The time of a line. Raises ValueError for one that no clock shows."""
        hour, minute, second = (int(stamp[name] or 0) for name in ("hour", "minute", "second"))
        if hour > 23 or minute > 59 or second > 59:
            raise ValueError("no time of day")
        if stamp["half"]:
            hour = hour % 12 + (12 if stamp["half"] in "pP" else 0)
        day = date.fromisoformat(stamp["date"]) if stamp["date"] else None
        month_day = (_MONTHS.index(stamp["month"]) + 1, int(stamp["day"])) if stamp["month"] in _MONTHS else None
        if stamp["numbers"]:
            first, other, year = map(int, stamp["numbers"].replace(".", "/").split("/"))
            day = date(year if year > 99 else 2000 + year, *((first, other) if month_first else (other, first)))
        elif month_day is not None and stamp["year"]:
            day = date(int(stamp["year"]), *month_day)
        zone, offset = stamp["zone"] or "Z", timedelta()
        if zone != "Z":
            size = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
            offset = size if zone[0] == "+" else -size
        return cls(hour, minute, second, day, month_day, offset)


class _LogClock:
    """The time of each line of a log, from what its clock shows. The first line's is as written.

    `half_days`: the clock has 12 hours, and shows each time twice a day. A log that says when a day begins passes
    midnight there, and nowhere else.
    """

    def __init__(self, day: date, half_days: bool, month_first: bool) -> None:
        self.month_first = month_first
        self.now = datetime(day.year, day.month, day.day, tzinfo=UTC)
        self._half_days, self._started, self._says_days = half_days, False, False

    def open(self, written: str, *, next_day: bool) -> None:
        """Set the day that a log says, and the time if it has one. `next_day`: in words that are not understood, it is
        the day after."""
        day = _written_day(written)
        if day is None and next_day:
            day = self.now.date() + timedelta(days=1)
        if day is None:
            return
        self._says_days = True
        self.now = datetime(day.year, day.month, day.day, tzinfo=UTC)

    def advance(self, shown: _ShownTime) -> None:
        """Set `now` to the time of the next line. Raises ValueError for a day that no calendar has."""
        then = self.now.replace(hour=shown.hour, minute=shown.minute, second=shown.second)
        if shown.on is not None:
            then = then.replace(year=shown.on.year, month=shown.on.month, day=shown.on.day) - shown.offset
        elif shown.month_day is not None:
            then = _nearest(then, *shown.month_day)
        elif self._half_days and self._started:
            ahead = (then - self.now) % HALF_DAY
            then = self.now + (ahead - HALF_DAY if ahead >= HALF_DAY - BACK else ahead)
        elif then < self.now - HALF_DAY and not self._says_days:
            then += timedelta(days=1)
        self.now, self._started = then, True


def _written_day(written: str) -> date | None:
    """A day in words, in English or in the language of somebody's program; None where there is none."""
    iso = _ISO_DAY.search(written)
    try:
        if iso:
            return date.fromisoformat(iso[0])
        found = _WRITTEN_DAY.search(written)
        if found and (month := found["month"] or found["month_behind"]) in _MONTHS:
            year, day = found["year"] or found["year_behind"], found["day"] or found["day_before"]
            return date(int(year), _MONTHS.index(month) + 1, int(day))
    except ValueError:
        return None
    other = _OTHER_DAY.search(written)
    if other is None:
        return None
    import dateparser  # noqa: PLC0415 - takes a quarter of a second, and most programs write English

    year, day = other["year"] or other["year_behind"], other["day"] or other["day_before"]
    at = dateparser.parse(f"{day} {other['month'] or other['month_behind']} {year}")
    return None if at is None else at.date()


def _nearest(then: datetime, month: int, day: int) -> datetime:
    """The time on that day of the year that is nearest to the last line's: a log goes on over a new year."""
    years = [then.year, then.year + 1, then.year - 1]
    candidates = [then.replace(year=year, month=month, day=day) for year in years if day < 29 or _has(year, month, day)]
    if not candidates:
        raise ValueError("no day of a year")
    return min(candidates, key=lambda candidate: abs(candidate - then))


def _has(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _without_colours(line: str) -> str:
    """A line without the codes of colours and styles."""
    return _COLOURS.sub("", line)
