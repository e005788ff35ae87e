"""Apply what platforms report about rooms: privacy, archived threads, members."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from composer.errors import NotFound
from composer.ingest.imports import begin_import
from composer.ingest.room_privacy import set_privacy
from composer.ingest.validation import author_name
from composer.memory.exported import authors_of, withdraw_exports
from composer.memory.forget import Receipt, forget
from composer.memory.portions import erase_ahead
from composer.model import Agent, Conversation, ConversationKind, Workspace, room_id, room_namespace, thread_id, user_id
from composer.ports.clock import MAX_CLOCK_DIFFERENCE
from composer.repositories.conversations import RoomIds
from composer.repositories.database import Database, Transaction
from composer.repositories.erasure import Selection
from composer.repositories.imports import ImportRun
from composer.visibility import unknown_conversation_sentence


async def set_room_private(
    database: Database,
    workspace: Workspace,
    agents: Sequence[Agent],
    room: str,
    private: bool,
    now: datetime,
    *,
    create: bool = False,
    stated_at: datetime | None = None,
    run: ImportRun | None = None,
) -> None:
    """Make a room private or public, as its platform reported at a time (None: it is so now). What is older than its
    latest report changes nothing. `create`: create the room if it is unknown. `run`: of an import that says it;
    what somebody uploaded makes a room, and says nothing of one that is there."""
    id = room_id(workspace, room)
    async with database.transaction(workspace.tenant_id) as tx:
        if run is not None:
            await begin_import(tx, workspace, agents, run, now)
        rows = await tx.conversations.lock([id])
        if id not in rows and create:
            await tx.people.ensure_tenant(workspace.tenant, workspace.platform, workspace.name, agents, now)
            await _ensure_room(tx, workspace, room, private=private, now=now, stated_at=stated_at or now)
            rows = await tx.conversations.lock([id])  # another process may have created it, with other privacy
        if run is not None and run.uploaded_by is not None:
            return
        changed = await set_privacy(tx, rows, id, private, stated_at, now)
        if id in rows and not changed and stated_at is None:
            await tx.conversations.confirm_privacy(id, now)


async def set_room_shared(database: Database, workspace: Workspace, room: str, now: datetime) -> None:
    """Note that people of other organisations read a room from now on. An unknown room is ignored: its first message
    says so."""
    id = room_id(workspace, room)
    async with database.transaction(workspace.tenant_id) as tx:
        if id in await tx.conversations.lock([id]):
            await tx.conversations.set_outsiders(id, True, now)


async def leave_private_rooms(database: Database, workspace: Workspace, user: str, at: datetime) -> None:
    """Record that somebody has left every private room of a workspace, by their id on its platform."""
    async with database.transaction(workspace.tenant_id, "read") as tx:
        rooms = await tx.conversations.private_rooms(workspace.platform, workspace.name)
    await set_room_members(database, workspace, {room: {user: False} for room in rooms}, at)


async def set_thread_archived(
    database: Database, workspace: Workspace, room: str, thread: str, at: datetime | None
) -> None:
    """Note when a platform archived a public thread of a room, or (None) that the thread is open again."""
    async with database.transaction(workspace.tenant_id) as tx:
        await tx.conversations.set_thread_archived(thread_id(room_id(workspace, room), thread), at)


async def note_room_deleted(
    database: Database, workspace: Workspace, room: str, thread: str | None, now: datetime, at: datetime | None = None
) -> None:
    """Remember that a platform deleted a room, or one public thread of it: from now on, no message that was said and no
    command that was given there until then is stored or run. `at`: when it did so by its own clock, if it says that:
    messages and commands have the times of that clock, which may be ahead of ours."""
    id = _place_id(workspace, room, thread)
    async with database.transaction(workspace.tenant_id) as tx:
        await tx.people.ensure_tenant(workspace.tenant, workspace.platform, workspace.name, (), now)
        latest = now + MAX_CLOCK_DIFFERENCE
        await tx.erasure.remember([id], latest if at is None else max(latest, at))


async def unerased_rooms(database: Database, workspace: Workspace) -> list[tuple[str, str | None]]:
    """The rooms and (room, thread) that were deleted, and whose erasure a process did not finish."""
    async with database.transaction(workspace.tenant_id, "read") as tx:
        return await tx.erasure.find_unerased(workspace.platform, workspace.name)


async def erase_room(
    database: Database, workspace: Workspace, room: str, thread: str | None, now: datetime
) -> Receipt | None:
    """Erase what was said and stored in a room that its platform deleted, or in one public thread of it (facts,
    memories and landmarks are the room's). None for an unknown one. What was said there before that, and arrives later,
    is not stored."""
    id = _place_id(workspace, room, thread)
    await note_room_deleted(database, workspace, room, thread, now)
    read, alone = (partial(database.transaction, workspace.tenant_id, mode) for mode in ("read", "alone"))
    async with read() as tx:
        gone = await tx.conversations.with_threads(id)
        messages, items = await tx.erasure.select(Selection(None, id))
        people = await authors_of(tx, messages, items)
    ahead = await erase_ahead(read, alone, messages, items, now, id, posts_stay=gone)
    async with alone() as tx:
        if await tx.conversations.get(id) is None:
            return None
        messages, items = await tx.erasure.select(Selection(None, id))
        gone = await tx.conversations.with_threads(id)
        people = (*people, *await authors_of(tx, messages, items))
        receipt = ahead.plus(await forget(tx, messages, items, now, id, posts_stay=gone))
        await tx.deliveries.drop_retractions(gone)
        await tx.conversations.clear_titles(id)
        return await withdraw_exports(tx, people, receipt)


def _place_id(workspace: Workspace, room: str, thread: str | None) -> uuid.UUID:
    """The conversation of a room, or of a public thread of it."""
    id = room_id(workspace, room)
    return id if thread is None else thread_id(id, thread)


async def add_room_id(
    database: Database, workspace: Workspace, room: str, external_id: str, at: datetime | None = None
) -> None:
    """Note that a room has another id on its platform, since a time if that is said; it keeps its name. An unknown room
    is ignored: it is stored by that id. So is a change that is not later than the latest one."""
    async with database.transaction(workspace.tenant_id) as tx:
        await tx.conversations.add_room_id(room_id(workspace, room), external_id, at)


async def rooms_with_later_ids(database: Database, workspace: Workspace) -> list[RoomIds]:
    """The rooms of a workspace that have got other ids on their platform."""
    async with database.transaction(workspace.tenant_id, "read") as tx:
        return await tx.conversations.with_later_ids(workspace.platform, workspace.name)


async def set_room_members(
    database: Database, workspace: Workspace, rooms: Mapping[str, Mapping[str, bool]], now: datetime
) -> None:
    """Set who is a member of which rooms (True) and who is not (False), all by their ids on the platform.

    Unknown rooms and people are ignored, and so is what contradicts a change that is later than `now`. Of a public room
    those are members who have written in it: being let into it makes nobody one.
    """
    async with database.transaction(workspace.tenant_id) as tx:
        named = sorted({user for members in rooms.values() for user in members})
        known = await tx.people.find_user_ids(workspace.platform, workspace.name, named)
        for room, members in sorted(rooms.items()) if known else ():
            id = room_id(workspace, room)
            found = await tx.conversations.get(id)
            if found is None:
                continue
            join = partial(tx.conversations.add_member, returning=not found.private)
            for name in sorted(members.keys() & known.keys()):
                await (join if members[name] else tx.conversations.remove_member)(id, known[name], now)


async def record_membership(
    tx: Transaction,
    workspace: Workspace,
    agents: Sequence[Agent],
    room: str,
    user: str,
    name: str,
    *,
    joined: bool,
    now: datetime,
    private: bool = False,
) -> None:
    """Record that someone joined a room, which is created if it is new, or left it.

    `private`: the room is private from now on. Without it a new room is public and a known one stays as it is: a join
    never makes a room public. Raises NotFound when they leave a room that does not exist.
    """
    known, _ = await tx.people.ensure_tenant(workspace.tenant, workspace.platform, workspace.name, agents, now, [user])
    member = known[user].user_id if user in known else user_id(workspace, user)
    if user not in known:
        await tx.people.ensure_users(
            workspace.platform, workspace.name, {user: (member, author_name(name, user, agents))}, now
        )
    id = room_id(workspace, room)
    if joined:
        await _ensure_room(tx, workspace, room, private=private, now=now)
    elif await tx.conversations.get(id) is None:
        raise NotFound(unknown_conversation_sentence(ConversationKind.ROOM, room))
    if private:
        await set_privacy(tx, await tx.conversations.lock([id]), id, True, None, now)
    if joined:
        await tx.conversations.add_member(id, member, now)
    else:
        await tx.conversations.remove_member(id, member, now)


async def _ensure_room(
    tx: Transaction, workspace: Workspace, room: str, *, private: bool, now: datetime, stated_at: datetime | None = None
) -> None:
    id = room_id(workspace, room)
    new = Conversation(id, workspace.tenant_id, ConversationKind.ROOM, room, room_namespace(id), private=private)
    await tx.conversations.ensure(workspace.platform, workspace.name, [new], now, {id: stated_at})
