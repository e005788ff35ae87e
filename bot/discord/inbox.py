"""Stores what Discord tells of one guild, or of the DMs, in the order in which it was told.

Events wait here while history is read, so that what was missed comes before what comes now. An edit or a deletion
that arrives before its message is kept until that comes.
"""

import asyncio
import uuid
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

import structlog

from composer.app import App
from composer.errors import BadInput, NexusError, NotFound, Unavailable
from composer.ingest.changes import change, set_room_people, set_room_private, set_thread_archived, still_attached
from composer.model import Attachment, Incoming, Place, Turn
from composer.workspace import Workspace

logger = structlog.get_logger()

AT_ONCE: Final = 200  # messages in one transaction
REMEMBERED: Final = 10_000  # changes, and own questions
TRY_AGAIN: Final = 0.5  # seconds, doubled up to the next
LONGEST_PAUSE: Final = 15.0
V = TypeVar("V")


class Recent(OrderedDict[str, V]):
    """A mapping that keeps its latest entries only."""

    def note(self, key: str, value: V) -> None:
        """Keep one more, and drop the oldest where there are too many."""
        self[key] = value
        self.move_to_end(key)
        while len(self) > REMEMBERED:
            self.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Said:
    """A message. `home` is the channel of a public thread, and whether that is private. `answer` False: history, or
    said by a machine. `files` are its attachments, as they are being read."""

    incoming: Incoming
    answer: bool = True
    home: tuple[str, bool] | None = None
    files: "asyncio.Task[tuple[Attachment, ...]] | None" = None


@dataclass(frozen=True, slots=True)
class Edited:
    """A message has another text now; None: it is deleted. `user` is the other side of a DM, `files` are the addresses
    of what is still attached."""

    place: Place
    user: str
    id: str
    text: str | None
    mentions: tuple[str, ...] = ()
    at: datetime | None = None
    files: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Closed:
    """A channel was closed (`private`) or opened."""

    room: str
    private: bool


@dataclass(frozen=True, slots=True)
class Archived:
    """A channel's public thread was archived at a time, or (None) is open again."""

    room: str
    thread: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class People:
    """Who may view which channels now, and who may not."""

    rooms: dict[str, dict[str, bool]]


Told = Said | Edited | Closed | People | Archived
Item = Told | Callable[[], Awaitable[Sequence[Told]]]  # or what must be asked for before it is known


