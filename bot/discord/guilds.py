"""Which workspace a Discord message belongs to."""

import asyncio
from collections.abc import Callable
from typing import Final

import discord

from bot.discord.outbox import translate_discord_errors
from bot.discord.reading import DM_WORKSPACE, PLATFORM
from composer.app import App
from composer.workspace import Workspace

DMS: Final = 0  # the guild id that DMs are filed under


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

        Raises Unavailable when it is not cached and Discord does not answer.
        """
        if guild != DMS:
            return self._app.directory.workspace(PLATFORM, str(guild))
        if user not in self._dm_workspaces:
            await self._all_known.wait()
            name = DM_WORKSPACE
            for each in self.ordered():
                if await _is_member(each, int(user)):
                    name = str(each.id)
                    break
            self._dm_workspaces[user] = self._app.directory.workspace(PLATFORM, name)
        return self._dm_workspaces[user]


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
