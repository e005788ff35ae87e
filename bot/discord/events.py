"""Turns discord.py's events into platform events.

Each event is read at the moment at which discord.py dispatches it, before the next one changes what discord.py knows:
a message is stored as private or public as its channel was when it was written.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

import discord
from cachetools import LRUCache

from bot.discord.guilds import Guilds
from bot.discord.inbox import QueuedEvent
from bot.discord.members import DiscordMembers
from bot.discord.outbox import translate_discord_errors
from bot.discord.reading import (
    FAILURES,
    archived_at,
    files_of,
    has_content,
    incoming_of,
    is_private,
    may_view,
    mentions_of,
    place_of,
    text_of,
    trust_of,
)
from bot.platform.events import (
    MembersChanged,
    MessageChanged,
    PersonLeft,
    PlatformEvent,
    RoomDeleted,
    RoomPrivacyChanged,
    ThreadArchived,
    TrustStated,
)
from composer.errors import Refused
from composer.model import ConversationKind, Incoming, Place

MAX_LISTED_MEMBERS: Final = 10_000  # of a guild, requested at once; Discord sends them all
LIST_SECONDS: Final = 5.0  # for the members of a guild; then those that discord.py knows are taken
MAX_DM_CHANNELS: Final = 10_000


class DiscordEvents:
    """The events of one bot. Passes each to `put`, with the id of its guild (None: a DM)."""

    def __init__(
        self,
        client: Callable[[], discord.Client | None],
        guilds: Guilds,
        slugs: Sequence[str],
        put: Callable[[int | None, QueuedEvent], None],
        members: Callable[[int], DiscordMembers | None] = lambda guild: None,
        is_typed: Callable[[discord.Message, Incoming], bool] = lambda message, received: False,
    ) -> None:
        """The first of `slugs` is the agent that this bot is. `members` reads those of a guild's private rooms.
        `is_typed`: a message only confirmed or cancelled a command, and is none to be stored."""
        self._is_typed = is_typed
        self._get_client = client
        self._guilds = guilds
        self._slugs = slugs
        self._put = put
        self._members = members
        self._dm_partners: LRUCache[int, str] = LRUCache(MAX_DM_CHANNELS)  # users, by DM channel

    @property
    def handlers(self) -> Mapping[str, Callable[..., None]]:
        """The handler of each discord.py event, by its name."""
        return {
            "message": self._on_message,
            "raw_message_edit": self._on_edit,
            "raw_message_delete": self._on_delete,
            "raw_bulk_message_delete": self._on_delete,
            "guild_channel_update": self._on_channel_update,
            "guild_channel_delete": lambda channel: self._put(channel.guild.id, RoomDeleted(str(channel.id))),
            "raw_thread_delete": self._on_thread_delete,
            "guild_role_create": self._on_role_create,
            "guild_role_update": self._on_role_update,
            "guild_role_delete": self._on_role_delete,
            "guild_update": self._on_guild_update,
            "member_join": self._on_member,
            "member_update": lambda _, after: self._on_member(after),
            "raw_member_remove": self._on_member_remove,
            "raw_thread_update": self._on_thread_update,
            "thread_member_join": self._on_thread_join,
            "raw_thread_member_remove": self._on_thread_leave,
        }

    def read_message(self, message: discord.Message, channel: object = None) -> Incoming | None:
        """A message; None if it has no content, or is our own. Other bots are read, and not answered."""
        me, channel = self._client.user, channel or message.channel
        place = place_of(channel, self._slugs[0])
        if me is None or place is None or message.author.id == me.id or not has_content(message):
            return None
        if place.kind is ConversationKind.DM:
            self._dm_partners[message.channel.id] = str(message.author.id)
        return incoming_of(message, place, me, self._slugs)

    def read_edit(self, message: discord.Message, place: Place, user: str) -> MessageChanged:
        """An edited message as an event. `user` is the author, in a DM the other side of it."""
        me = self._client.user
        assert me is not None
        return MessageChanged(
            channel=str(message.channel.id),
            message_id=str(message.id),
            place=place,
            user=user,
            text=text_of(message, me, self._slugs),
            mentions=mentions_of(message, me),
            edited_at=message.edited_at,
            attached=tuple(file.url for file in files_of(message)),
        )

    async def viewers(self, guild: discord.Guild) -> Sequence[PlatformEvent]:
        """Who may view the private channels of a guild: of all members, unless there are too many to ask for."""
        if not guild.chunked and (guild.member_count or 0) <= MAX_LISTED_MEMBERS:
            with suppress(*FAILURES):
                async with asyncio.timeout(LIST_SECONDS):
                    await guild.chunk()
        private = [channel for channel in guild.channels if is_private(channel)]
        rooms = {str(channel.id): {str(m.id): may_view(channel, m) for m in guild.members} for channel in private}
        return [MembersChanged(rooms)]

    @property
    def _client(self) -> discord.Client:
        client = self._get_client()
        assert client is not None  # an event has a client that it came from
        return client

    # Messages

    def _on_message(self, message: discord.Message) -> None:
        guild = message.guild.id if message.guild else None
        if isinstance(message.channel, discord.PartialMessageable):
            self._put(guild, partial(self._look_up_channel, message))
        elif (received := self.read_message(message)) is not None and not self._is_typed(message, received):
            self._put(guild, received)

    async def _look_up_channel(self, message: discord.Message) -> Sequence[PlatformEvent]:
        """A message from a channel that discord.py did not know. Raises Unavailable."""
        with translate_discord_errors():
            channel = await self._client.fetch_channel(message.channel.id)
        received = self.read_message(message, channel)
        return [] if received is None else [received]

    def _on_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        message, me = event.message, self._client.user
        if message.flags.source_message_deleted:
            self._delete(event.guild_id, event.channel_id, {message.id})
            return
        if me is None or message.author.id == me.id or message.edited_at is None:
            return  # our own, or Discord only added the preview of a link
        unplaced = Place(ConversationKind.ROOM, str(message.channel.id))
        change = self.read_edit(message, unplaced, str(message.author.id))  # read now; its place is looked up later

        async def changed() -> Sequence[PlatformEvent]:
            found = await self._place(message.channel.id)
            return [] if found is None else [replace(change, place=found[0])]

        self._put(event.guild_id, changed)

    def _on_delete(self, event: discord.RawMessageDeleteEvent | discord.RawBulkMessageDeleteEvent) -> None:
        ids = event.message_ids if isinstance(event, discord.RawBulkMessageDeleteEvent) else {event.message_id}
        self._delete(event.guild_id, event.channel_id, ids)

    def _delete(self, guild: int | None, channel: int, ids: Collection[int]) -> None:
        """Messages are deleted, or those of another server that they were posted after (an announcement channel)."""

        async def deleted() -> Sequence[PlatformEvent]:
            found = await self._place(channel)
            if found is None:
                return []
            return [MessageChanged(str(channel), str(id), *found, text=None) for id in sorted(ids)]

        self._put(guild, deleted)

    async def _place(self, channel_id: int) -> tuple[Place, str] | None:
        """The place of a channel and, in a DM, the user on the other side; None when the channel is deleted.

        Raises Unavailable.
        """
        if (user := self._dm_partners.get(channel_id)) is not None:
            return Place(ConversationKind.DM, self._slugs[0]), user
        try:
            with translate_discord_errors():
                channel = self._client.get_channel(channel_id) or await self._client.fetch_channel(channel_id)
        except Refused:
            return None
        recipient = channel.recipient if isinstance(channel, discord.DMChannel) else None
        place = place_of(channel, self._slugs[0])
        return None if place is None else (place, "" if recipient is None else str(recipient.id))

    # Rooms and their members

    def _on_channel_update(self, before: discord.abc.GuildChannel, after: discord.abc.GuildChannel) -> None:
        if before.overwrites == after.overwrites:
            return
        self._put(after.guild.id, RoomPrivacyChanged(str(after.id), is_private(after)))
        if is_private(after):
            self._put(after.guild.id, partial(self.viewers, after.guild))

    def _on_role_create(self, role: discord.Role) -> None:
        """With the first role that people give each other, those without one become guests."""
        if (members := self._members(role.guild.id)) is not None:
            self._put(role.guild.id, members.trusts)

    def _on_role_update(self, before: discord.Role, after: discord.Role) -> None:
        if before.permissions == after.permissions:
            return
        if after.is_default():
            for channel in after.guild.channels:
                self._put(after.guild.id, RoomPrivacyChanged(str(channel.id), is_private(channel)))
        self._on_rights_changed(after.guild)

    def _on_role_delete(self, role: discord.Role) -> None:
        """Whoever had the role has lost it: Discord does not tell that of each of them."""
        self._on_rights_changed(role.guild)

    def _on_guild_update(self, before: discord.Guild, after: discord.Guild) -> None:
        if before.owner_id != after.owner_id:  # an owner may do everything
            self._on_rights_changed(after)

    def _on_rights_changed(self, guild: discord.Guild) -> None:
        if (members := self._members(guild.id)) is not None:
            self._put(guild.id, members.trusts)
        self._put(guild.id, partial(self.viewers, guild))

    def _on_member(self, member: discord.Member) -> None:
        """Someone joined the guild, or got other roles."""
        self._guilds.forget(member.id)
        rooms = {str(channel.id): {str(member.id): may_view(channel, member)} for channel in member.guild.channels}
        members = self._members(member.guild.id)
        if members is not None:
            rooms |= {thread: {str(member.id): False} for thread in members.threads_closed_to(member)}
        self._put(member.guild.id, MembersChanged(rooms))
        if not member.bot:
            self._put(member.guild.id, TrustStated({str(member.id): trust_of(member, member.guild)}))

    def _on_member_remove(self, event: discord.RawMemberRemoveEvent) -> None:
        self._guilds.forget(event.user.id)
        guild = self._client.get_guild(event.guild_id)
        if guild is not None:
            rooms = [*guild.channels, *guild.threads]
            self._put(guild.id, MembersChanged({str(room.id): {str(event.user.id): False} for room in rooms}))
            self._put(guild.id, PersonLeft(str(event.user.id)))

    def _on_thread_update(self, event: discord.RawThreadUpdateEvent) -> None:
        at = archived_at(event.data["thread_metadata"])
        self._put(event.guild_id, ThreadArchived(str(event.parent_id), str(event.thread_id), at))

    def _on_thread_delete(self, event: discord.RawThreadDeleteEvent) -> None:
        private = event.thread_type is discord.ChannelType.private_thread
        thread, parent = str(event.thread_id), str(event.parent_id)
        self._put(event.guild_id, RoomDeleted(thread) if private else RoomDeleted(parent, thread))

    def _on_thread_join(self, member: discord.ThreadMember) -> None:
        if member.thread.is_private():
            self._put(member.thread.guild.id, MembersChanged({str(member.thread.id): {str(member.id): True}}))

    def _on_thread_leave(self, event: discord.RawThreadMembersUpdate) -> None:
        removed: Any = event.data.get("removed_member_ids", [])
        self._put(event.guild_id, MembersChanged({str(event.thread_id): {str(id): False for id in removed}}))
