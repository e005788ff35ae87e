"""The notices of the program in an agent's answer, and answers without them. Pure.

They tell the asker what was stored for them, ask what is to be stored, and say how to have something forgotten.
"""

import re
import uuid
from typing import Final

from composer.text.claims import CLAIM_NOTICES

SHORT_ID_CHARS: Final = 8  # of an id in a list
SHOWN_ID_CHARS: Final = 12  # of the id of what was stored
_UNDO: Final = "To undo it: /nexus forget item "
_CANCEL: Final = "To cancel: /nexus remind cancel "
_SHALL: Final = "Shall I "
_YES: Final = " To say yes: "
NOTHING_ELSE: Final = "\u2026"  # in place of an answer that was nothing but notices
NOT_FOR_ONE: Final = (
    "Nothing was stored: others would read it there. To have something remembered for you alone, tell me in a DM."
)
NOTHING_FORGOTTEN: Final = "Nothing was forgotten by that."  # begins what is offered to who asks for it in words
_NOTICE: Final = re.compile(
    rf"^[^\n]{{0,400}}{_UNDO}[0-9a-f]{{{SHOWN_ID_CHARS}}}$"
    rf"|^I (?:will remind|have set) [^\n]{{0,3000}}{_CANCEL}[0-9a-f]{{8}}$"
    rf"|^{_SHALL}[^\n]{{0,5000}}{_YES}/nexus [^\n]{{0,5000}}$"
    rf"|^(?:{'|'.join(map(re.escape, CLAIM_NOTICES))}) /nexus [^\n]{{0,400}}$"
    rf"|^{re.escape(NOT_FOR_ONE)}$"
    rf"|^{re.escape(NOTHING_FORGOTTEN)}[^\n]*(?:\n(?:Your message|The one that I)[^\n]{{0,400}}){{0,2}}$",
    re.MULTILINE,
)
_BEGINNINGS: Final = (_UNDO, _CANCEL, _YES, NOT_FOR_ONE, NOTHING_FORGOTTEN, *CLAIM_NOTICES)


def undo_sentence(id: uuid.UUID) -> str:
    """How to undo that something was stored: the end of a notice."""
    return f"{_UNDO}{id.hex[:SHOWN_ID_CHARS]}"


def proposal_sentence(what: str, command: str) -> str:
    """The question whether to do something, with the command that says yes."""
    return f"{_SHALL}{what}?{_YES}{command}"


def without_notices(text: str) -> str:
    """An agent's answer without its notices: a model that reads them learns to write them, and to store nothing."""
    return text if not any(each in text for each in _BEGINNINGS) else _NOTICE.sub("", text).strip() or NOTHING_ELSE
