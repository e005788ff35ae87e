"""Retries calls with exponential backoff, through tenacity."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import structlog
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    stop_never,
    wait_exponential,
)

from composer.errors import NexusError, Unavailable, for_operator

logger = structlog.get_logger()

FIRST_SECONDS: Final = 1.0
MAX_SECONDS: Final = 60.0
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait between tries: twice as long each time, up to a maximum. Tests replace `sleep`."""

    first_seconds: float = FIRST_SECONDS
    max_seconds: float = MAX_SECONDS
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def retry(
        self,
        call: Callable[[], Awaitable[V]],
        event: str,
        *,
        on: type[Exception] | tuple[type[Exception], ...] = Unavailable,
        unless: Callable[[], bool] = lambda: False,
        again: Callable[[V], bool] = lambda result: False,
        max_tries: int | None = None,
        **fields: object,
    ) -> V:
        """The result of `call`, called again while it raises `on` or while `again(result)` is true.

        Before each wait, the error is logged as `event` with `fields`. Raises every other error at once, and the last
        error after `max_tries` (None: no limit) or as soon as `unless()` is true.
        """
        stop = stop_never if max_tries is None else stop_after_attempt(max_tries)

        def log(state: RetryCallState) -> None:
            error = None if state.outcome is None else state.outcome.exception()
            if isinstance(error, NexusError):
                logger.warning(event, error=for_operator(error), **fields)
            elif error is not None:
                logger.warning(event, error=type(error).__name__, exc_info=error, **fields)

        async def attempt() -> V:  # tenacity awaits the result only of what it knows as a coroutine function
            return await call()

        retrying = AsyncRetrying(
            wait=wait_exponential(multiplier=self.first_seconds, max=self.max_seconds),
            retry=retry_if_exception_type(on) | retry_if_result(again),
            stop=lambda state: unless() or stop(state),
            before_sleep=log,
            sleep=self.sleep,
            reraise=True,
        )
        return await retrying(attempt)
