"""Tells a room once what is remembered of it, as soon as the first message is kept there. A DM is told nothing."""

import asyncio
import uuid
from collections.abc import Collection, Sequence
from typing import Final

import structlog

from bot.delivery.streaming import INTRODUCTION_MARK, Outbox
from composer.app import App
from composer.errors import NexusError, Unavailable
from composer.ingest.recording import privacy_notice
from composer.model import ConversationKind, Incoming, derived_id
from composer.workspace import Workspace, message_id, room_id

logger = structlog.get_logger()

TRY_AGAIN: Final = 1.0  # seconds, doubled up to the next
LONGEST_PAUSE: Final = 60.0
ROOMS: Final = (ConversationKind.ROOM, ConversationKind.THREAD)


class PrivacyNotices:
    """Posts the first-use notices of a platform, beside everything else. Where it is posted is noted before, that it
    stands there after it: a notice that was cut off is looked for, and not posted twice."""

    def __init__(self, app: App, wire: Outbox) -> None:
        self._app = app
        self._outbox = wire
        self._known: set[uuid.UUID] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def kept(self, workspace: Workspace, batch: Sequence[Incoming], new: Collection[uuid.UUID]) -> None:
        """Some messages of a batch are stored now (`new`): their rooms are to know. Returns at once."""
        for message in batch:
            room = room_id(workspace, message.place.name)
            if message.place.kind in ROOMS and room not in self._known and message_id(room, message.id) in new:
                self._start(workspace, room, message.id)

    async def resume(self, workspace: Workspace) -> None:
        """Post what an earlier process was cut off in. Raises Unavailable."""
        async with self._app.database.transaction(workspace.tenant_id, snapshot=True) as tx:
            due = await tx.notices.pending(workspace.platform, workspace.name)
        for room, message in due:
            if room not in self._known:
                self._start(workspace, room, message)

    async def close(self) -> None:
        """Leave the rest to the next process."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, workspace: Workspace, room: uuid.UUID, message: str) -> None:
        self._known.add(room)
        task = asyncio.create_task(self._until_told(workspace, room, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _until_told(self, workspace: Workspace, room: uuid.UUID, message: str) -> None:
        pause = TRY_AGAIN
        while True:
            try:
                if await self._tell(workspace, room, message):
                    return
            except Unavailable as error:
                logger.warning("notice.waits", room=str(room), error=str(error))
            except NexusError as error:  # it may not write there: the next start tries again
                logger.warning("notice.refused", room=str(room), error=str(error))
                return
            except Exception:
                logger.exception("notice.failed", room=str(room))
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _tell(self, workspace: Workspace, room: uuid.UUID, message: str) -> bool:
        """Tell a room, unless it was told. False while another process is at it."""
        lock = derived_id("notice", str(room))
        if not await self._app.locks.take(lock):
            return False
        try:
            async with self._app.database.transaction(workspace.tenant_id) as tx:
                due = await tx.notices.begin(room, message, self._app.clock.now())
            if due is not None:
                to, memory = due
                key, text = f"{room.hex[:21]}-0{INTRODUCTION_MARK}", privacy_notice(memory)
                posted = await self._outbox.find(to, key) or await self._outbox.post(to, text, key)
                async with self._app.database.transaction(workspace.tenant_id) as tx:
                    await tx.notices.mark_posted(room, posted)
        finally:
            await self._app.locks.release(lock)
        return True
