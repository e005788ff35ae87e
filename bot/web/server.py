"""Opens the web port: uvicorn, in the loop of this process."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import h11
import uvicorn
from pydantic_core import to_json
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.web.edge import HEADER_BYTES
from bot.web.problems import MEDIA_TYPE
from composer.errors import Misconfigured
from composer.settings import Settings

CLOSE_SECONDS: Final = 5  # for requests in progress at the end; then they are cut, open streams too
HEADER_SECONDS: Final = 10.0  # for the head of a request
BACKLOG: Final = 256  # connections that wait to be accepted
TICK_SECONDS: Final = 1.0  # after which the header Date is made anew

# What it says of requests is said by us, without their paths.
logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)


class _Protocol(H11Protocol):
    """A connection: one that sends no whole head of a request in time is closed, and one that sends no HTTP gets a
    problem."""

    _slow: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._slow = self.loop.call_later(HEADER_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Take what arrived: the rest of a head, or of a body."""
        super().data_received(data)
        self._await_head()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request where its beginning is here already."""
        super().on_response_complete()
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, or has too long a head, and close."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # an answer is under way already
            self.transport.close()
            return
        sentence = f"This is no HTTP request that Nexus can read, or its head has more than {HEADER_BYTES:,} bytes."
        body = to_json({"type": "about:blank", "title": "Bad Request", "status": 400, "detail": sentence})
        headers = [("Content-Type", MEDIA_TYPE), ("Content-Length", str(len(body))), ("Connection", "close")]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _await_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._slow is None and self.conn.trailing_data[0]:
            self._slow = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None


class _Server(uvicorn.Server):
    """A server that leaves signals to us. `listening` is set when it serves, `stop` ends it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._stopped = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Take no signal: whoever runs the loop does."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        """Serve until stopped."""
        while not self.should_exit:
            await self.on_tick(0)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), TICK_SECONDS)

    def stop(self) -> None:
        """Accept nothing more, and end soon."""
        self.should_exit = True
        self._stopped.set()


async def open_port(settings: Settings, served: ASGIApp, stack: AsyncExitStack) -> str:
    """Serve an app until `stack` is closed; returns the host and port. Raises Misconfigured when the port is taken, or
    can't be opened for another reason."""
    host, port = settings.web_host, settings.web_port
    try:
        sockets = await _bind(host, port)
    except OSError as error:
        reason = (os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)).lower()
        raise Misconfigured(
            f"The web port {port} can't be opened on {host} ({reason}): end what uses it, or set NEXUS_WEB_PORT and "
            "NEXUS_WEB_HOST to others."
        ) from error
    places = ", ".join(f"{name[0]}:{name[1]}" for name in (each.getsockname() for each in sockets))
    server = _Server(
        uvicorn.Config(
            served,
            http=_Protocol,
            ws="none",
            loop="none",
            lifespan="on",
            log_config=None,
            access_log=False,  # who asks is nobody's business
            server_header=False,
            proxy_headers=True,
            forwarded_allow_ips=settings.trusted_proxies,
            backlog=BACKLOG,
            timeout_graceful_shutdown=CLOSE_SECONDS,
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
    )
    serving = asyncio.create_task(server.serve(sockets))
    stack.push_async_callback(_close, server, serving)
    listening = asyncio.create_task(server.listening.wait())
    await asyncio.wait((serving, listening), return_when=asyncio.FIRST_COMPLETED)
    listening.cancel()
    if serving.done():
        await serving  # raises why
    return places


async def _bind(host: str, port: int) -> list[socket.socket]:
    """A bound socket for each address of a host. Raises OSError; then none is left open."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            each = socket.socket(family, kind, protocol)
            sockets.append(each)
            each.setblocking(False)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            each.bind(address)
            each.listen(BACKLOG)  # a port that another process listens on is refused here at the latest
    except OSError:
        _close_sockets(sockets)
        raise
    return sockets


def _close_sockets(sockets: Sequence[socket.socket]) -> None:
    for each in sockets:
        each.close()


async def _close(server: _Server, serving: asyncio.Task[Any]) -> None:
    server.stop()
    await serving
    cut = server.server_state.tasks
    if cut:  # cancelled by now; what they hold is given back before the rest of the process ends
        await asyncio.wait(set(cut), timeout=CLOSE_SECONDS)
