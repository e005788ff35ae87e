"""Read everything that one person owns into one JSON document (composer/people/export_document.py)."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from composer import visibility
from composer.errors import BadInput, Conflict
from composer.memory.remember import parse_value
from composer.model import Trust
from composer.people.export_document import (
    EXPORT_FORMAT,
    EXPORT_VERSION,
    DocumentPart,
    Export,
    ExportedAnswer,
    ExportedFact,
    ExportedFile,
    ExportedIdentity,
    ExportedKey,
    ExportedLandmark,
    ExportedLogin,
    ExportedMemory,
    ExportedMessage,
    ExportedOperation,
    ExportedPendingItem,
    ExportedPlace,
    ExportedProject,
    ExportedPromptMessage,
    ExportedRead,
    ExportedReminder,
    ExportedRoom,
    ExportedSettings,
    ExportedSummary,
    ExportedTeam,
    ExportedUsage,
    ExportedUser,
    ExportedWebhook,
    ExportedWebSession,
)
from composer.people.places import named, room_ids
from composer.ports.database import Row
from composer.ports.memberships import Presence
from composer.repositories.audit import AuditAct
from composer.repositories.database import Database, Transaction
from composer.repositories.invites import Invite
from composer.repositories.own_data import OwnPlace, OwnProject
from composer.text.work import in_thread
from composer.turn.explanation import explain_stored
from composer.visibility import AccessContext, EntryAccess, Owned

T = TypeVar("T", bound=DocumentPart)

EXPORT_OUTDATED: Final = "Something was forgotten while this was made: ask for it again."
_ITEMS: Final[Mapping[str, type[DocumentPart]]] = {
    "accounts": ExportedUser,
    "identities": ExportedIdentity,
    "rooms": ExportedRoom,
    "teams": ExportedTeam,
    "settings": ExportedSettings,
    "memories": ExportedMemory,
    "facts": ExportedFact,
    "landmarks": ExportedLandmark,
    "pending": ExportedPendingItem,
    "summaries": ExportedSummary,
    "reminders": ExportedReminder,
    "usage": ExportedUsage,
    "operations": ExportedOperation,
    "reads": ExportedRead,
}
_NO_MESSAGES: Final = ' "messages": []'


@dataclass(frozen=True, slots=True)
class ExportFile:
    """The text of an Export, with its counts. Messages, of which there may be very many, are written as text page by
    page: as objects all at once they would block the process."""

    text: str
    counts: Mapping[str, int]
    made_at: datetime


async def export_file(
    tx: Transaction, owned: Owned, workspace: str, now: datetime, trust: Trust, presence: Presence
) -> ExportFile:
    """Everything that a person owns, with the answers to them and their prompts as far as they may read them now.

    `workspace` is the tenant's slug, `trust` what they are to it, `presence` in which private rooms they are.
    """
    messages: list[str] = []
    async for page in tx.own_data.messages(owned):
        messages += await in_thread(lambda rows: [_written(_message(row)) for row in rows], page)
    document = await _without_messages(tx, owned, workspace, now, trust, presence)
    text = await in_thread(_joined, document, messages)
    return ExportFile(text, {**document.counts, "messages": len(messages)}, now)


async def export_over_api(
    database: Database, access: EntryAccess, workspace: str, now: datetime, presence: Presence
) -> ExportFile:
    """All that a person owns, for the person themselves over the API; that is recorded. `access` was gathered for this
    request, and `presence` says in which private rooms they are. Raises Refused for a tool, Conflict where
    something was forgotten while it was read."""
    owned = visibility.owned_by_bearer(access)
    async with database.transaction(access.tenant_id, "read") as tx:
        trust = await tx.people.trust(access.user)
        document = await export_file(tx, owned, workspace, now, trust, presence)
        erasures = await tx.erasure.count()
    async with database.transaction(access.tenant_id) as tx:
        if await tx.erasure.count() != erasures:
            raise Conflict(EXPORT_OUTDATED)
        await tx.audit.record(AuditAct.EXPORTED, actor=access.user, users=owned.users, details=document.counts)
    return document


def _written(message: ExportedMessage) -> str:
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


async def _without_messages(
    tx: Transaction, owned: Owned, workspace: str, now: datetime, trust: Trust, presence: Presence
) -> Export:
    counts, joined = await tx.own_data.counts(owned), await tx.conversations.joined_ids(owned.users, presence)
    places = await tx.own_data.places(owned, room_ids(count.namespace for count in counts), joined)
    projects = await tx.own_data.projects(owned)
    items = await tx.own_data.items(owned, _ITEMS)
    names = {place.id: place.name for place in places if place.readable}
    for room in items["rooms"]:
        room["name"] = names.get(uuid.UUID(room["id"]))
    for fact in items["facts"]:
        fact["value"] = _value(fact["value"])
    invites = await tx.invites.find(now, users=owned.users)
    return Export(
        format=EXPORT_FORMAT,
        version=EXPORT_VERSION,
        made_at=now,
        workspace=workspace,
        places=_places([count.namespace for count in counts], places, projects, owned),
        projects=[*map(_project, projects), *(_invited(i) for i in invites if i.project is not None)],
        keys=[_part(ExportedKey, each) for each in await tx.api_keys.of(owned.users)],
        web_sessions=[_part(ExportedWebSession, each) for each in await tx.web_sessions.of(owned.users, now)],
        logins=[_part(ExportedLogin, each) for each in await tx.openid_logins.of(owned.users)],
        webhooks=[_part(ExportedWebhook, each) for each in await tx.webhooks.of(owned.users)],
        messages=[],
        answers=await _answers(tx, await tx.own_data.turns(owned), trust, presence),
        **{kind: [_entry(model, item) for item in items[kind]] for kind, model in _ITEMS.items()},
    )


def _value(stored: str) -> Any:
    """A fact's value. One that an older version took, in more levels than JSON readers allow, is its text."""
    try:
        return parse_value(stored)
    except BadInput:
        return stored


