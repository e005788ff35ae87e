"""Which workspace a Discord message belongs to."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import discord
import structlog

from bot.discord.outbox import translate_discord_errors
from bot.discord.reading import DM_WORKSPACE, FAILURES, PLATFORM, trust_of
from composer.app import App
from composer.errors import Unavailable
from composer.model import ConversationKind, Incoming, Trust, Workspace

logger = structlog.get_logger()

DMS_SHARD: Final = 0  # the guild id that DMs are filed under
SHARDS_SECONDS: Final = 120.0  # at most, for the shards that are still to connect
STILL_CONNECTING: Final = (
    "I am still connecting to Discord, and don't know yet which server your direct messages with me belong to. "
    "Try again in a few minutes."
)
GUILD_LOOKUP_SECONDS: Final = 5.0  # at most, for what somebody is to a server


class Guilds:
    """The guilds that the bot is in, and the workspaces of their members' messages."""

    def __init__(self, app: App, client: Callable[[], discord.Client | None], all_known: asyncio.Event) -> None:
        """`all_known`: the guilds of every shard are known. Shards connect one after another, seconds apart."""
        self._app = app
        self._all_known = all_known
        self._client = client
        self._dm_workspaces: dict[str, Workspace] = {}  # by user

    @property
    def names(self) -> list[str]:
        """The names of all workspaces: that of DMs with people of no guild, then the guilds'."""
        return [DM_WORKSPACE, *(str(guild.id) for guild in self.ordered())]

    def ordered(self) -> list[discord.Guild]:
        """The guilds that nexus.toml names, in its order, then the others, oldest first."""
        named = self._app.settings.listed_workspaces(PLATFORM)
        client = self._client()
        guilds = client.guilds if client is not None else []
        return sorted(guilds, key=lambda g: (named.index(str(g.id)) if str(g.id) in named else len(named), g.id))

    def forget_all(self) -> None:
        """Look up the workspaces of DMs again: membership may have changed without our knowing."""
        self._dm_workspaces.clear()

    def forget(self, user: int) -> None:
        """Look up the workspace of one person's DMs again."""
        self._dm_workspaces.pop(str(user), None)

    async def workspace(self, guild: int, user: str) -> Workspace:
        """The workspace of a guild; for a DM, that of the first guild that the user is in.

        Raises Unavailable when it is not cached and Discord does not answer, or a shard does not connect.
        """
        if guild != DMS_SHARD:
            return self._app.directory.workspace(PLATFORM, str(guild))
        if user not in self._dm_workspaces:
            await self.until_all_known()
            name = DM_WORKSPACE
            for each in self.ordered():
                if await _is_member(each, int(user)):
                    name = str(each.id)
                    break
            self._dm_workspaces[user] = self._app.directory.workspace(PLATFORM, name)
        return self._dm_workspaces[user]

    @property
    def are_all_known(self) -> bool:
        """Whether the guilds of every shard are known."""
        return self._all_known.is_set()

    async def all_known(self) -> None:
        """Wait until the guilds of every shard are known, however long that takes."""
        await self._all_known.wait()

    async def until_all_known(self) -> None:
        """The same, for a while. Raises Unavailable when a shard does not connect."""
        try:
            async with asyncio.timeout(SHARDS_SECONDS):
                await self._all_known.wait()
        except TimeoutError as error:
            raise Unavailable(STILL_CONNECTING) from error

    async def with_trust(self, incoming: Incoming) -> Incoming:
        """What somebody wrote in a DM, with what they are now to the server that the DM belongs to: Discord says
        nothing of that there. Who is in it no more, or of whom it does not tell, is a guest. Anything else stays as it
        is."""
        if incoming.place.kind is not ConversationKind.DM or incoming.sender_trust is Trust.TOOL:
            return incoming
        client, name = self._client(), incoming.workspace
        guild = client.get_guild(int(name)) if client is not None and name.isdigit() else None
        if guild is None:
            return incoming
        at = self._app.clock.now()  # what is said from now on holds, also if this is stored after that
        try:
            member = await find_member(guild, int(incoming.user))
        except FAILURES as error:  # TimeoutError is an OSError
            logger.warning("discord.trust_unknown", guild=guild.id, error=type(error).__name__)
            return replace(incoming, sender_trust=Trust.GUEST)
        trust = Trust.GUEST if member is None else trust_of(member, guild)
        return replace(incoming, sender_trust=trust, trust_stated=True, trust_stated_at=at)


async def find_member(guild: discord.Guild, user: int) -> discord.Member | None:
    """A member of a guild, as discord.py knows them from then on. Raises what a call to Discord may raise."""
    known = guild.get_member(user)
    if known is not None:
        return known
    async with asyncio.timeout(GUILD_LOOKUP_SECONDS):
        found = await guild.query_members(user_ids=[user], limit=1, cache=True)
    return found[0] if found else None


async def _is_member(guild: discord.Guild, user: int) -> bool:
    """Whether a user is in a guild. Raises Unavailable when it is not cached and Discord does not answer."""
    if guild.get_member(user) is not None:
        return True
    with translate_discord_errors():
        try:
            await guild.fetch_member(user)
        except discord.NotFound:
            return False
    return True
