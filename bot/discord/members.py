"""Says who is in the private channels and private threads of a guild, and who has left it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import discord
import structlog

from bot.discord.guilds import find_member
from bot.discord.inbox import DiscordInbox
from bot.discord.outbox import translate_discord_errors
from bot.discord.reading import DM_WORKSPACE, PLATFORM, is_private, manages, may_view, trust_of
from bot.platform.events import PlatformEvent, TrustStated
from bot.platform.leavers import Leavers
from bot.platform.retry import Backoff
from composer.app import App
from composer.errors import Unavailable
from composer.model import Workspace
from composer.ports.memberships import RoomsOnPlatform

logger = structlog.get_logger()

BATCH: Final = 100  # people in one request over the gateway, which is Discord's maximum
UNKNOWN_PERSON: Final = (10_007, 10_013)  # Discord's codes of a member and of a user


class DiscordMemberships:
    """Where somebody is, by their roles, the channels' overwrites, which discord.py keeps up to date, and the members
    of private threads (composer.ports.memberships.MembershipSource)."""

    def __init__(self, guild_told: Callable[[str], discord.Guild | None]) -> None:
        """`guild_told` gives a guild by its id while Discord tells of it what happens there; else None."""
        self._guild_told = guild_told

    async def rooms_of(self, workspace: str, person: str) -> RoomsOnPlatform | None:
        """The private channels, and the private threads that are not archived, that somebody and we may both read, and
        of all such channels and threads those that they may manage. None while Discord does not tell what happens in
        the guild. Raises Unavailable and Refused."""
        if workspace == DM_WORKSPACE:  # of people who are in no guild of ours
            return RoomsOnPlatform()
        guild = self._guild_told(workspace)
        if guild is None or not person.isdigit():
            return None
        with translate_discord_errors():
            if await find_member(guild, int(person)) is None:
                return RoomsOnPlatform()
            threads = [each for each in private_threads(guild) if not each.archived]
            inside = await asyncio.gather(*(_members_of(thread) for thread in threads))
        # Nothing is awaited from here on: it is as of the last event.
        guild = self._guild_told(workspace)
        member = None if guild is None else guild.get_member(int(person))
        if guild is None or member is None:
            return None
        channels = [each for each in guild.channels if may_view(each, guild.me) and may_view(each, member)]
        both, ids = {guild.me.id, member.id}, {each.id for each in channels}
        joined = [thread for thread, of in zip(threads, inside, strict=True) if both <= of and not thread.archived]
        joined = [thread for thread in joined if thread.parent_id in ids]
        private = [*filter(is_private, channels), *joined]
        managed = [each for each in (*channels, *joined) if manages(each, each.permissions_for(member))]
        return RoomsOnPlatform([str(each.id) for each in private], [str(each.id) for each in managed])


async def _members_of(thread: discord.Thread) -> set[int]:
    """Who is in a private thread; nobody in one that Discord does not show us."""
    try:
        return {member.id for member in await thread.fetch_members()}
    except (discord.NotFound, discord.Forbidden) as error:
        logger.warning("discord.members_refused", thread=thread.id, error=str(error))
        return set()


class DiscordMembers:
    """The people of one guild. `leavers` says when those are looked up who may have left it."""

    def __init__(self, app: App, guild: discord.Guild, inbox: DiscordInbox, backoff: Backoff) -> None:
        self._app = app
        self._inbox = inbox
        self.guild = guild  # of the present session
        self.leavers = Leavers(app, self._workspace, self._has_left, backoff, self._know_people)

    async def _workspace(self) -> Workspace:
        return self._app.directory.workspace(PLATFORM, str(self.guild.id))

    def threads_closed_to(self, member: discord.Member) -> list[str]:
        """The private threads whose channel somebody may not view."""
        threads = ((thread, thread.parent) for thread in private_threads(self.guild))
        return [str(thread.id) for thread, parent in threads if parent is None or not may_view(parent, member)]

    async def trusts(self) -> Sequence[PlatformEvent]:
        """What those people are to the server whom both Nexus and discord.py know: roles make members of them."""
        members = [self.guild.get_member(id) for id in await self._known()]
        return [TrustStated({str(each.id): trust_of(each, self.guild) for each in members if each and not each.bot})]

    async def _know_people(self) -> None:
        """Let discord.py know those people of the guild whom Nexus knows, and nobody else of a large one: else it
        passes on no change of their roles. Raises Unavailable."""
        wanted = [] if self.guild.chunked else [id for id in await self._known() if self.guild.get_member(id) is None]
        for start in range(0, len(wanted), BATCH):
            try:
                await self.guild.query_members(user_ids=wanted[start : start + BATCH], limit=BATCH, cache=True)
            except TimeoutError as error:
                raise Unavailable("Discord does not say who is in the server; it is asked again.") from error
        self._inbox.put(self.trusts)

    async def _known(self) -> list[int]:
        workspace = await self._workspace()
        async with self._app.database.transaction(workspace.tenant_id, "read") as tx:
            known = await tx.people.known_in(workspace.platform, workspace.name)
        return [int(id) for id in known if id.isdigit()]

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


def private_threads(guild: discord.Guild) -> list[discord.Thread]:
    """The private threads of a guild that discord.py knows."""
    return [thread for thread in guild.threads if thread.is_private()]
