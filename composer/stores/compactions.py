"""Compactions of views in Postgres, with their lineage."""

import uuid
from collections.abc import Sequence

from composer.model import Conversation, Message, Visibility
from composer.ports import Compaction
from composer.stores.statements import Statements, scope
from composer.visibility import Readable


class PostgresCompactions:
    """composer.ports.Compactions."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def latest(
        self, readable: Readable, conversation: Conversation, agent: uuid.UUID, before: Message
    ) -> Compaction | None:
        """The newest one of an agent's view of a conversation that was made before a message was said."""
        place = (conversation.id, agent, conversation.run_id)
        row = await self._sql.row("compaction_latest", *scope(readable), *place, before.at, before.seq)
        if row is None:
            return None
        return Compaction(
            row["id"],
            row["conversation_id"],
            row["agent_id"],
            row["run_id"],
            Visibility(row["visibility"]),
            row["user_id"],
            (row["through_at"], row["through_seq"]),
            (row["made_at"], row["made_seq"]),
            row["messages"],
            row["text"],
            row["tokens"],
            row["model"],
            row["before_tokens"],
            row["after_tokens"],
            row["asked"],
            row["created_at"],
        )

    async def add(self, compaction: Compaction) -> bool:
        """Keep one with its lineage; False when as new a one is there."""
        stored = await self._sql.row(
            "compaction_insert",
            compaction.id,
            compaction.conversation_id,
            compaction.agent_id,
            compaction.run_id,
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
            compaction.asked,
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
