"""Read anew who is in the private rooms of a chat platform.

Who leaves a room while no process is connected is still recorded as a member. So the members are read after each
connection, and recorded membership opens a private room elsewhere (`/nexus rooms on`) only where that was done.
"""

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from composer.errors import NotFound
from composer.repositories.database import Database
from composer.workspace import Workspace, room_id

NO_CONNECTION: Final = uuid.UUID(int=0)  # one that never was: it has read no room
MAX_CLOCK_DIFFERENCE: Final = timedelta(seconds=5)  # between the platform's clock and ours


async def begin_connection(database: Database, workspace: Workspace, process: int, id: uuid.UUID) -> None:
    """Begin a connection of a process to a workspace; its earlier one ends. No room's members are certain by it yet."""
    async with database.transaction(workspace.tenant_id) as tx:
        await tx.connections.begin(id, workspace.platform, workspace.name, process)


async def end_connection(database: Database, workspace: Workspace, process: int) -> None:
    """End the connection of a process to a workspace: what was read during it counts no more."""
    async with database.transaction(workspace.tenant_id) as tx:
        await tx.connections.end(workspace.platform, workspace.name, process)


async def unread_rooms(database: Database, workspace: Workspace, connection: uuid.UUID) -> tuple[str, ...]:
    """The private rooms of a workspace, by their ids on the platform, whose members this connection has not read."""
    async with database.transaction(workspace.tenant_id, "read") as tx:
        return await tx.connections.unread_rooms(connection, workspace.platform, workspace.name)


async def known_people(database: Database, workspace: Workspace) -> tuple[str, ...]:
    """The ids on the platform of everybody who is known in a workspace."""
    async with database.transaction(workspace.tenant_id, "read") as tx:
        return await tx.connections.known_people(workspace.platform, workspace.name)


async def confirm_members(
    database: Database,
    workspace: Workspace,
    connection: uuid.UUID,
    room: str,
    present: Collection[str],
    at: datetime,
    *,
    asked: Collection[str] | None = None,
    bots: Collection[str] = (),
) -> bool:
    """Store who is in a private room, as its platform said at a time. `present`: everybody in it, by their ids there.

    `asked`: the people of whom it said that (None: everybody); the others stay as they are. So do `bots`, which no
    platform lists. People that Nexus does not know are not recorded. Returns whether the room's members are certain
    now. They are not if the connection has ended meanwhile, or if somebody is recorded who was not asked for, or who
    came or wrote since `at`: then the room must be read again. Raises NotFound for a room that is not stored.
    """
    id = room_id(workspace, room)
    async with database.transaction(workspace.tenant_id) as tx:
        if id not in await tx.conversations.lock([id]):
            raise NotFound("There is no such room.")
        known = await tx.people.find_user_ids(workspace.platform, workspace.name, sorted(present))
        recorded = await tx.connections.recorded_members(id)
        here = {*known.values(), *(recorded[name] for name in recorded.keys() & set(bots))}
        for user in sorted(here - set(recorded.values())):
            # Whoever has left according to a later event stays away, also if our clock is ahead.
            await tx.conversations.add_member(id, user, at - MAX_CLOCK_DIFFERENCE)
        judged = recorded.keys() if asked is None else recorded.keys() & set(asked)
        for user in sorted({recorded[name] for name in judged} - here):
            await tx.conversations.remove_member(id, user, at)
        return await tx.connections.confirm(connection, id, here, at + MAX_CLOCK_DIFFERENCE)


async def doubt_members(database: Database, workspace: Workspace, rooms: Sequence[str]) -> None:
    """Note that it is not certain any more who is in rooms, until they are read again."""
    async with database.transaction(workspace.tenant_id) as tx:
        await tx.connections.doubt([room_id(workspace, room) for room in rooms])
