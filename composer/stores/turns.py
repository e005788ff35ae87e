"""Turns in Postgres."""

import uuid
from collections.abc import Sequence
from datetime import datetime

from composer.model import Conversation, Turn
from composer.ports import Answer, StoredTurn
from composer.stores.statements import Statements
from composer.visibility import Readable


class PostgresTurns:
    """composer.ports.Turns."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def queue(self, turns: Sequence[tuple[Turn, datetime]], process: int) -> None:
        """Queue answers; a turn that is known already stays as it is."""
        await self._sql.execute(
            "turns_insert",
            [turn.id for turn, _ in turns],
            [turn.conversation_id for turn, _ in turns],
            [turn.message_id for turn, _ in turns],
            [turn.agent_id for turn, _ in turns],
            [turn.adapter for turn, _ in turns],
            process,
            [at for _, at in turns],
        )

    async def adopt(self, process: int, doors: Sequence[str]) -> int:
        """Take over what dead processes left; returns how many."""
        return len(await self._sql.fetch("turns_adopt", process, list(doors)))

    async def open(self, process: int) -> list[tuple[Turn, str]]:
        """What this process has still to do, oldest first, with its state."""
        rows = await self._sql.fetch("turns_open", process)
        return [
            (
                Turn(
                    row["id"],
                    self._sql.tenant_id,
                    row["conversation_id"],
                    row["message_id"],
                    row["agent_id"],
                    row["adapter"],
                ),
                row["state"],
            )
            for row in rows
        ]

    async def get(self, id: uuid.UUID) -> StoredTurn | None:
        """One turn."""
        row = await self._sql.row("turn_get", id)
        if row is None:
            return None
        turn = Turn(
            row["id"], self._sql.tenant_id, row["conversation_id"], row["message_id"], row["agent_id"], row["adapter"]
        )
        return StoredTurn(turn, row["state"], row["reply_id"], row["failure"], row["prompt"])

    async def answer(self, answer: Answer) -> bool:
        """Store an answer, once; False if it was answered already."""
        stored = await self._sql.row(
            "turn_answer",
            answer.turn.id,
            None if answer.reply is None else answer.reply.id,
            answer.failure,
            answer.prompt,
            answer.timings_ms,
            answer.model,
            answer.usage.prompt_tokens,
            answer.usage.completion_tokens,
            answer.usage.cached_tokens,
            answer.at,
            answer.counted_tokens,
            answer.reused_tokens,
        )
        if stored is None:
            return False
        links = [("turn", answer.turn.id, kind, source) for kind, source in dict.fromkeys(answer.sources)]
        if answer.reply is not None:
            links.append(("message", answer.reply.id, "turn", answer.turn.id))
        if links:  # a turn that failed before it had a prompt was made from nothing
            await self._sql.execute("lineage_insert", *(list(column) for column in zip(*links, strict=True)))
        return True

    async def sent(self, id: uuid.UUID, now: datetime) -> None:
        """The person has it."""
        await self._sql.execute("turn_sent", id, now)

    async def refused(self, id: uuid.UUID, why: str) -> None:
        """The platform will never take the answer."""
        await self._sql.execute("turn_refused", id, why)

    async def last_counts(self, conversation: Conversation, model: str) -> tuple[int, int]:
        """(our count, the API's count) of the last prompt that a model got here; zeros if there is none."""
        row = await self._sql.row("turn_counts", conversation.id, model, conversation.namespace)
        return (0, 0) if row is None else (row["counted_tokens"], row["prompt_tokens"])

    async def prompt_before(self, turn: Turn) -> str | None:
        """The role messages (JSON) of the agent's last prompt before this turn in its conversation, to be compared."""
        row = await self._sql.row("turn_before", turn.conversation_id, turn.agent_id, turn.id)
        return None if row is None else row["role_messages"]

    async def last_prompt(
        self, readable: Readable, conversation: Conversation, asker: uuid.UUID, external_id: str | None
    ) -> tuple[str, str] | None:
        """(prompt JSON, timings JSON) of the asker's last answered turn here, or of the one asked by a message."""
        if conversation.namespace not in readable.all_namespaces:
            return None
        row = await self._sql.row("turn_latest", conversation.id, asker, external_id)
        return None if row is None else (row["prompt"], row["timings_ms"])
