"""Stores the events of one guild, or of all DMs, in the order in which Discord sent them.

Events wait while history is read, so that what was missed is stored before what arrives now.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from bot.discord.reading import PLATFORM
from bot.platform.events import PlatformEvent
from bot.platform.inbox import BATCH_SIZE, InboxListeners, PlatformInbox
from bot.platform.retry import Backoff
from composer.app import App
from composer.model import Incoming, Workspace

logger = structlog.get_logger()

EVENT_BACKOFF: Final = Backoff(first_seconds=0.5, max_seconds=15.0)
Lookup = Callable[[], Awaitable[Sequence[PlatformEvent]]]
QueuedEvent = PlatformEvent | Lookup  # a lookup asks Discord for what must be known of an event before it is stored


class DiscordInbox(PlatformInbox):
    """A queue of events, stored one after another; consecutive messages in batches."""

    def __init__(
        self,
        app: App,
        workspace: Callable[[str], Awaitable[Workspace]],
        listeners: InboxListeners,
        with_trust: Callable[[Incoming], Awaitable[Incoming]] | None = None,
        backoff: Backoff = EVENT_BACKOFF,
    ) -> None:
        """`workspace` is the workspace that the messages of a user belong to; `with_trust` adds to a message what
        Discord says of its sender beside it."""
        super().__init__(
            app,
            PLATFORM,
            workspace=workspace,
            is_member=_is_member,
            listeners=listeners,
            backoff=backoff,
        )
        self._add_trust = with_trust
        self._queue: deque[QueuedEvent] = deque()
        self._arrived = asyncio.Event()
        self._released = asyncio.Event()
        self._finishing = False

    @property
    def is_released(self) -> bool:
        """Whether queued events are stored now."""
        return self._released.is_set()

    def put(self, event: QueuedEvent) -> None:
        """Queue an event; returns at once."""
        self._queue.append(event)
        self._arrived.set()

    def hold(self) -> None:
        """Queue events without storing them, until `release`: history comes first."""
        self._released.clear()

    def release(self) -> None:
        """Store queued events again."""
        self._released.set()

    def finish(self) -> None:
        """Let `run` end when the queue is empty."""
        self._finishing = True
        self._arrived.set()

    async def run(self) -> None:
        """Store queued events until `finish`. An event that fails is logged, and ends nothing."""
        while True:
            await self._released.wait()
            if not self._queue:
                if self._finishing:
                    return
                self._arrived.clear()
                await self._arrived.wait()
                continue
            try:
                await self._store_next()
            except Exception:
                logger.exception("discord.event_failed")

    async def _with_trust(self, incoming: Incoming) -> Incoming:
        return incoming if self._add_trust is None else await self._add_trust(incoming)

    async def _store_next(self) -> None:
        event = self._queue.popleft()
        if callable(event):
            for found in await self._persist(event):
                await self.apply(found)
        elif isinstance(event, Incoming):
            batch = [event]
            while len(batch) < BATCH_SIZE and self._queue and isinstance(following := self._queue[0], Incoming):
                batch.append(following)
                self._queue.popleft()
            await self.store(batch)
        else:
            await self.apply(event)


async def _is_member(room: str, user: str) -> bool:
    """Always True:

    Discord lets only viewers of a room write in it, and sends events in order, so the sender is a member again.
    """
    return True
