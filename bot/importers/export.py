"""Loads the export of a chat platform: as its live door would have stored the same, and answering nothing.

A message, a room and a person get the very ids that the door gives them, so what is loaded and what the door tells
are one. What was said in private goes where it was said, or nowhere.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Final, Protocol

from composer.app import App
from composer.errors import BadInput
from composer.ingest.rooms import record_membership, set_room_private
from composer.ingest.validation import validate_message
from composer.model import ConversationKind, Incoming
from composer.repositories.conversations import RoomState
from composer.workspace import Workspace, room_id

SHOWN: Final = 5  # names in a sentence
BATCH: Final = 1_000  # messages a transaction
NOTICES: Final = "notices that nobody says (joining, pinning and the like)"
BETWEEN_PEOPLE: Final = "in private conversations that are not the agent's"
OWN: Final = "the agent's own"
OPENED: Final = "said while a room was private that is open now"
MIXED: Final = "in private rooms, which are not mixed into another"
UNWANTED: Final = "of people or rooms that want nothing kept"
UNKNOWN_PLACE: Final = "in places of which the export does not say what they are"
UNKNOWN_HOME: Final = "private messages of people whose workspace is not known (--workspace names it)"


SLACK: Final = "slack-export"
DISCORD: Final = "discord-export"


@dataclass(frozen=True, slots=True)
class Wanted:
    """How exports are to be loaded: into which workspace and room, who the agent was there, and which Discord
    channels everyone may view."""

    workspace: str | None = None
    room: str | None = None
    bot: str | None = None
    public: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Room:
    """A room of an export. `private` None: the export does not say. `members` None: it does not say that either.
    `opened`: whoever loads it says of this very room that everyone may view it."""

    id: str
    title: str
    private: bool | None
    members: tuple[str, ...] | None = None
    opened: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A message of an export, at a place in a file (`where`), or why it is not loaded (`why`)."""

    where: str
    incoming: Incoming | None = None
    why: str = ""


class Export(Protocol):
    """The export of one workspace of a platform."""

    @property
    def platform(self) -> str:
        """Whose export it is."""
        ...

    @property
    def rooms(self) -> Mapping[str, Room]:
        """The rooms by their ids, as they were when the export was made."""
        ...

    @property
    def people(self) -> Mapping[str, str]:
        """Names by ids, of those that the export lists."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Everything that is in it, room by room, oldest first. Raises BadInput, naming file and place."""
        ...


@dataclass(slots=True)
class Survey:
    """What a first reading found, before anything is stored."""

    read: int = 0
    loadable: int = 0
    workspaces: set[str] = field(default_factory=set)
    spoke: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # by workspace and room
    until: datetime | None = None


@dataclass(slots=True)
class Loaded:
    """What became of an export. `skipped` counts by reason; `closed` are rooms that were taken to be private, since
    nothing says that they are not."""

    read: int = 0
    new: int = 0
    known: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    rooms: set[tuple[str, str]] = field(default_factory=set)
    threads: set[tuple[str, str]] = field(default_factory=set)
    people: set[tuple[str, str]] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)

    def sentence(self) -> str:
        """The summary in one line."""
        skipped = "; ".join(f"{count:,} {why}" for why, count in self.skipped.most_common())
        where = f"{_count(len(self.rooms), 'room')}, {_count(len(self.threads), 'thread')}"
        return (
            f"{_count(self.read, 'message')} read, of {_count(len(self.people), 'person', 'people')} in {where}: "
            f"{self.new:,} new, {self.known:,} known already, {self.skipped.total():,} skipped"
            f"{f' ({skipped})' if skipped else ''}."
        )

    def as_json(self) -> dict[str, object]:
        """The summary for programs."""
        counts = {"rooms": len(self.rooms), "threads": len(self.threads), "people": len(self.people)}
        return {"read": self.read, "new": self.new, "known": self.known, **counts, "skipped": dict(self.skipped)} | (
            {"taken_to_be_private": sorted(self.closed)} if self.closed else {}
        )

    def warning(self) -> str:
        """What a person should know of the rooms that were taken to be private."""
        names = ", ".join(f"#{name}" for name in sorted(self.closed)[:SHOWN])
        more = len(self.closed) - SHOWN
        return (
            f"Nothing says who may view {names}{f' and {more:,} more' if more > 0 else ''}: taken to be private, for "
            "those who spoke there, and not shown in the open later. Set NEXUS_DISCORD_TOKEN, or name the open ones "
            "with --public, before you load them."
        )


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def survey(export: Export, progress: Callable[[int], None] = lambda count: None) -> Survey:
    """Read an export as a whole without storing anything. Raises BadInput, naming file and place."""
    found = Survey()
    for entry in export.entries():
        found.read += 1
        if found.read % BATCH == 0:
            progress(BATCH)
        if entry.incoming is None:
            continue
        try:
            message = validate_message(entry.incoming)
        except BadInput as error:
            raise BadInput(f"{entry.where}: {error}") from None
        found.loadable += 1
        found.workspaces.add(message.workspace)
        found.until = max(message.at, found.until or message.at)
        if message.place.kind is not ConversationKind.DM:
            found.spoke.setdefault((message.workspace, message.place.name), set()).add(message.user)
    progress(found.read % BATCH)
    return found


