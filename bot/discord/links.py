"""Links to messages on Discord."""

from collections.abc import Mapping

from bot.discord.outbox import DiscordOutbox
from bot.discord.reading import PLATFORM
from composer.model import ConversationKind
from composer.repositories.deliveries import Destination
from composer.repositories.explanations import MessageAddress


def permalink(address: MessageAddress, dm: int | None = None) -> str | None:
    """The link to a message of a guild, or of the DM with the channel `dm`. None for other platforms, and for a DM
    whose channel is not given: it is not stored."""
    if address.platform != PLATFORM:
        return None
    if address.kind is ConversationKind.DM and dm is not None:
        return f"https://discord.com/channels/@me/{dm}/{address.external_id}"
    if address.kind not in (ConversationKind.ROOM, ConversationKind.THREAD):
        return None
    channel = address.thread or address.name.rpartition("/")[2]  # a private thread is the room CHANNEL/THREAD
    return f"https://discord.com/channels/{address.workspace}/{channel}/{address.external_id}"


async def markdown_links(
    outbox: DiscordOutbox, to: Destination, cited: Mapping[str, MessageAddress]
) -> Mapping[str, str]:
    """Links in Markdown to the messages that an answer cites, by mark, without a preview of the message. Those of a DM
    are of the one where the answer is posted. Raises as `DiscordOutbox.channel`."""
    dm = (await outbox.channel(to)).id if any(each.kind is ConversationKind.DM for each in cited.values()) else None
    found = {mark: permalink(address, dm) for mark, address in cited.items()}
    return {mark: f"[{mark}](<{link}>)" for mark, link in found.items() if link is not None}
