"""Signals between the tasks of one process: somebody waits for an answer, something was erased, work ends."""

import asyncio
import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

MAX_WAIT_SECONDS: Final = 1.0  # background work waits at most this long, however many questions come in

CANCEL_AGAIN_SECONDS: Final = 1.0


async def end_tasks(tasks: Iterable[asyncio.Task[object]]) -> None:
    """Cancel tasks, and wait until they have ended; how they end does not matter.

    They are cancelled until they do: one cancellation can get lost where it comes together with what a task waits for,
    and the task would go on.
    """
    open_tasks = set(tasks)
    while open_tasks:
        for task in open_tasks:
            task.cancel()
        ended, open_tasks = await asyncio.wait(open_tasks, timeout=CANCEL_AGAIN_SECONDS)
        for task in ended:
            if not task.cancelled():
                task.exception()  # retrieved, so that nobody is warned of it


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
