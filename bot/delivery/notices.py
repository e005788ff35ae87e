"""Posts the first notice of each room and DM, once, as soon as its first message is stored.

In a room it is the privacy notice, which says what is remembered of it. In the first DM of a person it is the question
whether their rooms may be used there.
"""

import uuid
from collections.abc import Collection, Sequence
from typing import Final

import structlog

from bot.delivery.outbox import Outbox, privacy_key
from bot.platform.retry import Backoff
from bot.platform.tasks import BackgroundTasks
from composer.app import App
from composer.errors import NexusError
from composer.ingest.recording import privacy_notice
from composer.model import (
    ROOM_KINDS,
    ConversationKind,
    Incoming,
    Offer,
    Workspace,
    conversation_id,
    derived_id,
    message_id,
    room_id,
    user_id,
)

logger = structlog.get_logger()

ROOMS_QUESTION: Final = (
    "Shall I also use the rooms that you are in, here in our DM? Only you will see the answer. "
    "You can change it at any time: `/nexus rooms on`, `/nexus rooms off`."
)
ROOMS_OFFERS: Final = (Offer("Yes", "/nexus rooms on --yes"), Offer("Not now", "/nexus rooms off"))


class FirstNotices:
    """Posts the first notices of one platform in the background.

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
        """Start on the notices of the rooms and DMs whose messages were stored now (ids in `new`). Returns at once."""
        for message in batch:
            place = self._conversation(workspace, message)
            if place is not None and place not in self._started and message_id(place, message.id) in new:
                self._start(workspace, place, message.id)

    def _conversation(self, workspace: Workspace, message: Incoming) -> uuid.UUID | None:
        """The room or DM that a message is in; None for a session."""
        if message.place.kind in ROOM_KINDS:
            return room_id(workspace, message.place.name)
        agents = {agent.slug: agent.id for agent in self._app.directory.agents(workspace.tenant_id)}
        agent = agents.get(message.place.name)
        if message.place.kind is not ConversationKind.DM or agent is None:
            return None
        return conversation_id(workspace, message.place, user_id(workspace, message.user), agent)

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
        """Post the notice of a room or DM unless it is posted. False while another process is doing it."""
        lock = derived_id("notice", str(room))
        if not await self._app.locks.take([lock]):
            return False
        try:
            async with self._app.database.transaction(workspace.tenant_id) as tx:
                notice = await tx.notices.begin(room, message, self._app.clock.now())
            if notice is not None:
                to, key = notice.destination, privacy_key(room)
                posted = None if notice.first else await self._outbox.find(to, key)
                if posted is None:
                    is_dm = to.kind is ConversationKind.DM
                    text = ROOMS_QUESTION if is_dm else privacy_notice(notice.policy)
                    posted = await self._outbox.post(to, text, key, ROOMS_OFFERS if is_dm else ())
                async with self._app.database.transaction(workspace.tenant_id) as tx:
                    await tx.notices.mark_posted(room, posted)
        finally:
            await self._app.locks.release([lock])
        return True
