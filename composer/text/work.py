"""Long work over people's text leaves the event loop, so that no text stops the process for others."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

MAX_LOOP_CHARS: Final = 4_000  # that are read at once: 16 ms of the slowest reading (composer/memory/patterns.py)
COUNTED_PER_READ: Final = 50  # characters whose tokens are counted in the time in which one is read so
CLEANED_PER_READ: Final = 20  # and that are cleaned (composer/text/cleaning.py)


async def off_loop(chars: int, work: Callable[[], T]) -> T:
    """The result of a pure function over `chars` characters: worked out at once when they are few, else in a thread.

    Threads take turns every 5 ms, unless a single step takes longer (tests/deep/unit/test_bounded_work.py keeps them
    short).
    """
    return work() if chars <= MAX_LOOP_CHARS else await asyncio.to_thread(work)
