"""Lets work that nobody waits for stand back while somebody waits for an answer."""

import asyncio
import uuid
from contextlib import suppress
from typing import Final

PATIENCE: Final = 1.0  # seconds that work stands back at most: however much is asked, it goes on


class InteractivePriority:
    """Which turns are on their way to the model."""

    def __init__(self) -> None:
        self._hurried: set[uuid.UUID] = set()
        self._priority = asyncio.Event()
        self._priority.set()

    def begin(self, turn: uuid.UUID) -> None:
        """Someone waits for this turn from now on."""
        self._hurried.add(turn)
        self._priority.clear()

    def end(self, turn: uuid.UUID) -> None:
        """They wait for the model now, or not any more."""
        self._hurried.discard(turn)
        if not self._hurried:
            self._priority.set()

    async def wait(self) -> None:
        """Wait until nobody waits for us, or patience ends."""
        if self._priority.is_set():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._priority.wait()
