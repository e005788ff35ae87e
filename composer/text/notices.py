"""The notices in an agent's answer that tell what it stored for the asker, and answers without them. Pure."""

import re
import uuid
from typing import Final

SHOWN_ID_CHARS: Final = 12  # of the id of what was stored
_UNDO: Final = "To undo it: /nexus forget item "
_NOTHING_ELSE: Final = "\u2026"  # in place of an answer that was nothing but notices
_NOTICE: Final = re.compile(rf"^[^\n]{{0,400}}{_UNDO}[0-9a-f]{{{SHOWN_ID_CHARS}}}$", re.MULTILINE)


def undo_sentence(id: uuid.UUID) -> str:
    """How to undo that something was stored: the end of a notice."""
    return f"{_UNDO}{id.hex[:SHOWN_ID_CHARS]}"


def without_notices(text: str) -> str:
    """An agent's answer without its notices: a model that reads them learns to write them, and to store nothing."""
    return text if _UNDO not in text else _NOTICE.sub("", text).strip() or _NOTHING_ELSE