class Inbox:
    """The events of one guild, or of all DMs, one after another; messages in batches."""

    def __init__(
        self,
        app: App,
        workspace: Callable[[str], Awaitable[Workspace]],
        asked: Callable[[Incoming], None],
    ) -> None:
        """`workspace` is where a person's words belong; `asked` is told of each new message that will be answered."""
        self._app = app
        self._workspace = workspace
        self._asked = asked
        self._items: deque[Item] = deque()
        self._more = asyncio.Event()
        self._open = asyncio.Event()
        self._changed: Recent[Edited] = Recent()
        self._homes: dict[str, bool] = {}
        self._ended = False
        self.kept: Callable[[Workspace, Sequence[Incoming], Sequence[uuid.UUID]], None] = lambda *_: None

    def put(self, item: Item) -> None:
        """Take an event; returns at once."""
        self._items.append(item)
        self._more.set()

    def hold(self) -> None:
        """Keep what comes until `release`: what was missed comes first."""
        self._open.clear()
        self._homes.clear()  # while we were away, they may have been opened or closed

    def release(self) -> None:
        """Go on."""
        self._open.set()

    def finish(self) -> None:
        """Nothing more comes: `run` ends when what is there is stored."""
        self._ended = True
        self._more.set()

    async def run(self) -> None:
        """Store what comes, until `finish`. Nothing that goes wrong with one event ends it."""
        while True:
            await self._open.wait()
            if not self._items:
                if self._ended:
                    return
                self._more.clear()
                await self._more.wait()
                continue
            try:
                await self._next()
            except Exception:
                logger.exception("discord.event_lost")

    async def _next(self) -> None:
        item = self._items.popleft()
        if callable(item):
            for told in await self._persist(item):
                await self.take(told)
        elif isinstance(item, Said):
            batch = [item]
            while self._items and len(batch) < AT_ONCE and isinstance(self._items[0], Said):
                following = self._items.popleft()
                assert isinstance(following, Said)
                batch.append(following)
            await self.store(batch)
        else:
            await self.take(item)

    async def take(self, told: Told) -> None:
        """Store one event now, before all that wait."""
        match told:
            case Said():
                await self.store([told])
            case Edited():
                await self._edit(told)
            case Closed():
                await self._persist(lambda: self._close(told))
            case People():
                await self._persist(lambda: self._let(told))
            case Archived():
                await self._persist(lambda: self._archive(told))

    # Messages

    async def store(self, batch: Sequence[Said]) -> None:
        """Store messages of one or several workspaces, in their order."""
        said = [each for each in batch if not self._is_deleted(each)]
        for start in range(0, len(said), AT_ONCE):
            await self._store_parts([await self._complete(each) for each in said[start : start + AT_ONCE]])

    async def _store_parts(self, said: Sequence[Said]) -> None:
        """Store runs of messages that go into the same workspace and want an answer, or don't."""
        part: list[Incoming] = []
        kind: tuple[Workspace, bool] | None = None
        for each in said:
            workspace = await self._persist(partial(self._workspace, each.incoming.user))
            if each.home is not None:
                await self._tell_home(workspace, *each.home)
            if kind is not None and kind != (workspace, each.answer):
                await self._receive(*kind, part)
                part = []
            kind = (workspace, each.answer)
            part.append(replace(each.incoming, workspace=workspace.name))
        if kind is not None:
            await self._receive(*kind, part)

    def _is_deleted(self, said: Said) -> bool:
        changed = self._changed.get(said.incoming.id)
        return changed is not None and changed.text is None

    async def _complete(self, said: Said) -> Said:
        """The message with its files, and as it was edited before it came."""
        incoming = said.incoming
        if said.files is not None:
            incoming = replace(incoming, attachments=await said.files)
        changed = self._changed.get(incoming.id)
        if changed is not None and changed.text is not None:
            attached = still_attached(incoming.attachments, changed.files)
            incoming = replace(incoming, text=changed.text, mentions=changed.mentions, attachments=attached)
        return replace(said, incoming=incoming)

    async def _tell_home(self, workspace: Workspace, room: str, private: bool) -> None:
        """Make sure that a thread's channel is known, and as closed as it is, before the thread's words are filed."""
        if self._homes.get(room) == private:
            return
        agents, now = self._app.directory.agents(workspace.tenant_id), self._app.clock.now()
        await self._persist(
            lambda: set_room_private(self._app.database, workspace, agents, room, private, now, make=True)
        )
        self._homes[room] = private

    async def _receive(self, workspace: Workspace, answer: bool, batch: Sequence[Incoming]) -> None:
        try:
            await self._persist(lambda: self._receive_once(workspace, answer, batch))
        except Exception as error:  # whatever is wrong with one message costs no other
            if len(batch) > 1:
                for one in batch:
                    await self._receive(workspace, answer, [one])
            elif isinstance(error, BadInput | NotFound):
                await self._receive_refused(workspace, answer, batch[0], error)
            else:
                logger.exception("discord.message_lost", message=batch[0].id)

    async def _receive_once(self, workspace: Workspace, answer: bool, batch: Sequence[Incoming]) -> None:
        received = await self._app.receive(workspace, batch, answer=answer)
        self.kept(workspace, batch, received.new)
        if not answer and received.new:
            self._app.indexer.due(workspace.tenant_id)
        if received.turns:
            asked = {message.id: message for message in batch}
            for id in await self._external(workspace, received.turns):
                self._asked(asked[id])

    async def _external(self, workspace: Workspace, turns: Sequence[Turn]) -> list[str]:
        """The platform's ids of the messages that turns answer."""
        ids = {turn.message_id for turn in turns}
        async with self._app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
            found = [await tx.messages.get(id) for id in ids]
        return [message[0].external_id for message in found if message is not None]

    async def _receive_refused(self, workspace: Workspace, answer: bool, one: Incoming, error: NexusError) -> None:
        """Someone speaks in a private room that they had left: Discord let them in again when they spoke. If they left
        after that, their words are history. What can't be taken for other reasons is not stored."""
        if isinstance(error, NotFound):
            rooms = {one.place.name: {one.user: True}}
            await self._persist(lambda: set_room_people(self._app.database, workspace, rooms, one.at))
            for asks in (answer, False):
                try:
                    await self._persist(partial(self._receive_once, workspace, asks, [one]))
                except NotFound:
                    continue
                return
        logger.warning("discord.message_refused", message=one.id, error=str(error))

    # Changes

    async def _edit(self, edited: Edited) -> None:
        known = self._changed.get(edited.id)
        if known is not None and (known.text is None or _is_older(edited, known)):
            return
        self._changed.note(edited.id, edited)
        workspace = await self._persist(partial(self._workspace, edited.user))
        await self._persist(lambda: self._change(workspace, edited))

    async def _change(self, workspace: Workspace, edited: Edited) -> None:
        app, agents = self._app, self._app.directory.agents(workspace.tenant_id)
        receipt = await change(
            app.database,
            workspace,
            agents,
            edited.place,
            edited.user,
            edited.id,
            edited.text,
            edited.mentions,
            app.clock.now(),
            edited.files,
        )
        if receipt is not None:
            await app.forgotten(workspace, receipt)

    async def _close(self, closed: Closed) -> None:
        workspace = await self._workspace("")
        agents, now = self._app.directory.agents(workspace.tenant_id), self._app.clock.now()
        await set_room_private(self._app.database, workspace, agents, closed.room, closed.private, now)
        if closed.room in self._homes:
            self._homes[closed.room] = closed.private

    async def _let(self, people: People) -> None:
        workspace = await self._workspace("")
        await set_room_people(self._app.database, workspace, people.rooms, self._app.clock.now())

    async def _archive(self, archived: Archived) -> None:
        workspace = await self._workspace("")
        await set_thread_archived(self._app.database, workspace, archived.room, archived.thread, archived.at)

    async def _persist(self, doing: Callable[[], Awaitable[V]]) -> V:
        """Do it, however long the database, or Discord where it must be asked, is away."""
        pause = TRY_AGAIN
        while True:
            try:
                return await doing()
            except Unavailable as error:
                logger.warning("discord.storing_waits", error=str(error))
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def _is_older(edited: Edited, known: Edited) -> bool:
    """Whether an edit was made before another that came before it; a deletion is never older."""
    return edited.text is not None and edited.at is not None and known.at is not None and edited.at <= known.at
