"""Fetches files from Discord, whose signed URLs are public and expire after a day."""

from typing import Final

import aiohttp
import discord
from yarl import URL

from bot.discord.outbox import DISCORD_UNREACHABLE, RATE_LIMITED, DiscordOutbox, translate_discord_errors
from bot.platform.download import OK, download
from composer.app import App
from composer.errors import Refused, Unavailable
from composer.model import Attachment, Message, Turn

IMAGE_EXPIRED: Final = "Discord no longer has it"
IMAGE_SECONDS: Final = 15
_HOSTS: Final = ("cdn.discordapp.com", "media.discordapp.net")


class DiscordFileSource:
    """Fetches files from Discord (composer.ports.files.FileSource).

    Only Discord's own hosts are asked, since an import may name any address. Our token is never sent to them.
    """

    def __init__(self, app: App, outbox: DiscordOutbox) -> None:
        self._app = app
        self._outbox = outbox

    async def fetch(self, turn: Turn | None, message: Message, attachment: Attachment, limit: int) -> bytes:
        """The bytes of an image or a voice note, from its stored address, or from the one that its message has now."""
        if not is_discord_address(attachment.address):
            raise Refused("it is not stored on Discord")
        content = await _download(attachment.address, limit)
        if content is None and turn is not None:
            with translate_discord_errors():
                address = await self._present_address(turn, message, attachment)
            if address is not None and is_discord_address(address):
                content = await _download(address, limit)
        if content is None:
            raise Refused(IMAGE_EXPIRED)
        if len(content) > limit:
            raise Refused("it is larger than Discord reported")
        return content

    async def _present_address(self, turn: Turn, message: Message, attachment: Attachment) -> str | None:
        async with self._app.database.transaction(turn.tenant_id, "read") as tx:
            to = await tx.deliveries.destination(turn.id)
        if to is None:
            return None
        channel = await self._outbox.channel(to)
        try:
            present = await channel.fetch_message(int(message.external_id))
        except discord.NotFound:
            return None
        return next((file.url for file in present.attachments if _is_same_file(file.url, attachment.address)), None)


def is_discord_address(address: str) -> bool:
    """Whether an address is on a host of Discord's."""
    try:
        url = URL(address)
        return (url.scheme == "https" and url.host in _HOSTS) or url.origin() == URL(discord.http.Route.BASE).origin()
    except ValueError:
        return False


def _is_same_file(one: str, other: str) -> bool:
    """Whether two addresses differ at most in their signatures."""
    return one.partition("?")[0] == other.partition("?")[0]


async def _download(address: str, max_bytes: int) -> bytes | None:
    """The content at an address; None if Discord no longer serves it. Raises Unavailable."""
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=IMAGE_SECONDS)) as session:
            status, content = await download(session, address, max_bytes)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unavailable(DISCORD_UNREACHABLE) from error
    if status >= 500 or status == 429:
        raise Unavailable(RATE_LIMITED)
    return content if status == OK else None
