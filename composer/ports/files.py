"""Files of messages (images, voice notes, documents), as a platform stores them."""

from typing import Protocol

from composer.model import Attachment, Message, Turn


class FileSource(Protocol):
    """Fetches the files of one platform's messages."""

    async def fetch(self, turn: Turn | None, message: Message, attachment: Attachment, limit: int) -> bytes:
        """The content of a file, at most `limit` bytes. With a turn of its conversation the platform
        may be asked where it is now.

        Raises Unavailable when the platform does not provide it now, Refused when it is deleted or too large.
        """
        ...
