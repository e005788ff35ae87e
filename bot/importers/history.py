"""`nexus import`: history from files, through the same receive as everything else, but answering nothing."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby, islice
from pathlib import Path
from typing import Final

from bot.console.conversations import agent_at
from bot.console.play import change_message
from bot.console.script import (
    PLATFORM,
    DeleteEvent,
    EditEvent,
    Line,
    MessageEvent,
    MoveEvent,
    external,
    incoming,
    read_script,
)
from composer.app import App
from composer.errors import BadInput
from composer.ingest.rooms import record_membership
from composer.ingest.validation import storable_text, validate_message
from composer.model import Incoming
from composer.workspace import Workspace

BATCH: Final = 1_000  # messages a transaction
_SAID = re.compile(r"^\[(\d\d):(\d\d)(?::(\d\d))?\] <([^>]+)> ?(.*)$")
_DID = re.compile(r"^\[(\d\d):(\d\d)(?::(\d\d))?\] +\* (\S+) ?(.*)$")
_MOVED = re.compile(r"^=== (\S+) (?:\[[^\]]*\] +)?has (joined|left|quit)\b")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did."""

    read: int
    new: int
    skipped: int


def read_history(path: Path, format: str, workspace: str | None, room: str | None) -> list[Line]:
    """The events of a file. `room` overrides the room of every message; `workspace` likewise.

    Raises BadInput, naming file and line, before anything is stored.
    """
    lines = _irc(path, room or path.stem) if format == "irc" else _jsonl(path)
    return [Line(line.file, line.number, _moved(line, workspace, room)) for line in lines]


def _moved(line: Line, workspace: str | None, room: str | None) -> MessageEvent | EditEvent | DeleteEvent | MoveEvent:
    event = line.event
    if not isinstance(event, MessageEvent | EditEvent | DeleteEvent | MoveEvent):
        raise BadInput(f"{line.file}:{line.number}: history has no '{event.type}'; use nexus play for scripts.")
    changes: dict[str, object] = {} if workspace is None else {"workspace": workspace}
    if room is not None and isinstance(event, MessageEvent | MoveEvent):
        changes["room"] = room
        if isinstance(event, MessageEvent):
            changes |= {"dm": None, "session": None}
    if isinstance(event, MessageEvent):
        if event.at is None:
            raise BadInput(f"{line.file}:{line.number}: history needs a time: set `at`.")
        changes["id"] = event.id or f"{Path(line.file).stem}:{line.number}"
    return event.model_copy(update=changes)


def _jsonl(path: Path) -> list[Line]:
    return read_script(path)


