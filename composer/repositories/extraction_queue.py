"""The queue of messages from which a model extracts memories, scope by scope."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from composer.model import Message, Trust, Visibility
from composer.ports.database import Statements
from composer.repositories.messages import message_from_row


@dataclass(frozen=True, slots=True)
class ExtractionScope:
    """The messages that are extracted together. Extraction never reads beyond it."""

    conversation_id: uuid.UUID
    namespace: str
    visibility: Visibility


class ExtractionQueue:
    """Messages to extract from. An attempt claims a scope until it ends or its time runs out."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def add(self, messages: Sequence[uuid.UUID]) -> None:
        """Queue messages."""
        await self._sql.execute("extraction_enqueue", message_ids=list(messages))

    async def due(
        self, now: datetime, batch_size: int, quiet_since: datetime, waiting_since: datetime, limit: int
    ) -> list[ExtractionScope]:
        """Scopes with at least `batch_size` messages, none since `quiet_since`, or one from before `waiting_since`;
        longest waiting first."""
        rows = await self._sql.fetch(
            "extraction_due",
            now=now,
            batch_size=batch_size,
            quiet_since=quiet_since,
            waiting_since=waiting_since,
            limit=limit,
        )
        return [
            ExtractionScope(row["conversation_id"], row["namespace"], Visibility(row["visibility"])) for row in rows
        ]

    async def claim(
        self, scope: ExtractionScope, claim: uuid.UUID, now: datetime, until: datetime, limit: int
    ) -> list[Message] | None:
        """Claim a scope and return its oldest messages; None while another attempt has claimed it."""
        claimed = await self._sql.fetch_one("extraction_claim", **_scope(scope), claim=claim, now=now, until=until)
        if claimed is None:
            return None
        rows = await self._sql.fetch("extraction_messages", **_scope(scope), limit=limit)
        return [replace(message_from_row(row), trust=Trust(row["trust"])) for row in rows]

    async def confirm_claim(self, scope: ExtractionScope, claim: uuid.UUID, messages: Sequence[Message]) -> bool:
        """Whether an attempt still has its claim and its messages are unchanged; both are locked until the transaction
        ends."""
        if await self._sql.fetch_one("extraction_claimed", **_scope(scope), claim=claim) is None:
            return False
        rows = await self._sql.fetch(
            "extraction_lock_unchanged", ids=[m.id for m in messages], texts=[m.text for m in messages]
        )
        return len(rows) == len(messages)

    async def complete(self, scope: ExtractionScope, claim: uuid.UUID, messages: Sequence[uuid.UUID]) -> None:
        """Remove messages from the queue, and the claim."""
        await self._sql.execute("extraction_complete", **_scope(scope), claim=claim, message_ids=list(messages))

    async def release(self, scope: ExtractionScope, claim: uuid.UUID) -> None:
        """Give up a claim without recording a failure."""
        await self._sql.execute("extraction_release", **_scope(scope), claim=claim)

    async def attempts(self, scope: ExtractionScope) -> int:
        """How often a scope has failed in a row."""
        return await self._sql.fetch_value("extraction_attempts", **_scope(scope)) or 0

    async def record_failure(
        self, scope: ExtractionScope, claim: uuid.UUID, error: str, due_at: datetime, parked_at: datetime | None
    ) -> None:
        """Give up a claim after a failure. The scope is retried at `due_at`, or parked until `unpark`."""
        await self._sql.execute(
            "extraction_failed", **_scope(scope), claim=claim, error=error, due_at=due_at, parked_at=parked_at
        )

    async def unpark(self) -> int:
        """Let parked scopes be tried again. Returns how many there were."""
        return len(await self._sql.fetch("extraction_unpark"))

    async def backlog(self) -> tuple[int, int, str | None]:
        """(queued messages, parked scopes, last error of a parked scope)."""
        row = await self._sql.fetch_one("extraction_backlog")
        return (0, 0, None) if row is None else (row["waiting"], row["parked"], row["error"])


def _scope(scope: ExtractionScope) -> dict[str, Any]:
    return {
        "conversation_id": scope.conversation_id,
        "namespace": scope.namespace,
        "visibility": str(scope.visibility),
    }
