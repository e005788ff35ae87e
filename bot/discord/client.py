"""discord.py's client, as Nexus configures it."""

from collections.abc import Callable
from typing import Any, Final

import discord

from bot.discord import slash

GUILD_READY_SECONDS: Final = 0.5  # without a further guild, after which discord.py takes all guilds to be known


def intents() -> discord.Intents:
    """Which events Discord sends: rooms, their members, and messages with their text in rooms and DMs."""
    wanted = discord.Intents.none()
    wanted.guilds = wanted.members = wanted.message_content = True
    wanted.guild_messages = wanted.dm_messages = True
    return wanted


class DiscordClient(discord.AutoShardedClient):
    """Hands each event to `on_event` at once and in order.

    discord.py's own listeners run in tasks: by then, a later event may have changed what discord.py knows.
    """

    def __init__(self, on_event: Callable[..., None]) -> None:
        super().__init__(
            intents=intents(),
            chunk_guilds_at_startup=False,
            guild_ready_timeout=GUILD_READY_SECONDS,
            max_messages=None,
            allowed_mentions=discord.AllowedMentions.none(),
        )
        self._on_event = on_event

    async def setup_hook(self) -> None:
        """Called by discord.py between logging in and connecting."""
        await slash.register(self)

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """Called by discord.py for each event, as it arrives."""
        self._on_event(event, *args)
        super().dispatch(event, *args, **kwargs)
