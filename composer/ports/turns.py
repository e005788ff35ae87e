"""Turns and their answers."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from composer.model import Conversation, Message, Turn, Usage
from composer.visibility import Readable


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn with what is stored of its answer. `prompt` is the JSON text of the prompt; None once emptied."""

    turn: Turn
    state: str
    reply_id: uuid.UUID | None
    failure: str | None
    prompt: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What is stored when a turn is answered, or has failed (`failure`: the sentence for the person)."""

    turn: Turn
    prompt: str | None
    timings_ms: str
    model: str
    usage: Usage
    at: datetime
    reply: Message | None = None
    failure: str | None = None
    sources: tuple[tuple[str, uuid.UUID], ...] = ()
    counted_tokens: int = 0
    reused_tokens: int = 0


class Turns(Protocol):
    """Questions on their way to an answer."""

    async def queue(self, turns: Sequence[tuple[Turn, datetime]], process: int) -> None:
        """Queue answers; a turn that is known already stays as it is."""
        ...

    async def adopt(self, process: int, doors: Sequence[str]) -> int:
        """Take over what dead processes left; returns how many."""
        ...

    async def open(self, process: int) -> list[tuple[Turn, str]]:
        """What this process has still to do, oldest first, with its state."""
        ...

    async def get(self, id: uuid.UUID) -> StoredTurn | None:
        """One turn."""
        ...

    async def answer(self, answer: Answer) -> bool:
        """Store an answer, once; False if it was answered already."""
        ...

    async def sent(self, id: uuid.UUID, now: datetime) -> None:
        """The person has it."""
        ...

    async def refused(self, id: uuid.UUID, why: str) -> None:
        """The platform will never take the answer: it is not tried again, and why is kept."""
        ...

    async def last_counts(self, conversation: Conversation, model: str) -> tuple[int, int]:
        """(our count, the API's count) of the last prompt that a model got here; zeros if there is none."""
        ...

    async def prompt_before(self, turn: Turn) -> str | None:
        """The role messages (JSON) of the agent's last prompt before this turn in its conversation, to be compared."""
        ...

    async def last_prompt(
        self, readable: Readable, conversation: Conversation, asker: uuid.UUID, external_id: str | None
    ) -> tuple[str, str] | None:
        """(prompt JSON, timings JSON) of the asker's last answered turn here, or of the one asked by a message."""
        ...
