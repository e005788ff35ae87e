"""Long work over people's text leaves the event loop, so that no text stops the process for others."""

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from composer.tasks.shares import Places

P = ParamSpec("P")
T = TypeVar("T")

MAX_LOOP_CHARS: Final = 4_000  # that are read at once: 16 ms of the slowest reading (composer/memory/patterns.py)
COUNTED_PER_READ: Final = 50  # characters whose tokens are counted in the time in which one is read so
CLEANED_PER_READ: Final = 20  # and that are cleaned (composer/text/cleaning.py)
# At once: one of a person, and another beside it. More would get no more done, since one interpreter runs them by
# turns, and each that runs lets the event loop wait for its turn.
READING_THREADS: Final = 2
# Seconds after which a thread lets others run: by default 5 ms, which a request would wait at each of its steps.
SWITCH_SECONDS: Final = 0.0001

reading_threads: Final = Places(READING_THREADS)


async def off_loop(chars: int, work: Callable[[], T]) -> T:
    """The result of a pure function over `chars` characters: worked out at once when they are few, else in a thread.

    Threads take turns, unless a single step takes longer (tests/deep/unit/test_bounded_work.py keeps them short).
    """
    return work() if chars <= MAX_LOOP_CHARS else await in_thread(work)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a pure function, worked out in a thread. Those that wait for one have it by turns
    (composer/tasks/shares.py)."""
    async with reading_threads.take():
        return await asyncio.to_thread(work, *args, **kwargs)
