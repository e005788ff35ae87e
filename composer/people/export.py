"""All that is one person's, as one JSON document (docs/export.md; its schema is docs/export.schema.json)."""

import asyncio
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from composer import visibility
from composer.errors import BadInput
from composer.memory.remember import parse_value
from composer.model import Trust
from composer.people.places import named, room_ids
from composer.ports.database import Row
from composer.repositories.database import Transaction
from composer.repositories.own_data import OwnPlace, OwnProject
from composer.turn.explanation import explain_stored
from composer.visibility import AccessContext, Owned

FORMAT: Final = "nexus-export"
VERSION: Final = 1


class _Part(BaseModel):
    """A part of the document."""

    model_config = ConfigDict(extra="forbid", frozen=True)


T = TypeVar("T", bound=_Part)


class Identity(_Part):
    """An account on a platform. `user` is the id of the stored user that it belongs to."""

    user: uuid.UUID
    platform: str
    workspace: str
    id: str


class Account(_Part):
    """A stored user. A person who linked accounts has several. `reads_rooms`: its DMs read the rooms it is in."""

    id: uuid.UUID
    name: str
    admin: bool
    opted_out: bool
    reads_rooms: bool
    since: datetime


class PlaceEntry(_Part):
    """Where entries are filed, in words, and who is answered from it. Entries name it by `namespace`."""

    namespace: str
    name: str
    readers: str


class RoomEntry(_Part):
    """A room that the person is or was in. A private one that they left has no name."""

    id: uuid.UUID
    name: str | None
    admin: bool
    joined_at: datetime
    left_at: datetime | None


class ProjectEntry(_Part):
    """A project that the person is in, with their role."""

    id: uuid.UUID
    name: str
    isolated: bool
    role: Literal["read", "write", "admin"]


class FileEntry(_Part):
    """A file of a message: its size in bytes (0: unknown), and its text if it is a text file."""

    name: str
    type: str
    size: int
    text: str


class _Filed(_Part):
    id: uuid.UUID
    namespace: str
    visibility: Literal["public", "private", "shared"]


class MessageEntry(_Filed):
    """A message that the person wrote. `platform_id` and `reply_to` are ids on the platform."""

    platform_id: str
    conversation: uuid.UUID
    at: datetime
    edited_at: datetime | None
    author: str
    text: str
    reply_to: str | None
    files: list[FileEntry]


class ChatMessageEntry(_Part):
    """One message of a prompt as it was sent to the model."""

    role: str
    content: str


class AnswerEntry(_Filed):
    """An answer to a question of the person: `id` is that of the turn. `text` and `prompt` are null where the person
    may not read them now, or where they are not stored any more; of a prompt, what they may not read is left out."""

    question: uuid.UUID
    conversation: uuid.UUID
    at: datetime | None
    agent: str
    model: str | None
    text: str | None
    failure: str | None
    prompt: list[ChatMessageEntry] | None


class MemoryEntry(_Filed):
    """A remembered statement. It is current until `valid_to`, or until it expires; `superseded_by` and `merged_into`
    are memories. `messages` are the person's messages that it was made from."""

    kind: str
    key: str | None
    text: str
    author: str
    origin: str
    created_at: datetime
    expires_at: datetime | None
    valid_to: datetime | None
    superseded_by: uuid.UUID | None
    merged_into: uuid.UUID | None
    deleted_at: datetime | None
    messages: list[uuid.UUID]


class FactEntry(_Filed):
    """A value of a key, from `valid_from` until `valid_to` (null: it is current)."""

    key: str
    value: Any
    author: str
    origin: str
    valid_from: datetime
    valid_to: datetime | None


class LandmarkEntry(_Filed):
    """A pinned, proposed or retired decision."""

    text: str
    author: str
    decided_at: datetime
    state: str
    retired_at: datetime | None
    replaces: uuid.UUID | None


class PendingEntry(_Filed):
    """A memory, fact or landmark that waits for approval: nobody is answered from it yet. `detail` is the kind of a
    memory or the key of a fact; `text` of a fact is its value as JSON. `messages` are the person's messages that it was
    found in."""

    kind: Literal["memory", "fact", "landmark"]
    detail: str
    text: str
    author: str
    origin: str
    at: datetime
    messages: list[uuid.UUID]