async def load_export(app: App, export: Export, found: Survey, progress: Callable[[int], None]) -> Loaded:
    """Store an export that `survey` has read, in its order, in batches; `progress` is told how many were done.

    What is stored already, or was erased, changes nothing. Raises BadInput when a room is said to be open that is filed
    as private: then nothing was stored. Raises Unavailable when the database is away: then the same may be loaded
    again.
    """
    done = Loaded()
    here = {name: app.directory.workspace(export.platform, name) for name in sorted(found.workspaces)}
    loading = {name: _Loading(app, export, workspace, done) for name, workspace in here.items()}
    for each in loading.values():
        await each.look(found)
    for each in loading.values():
        await each.prepare(found)
        await each.part(found)  # before, so that nobody is let in if this is cut off; after, for whoever spoke last
    entries = export.entries()
    while part := list(islice(entries, BATCH)):
        done.read += len(part)
        done.skipped.update(entry.why for entry in part if entry.incoming is None)
        batches: dict[str, list[Incoming]] = {}
        for entry in part:
            if entry.incoming is not None:
                batches.setdefault(entry.incoming.workspace, []).append(entry.incoming)
        for name, batch in batches.items():
            await loading[name].store(batch)
        progress(len(part))
    for each in loading.values():
        await each.part(found)
    return done


class _Loading:
    """The part of an export that goes into one workspace."""

    def __init__(self, app: App, export: Export, workspace: Workspace, done: Loaded) -> None:
        self._app = app
        self._export = export
        self._workspace = workspace
        self._done = done
        self._private: dict[str, bool] = {}
        self._states: dict[str, RoomState] = {}

    def _names(self, found: Survey) -> list[str]:
        here = (room for workspace, room in found.spoke if workspace == self._workspace.name)
        return sorted(room for room in here if room in self._export.rooms)

    async def look(self, found: Survey) -> None:
        """How closed the rooms are that are known already. Raises BadInput for one that can't be opened: what was filed
        in private stays so, and nobody's word opens it afterwards."""
        ids = {name: room_id(self._workspace, name) for name in self._names(found)}
        async with self._app.database.transaction(self._workspace.tenant_id, snapshot=True) as tx:
            states = await tx.conversations.room_states(list(ids.values()))
        self._states = {name: states[id] for name, id in ids.items() if id in states}
        for name, state in self._states.items():
            room = self._export.rooms[name]
            if room.opened and state.private:
                raise BadInput(
                    f"#{room.title or name} is filed as private, and what was filed in private stays so: --public "
                    "can't open it. If an earlier import took it to be private by mistake, restore a backup from "
                    "before that (nexus restore) and import it again with --public; docs/import.md says more."
                )

    async def prepare(self, found: Survey) -> None:
        """Make the rooms, as closed as they are, and let their members in, before anything is filed there."""
        names = self._names(found)
        agents, now = self._app.directory.agents(self._workspace.tenant_id), self._app.clock.now()
        for name in names:
            room, state = self._export.rooms[name], self._states.get(name)
            if state is None:
                self._private[name] = room.private is not False
                if room.private is None:
                    self._done.closed.add(room.title or name)
                private = self._private[name]
                await set_room_private(self._app.database, self._workspace, agents, name, private, now, create=True)
            else:
                self._private[name] = state.private
            if self._private[name]:
                await self._move(name, room.members or (), found.until or now, joined=True)

    async def part(self, found: Survey) -> None:
        """Who spoke in a private room and is not in it any more has left it, whatever they are about to say there."""
        for name, private in self._private.items():
            members = self._export.rooms[name].members
            if private and members is not None and found.until is not None:
                left = sorted(found.spoke[self._workspace.name, name] - set(members))
                await self._move(name, left, found.until, joined=False)

    async def _move(self, room: str, users: Sequence[str], at: datetime, *, joined: bool) -> None:
        agents = self._app.directory.agents(self._workspace.tenant_id)
        async with self._app.database.transaction(self._workspace.tenant_id) as tx:
            for user in users:
                name = self._export.people.get(user, user)
                await record_membership(tx, self._workspace, agents, room, user, name, joined=joined, now=at)

    async def store(self, batch: Sequence[Incoming]) -> None:
        """Store some messages, each where it was said."""
        messages = [filed for message in batch if (filed := self._filed(message)) is not None]
        self._done.skipped[OPENED] += len(batch) - len(messages)
        self._done.skipped += Counter()  # without zeros
        if not messages:
            return
        received = await self._app.receive(self._workspace, messages, answer=False)
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

    def _filed(self, message: Incoming) -> Incoming | None:
        """The message with the privacy of its room; None if it was said in private and everyone would read it now.

        Said again with each message of a private room: if that is opened meanwhile, what follows closes it again.
        """
        place = message.place
        if place.kind is ConversationKind.DM or place.name not in self._private:
            return message
        if self._private[place.name]:
            return replace(message, place=replace(place, private=True))
        state = self._states.get(place.name)
        if state is not None:
            closed_then = self._export.rooms[place.name].private is True
            if closed_then or (state.reopened and (state.since is None or message.at < state.since)):
                return None
        return message
