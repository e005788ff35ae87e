"""Summaries as they are written, and what has had its time, in Postgres."""

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta

from composer.model import ConversationKind, Message
from composer.ports import DueMark, NewSummary, Span, StoredSummary
from composer.stores.log import message_of
from composer.stores.statements import Statements


class PostgresSummaries:
    """composer.ports.Summaries."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def due(self, tier: str) -> list[DueMark]:
        """What a tier has to look at, oldest first."""
        return [
            DueMark(
                row["conversation_id"],
                row["namespace"],
                row["quarter"],
                ConversationKind(row["kind"]),
                row["user_id"],
                row["agent_id"],
                row["archived_at"],
            )
            for row in await self._sql.fetch("summaries_due_list", tier)
        ]

    async def settle(self, span: Span, quarters: Sequence[datetime]) -> None:
        """A tier has looked at these."""
        await self._sql.execute("summaries_due_done", span.tier, span.conversation_id, span.namespace, list(quarters))

    async def mark(self, tier: str, span: Span) -> None:
        """A higher tier has to look at where a span begins."""
        await self._sql.execute("summaries_due_put", tier, span.conversation_id, span.namespace, span.starts_at)

    async def serial(self) -> None:
        """From here to the end of the transaction nobody else stores a summary or erases a message."""
        await self._sql.execute("summaries_serial")

    async def around(
        self, conversation: uuid.UUID, namespace: str, first: datetime, last: datetime, pause: timedelta
    ) -> tuple[datetime, datetime]:
        """From where to where the talk went on, without such a pause, that was going on between two moments."""
        start = await self._sql.value("stretch_start", conversation, namespace, first, pause)
        end = await self._sql.value("stretch_end", conversation, namespace, last, pause)
        return start or first, end or last

    async def said(self, span: Span) -> list[tuple[Message, str]]:
        """What people said in a span, oldest first, each with what tells an edited text from the one before."""
        rows = await self._sql.fetch(
            "summarised_messages",
            span.conversation_id,
            span.namespace,
            str(span.visibility),
            span.starts_at,
            span.ends_at,
            span.tier == "day",
        )
        return [(message_of(row), "" if row["edited_at"] is None else row["edited_at"].isoformat()) for row in rows]

    async def within(self, span: Span, tier: str | None = None) -> list[StoredSummary]:
        """The summaries of the span's tier (or another one) in its conversation's run that overlap it."""
        rows = await self._sql.fetch(
            "summaries_within", tier or span.tier, span.conversation_id, span.namespace, span.starts_at, span.ends_at
        )
        return [StoredSummary(row["id"], row["starts_at"], row["ends_at"], row["text"]) for row in rows]

    async def put(self, summary: NewSummary) -> None:
        """Store a summary with its lineage."""
        span = summary.span
        await self._sql.execute(
            "summary_insert",
            summary.id,
            span.conversation_id,
            span.tier,
            span.namespace,
            span.user_id,
            span.agent_id,
            str(span.visibility),
            span.starts_at,
            span.ends_at,
            summary.text,
            summary.tokens,
            summary.model,
            summary.at,
        )
        count = len(summary.sources)
        await self._sql.execute(
            "lineage_insert",
            ["summary"] * count,
            [summary.id] * count,
            [summary.source_kind] * count,
            list(summary.sources),
        )

    async def replace(self, summaries: Sequence[uuid.UUID]) -> None:
        """Take summaries away whose place is taken; their lineage stays, for the prompts that held them."""
        await self._sql.execute("summaries_replace", list(summaries))


class PostgresUpkeep:
    """composer.ports.Upkeep."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def expired(self, now: datetime, most: int) -> list[uuid.UUID]:
        """Memories that have run out."""
        return [row["id"] for row in await self._sql.fetch("memories_expired", now, most)]

    async def trashed(self, before: datetime, most: int) -> list[uuid.UUID]:
        """Memories that were put into the trash before a moment."""
        return [row["id"] for row in await self._sql.fetch("memories_in_trash", before, most)]

    async def retained(self, before: datetime, most: int) -> list[uuid.UUID]:
        """Messages from before a moment."""
        return [row["id"] for row in await self._sql.fetch("messages_retained", before, most)]

    async def drop_codes(self, now: datetime) -> None:
        """Forget codes that nobody entered in time."""
        await self._sql.execute("link_codes_expired", now)

    async def drop_commands(self, before: datetime) -> None:
        """Forget which commands were run before a moment."""
        await self._sql.execute("commands_run_long_ago", before)

    async def roll_up(self, until: datetime) -> None:
        """Add up what was used, by day, agent and model."""
        await self._sql.execute("usage_roll_up", until)