class SummaryEntry(_Filed):
    """A summary of a DM or a session of the person."""

    tier: str
    text: str
    starts_at: datetime
    ends_at: datetime


class ReminderEntry(_Filed):
    """A reminder that the person asked for. `due_at` is when it is or was due; `repeats` are days of the week (0 is
    Monday) and a local time, null for once. One that has ended is not posted again."""

    text: str
    made_at: datetime
    due_at: datetime
    repeats: str | None
    posted_at: datetime | None
    state: Literal["open", "ended"]


class UsageEntry(_Part):
    """Calls of a model in the person's name on one day of the workspace's time zone: those for the answers to them, and
    for what was made of their DMs and sessions. `cost` is in the currency of the settings, as far as it is known."""

    day: date
    kind: str
    conversation: uuid.UUID | None
    model: str
    calls: int
    failures: int
    refused: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost: float


class Export(_Part):
    """The whole document. All times are UTC."""

    format: Literal["nexus-export"]
    version: Literal[1]
    made_at: datetime
    workspace: str
    accounts: list[Account]
    identities: list[Identity]
    places: list[PlaceEntry]
    rooms: list[RoomEntry]
    projects: list[ProjectEntry]
    messages: list[MessageEntry]
    answers: list[AnswerEntry]
    memories: list[MemoryEntry]
    facts: list[FactEntry]
    landmarks: list[LandmarkEntry]
    pending: list[PendingEntry]
    summaries: list[SummaryEntry]
    reminders: list[ReminderEntry]
    usage: list[UsageEntry]

    @property
    def counts(self) -> dict[str, int]:
        """How many entries of each kind it has."""
        return {kind: len(getattr(self, kind)) for kind in KINDS} | {"pending items": len(self.pending)}

    def as_text(self) -> str:
        """The document as indented JSON."""
        return self.model_dump_json(indent=1) + "\n"


KINDS: Final = ("messages", "answers", "memories", "facts", "landmarks", "summaries", "reminders")
_NO_MESSAGES: Final = ' "messages": []'


@dataclass(frozen=True, slots=True)
class ExportFile:
    """The text of an Export, with its counts. Messages, of which there may be very many, are in it as they were read:
    as objects they would hold up the process."""

    text: str
    counts: Mapping[str, int]
    made_at: datetime


async def export_file(tx: Transaction, owned: Owned, workspace: str, now: datetime, trust: Trust) -> ExportFile:
    """Everything that a person owns, with the answers to them and their prompts as far as they may read them now.

    `workspace` is the tenant's slug, `trust` what they are to it.
    """
    messages: list[str] = []
    async for page in tx.own_data.messages(owned):
        messages += await asyncio.to_thread(lambda rows: [_written(_message(row)) for row in rows], page)
    document = await _without_messages(tx, owned, workspace, now, trust)
    text = await asyncio.to_thread(_joined, document, messages)
    return ExportFile(text, {**document.counts, "messages": len(messages)}, now)


def _written(message: MessageEntry) -> str:
    """An entry as `Export.as_text` writes it after another one."""
    return ",\n  " + message.model_dump_json(indent=1).replace("\n", "\n  ")


def _joined(document: Export, messages: Sequence[str]) -> str:
    """The text of a document with these messages."""
    text = document.as_text()
    if not messages:
        return text
    before, after = text.split(_NO_MESSAGES, 1)  # within a text, the quotation marks would be escaped
    first, *others = messages
    return "".join((before, _NO_MESSAGES[:-1], first.removeprefix(","), *others, "\n ]", after))


