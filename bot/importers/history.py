"""Loads history from files of events or IRC logs, through the same pipeline as every adapter, without answering."""

import re
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

from bot.importers.export import MIXED
from bot.importers.history_privacy import closed
from bot.script.changes import apply_memberships, change_message
from bot.script.events import DeleteEvent, EditEvent, Line, MessageEvent, MoveEvent, check_event, read_script
from bot.script.places import PLATFORM, agent_at, external, incoming, room_of
from composer.app import App
from composer.errors import BadInput
from composer.ingest.imports import end_import
from composer.ingest.validation import message_text, validate_message
from composer.model import ConversationKind, Incoming, Place
from composer.moments import day_of, moment
from composer.repositories.imports import ImportRun
from composer.workspace import Workspace, private_thread, room_id

MAX_FIRST_LINE: Final = 1_000  # bytes, by which a format is known
BATCH_SIZE: Final = 1_000  # messages in one transaction
APART: Final = "in DMs and sessions, which --room does not load into a room"
HALF_DAY: Final = timedelta(hours=12)
BACK: Final = timedelta(hours=1)  # that the clock of a log may go back with no noon or midnight between
_MESSAGE = re.compile(r"^\[(\d\d):(\d\d)(?::(\d\d))?\] <([^>]+)> ?(.*)$")
_ACTION = re.compile(r"^\[(\d\d):(\d\d)(?::(\d\d))?\] +\* (\S+) ?(.*)$")
_MOVED = re.compile(r"^=== (\S+) (?:\[[^\]]*\] +)?has (joined|left|quit)\b")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class HistoryResult:
    """How many messages an import read, stored, knew already, and skipped, by the reason."""

    read: int
    new: int
    known: int
    skipped: Mapping[str, int] = field(default_factory=dict)


def read_history(path: Path, format: str, workspace: str | None, room: str | None) -> list[Line]:
    """The events of a file. `workspace`, where given, replaces that of every event; `room` is the room of an IRC log.

    Raises BadInput, with file and line, before anything is stored.
    """
    if room is not None:
        room_of(room)
    _check_format(path, format)
    lines = _irc(path, room or path.stem) if format == "irc" else read_script(path)
    return [Line(line.file, line.number, _placed(line, workspace)) for line in lines]


def _check_format(path: Path, format: str) -> None:
    """Raise BadInput for a file that is plainly of another format, and name that."""
    if path.is_dir() or zipfile.is_zipfile(path):
        what = "a folder" if path.is_dir() else "a zip file"
        raise BadInput(f"{path} is {what}: for an export give --format slack-export or --format discord-export.")
    if format == "irc" or not path.is_file():
        return
    with path.open("rb") as file:
        first = file.readline(MAX_FIRST_LINE).decode(errors="replace").rstrip()
    if _MESSAGE.match(first) or _ACTION.match(first) or first.startswith("==="):
        raise BadInput(f"{path}:1: this is a line of an IRC log: give --format irc.")
    if first == "{" or first.startswith('{"guild":'):
        raise BadInput(f"{path}:1: a line must be a JSON value: for an export give --format discord-export.")


def _placed(line: Line, workspace: str | None) -> MessageEvent | EditEvent | DeleteEvent | MoveEvent:
    event = line.event
    if not isinstance(event, MessageEvent | EditEvent | DeleteEvent | MoveEvent):
        raise BadInput(
            f"{line.file}:{line.number}: history can't contain '{event.type}' events: use nexus play for scripts."
        )
    changes: dict[str, object] = {} if workspace is None else {"workspace": workspace}
    if isinstance(event, MessageEvent):
        if event.at is None:
            raise BadInput(f"{line.file}:{line.number}: history needs a time: set `at`.")
        changes["id"] = event.id or f"{Path(line.file).stem}:{line.number}"
    return event.model_copy(update=changes)


def _irc(path: Path, room: str) -> list[Line]:
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


