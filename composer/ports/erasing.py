"""Erasing: what was said is taken out of every layer."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredReply:
    """An answer of an agent as it stands in the log, and the turn and message that it belongs to."""

    id: uuid.UUID
    turn_id: uuid.UUID
    conversation_id: uuid.UUID
    asked: uuid.UUID
    text: str


class Erasing(Protocol):
    """Taking things out of every layer."""

    async def closure(self, sources: Sequence[uuid.UUID], *, through_answers: bool) -> list[tuple[str, uuid.UUID]]:
        """(kind, id) of everything that flowed from some sources; `through_answers`: also into the prompts
        that had an answer in view which was made from them."""
        ...

    async def owned(self, user: uuid.UUID) -> list[tuple[str, uuid.UUID]]:
        """(kind, id) of all that is a person's own beside their messages."""
        ...

    async def erase(
        self, messages: Sequence[uuid.UUID], items: Mapping[str, Sequence[uuid.UUID]], now: datetime
    ) -> tuple[dict[str, int], set[uuid.UUID]]:
        """Delete messages and items for good; how many of each kind went, and the conversations changed."""
        ...

    async def replies(self, turns: Sequence[uuid.UUID], messages: Sequence[uuid.UUID]) -> list[StoredReply]:
        """The agent's answers in these turns, or to these messages."""
        ...

    async def hold_off(self) -> None:
        """Let nothing be erased until this transaction ends; called before any conversation is locked."""
        ...

    async def changed(
        self, sources: Sequence[tuple[uuid.UUID, str | None]], derived: Sequence[uuid.UUID]
    ) -> dict[uuid.UUID, str | None]:
        """Which messages and episodes (id, text as it was read), memories and facts (id, None) were erased or edited
        since, and what they say now (None: nothing any more); and which `derived` landmarks, summaries and compactions
        were erased with what they were made from."""
        ...

    async def texts(self, messages: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, str, Sequence[str]]]:
        """(conversation, text, names and texts of what was attached) of messages."""
        ...

    async def matching(
        self, user: uuid.UUID, namespaces: Sequence[str], words: str
    ) -> tuple[list[uuid.UUID], list[tuple[str, uuid.UUID]]]:
        """A person's own messages, and (kind, id) of their own entries, in some runs, that hold some words."""
        ...

    async def withdraw(self, replies: Sequence[uuid.UUID], text: str) -> None:
        """Put `text` in the place of answers."""
        ...

    async def empty_prompts(self, turns: Sequence[uuid.UUID], messages: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """Empty the stored prompts of these turns, and of those that answered these messages; their conversations."""
        ...
