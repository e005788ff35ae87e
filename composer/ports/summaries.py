"""Compactions of a view, and the summaries of the tiers."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from composer.model import ConversationKind, Message, Visibility


@dataclass(frozen=True, slots=True)
class Compaction:
    """The oldest part of a conversation's view, as one agent sees it, as a summary.

    It covers all messages up to `through` (time, seq); `made` is the newest message that was in view. `before` and
    `after` are the prompt's tokens as compaction judges it. `requested`: a person asked for it.
    """

    id: uuid.UUID
    conversation_id: uuid.UUID
    agent_id: uuid.UUID
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    through: tuple[datetime, int]
    made: tuple[datetime, int]
    messages: int
    text: str
    tokens: int
    model: str
    before: int
    after: int
    requested: bool
    created_at: datetime
    sources: tuple[tuple[str, uuid.UUID], ...] = ()

    @property
    def vendors(self) -> tuple[str, ...]:
        """A view is the bot's own."""
        return ("*",)


class Compactions(Protocol):
    """The oldest parts of views, as summaries."""

    async def add(self, compaction: Compaction) -> bool:
        """Keep one with its lineage; False when as new a one is there."""
        ...

    async def unchanged(self, messages: Sequence[Message]) -> bool:
        """Whether these messages still stand in the log as they are here."""
        ...


@dataclass(frozen=True, slots=True)
class DueMark:
    """A quarter of an hour of a conversation's run that a tier of summaries has to look at. `archived_at`: of a thread,
    when its platform archived it."""

    conversation_id: uuid.UUID
    namespace: str
    quarter: datetime
    kind: ConversationKind
    user_id: uuid.UUID | None
    agent_id: uuid.UUID | None
    archived_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """What one summary is of: a span of time (its end not included) of one run with one visibility. `archived_at` as in
    its marks."""

    tier: str
    conversation_id: uuid.UUID
    namespace: str
    visibility: Visibility
    user_id: uuid.UUID | None
    agent_id: uuid.UUID | None
    starts_at: datetime
    ends_at: datetime
    archived_at: datetime | None = None

    def between(self, first: datetime, last: datetime) -> "Span":
        """The same run, from a first message to a last one."""
        return replace(self, starts_at=first, ends_at=last)


@dataclass(frozen=True, slots=True)
class NewSummary:
    """A summary to store, with what it was made from (`source_kind`: message or summary)."""

    id: uuid.UUID
    span: Span
    text: str
    tokens: int
    model: str
    source_kind: str
    sources: tuple[uuid.UUID, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """A summary as it stands."""

    id: uuid.UUID
    starts_at: datetime
    ends_at: datetime
    text: str


class Summaries(Protocol):
    """Summaries as the job writes them, tier by tier. Nobody reads by it: what is read goes by Recall."""

    async def due(self, tier: str) -> list[DueMark]:
        """What a tier has to look at, oldest first."""
        ...

    async def settle(self, span: Span, quarters: Sequence[datetime]) -> None:
        """A tier has looked at these."""
        ...

    async def mark(self, tier: str, span: Span) -> None:
        """A higher tier has to look at where a span begins."""
        ...

    async def serial(self) -> None:
        """From here to the end of the transaction nobody else stores a summary or erases a message."""
        ...

    async def around(
        self, conversation: uuid.UUID, namespace: str, first: datetime, last: datetime, pause: timedelta
    ) -> tuple[datetime, datetime]:
        """From where to where the talk went on, without such a pause, that was going on between two moments."""
        ...

    async def said(self, span: Span) -> list[tuple[Message, str]]:
        """What people said in a span, oldest first, each with what tells an edited text from the one before; nothing
        of those who opted out."""
        ...

    async def within(self, span: Span, tier: str | None = None) -> list[StoredSummary]:
        """The summaries of the span's tier (or another one) in its conversation's run that overlap it."""
        ...

    async def put(self, summary: NewSummary) -> None:
        """Store a summary with its lineage."""
        ...

    async def replace(self, summaries: Sequence[uuid.UUID]) -> None:
        """Take summaries away whose place is taken; their lineage stays, for the prompts that held them."""
        ...
