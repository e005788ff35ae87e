"""Waiting in tests: on a condition, and never for a fixed time.

TIMEOUT_SECONDS is the one limit of the suite. It only turns a test that hangs into one that fails, so it is far above
what anything takes, on a busy machine too; nothing may be concluded from reaching it but that the condition never held.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, overload

T = TypeVar("T")

TIMEOUT_SECONDS: Final = 300
# Platforms wait 3 s for an acknowledgement. A busy machine needs longer; a test about being late sets its own limit.
PLATFORM_SECONDS: Final = 20
_POLL_SECONDS: Final = 0.01


@overload
async def until(condition: Callable[[], Awaitable[T]]) -> T: ...


@overload
async def until(condition: Callable[[], T]) -> T: ...


async def until(condition: Callable[[], Awaitable[T] | T]) -> T:
    """Wait until a condition holds that another task, thread or process brings about; returns its first true value.

    Raises TimeoutError after TIMEOUT_SECONDS.
    """
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            value = condition()
            found = await value if inspect.isawaitable(value) else value
            if found:
                return found
            await asyncio.sleep(_POLL_SECONDS)
