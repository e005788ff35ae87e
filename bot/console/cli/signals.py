"""How signals end a command: as a clean end does, and a second Ctrl-C at once."""

import asyncio
import os
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeVar

from composer.operations.upkeep import abandon_servers

T = TypeVar("T")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalHandling:
    """Runs work that SIGINT, SIGTERM and SIGHUP (the terminal was closed) cancel. `signal` is the one that did.

    Repeated ones change nothing, since a terminal that closes may send several; but Ctrl-C after any of them ends the
    process at once.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. Raises CancelledError when a signal has ended it."""
        with self._handled():
            return asyncio.run(self._remembered(work))

    async def _remembered(self, work: Coroutine[Any, Any, T]) -> T:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self.signal is not None and self._task is not None:
            self._task.cancel()
        with self._waking(self._loop):
            return await work

    @contextmanager
    def _waking(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Let each signal wake the loop. The system may deliver one to another thread while the loop waits, but only
        the main thread runs handlers, and that is the one that waits: it would run them at the next event, or never."""
        handled = [number for number in SIGNALS if signal.getsignal(number) == self._on_signal]
        for number in handled:
            loop.add_signal_handler(number, int)  # the loop listens now; what it calls does nothing
            signal.signal(number, self._on_signal)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)
                signal.signal(number, self._on_signal)

    @contextmanager
    def _handled(self) -> Iterator[None]:
        """Handle the signals, except those that whoever started us wants ignored (nohup)."""
        before = {number: signal.getsignal(number) for number in SIGNALS}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
        elif number == signal.SIGINT:
            abandon_servers()
            os._exit(128 + number)
