"""Stores Slack's events before they are acknowledged. What could not be stored, Slack delivers again."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from bot.platform.events import MessageChanged, RoomPrivacyChanged, RoomShared
from bot.platform.inbox import BATCH_SIZE, InboxListeners, PlatformInbox
from bot.slack.directory import SlackDirectory, SlackPerson
from bot.slack.reading import PLATFORM, is_unknown, room_place, time_of
from bot.slack.text import channels, groups, mentioned, plain, unlabelled
from composer.app import App
from composer.errors import NexusError, Unavailable
from composer.ingest.addressing import find_addressed_agents, unaddressed
from composer.model import Attachment, ConversationKind, Incoming, Place, Trust, Workspace

logger = structlog.get_logger()

FILES_SECONDS: Final = 2.0  # for asking about the files of a message, which must be acknowledged within three
MAX_FILE_RETRIES: Final = 2  # times that Slack delivers a message again because it did not say what its files are
MAX_EDIT_RETRIES: Final = 3  # times that Slack delivers an event again: after that, the edited message does not come
MAX_AWAITED_AGE: Final = timedelta(minutes=10)  # an older message that is not stored is not to come any more
UNKNOWN_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)  # of a statement that gives way to every other one


class SlackInbox(PlatformInbox):
    """The events of one workspace. Messages that arrive at the same time are stored in one transaction."""

    def __init__(
        self,
        app: App,
        directory: SlackDirectory,
        listeners: InboxListeners,
        on_question: Callable[[str, str, str | None], None],
    ) -> None:
        """`on_question` gets the channel, the id and the thread of each message that may queue a turn, before it
        does."""
        super().__init__(
            app,
            PLATFORM,
            workspace=self._workspace_of_user,
            is_member=self._is_in_channel,
            listeners=listeners,
        )
        self._directory = directory
        self._on_question = on_question
        self._waiting: list[tuple[Incoming, asyncio.Future[None]]] = []
        self._storing: asyncio.Task[None] | None = None

    async def workspace(self) -> Workspace:
        """Our workspace. Raises Unavailable while Slack does not say which that is."""
        return self._app.directory.workspace(PLATFORM, (await self._directory.me()).team)

    @property
    def slug(self) -> str:
        """The slug of the agent that answers on Slack: the first configured one."""
        return self._app.settings.agents[0].slug

    # Messages

    async def receive_message(self, message: Incoming, retries: int = 0) -> None:
        """Store a message as Slack tells it, once, and queue its turns. `retries`: how often Slack has delivered it
        before.

        Raises Unavailable when it could not be stored: then it must not be acknowledged.
        """
        if not self.is_deleted(message.channel, message.id):
            incoming = self._with_change(await self.resolve(message, retries))
            is_empty = not (incoming.text.strip() or incoming.attachments)
            if message.by_tool and not is_empty:
                await self.store([incoming])
            elif not is_empty:
                self.note_question(incoming)
                await self._store_together(incoming)
        await self.reapply_change(message.channel, message.id)  # erasing it may have failed before

    def note_question(self, question: Incoming) -> None:
        """Tell of a message before it is stored that may queue a turn."""
        self._on_question(question.channel, question.id, question.reply_to)

    async def resolve(self, message: Incoming, retries: int = MAX_FILE_RETRIES) -> Incoming:
        """A message with its ids looked up (names, files, place), and its text as people read it. Raises
        Unavailable."""
        room = "" if message.place.kind is ConversationKind.DM else message.channel
        text, people = await self._words(message.text, message.quoted, room)
        known = SlackPerson(message.user, trust=Trust.TOOL)
        person = known if message.by_tool else await self._directory.person(message.user)
        return replace(
            message,
            place=await self.place(message),
            user_name=message.user_name or person.name,
            text=text,
            attachments=await self._files(message, retries),
            mentions=people,
            addressed_agents=() if message.by_tool else await self._addressed(message.text),
            sender_trust=person.trust,
            trust_stated=person.certain,
            trust_stated_at=person.stated_at,
            timezone=person.timezone,
            quoted="",
        )

    async def _words(self, text: str, quoted: str, room: str) -> tuple[str, tuple[str, ...]]:
        """The words of a message, and the ids of the people that its own text mentions. What is quoted addresses
        nobody."""
        own, people = await self.plain_text(text, room)
        if not quoted:
            return own, people
        shown, _ = await self.plain_text(quoted, room)
        slugs = {agent.slug for agent in self._app.settings.agents}
        return "\n".join(filter(None, (own, unaddressed(shown, slugs)))), people

    async def plain_text(self, markup: str, room: str = "") -> tuple[str, tuple[str, ...]]:
        """A text in Slack's markup as people read it, and the ids of the people that it mentions. In a `room`, a
        private channel is named only if it is the room itself, so that a mention does not spread its name."""
        me = await self._directory.me()
        people = tuple(user for user in mentioned(markup) if user != me.user)
        names = {user: (await self._directory.person(user)).name for user in people}
        slugs = {agent.slug for agent in self._app.settings.agents}
        others = [each for each in channels(markup) if room and each != room]
        hidden = {each for each in others if not await self._directory.is_public(each)}
        unnamed = [each for each in unlabelled(markup) if each not in hidden]
        rooms = {each: await self._directory.title(each) or each for each in unnamed}
        handles = await self._directory.handles() if groups(markup) else {}
        words = plain(
            markup, names, own=me.user, slug=self.slug, agents=slugs, hidden=hidden, rooms=rooms, handles=handles
        )
        return words, people

    async def _addressed(self, markup: str) -> tuple[str, ...]:
        """The agent, if a text in Slack's markup mentions the app."""
        return (self.slug,) if (await self._directory.me()).user in mentioned(markup) else ()

    async def place(self, message: Incoming) -> Place:
        """Where a message was written. Raises Unavailable when Slack must be asked and does not answer."""
        if message.place.kind is ConversationKind.DM:
            return Place(ConversationKind.DM, self.slug)
        channel, private = message.channel, message.place.stated_private
        stated_at: datetime | None = message.at
        if private is None:  # a mention, whose event does not say: it opens no room
            private = (await self._directory.room(channel)).private
            stated_at = None if private else UNKNOWN_TIME
        place = room_place(channel, private, stated_at, await self._directory.title(channel), message.place.thread)
        outsiders, outsiders_at = await self._outsiders(message)
        return replace(place, outsiders=outsiders, outsiders_at=outsiders_at)

    async def _outsiders(self, message: Incoming) -> tuple[bool, datetime | None]:
        """Whether people of other organisations read the channel of a message, and of which time that is said (None: it
        is so now): what an event says is of its message, however late it comes. Raises Unavailable when neither the
        event nor Slack says so."""
        if message.place.outsiders:
            return True, message.at
        try:
            return await self._directory.outsiders(message.channel)
        except NexusError:
            if message.place.outsiders is None:
                raise
            return False, message.at

    async def _files(self, message: Incoming, retries: int) -> tuple[Attachment, ...]:
        if not message.attachments:
            return ()
        try:
            async with asyncio.timeout(FILES_SECONDS):
                return tuple([await self._directory.attachment(file) for file in message.attachments])
        except (NexusError, TimeoutError) as error:
            if retries < MAX_FILE_RETRIES:
                raise Unavailable("A file could not be read from Slack in time; it will be tried again.") from error
            logger.warning("slack.files_unread", message=message.id, error=str(error))
            return tuple(replace(file, address="") if is_unknown(file) else file for file in message.attachments)

    async def _store_together(self, incoming: Incoming) -> None:
        """Store a message in one transaction with those that wait for the same."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((incoming, done))
        if self._storing is None or self._storing.done():
            self._storing = asyncio.create_task(self._store_waiting())
        await done

    async def _store_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:BATCH_SIZE], self._waiting[BATCH_SIZE:]
            try:
                await self.receive(await self.workspace(), [incoming for incoming, _ in batch], answer=True)
            except Exception as error:
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
                continue
            for _, done in batch:
                if not done.done():
                    done.set_result(None)

    async def _addresses_agent(self, markup: str) -> bool:
        if await self._addressed(markup):
            return True
        agents = self._app.directory.agents((await self.workspace()).tenant_id)
        return bool(find_addressed_agents(markup, agents))

    # Changes

    async def change_message(self, change: MessageChanged, retries: int = MAX_EDIT_RETRIES) -> None:
        """Apply an edit or a deletion, as Slack tells it, to every layer. `retries`: how often Slack has delivered it
        before.

        Raises Unavailable: then it must be delivered again. So must an edit of a recent message that has not come yet:
        it may be on its way to another process, or be delivered again itself.
        """
        direct = change.place.kind is ConversationKind.DM
        if direct:  # Slack need not tell what was deleted, and so whose it was
            user = change.user or await self._directory.partner(change.channel)
            change = replace(change, user=user, place=Place(ConversationKind.DM, self.slug))
        if change.text is not None:
            text, people = await self._words(change.text, change.quoted, "" if direct else change.channel)
            agents = await self._addressed(change.text)
            addressed = change.before != "" and await self._addresses_agent(change.before)
            change = replace(
                change,
                text=text,
                mentions=people,
                addressed_agents=agents,
                was_addressed=addressed,
                before="",
                quoted="",
            )
        awaited = retries < MAX_EDIT_RETRIES and self._app.clock.now() - time_of(change.message_id) < MAX_AWAITED_AGE
        await self.apply_change(change, awaits_message=awaited)

    async def change_privacy(self, change: RoomPrivacyChanged) -> None:
        """A channel became private or public. Raises Unavailable."""
        self._directory.forget_room(change.room)
        await self.apply(change)

    async def note_shared(self, shared: RoomShared) -> None:
        """A channel is shared with another organisation. Raises Unavailable."""
        self._directory.forget_room(shared.room)
        await self.apply(shared)

    async def _workspace_of_user(self, user: str) -> Workspace:
        return await self.workspace()

    async def _is_in_channel(self, channel: str, user: str) -> bool:
        return user in await self._directory.members(channel)