async def import_history(
    app: App,
    lines: Sequence[Line],
    progress: Callable[[int], None],
    room: str | None = None,
    private: Collection[tuple[str, str]] = (),
    run: ImportRun | None = None,
) -> HistoryResult:
    """Store the events in their order, messages in batches; `progress` receives how many more are done.

    `room`, where given, takes what was said in other rooms, except in private ones and private threads: that, DMs and
    sessions are skipped.
    `private` are rooms, by workspace and name, that are new and private although no event says so. With a `run` it can
    be undone.
    Messages that are stored already, or were erased, change nothing. Raises BadInput, with file and line, before
    anything is stored.
    """
    skipped: Counter[str] = Counter()
    if room is not None:
        kept = _into_room(lines, room, await _private_rooms(app, lines), skipped)
        progress(len(lines) - len(kept))
        lines = kept
    _check(app, lines)
    total = len(lines)
    lines = closed(lines, set(private))
    progress(total - len(lines))  # for the joins that it adds
    new = messages = 0
    final = {_changed(line): line for line in lines if isinstance(line.event, EditEvent | DeleteEvent)}
    for part in _parts(lines):
        if part.moves:
            now = app.clock.now()
            await apply_memberships(app, [(move, move.at or now) for move in part.moves], run)
        if part.messages:
            new, messages = new + await _store(app, part.messages, run), messages + len(part.messages)
        for line in part.changes:
            if final[_changed(line)] is line:  # importing again must not restore an earlier text
                await _change(app, line)
        progress(len(part.moves) + len(part.messages) + len(part.changes))
    if run is not None:
        await end_import(app.database, run, app.clock.now())
    return HistoryResult(messages + skipped.total(), new, messages - new, dict(skipped))


async def _private_rooms(app: App, lines: Sequence[Line]) -> set[tuple[str, str]]:
    """The workspaces and rooms of events that some event calls private, or that are stored as private. A private thread
    is a room of its own."""
    events = [line.event for line in lines if isinstance(line.event, MessageEvent | MoveEvent)]
    places = {(event.workspace, room) for event in events for room in _rooms(event)}
    private = {(event.workspace, _rooms(event)[-1]) for event in events if event.private and event.room is not None}
    for name in {name for name, _ in places}:
        workspace = app.directory.workspace(PLATFORM, name)
        async with app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
            for at, room in places:
                found = await tx.conversations.get(room_id(workspace, room)) if at == name else None
                if found is not None and found.private:
                    private.add((at, room))
    return private


def _rooms(event: MessageEvent | MoveEvent) -> list[str]:
    """The rooms that an event may be in: its room, and for a thread also the room that it is if it is private."""
    if event.room is None:
        return []
    room = external(event.room)
    if event.thread is None:
        return [room]
    return [room, private_thread(Place(ConversationKind.THREAD, room, event.thread)).name]


def _into_room(
    lines: Sequence[Line], room: str, private: Container[tuple[str, str]], skipped: Counter[str]
) -> list[Line]:
    """The events of rooms, moved into one room. Those of DMs, sessions, other private rooms and their private threads
    are left out; their messages are counted in `skipped`."""
    kept = []
    for line in lines:
        event = line.event
        if not isinstance(event, MessageEvent | MoveEvent):
            kept.append(line)
            continue
        rooms = _rooms(event)
        here = external(room) in rooms
        if not rooms or (not here and any((event.workspace, each) in private for each in rooms)):
            if isinstance(event, MessageEvent):
                skipped[MIXED if rooms else APART] += 1
            continue
        moved = {"room": room} | ({} if here else {"private": None})
        kept.append(Line(line.file, line.number, event.model_copy(update=moved)))
    return kept


