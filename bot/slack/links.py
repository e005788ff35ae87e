"""Links to messages on Slack. Pure."""

from collections.abc import Callable

from composer.model import SLACK, ConversationKind
from composer.repositories.explanations import MessageAddress


def permalink(
    url: str, address: MessageAddress, dm: str | None = None, channel_id: Callable[[str], str] = lambda name: name
) -> str | None:
    """The link to a message of a channel in the workspace at `url`, or of the DM with the channel `dm`. None for other
    platforms, and for a DM whose channel is not given: it is not stored. `channel_id` gives the present id of a stored
    channel."""
    if not url or address.platform != SLACK:
        return None
    if address.kind is ConversationKind.DM and dm is not None:
        return f"{url.rstrip('/')}/archives/{dm}/p{address.external_id.replace('.', '')}"
    if address.kind not in (ConversationKind.ROOM, ConversationKind.THREAD):
        return None
    channel = channel_id(address.name)
    link = f"{url.rstrip('/')}/archives/{channel}/p{address.external_id.replace('.', '')}"
    return f"{link}?thread_ts={address.thread}&cid={channel}" if address.thread else link


def client_link(address: MessageAddress) -> str | None:
    """The link to a message of a channel in Slack's web client, as a thread beside its channel: for where the address
    of the workspace is not known. None for other platforms, and for a DM."""
    if address.platform != SLACK or address.kind not in (ConversationKind.ROOM, ConversationKind.THREAD):
        return None
    channel, thread = address.name, address.thread or address.external_id
    return f"https://app.slack.com/client/{address.workspace}/{channel}/thread/{channel}-{thread}"
