"""Loads history from files of events or IRC logs, through the same pipeline as every adapter, without answering."""

import re
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bot.importers.detection import HEAD_BYTES, format_of_head
from bot.importers.export import MIXED
from bot.importers.file_names import is_junk
from bot.importers.history_privacy import with_private_rooms
from bot.importers.irc import is_irc_line, read_irc_log, room_of_log
from bot.script.changes import apply_memberships, change_message
from bot.script.events import DeleteEvent, EditEvent, Line, MessageEvent, MoveEvent, read_script
from bot.script.places import agent_at, external, incoming, room_of
from composer.app import App
from composer.errors import BadInput
from composer.ingest.imports import end_import
from composer.ingest.validation import message_text, validate_message
from composer.model import CONSOLE, ConversationKind, Incoming, Place, Workspace, private_thread, room_id
from composer.repositories.imports import ImportRun

_IS_DAY: Final = re.compile(r"\A[\d_.-]{6,20}")
EXPORTS: Final = (
    "For an export leave out --format, or name it: --format slack-export, --format discord-export or another "
    "(nexus import --help)."
)
MAX_FIRST_LINE: Final = 1_000  # bytes, by which a format is known
IMPORT_BATCH: Final = 1_000  # messages in one transaction
APART: Final = "in DMs and sessions, which --room does not load into a room"


@dataclass(frozen=True, slots=True)
class HistoryResult:
    """How many messages an import read, stored, knew already, and skipped, by the reason."""

    read: int
    new: int
    known: int
    skipped: Mapping[str, int] = field(default_factory=dict)


def _ignore(_: str) -> None:
    """Drop a sentence that nobody wants."""


def read_history(
    path: Path, format: str, workspace: str | None, room: str | None, odd: Callable[[str], None] = _ignore
) -> list[Line]:
    """The events of a file, or of all of that format in a folder. `workspace`, where given, replaces that of every
    event; `room` is the room of an IRC log. `odd` receives a sentence for each line of a log and each file of a folder
    that is left out, with file and line.

    Raises BadInput, with file and line, before anything is stored.
    """
    if room is not None:
        room_of(room)
    if path.is_dir():
        return _read_folder(path, format, workspace, room, odd)
    _check_format(path, format)
    lines = read_irc_log(path, room or room_of_log(path), odd) if format == "irc" else read_script(path)
    return [Line(line.file, line.number, _placed(line, workspace)) for line in lines]


def _read_folder(
    folder: Path, format: str, workspace: str | None, room: str | None, odd: Callable[[str], None]
) -> list[Line]:
    """The events of the files in a folder, as of a program that writes one for each day. An IRC log whose name is a day
    is about the room that its own folder is named after. Where files of one name are about one room, as of a channel in
    two networks, the names of their folders tell their messages apart."""
    lines, wrong, others = list[Line](), list[str](), list[str]()
    known: dict[tuple[str, str | None, str | None], MessageEvent] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_symlink() or not path.is_file() or is_junk(name.as_posix()):
            continue
        with path.open("rb") as file:
            found = format_of_head(file.read(HEAD_BYTES))
        if found != format:
            others.append(f"{path}: this is not a file of the format {format}.")
            continue
        own = name.parent.name if room_of_log(path) == path.stem and _IS_DAY.fullmatch(path.stem) else ""
        try:
            lines += _told_apart(read_history(path, format, workspace, room or own or None, odd), name.parent, known)
        except BadInput as error:
            wrong.append(str(error))
    if not lines:
        raise BadInput(wrong[0] if wrong else f"{folder}: no file here is of the format {format}. {EXPORTS}")
    for sentence in (*wrong, *others):
        odd(sentence)
    return lines


