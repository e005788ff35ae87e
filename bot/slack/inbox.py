"""Stores what Slack tells, before it is acknowledged. The same event comes any number of times, in any order.

An edit or a deletion that comes before its message is kept until that comes.
"""

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, TypeVar

import structlog

from bot.slack.directory import SlackDirectory
from bot.slack.reading import Closed, Edited, Moved, Said, moment
from bot.slack.text import mentioned, plain
from composer.app import App
from composer.errors import BadInput, NexusError, NotFound, Unavailable
from composer.ingest.changes import change, set_room_people, set_room_private, still_attached
from composer.ingest.receive import addressed
from composer.model import Attachment, ConversationKind, Incoming, Place, Turn
from composer.workspace import Workspace

logger = structlog.get_logger()

PLATFORM: Final = "slack"
AT_ONCE: Final = 200  # messages in one transaction
REMEMBERED: Final = 10_000  # changes, rooms, threads of questions
FILES: Final = 2.0  # seconds for reading a message's files: it must be acknowledged within three
FILE_TRIES: Final = 2  # times that Slack is made to bring a message again because its file could not be read
RECENT: Final = timedelta(minutes=15)  # older questions, found in the history, are not answered any more
V = TypeVar("V")


class Recent(OrderedDict[tuple[str, str], V]):
    """A mapping that keeps its latest entries only."""

    def note(self, key: tuple[str, str], value: V) -> None:
        """Keep one more, and drop the oldest where there are too many."""
        self[key] = value
        self.move_to_end(key)
        while len(self) > REMEMBERED:
            self.popitem(last=False)