async def _without_messages(tx: Transaction, owned: Owned, workspace: str, now: datetime, trust: Trust) -> Export:
    counts = await tx.own_data.counts(owned)
    places = await tx.own_data.places(owned, room_ids(count.namespace for count in counts))
    projects = await tx.own_data.projects(owned)
    accounts = await tx.own_data.accounts(owned)
    users = {row["id"]: row for row in accounts}
    return Export(
        format=FORMAT,
        version=VERSION,
        made_at=now,
        workspace=workspace,
        accounts=[_account(row) for row in users.values()],
        identities=[
            Identity(user=row["id"], platform=row["platform"], workspace=row["workspace"], id=row["external_id"])
            for row in accounts
            if row["platform"] is not None
        ],
        places=_places([count.namespace for count in counts], places, projects, owned),
        rooms=_rooms(await tx.own_data.memberships(owned), places),
        projects=[ProjectEntry(id=p.id, name=p.slug, isolated=p.isolated, role=p.role.value) for p in projects],
        messages=[],
        answers=await _answers(tx, await tx.own_data.turns(owned), trust),
        memories=[_entry(MemoryEntry, row) for row in await tx.own_data.memories(owned)],
        facts=[_entry(FactEntry, row, value=_value(row["value"])) for row in await tx.own_data.facts(owned)],
        landmarks=[_entry(LandmarkEntry, row) for row in await tx.own_data.landmarks(owned)],
        pending=[_entry(PendingEntry, row) for row in await tx.own_data.pending(owned)],
        summaries=[_entry(SummaryEntry, row) for row in await tx.own_data.summaries(owned)],
        reminders=[_entry(ReminderEntry, row) for row in await tx.own_data.reminders(owned)],
        usage=[_entry(UsageEntry, row, cost=float(row["cost"])) for row in await tx.own_data.usage(owned)],
    )


def _value(stored: str) -> Any:
    """A fact's value. One that an older version took, in more levels than JSON readers allow, is its text."""
    try:
        return parse_value(stored)
    except BadInput:
        return stored


def _entry(model: type[T], row: Row, **replaced: Any) -> T:
    return model(**{name: row[name] for name in model.model_fields if name not in replaced}, **replaced)


def _account(row: Row) -> Account:
    return _entry(Account, row, since=row["created_at"])


def _places(
    namespaces: Sequence[str], places: Sequence[OwnPlace], projects: Sequence[OwnProject], owned: Owned
) -> list[PlaceEntry]:
    found = {namespace: named(namespace, places, projects, owned.users) for namespace in namespaces}
    return [PlaceEntry(namespace=name, name=place.name, readers=place.readers) for name, place in found.items()]


def _rooms(memberships: Sequence[Row], places: Sequence[OwnPlace]) -> list[RoomEntry]:
    names = {place.id: place.name for place in places if place.readable}
    return [_entry(RoomEntry, row, id=row["room_id"], name=names.get(row["room_id"])) for row in memberships]


def _message(row: Row) -> MessageEntry:
    files = [
        FileEntry(name=each["name"], type=each["type"], size=each.get("size") or 0, text=each.get("text") or "")
        for each in json.loads(row["attachments"])
    ]
    return _entry(MessageEntry, row, platform_id=row["external_id"], conversation=row["conversation_id"], files=files)


async def _answers(tx: Transaction, rows: Sequence[Row], trust: Trust) -> list[AnswerEntry]:
    """The answers, each judged as its asker may read its conversation now."""
    contexts: dict[tuple[uuid.UUID, uuid.UUID], AccessContext | None] = {}
    answers = []
    for row in rows:
        key = (row["conversation_id"], row["user_id"])
        if key not in contexts:
            contexts[key] = await _readable_context(tx, *key, trust)
        access = contexts[key]
        may_read = access is not None and row["namespace"] == access.conversation.namespace
        prompt = None
        if may_read and access is not None and row["prompt"] is not None:
            explanation = await explain_stored(tx, access, row["prompt"])
            prompt = [ChatMessageEntry(role=each.role, content=each.content) for each in explanation.messages]
        hidden: Mapping[str, Any] = {} if may_read else {"text": None, "failure": None}
        values = {"question": row["question_id"], "conversation": row["conversation_id"], "at": row["answered_at"]}
        answers.append(_entry(AnswerEntry, row, prompt=prompt, agent=row["agent"] or "", **values, **hidden))
    return answers


async def _readable_context(
    tx: Transaction, conversation: uuid.UUID, user: uuid.UUID, trust: Trust
) -> AccessContext | None:
    """The access context of a conversation for a user; None if they may not be there now."""
    access = await tx.conversations.access_context(conversation, user, trust)
    return access if access is not None and visibility.may_participate(access) else None
