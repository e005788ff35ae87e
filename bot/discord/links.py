"""Links to messages on Discord. Pure."""

from composer.model import DISCORD, ConversationKind
from composer.repositories.explanations import MessageAddress


def permalink(address: MessageAddress, dm: int | None = None) -> str | None:
    """The link to a message of a guild, or of the DM with the channel `dm`. None for other platforms, and for a DM
    whose channel is not given: it is not stored."""
    if address.platform != DISCORD:
        return None
    if address.kind is ConversationKind.DM and dm is not None:
        return f"https://discord.com/channels/@me/{dm}/{address.external_id}"
    if address.kind not in (ConversationKind.ROOM, ConversationKind.THREAD):
        return None
    channel = address.thread or address.name.rpartition("/")[2]  # a private thread is the room CHANNEL/THREAD
    return f"https://discord.com/channels/{address.workspace}/{channel}/{address.external_id}"
