"""Erasure: find what was made from something, and delete it for good."""

import json
import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from composer.ports.database import Statements
from composer.repositories.recall import episode_id_of
from composer.text.names import UNNAMED

ERASED: Final = "erased"  # what a process says to all processes once it has erased something
ERASURE_PAGE: Final = 2_000  # texts that are read at once
# What a prompt drew on, as it was read: messages and episodes (id, text, files: `Attachment.words`), memories and facts
# (id, None, ()).
Source = tuple[uuid.UUID, str | None, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class StoredReply:
    """An agent's stored reply, with its turn and the message that it answers."""

    id: uuid.UUID
    turn_id: uuid.UUID
    conversation_id: uuid.UUID
    question_id: uuid.UUID
    text: str


@dataclass(frozen=True, slots=True)
class StoredText:
    """The text of a message, episode or item. `parts` are its text, and the names and texts of attachments.
    `conversation_id` is set for messages."""

    id: uuid.UUID
    author: str
    parts: tuple[str, ...]
    conversation_id: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class OwnText:
    """The text of something that a person said or stored. `parts` are the text of a message with its attachments, of a
    memory or a landmark; the key and the value of a fact, and then each text in that value."""

    kind: str
    id: uuid.UUID
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredReceipt:
    """A receipt of an erasure: how many items of each kind went, and the digests of their ids under `key`."""

    id: str
    made_at: datetime
    key: bytes
    counts: Mapping[str, int]
    digests: frozenset[bytes]


def json_texts(json_text: str | None) -> tuple[str, ...]:
    """A JSON text, and each text in it, keys too, as it was said: in the JSON text itself a line break is a backslash
    and an n, which hides where the next word begins. Of one that is nested too deeply to be read, itself alone."""
    if json_text is None:
        return ()
    found, waiting = [json_text], list[object]()
    try:
        waiting.append(json.loads(json_text))
    except RecursionError:
        return (json_text,)
    while waiting:
        match waiting.pop():
            case str() as text:
                found.append(text)
            case list() as items:
                waiting += reversed(items)
            case dict() as entries:
                waiting += reversed([each for entry in entries.items() for each in entry])
    return tuple(dict.fromkeys(found))


def receipt_digest(key: bytes, erased: uuid.UUID) -> bytes:
    """The digest of an erased id in a receipt: BLAKE2b, 16 bytes, under the receipt's own key."""
    return blake2b(erased.bytes, key=key, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Selection:
    """What is to be erased: of these `users` (None: of everyone), in a conversation with its threads, or in a project
    with its rooms and sessions (neither: everywhere), from `since` until `until` (None: without that bound)."""

    users: tuple[uuid.UUID, ...] | None
    conversation: uuid.UUID | None = None
    project: uuid.UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


class Erasure:
    """Deletes messages and everything made from them."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def count_withdrawn(self, users: Collection[uuid.UUID]) -> tuple[int, int]:
        """How many files in the DMs of these users, and exchanges of their tools that nothing was learnt from yet, go
        with whatever of theirs is erased."""
        row = await self._sql.fetch_one("erasure_withdrawn", user_ids=list(users))
        return (0, 0) if row is None else (row["files"], row["exchanges"])

    async def erase_people(self, users: Sequence[uuid.UUID]) -> None:
        """Delete what people who are erased have set for themselves, what the gateway keeps of them, and the names of
        projects and teams that they alone made and are in."""
        await self._sql.execute("erase_people", user_ids=list(users), unnamed=UNNAMED)

    async def derived_items(self, sources: Sequence[uuid.UUID]) -> list[tuple[str, uuid.UUID]]:
        """(kind, id) of everything made from these sources, over any number of steps, and of the turns whose prompts
        had any of it."""
        rows = await self._sql.fetch("lineage_closure", source_ids=list(sources))
        return [(row["kind"], row["id"]) for row in rows]

    async def sources_of(self, items: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, str, uuid.UUID]]:
        """(item, source kind, source) for everything that these items and turns were made from, in one step."""
        rows = await self._sql.fetch("lineage_sources", item_ids=list(items))
        return [(row["item_id"], row["source_kind"], row["source_id"]) for row in rows]

    async def texts(self, ids: Sequence[uuid.UUID]) -> list[StoredText]:
        """The texts of messages, episodes, memories, facts, landmarks, summaries and compactions."""
        rows = await self._sql.fetch("erasure_texts", ids=list(ids))
        return [
            StoredText(row["id"], row["author"], (*row["parts"], *json_texts(row["json"])), row["conversation_id"])
            for row in rows
        ]

    async def summaries_shown(self, turns: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, str]]:
        """(turn, text) of the section SUMMARIES of stored prompts."""
        return [(row["id"], row["text"]) for row in await self._sql.fetch("prompts_summaries", turn_ids=list(turns))]

    async def select(self, selection: Selection) -> tuple[list[uuid.UUID], list[tuple[str, uuid.UUID]]]:
        """Ids of the people's messages, and (kind, id) of the other items, that a selection takes in."""
        rows = await self._sql.fetch(
            "erasable_select",
            user_ids=None if selection.users is None else list(selection.users),
            conversation_id=selection.conversation,
            project_id=selection.project,
            since=selection.since,
            until=selection.until,
        )
        messages = [row["id"] for row in rows if row["kind"] == "message"]
        return messages, [(row["kind"], row["id"]) for row in rows if row["kind"] != "message"]

    async def erased_ids(self, ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        """Which of these were erased, and are not stored again."""
        return {row["id"] for row in await self._sql.fetch("erased_ids", ids=list(ids))}

    async def authors(self, messages: Sequence[uuid.UUID], items: Sequence[tuple[str, uuid.UUID]]) -> list[uuid.UUID]:
        """The users whose messages and other items these are. Call it before they are erased."""
        rows = await self._sql.fetch("erasable_authors", ids=[*messages, *(id for _, id in items)])
        return [row["user_id"] for row in rows]

    async def own_texts(self, users: Sequence[uuid.UUID], beginning: str = "") -> AsyncIterator[list[OwnText]]:
        """Everything that these people said or stored whose id begins with `beginning` (hexadecimal digits), in pages
        of at most PAGE_SIZE, each user's by id."""
        last = uuid.UUID(beginning.ljust(32, "f"))
        for user in users:
            first: uuid.UUID | None = uuid.UUID(beginning.ljust(32, "0"))
            while first is not None:
                rows = await self._sql.fetch("erasable_texts", user_id=user, first=first, last=last, limit=ERASURE_PAGE)
                # Rows of several kinds may have one id, and a page never ends between two of them.
                first = rows[-1]["id"] if len(rows) == ERASURE_PAGE else None
                yield [
                    OwnText(row["kind"], row["id"], (*row["parts"], *json_texts(row["json"])))
                    for row in rows
                    if row["id"] != first
                ]

    async def erase(
        self,
        messages: Sequence[uuid.UUID],
        items: Mapping[str, Sequence[uuid.UUID]],
        now: datetime,
        *,
        again: bool = False,
    ) -> tuple[dict[str, int], set[uuid.UUID]]:
        """Delete messages, and items by kind; what an item had replaced holds again. `again`: the messages may be
        stored once more. Returns how many of each kind were deleted, and the conversations that changed."""
        counts = dict.fromkeys(items, 0)
        erased, own = list(messages), frozenset(messages)
        replaced = await self._reinstate(items)
        kinds, found = [kind for kind, ids in items.items() for _ in ids], [id for ids in items.values() for id in ids]
        for row in await self._sql.fetch("erase_items", kinds=kinds, ids=found) if found else ():
            counts[row["kind"]] += 1
            erased.append(row["id"])
        if replaced:
            ids, ends = zip(*replaced, strict=True)
            await self._sql.execute("facts_reinstate", ids=ids, ends=ends)
        episodes = [episode_id_of(message) for message in messages]
        await self._sql.execute("recall_delete", ids=[*erased, *episodes])
        rows = await self._sql.fetch("erase_messages", ids=list(messages))
        changed = [row["conversation_id"] for row in rows if row["conversation_id"] is not None]
        counts["turn"], counts["message"] = len(rows) - len(changed), len(changed)
        await self.remember([id for id in erased if not (again and id in own)], now)
        await self._sql.execute("erase_traces", ids=[*erased, *episodes])
        return counts, set(changed)

    async def remember(self, ids: Sequence[uuid.UUID], at: datetime) -> None:
        """Record ids as erased, so that a message that arrives under one of them is not stored; of a room or a thread
        that its platform deleted, that what was said there until then, and arrives later, is not."""
        await self._sql.execute("tombstones_insert", ids=list(dict.fromkeys(ids)), at=at)

    async def find_unerased(self, platform: str, workspace: str) -> list[tuple[str, str | None]]:
        """The rooms and (room, thread) that their platform deleted, by their ids there, of which something is left that
        was said or stored before."""
        rows = await self._sql.fetch("places_deleted_unerased", platform=platform, workspace=workspace)
        return [(row["name"], row["thread"]) for row in rows]

    async def _reinstate(self, items: Mapping[str, Sequence[uuid.UUID]]) -> list[tuple[uuid.UUID, datetime | None]]:
        """Before items are deleted, let what they replaced hold again, as if they had never existed.

        Returns the facts that they replaced, each with the time until which it holds without them (None: it is
        current). These follow after the deletion, since a key has one current value.
        """
        if items.get("memory"):
            await self._sql.execute("memories_reinstate", ids=list(items["memory"]))
        if items.get("landmark"):
            await self._sql.execute("landmarks_inherit", ids=list(items["landmark"]))
            await self._sql.execute("landmarks_reinstate", ids=list(items["landmark"]))
        facts = items.get("fact")
        rows = await self._sql.fetch("facts_replaced", ids=list(facts)) if facts else []
        return [(row["id"], row["ends"]) for row in rows]

    async def find_replies(self, turns: Sequence[uuid.UUID], messages: Sequence[uuid.UUID]) -> list[StoredReply]:
        """The answers of these turns, and those to these messages."""
        return await self._sql.fetch_as(StoredReply, "replies_find", turn_ids=list(turns), message_ids=list(messages))

    async def replace_replies(self, replies: Sequence[uuid.UUID], text: str) -> None:
        """Replace the text of answers."""
        await self._sql.execute("erase_replace_text", ids=list(replies), text=text)

    async def clear_prompts(self, turns: Sequence[uuid.UUID], messages: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """Clear the stored prompts of these turns, and of those that answered these messages. Returns their
        conversations."""
        rows = await self._sql.fetch("erase_prompts", turn_ids=list(turns), message_ids=list(messages))
        return [row["conversation_id"] for row in rows]

    async def store_receipt(
        self, id: str, key: bytes, counts: Mapping[str, int], digests: Sequence[bytes], now: datetime
    ) -> None:
        """Store a receipt: what was erased by kind, and the digests of its ids."""
        await self._sql.execute(
            "receipt_insert", id=id, key=key, counts=json.dumps(counts), digests=list(digests), now=now
        )

    async def count(self) -> int:
        """A number that grows with each erasure, whoever asked for it and wherever: also a message that was deleted on
        its platform. It is final for a transaction that is not `read`."""
        return int(await self._sql.fetch_value("erasures_count"))

    async def receipt(self, id: str) -> StoredReceipt | None:
        """A stored receipt."""
        row = await self._sql.fetch_one("receipt_get", id=id)
        if row is None:
            return None
        return StoredReceipt(id, row["made_at"], row["key"], json.loads(row["counts"]), frozenset(row["digests"]))

    async def changed_sources(
        self, sources: Sequence[Source], derived: Sequence[uuid.UUID]
    ) -> dict[uuid.UUID, str | None]:
        """The sources that were erased or edited since they were read, with their present text (None: erased).

        A file that was added, or got a text, is no change. `derived` are landmarks, summaries and compactions; of
        these, those are returned that were erased together with their sources.
        """
        rows = await self._sql.fetch("sources_changed", **source_parameters(sources, derived))
        return {row["id"]: row["text"] for row in rows}


def source_parameters(sources: Sequence[Source], derived: Sequence[uuid.UUID]) -> dict[str, Any]:
    """The parameters by which a query compares sources with what is stored."""
    return {
        "source_ids": [id for id, _, _ in sources],
        "texts": [text for _, text, _ in sources],
        "files": [json.dumps(files) for _, _, files in sources],
        "derived_ids": list(derived),
    }
