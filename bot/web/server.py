"""Opens the web port: uvicorn, in the loop of this process, and how connections begin and end."""

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, cast

import h11
import structlog
import uvicorn
from pydantic_core import to_json
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.web.connections import Connections, connections_for
from bot.web.edge import HEADER_BYTES
from bot.web.problems import MEDIA_TYPE, RETRY_AFTER_SECONDS
from composer.errors import Misconfigured
from composer.settings import Settings

logger = structlog.get_logger()

CLOSE_SECONDS: Final = 5  # for requests in progress at the end; then they are cut, open streams too
HEADER_SECONDS: Final = 10.0  # for the head of a request
UNREAD_SECONDS: Final = 30.0  # for a client that does not read what it is sent
KEEP_ALIVE_SECONDS: Final = 5  # for the next request of a connection
BACKLOG: Final = 256  # connections that wait to be accepted
ACCEPTED_AT_ONCE: Final = 32  # then what is open already has its turn
ACCEPT_PAUSE_SECONDS: Final = 1.0  # after an error, such as that no file can be opened any more
TICK_SECONDS: Final = 1.0  # after which the header Date is made anew

# What it says of requests is said by us, without their paths.
logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)


def _answer(status: int, reason: str, sentence: str) -> tuple[list[tuple[str, str]], bytes]:
    """The headers and the body of a problem that ends a connection."""
    body = to_json({"type": "about:blank", "title": reason, "status": status, "detail": sentence})
    return [("Content-Type", MEDIA_TYPE), ("Content-Length", str(len(body))), ("Connection", "close")], body


def _full() -> bytes:
    """The answer to a connection that has no place."""
    sentence = "Nexus has all the connections that it can, or this address its share of them: try again soon."
    headers, body = _answer(503, "Service Unavailable", sentence)
    lines = [f"{name}: {value}" for name, value in [*headers, ("Retry-After", str(RETRY_AFTER_SECONDS))]]
    return "\r\n".join(["HTTP/1.1 503 Service Unavailable", *lines, "", ""]).encode() + body


class _Protocol(H11Protocol):
    """A connection. It is closed where no whole head of a request comes in time, or where nobody reads the answer; what
    is no HTTP gets a problem."""

    def __init__(self, server: "_Server", connections: Connections, host: str) -> None:
        super().__init__(server.config, server.server_state, server.lifespan.state)
        self.host, self._connections = host, connections
        self._is_open = False
        self._slow: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    @property
    def asks(self) -> str:
        """The address of who asks: behind a proxy that of its client, while one asks."""
        is_asked = self.cycle is not None and not self.cycle.response_complete
        client = self.scope["client"] if is_asked else None
        return self.host if client is None else client[0]

    @property
    def waits(self) -> bool:
        """Whether nothing is being answered, or nobody reads the answer."""
        if not self._is_open:
            return False
        if self.cycle is None or self.cycle.response_complete or self.flow.write_paused:
            return True
        return self.cycle.more_body and not self.cycle.response_started

    def abort(self) -> None:
        """End it now."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._is_open = True
        self._slow = self.loop.call_later(HEADER_SECONDS, self._close)

    def data_received(self, data: bytes) -> None:
        """Take what arrived: the rest of a head, or of a body."""
        super().data_received(data)
        self._await_head()

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not read."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """Wait no longer: it has read."""
        super().resume_writing()
        self._unread = _stop(self._unread)
        if self.transport.is_closing():
            self._await_reader()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request where its beginning is here already."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._await_reader()
        else:
            self._await_head()

    def timeout_keep_alive_handler(self) -> None:
        """Close what nobody asks any more."""
        super().timeout_keep_alive_handler()
        self._await_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._connections.remove(self)
        super().connection_lost(exc)
        self._slow, self._unread = _stop(self._slow), _stop(self._unread)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, or has too long a head, and close."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # an answer is under way already
            self._close()
            return
        sentence = f"This is no HTTP request that Nexus can read, or its head has more than {HEADER_BYTES:,} bytes."
        headers, body = _answer(400, "Bad Request", sentence)
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self._close()

    def _close(self) -> None:
        """Close once the client has read all, or has had its time for that."""
        self.transport.close()
        self._await_reader()

    def _await_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._slow = _stop(self._slow)
        elif self._slow is None and self.conn.trailing_data[0]:
            self._slow = self.loop.call_later(HEADER_SECONDS, self._close)

    def _await_reader(self) -> None:
        if self._unread is None and self.transport.get_write_buffer_size():
            self._unread = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)


def _stop(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    if timer is not None:
        timer.cancel()
    return None


class _Door:
    """Accepts connections, as many as there are places for, until it is closed. asyncio's own way writes a traceback
    for each connection that can't be accepted, and tries again at once."""

    def __init__(self, sockets: Sequence[socket.socket], server: "_Server", connections: Connections) -> None:
        self._sockets, self._server, self._connections = sockets, server, connections
        self._loop = asyncio.get_running_loop()
        self._beginning = set[asyncio.Task[object]]()
        self._is_closed = self._is_failing = False
        for each in sockets:
            self._listen(each)

    def close(self) -> None:
        """Accept nothing more."""
        self._is_closed = True
        for each in self._sockets:
            self._loop.remove_reader(each.fileno())

    def _listen(self, listening: socket.socket) -> None:
        if not self._is_closed:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(listening, error)
                return
            self._is_failing = False
            accepted.setblocking(False)
            protocol = _Protocol(self._server, self._connections, address[0])
            if self._connections.add(protocol):
                beginning = self._loop.create_task(self._begin(protocol, accepted))
                self._beginning.add(beginning)
                beginning.add_done_callback(self._beginning.discard)
            else:
                _refuse(accepted)

    async def _begin(self, protocol: _Protocol, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, accepted)
        except OSError:  # it has gone already
            self._connections.remove(protocol)
            accepted.close()

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        """Try again after a while, with what others gave back. The log says so once, until it works again."""
        if not self._is_failing:
            logger.error("web.accept_failed", error=errno.errorcode.get(error.errno or 0, type(error).__name__))
        self._is_failing = True
        self._loop.remove_reader(listening.fileno())
        self._connections.make_room()
        self._loop.call_later(ACCEPT_PAUSE_SECONDS, self._listen, listening)


def _refuse(accepted: socket.socket) -> None:
    """Say that there is no place, and close: whoever has sent something reads that."""
    with contextlib.suppress(OSError):
        accepted.send(_full())
        accepted.shutdown(socket.SHUT_WR)
        accepted.recv(HEADER_BYTES)
    accepted.close()


class _Server(uvicorn.Server):
    """A server that leaves signals to us. `listening` is set when it serves, `stop` ends it."""

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections
        self._door: _Door | None = None
        self.listening = asyncio.Event()
        self._stopped = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Take no signal: whoever runs the loop does."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup([])
        self._door = _Door(sockets or [], self, self._connections)
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, and end what is open."""
        if self._door is not None:
            self._door.close()
        await super().shutdown(sockets)

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
    proxied: Any = ProxyHeadersMiddleware(cast(Any, served), settings.trusted_proxies)
    server = _Server(
        uvicorn.Config(
            proxied,
            http=_Protocol,
            ws="none",
            loop="none",
            lifespan="on",
            log_config=None,
            access_log=False,  # who asks is nobody's business
            server_header=False,
            proxy_headers=False,  # it is done above
            reset_contextvars=True,  # for whom one request acts is nothing to the next one of its connection
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=CLOSE_SECONDS,
            h11_max_incomplete_event_size=HEADER_BYTES,
        ),
        connections_for(proxied.trusted_hosts),
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
