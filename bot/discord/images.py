"""Where Discord keeps images: at addresses that anyone may open who has them, and that end after a day."""

from typing import Final

import aiohttp
import discord
from yarl import URL

from bot.discord.outbox import BUSY, UNREACHABLE, DiscordOutbox, told
from bot.platform.download import OK, download
from composer.app import App
from composer.errors import Refused, Unavailable
from composer.model import Attachment, Message, Turn

GONE: Final = "Discord no longer has it"
TIMEOUT: Final = 15  # seconds
_HOSTS: Final = ("cdn.discordapp.com", "media.discordapp.net")


class DiscordImages:
    """composer.ports.Images over Discord. Only Discord's own hosts are asked, since an import may name any address; no
    token of ours goes to one of a file."""

    def __init__(self, app: App, wire: DiscordOutbox) -> None:
        self._app = app
        self._outbox = wire

    async def fetch(self, turn: Turn, message: Message, attachment: Attachment, most: int) -> bytes:
        """The bytes of an image, from the address that came with it, or from the one that its message has now."""
        if not is_discords(attachment.address):
            raise Refused("it lies outside Discord")
        content = await _opened(attachment.address, most)
        if content is None:
            with told():
                address = await self._address(turn, message, attachment)
            content = await _opened(address, most) if address is not None and is_discords(address) else None
        if content is None:
            raise Refused(GONE)
        if len(content) > most:
            raise Refused("it is larger than Discord said")
        return content

    async def _address(self, turn: Turn, message: Message, attachment: Attachment) -> str | None:
        async with self._app.database.transaction(turn.tenant_id, snapshot=True) as tx:
            to = await tx.deliveries.destination(turn.id)
        if to is None:
            return None
        channel = await self._outbox.channel(to)
        try:
            now = await channel.fetch_message(int(message.external_id))
        except discord.NotFound:
            return None
        return next((file.url for file in now.attachments if _same(file.url, attachment.address)), None)


def is_discords(address: str) -> bool:
    """Whether an address is one where Discord keeps files."""
    try:
        there = URL(address)
        return (there.scheme == "https" and there.host in _HOSTS) or there.origin() == URL(
            discord.http.Route.BASE
        ).origin()
    except ValueError:
        return False


def _same(one: str, other: str) -> bool:
    """Whether two addresses are of one file: only what signs them differs."""
    return one.partition("?")[0] == other.partition("?")[0]


async def _opened(address: str, most: int) -> bytes | None:
    """What is there; None if it is not handed out. Raises Unavailable."""
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT)) as session:
            status, content = await download(session, address, most)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unavailable(UNREACHABLE) from error
    if status >= 500 or status == 429:
        raise Unavailable(BUSY)
    return content if status == OK else None
