"""Links from pages and answers of the API to messages on chat platforms. Pure."""

from urllib.parse import quote

from bot.discord.links import permalink
from bot.slack.links import client_link
from composer.repositories.explanations import MessageAddress


def message_link(address: MessageAddress | None) -> str | None:
    """The link to a message, for whoever may read it. None for what has no address, for other platforms, and for DMs,
    whose channels are not stored. What an uploaded file calls a message is quoted: it leads to no other site."""
    if address is None:
        return None
    link = permalink(address) or client_link(address)
    return None if link is None else quote(link, safe=":/")
