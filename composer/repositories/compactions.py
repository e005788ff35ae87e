"""Compactions: the oldest part of a conversation's view, replaced by a summary."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from composer.model import Message, Visibility
from composer.ports.database import Statements
from composer.repositories.lineage import insert_lineage


@dataclass(frozen=True, slots=True)
class Compaction:
    """A summary of the oldest part of a conversation's view, as one agent sees it.

    It covers all messages up to `through` (time, seq); `made` is the newest message that was in view. `before` and
    `after` are the view's tokens, without the summary: those of WORKING. `requested`: a person asked for it.
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
        """Compactions are not restricted by vendor."""
        return ("*",)


class Compactions:
    """Stored compactions."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def add(self, compaction: Compaction) -> bool:
        """Store a compaction with its lineage; False when one as recent is stored."""
        stored = await self._sql.fetch_one(
            "compaction_insert",
            id=compaction.id,
            conversation_id=compaction.conversation_id,
            agent_id=compaction.agent_id,
            namespace=compaction.namespace,
            user_id=compaction.user_id,
            visibility=str(compaction.visibility),
            through_at=compaction.through[0],
            through_seq=compaction.through[1],
            made_at=compaction.made[0],
            made_seq=compaction.made[1],
            messages=compaction.messages,
            text=compaction.text,
            tokens=compaction.tokens,
            model=compaction.model,
            before_tokens=compaction.before,
            after_tokens=compaction.after,
            requested=compaction.requested,
            created_at=compaction.created_at,
        )
        if stored is None:
            return False
        await insert_lineage(self._sql, [("compaction", compaction.id, *source) for source in compaction.sources])
        return True

    async def sources_unchanged(self, messages: Sequence[Message]) -> bool:
        """Whether these messages are still stored with the same texts."""
        rows = await self._sql.fetch("messages_get", ids=[message.id for message in messages])
        stored = {row["id"]: row["text"] for row in rows}
        return all(stored.get(message.id) == message.text for message in messages)


def compaction_from_record(record: Sequence[Any]) -> Compaction:
    """A compaction from its record in `recall_background`."""
    id, conversation, agent, namespace, visibility, user, through_at, through_seq, made_at, made_seq, *rest = record
    return Compaction(
        id,
        conversation,
        agent,
        namespace,
        Visibility(visibility),
        user,
        (through_at, through_seq),
        (made_at, made_seq),
        *rest,
    )
