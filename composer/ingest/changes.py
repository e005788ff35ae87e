"""A message or an answer was edited or deleted on its platform: every layer follows."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from composer.errors import Unavailable
from composer.ingest.addressing import find_addressed_agents
from composer.ingest.recording import Recording, decide_recording
from composer.ingest.validation import clean_mentions, message_text
from composer.memory import forget as forgetting
from composer.memory.exported import authors_of, withdraw_exports
from composer.memory.forget import Receipt
from composer.model import (
    Agent,
    Attachment,
    ConversationKind,
    Message,
    Place,
    Workspace,
    conversation_id,
    message_id,
    room_id,
    user_id,
)
from composer.repositories.database import Database, Transaction


async def change_message(
    database: Database,
    workspace: Workspace,
    agents: Sequence[Agent],
    place: Place,
    user: str,
    external_id: str,
    text: str | None,
    mentions: Sequence[str],
    now: datetime,
    files: Collection[str] | None = None,
    edited_at: datetime | None = None,
    awaits_message: bool = False,
    addressed: bool = False,
) -> Receipt | None:
    """Replace the text of a message, or erase the message or an agent's answer (`text` None). `user` is its author.

    `files` are the URLs of the files that are still attached (None: unknown, so all stay). `edited_at` is when the
    platform says that it was edited (None: now). Returns None, and changes nothing, when the message is not stored
    (never received, not recorded, or erased), is the same already, or was edited later than that. One that is deleted
    before it arrives is not stored when it does.

    With `awaits_message`, raises Unavailable for an edit of a message that is not stored and may be still, so that the
    platform delivers the edit again. `addressed`: its platform says that it addresses an agent, or did before the edit.
    """
    mentions = clean_mentions(mentions)
    if text is not None and edited_at is None:  # as when a platform adds the preview of a link
        async with database.transaction(workspace.tenant_id, "read") as tx:
            named = await _named(tx, workspace, agents, place, user, external_id, mentions)
            found = await tx.messages.get(named.id)
        if found is not None and _is_same(found, text, remaining_attachments(found.attachments, files)):
            return None
    async with database.transaction(workspace.tenant_id, "alone") as tx:
        named = await _named(tx, workspace, agents, place, user, external_id, mentions)
        found = await tx.messages.get(named.id)
        if found is None:
            if text is None:
                return await _delete_unstored(tx, workspace, agents, place, named.container, external_id, now)
            answered = addressed or place.kind is ConversationKind.DM or bool(find_addressed_agents(text, agents))
            if awaits_message and await tx.messages.may_arrive(
                named.id, named.container, named.author, answered=answered
            ):
                raise Unavailable("The message of this edit is not stored yet: deliver the edit again.")
            return None
        if text is not None and edited_at is not None and not await tx.messages.note_edit(found.id, edited_at):
            return None
        attached = remaining_attachments(found.attachments, files)
        return await change_stored(tx, agents, found, text, named.mentioned, attached, now)


@dataclass(frozen=True, slots=True)
class _Named:
    """The ids of a message, of what it is unique in, of its author and of whom it mentions."""

    id: uuid.UUID
    container: uuid.UUID
    author: uuid.UUID
    mentioned: tuple[uuid.UUID, ...]


async def _named(
    tx: Transaction,
    workspace: Workspace,
    agents: Sequence[Agent],
    place: Place,
    user: str,
    external_id: str,
    mentions: Sequence[str],
) -> _Named:
    known = await tx.people.find_user_ids(workspace.platform, workspace.name, [user, *mentions])
    author, *mentioned = (known.get(name) or user_id(workspace, name) for name in (user, *mentions))
    container = _container_id(workspace, agents, place, author)
    return _Named(message_id(container, external_id), container, author, tuple(mentioned))


def _is_same(message: Message, text: str, attached: Sequence[Attachment]) -> bool:
    return message_text(message.text) == message_text(text) and tuple(attached) == message.attachments


async def change_stored(
    tx: Transaction,
    agents: Sequence[Agent],
    message: Message,
    text: str | None,
    mentioned: Sequence[uuid.UUID],
    attached: Sequence[Attachment],
    now: datetime,
) -> Receipt | None:
    """Replace the text and attachments of a stored message, or erase it (`text` None). None when nothing changes.

    An edit erases the message when it would not be stored if it were sent now: its sender opted out, or its room's
    memory was turned off. Nothing of the new text is kept then.
    """
    if text is not None and _is_same(message, text, attached):
        return None
    people = () if message.ephemeral else await authors_of(tx, [message.id])
    if text is None or not await _is_recorded(tx, agents, message, text):
        receipt = await forgetting.forget(tx, [message.id], [], now)
    else:
        receipt = await forgetting.edit(tx, message, message_text(text), mentioned, attached, now)
    return await withdraw_exports(tx, people, receipt) if receipt.erased else receipt


async def _is_recorded(tx: Transaction, agents: Sequence[Agent], message: Message, text: str) -> bool:
    if message.ephemeral:  # stored until its answer is sent, in any case
        return True
    facts = await tx.messages.recording_of(message.id)
    addressed = find_addressed_agents(f"{message.text} {text}", agents)
    recording = decide_recording(facts.policy, opted_out=facts.opted_out, wants_answer=bool(addressed))
    return recording is Recording.STORE


async def _delete_unstored(
    tx: Transaction,
    workspace: Workspace,
    agents: Sequence[Agent],
    place: Place,
    container: uuid.UUID,
    external_id: str,
    now: datetime,
) -> Receipt | None:
    """Erase an agent's answer, or remember that a message was deleted that may still arrive: an event that was not
    acknowledged comes again."""
    direct = place.kind is ConversationKind.DM
    receipt = await _erase_answer(tx, workspace, container, external_id, direct, now)
    if receipt is None:
        await tx.people.ensure_tenant(workspace.tenant, workspace.platform, workspace.name, agents, now)
        await tx.erasure.remember([message_id(container, external_id)], now)
    return receipt


async def _erase_answer(
    tx: Transaction, workspace: Workspace, container: uuid.UUID, external_id: str, direct: bool, now: datetime
) -> Receipt | None:
    """Erase an agent's answer of which a posted part was deleted on the platform; None when it is none."""
    reply = await tx.deliveries.take_deleted_part(
        container, external_id, workspace.platform, workspace.name, direct=direct
    )
    return None if reply is None else await forgetting.forget(tx, [reply], [], now)


def remaining_attachments(attachments: Sequence[Attachment], files: Collection[str] | None) -> tuple[Attachment, ...]:
    """The attachments of a message whose URLs are among `files` (None: all). URLs are compared without their query,
    since platforms sign it anew each time. An attachment without a URL remains."""
    if files is None:
        return tuple(attachments)
    urls = {url.partition("?")[0] for url in files}
    return tuple(a for a in attachments if not a.address or a.address.partition("?")[0] in urls)


def _container_id(workspace: Workspace, agents: Sequence[Agent], place: Place, user: uuid.UUID) -> uuid.UUID:
    """What a message's id is unique in: the room of a room or thread, else the DM or session."""
    if place.kind in (ConversationKind.ROOM, ConversationKind.THREAD):
        return room_id(workspace, place.name)
    agent = next((agent for agent in agents if agent.slug == place.name), agents[0])
    return conversation_id(workspace, place, user, agent.id)
