"""Reads anew who is in the private rooms of a workspace, and who has left the workspace, after each connection to its
platform."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

import structlog

from bot.platform.retry import Backoff
from composer.app import App
from composer.credentials.leaving import end_access, holders
from composer.errors import NexusError, NotFound, Unavailable
from composer.ingest.members import (
    NO_CONNECTION,
    begin_connection,
    confirm_members,
    doubt_members,
    end_connection,
    unread_rooms,
)
from composer.workspace import Workspace

logger = structlog.get_logger()

END_SECONDS: Final = 2.0  # for noting that the connection ends, when Nexus stops
Moment = tuple[uuid.UUID | None, int]  # the connection, and how often the members of a room have changed unread


class MembershipReader:
    """One connection after another to one workspace, and the private rooms whose members were read during it.

    `connected` begins a connection, `lost` ends it, both at once for this process; the database follows in `run`, and
    `begun` waits for that. Rooms are read from `ready` on: history must be stored first.
    """

    def __init__(
        self,
        app: App,
        workspace: Callable[[], Awaitable[Workspace]],
        read: Callable[[Sequence[str]], Awaitable[Collection[str]]],
        has_left: Callable[[str], Awaitable[bool]],
        backoff: Backoff,
    ) -> None:
        """`read` reads the members of rooms, given by their ids on the platform, calls `confirm` or `unreadable` for
        each, and returns those that must be read again. `has_left` says whether somebody, by their id there, is surely
        not in the workspace any more; both raise Unavailable."""
        self._app = app
        self._workspace = workspace
        self._read = read
        self._has_left = has_left
        self._backoff = backoff
        self._is_connected = self._is_ready = False
        self._leavers_unread = True  # of this connection
        self._connection: uuid.UUID | None = None
        self._wake = asyncio.Event()
        self._begun = asyncio.Event()
        self._begun.set()
        self._again: set[str] = set()  # rooms to read although they were read
        self._unreadable: set[str] = set()
        self._doubts: dict[str, int] = {}  # by room, how often its members became uncertain

    def connected(self) -> None:
        """A connection begins: nothing that was read before counts."""
        self._change(connected=True)

    def lost(self) -> None:
        """The connection is lost: who leaves a room from now on is not told."""
        if self._is_connected:
            self._change(connected=False)

    def _change(self, *, connected: bool) -> None:
        self._is_connected, self._is_ready, self._connection = connected, False, None
        self._unreadable.clear()
        self._leavers_unread = True
        self._begun.clear()
        self._wake.set()

    def ready(self) -> None:
        """What was missed is stored, so rooms may be read."""
        self._is_ready = True
        self._wake.set()

    def check(self) -> None:
        """Something was stored: read the private rooms that were not read yet."""
        self._wake.set()

    def again(self, room: str) -> None:
        """Read a room again, also if it could not be read."""
        self._again.add(room)
        self._wake.set()

    async def all_again(self) -> None:
        """Read every private room again, and who has left, while what was read counts on. Raises Unavailable."""
        rooms = await unread_rooms(self._app.database, await self._workspace(), NO_CONNECTION)
        self._leavers_unread = True
        self._again.update(rooms)
        self._wake.set()

    async def begun(self) -> None:
        """Wait until what was read during an earlier connection counts no more."""
        await self._begun.wait()

    async def run(self) -> None:
        """Follow the connection, and read rooms, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._backoff.retry(self._follow, "members.retrying", on=NexusError)
            except Exception:
                logger.exception("members.failed")

    async def close(self) -> None:
        """End the connection: Nexus stops. What can't be stored now ends with the process."""
        self._is_connected = False
        with suppress(NexusError, TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await end_connection(self._app.database, await self._workspace(), self._app.locks.number)

    async def _follow(self) -> None:
        while not self._begun.is_set():
            await self._begin()
        connection = self._connection
        if connection is None or not self._is_ready:
            return
        await self._end_access_of_leavers()
        unread = await unread_rooms(self._app.database, await self._workspace(), connection)
        rooms = sorted(({*unread} - self._unreadable) | self._again)
        self._again.clear()
        if rooms:
            try:
                changed = await self._read(rooms)
            except NexusError:
                self._again.update(rooms)
                raise
            if changed:
                self._again.update(changed)
                raise Unavailable("The members of a room changed while they were read.")

    async def _end_access_of_leavers(self) -> None:
        """Take what opens their memory from outside away from those who left while nobody was connected."""
        if not self._leavers_unread:
            return
        self._leavers_unread = False
        store, workspace = self._app.database, await self._workspace()
        try:
            for person in await holders(store, workspace):
                if await self._has_left(person):
                    ended = await end_access(store, workspace, person)
                    logger.info("members.left_meanwhile", platform=workspace.platform, credentials=ended)
        except NexusError:
            self._leavers_unread = True
            raise

    async def _begin(self) -> None:
        """Store that the connection began or ended. What changes meanwhile is stored by the next call."""
        store, workspace, process = self._app.database, await self._workspace(), self._app.locks.number
        self._begun.set()  # `_change` takes it back
        try:
            if self._is_connected:
                connection = uuid.uuid4()
                await begin_connection(store, workspace, process, connection)
                if self._begun.is_set():
                    self._connection = connection
            else:
                await end_connection(store, workspace, process)
        except BaseException:
            self._begun.clear()
            raise

    # For `read`

    def doubts_of(self, room: str) -> Moment:
        """What must be the same before the members of a room are asked for and when they are confirmed."""
        return self._connection, self._doubts.get(room, 0)

    async def confirm(
        self,
        room: str,
        present: Collection[str],
        at: datetime,
        since: Moment,
        *,
        asked: Collection[str] | None = None,
        bots: Collection[str] = (),
    ) -> bool:
        """Store who is in a room, as the platform said at a time (see `confirm_members`). `since`: what `doubts_of`
        returned before that.

        False when the room must be read again. Nothing is stored of a room in which nothing was said yet. Raises
        Unavailable.
        """
        connection, _ = since
        if connection is None or since != self.doubts_of(room):
            return False
        self._unreadable.discard(room)
        store, workspace = self._app.database, await self._workspace()
        try:
            return await confirm_members(store, workspace, connection, room, present, at, asked=asked, bots=bots)
        except NotFound:
            return True

    def note_change(self, room: str) -> None:
        """Note that who is in a room changes: what is being read of it now is outdated."""
        self._doubts[room] = self._doubts.get(room, 0) + 1

    async def unreadable(self, room: str) -> None:
        """Note that a room can't be read: who is in it is uncertain until `again` or another connection. Raises
        Unavailable."""
        self._unreadable.add(room)
        await self.doubt(room)

    async def doubt(self, *rooms: str) -> None:
        """Note that it is uncertain who is in rooms: nothing tells it any more. Raises Unavailable."""
        for room in rooms:
            self.note_change(room)
        await doubt_members(self._app.database, await self._workspace(), rooms)
