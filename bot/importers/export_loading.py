"""Loads the export of a chat platform as its live adapter would have stored it, without answering.

Messages, rooms and people get the ids that the adapter gives them, so that both mean the same rows. What was said in
private is stored where it was said, or not at all.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from bot.importers.export import (
    FAILURES,
    MAX_LISTED_NAMES,
    NOT_PUBLIC,
    ODD,
    PRIVATE_TIME,
    UNWANTED,
    LeftOut,
    MessageOfExport,
    PlatformExport,
    RoomOfExport,
    odd_message,
    short_list,
)
from composer.app import App
from composer.errors import BadInput
from composer.ingest.imports import begin_import, end_import
from composer.ingest.rooms import record_membership, rooms_with_later_ids, set_room_private
from composer.ingest.validation import validate_message
from composer.model import ConversationKind, Incoming, Workspace, message_id, room_id
from composer.ports.documents import DocumentReader
from composer.repositories.conversations import RoomState
from composer.repositories.imports import ImportRun

LOADING_BATCH: Final = 1_000  # messages in one transaction
MAX_EXPORT_AHEAD: Final = timedelta(days=2)  # of an export's messages before our clock


@dataclass(slots=True)
class Survey:
    """The result of a first reading, before anything is stored. `skipped` counts by reason; `odd` says of the first
    messages that can't be read why; `failed` are the names of rooms with such messages, `fine` of those with others."""

    read: int = 0
    loadable: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    odd: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    fine: set[str] = field(default_factory=set)
    workspaces: set[str] = field(default_factory=set)
    authors: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # by workspace and room
    latest_at: datetime | None = None
    latest_position: str = ""

    @property
    def unreadable(self) -> str:
        """Why no message of an export can be read; "" if one can."""
        return self.odd[0] if self.odd and not self.fine else ""

    def nothing(self, where: str) -> str:
        """Why nothing of an export can be loaded; "" if something can."""
        if self.loadable:
            return ""
        if not self.read:
            return f"{where}: there is no message in it. docs/import.md says which files an import takes."
        skipped = "; ".join(f"{count:,} {reason}" for reason, count in self.skipped.most_common())
        return f"{where}: none of its {_count(self.read, 'message')} can be imported: {skipped}."

    def lost(self) -> str:
        """The sentence about rooms that have messages of which none could be imported; "" if there are none."""
        names = sorted(self.failed - self.fine - {""})
        if not names:
            return ""
        listed = short_list([f"#{name}" for name in names])
        return f"Nothing of {listed} was imported, though the export has messages there: see what was skipped, and why."

    def with_rooms(self, names: Mapping[str, str]) -> "Survey":
        """The same with other names of some rooms."""
        authors: dict[tuple[str, str], set[str]] = {}
        for (workspace, room), people in self.authors.items():
            authors.setdefault((workspace, names.get(room, room)), set()).update(people)
        return replace(self, authors=authors)


