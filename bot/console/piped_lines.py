"""The lines of standard input, where nobody types them."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from concurrent import futures
from contextlib import suppress


async def piped() -> AsyncIterator[str]:
    """Yield the lines of standard input.

    They are read in a thread of its own, which the end of the program does not wait for: standard input may stay open.
    """
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str](1)
    given = sys.stdin

    def put(line: str) -> None:
        with suppress(RuntimeError, futures.CancelledError):  # nobody reads any more
            asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    def read() -> None:
        with (
            suppress(ValueError, OSError),  # standard input is closed
            open(given.fileno(), encoding=given.encoding, errors=given.errors, closefd=False) as own,
        ):
            for line in own:
                put(line)
        put("")

    threading.Thread(target=read, name="standard-input", daemon=True).start()
    while line := await lines.get():
        yield line
