"""The values that summarising takes and returns."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer.model import Message
from composer.ports.clock import EARLIEST
from composer.prompt.lines import author_label, numbers_of_namesakes
from composer.text.cleaning import clean_text
from composer.text.marks import without_marks
from composer.text.masking import mask

SUMMARISED_CHARS: Final = 10_000  # of a file: a long one says at its beginning what it is; recall finds the rest
IN_FILE: Final = " (file)"  # behind the author of a line that stands in a file of theirs
NOT_OWN: Final = " (quoted or pasted)"  # behind whom a line quotes or pastes


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """One text to summarise: a message, with what stands in its files, or an earlier summary (then `author` is empty).
    `author` is what stands before its lines: a name, with the number of those who are called alike. `place` tells the
    threads of a room apart. `day`: the weekday of an earlier summary, where it matters. `after_gap`: what was said
    there right before it is not among the inputs, or was edited by its author since."""

    author: str
    at: datetime
    text: str
    files: tuple[str, ...] = ()
    place: str = ""
    after_gap: bool = False
    day: str = ""


@dataclass(frozen=True, slots=True)
class SummaryText:
    """A summary, an excerpt a line. `model` is the name of the model that chose them, or `extractive`."""

    text: str
    model: str
    tokens: int


def summary_inputs(messages: Sequence[tuple[Message, str]]) -> list[SummaryInput]:
    """Messages with their places, oldest first, as they are summarised: with the beginnings of their attachments, their
    secrets masked, an agent's without its source marks, and people of one name told apart."""
    numbers = numbers_of_namesakes((each.author, each.user_id) for each, _ in messages if not each.by_agent)
    gaps = _gaps(messages)
    return [_summary_input(*each, after_gap, numbers) for each, after_gap in zip(messages, gaps, strict=True)]


def _gaps(messages: Iterable[tuple[Message, str]]) -> list[bool]:
    """Whether each message comes after a gap: the one before it in its place is not among them, or what somebody else
    said there right before it was edited since."""
    found: list[bool] = []
    last: dict[str, tuple[Message, datetime]] = {}  # of each place, and when what its author said there was last edited
    for message, place in messages:
        before, edited_at = last.get(place, (None, EARLIEST))
        same = before is not None and (before.user_id, before.agent_id) == (message.user_id, message.agent_id)
        missing = before is not None and before.seq + 1 != message.seq
        found.append(missing or (edited_at > message.at and not same))
        last[place] = (message, max(edited_at if same else EARLIEST, message.edited_at or EARLIEST))
    return found


def _summary_input(message: Message, place: str, after_gap: bool, numbers: Mapping[uuid.UUID, str]) -> SummaryInput:
    words = without_marks(message.text) if message.by_agent else message.text
    files = tuple(mask(f"{a.name}: {a.text[:SUMMARISED_CHARS]}") for a in message.attachments if a.text)
    return SummaryInput(author_label(message, numbers), message.at, mask(words), files, place, after_gap)


def is_own(author: str) -> bool:
    """Whether what stands before a line says that its words are its author's own. No name has brackets
    (composer/text/names.py)."""
    return not author.endswith(")")


def attributed_line(author: str, text: str, when: str = "") -> str:
    """A text on one line, after its author (as a `SummaryInput` has it) and time; without them when it is empty."""
    words = " ".join(clean_text(text).split())
    return f"{author}{when}: {words}" if author else words
