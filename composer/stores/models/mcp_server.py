"""A tool server that speaks the Model Context Protocol (MCP), at a URL or as a process of its own.

The SDK is imported on first use: that takes 1.7 s and 65 MB. A client of it must be closed by the task that opened it,
so each connection has a task.
"""

import asyncio
import contextlib
import importlib
import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from composer.errors import Misconfigured, NexusError, Unavailable
from composer.ports.tool_server import Sending, ServerTool, ToolAnswer
from composer.settings import McpSettings

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.types import CallToolResult

T = TypeVar("T")

MAX_BODY_BYTES: Final = 1_048_576  # of one response over HTTP
MAX_RESULT_CHARS: Final = 40_000  # of one result; what is longer is cut
MAX_TOOLS: Final = 1_000  # that are read of a server's list
MAX_PAGES: Final = 20
CUT_RESULT: Final = "[cut: the result was longer]"
_CLOSE_SECONDS: Final = 8.0  # the SDK takes at most 6.5 to end a process
_CONNECTION_CLOSED: Final = -32000  # the SDK's code for it
_APPLICATION_ERRORS: Final = (-32601, -32602, -32603)  # of JSON-RPC; the server goes on
_HEADER_MISMATCH: Final = -32020  # of MCP: the headers do not fit the schema that the server has
_PARSE_ERROR: Final = -32700  # of JSON-RPC: an answer that can't be read, or is too long


class McpServer:
    """One MCP server (composer.ports.tool_server.ToolServer). It stays connected until something fails."""

    def __init__(self, name: str, settings: McpSettings) -> None:
        self._name, self._settings = name, settings
        self._connection: _Connection | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def place(self) -> str:
        """Where it is, for the operator: its host, or its command without arguments."""
        return self._settings.command or str(self._settings.url)

    async def tools(self) -> Sequence[ServerTool]:
        """All of its tools. A connection that was lost since the last use is made anew, once."""
        loop, used_before = asyncio.get_running_loop(), self._connection is not None
        deadline = loop.time() + self._settings.timeout
        try:
            return await self._use(_listed, deadline)
        except Unavailable:
            if not used_before or loop.time() >= deadline:
                raise
        return await self._use(_listed, deadline)

    async def call(self, name: str, arguments: Mapping[str, object], sending: Sending) -> ToolAnswer:
        """Call a tool; never twice, since it may have an effect. Only what the server has refused unread, since it
        knows another schema, is sent once more, by the present one."""

        async def call(client: "Client") -> ToolAnswer:
            for is_last in (False, True):
                try:
                    return _answer(await _sent(client, name, arguments, sending))
                except Exception as error:
                    code = getattr(error, "code", None)
                    if code == _HEADER_MISMATCH and not is_last:
                        await _listed(client)
                    elif code in _APPLICATION_ERRORS:  # such as: an argument is missing
                        return ToolAnswer(str(error)[:MAX_RESULT_CHARS], failed=True)
                    else:
                        raise
            raise AssertionError("the last try returns or raises")

        deadline = asyncio.get_running_loop().time() + self._settings.timeout
        return await self._use(call, deadline, may_be_slow=True)

    async def close(self) -> None:
        """End the connection, and the process of a command."""
        self._drop()
        if self._closing:
            await asyncio.wait(self._closing, timeout=_CLOSE_SECONDS)

    async def _use(self, work: "Callable[[Client], Awaitable[T]]", deadline: float, *, may_be_slow: bool = False) -> T:
        """Do something with a client, until a time of the event loop. Connecting is included.

        A failure ends the connection, with what others do by it, unless it is known to be of this work alone: it
        `may_be_slow`, or the server says what is wrong.
        """
        if self._connection is None or self._connection.ended:
            self._connection = _Connection(lambda: _opened(self._settings))
        connection = self._connection
        try:
            async with asyncio.timeout_at(deadline):
                return await connection.run(work)
        except NexusError:
            raise
        except asyncio.CancelledError:
            raise  # the next call of this connection is not affected
        except Exception as error:
            slow = isinstance(error, TimeoutError) and may_be_slow and connection.opened
            if not slow and getattr(error, "code", None) not in (*_APPLICATION_ERRORS, _PARSE_ERROR):
                self._drop(connection)
            raise self._error(error) from error

    def _drop(self, connection: "_Connection | None" = None) -> None:
        """End a connection in the background; by default the present one."""
        ending = connection or self._connection
        if ending is None:
            return
        if self._connection is ending:
            self._connection = None
        task = ending.end()
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _error(self, error: Exception) -> NexusError:
        """One sentence, without any text of the server's: it may repeat what was sent."""
        told = f"The server {self._name} can't be used now."
        where = f"The MCP server {self._name} ({self.place})"
        if isinstance(error, TimeoutError):
            return Unavailable(told, operator=f"{where} did not answer within {self._settings.timeout:g} seconds.")
        first = _first(error)
        if isinstance(first, PermissionError) and self._settings.url is not None:
            return Misconfigured(told, operator=f"{where} refused the token ({first.errno}). Check token or headers.")
        if isinstance(first, OSError) and self._settings.command is not None and first.strerror:
            return Misconfigured(told, operator=f"{where} can't be started: {first.strerror}. Check its command.")
        code = getattr(first, "code", None)
        if code == _PARSE_ERROR:
            said = f"{where} gave an answer that is no MCP, or longer than {MAX_BODY_BYTES:,} bytes."
            return Unavailable(told, operator=said)
        if code == _CONNECTION_CLOSED:
            return Unavailable(told, operator=f"{where} closed the connection.")
        if isinstance(code, int):
            return Unavailable(told, operator=f"{where} answered with an error ({code}). Check its address.")
        return Unavailable(told, operator=f"{where} can't be reached ({type(first).__name__}). Check its address.")


