"""Links to messages, and files for one person, on Slack."""

from typing import Final

import aiohttp

from bot.slack.client import OutcomeUnknown, Slack
from bot.slack.reading import PLATFORM
from composer.model import ConversationKind
from composer.repositories.explanations import MessageAddress

_OK: Final = 200


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


async def upload_text(slack: Slack, channel: str, name: str, text: str) -> None:
    """Put a text file into a channel, in the three steps that Slack asks for. Raises as `Slack.call`."""
    content = text.encode()
    ticket = await slack.call("files.getUploadURLExternal", filename=name, length=len(content))
    try:
        async with slack.session.post(ticket["upload_url"], data=content) as response:
            if response.status != _OK:
                raise OutcomeUnknown(f"Slack does not take a file at the moment ({response.status}).")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise OutcomeUnknown("Slack does not take a file at the moment.") from error
    files = [{"id": ticket["file_id"], "title": name}]
    await slack.call("files.completeUploadExternal", files=files, channel_id=channel)
