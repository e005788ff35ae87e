"""What `nexus doctor` says of Discord: whether the token works and the needed intents are switched on."""

import re
from typing import Final

import discord

from bot.discord.client import intents
from bot.discord.reading import FAILURES
from composer.settings import Settings

BAD_TOKEN: Final = (
    "Discord does not accept the token: set NEXUS_DISCORD_TOKEN to the one that the developer portal shows under Bot "
    "(Reset Token), and start Nexus again."
)
NO_TOKEN: Final = (
    "that is no Discord token, which has three parts with dots between them: in the developer portal, under Bot, press "
    "Reset Token and copy what it shows"
)
SHOWN_SERVERS: Final = 10
MISSING_INTENTS: Final = (
    "Discord withholds the text of messages: in the developer portal, under Bot, switch on Message Content Intent and "
    "Server Members Intent."
)


PERMISSIONS: Final = discord.Permissions(
    view_channel=True, send_messages=True, send_messages_in_threads=True, read_message_history=True
)
DISCORD_SCOPES: Final = ("bot", "applications.commands")
# https://discord.com/developers/docs/reference#authentication: the bot's id, a time and a signature, in base64
_TOKEN: Final = re.compile(r"\A[\w=-]{16,}\.[\w=-]{4,}\.[\w=-]{20,}\Z", re.ASCII)


async def inspect(settings: Settings) -> list[tuple[bool, str]]:
    """Whether each check passes, with a sentence that says what to do if not. Empty without a token."""
    if settings.discord_token is None:
        return []
    checks, _ = await look_up(settings.discord_token.get_secret_value())
    return checks


def invitation(application: int) -> str:
    """The address at which an admin of a server lets the bot of this application in, with the rights that it needs."""
    return discord.utils.oauth_url(application, permissions=PERMISSIONS, scopes=DISCORD_SCOPES)


def may_be_token(text: str) -> bool:
    """Whether a text has the form of a bot's token, so that it is worth a call."""
    return _TOKEN.fullmatch(text) is not None


async def look_up(token: str) -> tuple[list[tuple[bool, str]], int | None]:
    """The checks of a token, as `inspect`, and the id of its application; None when Discord did not say."""
    client = discord.Client(intents=intents())
    try:
        await client.login(token)
        application = await client.application_info()
        servers = [f"{guild.name} (discord:{guild.id})" async for guild in client.fetch_guilds(limit=SHOWN_SERVERS)]
    except discord.LoginFailure:
        return [(False, BAD_TOKEN)], None
    except FAILURES as error:
        sentence = f"Discord can't be reached ({type(error).__name__}): check the network, and try again."
        return [(False, sentence)], None
    finally:
        await client.close()
    flags = application.flags
    inside = f", which is in {', '.join(servers)}" if servers else ""
    found = [(True, f"the token belongs to {client.user}{inside}")]
    switches = {
        "Message Content Intent": flags.gateway_message_content or flags.gateway_message_content_limited,
        "Server Members Intent": flags.gateway_guild_members or flags.gateway_guild_members_limited,
    }
    for name, on in switches.items():
        found.append((on, f"{name} is on" if on else f"in the developer portal, under Bot, switch on {name}"))
    return found, application.id