def _entry(model: type[T], row: Row | Mapping[str, Any], **replaced: Any) -> T:
    return model(**{name: row[name] for name in model.model_fields if name not in replaced}, **replaced)


def _part(model: type[T], stored: object) -> T:
    return model(**{name: getattr(stored, name) for name in model.model_fields})


def _project(project: OwnProject) -> ExportedProject:
    role = project.role.value
    return ExportedProject(id=project.id, name=project.slug, isolated=project.isolated, role=role, invited_until=None)


def _invited(invite: Invite) -> ExportedProject:
    assert invite.project is not None
    return ExportedProject(
        id=invite.project, name=invite.place, isolated=invite.isolated, role=None, invited_until=invite.expires_at
    )


def _places(
    namespaces: Sequence[str], places: Sequence[OwnPlace], projects: Sequence[OwnProject], owned: Owned
) -> list[ExportedPlace]:
    found = {namespace: named(namespace, places, projects, owned.users) for namespace in namespaces}
    return [ExportedPlace(namespace=name, name=place.name, readers=place.readers) for name, place in found.items()]


def _message(row: Row) -> ExportedMessage:
    files = [
        ExportedFile(name=each["name"], type=each["type"], size=each.get("size") or 0, text=each.get("text") or "")
        for each in json.loads(row["attachments"])
    ]
    return _entry(
        ExportedMessage, row, platform_id=row["external_id"], conversation=row["conversation_id"], files=files
    )


async def _answers(tx: Transaction, rows: Sequence[Row], trust: Trust, presence: Presence) -> list[ExportedAnswer]:
    """The answers, each judged as its asker may read its conversation now."""
    contexts: dict[tuple[uuid.UUID, uuid.UUID], AccessContext | None] = {}
    answers = []
    for row in rows:
        key = (row["conversation_id"], row["user_id"])
        if key not in contexts:
            contexts[key] = await _readable_context(tx, *key, trust, presence)
        access = contexts[key]
        may_read = access is not None and row["namespace"] == access.conversation.namespace
        prompt = None
        if may_read and access is not None and row["prompt"] is not None:
            explanation = await explain_stored(tx, access, row["prompt"])
            prompt = [ExportedPromptMessage(role=each.role, content=each.content) for each in explanation.messages]
        hidden: Mapping[str, Any] = {} if may_read else {"text": None, "failure": None}
        values = {"question": row["question_id"], "conversation": row["conversation_id"], "at": row["answered_at"]}
        answers.append(_entry(ExportedAnswer, row, prompt=prompt, agent=row["agent"] or "", **values, **hidden))
    return answers


async def _readable_context(
    tx: Transaction, conversation: uuid.UUID, user: uuid.UUID, trust: Trust, presence: Presence
) -> AccessContext | None:
    """The access context of a conversation for a user; None if they may not be there now."""
    access = await tx.conversations.access_context(conversation, user, trust, presence)
    return access if access is not None and visibility.may_participate(access) else None
