"""Erasing in Postgres: what flowed from what, and deleting it for good."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from composer.layers.semantic import episode_id_of
from composer.ports import StoredReply
from composer.stores.statements import Statements

DELETE_BY_KIND: Final = {
    "memory": "erase_memories",
    "fact": "erase_facts",
    "landmark": "erase_landmarks",
    "summary": "erase_summaries",
    "compaction": "erase_compactions",
}


class PostgresErasing:
    """composer.ports.Erasing."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def closure(self, sources: Sequence[uuid.UUID], *, through_answers: bool) -> list[tuple[str, uuid.UUID]]:
        """(kind, id) of everything that flowed from some sources; `through_answers`: also into the prompts
        that had an answer in view which was made from them."""
        return [
            (row["kind"], row["id"]) for row in await self._sql.fetch("erase_closure", list(sources), through_answers)
        ]

    async def owned(self, user: uuid.UUID) -> list[tuple[str, uuid.UUID]]:
        """(kind, id) of all that is a person's own beside their messages."""
        return [(row["kind"], row["id"]) for row in await self._sql.fetch("erasable_of_user", user)]

    async def erase(
        self, messages: Sequence[uuid.UUID], items: Mapping[str, Sequence[uuid.UUID]], now: datetime
    ) -> tuple[dict[str, int], set[uuid.UUID]]:
        """Delete messages and items for good; how many of each kind went, and the conversations changed."""
        went: dict[str, int] = {}
        gone = list(messages)
        if items.get("memory"):
            await self._sql.execute("memories_reinstate", list(items["memory"]))
        for kind, ids in items.items():
            rows = await self._sql.fetch(DELETE_BY_KIND[kind], list(ids))
            went[kind] = len(rows)
            gone.extend(row["id"] for row in rows)
        episodes = [episode_id_of(message) for message in messages]
        await self._sql.execute("recall_delete", [*gone, *episodes])
        cancelled = await self._sql.fetch("erase_cancel_turns", list(messages))
        went["turn"] = len(cancelled)
        rows = await self._sql.fetch("erase_messages", list(messages))
        went["message"] = len(rows)
        await self._sql.execute("erase_tombstones", list(dict.fromkeys([*messages, *gone])), now)
        await self._sql.execute("erase_lineage", [*gone, *episodes])
        return went, {row["conversation_id"] for row in rows}

    async def replies(self, turns: Sequence[uuid.UUID], messages: Sequence[uuid.UUID]) -> list[StoredReply]:
        """The agent's answers in these turns, or to these messages."""
        rows = await self._sql.fetch("erase_replies", list(turns), list(messages))
        return [
            StoredReply(row["id"], row["turn_id"], row["conversation_id"], row["asked"], row["text"]) for row in rows
        ]

    async def hold_off(self) -> None:
        """Let nothing be erased until this transaction ends."""
        await self._sql.execute("erase_held_off")

    async def changed(
        self, sources: Sequence[tuple[uuid.UUID, str | None]], derived: Sequence[uuid.UUID]
    ) -> dict[uuid.UUID, str | None]:
        """Which sources of an answer are no more as they were read, and what they say now."""
        ids, texts = [id for id, _ in sources], [text for _, text in sources]
        rows = await self._sql.fetch("erased_since", ids, texts, list(derived))
        return {row["id"]: row["text"] for row in rows}

    async def texts(self, messages: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, str, Sequence[str]]]:
        """(conversation, text, names and texts of what was attached) of messages."""
        rows = await self._sql.fetch("erase_texts", list(messages))
        return [(row["conversation_id"], row["text"], row["attached"]) for row in rows]

    async def matching(
        self, user: uuid.UUID, namespaces: Sequence[str], words: str
    ) -> tuple[list[uuid.UUID], list[tuple[str, uuid.UUID]]]:
        """A person's own messages, and (kind, id) of their own entries, in some runs, that hold some words."""
        rows = await self._sql.fetch("erase_matching", user, list(namespaces), words)
        messages = [row["id"] for row in rows if row["kind"] == "message"]
        return messages, [(row["kind"], row["id"]) for row in rows if row["kind"] != "message"]

    async def withdraw(self, replies: Sequence[uuid.UUID], text: str) -> None:
        """Put `text` in the place of answers."""
        await self._sql.execute("erase_withdraw", list(replies), text)

    async def empty_prompts(self, turns: Sequence[uuid.UUID], messages: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """Empty the stored prompts of these turns, and of those that answered these messages; their conversations."""
        rows = await self._sql.fetch("erase_prompts", list(turns), list(messages))
        return [row["conversation_id"] for row in rows]
