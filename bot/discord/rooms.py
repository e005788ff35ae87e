"""Asks Discord which channels of a guild are private, without connecting to its gateway."""

from collections.abc import Callable, Sequence

import discord

from bot.discord.reading import FAILURES, is_hidden


async def private_channels(token: str, guilds: Sequence[str], warn: Callable[[str], None]) -> dict[str, bool]:
    """Whether each channel of these guilds is private, by channel id.

    Channels that Discord does not return are left out, with a sentence to `warn`.
    """
    found: dict[str, bool] = {}
    client = discord.Client(intents=discord.Intents.none())
    try:
        await client.login(token)
        for guild in guilds:
            try:
                channels = await (await client.fetch_guild(int(guild), with_counts=False)).fetch_channels()
            except (discord.Forbidden, discord.NotFound):
                warn(f"The bot is not in the guild {guild}, so Discord does not say which of its channels are private.")
                continue
            found |= {str(channel.id): is_hidden(channel) for channel in channels}
    except FAILURES as error:
        warn(f"Discord does not say which channels are private ({type(error).__name__}).")
    finally:
        await client.close()
    return found
