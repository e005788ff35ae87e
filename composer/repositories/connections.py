"""Connections to chat platforms, and the private rooms whose members were read during them."""

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime

from composer.ports.database import Statements


class Connections:
    """While a connection lasts, every change of a room's members is received. So who is recorded as a member of a
    private room counts outside it only if the members were read during a connection that lasts."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def begin(self, id: uuid.UUID, platform: str, workspace: str, process: int) -> None:
        """Begin a connection of a process to a workspace; its earlier one ends."""
        await self._sql.execute("connection_begin", id=id, platform=platform, workspace=workspace, process=process)

    async def end(self, platform: str, workspace: str, process: int) -> None:
        """End the connection of a process to a workspace."""
        await self._sql.execute("connection_end", platform=platform, workspace=workspace, process=process)

    async def unread_rooms(self, id: uuid.UUID, platform: str, workspace: str) -> tuple[str, ...]:
        """The private rooms, by their ids on the platform, whose members were not read during a connection."""
        rows = await self._sql.fetch("membership_unread", connection_id=id, platform=platform, workspace=workspace)
        return tuple(row["name"] for row in rows)

    async def known_people(self, platform: str, workspace: str) -> tuple[str, ...]:
        """The ids on the platform of everybody who is known in a workspace."""
        rows = await self._sql.fetch("identities_of_workspace", platform=platform, workspace=workspace)
        return tuple(row["external_id"] for row in rows)

    async def holders(self, platform: str, workspace: str) -> tuple[str, ...]:
        """The ids on the platform of everybody known in a workspace whose memory a key, a web session, a login, a
        login link or a code that links accounts opens."""
        rows = await self._sql.fetch("holders_of_workspace", platform=platform, workspace=workspace)
        return tuple(row["external_id"] for row in rows)

    async def recorded_members(self, room: uuid.UUID) -> dict[str, uuid.UUID]:
        """The recorded members of a room, by their ids on the platform."""
        rows = await self._sql.fetch("membership_recorded", room_id=room)
        return {row["external_id"]: row["user_id"] for row in rows}

    async def confirm(self, id: uuid.UUID, room: uuid.UUID, members: Collection[uuid.UUID], at: datetime) -> bool:
        """Record that the members of a room were read during a connection, as of a time. False if that does not count:
        the connection has ended, the room is not private, or somebody besides `members` is recorded."""
        return (
            await self._sql.fetch_one(
                "membership_confirm", connection_id=id, room_id=room, user_ids=sorted(members), at=at
            )
            is not None
        )

    async def doubt(self, rooms: Sequence[uuid.UUID]) -> None:
        """Forget that the members of rooms were read."""
        await self._sql.execute("membership_doubt", room_ids=list(rooms))
