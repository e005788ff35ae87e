"""Reads the messages that were written while the bot was not connected, from the last one received in each channel."""

import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import discord
import structlog

from bot.discord.events import DiscordEvents
from bot.discord.inbox import DiscordInbox
from bot.discord.reading import FAILURES, PLATFORM, is_private, may_view
from bot.platform.events import (
    MessageChanged,
    MessageReceived,
    PlatformEvent,
    RoomDeleted,
    RoomPrivacyChanged,
    ThreadArchived,
)
from bot.platform.retry import Backoff
from composer.app import App
from composer.ingest.addressing import find_addressed_agents
from composer.ingest.rooms import private_rooms
from composer.model import ConversationKind, Place
from composer.repositories.conversations import ReceivedConversation
from composer.workspace import Workspace

logger = structlog.get_logger()

MAX_ANSWERED_AGE: Final = timedelta(minutes=15)  # an older question is stored, and not answered
MAX_THREAD_AGE: Final = timedelta(days=7)  # an archived thread must be asked for, so older ones are not
MAX_DMS: Final = 100  # each takes a request
COMPARED_SPAN: Final = timedelta(days=1)  # before the last message received in a channel
MAX_COMPARED_CHANNELS: Final = 100  # those with the latest messages
MAX_COMPARED_MESSAGES: Final = 500  # of each channel
MAX_COMPARED_AGE: Final = timedelta(days=30)  # of messages that an earlier process was to compare
MAX_COMPARED_WHOLLY: Final = 10_000  # of these
UNKNOWN_MESSAGE: Final = 10008  # Discord's error code for a message that does not exist
UNKNOWN_CHANNEL: Final = 10003
PAGE_SIZE: Final = 100  # messages, which is Discord's maximum
MAX_TRIES: Final = 6  # of one page
BACKOFF: Final = Backoff(first_seconds=2.0)
Channel = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread | discord.DMChannel


@dataclass(frozen=True, slots=True)
class Gap:
    """Messages of a channel that could not be read: all after one, and whether they were written in private."""

    channel: Channel
    after: int
    private: bool


class _HistoryUnreadable(Exception):
    """Discord did not return a page of history after all tries."""


