"""Ctrl-C in the terminal: it stops what is being done, and pressed twice it ends the program."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any


async def interruptible(work: Coroutine[Any, Any, None], stop: Callable[[], bool]) -> bool:
    """Do `work`. The first Ctrl-C calls `stop`, which returns whether it could stop what is going on by itself, or else
    cancels the work; the second one cancels it at once. Returns whether Ctrl-C was pressed twice. Raises what the work
    raises. Call it in the main thread only."""
    loop, pressed = asyncio.get_running_loop(), 0
    task = asyncio.create_task(work)

    def on_interrupt() -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 1 or not stop():
            task.cancel()

    before = signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    try:
        await task
    except asyncio.CancelledError:
        if not pressed:  # we are cancelled, and not by a key
            raise
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
    return pressed > 1
