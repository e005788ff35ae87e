"""Answers as server-sent events, which end when the credential of who listens does."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from pydantic import BaseModel

T = TypeVar("T")

EVENT_STREAM: Final = "text/event-stream"
HEARTBEAT: Final = b": still there\n\n"
STREAM_LOOK_SECONDS: Final = 2.0  # between looks at a credential, and the longest that a stream is silent


class CredentialEnded(Exception):
    """The credential of who listens is not valid any more."""


def streamed(names: str, whole: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """How a route that answers with events of these names is documented. `whole`: what the data of start and reply
    is."""
    schema = {"type": "string", "examples": ['event: chunk\ndata: {"text": "We deploy"}\n\n']}
    content = {EVENT_STREAM: {"schema": schema, "x-data": {"$ref": f"#/components/schemas/{whole.__name__}"}}}
    return {200: {"description": f"Server-sent events: {names}", "content": content}}


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
