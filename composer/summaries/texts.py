"""The values that summarising takes and returns."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer.model import Message
from composer.text.cleaning import clean_text
from composer.text.marks import without_marks
from composer.text.masking import mask
from composer.text.names import speaker_label

SUMMARISED_CHARS: Final = 10_000  # of a file: a long one says at its beginning what it is; recall finds the rest


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """One text to summarise: a message, or a summary of the tier below (then `author` is empty)."""

    author: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class SummaryText:
    """A written summary. `model` is the name of the model that wrote it, or `extractive`."""

    text: str
    model: str
    tokens: int


def summary_input(message: Message) -> SummaryInput:
    """A message as it is summarised: with the beginnings of its attachments, its secrets masked, an agent's without
    its source marks."""
    words = without_marks(message.text) if message.by_agent else message.text
    text = "\n".join((words, *(f"{a.name}: {a.text[:SUMMARISED_CHARS]}" for a in message.attachments if a.text)))
    return SummaryInput(message.author, message.at, mask(text))


def attributed_line(author: str, text: str, when: str = "") -> str:
    """A text on one line, after its author and time; without them when `author` is empty."""
    words = " ".join(clean_text(text).split())
    return f"{speaker_label(author)}{when}: {words}" if author else words
