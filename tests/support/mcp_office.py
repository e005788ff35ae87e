"""A real MCP server for tests, made with the SDK: at a URL in this process, or as a program that speaks by its standard
streams: `python -m tests.support.mcp_office`."""

import asyncio
import contextlib
import inspect
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self

import mcp.types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from composer.settings import McpSettings, Settings
from composer.settings.server_urls import ServerUrl
from tests.support.tool_office import Office, opened
from tests.support.waiting import TIMEOUT_SECONDS, until

HASTY_SECONDS: Final = 2  # in which a call reaches its server on a busy machine too

TEXT = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
Answer = str | types.CallToolResult
Answering = Callable[[Mapping[str, Any]], Answer | Awaitable[Answer]]


def failed(text: str) -> types.CallToolResult:
    """The result of a call that failed."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


@dataclass
class Wiki:
    """A server whose tools a test sets: their descriptions and schemas, and what they answer. `calls` are those that
    came in, `headers` those of each request, `listings` how often its tools were listed."""

    described: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    answers: dict[str, Answering] = field(default_factory=dict)
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    listings: int = 0
    token: str | None = None
    legacy: bool = False  # it knows only the protocol before 2026-07-28, with sessions, and answers by events
    packed: bool = False  # it says that its answers are packed
    url: str = ""
    _uvicorn: "_Quiet | None" = None
    _serving: "asyncio.Task[None] | None" = None

    def add(
        self,
        name: str,
        answer: Answering | Answer = "Nothing.",
        description: str = "Search the wiki.",
        schema: dict[str, Any] | None = None,
    ) -> Self:
        """Add a tool, or change it."""
        self.described[name] = (description, TEXT if schema is None else schema)
        self.answers[name] = answer if callable(answer) else lambda _: answer
        return self

    def server(self) -> "Server[Any]":
        return Server("wiki", on_list_tools=self._list, on_call_tool=self._call)

    async def _list(self, _: Any, __: Any) -> types.ListToolsResult:
        self.listings += 1
        tools = [types.Tool(name=n, description=d, input_schema=s) for n, (d, s) in self.described.items()]
        return types.ListToolsResult(tools=tools)

    async def _call(self, _: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        given = asked.arguments or {}
        self.calls.append((asked.name, given))
        if asked.name not in self.answers:
            return failed(f"There is no tool {asked.name}.")
        answer = self.answers[asked.name](given)
        found = await answer if inspect.isawaitable(answer) else answer
        if isinstance(found, str):
            return types.CallToolResult(content=[types.TextContent(type="text", text=found)])
        return found

    async def start(self, port: int = 0) -> None:
        """Serve at a port of this machine."""
        listening = socket.create_server(("127.0.0.1", port))
        app = self.server().streamable_http_app(stateless_http=not self.legacy, json_response=not self.legacy)
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        self._uvicorn = _Quiet(
            uvicorn.Config(self._noting(app), log_config=None, log_level="critical", timeout_graceful_shutdown=1)
        )
        self._serving = asyncio.create_task(self._uvicorn.serve(sockets=[listening]))
        await until(lambda: self._uvicorn is not None and self._uvicorn.started)

    async def stop(self) -> None:
        """Serve no more, and drop what is being answered."""
        if self._uvicorn is not None and self._serving is not None:
            self._uvicorn.should_exit = True
            await self._serving
            self._uvicorn = self._serving = None

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2].partition("/")[0])

    def _noting(self, app: Any) -> Any:
        async def noted(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                headers = {name.decode(): value.decode() for name, value in scope["headers"]}
                self.headers.append(headers)
                if self.token is not None and headers.get("authorization") != f"Bearer {self.token}":
                    await _refuse(send, 401)
                    return
                if self.legacy and headers.get("mcp-protocol-version", "") >= "2026":
                    await _refuse(send, 400)
                    return
            await app(scope, receive, self._packing(send) if scope["type"] == "http" else send)

        return noted

    def _packing(self, send: Any) -> Any:
        async def packing(event: Any) -> None:
            if event["type"] == "http.response.start" and self.packed:
                event = {**event, "headers": [*event["headers"], (b"content-encoding", b"gzip")]}
            await send(event)

        return packing


@contextlib.contextmanager
def hasty(office: Office) -> Iterator[None]:
    """Let calls of the first server wait for a moment only. What is connected and listed stays so."""
    server: Any = office.harness.app.tool_servers._servers[0].server
    before = server._settings
    server._settings = before.model_copy(update={"timeout": HASTY_SECONDS})
    try:
        yield
    finally:
        server._settings = before


async def _refuse(send: Any, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b"no"})


class _Quiet(uvicorn.Server):
    """A server that leaves the signals of the process to the tests."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(wiki: Wiki) -> AsyncIterator[Wiki]:
    """The server at a free port of this machine."""
    await wiki.start()
    try:
        yield wiki
    finally:
        await wiki.stop()


def at(wiki: Wiki, *tools: str, **given: Any) -> McpSettings:
    """The settings of a server whose tools are offered in every public room of acme, unless `given` says otherwise."""
    usual: dict[str, Any] = {"timeout": TIMEOUT_SECONDS} | ({} if "rooms" in given else {"tenants": ("acme",)})
    return McpSettings(url=ServerUrl(wiki.url), tools=tools, **{**usual, **given})


PROGRAM: dict[str, Any] = {"command": sys.executable, "args": ("-m", "tests.support.mcp_office")}


@asynccontextmanager
async def office_with(settings: Settings, **servers: McpSettings) -> AsyncIterator[Office]:
    """An app whose agent asks a scripted model server, with tool servers by their names."""
    named = {name.replace("_", "-"): server for name, server in servers.items()}
    async with opened(settings.model_copy(update={"mcp": named})) as office:
        yield office


async def _serve_streams() -> None:
    wiki = Wiki().add("echo", lambda given: str(given.get("query")))
    wiki.add("environment", lambda _: "\n".join(sorted(os.environ)))
    wiki.add("number", lambda _: str(os.getpid()))
    wiki.add("end", lambda _: os._exit(1))
    server = wiki.server()
    print("what a program says of itself", file=sys.stderr)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(_serve_streams())
