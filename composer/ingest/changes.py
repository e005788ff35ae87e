"""Something changed on its platform, a message, or who may be in a room: every layer follows."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from composer.ingest.receive import set_privacy, storable
from composer.memory import forget as forgetting
from composer.memory.forget import Receipt
from composer.model import Agent, Attachment, ConversationKind, Place, room_namespace
from composer.repositories.conversations import NewConversation
from composer.repositories.database import Database
from composer.workspace import Workspace, conversation_id, message_id, room_id, thread_id, user_id


async def change(
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
    """Replace a message's text, or erase the message (`text` None). `user` is the other side of a DM. `files` are the
    addresses of what is still attached to it (None: nobody says).

    None when the message is not stored (never seen, not kept, or erased already): then nothing changes.
    """
    async with store.transaction(workspace.tenant_id) as tx:
        people = await tx.people.find_user_ids(workspace.platform, workspace.name, [user, *mentions])
        message = message_id(
            _container(workspace, agents, place, people.get(user) or user_id(workspace, user)), external_id
        )
        found = await tx.messages.get(message)
        if found is None:
            return None
        if text is None:
            return await forgetting.forget(tx, [message], [], now)
        attached = still_attached(found[0].attachments, files)
        if found[0].text == storable(text) and attached == found[0].attachments:
            return None
        named = [people.get(name) or user_id(workspace, name) for name in mentions]
        return await forgetting.edit(tx, found[0], storable(text), named, attached, now)


def still_attached(attachments: Sequence[Attachment], files: Collection[str] | None) -> tuple[Attachment, ...]:
    """Of what came with a message, what is at these addresses still, whatever signs them; what has no address stays."""
    standing = None if files is None else {address.partition("?")[0] for address in files}
    return tuple(a for a in attachments if standing is None or not a.address or a.address.partition("?")[0] in standing)


def _container(workspace: Workspace, agents: Sequence[Agent], place: Place, user: uuid.UUID) -> uuid.UUID:
    """What a message's id is unique in: its room, also for a thread's, or its DM."""
    if place.kind in (ConversationKind.ROOM, ConversationKind.THREAD):
        return room_id(workspace, place.name)
    agent = next((agent for agent in agents if agent.slug == place.name), agents[0])
    return conversation_id(workspace, place, user, agent.id)


async def set_room_private(
    store: Database,
    workspace: Workspace,
    agents: Sequence[Agent],
    room: str,
    private: bool,
    now: datetime,
    *,
    make: bool = False,
) -> None:
    """A platform's room was closed or opened. One that is not known is made if `make`, otherwise it is left unknown."""
    id = room_id(workspace, room)
    async with store.transaction(workspace.tenant_id) as tx:
        rows = await tx.conversations.lock([id])
        if id in rows:
            await set_privacy(tx, rows, id, private)
        elif make:
            await tx.people.ensure_tenant(workspace.tenant, workspace.platform, workspace.name, agents, now)
            new = NewConversation(id, ConversationKind.ROOM, room, room_namespace(id), private)
            await tx.conversations.ensure(workspace.platform, workspace.name, [new], now)
            rows = await tx.conversations.lock([id])  # another process may have made it, as it was then
            await set_privacy(tx, rows, id, private)


async def set_thread_archived(
    store: Database, workspace: Workspace, room: str, thread: str, at: datetime | None
) -> None:
    """A platform archived a room's public thread at a time, or (None) it is open again."""
    async with store.transaction(workspace.tenant_id) as tx:
        await tx.conversations.set_thread_archived(thread_id(room_id(workspace, room), thread), at)


async def private_rooms(store: Database, workspace: Workspace, rooms: Sequence[str]) -> set[str]:
    """Those of a platform's rooms that were private when they were last heard of."""
    async with store.transaction(workspace.tenant_id, snapshot=True) as tx:
        found = {room: await tx.conversations.get(room_id(workspace, room)) for room in rooms}
    return {room for room, conversation in found.items() if conversation is not None and conversation.private}


async def set_room_people(
    store: Database, workspace: Workspace, rooms: Mapping[str, Mapping[str, bool]], now: datetime
) -> None:
    """Who may be in which rooms, and who may not, from `now` on, all by their ids on the platform. Unknown people and
    unknown rooms stay unknown; what happened after `now` still holds."""
    async with store.transaction(workspace.tenant_id) as tx:
        named = sorted({user for people in rooms.values() for user in people})
        known = await tx.people.find_user_ids(workspace.platform, workspace.name, named)
        for room, people in sorted(rooms.items()) if known else ():
            id = room_id(workspace, room)
            if await tx.conversations.get(id) is None:
                continue
            for name in sorted(people.keys() & known.keys()):
                await (tx.conversations.add_member if people[name] else tx.conversations.remove_member)(
                    id, known[name], now
                )
