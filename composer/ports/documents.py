"""The text of documents."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The text of a file, and the `note` about what was not read of it and why, such as "could not be read: it needs a
    password"; "" if all was."""

    text: str = ""
    note: str = ""


class DocumentReader(Protocol):
    """Reads files as text."""

    async def read(self, name: str, media_type: str, content: bytes) -> DocumentText:
        """The text of a file, at most MAX_DOCUMENT_CHARS of it (composer/text/file_kinds.py). Never fails: the note
        says why there is none. Nothing but the content is read, and nothing is fetched."""
        ...