class DiscordHistory:
    """What was missed in one guild, or in the DMs of one workspace.

    `gaps` are the messages that could not be read, by channel. The caller must keep them as long as the process lives:
    later messages are stored meanwhile, and nothing else shows that some before them are missing.
    """

    def __init__(
        self,
        app: App,
        client: discord.Client,
        workspace: Workspace,
        inbox: DiscordInbox,
        events: DiscordEvents,
        gaps: dict[int, Gap],
    ) -> None:
        self._app = app
        self._client = client
        self._workspace = workspace
        self._inbox = inbox
        self._events = events
        self._gaps = gaps
        self._found: list[ReceivedConversation] | None = None
        self._noted: dict[uuid.UUID, datetime] = {}  # conversations of which messages were missed

    async def catch_up(self, guild: discord.Guild) -> None:
        """Store the messages of a guild since the last one received.

        A channel that became public meanwhile: nobody knows which of its messages were written before that. All are
        stored as private, except the questions that are answered now, in public.
        """
        known = await self._known()
        if not known:
            return
        rooms = {seen.name for seen in known.values()}
        were_private = await private_rooms(self._app.database, self._workspace, sorted(rooms))
        channels = [channel for channel in guild.channels if str(channel.id) in rooms]
        opened = {each.id for each in channels if str(each.id) in were_private and not is_private(each)}
        for channel in channels:
            if channel.id not in opened:
                await self._inbox.apply(RoomPrivacyChanged(str(channel.id), is_private(channel)))
        last = discord.utils.time_snowflake(max(seen.seen_at for seen in known.values()))
        questions: list[MessageReceived] = []
        for each in await self._channels(guild, known):
            seen = known.get(str(each.id))
            room = each.parent_id if isinstance(each, discord.Thread) and not each.is_private() else each.id
            after = last if seen is None else int(seen.seen_id)
            questions += await self._read_after(each, after, seen, was_private=room in opened)
            if isinstance(each, discord.Thread) and seen is not None:
                at = each.archive_timestamp if each.archived else None
                await self._inbox.apply(ThreadArchived(str(each.parent_id), str(each.id), at))
        for id in sorted(opened):
            await self._inbox.apply(RoomPrivacyChanged(str(id), private=False))
        await self._inbox.store(questions)

    async def compare(self, guild: discord.Guild) -> None:
        """Apply the edits and deletions that were missed, of the last messages received before."""
        known = await self._known()
        for id, seen in list(known.items())[:MAX_COMPARED_CHANNELS]:
            if guild.get_channel_or_thread(int(id)) is not None or _is_hidden_thread(guild, seen):
                continue
            if await _is_channel_deleted(guild, int(id)):
                self._inbox.put(RoomDeleted(seen.name, seen.thread))
        channels = {str(channel.id): channel for channel in await self._channels(guild, known)}
        for id, seen in list(known.items())[:MAX_COMPARED_CHANNELS]:
            if id in channels:
                await self._compare(channels[id], seen)

    async def compare_dms(self) -> None:
        """Apply the edits and deletions that were missed in known DMs."""
        for seen, dm in await self._dms():
            await self._compare(dm, seen)

    async def catch_up_dms(self) -> None:
        """Store the messages of known DMs since the last one received."""
        for seen, dm in await self._dms():
            await self._read_after(dm, int(seen.seen_id), seen, was_private=False)

    async def fill_gaps(self) -> bool:
        """Read the gaps again. Returns whether none is left. Raises Unavailable."""
        for gap in list(self._gaps.values()):
            await self._read_after(gap.channel, gap.after, None, was_private=False, inbox_held=False)
        return not self._gaps

    async def _known(self) -> dict[str, ReceivedConversation]:
        """The known channels and threads, by their ids, those with the latest messages first."""
        return {each.thread or each.name: each for each in await self._seen() if each.kind is not ConversationKind.DM}

    async def _dms(self) -> list[tuple[ReceivedConversation, discord.DMChannel]]:
        known = [each for each in await self._seen() if each.kind is ConversationKind.DM and each.user]
        found = []
        for seen in known[:MAX_DMS]:
            try:
                found.append((seen, await self._client.create_dm(discord.Object(int(seen.user or 0)))))
            except FAILURES as error:
                logger.warning("discord.dm_unread", error=type(error).__name__)
        return found

    async def _compare(self, channel: Channel, seen: ReceivedConversation) -> None:
        """Apply the edits and deletions of one channel's stored messages.

        A message counts as deleted only if it is missing from a history that was read completely, and Discord says that
        it does not exist. Stored messages are looked up first: what arrives meanwhile is not missing. It counts as
        edited only if it was edited after it was stored: its text may also differ because a name in it has changed.
        """
        since, limit = seen.seen_at - COMPARED_SPAN, MAX_COMPARED_MESSAGES
        if seen.changed_at is not None:  # an earlier try, or an earlier process, did not compare it
            since, limit = min(since, self._app.clock.now() - MAX_COMPARED_AGE), MAX_COMPARED_WHOLLY
        async with self._app.database.transaction(self._workspace.tenant_id, "read") as tx:
            found = await tx.messages.change_times(seen.id, since, limit)
            found |= await tx.deliveries.posted(seen.id, since, limit)
        stored = {id: changed_at for id, changed_at in found.items() if id.isdigit()}
        if not stored:
            self._end_comparing(seen)
            return
        first, last = min(map(int, stored)), max(map(int, stored))
        try:
            after, before = discord.Object(first - 1), discord.Object(last + 1)
            shown = {str(m.id): m async for m in channel.history(after=after, before=before, limit=None)}
            present = {id: message for id, message in shown.items() if not message.flags.source_message_deleted}
            missing = sorted(stored.keys() - present, key=int)
            deleted = [id for id in missing if id in shown or await _is_deleted(channel, int(id))]
        except FAILURES as error:
            logger.warning("discord.changes_unread", channel=channel.id, error=type(error).__name__)
            return
        place = Place(seen.kind, seen.name, thread=seen.thread)
        for id in deleted:
            self._inbox.put(MessageChanged(str(channel.id), id, place, seen.user or "", text=None))
        for id in sorted(stored.keys() & present, key=int):
            edited_at = present[id].edited_at
            own = present[id].author == self._client.user
            if edited_at is not None and edited_at > stored[id] and not own:
                self._inbox.put(self._events.read_edit(present[id], place, str(present[id].author.id)))
        self._end_comparing(seen)

    def _end_comparing(self, seen: ReceivedConversation) -> None:
        """Once its changes are stored, compare a conversation no more because of what was noted before."""
        noted_at = seen.changed_at or self._noted.get(seen.id)
        if noted_at is not None:
            self._inbox.put(partial(self._note_compared, seen.id, noted_at))

    async def _note_compared(self, conversation: uuid.UUID, noted_at: datetime) -> Sequence[PlatformEvent]:
        async with self._app.database.transaction(self._workspace.tenant_id) as tx:
            await tx.conversations.clear_history_changed(conversation, noted_at)
        return []

    async def _note_missed(self, seen: ReceivedConversation) -> None:
        """Note that messages of a conversation were missed, before they are stored: what was deleted or edited
        meanwhile is looked for before the last message that is stored, and this process may end before it has done
        that. Raises Unavailable."""
        if seen.id not in self._noted:
            now = self._app.clock.now()
            async with self._app.database.transaction(self._workspace.tenant_id) as tx:
                await tx.conversations.note_missed([seen.id], now)
            self._noted[seen.id] = now

    async def _seen(self) -> list[ReceivedConversation]:
        """How far each conversation was received before what was missed was stored."""
        if self._found is None:
            async with self._app.database.transaction(self._workspace.tenant_id, "read") as tx:
                self._found = await tx.conversations.received(PLATFORM, self._workspace.name)
        return [each for each in self._found if each.seen_id.isdigit()]

    async def _channels(self, guild: discord.Guild, known: dict[str, ReceivedConversation]) -> list[Channel]:
        """The channels and threads of a guild that we may read, with known threads that were archived meanwhile."""
        listed: list[Channel] = [*guild.text_channels, *guild.voice_channels, *guild.stage_channels, *guild.threads]
        readable = [channel for channel in listed if _may_read(channel)]
        ids, since = {channel.id for channel in listed}, self._app.clock.now() - MAX_THREAD_AGE
        for id, seen in known.items():
            if int(id) in ids or seen.seen_at < since:
                continue
            try:
                found = await guild.fetch_channel(int(id))
            except FAILURES:
                continue  # deleted, or not readable for us any more
            if isinstance(found, discord.Thread) and _may_read(found):
                readable.append(found)
        return readable

    async def _read_after(
        self,
        channel: Channel,
        after: int,
        seen: ReceivedConversation | None,
        *,
        was_private: bool,
        inbox_held: bool = True,
    ) -> list[MessageReceived]:
        """Store the messages after one. Of a channel that `was_private`, return the questions to answer instead.
        `seen`: how far it was received, if anything was.

        Messages that were written in private are stored as private, even if the channel becomes public while it is
        read: while the inbox is paused, the change of privacy is not
        stored yet. Once it may be stored, these messages are skipped.
        """
        gap, private = self._gaps.get(channel.id), _is_private(channel)
        if gap is not None:
            after, private = min(after, gap.after), private or gap.private
        if not isinstance(channel, discord.DMChannel) and (channel.last_message_id or 0) <= after:
            self._gaps.pop(channel.id, None)
            return []
        questions: list[MessageReceived] = []
        try:
            async for page in self._pages(channel, after):
                opened = private and not _is_private(channel)
                if opened and not was_private and not (inbox_held and gap is None):
                    logger.error(
                        "discord.history_lost", channel=channel.id, reason="it became public before it was read"
                    )
                    break
                received = [self._recent(each) for each in map(self._events.read_message, page) if each is not None]
                if received and seen is not None:
                    await self._note_missed(seen)
                if was_private or opened:
                    questions += [message for message in received if message.answer]
                    received = [_without_privacy(message) for message in received if not message.answer]
                await self._inbox.store(received)
                after = page[-1].id
        except _HistoryUnreadable:
            if not was_private:
                self._gaps[channel.id] = Gap(channel, after, private)
                return questions
            logger.error("discord.history_lost", channel=channel.id, reason="it is unreadable, and became public")
        self._gaps.pop(channel.id, None)
        return questions

    def _recent(self, message: MessageReceived) -> MessageReceived:
        """The same message, to be answered only if it is a recent question to an agent."""
        incoming = message.incoming
        agents = self._app.directory.agents(self._workspace.tenant_id)
        is_question = (
            incoming.place.kind is ConversationKind.DM
            or incoming.addressed_agents
            or find_addressed_agents(incoming.text, agents)
        )
        recent = self._app.clock.now() - incoming.at < MAX_ANSWERED_AGE
        return replace(message, answer=message.answer and bool(is_question) and recent)

    async def _pages(self, channel: Channel, after: int) -> AsyncIterator[Sequence[discord.Message]]:
        """The messages after one, oldest first. Raises _HistoryUnreadable when Discord fails for too long."""

        async def page() -> list[discord.Message]:
            history = channel.history(after=discord.Object(after), limit=PAGE_SIZE, oldest_first=True)
            try:
                return [message async for message in history]
            except (discord.Forbidden, discord.NotFound):
                return []

        while True:
            try:
                messages = await BACKOFF.retry(
                    page, "discord.page_retrying", on=FAILURES, max_tries=MAX_TRIES, channel=channel.id
                )
            except FAILURES as error:
                logger.error("discord.history_unread", channel=channel.id, error=type(error).__name__)
                raise _HistoryUnreadable from error
            if not messages:
                return
            yield messages
            after = messages[-1].id