def _irc(path: Path, room: str) -> list[Line]:
    """A log of lines `[12:18] <nick> text`. Its day stands in the file's name (2004-11-15…), else it is the
    day of the file; a clock that goes back has passed midnight. A message's id is the file's name up to the
    first dot and its line, counted from 0, as annotations of such logs count."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
        found = _DATE.search(path.name)
        day = date(*map(int, found.groups())) if found else datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise BadInput(f"{path}: its name holds no real date ({error}).") from error
    now = datetime(day.year, day.month, day.day, tzinfo=UTC)
    lines: list[Line] = []
    for number, line in enumerate(text.split("\n")):
        said = _SAID.match(line) or _DID.match(line)
        moved = _MOVED.match(line)
        if said:
            hour, minute, second, nick, words = said.groups()
            if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
                raise BadInput(f"{path}:{number + 1}: there is no such time of day; expected 00:00 to 23:59.")
            now = _onward(now, int(hour), int(minute), int(second or 0))
            if words.strip():
                id = f"{path.name.split('.')[0]}:{number}"
                event = MessageEvent(type="message", at=now, room=room, user=nick, id=id, text=words)
                lines.append(Line(str(path), number + 1, event))
        elif moved:
            kind = "join" if moved[2] == "joined" else "leave"
            lines.append(Line(str(path), number + 1, MoveEvent(type=kind, at=now, room=room, user=moved[1])))
        elif line.strip() and not line.startswith("==="):
            raise BadInput(f"{path}:{number + 1}: this is no line of an IRC log; expected [hh:mm] <nick> text.")
    return lines


def _onward(now: datetime, hour: int, minute: int, second: int) -> datetime:
    then = now.replace(hour=hour, minute=minute, second=second)
    return then + timedelta(days=1) if then < now - timedelta(hours=12) else then


async def import_history(app: App, lines: Sequence[Line], progress: Callable[[int], None]) -> Imported:
    """Store the events in their order, messages in batches; `progress` is told how many events were done.

    What is stored already, or was erased, changes nothing. Raises BadInput, naming file and line, before anything
    is stored.
    """
    _check(app, lines)
    new = messages = 0
    final = {_changed(line): line for line in lines if isinstance(line.event, EditEvent | DeleteEvent)}
    for is_message, group in groupby(lines, key=lambda line: isinstance(line.event, MessageEvent)):
        if is_message:
            for batch in _batches(group):
                added = await _store(app, batch)
                new, messages = new + added, messages + len(batch)
                progress(len(batch))
        else:
            for line in group:
                if isinstance(line.event, MoveEvent):
                    await _move(app, line.event)
                elif final[_changed(line)] is line:  # an earlier wording must not come back when this is imported again
                    await _change(app, line)
                progress(1)
    return Imported(messages, new, messages - new)


def _check(app: App, lines: Sequence[Line]) -> None:
    for line in lines:
        if isinstance(line.event, MessageEvent):
            try:
                workspace = app.directory.workspace(PLATFORM, line.event.workspace)
                agent_at(app, workspace, line.event.place())
                validate_message(_incoming(workspace, line.event))
            except BadInput as error:
                raise BadInput(f"{line.file}:{line.number}: {error}") from None


def _changed(line: Line) -> tuple[str, str]:
    """The workspace and id of the message that an event is about."""
    return line.event.workspace, str(getattr(line.event, "id", ""))


def _batches(lines: Iterator[Line]) -> Iterator[list[MessageEvent]]:
    """Runs of one workspace, of at most BATCH messages."""
    events = (line.event for line in lines if isinstance(line.event, MessageEvent))
    for _, group in groupby(events, key=lambda event: event.workspace):
        while batch := list(islice(group, BATCH)):
            yield batch


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
        attachments=event.attachments,
    )


async def _store(app: App, events: Sequence[MessageEvent]) -> int:
    workspace = app.directory.workspace(PLATFORM, events[0].workspace)
    batch = [_incoming(workspace, event) for event in events]
    return len((await app.receive(workspace, batch, answer=False)).new)


async def _change(app: App, line: Line) -> None:
    event = line.event
    if not isinstance(event, EditEvent | DeleteEvent):
        return
    workspace = app.directory.workspace(PLATFORM, event.workspace)
    text = event.text if isinstance(event, EditEvent) else None
    async with app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
        found = await tx.messages.find_by_external_id(workspace.platform, workspace.name, event.id)
        stored = await tx.messages.get(found[0][0]) if len(found) == 1 else None
    if not found or (stored is not None and text is not None and stored[0].text == storable_text(text)):
        return  # erased, or as it is to be: this was imported before, or its message never was
    try:
        await change_message(app, workspace, event.id, text)
    except BadInput as error:
        raise BadInput(f"{line.file}:{line.number}: {error}") from None


async def _move(app: App, event: MoveEvent) -> None:
    workspace = app.directory.workspace(PLATFORM, event.workspace)
    agents, joined = app.directory.agents(workspace.tenant_id), event.type == "join"
    async with app.database.transaction(workspace.tenant_id) as tx:
        user, now = external(event.user), event.at or app.clock.now()
        room = external(event.room)
        await record_membership(tx, workspace, agents, room, user, event.user, joined=joined, now=now)
