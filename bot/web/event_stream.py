"""Answers as server-sent events, which end when the credential of who listens does."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from fastapi import Request

T = TypeVar("T")

EVENT_STREAM: Final = "text/event-stream"
HEARTBEAT: Final = b": still there\n\n"
STREAM_LOOK_SECONDS: Final = 2.0  # between looks at a credential, and the longest that a stream is silent


class CredentialEnded(Exception):
    """The credential of who listens is not valid any more."""


def wants_events(request: Request, *, asked: bool) -> bool:
    """Whether a request asks for events: by its body (`asked`) or by its header Accept."""
    return asked or EVENT_STREAM in request.headers.get("accept", "")


def event(name: str, data: bytes) -> bytes:
    """One event. `data` is JSON on one line."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


async def watched(parts: AsyncIterator[T], is_valid: Callable[[], Awaitable[bool]]) -> AsyncGenerator[T | None, None]:
    """The parts as they come, and None where none came for LOOK_SECONDS. Whatever makes them is stopped as soon as the
    client has left. Raises CredentialEnded when `is_valid`, asked every LOOK_SECONDS, says no; else as `parts`."""
    ready: asyncio.Queue[tuple[T] | None] = asyncio.Queue()

    async def make() -> None:
        try:
            async for part in parts:
                ready.put_nowait((part,))
        finally:
            ready.put_nowait(None)

    loop, making = asyncio.get_running_loop(), asyncio.create_task(make())
    checked = loop.time()
    try:
        while True:
            part, silent = None, False
            try:
                async with asyncio.timeout(STREAM_LOOK_SECONDS):
                    part = await ready.get()
            except TimeoutError:
                silent = True
            if loop.time() - checked >= STREAM_LOOK_SECONDS:
                checked = loop.time()
                if not await is_valid():
                    raise CredentialEnded
            if silent:
                yield None
            elif part is None:
                await making
                return
            else:
                yield part[0]
    finally:
        making.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(making, return_exceptions=True)
