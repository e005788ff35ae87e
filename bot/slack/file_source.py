"""Fetches files from Slack: at private addresses, which require our token."""

from bot.slack.client import Slack
from bot.slack.directory import SlackDirectory
from composer.errors import Refused
from composer.model import Attachment, Message, Turn


class SlackFileSource:
    """Fetches files from Slack (composer.ports.files.FileSource).

    Our token is sent to Slack's own hosts alone, and follows no redirect.
    """

    def __init__(self, slack: Slack, directory: SlackDirectory) -> None:
        self._slack = slack
        self._directory = directory

    async def fetch(self, turn: Turn | None, message: Message, attachment: Attachment, limit: int) -> bytes:
        """The bytes of an image or a voice note. Raises Unavailable, and Refused if our token may not have it."""
        if not self._directory.is_slack_address(attachment.address):
            raise Refused("it lies outside Slack")
        try:
            return await self._slack.download(attachment.address, limit)
        except Refused as error:
            raise Refused("Slack no longer provides it") from error
