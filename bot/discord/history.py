"""What Discord keeps of the channels and threads of a guild, and of the DMs with people."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

import discord

from bot.discord.events import DiscordEvents
from bot.discord.inbox import DiscordInbox
from bot.discord.outbox import translate_discord_errors
from bot.discord.reading import is_private, may_view
from bot.platform.events import RoomDeleted, RoomPrivacyChanged, ThreadArchived
from bot.platform.reconciliation import Page, ReadChannel, Said
from composer.app import App
from composer.errors import Refused
from composer.model import ConversationKind, Incoming, Workspace
from composer.repositories.conversations import FollowedConversation

MAX_DMS: Final = 100  # each takes a request
MAX_UNLISTED: Final = 100  # archived threads, and what was deleted: each takes a request
UNKNOWN_MESSAGE: Final = 10008  # Discord's error code for a message that does not exist
UNKNOWN_CHANNEL: Final = 10003
CHANNEL_UNREADABLE: Final = "Discord does not let us read this channel."
PAGE_SIZE: Final = 100  # messages, which is Discord's maximum
Channel = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread | discord.DMChannel


@dataclass(frozen=True, slots=True)
class _ChannelSource:
    """A channel as it was when it was listed. `channel` is None for one that must be asked for. What was written before
    `opened_at`, or at any time if it `was_private`, was written in private, as far as anybody knows."""

    channel: Channel | None
    was_private: bool = False
    opened_at: datetime | None = None

    def is_private(self, at: datetime) -> bool:
        return self.was_private or (self.opened_at is not None and at < self.opened_at)


class GuildHistory:
    """bot.platform.reconciliation.PlatformHistory for one guild. A channel is a channel of Discord, or a thread."""

    kinds = (ConversationKind.ROOM, ConversationKind.THREAD)
    with_threads = False

    def __init__(
        self,
        app: App,
        client: discord.Client,
        guild: discord.Guild,
        workspace: Workspace,
        inbox: DiscordInbox,
        events: DiscordEvents,
    ) -> None:
        self._app = app
        self._guild = guild
        self._inbox = inbox
        self._reader = ChannelReader(client, workspace, inbox, events)

    async def channels(self, stored: Sequence[FollowedConversation]) -> list[ReadChannel]:
        """The channels and threads that we may read, then known ones that Discord does not list: archived threads, and
        what was deleted. Of one in which nothing was received yet, only what was said since the others were read.

        Known channels are made private or public first. Nobody knows when one that is public now became so: what was
        said in it until now counts as private.
        """
        known = {each.thread or each.name: each for each in stored if (each.thread or each.name).isdigit()}
        if not known:
            return []
        now = self._app.clock.now()
        for channel in self._guild.channels:
            if str(channel.id) in known:
                await self._inbox.apply(RoomPrivacyChanged(str(channel.id), is_private(channel)))
        guild, latest = self._guild, max(map(_since, known.values()))
        listed: list[Channel] = [*guild.text_channels, *guild.voice_channels, *guild.stage_channels, *guild.threads]
        found = []
        for each in listed:
            own = known.get(str(each.id))
            if _may_read(each):
                source = _source(each, known, now)
                row = () if own is None else (own,)
                found.append(ReadChannel(str(each.id), row, latest if own is None else _since(own), source))
        order = {id: number for number, id in enumerate(known)}  # the latest first
        found.sort(key=lambda channel: order.get(channel.id, -1))
        ids = {str(each.id) for each in listed}
        unlisted = [(id, row) for id, row in known.items() if id not in ids and guild.get_channel(int(id)) is None]
        sources = ((id, row, _ChannelSource(None, row.private, row.opened_at)) for id, row in unlisted[:MAX_UNLISTED])
        return found + [ReadChannel(id, (row,), _since(row), source) for id, row, source in sources]

    async def pages(self, channel: ReadChannel, since: datetime) -> AsyncIterator[Page]:
        """Messages a hundred at a time, then whether a thread is archived; or that the channel was deleted."""
        assert isinstance(channel.source, _ChannelSource)
        found: object = channel.source.channel
        if found is None:
            if self._is_hidden_thread(channel.stored[0]):
                raise Refused(CHANNEL_UNREADABLE)
            try:
                with translate_discord_errors():
                    found = await self._fetch(int(channel.id))
            except _Deleted:
                yield [RoomDeleted(channel.stored[0].name, channel.stored[0].thread)]
                return
        if not isinstance(found, Channel) or not _may_read(found):
            raise Refused(CHANNEL_UNREADABLE)
        async for page in self._reader.pages(found, channel.source, since):
            yield page
        if isinstance(found, discord.Thread) and channel.stored:
            at = found.archive_timestamp if found.archived else None
            yield [ThreadArchived(str(found.parent_id), str(found.id), at)]

    async def message(self, channel: ReadChannel, id: str) -> Said | None:
        """One message; None if Discord says that there is none."""
        assert isinstance(channel.source, _ChannelSource)
        found = channel.source.channel or await self._fetch(int(channel.id))
        return await self._reader.message(found, channel.source, id)

    async def _fetch(self, id: int) -> Channel:
        """A channel that Discord does not list. Raises _Deleted, Refused and Unavailable."""
        try:
            return await self._guild.fetch_channel(id)  # type: ignore[return-value]
        except discord.InvalidData as error:
            raise Refused(CHANNEL_UNREADABLE) from error
        except discord.NotFound as error:
            if error.code == UNKNOWN_CHANNEL:
                raise _Deleted(CHANNEL_UNREADABLE) from error
            raise

    def _is_hidden_thread(self, stored: FollowedConversation) -> bool:
        """Whether this is a thread of a channel that we may not view: Discord may say that there is no such thread."""
        is_thread = stored.thread is not None and stored.name.isdigit()
        parent = self._guild.get_channel(int(stored.name)) if is_thread else None
        return parent is not None and not may_view(parent, self._guild.me)


class DmHistory:
    """The same for the DMs that belong to one workspace."""

    kinds = (ConversationKind.DM,)
    with_threads = False

    def __init__(
        self, client: discord.Client, workspace: Workspace, inbox: DiscordInbox, events: DiscordEvents
    ) -> None:
        self._client = client
        self._reader = ChannelReader(client, workspace, inbox, events)

    async def channels(self, stored: Sequence[FollowedConversation]) -> list[ReadChannel]:
        """The DMs with the latest messages, by their people."""
        known = [each for each in stored if each.user and each.user.isdigit()][:MAX_DMS]
        return [ReadChannel(each.user or "", (each,), _since(each), _ChannelSource(None)) for each in known]

    async def pages(self, channel: ReadChannel, since: datetime) -> AsyncIterator[Page]:
        """Messages a hundred at a time."""
        async for page in self._reader.pages(await self._dm(channel), _ChannelSource(None), since):
            yield page

    async def message(self, channel: ReadChannel, id: str) -> Said | None:
        """One message; None if Discord says that there is none."""
        return await self._reader.message(await self._dm(channel), _ChannelSource(None), id)

    async def _dm(self, channel: ReadChannel) -> discord.DMChannel:
        with translate_discord_errors():
            return await self._client.create_dm(discord.Object(int(channel.id)))


class ChannelReader:
    """Reads the messages of channels of one workspace."""

    def __init__(
        self, client: discord.Client, workspace: Workspace, inbox: DiscordInbox, events: DiscordEvents
    ) -> None:
        self._client = client
        self._workspace = workspace
        self._inbox = inbox
        self._events = events

    async def pages(self, channel: Channel, source: _ChannelSource, since: datetime) -> AsyncIterator[Page]:
        after = discord.utils.time_snowflake(since) - 1
        if not isinstance(channel, discord.DMChannel) and (channel.last_message_id or 0) <= after:
            return
        while True:
            history = channel.history(after=discord.Object(after), limit=PAGE_SIZE, oldest_first=True)
            with translate_discord_errors():
                found = [message async for message in history]
            if not found:
                return
            yield [self._said(each, source) for each in found if not each.flags.source_message_deleted]
            after = found[-1].id

    async def message(self, channel: Channel, source: _ChannelSource, id: str) -> Said | None:
        with translate_discord_errors():
            try:
                found = await channel.fetch_message(int(id))
            except discord.NotFound as error:
                if error.code == UNKNOWN_MESSAGE:
                    return None
                raise
        return None if found.flags.source_message_deleted else self._said(found, source)

    def _said(self, message: discord.Message, source: _ChannelSource) -> Said:
        is_own = message.author == self._client.user
        return Said(str(message.id), message.edited_at, read=None if is_own else partial(self._read, message, source))

    async def _read(self, message: discord.Message, source: _ChannelSource) -> Incoming | None:
        """A message as it is stored; as private if it was written in private, unless it is a question to answer now."""
        incoming = self._events.read_message(message)
        if incoming is None or not source.is_private(incoming.at):
            return incoming
        if self._inbox.is_answered(self._workspace, incoming):
            return incoming
        closed = {"room_private" if incoming.place.kind is ConversationKind.THREAD else "private": True}
        place = replace(incoming.place, stated_at=incoming.at, **closed)  # type: ignore[arg-type]
        return replace(incoming, place=place)


class _Deleted(Refused):
    """Discord says that there is no such channel."""


def _since(stored: FollowedConversation) -> datetime:
    """From where a channel is read."""
    return stored.read_to or stored.began_at


def _source(channel: Channel, known: dict[str, FollowedConversation], now: datetime) -> _ChannelSource:
    """A listed channel, or a thread with the privacy of its channel, which is as it was before that was noted anew."""
    if isinstance(channel, discord.Thread):
        if channel.is_private() or channel.parent is None:
            return _ChannelSource(channel, was_private=True)
        room: discord.abc.GuildChannel = channel.parent
    else:
        assert isinstance(channel, discord.abc.GuildChannel)
        room = channel
    stored, private = known.get(str(room.id)), is_private(room)
    if stored is None or private:
        return _ChannelSource(channel, was_private=private)
    return _ChannelSource(channel, opened_at=now if stored.private else stored.opened_at)


def _may_read(channel: object) -> bool:
    if not isinstance(channel, Channel):
        return False
    if isinstance(channel, discord.DMChannel):
        return True
    me = channel.guild.me
    viewed = may_view(channel, me) if isinstance(channel, discord.abc.GuildChannel) else True
    permissions = channel.permissions_for(me)
    return viewed and permissions.view_channel and permissions.read_message_history
