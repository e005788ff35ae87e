"""Memories: what is drawn from talk, kept, merged and superseded."""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from composer.memory.rules import StoredMemory
from composer.model import Message, Visibility
from composer.ports.models import Vectors
from composer.visibility import AccessTag, Readable


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A statement to remember, and the messages that it came from."""

    id: uuid.UUID
    mark: AccessTag
    agent_id: uuid.UUID | None
    kind: str
    text: str
    author: str
    origin: str
    at: datetime
    sources: tuple[uuid.UUID, ...] = ()
    key: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a talk is filed: extraction never looks over its edge."""

    conversation_id: uuid.UUID
    namespace: str
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class Successor:
    """A memory that took another one's place, with its own marks: it may be read by others than that one."""

    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    vendors: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class SupersededMemory:
    """A memory that held from `at` until `until`, and what took its place."""

    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    vendors: tuple[str, ...]
    text: str
    author: str
    at: datetime
    until: datetime
    newer: Successor | None


@dataclass(frozen=True, slots=True)
class SimilarMemory:
    """A statement that is near to another one by meaning (cosine), and what took its place, if anything did."""

    held: StoredMemory
    cosine: float
    newer: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class ExtractedStatement:
    """A statement that an extractor drew from messages, those that it came from first of all, and from memories that
    it was shown."""

    kind: str
    text: str
    sources: tuple[uuid.UUID, ...]
    built_on: tuple[uuid.UUID, ...] = ()


class Extractor(Protocol):
    """Draws statements from talk. It sees the talk and what is remembered of its own scope, and nothing else."""

    async def extract(
        self, messages: Sequence[Message], near: Callable[[Vectors], Awaitable[list[tuple[uuid.UUID, str]]]]
    ) -> list[ExtractedStatement]:
        """What the messages state; `near` gives the memories of their scope nearest to a vector.

        Raises Unavailable or Misconfigured with one sentence: also for an answer that can't be read.
        """
        ...


class Memories(Protocol):
    """How memories stand beside each other, and the queue of what a model is to look at."""

    async def lock(self) -> None:
        """One at a time judges how a tenant's statements stand, until the transaction ends."""
        ...

    async def known(self, ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        """Which of these are stored."""
        ...

    async def held(self, mark: AccessTag, terms: Sequence[str]) -> list[StoredMemory]:
        """What stands in one scope and shares a term, oldest first; only to hold new statements against it."""
        ...

    async def restate(self, id: uuid.UUID, sources: Sequence[uuid.UUID], at: datetime, ends: datetime | None) -> None:
        """Note that more messages state a memory."""
        ...

    async def drawn(self, ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """Which of these are statements drawn from talk that stand for themselves, as they were said."""
        ...

    async def alike(self, id: uuid.UUID, least: float) -> list[SimilarMemory]:
        """A statement with its own, and those of its scope and kind that are at least so near to it; none when it
        stands for itself no more."""
        ...

    async def merge(self, gone: uuid.UUID, stays: uuid.UUID, proposed: uuid.UUID) -> None:
        """Make one statement of two; `proposed` is the landmark that the one that goes may have been proposed as."""
        ...

    async def merged(self, ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """The statements that are one with these, in other words."""
        ...

    async def supersede(self, old: Sequence[uuid.UUID], new: uuid.UUID, at: datetime) -> None:
        """Let a memory take the place of older ones from a time on."""
        ...

    async def remake(self, memories: Sequence[uuid.UUID], without: Sequence[uuid.UUID]) -> None:
        """Read the messages of memories that go again, without those that go themselves."""
        ...

    async def superseded(
        self, readable: Readable, terms: Sequence[str], most: int, at: datetime
    ) -> list[SupersededMemory]:
        """What held once and was superseded since, latest first."""
        ...

    async def near(
        self, talk: Scope, owner: uuid.UUID | None, vector: Vectors, most: int
    ) -> list[tuple[uuid.UUID, str]]:
        """(id, text) of the memories of a talk's own scope that are nearest to it."""
        ...

    async def built_on(self, id: uuid.UUID, memories: Sequence[uuid.UUID]) -> None:
        """Note from which other memories one was made."""
        ...

    async def queue(self, messages: Sequence[uuid.UUID]) -> None:
        """Let a model look at messages."""
        ...

    async def due(self, now: datetime, enough: int, quiet_since: datetime, most: int) -> list[Scope]:
        """Scopes whose turn it is, longest waiting first."""
        ...

    async def claim(
        self, talk: Scope, claim: uuid.UUID, now: datetime, until: datetime, most: int
    ) -> list[Message] | None:
        """The oldest messages of a scope's queue, for one attempt; None while another one has them."""
        ...

    async def unchanged(self, talk: Scope, claim: uuid.UUID, messages: Sequence[Message]) -> bool:
        """Whether an attempt still has its claim, and its messages still say what they said; they do until the
        transaction ends."""
        ...

    async def done(self, talk: Scope, claim: uuid.UUID, messages: Sequence[uuid.UUID]) -> None:
        """Take messages out of the queue, with the claim."""
        ...

    async def release(self, talk: Scope, claim: uuid.UUID) -> None:
        """Give an attempt up, without a failure."""
        ...

    async def attempts(self, talk: Scope) -> int:
        """How often a scope's queue has failed in a row."""
        ...

    async def failed(
        self, talk: Scope, claim: uuid.UUID, sentence: str, due: datetime, parked: datetime | None
    ) -> None:
        """Try again at a time, or not before an admin says so."""
        ...

    async def unpark(self) -> int:
        """Let everything that is parked be tried again; how many scopes that are."""
        ...

    async def backlog(self) -> tuple[int, int, str | None]:
        """(messages waiting, scopes parked, the sentence of the last one that was)."""
        ...