@dataclass(slots=True)
class ImportResult:
    """The result of loading an export. `skipped` counts by reason; `assumed_private` are rooms that were taken to be
    private because nothing says who may view them."""

    read: int = 0
    new: int = 0
    known: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    rooms: set[tuple[str, str]] = field(default_factory=set)
    threads: set[tuple[str, str]] = field(default_factory=set)
    people: set[tuple[str, str]] = field(default_factory=set)
    assumed_private: set[str] = field(default_factory=set)
    left_out: LeftOut = field(default_factory=LeftOut)
    odd: list[str] = field(default_factory=list)

    def sentence(self) -> str:
        """The result as one sentence."""
        skipped = "; ".join(f"{count:,} {reason}" for reason, count in self.skipped.most_common())
        files = self.left_out.files
        left_out = f" Left out: {_count(files, 'file')} without messages." if files else ""
        places = f"{_count(len(self.rooms), 'room')}, {_count(len(self.threads), 'thread')}"
        return (
            f"{_count(self.read, 'message')} read, of {_count(len(self.people), 'person', 'people')} in {places}: "
            f"{self.new:,} new, {self.known:,} known already, {self.skipped.total():,} skipped"
            f"{f' ({skipped})' if skipped else ''}.{left_out}"
        )

    def odd_sentence(self) -> str:
        """What could not be read, the first of it by file and position; "" if all could."""
        count = self.skipped[ODD] + len(self.left_out.odd)
        more = f" And {count - len(self.odd):,} more." if count > len(self.odd) else ""
        return f"Left out: {' '.join(self.odd)}{more}" if self.odd else ""

    def as_json(self) -> dict[str, object]:
        """The result as JSON."""
        counts = {"rooms": len(self.rooms), "threads": len(self.threads), "people": len(self.people)}
        more = {
            "taken_to_be_private": sorted(self.assumed_private),
            "files_without_messages": self.left_out.files,
            "odd": self.odd,
        }
        found = {"read": self.read, "new": self.new, "known": self.known, **counts, "skipped": dict(self.skipped)}
        return found | {key: value for key, value in more.items() if value}

    def warning(self, run: str) -> str:
        """A warning about the rooms that were taken to be private, with what to do. `run` is the id of this import."""
        undo = f"nexus import --undo {run}" if self.new else "undo the import that brought them (nexus import --list)"
        names = short_list([f"#{name}" for name in sorted(self.assumed_private)])
        return (
            f"It is unknown who may view {names}: taken to be private for good, readable only by those who spoke "
            f"there. If that is wrong: {undo}, then import it again with --public and the names of the public ones, or "
            "with NEXUS_DISCORD_TOKEN set."
        )


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def survey(
    export: PlatformExport,
    progress: Callable[[int], None] = lambda count: None,
    on_message: Callable[[Incoming], None] = lambda message: None,
) -> Survey:
    """Read an export as a whole without storing anything; `on_message` receives each message that can be loaded. Raises
    BadInput, with the file, for one that can't be opened."""
    found = Survey()
    for entry, message in _checked(export):
        found.read += 1
        if found.read % LOADING_BATCH == 0:
            progress(LOADING_BATCH)
        (found.failed if entry.reason in FAILURES else found.fine).add(entry.room)
        if message is None:
            found.skipped[entry.reason] += 1
            if entry.error and len(found.odd) < MAX_LISTED_NAMES:
                found.odd.append(entry.error)
            continue
        on_message(message)
        found.loadable += 1
        found.workspaces.add(message.workspace)
        if found.latest_at is None or message.at > found.latest_at:
            found.latest_at, found.latest_position = message.at, entry.position
        if message.place.kind is not ConversationKind.DM:
            found.authors.setdefault((message.workspace, message.place.name), set()).add(message.user)
    progress(found.read % LOADING_BATCH)
    return found


def _checked(export: PlatformExport) -> Iterator[tuple[MessageOfExport, Incoming | None]]:
    """All messages, with each that can be loaded as it will be stored. One that nobody can have sent is odd."""
    for entry in export.messages():
        if entry.incoming is None:
            yield entry, None
            continue
        try:
            yield entry, validate_message(entry.incoming, ())
        except BadInput as error:
            yield odd_message(error, entry.room, entry.position), None