def _told_apart(
    lines: Sequence[Line], folder: Path, known: dict[tuple[str, str | None, str | None], MessageEvent]
) -> Iterator[Line]:
    """The lines of a file. A message whose id was made from its file's name gets the name of the folder before it, if
    another message of the room has that id; `known` are those of the files before, and becomes those of this one too.
    """
    for line in lines:
        event = line.event
        if isinstance(event, MessageEvent):
            first = known.setdefault((event.workspace, event.room, event.id), event)
            made_of, file = (event.id or "").rpartition(":")[0], Path(line.file)
            made = made_of in (file.name, file.stem, file.name.partition(".")[0])
            if made and (first.at, first.user, first.text) != (event.at, event.user, event.text):
                named = event.model_copy(update={"id": f"{folder.as_posix()}/{event.id}"})
                line = Line(line.file, line.number, named)
        yield line


def _check_format(path: Path, format: str) -> None:
    """Raise BadInput for a file that is plainly of another format, and name that."""
    if zipfile.is_zipfile(path):
        raise BadInput(f"{path} is a zip file: unpack logs and JSON lines, and give the folder. {EXPORTS}")
    if format == "irc" or not path.is_file():
        return
    with path.open("rb") as file:
        first = file.readline(MAX_FIRST_LINE).decode(errors="replace").rstrip()
    if is_irc_line(first):
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
    lines = with_private_rooms(lines, set(private))
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
        workspace = app.directory.workspace(CONSOLE, name)
        async with app.database.transaction(workspace.tenant_id, "read") as tx:
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
                workspace = app.directory.workspace(CONSOLE, line.event.workspace)
                agent_at(app, workspace, line.event.place())
                validate_message(_incoming(workspace, line.event), app.directory.agents(workspace.tenant_id))
            except BadInput as error:
                raise BadInput(f"{line.file}:{line.number}: {error}") from None


def _changed(line: Line) -> tuple[str, str]:
    """The workspace and the id of the message that an event changes."""
    return line.event.workspace, str(getattr(line.event, "id", ""))


@dataclass(frozen=True, slots=True)
class _EventBatch:
    """Events that are stored together: who joins and leaves, then what is said, of one workspace; or changes of it."""

    moves: list[MoveEvent] = field(default_factory=list)
    messages: list[MessageEvent] = field(default_factory=list)
    changes: list[Line] = field(default_factory=list)

    def fits(self, event: MessageEvent | MoveEvent) -> bool:
        """Whether an event may be stored with these, at most BATCH_SIZE messages or moves."""
        full = len(self.messages) >= IMPORT_BATCH or len(self.moves) >= IMPORT_BATCH
        first = next(iter((*self.moves[:1], *self.messages[:1])), event)
        return not full and not self.changes and first.workspace == event.workspace


def _parts(lines: Sequence[Line]) -> Iterator[_EventBatch]:
    """The events in parts, in an order in which they change the same as in their own.

    A transaction takes as long for one message as for many, and in a log of a channel somebody joins or leaves after
    every few lines. So who joins or leaves goes before the messages of others, except where that could change
    something: who spoke in this part has already been where they move, the first who joins a room becomes its admin,
    and what states that a room is private or public holds from there on.
    """
    part, senders, joined, stated = _EventBatch(), set[str](), set[tuple[str, str]](), False
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
            part, senders, stated = _EventBatch(), set(), False
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
    workspace = app.directory.workspace(CONSOLE, events[0].workspace)
    batch = [_incoming(workspace, event) for event in events]
    return len((await app.receive(workspace, batch, answer=False, run=run)).new)


async def _change(app: App, line: Line) -> None:
    event = line.event
    if not isinstance(event, EditEvent | DeleteEvent):
        return
    workspace = app.directory.workspace(CONSOLE, event.workspace)
    text = event.text if isinstance(event, EditEvent) else None
    async with app.database.transaction(workspace.tenant_id, "read") as tx:
        found = await tx.messages.find_by_external_id(workspace.platform, workspace.name, event.id)
        stored = await tx.messages.get(found[0][0]) if len(found) == 1 else None
    if not found or (stored is not None and text is not None and message_text(stored.text) == message_text(text)):
        return  # imported before: the message is erased, or has this text; or it was never imported
    try:
        await change_message(app, workspace, event.id, text)
    except BadInput as error:
        raise BadInput(f"{line.file}:{line.number}: {error}") from None
