"""Where Discord keeps images: at addresses that anyone may open who has them, and that end after a day."""

from typing import Final

import discord

from bot.discord_wire import DiscordWire, told
from composer.app import App
from composer.errors import Refused
from composer.model import Attachment, Message, Turn

GONE: Final = "Discord no longer has it"


class DiscordImages:
    """composer.ports.Images over Discord. No token of ours goes to an address of a file."""

    def __init__(self, app: App, wire: DiscordWire) -> None:
        self._app = app
        self._wire = wire

    async def fetch(self, turn: Turn, message: Message, attachment: Attachment, most: int) -> bytes:
        """The bytes of an image, from the address that came with it, or from the one that its message has now."""
        with told():
            content = await _opened(self._wire.connected(), attachment.address)
            if content is None:
                address = await self._address(turn, message, attachment)
                content = None if address is None else await _opened(self._wire.connected(), address)
        if content is None:
            raise Refused(GONE)
        if len(content) > most:
            raise Refused("it is larger than Discord said")
        return content

    async def _address(self, turn: Turn, message: Message, attachment: Attachment) -> str | None:
        async with self._app.store.transaction(turn.tenant_id, snapshot=True) as tx:
            to = await tx.doors.destination(turn.id)
        if to is None:
            return None
        channel = await self._wire.channel(to)
        try:
            now = await channel.fetch_message(int(message.external_id))
        except discord.NotFound:
            return None
        return next((file.url for file in now.attachments if _same(file.url, attachment.address)), None)


def _same(one: str, other: str) -> bool:
    """Whether two addresses are of one file: only what signs them differs."""
    return one.partition("?")[0] == other.partition("?")[0]


async def _opened(client: discord.Client, address: str) -> bytes | None:
    try:
        return await client.http.get_from_cdn(address)
    except (discord.NotFound, discord.Forbidden):
        return None