class _Connection:
    """A client with the task that holds it open."""

    def __init__(self, opened: "Callable[[], AbstractAsyncContextManager[Client]]") -> None:
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._end = asyncio.Event()
        self._failure: Exception = ConnectionError("the connection has ended")
        self._task = asyncio.create_task(self._hold(opened))

    @property
    def ended(self) -> bool:
        """Whether it can't be used any more."""
        return self._task.done()

    @property
    def opened(self) -> bool:
        """Whether it was connected."""
        return self._ready.done()

    def end(self) -> asyncio.Task[None]:
        """Begin to close it, and return the task that does."""
        if self._ready.done():
            self._end.set()
        else:
            self._task.cancel()
        return self._task

    async def run(self, work: "Callable[[Client], Awaitable[T]]") -> T:
        """Do something with the client. Raises what that raises, and what has ended the connection."""
        client = await asyncio.shield(self._ready)
        working = asyncio.ensure_future(work(client))
        try:
            await asyncio.wait({working, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise self._failure
        finally:
            if not working.done():
                working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def _hold(self, opened: "Callable[[], AbstractAsyncContextManager[Client]]") -> None:
        try:
            async with opened() as client:
                self._ready.set_result(client)
                await self._end.wait()
        except BaseException as error:
            if isinstance(error, Exception):
                self._failure = error
            if not self._ready.done():
                self._ready.set_exception(self._failure)
                self._ready.exception()  # whoever waits gets it; else nobody wants it
            if not isinstance(error, Exception):
                raise


@asynccontextmanager
async def _opened(settings: McpSettings) -> "AsyncIterator[Client]":
    """A client that is connected. Its SDK logs nothing: its lines have what was sent and what came back."""
    mcp = await asyncio.to_thread(importlib.import_module, "mcp")
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    async with contextlib.AsyncExitStack() as stack:
        if settings.command is not None:
            silent = stack.enter_context(open(os.devnull, "w"))  # noqa: ASYNC230, SIM115 - opened at once
            transport: Any = _process(settings, silent)
        else:
            client = await stack.enter_async_context(_http_client(settings))
            http = importlib.import_module("mcp.client.streamable_http")
            transport = http.streamable_http_client(str.__str__(settings.url or ""), http_client=client)
        yield await stack.enter_async_context(mcp.Client(transport, cache=None))


def _process(settings: McpSettings, silent: Any) -> Any:
    """The transport of a process. It gets the variables of the settings and the few that every program needs."""
    stdio = importlib.import_module("mcp.client.stdio")
    variables = {name: value.get_secret_value() for name, value in settings.env.items()}
    parameters = stdio.StdioServerParameters(command=settings.command, args=list(settings.args), env=variables)
    return stdio.stdio_client(parameters, errlog=silent)


def _http_client(settings: McpSettings) -> "httpx2.AsyncClient":
    """A client of HTTP with the secret headers. The SDK follows no redirect to another host."""
    import httpx2  # noqa: PLC0415

    headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
    if settings.token is not None:
        headers["Authorization"] = f"Bearer {settings.token.get_secret_value()}"
    headers["Accept-Encoding"] = "identity"  # what is unpacked could be larger than any limit
    return httpx2.AsyncClient(headers=headers, timeout=settings.timeout, event_hooks={"response": [_limit]})


async def _limit(response: "httpx2.Response") -> None:
    """Let a response be read as far as its limit. One that is packed is not read: it could be of any length. Raises
    PermissionError for a refused token."""
    if response.status_code in (401, 403):
        raise PermissionError(response.status_code, "refused")
    packed = response.headers.get("content-encoding", "identity") != "identity"
    response.stream = _limited(response.stream, 0 if packed else MAX_BODY_BYTES)


def _limited(stream: Any, left: int) -> "httpx2.AsyncByteStream":
    """A stream that fails after so many bytes, by the error that the SDK takes for that of one answer."""
    import httpx2  # noqa: PLC0415

    class Limited(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            read = 0
            async for part in stream:
                read += len(part)
                if read > left:
                    raise httpx2.StreamError("the response is too long")
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    return Limited()


async def _listed(client: "Client") -> list[ServerTool]:
    found: list[ServerTool] = []
    cursor = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += [ServerTool(each.name, each.description or "", each.input_schema) for each in page.tools]
        cursor = page.next_cursor
        if cursor is None or len(found) >= MAX_TOOLS:
            break
    return found[:MAX_TOOLS]


async def _sent(client: "Client", name: str, arguments: Mapping[str, object], sending: Sending) -> "CallToolResult":
    """The result of one request. The client's own `call_tool` would send it again when the server asks for that, at
    any later time; its session does not."""
    asked: asyncio.Future[CallToolResult] | None = None
    try:
        async with sending():
            asked = asyncio.ensure_future(client.session.call_tool(name, dict(arguments)))
            await asyncio.sleep(0)  # it begins: it gives the request to the transport before it waits for anything
        return await asked
    finally:
        if asked is not None and not asked.done():
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)


def _answer(result: "CallToolResult") -> ToolAnswer:
    """A result as text. What is no text is named."""
    parts = [block.text if block.type == "text" else f"[{block.type}: not shown]" for block in result.content]
    text = "\n".join(parts)
    if not text.strip() and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    if len(text) > MAX_RESULT_CHARS:
        text = f"{text[:MAX_RESULT_CHARS]}\n{CUT_RESULT}"
    return ToolAnswer(text, bool(result.is_error))


def _first(error: BaseException) -> BaseException:
    """The first error of a group of them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
