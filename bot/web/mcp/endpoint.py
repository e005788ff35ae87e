"""MCP over HTTP: one address for all clients, without sessions, so that any process may answer any request."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from composer.app import App
from composer.tasks.signals import end_tasks


class McpEndpoint:
    """Serves MCP requests that were let in. `close` it at the end."""

    def __init__(self, app: App, make_manager: Callable[[App], StreamableHTTPSessionManager]) -> None:
        self._app, self._make_manager = app, make_manager
        self._tool_key_seen = False
        self._starting = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def is_known_to_be_on(self) -> bool:
        """Whether it is on, as far as is known without asking the database."""
        settings = self._app.settings
        return settings.public_url is not None or bool(settings.tool_keys) or self._tool_key_seen

    async def is_on(self) -> bool:
        """Whether there is anybody to serve: an address for clients is set, or some tool has a key."""
        if self.is_known_to_be_on:
            return True
        for tenant, _ in await self._app.database.tenants():
            async with self._app.database.transaction(tenant, "read") as tx:
                if await tx.api_keys.has_tools(self._app.clock.now()):
                    self._tool_key_seen = True
                    return True
        return False

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whose state says whom it stands for."""
        manager = await self._started()
        await manager.handle_request(scope, receive, send)

    async def close(self) -> None:
        """Cut what is being answered."""
        if self._running is not None:
            await end_tasks([self._running])

    async def _started(self) -> StreamableHTTPSessionManager:
        async with self._starting:
            if self._manager is None:
                manager, ready = self._make_manager(self._app), asyncio.Event()
                self._running = asyncio.create_task(_run(manager, ready))
                await ready.wait()
                self._manager = manager
            return self._manager


async def _run(manager: StreamableHTTPSessionManager, ready: asyncio.Event) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(manager.run())
        ready.set()
        await asyncio.Event().wait()
