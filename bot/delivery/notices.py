"""Posts a privacy notice in each room: what is remembered of it, once, as soon as its first message is stored."""

import uuid
from collections.abc import Collection, Sequence

import structlog

from bot.delivery.outbox import Outbox, privacy_key
from bot.platform.retry import Backoff
from bot.platform.tasks import BackgroundTasks
from composer.app import App
from composer.errors import NexusError
from composer.ingest.recording import privacy_notice
from composer.model import ROOM_KINDS, Incoming, derived_id
from composer.workspace import Workspace, message_id, room_id

logger = structlog.get_logger()


class PrivacyNotices:
    """Posts the privacy notices of one platform in the background.

    The place of a notice is stored before it is posted, and its id after: a notice whose posting was interrupted is
    looked for on the platform, and not posted twice.
    """

    def __init__(self, app: App, outbox: Outbox, backoff: Backoff | None = None) -> None:
        self._app = app
        self._outbox = outbox
        self._backoff = backoff or Backoff()
        self._started: set[uuid.UUID] = set()
        self._tasks = BackgroundTasks()

    def on_stored(self, workspace: Workspace, batch: Sequence[Incoming], new: Collection[uuid.UUID]) -> None:
        """Start on the notices of the rooms whose messages were stored now (ids in `new`). Returns at once."""
        for message in batch:
            room = room_id(workspace, message.place.name)
            if message.place.kind in ROOM_KINDS and room not in self._started and message_id(room, message.id) in new:
                self._start(workspace, room, message.id)

    async def resume(self, workspace: Workspace) -> None:
        """Post the notices that an earlier process did not finish. Raises Unavailable."""
        async with self._app.database.transaction(workspace.tenant_id, "read") as tx:
            unfinished = await tx.notices.pending(workspace.platform, workspace.name)
        for room, message in unfinished:
            if room not in self._started:
                self._start(workspace, room, message)

    async def close(self) -> None:
        """Stop; the next process posts what is left."""
        await self._tasks.cancel()

    def _start(self, workspace: Workspace, room: uuid.UUID, message: str) -> None:
        self._started.add(room)
        self._tasks.start(self._post_until_done(workspace, room, message))

    async def _post_until_done(self, workspace: Workspace, room: uuid.UUID, message: str) -> None:
        try:
            await self._backoff.retry(
                lambda: self._post(workspace, room, message),
                "notice.retrying",
                again=lambda done: not done,
                room=str(room),
            )
        except NexusError as error:  # we may not write there: the next process tries again
            logger.warning("notice.refused", room=str(room), error=str(error))
        except Exception:
            logger.exception("notice.failed", room=str(room))

    async def _post(self, workspace: Workspace, room: uuid.UUID, message: str) -> bool:
        """Post the notice of a room unless it is posted. False while another process is doing it."""
        lock = derived_id("notice", str(room))
        if not await self._app.locks.take([lock]):
            return False
        try:
            async with self._app.database.transaction(workspace.tenant_id) as tx:
                notice = await tx.notices.begin(room, message, self._app.clock.now())
            if notice is not None:
                to, key = notice.destination, privacy_key(room)
                posted = None if notice.first else await self._outbox.find(to, key)
                posted = posted or await self._outbox.post(to, privacy_notice(notice.policy), key)
                async with self._app.database.transaction(workspace.tenant_id) as tx:
                    await tx.notices.mark_posted(room, posted)
        finally:
            await self._app.locks.release([lock])
        return True
