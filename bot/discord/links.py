"""Links to messages on Discord."""

from collections.abc import Mapping

from bot.discord.reading import PLATFORM
from composer.model import ConversationKind
from composer.repositories.explanations import MessageAddress


def permalink(address: MessageAddress) -> str | None:
    """The link to a message of a guild; None for DMs, whose channel is not stored, and for other platforms."""
    if address.platform != PLATFORM or address.kind not in (ConversationKind.ROOM, ConversationKind.THREAD):
        return None
    channel = address.thread or address.name.rpartition("/")[2]  # a private thread is the room CHANNEL/THREAD
    return f"https://discord.com/channels/{address.workspace}/{channel}/{address.external_id}"


async def markdown_links(cited: Mapping[str, MessageAddress]) -> Mapping[str, str]:
    """Links in Markdown to the messages that an answer cites, by mark, without a preview of the message."""
    found = {mark: permalink(address) for mark, address in cited.items()}
    return {mark: f"[{mark}](<{link}>)" for mark, link in found.items() if link is not None}
