"""Links to messages on Slack."""

from collections.abc import Callable

from bot.slack.reading import PLATFORM
from composer.model import ConversationKind
from composer.repositories.explanations import MessageAddress


def permalink(
    url: str, address: MessageAddress, dm: str | None = None, channel_id: Callable[[str], str] = lambda name: name
) -> str | None:
    """The link to a message of a channel in the workspace at `url`, or of the DM with the channel `dm`. None for other
    platforms, and for a DM whose channel is not given: it is not stored. `channel_id` gives the present id of a stored
    channel."""
    if not url or address.platform != PLATFORM:
        return None
    if address.kind is ConversationKind.DM and dm is not None:
        return f"{url.rstrip('/')}/archives/{dm}/p{address.external_id.replace('.', '')}"
    if address.kind not in (ConversationKind.ROOM, ConversationKind.THREAD):
        return None
    channel = channel_id(address.name)
    link = f"{url.rstrip('/')}/archives/{channel}/p{address.external_id.replace('.', '')}"
    return f"{link}?thread_ts={address.thread}&cid={channel}" if address.thread else link