async def _is_deleted(channel: Channel, message: int) -> bool:
    """Whether Discord says that there is no such message. Raises DiscordException when it says anything else."""
    try:
        await channel.fetch_message(message)
    except discord.NotFound as error:
        return error.code == UNKNOWN_MESSAGE
    return False


def _is_hidden_thread(guild: discord.Guild, seen: ReceivedConversation) -> bool:
    """Whether this is a thread of a channel that we may not view: Discord may say that there is no such thread."""
    parent = guild.get_channel(int(seen.name)) if seen.thread is not None and seen.name.isdigit() else None
    return parent is not None and not may_view(parent, guild.me)


async def _is_channel_deleted(guild: discord.Guild, channel: int) -> bool:
    """Whether Discord says that there is no such channel or thread. One that we may not see any more is not deleted."""
    try:
        await guild.fetch_channel(channel)
    except discord.NotFound as error:
        return error.code == UNKNOWN_CHANNEL
    except (*FAILURES, discord.InvalidData):
        return False
    return False


def _without_privacy(message: MessageReceived) -> MessageReceived:
    """The same message, stored with the privacy that its room has in the log."""
    place = replace(message.incoming.place, private=None, room_private=None)
    return replace(message, incoming=replace(message.incoming, place=place))


def _is_private(channel: Channel) -> bool:
    if isinstance(channel, discord.DMChannel):
        return True
    if isinstance(channel, discord.Thread):
        return channel.is_private() or channel.parent is None or is_private(channel.parent)
    return is_private(channel)


def _may_read(channel: Channel) -> bool:
    if isinstance(channel, discord.DMChannel):
        return True
    me = channel.guild.me
    viewed = may_view(channel, me) if isinstance(channel, discord.abc.GuildChannel) else True
    permissions = channel.permissions_for(me)
    return viewed and permissions.view_channel and permissions.read_message_history
