"""Reads who is in the private channels and private threads of a guild."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import discord
import structlog

from bot.discord.inbox import DiscordInbox
from bot.discord.outbox import translate_discord_errors
from bot.discord.reading import PLATFORM, is_private, may_view, trust_of
from bot.platform.events import PlatformEvent, TrustStated
from bot.platform.members import MembershipReader, Moment
from bot.platform.retry import Backoff
from composer.app import App
from composer.errors import Refused, Unavailable
from composer.ingest.members import known_people
from composer.workspace import Workspace

logger = structlog.get_logger()

BATCH: Final = 100  # people in one request over the gateway, which is Discord's maximum
UNKNOWN_PERSON: Final = (10_007, 10_013)  # Discord's codes of a member and of a user
AGAIN_SECONDS: Final = 1.0  # before a room is read again that changed meanwhile


class DiscordMembers:
    """The members of one guild's private rooms. `reader` says when they are read.

    Discord tells who is in a channel by roles and overwrites, which discord.py keeps up to date. Of a large guild it
    knows few people, so those that Nexus knows are asked for; nobody else is. What was read goes through the inbox, so
    that it is stored after the events before it and before those after it.
    """

    def __init__(self, app: App, guild: discord.Guild, inbox: DiscordInbox, backoff: Backoff) -> None:
        self._app = app
        self._inbox = inbox
        self.guild = guild  # of the present session
        self.reader = MembershipReader(app, self._workspace, self._read, self._has_left, backoff)

    async def _workspace(self) -> Workspace:
        return self._app.directory.workspace(PLATFORM, str(self.guild.id))

    def doubt_channel(self, channel: discord.abc.GuildChannel) -> None:
        """Who may view a channel has changed, and with it who is in its private threads."""
        threads = [thread for thread in _private_threads(self.guild) if thread.parent_id == channel.id]
        self.doubt([str(channel.id), *(str(thread.id) for thread in threads)])

    def doubt_all(self) -> None:
        """Rights have changed that hold for the whole guild."""
        self.doubt(str(each.id) for each in (*self.guild.channels, *_private_threads(self.guild)))

    def threads_closed_to(self, member: discord.Member) -> list[str]:
        """The private threads whose channel somebody may not view."""
        threads = ((thread, thread.parent) for thread in _private_threads(self.guild))
        return [str(thread.id) for thread, parent in threads if parent is None or not may_view(parent, member)]

    async def check(self) -> Sequence[PlatformEvent]:
        """Read the rooms that are not read; queued after an event that may have made one uncertain."""
        self.reader.check()
        return []

    async def trusts(self) -> Sequence[PlatformEvent]:
        """What those people are to the server whom both Nexus and discord.py know: roles make members of them."""
        known = await known_people(self._app.database, await self._workspace())
        members = [self.guild.get_member(int(id)) for id in known if id.isdigit()]
        return [TrustStated({str(each.id): trust_of(each, self.guild) for each in members if each and not each.bot})]

    def doubt(self, ids: Iterable[str]) -> None:
        """Who is in some rooms is uncertain until they are read again."""
        rooms = list(ids)
        for room in rooms:
            self.reader.note_change(room)

        async def doubted() -> Sequence[PlatformEvent]:
            await self.reader.doubt(*rooms)
            self.reader.check()
            return []

        self._inbox.put(doubted)

    async def _read(self, rooms: Sequence[str]) -> tuple[str, ...]:
        """Read the members of rooms. A room that Discord does not show us, such as an archived thread, can't be read.
        Raises Unavailable."""
        people = await self._fetch_people()
        for room in rooms:
            channel = self.guild.get_channel_or_thread(int(room)) if room.isdigit() else None
            since, at = self.reader.doubts_of(room), self._app.clock.now()
            inside = await self._thread_members(channel) if isinstance(channel, discord.Thread) else None
            present = self._present(channel, people, inside)
            if present is None:
                await self.reader.unreadable(room)
                continue

            self._inbox.put(partial(self._confirm, room, present, people, at, since))
        return ()  # `_confirm` says what must be read again

    async def _has_left(self, person: str) -> bool:
        """Whether somebody is not in the guild. Raises Unavailable."""
        if not person.isdigit() or self.guild.get_member(int(person)) is not None:
            return False
        with translate_discord_errors():
            try:
                await self.guild.fetch_member(int(person))
            except discord.NotFound as error:
                return error.code in UNKNOWN_PERSON  # and not, say, an unknown guild: Nexus was taken out of it
        return False

    async def _confirm(
        self, room: str, present: Collection[str], people: Sequence[int], at: datetime, since: Moment
    ) -> Sequence[PlatformEvent]:
        if not await self.reader.confirm(room, present, at, since, asked=[str(id) for id in people]):
            asyncio.get_running_loop().call_later(AGAIN_SECONDS, self.reader.again, room)
        return []

    async def _fetch_people(self) -> tuple[int, ...]:
        """Let discord.py know those people of the guild whom Nexus knows. Returns the ids of all of whom Nexus knows.
        Raises Unavailable."""
        known = tuple(int(id) for id in await known_people(self._app.database, await self._workspace()) if id.isdigit())
        wanted = [] if self.guild.chunked else [id for id in known if self.guild.get_member(id) is None]
        for start in range(0, len(wanted), BATCH):
            try:
                await self.guild.query_members(user_ids=wanted[start : start + BATCH], limit=BATCH, cache=True)
            except TimeoutError as error:
                raise Unavailable("Discord does not say who is in the server; it is asked again.") from error
        return known

    async def _thread_members(self, thread: discord.Thread) -> Mapping[int, object] | None:
        """Who is in a private thread; None if Discord does not say. Raises Unavailable."""
        try:
            with translate_discord_errors():
                return {member.id: member for member in await thread.fetch_members()}
        except Refused as error:
            logger.warning("discord.members_refused", thread=thread.id, error=str(error))
            return None

    def _present(
        self, channel: object, people: Sequence[int], inside: Mapping[int, object] | None
    ) -> tuple[str, ...] | None:
        """Those of `people` who are in a private channel, or in a thread of which `inside` are the members; None if we
        are not told of changes. Nothing is awaited here: it is as of the last event."""
        parent = channel
        if isinstance(channel, discord.Thread):
            parent = channel.parent
            if inside is None or self.guild.me.id not in inside or channel.archived or not channel.is_private():
                return None
        if not isinstance(parent, discord.abc.GuildChannel) or not may_view(parent, self.guild.me):
            return None
        if channel is parent and not is_private(parent):
            return None
        members = (self.guild.get_member(id) for id in people if inside is None or id in inside)
        return tuple(str(member.id) for member in members if member is not None and may_view(parent, member))


def _private_threads(guild: discord.Guild) -> list[discord.Thread]:
    return [thread for thread in guild.threads if thread.is_private()]
