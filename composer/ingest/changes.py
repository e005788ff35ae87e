"""A message was edited or deleted on its platform: every layer follows."""

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime

from composer.ingest.validation import clean_mentions, message_text
from composer.memory import forget as forgetting
from composer.memory.forget import Receipt
from composer.model import Agent, Attachment, ConversationKind, Place
from composer.repositories.database import Database
from composer.workspace import Workspace, conversation_id, message_id, room_id, user_id


async def change_message(
    store: Database,
    workspace: Workspace,
    agents: Sequence[Agent],
    place: Place,
    user: str,
    external_id: str,
    text: str | None,
    mentions: Sequence[str],
    now: datetime,
    files: Collection[str] | None = None,
) -> Receipt | None:
    """Replace the text of a message, or erase the message (`text` None). `user` is the user of a DM.

    `files` are the URLs of the files that are still attached (None: unknown, so all stay). Returns None, and changes
    nothing, when the message is not stored (never received, not recorded, or erased) or is the same already.
    """
    mentions = clean_mentions(mentions)
    async with store.transaction(workspace.tenant_id) as tx:
        user_ids = await tx.people.find_user_ids(workspace.platform, workspace.name, [user, *mentions])
        container = _container_id(workspace, agents, place, user_ids.get(user) or user_id(workspace, user))
        message = message_id(container, external_id)
        found = await tx.messages.get(message)
        if found is None:
            return None
        if text is None:
            return await forgetting.forget(tx, [message], [], now)
        attached, text = remaining_attachments(found.attachments, files), message_text(text)
        if message_text(found.text) == text and attached == found.attachments:
            return None
        mentioned = [user_ids.get(name) or user_id(workspace, name) for name in mentions]
        return await forgetting.edit(tx, found, text, mentioned, attached, now)


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