class SlackInbox:
    """The events of one workspace. Messages that come side by side are stored together."""

    def __init__(self, app: App, directory: SlackDirectory, asked: Callable[[Said, bool], None]) -> None:
        """`asked` is told of each message that may want an answer, before that can begin."""
        self._app = app
        self._directory = directory
        self._asked = asked
        self._changed: Recent[Edited] = Recent()
        self._private: dict[str, bool] = {}
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._waiting: list[tuple[Incoming, asyncio.Future[None]]] = []
        self._storing: asyncio.Task[None] | None = None
        self.kept: Callable[[Workspace, Sequence[Incoming], Sequence[uuid.UUID]], None] = lambda *_: None
        self.began: Callable[[Sequence[Turn]], None] = lambda turns: None

    async def workspace(self) -> Workspace:
        """Ours. Raises Unavailable while Slack does not say which that is."""
        return self._app.directory.workspace(PLATFORM, (await self._directory.me()).team)

    @property
    def slug(self) -> str:
        """The agent that Slack knows: the first."""
        return self._app.settings.agents[0].slug

    # Messages

    async def said(self, said: Said, tries: int = 0) -> None:
        """Store a message, once, and let it be answered. `tries`: how often Slack has brought it already.

        Raises Unavailable when it could not be stored: it must not be acknowledged.
        """
        incoming = await self.incoming(said, tries)
        if incoming is None:
            await self._catch_up_with_edits(said)  # it may be stored: what was to erase it may have failed
            return
        await self._tell_room(said)
        if said.machine:
            await self._receive(await self.workspace(), [incoming], answer=False)
        else:
            self._asked(said, incoming.addressed_agents != () or said.direct)
            await self._together(incoming)
        await self._catch_up_with_edits(said)

    async def history(self, messages: Sequence[Said]) -> None:
        """Store what was missed, oldest first; what was meant for the agent just now is answered."""
        workspace, now = await self.workspace(), self._app.clock.now()
        part: list[Incoming] = []
        answered = False
        for said in messages:
            incoming = await self.incoming(said, FILE_TRIES)
            if incoming is None:
                continue
            await self._tell_room(said)
            answer = self.wants_answer(said, incoming) and now - said.at < RECENT
            if answer:
                self._asked(said, True)
            if answer != answered or len(part) == AT_ONCE:
                await self._receive(workspace, part, answer=answered)
                part, answered = [], answer
            part.append(incoming)
        await self._receive(workspace, part, answer=answered)

    def wants_answer(self, said: Said, incoming: Incoming) -> bool:
        """Whether a message is for the agent."""
        if said.machine:
            return False
        workspace = self._app.directory.agents
        agents = workspace(self._app.directory.workspace(PLATFORM, incoming.workspace).tenant_id)
        return said.direct or bool(incoming.addressed_agents) or bool(addressed(incoming.text, agents))

    async def incoming(self, said: Said, tries: int = 0) -> Incoming | None:
        """A message as the core takes it; None when it was deleted since, or is empty."""
        changed = self._changed.get((said.channel, said.ts))
        if changed is not None and changed.text is None:
            return None
        raw = said.text if changed is None else changed.text or ""
        text, people = await self.text(raw)
        attachments = still_attached(await self._files(said, tries), None if changed is None else changed.files)
        if not text.strip() and not attachments:
            return None
        me = await self._directory.me()
        name = said.name or (said.user if said.machine else (await self._directory.person(said.user)).name)
        return Incoming(
            PLATFORM,
            me.team,
            await self.place(said),
            said.user,
            name,
            said.ts,
            text,
            said.at,
            attachments,
            people,
            (self.slug,) if me.user in mentioned(raw) and not said.machine else (),
            reply_to=said.thread,
        )

    async def text(self, raw: str) -> tuple[str, tuple[str, ...]]:
        """A text of Slack's as people read it, and the ids of the people that it mentions."""
        me = await self._directory.me()
        people = tuple(user for user in mentioned(raw) if user != me.user)
        names = {user: (await self._directory.person(user)).name for user in people}
        slugs = {agent.slug for agent in self._app.settings.agents}
        return plain(raw, names, own=me.user, slug=self.slug, agents=slugs), people

    async def place(self, said: Said) -> Place:
        """Where a message was said. Raises Unavailable when Slack must be asked and does not answer."""
        if said.direct:
            return Place(ConversationKind.DM, self.slug)
        private = said.private
        if private is None:
            private = (await self._directory.room(said.channel)).private
        title = await self._directory.title(said.channel)
        if said.thread is not None:  # a part of its room, which is told of its privacy for itself
            return Place(ConversationKind.THREAD, said.channel, thread=said.thread, title=title)
        return Place(ConversationKind.ROOM, said.channel, private=private, title=title)

    async def _files(self, said: Said, tries: int) -> tuple[Attachment, ...]:
        if not said.files:
            return ()
        try:
            async with asyncio.timeout(FILES):
                return tuple([await self._directory.attachment(file) for file in said.files])
        except (NexusError, TimeoutError) as error:
            if tries < FILE_TRIES:
                raise Unavailable("A file could not be read from Slack in time; it is tried again.") from error
            logger.warning("slack.files_unread", message=said.ts, error=str(error))
            return tuple(self._directory.unread(file) for file in said.files)

    async def _tell_room(self, said: Said) -> None:
        """Make sure that a channel is known, and as closed as it was then, before anything of its threads is filed."""
        if said.direct:
            return
        private = said.private
        if private is None:
            private = (await self._directory.room(said.channel)).private
        while self._private.get(said.channel) != private:
            telling = self._telling.get(said.channel)
            if telling is None:  # one of all that come side by side tells it, and the others wait for that
                telling = self._telling[said.channel] = asyncio.create_task(self._tell(said.channel, private))
                telling.add_done_callback(lambda _: self._telling.pop(said.channel))
            await asyncio.shield(telling)

    async def _tell(self, channel: str, private: bool) -> None:
        await self._set_private(channel, private)
        self._private[channel] = private

    async def _set_private(self, channel: str, private: bool) -> None:
        workspace = await self.workspace()
        agents = self._app.directory.agents(workspace.tenant_id)
        now = self._app.clock.now()
        await set_room_private(self._app.database, workspace, agents, channel, private, now, make=True)

    async def _together(self, incoming: Incoming) -> None:
        """Store a message with those that wait beside it."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((incoming, done))
        if self._storing is None or self._storing.done():
            self._storing = asyncio.create_task(self._store())
        await done

    async def _store(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
            try:
                await self._receive(await self.workspace(), [incoming for incoming, _ in batch], answer=True)
            except Exception as error:
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
                continue
            for _, done in batch:
                if not done.done():
                    done.set_result(None)

    async def _receive(self, workspace: Workspace, batch: Sequence[Incoming], *, answer: bool) -> None:
        """Store messages; those that can't be taken are left out. Raises Unavailable."""
        if not batch:
            return
        try:
            await self._receive_once(workspace, batch, answer=answer)
        except (BadInput, NotFound) as error:
            if len(batch) == 1:
                await self._receive_refused(workspace, batch[0], error)
                return
            for one in batch:
                await self._receive(workspace, [one], answer=answer)

    async def _receive_once(self, workspace: Workspace, batch: Sequence[Incoming], *, answer: bool) -> None:
        received = await self._app.receive(workspace, batch, answer=answer)
        self.began(received.turns)  # before anything is awaited: no answer can have begun yet
        self.kept(workspace, batch, received.new)
        if not answer and received.new:
            self._app.indexer.due(workspace.tenant_id)

    async def _receive_refused(self, workspace: Workspace, one: Incoming, error: NexusError) -> None:
        """Someone spoke in a private room that they left: if they are back, we have missed it. If they are not, they
        said it before they left."""
        if not isinstance(error, NotFound):
            logger.warning("slack.message_refused", message=one.id, error=str(error))
            return
        back = one.user in await self._directory.members(one.place.name)
        if back:
            await set_room_people(self._app.database, workspace, {one.place.name: {one.user: True}}, one.at)
        try:
            await self._receive_once(workspace, [one], answer=back)
        except (BadInput, NotFound) as again:
            logger.warning("slack.message_refused", message=one.id, error=str(again))

    # Changes

    async def edited(self, edited: Edited) -> None:
        """A message was edited or deleted: every layer follows. Raises Unavailable: then it must come again."""
        known = self._changed.get((edited.channel, edited.ts))
        if known is not None and edited.text is not None and (known.text is None or edited.edit < known.edit):
            return
        self._changed.note((edited.channel, edited.ts), edited)
        await self._change(edited)

    async def _catch_up_with_edits(self, said: Said) -> None:
        """What changed while the message was being stored found nothing to change then."""
        changed = self._changed.get((said.channel, said.ts))
        if changed is not None:
            await self._change(changed)

    async def _change(self, edited: Edited) -> None:
        workspace, app = await self.workspace(), self._app
        place = Place(ConversationKind.DM, self.slug) if edited.direct else Place(ConversationKind.ROOM, edited.channel)
        text, people = (None, ()) if edited.text is None else await self.text(edited.text)
        receipt = await change(
            app.database,
            workspace,
            app.directory.agents(workspace.tenant_id),
            place,
            edited.user,
            edited.ts,
            text,
            people,
            app.clock.now(),
            edited.files,
        )
        if receipt is not None:
            await app.forgotten(workspace, receipt)

    async def closed(self, closed: Closed) -> None:
        """A channel was turned private or public. Raises Unavailable."""
        self._directory.forget_room(closed.channel)
        await self._set_private(closed.channel, closed.private)
        self._private[closed.channel] = closed.private

    async def moved(self, moved: Moved) -> None:
        """Someone came or left. Raises Unavailable."""
        people = {moved.channel: {moved.user: moved.joined}}
        await set_room_people(self._app.database, await self.workspace(), people, moment(moved.ts))
