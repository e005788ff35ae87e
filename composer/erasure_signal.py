"""A signal that something was erased, for tasks that retract posted answers."""

import asyncio


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