def _check(app: App, lines: Sequence[Line]) -> None:
    for line in lines:
        if isinstance(line.event, MessageEvent):
            try:
                workspace = app.directory.workspace(PLATFORM, line.event.workspace)
                agent_at(app, workspace, line.event.place())
                validate_message(_incoming(workspace, line.event), app.directory.agents(workspace.tenant_id))
            except BadInput as error:
                raise BadInput(f"{line.file}:{line.number}: {error}") from None


def _changed(line: Line) -> tuple[str, str]:
    """The workspace and the id of the message that an event changes."""
    return line.event.workspace, str(getattr(line.event, "id", ""))


@dataclass(frozen=True, slots=True)
class _Part:
    """Events that are stored together: who joins and leaves, then what is said, of one workspace; or changes of it."""

    moves: list[MoveEvent] = field(default_factory=list)
    messages: list[MessageEvent] = field(default_factory=list)
    changes: list[Line] = field(default_factory=list)

    def fits(self, event: MessageEvent | MoveEvent) -> bool:
        """Whether an event may be stored with these, at most BATCH_SIZE messages or moves."""
        full = len(self.messages) >= BATCH_SIZE or len(self.moves) >= BATCH_SIZE
        first = next(iter((*self.moves[:1], *self.messages[:1])), event)
        return not full and not self.changes and first.workspace == event.workspace


def _parts(lines: Sequence[Line]) -> Iterator[_Part]:
    """The events in parts, in an order in which they change the same as in their own.

    A transaction takes as long for one message as for many, and in a log of a channel somebody joins or leaves after
    every few lines. So who joins or leaves goes before the messages of others, except where that could change
    something: who spoke in this part has already been where they move, the first who joins a room becomes its admin,
    and what states that a room is private or public holds from there on.
    """
    part, senders, joined, stated = _Part(), set[str](), set[tuple[str, str]](), False
    for line in lines:
        event = line.event
        if isinstance(event, MessageEvent):
            fits = part.fits(event)
        elif isinstance(event, MoveEvent):
            first = (event.workspace, event.room_id()) not in joined
            stated = stated or event.private is not None
            ahead = not first and not stated and external(event.user) not in senders
            fits = part.fits(event) and (ahead or not part.messages)
        else:
            fits = not part.moves and not part.messages
        if not fits:
            yield part
            part, senders, stated = _Part(), set(), False
        if isinstance(event, MessageEvent):
            part.messages.append(event)
            senders.add(external(event.user))
            stated = stated or event.private is not None
        elif isinstance(event, MoveEvent):
            part.moves.append(event)
            if event.type == "join":
                joined.add((event.workspace, event.room_id()))
        else:
            part.changes.append(line)
    yield part


def _incoming(workspace: Workspace, event: MessageEvent) -> Incoming:
    at = event.at or datetime.min.replace(tzinfo=UTC)  # read_history has refused messages without a time
    return incoming(
        workspace,
        event.place(),
        event.user,
        event.text,
        at,
        id=event.id,
        name=event.name,
        attachments=event.files(),
    )


async def _store(app: App, events: Sequence[MessageEvent], run: ImportRun | None) -> int:
    workspace = app.directory.workspace(PLATFORM, events[0].workspace)
    batch = [_incoming(workspace, event) for event in events]
    return len((await app.receive(workspace, batch, answer=False, run=run)).new)


async def _change(app: App, line: Line) -> None:
    event = line.event
    if not isinstance(event, EditEvent | DeleteEvent):
        return
    workspace = app.directory.workspace(PLATFORM, event.workspace)
    text = event.text if isinstance(event, EditEvent) else None
    async with app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
        found = await tx.messages.find_by_external_id(workspace.platform, workspace.name, event.id)
        stored = await tx.messages.get(found[0][0]) if len(found) == 1 else None
    if not found or (stored is not None and text is not None and message_text(stored.text) == message_text(text)):
        return  # imported before: the message is erased, or has this text; or it was never imported
    try:
        await change_message(app, workspace, event.id, text)
    except BadInput as error:
        raise BadInput(f"{line.file}:{line.number}: {error}") from None
