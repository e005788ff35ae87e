"""Erasure: find what was made from something, and delete it for good."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from composer.ports.database import Statements
from composer.repositories.recall import episode_id_of

DELETE_BY_KIND: Final = {
    "memory": "erase_memories",
    "fact": "erase_facts",
    "landmark": "erase_landmarks",
    "summary": "erase_summaries",
    "compaction": "erase_compactions",
}


@dataclass(frozen=True, slots=True)
class StoredReply:
    """An agent's stored reply, with its turn and the message that it answers."""

    id: uuid.UUID
    turn_id: uuid.UUID
    conversation_id: uuid.UUID
    question_id: uuid.UUID
    text: str


class Erasure:
    """Deletes messages and everything made from them."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def derived_items(
        self, sources: Sequence[uuid.UUID], *, through_answers: bool
    ) -> list[tuple[str, uuid.UUID]]:
        """(kind, id) of everything made from these sources, over any number of steps. `through_answers` also follows
        answers into the prompts that contained them."""
        rows = await self._sql.fetch("lineage_closure", source_ids=list(sources), through_answers=through_answers)
        return [(row["kind"], row["id"]) for row in rows]

    async def owned_items(self, user: uuid.UUID) -> list[tuple[str, uuid.UUID]]:
        """(kind, id) of everything a person owns, apart from messages."""
        return [(row["kind"], row["id"]) for row in await self._sql.fetch("erasable_of_user", user_id=user)]

    async def find_matching(
        self, user: uuid.UUID, namespaces: Sequence[str], words: str
    ) -> tuple[list[uuid.UUID], list[tuple[str, uuid.UUID]]]:
        """Ids of a person's own messages, and (kind, id) of their entries, that contain `words`, in some namespaces."""
        rows = await self._sql.fetch("erasable_find_matching", user_id=user, namespaces=list(namespaces), words=words)
        messages = [row["id"] for row in rows if row["kind"] == "message"]
        return messages, [(row["kind"], row["id"]) for row in rows if row["kind"] != "message"]

    async def erase(
        self, messages: Sequence[uuid.UUID], items: Mapping[str, Sequence[uuid.UUID]], now: datetime
    ) -> tuple[dict[str, int], set[uuid.UUID]]:
        """Delete messages, and items by kind. Returns how many of each kind were deleted, and the conversations that
        changed."""
        counts: dict[str, int] = {}
        erased = list(messages)
        if items.get("memory"):
            await self._sql.execute("memories_reinstate", ids=list(items["memory"]))
        for kind, ids in items.items():
            rows = await self._sql.fetch(DELETE_BY_KIND[kind], ids=list(ids))
            counts[kind] = len(rows)
            erased.extend(row["id"] for row in rows)
        episodes = [episode_id_of(message) for message in messages]
        await self._sql.execute("recall_delete", ids=[*erased, *episodes])
        cancelled = await self._sql.fetch("turns_delete_queued", message_ids=list(messages))
        counts["turn"] = len(cancelled)
        rows = await self._sql.fetch("erase_messages", ids=list(messages))
        counts["message"] = len(rows)
        await self._sql.execute("tombstones_insert", ids=list(dict.fromkeys([*messages, *erased])), now=now)
        await self._sql.execute("erase_lineage", ids=[*erased, *episodes])
        return counts, {row["conversation_id"] for row in rows}

    async def find_replies(self, turns: Sequence[uuid.UUID], messages: Sequence[uuid.UUID]) -> list[StoredReply]:
        """The answers of these turns, and those to these messages."""
        rows = await self._sql.fetch("replies_find", turn_ids=list(turns), message_ids=list(messages))
        return [
            StoredReply(row["id"], row["turn_id"], row["conversation_id"], row["question_id"], row["text"])
            for row in rows
        ]

    async def replace_replies(self, replies: Sequence[uuid.UUID], text: str) -> None:
        """Replace the text of answers."""
        await self._sql.execute("erase_replace_text", ids=list(replies), text=text)

    async def clear_prompts(self, turns: Sequence[uuid.UUID], messages: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """Clear the stored prompts of these turns, and of those that answered these messages. Returns their
        conversations."""
        rows = await self._sql.fetch("erase_prompts", turn_ids=list(turns), message_ids=list(messages))
        return [row["conversation_id"] for row in rows]

    async def texts(self, messages: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, str, Sequence[str]]]:
        """(conversation, text, names and texts of attachments) of messages."""
        rows = await self._sql.fetch("messages_texts", ids=list(messages))
        return [(row["conversation_id"], row["text"], row["attached"]) for row in rows]

    async def block(self) -> None:
        """Block erasure until this transaction ends. Call it before any conversation is locked."""
        await self._sql.execute("erasure_block")

    async def changed_sources(
        self, sources: Sequence[tuple[uuid.UUID, str | None]], derived: Sequence[uuid.UUID]
    ) -> dict[uuid.UUID, str | None]:
        """The sources that were erased or edited since they were read, with their present text (None: erased).

        `sources` are messages and episodes (id, text as read), memories and facts (id, None). `derived` are landmarks,
        summaries and compactions; of these, those are returned that were erased together with their sources.
        """
        rows = await self._sql.fetch(
            "sources_changed",
            ids=[id for id, _ in sources],
            texts=[text for _, text in sources],
            derived_ids=list(derived),
        )
        return {row["id"]: row["text"] for row in rows}
