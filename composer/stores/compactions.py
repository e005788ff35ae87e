"""Compactions of views in Postgres, with their lineage."""

from collections.abc import Sequence
from typing import Any

from composer.model import Message, Visibility
from composer.ports import Compaction
from composer.stores.statements import Statements


class PostgresCompactions:
    """composer.ports.Compactions."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def add(self, compaction: Compaction) -> bool:
        """Keep one with its lineage; False when as new a one is there."""
        stored = await self._sql.row(
            "compaction_insert",
            compaction.id,
            compaction.conversation_id,
            compaction.agent_id,
            compaction.namespace,
            compaction.user_id,
            str(compaction.visibility),
            *compaction.through,
            *compaction.made,
            compaction.messages,
            compaction.text,
            compaction.tokens,
            compaction.model,
            compaction.before,
            compaction.after,
            compaction.requested,
            compaction.created_at,
        )
        if stored is None:
            return False
        links = [("compaction", compaction.id, *source) for source in compaction.sources]
        if links:
            await self._sql.execute("lineage_insert", *(list(column) for column in zip(*links, strict=True)))
        return True

    async def unchanged(self, messages: Sequence[Message]) -> bool:
        """Whether these messages still stand in the log as they are here."""
        rows = await self._sql.fetch("compaction_sources", [message.id for message in messages])
        stored = {row["id"]: row["text"] for row in rows}
        return all(stored.get(message.id) == message.text for message in messages)


def compaction_of(row: Sequence[Any]) -> Compaction:
    """A row of `background`."""
    id, conversation, agent, run, visibility, user, through_at, through_seq, made_at, made_seq, *rest = row
    return Compaction(
        id,
        conversation,
        agent,
        run,
        Visibility(visibility),
        user,
        (through_at, through_seq),
        (made_at, made_seq),
        *rest,
    )
