"""Links to messages on Slack."""

from bot.slack.reading import PLATFORM
from composer.model import ConversationKind
from composer.repositories.explanations import MessageAddress


def permalink(url: str, address: MessageAddress, dm: str | None = None) -> str | None:
    """The link to a message of a channel in the workspace at `url`, or of the DM with the channel `dm`. None for other
    platforms, and for a DM whose channel is not given: it is not stored."""
    if not url or address.platform != PLATFORM:
        return None
    if address.kind is ConversationKind.DM and dm is not None:
        return f"{url.rstrip('/')}/archives/{dm}/p{address.external_id.replace('.', '')}"
    if address.kind not in (ConversationKind.ROOM, ConversationKind.THREAD):
        return None
    link = f"{url.rstrip('/')}/archives/{address.name}/p{address.external_id.replace('.', '')}"
    return f"{link}?thread_ts={address.thread}&cid={address.name}" if address.thread else link
