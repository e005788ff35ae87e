"""A message was edited or deleted on its platform: every layer follows."""

import uuid
from collections.abc import Sequence
from datetime import datetime

from composer import forget as forgetting
from composer.forget import Receipt
from composer.model import Agent, ConversationKind, Place
from composer.ports import Store
from composer.receive import Workspace, conversation_id, message_id, room_id, storable, user_id


async def change(
    store: Store,
    workspace: Workspace,
    agents: Sequence[Agent],
    place: Place,
    user: str,
    external_id: str,
    text: str | None,
    mentions: Sequence[str],
    now: datetime,
) -> Receipt | None:
    """Replace a message's text, or erase the message (`text` None). `user` is the other side of a DM.

    None when the message is not stored (never seen, not kept, or erased already): then nothing changes.
    """
    async with store.transaction(workspace.tenant_id) as tx:
        people = await tx.log.identities(workspace.platform, workspace.name, [user, *mentions])
        message = message_id(
            _container(workspace, agents, place, people.get(user) or user_id(workspace, user)), external_id
        )
        found = await tx.log.message(message)
        if found is None or (text is not None and found[0].text == storable(text)):
            return None
        if text is None:
            return await forgetting.forget(tx, [message], [], now)
        named = [people.get(name) or user_id(workspace, name) for name in mentions]
        return await forgetting.edit(tx, message, storable(text), named, now)


def _container(workspace: Workspace, agents: Sequence[Agent], place: Place, user: uuid.UUID) -> uuid.UUID:
    """What a message's id is unique in: its room, also for a thread's, or its DM."""
    if place.kind in (ConversationKind.ROOM, ConversationKind.THREAD):
        return room_id(workspace, place.name)
    agent = next((agent for agent in agents if agent.slug == place.name), agents[0])
    return conversation_id(workspace, place, user, agent.id)
