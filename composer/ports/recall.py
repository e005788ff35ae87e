"""Recall: what is found in the log, the summaries and the memories."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from composer.model import Conversation, Item, Message, Visibility
from composer.ports.clock import ALWAYS
from composer.ports.models import Vectors
from composer.ports.summaries import Compaction
from composer.visibility import Readable


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """Something to put into the recall index: its marks and its stems with their counts."""

    id: uuid.UUID
    kind: str
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    at: datetime
    terms: Mapping[str, int]
    vendors: tuple[str, ...] | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate for recall: how near by meaning (cosine, None without a vector) and by words (BM25), and which of
    the terms asked for it holds (a bit for each).

    `before` and `after`: the ids of what was said just before and after it in the same talk, where that was looked up.
    """

    item: Item
    meaning: float | None
    words: float
    before: str | None = None
    after: str | None = None
    matched: int = 0


@dataclass(frozen=True, slots=True)
class EmbeddingInput:
    """An item that has no vector yet. `version` is its row's: another one says that it changed."""

    id: uuid.UUID
    version: str
    text: str


@dataclass(frozen=True, slots=True)
class Background:
    """What a turn knows before it recalls anything. `settings` are JSON texts by key; `linked` are the other users that
    people are; `summaries` stand oldest first."""

    settings: Mapping[str, str]
    linked: Mapping[uuid.UUID, tuple[uuid.UUID, ...]]
    compaction: Compaction | None
    summaries: list[Item]


class Recall(Protocol):
    """What can be found again: by meaning, by words, and the index behind it."""

    async def search(
        self,
        readable: Readable,
        vector: Vectors | None,
        terms: Sequence[str],
        most: int,
        leave_out: Sequence[uuid.UUID],
        now: datetime,
        since: datetime = ALWAYS,
    ) -> list[Candidate]:
        """Up to `most` candidates by each way and the neighbours of the best, in the order of their ids, with texts.

        What was said after `now` or before `since` is not there, also for what is counted.
        """
        ...

    async def background(
        self,
        own: Readable,
        conversation: Conversation,
        agent: uuid.UUID,
        before: Message,
        tiers: Mapping[str, int],
        people: Sequence[uuid.UUID],
    ) -> Background:
        """What a turn knows of its conversation before it recalls anything: the latest summaries of each tier and the
        compaction of an agent's view, as they were before a message; who else `people` are; the tenant's settings."""
        ...

    async def to_index(self, most: int) -> list[Message]:
        """Messages that recall can't find yet, locked."""
        ...

    async def index(
        self, episodes: Sequence[tuple[uuid.UUID, uuid.UUID]], findable: Sequence[IndexEntry], done: Sequence[uuid.UUID]
    ) -> None:
        """Store episodes (id, message), make items findable by words, and mark messages as done."""
        ...

    async def to_embed(self, most: int) -> list[EmbeddingInput]:
        """Items without a vector, with the text to embed."""
        ...

    async def embed(self, items: Sequence[EmbeddingInput], vectors: Vectors) -> set[uuid.UUID]:
        """Store vectors, but of items that have changed since they were read; the ids of those that have one now."""
        ...

    async def backlog(self) -> tuple[int, int]:
        """(messages to index, items to embed)."""
        ...

    async def forget(self, ids: Sequence[uuid.UUID]) -> None:
        """Take items out of the index."""
        ...
