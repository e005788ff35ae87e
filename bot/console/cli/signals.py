"""How signals end a command: as a clean end does, within 20 seconds, and a second one at once."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, TypeVar

from composer.operations.upkeep import abandon_servers

T = TypeVar("T")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_SECONDS: Final = 20.0  # from a signal to the end of the process, whatever does not end by itself


class SignalHandling:
    """Runs work that SIGINT, SIGTERM and SIGHUP (the terminal was closed) cancel. `signal` is the one that did.

    SIGINT or SIGTERM after any of them ends the process at once; SIGHUP does not, since a terminal that closes may send
    several. Work that has not ended `stop_seconds` after the signal is ended with the process: a library may swallow
    the cancellation.
    """

    def __init__(self, stop_seconds: float = STOP_SECONDS) -> None:
        self.signal: int | None = None
        self._stop_seconds = stop_seconds
        self._limit: threading.Timer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. Raises CancelledError when a signal has ended it."""
        with self._handled(), asyncio.Runner() as runner:
            return runner.run(self._remembered(work))

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
            if self._limit is not None:
                self._limit.cancel()

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
            self._limit = threading.Timer(self._stop_seconds, self._end, (number, True))
            self._limit.daemon = True
            self._limit.start()
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
        elif number != signal.SIGHUP:
            self._end(number)

    def _end(self, number: int, late: bool = False) -> None:
        """End the process now, as a crash would: what was accepted is stored, and the next process goes on with it."""
        with suppress(Exception):
            if late:
                sys.stderr.write(f"Not everything has ended within {self._stop_seconds:.0f} seconds: ending now.\n")
                sys.stderr.flush()
            abandon_servers()
        os._exit(128 + number)
