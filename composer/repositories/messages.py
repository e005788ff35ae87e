"""Messages of people and agents."""

import json
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from composer.model import (
    Attachment,
    Conversation,
    ConversationKind,
    Message,
    Place,
    RecordingPolicy,
    Trust,
    Turn,
    Visibility,
    message_id,
)
from composer.ports.database import Row, Statements
from composer.visibility import Readable


@dataclass(frozen=True, slots=True)
class OnPlatform:
    """A stored message as its platform has it, by its id there: in which room (or, in a DM, with which agent) it is,
    when it was written, and when it was last changed. `own`: it is a part of an answer."""

    id: str
    place: Place
    at: datetime
    changed_at: datetime
    own: bool


@dataclass(frozen=True, slots=True)
class Known:
    """Of what was asked for: the messages that are stored or were erased, the (room, user) pairs that are members, and
    when which conversations were deleted on their platform."""

    messages: set[uuid.UUID]
    members: set[tuple[uuid.UUID, uuid.UUID]]
    deleted: dict[uuid.UUID, datetime]


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of a room: its name on the platform, and the message that it hangs under if that has the same id there.
    `namespace` is what is filed there now."""

    id: uuid.UUID
    room_id: uuid.UUID
    name: str
    opening_id: uuid.UUID
    namespace: str

    @classmethod
    def of(cls, conversation: Conversation) -> "Thread":
        """A conversation that is a thread."""
        room, name = conversation.room_id, conversation.thread or ""
        assert room is not None
        return cls(conversation.id, room, name, message_id(room, name), conversation.namespace)


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message of a thread, or one that the thread hangs under: who said it, a user or an agent.

    `asked` are the agents that it is a question to, with its `text`, and `replies` the ids of their answers.
    """

    id: uuid.UUID
    at: datetime
    seq: int
    user: uuid.UUID | None
    agent: uuid.UUID | None
    reply_to: str | None
    text: str = ""
    asked: frozenset[uuid.UUID] = frozenset()
    replies: frozenset[uuid.UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class RecordingFacts:
    """The recording policy of a message's room, whether its sender has opted out, and whether a turn answers it."""

    policy: RecordingPolicy
    opted_out: bool
    answered: bool


class Messages:
    """The messages of conversations, in their order."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def find_known_ids(self, ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
        """Which of these are stored, or were erased."""
        return (await self.find_known(ids, (), ())).messages

    async def find_known(
        self,
        ids: Sequence[uuid.UUID],
        senders: Collection[tuple[uuid.UUID, uuid.UUID]],
        conversations: Collection[uuid.UUID],
    ) -> Known:
        """Which of these messages are stored, or were erased, which of these (room, user) pairs are members now, and
        which of these conversations were deleted."""
        rows = await self._sql.fetch(
            "received_known",
            ids=list(ids),
            room_ids=[room for room, _ in senders],
            user_ids=[user for _, user in senders],
            conversation_ids=list(conversations),
        )
        return Known(
            {row["id"] for row in rows if row["user_id"] is None and row["deleted_at"] is None},
            {(row["id"], row["user_id"]) for row in rows if row["user_id"] is not None},
            {row["id"]: row["deleted_at"] for row in rows if row["deleted_at"] is not None},
        )

    async def append(
        self,
        messages: Sequence[tuple[uuid.UUID, Message]],
        titles: Mapping[uuid.UUID, str] | None = None,
        *,
        is_past: bool = False,
        indexed: bool,
        turns: Sequence[tuple[Turn, datetime]] = (),
    ) -> None:
        """Append (conversation, message) pairs. `titles` are what some of the conversations are called, or (`is_past`)
        were once; `indexed` False queues the messages for indexing. `turns` are queued, each with the time of its
        message; existing ones stay unchanged."""
        new, titles = [message for _, message in messages], titles or {}
        counts = Counter(conversation for conversation, _ in messages)
        stored_counts = Counter(conversation for conversation, message in messages if message.seq > 0)
        changed = sorted(counts)
        await self._sql.execute(
            "messages_append",
            ids=[m.id for m in new],
            conversation_ids=[conversation for conversation, _ in messages],
            seqs=[m.seq for m in new],
            external_ids=[m.external_id for m in new],
            at=[m.at for m in new],
            user_ids=[m.user_id for m in new],
            agent_ids=[m.agent_id for m in new],
            authors=[m.author for m in new],
            texts=[m.text for m in new],
            attachments=[json.dumps([asdict(a) for a in m.attachments]) for m in new],
            mentions=[json.dumps([str(user) for user in m.mentions]) for m in new],
            namespaces=[m.namespace for m in new],
            visibilities=[str(m.visibility) for m in new],
            indexed=[indexed for _ in new],
            ephemeral=[m.ephemeral for m in new],
            replies_to=[m.reply_to for m in new],
            trusts=[str(m.trust) for m in new],
            changed_ids=changed,
            counts=[counts[conversation] for conversation in changed],
            past=is_past,
            titles=[titles.get(conversation) for conversation in changed],
            stored_counts=[stored_counts[conversation] for conversation in changed],
            turn_ids=[turn.id for turn, _ in turns],
            turn_conversation_ids=[turn.conversation_id for turn, _ in turns],
            turn_message_ids=[turn.message_id for turn, _ in turns],
            turn_agent_ids=[turn.agent_id for turn, _ in turns],
            turn_adapters=[turn.adapter for turn, _ in turns],
            queued_at=[at for _, at in turns],
        )

    async def latest(
        self, readable: Readable, conversation: Conversation, limit: int, before: Message | None
    ) -> list[Message]:
        """The last `limit` messages (before one), oldest first; none if the namespace is not readable."""
        if conversation.namespace not in readable.all_namespaces:
            return []
        at, seq = (None, None) if before is None else (before.at, before.seq)
        rows = await self._sql.fetch(
            "messages_latest",
            conversation_id=conversation.id,
            namespace=conversation.namespace,
            limit=limit,
            before_at=at,
            before_seq=seq,
        )
        return [
            replace(message_from_row(row), reply_to=row["reply_to"], edited_at=row["edited_at"])
            for row in reversed(rows)
        ]

    async def talk(self, threads: Sequence[Thread], limit: int) -> dict[uuid.UUID, list[Spoken]]:
        """The last `limit` messages of each thread, by its id, and the question that it hangs under, with its
        answers."""
        rows = await self._sql.fetch(
            "messages_of_talk",
            thread_ids=[each.id for each in threads],
            room_ids=[each.room_id for each in threads],
            names=[each.name for each in threads],
            opening_ids=[each.opening_id for each in threads],
            namespaces=[each.namespace for each in threads],
            limit=limit,
        )
        found: dict[uuid.UUID, list[Spoken]] = {each.id: [] for each in threads}
        for row in rows:
            found[row["thread_id"]].append(_spoken(row))
        return found

    async def opening(self, readable: Readable, conversation: Conversation) -> list[Message]:
        """The question that a thread hangs under, with its answers, oldest first; nothing that is not readable."""
        if conversation.namespace not in readable.all_namespaces:
            return []
        said = (await self.talk([Thread.of(conversation)], 0))[conversation.id]
        found = [await self.get(each.id) for each in sorted(said, key=lambda each: (each.at, each.seq))]
        return [each for each in found if each is not None and not each.ephemeral]

    async def get(self, id: uuid.UUID) -> Message | None:
        """One message, with everything that is known of it; None if it is unknown or erased."""
        row = await self._sql.fetch_one("messages_get", ids=[id])
        return None if row is None else whole_message_from_row(row)

    async def find_by_external_id(
        self, platform: str, workspace: str, external_id: str
    ) -> list[tuple[uuid.UUID, uuid.UUID, uuid.UUID | None]]:
        """(message, conversation, author) ids of every message with this platform id."""
        rows = await self._sql.fetch(
            "messages_by_external_id", platform=platform, workspace=workspace, external_id=external_id
        )
        return [(row["id"], row["conversation_id"], row["user_id"]) for row in rows]

    async def on_platform(
        self, conversations: Sequence[uuid.UUID], since: datetime, limit: int, *, with_threads: bool
    ) -> dict[str, OnPlatform]:
        """What is stored of conversations (and of the threads of rooms) since a time, by its id on their platform,
        latest first."""
        rows = await self._sql.fetch(
            "messages_on_platform", ids=list(conversations), since=since, limit=limit, with_threads=with_threads
        )
        return {row["external_id"]: _on_platform(row) for row in rows}

    async def edit(
        self, id: uuid.UUID, text: str, mentions: Sequence[uuid.UUID], attachments: Sequence[Attachment], now: datetime
    ) -> None:
        """Replace a message's text, mentions and attachments."""
        await self._sql.execute(
            "message_edit",
            id=id,
            text=text,
            mentions=list(mentions),
            attachments=json.dumps([asdict(a) for a in attachments]),
            now=now,
        )

    async def note_edit(self, id: uuid.UUID, stated_at: datetime) -> bool:
        """Record when a platform says that a message was edited. False where a later edit is known already."""
        return await self._sql.fetch_one("message_note_edit", id=id, stated_at=stated_at) is not None

    async def conversation_of(self, id: uuid.UUID) -> uuid.UUID | None:
        """The conversation of a message; None if there is no such message."""
        row = await self._sql.fetch_one("messages_get", ids=[id])
        return None if row is None else uuid.UUID(str(row["conversation_id"]))

    async def set_files(self, message: Message, attachments: Sequence[Attachment]) -> bool:
        """Give a message's files their text, and queue it for indexing, unless it is ephemeral. False if its
        attachments have changed."""
        row = await self._sql.fetch_one(
            "message_set_files",
            id=message.id,
            before=json.dumps([asdict(a) for a in message.attachments]),
            attachments=json.dumps([asdict(a) for a in attachments]),
        )
        return row is not None

    async def may_arrive(self, id: uuid.UUID, container: uuid.UUID, user: uuid.UUID, *, answered: bool) -> bool:
        """Whether a message of a user that is not stored would be if it came now, if only until it is answered.
        `container` is its room, DM or session; `answered`: an agent would answer it."""
        found = await self._sql.fetch_value(
            "message_may_arrive", id=id, container_id=container, user_id=user, answered=answered
        )
        return bool(found)

    async def recording_of(self, id: uuid.UUID) -> RecordingFacts:
        """What it depends on, as of now, whether a message would be stored."""
        facts = await self._sql.fetch_one_as(RecordingFacts, "message_recording", id=id)
        return facts or RecordingFacts(RecordingPolicy.ON, opted_out=False, answered=False)

    async def answered_ephemeral(self, limit: int) -> dict[uuid.UUID, uuid.UUID]:
        """Ephemeral messages whose turns are finished, to be erased, with their conversations."""
        rows = await self._sql.fetch("messages_ephemeral_answered", limit=limit)
        return {row["id"]: row["conversation_id"] for row in rows}


def whole_message_from_row(row: Row) -> Message:
    """A message from its row, with its trust, what it replies to and whether it is ephemeral."""
    message, trust = message_from_row(row), Trust(row["trust"])
    return replace(message, trust=trust, ephemeral=row["ephemeral"], reply_to=row["reply_to"])


def message_from_row(row: Row) -> Message:
    """A message from its row."""
    return Message(
        row["id"],
        row["external_id"],
        row["seq"],
        row["at"],
        row["user_id"],
        row["agent_id"],
        row["author"],
        row["text"],
        row["namespace"],
        Visibility(row["visibility"]),
        tuple(Attachment(**attachment) for attachment in json.loads(row["attachments"])),
        tuple(row["mentions"]),
    )


def _spoken(row: Row) -> Spoken:
    return Spoken(
        row["id"],
        row["at"],
        row["seq"],
        None if row["agent_id"] is not None else row["user_id"],
        row["agent_id"],
        row["reply_to"],
        row["text"],
        frozenset(row["agents"]),
        frozenset(row["replies"]),
    )


def _on_platform(row: Row) -> OnPlatform:
    # The room of a thread: what a message's id is unique in.
    kind = ConversationKind.DM if row["kind"] == ConversationKind.DM else ConversationKind.ROOM
    return OnPlatform(row["external_id"], Place(kind, row["name"]), row["at"], row["changed_at"], row["own"])