async def load_export(
    app: App,
    export: PlatformExport,
    found: Survey,
    progress: Callable[[int], None],
    run: ImportRun | None = None,
) -> ImportResult:
    """Store an export that `survey` has read, in its order, in batches; `progress` receives how many more are done.
    With a `run` it can be undone.

    Messages that are stored already, or were erased, change nothing. Raises BadInput, before anything is stored, when
    a room that is stored as private is named as public, and for a message that is still to come. Raises Unavailable
    when the database is away: then the same export may be loaded again.
    """
    if found.latest_at is not None and found.latest_at > app.clock.now() + MAX_EXPORT_AHEAD:
        raise BadInput(  # the adapters read on after the latest message, and would miss all until then
            f"{found.latest_position}: the message is from {found.latest_at:%Y-%m-%d %H:%M} UTC, which is still to "
            "come: correct its time, or this machine's clock."
        )
    done = ImportResult(left_out=export.left_out, odd=export.left_out.odd[:MAX_LISTED_NAMES])
    workspaces = {name: app.directory.workspace(export.platform, name) for name in sorted(found.workspaces)}
    renamed = [room for each in workspaces.values() for room in await rooms_with_later_ids(app.database, each)]
    if renamed:
        names = {id: room.name for room in renamed for id in room.later_ids}
        export, found = _NamedAsStored(export, names), found.with_rooms(names)
    split = {room.name: room.stored_ids for room in renamed}
    loading = {name: _WorkspaceLoad(app, export, each, done, run, split) for name, each in workspaces.items()}
    for each in loading.values():
        await each.check_known_rooms(found)
    for each in loading.values():
        await each.make_rooms(found)
        await each.remove_former_members(found)  # first, so that an interrupted import lets nobody in
    entries = (entry for entry, _ in _checked(export))
    while part := await asyncio.to_thread(lambda: list(islice(entries, LOADING_BATCH))):
        done.read += len(part)
        done.skipped.update(entry.reason for entry in part if entry.incoming is None)
        done.odd += [entry.error for entry in part if entry.error][: MAX_LISTED_NAMES - len(done.odd)]
        batches: dict[str, list[Incoming]] = {}
        for entry in part:
            if entry.incoming is not None:
                read = await _with_texts(entry, entry.incoming, app.documents)
                batches.setdefault(read.workspace, []).append(read)
        for name, batch in batches.items():
            await loading[name].store(batch)
        progress(len(part))
    for each in loading.values():
        await each.remove_former_members(found)  # again, for those whose messages were just stored
    if run is not None:
        await end_import(app.database, run, app.clock.now())
    return done


async def _with_texts(entry: MessageOfExport, message: Incoming, reader: DocumentReader) -> Incoming:
    """The message with the texts of those of its files that lie in the export."""
    if not any(entry.files):
        return message
    pairs = zip(message.attachments, entry.files, strict=True)
    attached = [each if file is None else await file.read_by(reader, each) for each, file in pairs]
    return replace(message, attachments=tuple(attached))


class _NamedAsStored:
    """An export (a PlatformExport) with the names under which its rooms are stored: what was erased there is not stored
    again under another id."""

    def __init__(self, export: PlatformExport, names: Mapping[str, str]) -> None:
        self._export = export
        self._names = names
        self.platform = export.platform
        self.people = export.people
        self.rooms: Mapping[str, RoomOfExport] = {names.get(id, id): room for id, room in export.rooms.items()}

    @property
    def left_out(self) -> LeftOut:
        """What the export has beside messages."""
        return self._export.left_out

    def messages(self) -> Iterator[MessageOfExport]:
        """All messages."""
        for entry in self._export.messages():
            name = None if entry.incoming is None else self._names.get(entry.incoming.place.name)
            if entry.incoming is None or name is None:
                yield entry
            else:
                place = replace(entry.incoming.place, name=name)
                yield replace(entry, incoming=replace(entry.incoming, place=place))


