"""Images of messages, as a platform stores them."""

from typing import Protocol

from composer.model import Attachment, Message, Turn


class ImageSource(Protocol):
    """Fetches the images of one platform's messages."""

    async def fetch(self, turn: Turn, message: Message, attachment: Attachment, limit: int) -> bytes:
        """The content of an image of the turn's conversation, at most `limit` bytes.

        Raises Unavailable when the platform does not provide it now, Refused when it is deleted or too large.
        """
        ...
