"""The memory over standard input and output, for a tool that starts Nexus as a program."""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, Final, TextIO, cast

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError
from pydantic_core import from_json

from bot.web.limits import FairUse, person_of
from bot.web.mcp.caller import ToolCaller
from bot.web.mcp.server import memory_server
from composer.app import App
from composer.errors import Refused
from composer.people.credentials.principal import Principal

WRONG_KEY: Final = "The key in NEXUS_KEY opens nothing: it is wrong, has expired or was revoked."
NO_JSON_LINE: Final = "This line is no JSON text in UTF-8."
NO_MESSAGE: Final = "This line is no message of JSON-RPC 2.0, with a text or a whole number as its id, or none."
_NO_MESSAGE_LINE: Final = "null"  # JSON that is no message


async def serve(app: App, key: str) -> None:
    """Serve until the input ends. The key is looked up at each call, so that one which is revoked opens nothing more.
    Raises Refused for a wrong one."""
    settings = app.settings
    fair_use = FairUse(app.redis_url, settings.requests_per_minute, settings.admin_requests_per_minute)

    async def principal(_: Any = None) -> Principal:
        found = await app.credentials.resolve(key)
        if found is None:
            raise Refused(WRONG_KEY)
        await fair_use.admit(person_of(found))
        return found

    try:
        await principal()
        server = memory_server(ToolCaller(app, principal))
        with redirect_stdout(sys.__stdout__), _standard_input() as file:
            # The SDK takes standard output, and lets what else is printed go to standard error.
            async with stdio_server(stdin=cast("anyio.AsyncFile[str]", _lines(file))) as (read, write):
                await server.run_on(_Messages(read, write), write)
    finally:
        await fair_use.close()


@contextmanager
def _standard_input() -> Iterator[TextIO]:
    """Standard input. Whatever else reads it meanwhile, such as another program, finds that it has ended."""
    private, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        # A byte that is not UTF-8 stays one, as half a surrogate pair, which no JSON text has. The descriptor is never
        # closed: a thread may still wait for the next line.
        yield os.fdopen(private, encoding="utf-8", errors="surrogateescape", newline="\n", closefd=False)
    finally:
        os.dup2(private, 0)


async def _lines(file: TextIO) -> AsyncIterator[str]:
    """Lines as the SDK reads them. It takes a request whose id may be none, such as 1.5, for a notification, which
    nobody answers: in its place it is given a line that is no message."""
    async for line in anyio.wrap_file(file):
        yield _NO_MESSAGE_LINE if _has_wrong_id(line) else line


def _has_wrong_id(line: str) -> bool:
    try:
        message = from_json(line)
    except (ValueError, TypeError):  # TypeError: bytes that are not UTF-8
        return False  # the SDK says so
    if not isinstance(message, dict) or "method" not in message or "id" not in message:
        return False
    return isinstance(message["id"], bool) or not isinstance(message["id"], int | str)


class _Messages:
    """The messages that the SDK has read. A line that is none is answered; the SDK itself only notes it in its log."""

    def __init__(self, read: ReadStream[SessionMessage | Exception], write: WriteStream[SessionMessage]) -> None:
        self._read = read
        self._write = write

    @property
    def last_context(self) -> Any:
        """The context in which the last message was read."""
        return getattr(self._read, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next message. Raises EndOfStream."""
        while isinstance(found := await self._read.receive(), Exception):
            await self._write.send(SessionMessage(_answer_to(found)))
        return found

    async def aclose(self) -> None:
        """Stop reading."""
        await self._read.aclose()

    def __aiter__(self) -> "_Messages":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "_Messages":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _answer_to(error: Exception) -> JSONRPCError:
    """The answer to a line that is no message. It names no request: which one was meant is not known."""
    kinds = {each["type"] for each in error.errors()} if isinstance(error, ValidationError) else set()
    no_json = not kinds or kinds & {"json_invalid", "string_unicode"}
    data = (
        ErrorData(code=PARSE_ERROR, message=NO_JSON_LINE)
        if no_json
        else ErrorData(code=INVALID_REQUEST, message=NO_MESSAGE)
    )
    return JSONRPCError(jsonrpc="2.0", id=None, error=data)