class _WorkspaceLoad:
    """The part of an export that goes into one workspace."""

    def __init__(
        self,
        app: App,
        export: PlatformExport,
        workspace: Workspace,
        done: ImportResult,
        run: ImportRun | None,
        split: Mapping[str, Sequence[str]],
    ) -> None:
        """`split`: the later ids of rooms, by their names, under which something is stored itself."""
        self._app = app
        self._export = export
        self._workspace = workspace
        self._done = done
        self._run = run
        self._split = split
        self._private: dict[str, bool] = {}
        self._states: dict[str, RoomState] = {}

    def _names(self, found: Survey) -> list[str]:
        rooms = (room for workspace, room in found.authors if workspace == self._workspace.name)
        return sorted(room for room in rooms if room in self._export.rooms)

    async def check_known_rooms(self, found: Survey) -> None:
        """Read the privacy of the rooms that are known already. Raises BadInput for a private one that was named as
        public: what was stored in private stays private, whatever anyone says afterwards."""
        ids = {name: room_id(self._workspace, name) for name in self._names(found)}
        async with self._app.database.transaction(self._workspace.tenant_id, "read") as tx:
            states = await tx.conversations.room_states(list(ids.values()))
        self._states = {name: states[id] for name, id in ids.items() if id in states}
        for name, state in self._states.items():
            room = self._export.rooms[name]
            if room.named_public and state.private:
                raise BadInput(
                    f"#{room.title or name} is stored as private, and what was stored in private stays private: "
                    "--public can't open it. If an earlier import took it to be private by mistake, undo that "
                    "(nexus import --list) and import it again with --public; docs/import.md says more."
                )

    async def make_rooms(self, found: Survey) -> None:
        """Make the rooms with their privacy, and add their members, before anything is stored there."""
        names = self._names(found)
        agents, now = self._app.directory.agents(self._workspace.tenant_id), self._app.clock.now()
        for name in names:
            room, state = self._export.rooms[name], self._states.get(name)
            if state is None:
                self._private[name] = room.private is not False
                if room.private is None:
                    self._done.assumed_private.add(room.title or name)
                private = self._private[name]
                await set_room_private(
                    self._app.database, self._workspace, agents, name, private, now, create=True, run=self._run
                )
            else:
                self._private[name] = state.private
            if self._private[name]:
                await self._move(name, room.members or (), found.latest_at or now, joined=True)

    async def remove_former_members(self, found: Survey) -> None:
        """Remove from private rooms those who spoke there and are no longer members."""
        for name, private in self._private.items():
            members = self._export.rooms[name].members
            if private and members is not None and found.latest_at is not None:
                left = sorted(found.authors[self._workspace.name, name] - set(members))
                await self._move(name, left, found.latest_at, joined=False)

    async def _move(self, room: str, users: Sequence[str], at: datetime, *, joined: bool) -> None:
        agents = self._app.directory.agents(self._workspace.tenant_id)
        async with self._app.database.transaction(self._workspace.tenant_id) as tx:
            if self._run is not None:
                await begin_import(tx, self._workspace, agents, self._run, self._app.clock.now())
            for user in users:
                name = self._export.people.get(user, user)
                await record_membership(tx, self._workspace, agents, room, user, name, joined=joined, now=at)

    async def store(self, batch: Sequence[Incoming]) -> None:
        """Store messages, each with the privacy of its room; of what somebody uploaded, those in public rooms."""
        if self._run is not None and self._run.uploaded_by is not None:
            public = [each for each in batch if self._private.get(each.place.name) is False]
            self._done.skipped[NOT_PUBLIC] += len(batch) - len(public)
            batch = public
        messages = [admitted for message in batch if (admitted := self._with_privacy(message)) is not None]
        self._done.skipped[PRIVATE_TIME] += len(batch) - len(messages)
        self._done.skipped += Counter()  # drop zero counts
        read, messages = len(messages), await self._not_elsewhere(messages)
        self._done.known += read - len(messages)
        if not messages:
            return
        received = await self._app.receive(self._workspace, messages, answer=False, run=self._run)
        self._done.new += len(received.new)
        self._done.known += received.skipped - received.not_recorded
        if received.not_recorded:
            self._done.skipped[UNWANTED] += received.not_recorded
        for message in messages:
            place = message.place
            self._done.people.add((message.workspace, message.user))
            if place.kind is not ConversationKind.DM:
                self._done.rooms.add((message.workspace, place.name))
            if place.thread is not None:
                self._done.threads.add((place.name, place.thread))

    async def _not_elsewhere(self, messages: Sequence[Incoming]) -> list[Incoming]:
        """The messages without those that are stored, or were erased, under a later id of their room itself."""
        ids = [
            [message_id(room_id(self._workspace, other), each.id) for other in self._split.get(each.place.name, ())]
            for each in messages
        ]
        if not any(ids):
            return list(messages)
        async with self._app.database.transaction(self._workspace.tenant_id, "read") as tx:
            known = set(await tx.messages.find_known_ids([id for each in ids for id in each]))
        return [message for message, each in zip(messages, ids, strict=True) if known.isdisjoint(each)]

    def _with_privacy(self, message: Incoming) -> Incoming | None:
        """The message with the privacy of its room; None if it was written in private and everyone could read it now.

        Every message of a private room carries this: if the room is opened meanwhile, the next message closes it.
        """
        place = message.place
        if place.kind is ConversationKind.DM or place.name not in self._private:
            return message
        if self._private[place.name]:
            return replace(message, place=replace(place, private=True))
        state = self._states.get(place.name)
        if state is not None:
            was_private = self._export.rooms[place.name].private is True
            if was_private or (state.reopened and (state.since is None or message.at < state.since)):
                return None
        return message
