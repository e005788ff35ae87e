"""Signals between the tasks of one process: somebody waits for an answer, something was erased."""

import asyncio
import uuid
from contextlib import suppress
from typing import Final

MAX_WAIT_SECONDS: Final = 1.0  # background work waits at most this long, however many questions come in


class InteractivePriority:
    """Lets background work wait while turns have not reached the model yet."""

    def __init__(self) -> None:
        self._active: set[uuid.UUID] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self, turn: uuid.UUID) -> None:
        """A turn has begun: background work waits."""
        self._active.add(turn)
        self._idle.clear()

    def end(self, turn: uuid.UUID) -> None:
        """The turn has reached the model, or has ended. May be called twice."""
        self._active.discard(turn)
        if not self._active:
            self._idle.set()

    async def wait(self) -> None:
        """Wait until no turn is active, at most MAX_WAIT_SECONDS."""
        if self._idle.is_set():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                await self._idle.wait()


class ErasureSignal:
    """Wakes its subscribers after every erasure in this process."""

    def __init__(self) -> None:
        self._events: list[asyncio.Event] = []

    def subscribe(self) -> asyncio.Event:
        """An event that is set after every erasure. The subscriber clears it."""
        event = asyncio.Event()
        self._events.append(event)
        return event

    def emit(self) -> None:
        """Wake all subscribers."""
        for event in self._events:
            event.set()
