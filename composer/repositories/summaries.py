"""Summaries of the tiers (thread, session, day, week), as the summary jobs write them.

Prompts read them through composer.repositories.recall.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from composer.model import ConversationKind, Message, Visibility
from composer.ports.database import Statements
from composer.repositories.lineage import insert_lineage
from composer.repositories.messages import message_from_row


@dataclass(frozen=True, slots=True)
class DueQuarter:
    """A quarter of an hour of a conversation that a tier has to summarise. `archived_at` is when the platform archived
    the thread."""

    conversation_id: uuid.UUID
    namespace: str
    quarter: datetime
    kind: ConversationKind
    user_id: uuid.UUID | None
    agent_id: uuid.UUID | None
    archived_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """What one summary covers: a span of time, its end excluded, of one namespace with one visibility."""

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
        """The same conversation over another span of time."""
        return replace(self, starts_at=first, ends_at=last)


@dataclass(frozen=True, slots=True)
class NewSummary:
    """A summary to store, with its sources (`source_kind`: message or summary)."""

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
    """A stored summary."""

    id: uuid.UUID
    starts_at: datetime
    ends_at: datetime
    text: str


class Summaries:
    """Stored summaries, and what is due to be summarised."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def due(self, tier: str) -> list[DueQuarter]:
        """What a tier has to summarise, oldest first."""
        return await self._sql.fetch_as(DueQuarter, "summaries_due_list", tier=tier)

    async def mark_due(self, tier: str, span: Span) -> None:
        """Mark the beginning of a span as due for a higher tier."""
        await self._sql.execute(
            "summaries_mark_due",
            tier=tier,
            conversation_id=span.conversation_id,
            namespace=span.namespace,
            quarter=span.starts_at,
        )

    async def mark_processed(self, span: Span, quarters: Sequence[datetime]) -> None:
        """Record that the span's tier has processed these quarters of an hour."""
        await self._sql.execute(
            "summaries_mark_processed",
            tier=span.tier,
            conversation_id=span.conversation_id,
            namespace=span.namespace,
            quarters=list(quarters),
        )

    async def activity_around(
        self, conversation: uuid.UUID, namespace: str, first: datetime, last: datetime, pause: timedelta
    ) -> tuple[datetime, datetime]:
        """The first and the last message time of the activity between two moments, extended both ways until a pause of
        at least this length."""
        row = await self._sql.fetch_one(
            "activity_around", conversation_id=conversation, namespace=namespace, first=first, last=last, pause=pause
        )
        return (first, last) if row is None else (row["began"] or first, row["ended"] or last)

    async def messages_in(self, span: Span) -> list[tuple[Message, uuid.UUID]]:
        """People's messages in a span, oldest first, without those of people who opted out; each with its conversation,
        the room or one of its threads."""
        rows = await self._sql.fetch(
            "summarised_messages",
            conversation_id=span.conversation_id,
            namespace=span.namespace,
            visibility=str(span.visibility),
            since=span.starts_at,
            until=span.ends_at,
            with_threads=span.tier in ("day", "week"),
        )
        return [(replace(message_from_row(row), edited_at=row["edited_at"]), row["conversation_id"]) for row in rows]

    async def overlapping(self, span: Span, tier: str | None = None) -> list[StoredSummary]:
        """The summaries of the span's tier (or another one) that overlap it, in its conversation and namespace."""
        return await self._sql.fetch_as(
            StoredSummary,
            "summaries_overlapping",
            tier=tier or span.tier,
            conversation_id=span.conversation_id,
            namespace=span.namespace,
            since=span.starts_at,
            until=span.ends_at,
        )

    async def add(self, summary: NewSummary) -> None:
        """Store a summary with its lineage."""
        span = summary.span
        await self._sql.execute(
            "summary_insert",
            id=summary.id,
            conversation_id=span.conversation_id,
            tier=span.tier,
            namespace=span.namespace,
            user_id=span.user_id,
            agent_id=span.agent_id,
            visibility=str(span.visibility),
            starts_at=span.starts_at,
            ends_at=span.ends_at,
            text=summary.text,
            tokens=summary.tokens,
            model=summary.model,
            now=summary.at,
        )
        links = [("summary", summary.id, summary.source_kind, source) for source in summary.sources]
        await insert_lineage(self._sql, links)

    async def delete(self, ids: Sequence[uuid.UUID]) -> None:
        """Delete replaced summaries. Their lineage remains, for the prompts that contained them."""
        await self._sql.execute("erase_items", kinds=["summary"] * len(ids), ids=list(ids))
