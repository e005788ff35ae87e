"""Connections of the web port: nobody takes the places of others by opening many, sending slowly or reading nothing."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from starlette.middleware import Middleware
from structlog.testing import capture_logs

from bot.web import bodies, connections, server
from bot.web.bodies import BodyLimits
from bot.web.problems import add_problems
from tests.support.waiting import until
from tests.support.web import served_at

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
BEGUN = {
    "nothing": b"",
    "half a head": b"GET /quick HTT",
    "half a body": b"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\na",
    "a request that was answered": b"GET /quick HTTP/1.1\r\nHost: localhost\r\n\r\n",
}
QUICK = b"GET /quick HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Served:
    """An app with a quick answer, an open stream, a long answer, and one that takes a body."""

    def __init__(self) -> None:
        self.port = 0
        self.ended = list[str]()
        self.going_on = asyncio.Event()
        self.app = FastAPI(middleware=[Middleware(BodyLimits, limits={})])
        add_problems(self.app)
        self.app.get("/quick")(self._quick)
        self.app.get("/stream")(self._stream)
        self.app.get("/long")(self._long)
        self.app.post("/body")(self._body)

    async def connect(self, sent: bytes = b"", source: str = "127.0.0.1") -> Pair:
        pair = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0), limit=2**20)
        pair[1].write(sent)
        return pair

    async def answer(self, sent: bytes, source: str = "127.0.0.1") -> bytes:
        reader, writer = await self.connect(sent, source)
        try:
            return await reader.read()
        finally:
            writer.close()

    async def _quick(self) -> str:
        return "quick"

    async def _stream(self) -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"first."
            await self.going_on.wait()
            yield b"last."

        return StreamingResponse(parts())

    async def _long(self) -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"x" * 2**16
                    await asyncio.sleep(0)  # else nothing else is done once the client has gone
            finally:
                self.ended.append("long")

        return StreamingResponse(parts())

    async def _body(self, request: Request) -> int:
        return len(await request.body())


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[Served]:
    served = Served()
    async with served_at(lambda *given: served.app(*given), **settings) as url:
        served.port = int(url.rpartition(":")[2])
        yield served


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 8)
    monkeypatch.setattr(connections, "ADDRESS_PART", 2)


@asynccontextmanager
async def crowd_of(
    served: Served, count: int, sent: bytes, source: str = "127.0.0.1"
) -> AsyncIterator[Callable[[], int]]:
    """So many connections that send this and no more; gives a function that says how many the server has closed."""
    pairs = [await served.connect(sent, source) for _ in range(count)]
    ends = [asyncio.create_task(reader.read()) for reader, _ in pairs]
    try:
        yield lambda: sum(each.done() for each in ends)
    finally:
        for _, writer in pairs:
            writer.transport.abort()
        await asyncio.gather(*ends, return_exceptions=True)


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN)
@pytest.mark.parametrize("proxies", [None, "192.0.2.0/24"], ids=["behind a proxy", "without one"])
async def test_many_that_wait_leave_places_for_others(few: None, begun: bytes, proxies: str | None) -> None:
    async with serving(web_proxies=proxies) as served, crowd_of(served, 50, begun) as closed:
        for source in ("127.0.0.2", "127.0.0.3", "127.0.0.1"):
            assert b" 200 " in await served.answer(QUICK, source)
        assert await until(lambda: closed() >= 50 - (8 if proxies is None else 4))


async def test_an_open_stream_is_never_closed_for_others(few: None) -> None:
    async with serving(web_proxies="192.0.2.0/24") as served:
        reader, writer = await served.connect(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n", "127.0.0.2")
        assert await reader.readuntil(b"first.")
        async with AsyncExitStack() as stack:
            for number in range(3, 9):
                await stack.enter_async_context(crowd_of(served, 20, b"", f"127.0.0.{number}"))
            served.going_on.set()
            assert await reader.readuntil(b"last.")
        writer.close()


async def test_where_all_are_answered_another_is_told_to_come_back(few: None) -> None:
    open_streams = list[Pair]()  # else they would be closed
    stream = b"GET /stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    async with serving(web_proxies="192.0.2.0/24") as served, AsyncExitStack() as stack:
        for source in ("127.0.0.2", "127.0.0.3"):
            for _ in range(4):
                open_streams.append(pair := await served.connect(stream, source))
                stack.callback(pair[1].close)
                assert await pair[0].readuntil(b"first.")
        refused = await served.answer(b"", "127.0.0.4")
        head, _, body = refused.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"Retry-After: 5" in head
        assert b"application/problem+json" in head
        assert b"try again soon" in body
        served.going_on.set()

        async def is_served() -> bool:
            return b" 200 " in await served.answer(QUICK, "127.0.0.4")

        assert await until(is_served), "once the others have ended"


async def test_behind_a_proxy_a_client_gives_back_what_it_has_and_others_keep_theirs(few: None) -> None:
    def begun(client: str) -> bytes:
        return BEGUN["half a body"].replace(b"\r\n\r\n", f"\r\nX-Forwarded-For: {client}\r\n\r\n".encode())

    async with serving() as served:
        reader, writer = await served.connect(begun("192.0.2.1"))
        async with crowd_of(served, 50, begun("192.0.2.2")) as closed:
            assert await until(lambda: closed() >= 43)
            writer.write(b"a" * 4_999)
            assert b" 200 " in await reader.readuntil(b"\r\n"), "it began first, and is the only one of its client"
        writer.close()


async def test_who_reads_nothing_of_a_long_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "UNREAD_SECONDS", 0.05)
    async with serving() as served:
        _, writer = await served.connect(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: served.ended)
        writer.transport.abort()


async def test_who_reads_gets_all_of_a_long_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        reader, writer = await served.connect(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(200):
            await reader.readexactly(2**16)
        assert not served.ended
        writer.close()
        await until(lambda: served.ended)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
async def test_a_connection_that_cannot_be_accepted_is_logged_once_and_tried_later(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    failures = [OSError(number, "too many") for _ in range(5)]

    class Failing(socket.socket):
        def accept(self) -> tuple[socket.socket, Any]:
            if failures:
                raise failures.pop()
            return super().accept()

    said = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    monkeypatch.setattr(server, "ACCEPT_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(socket, "socket", Failing)
    with capture_logs() as logs:
        async with serving() as served:
            assert b" 200 " in await served.answer(QUICK)
            assert not failures
            failures.append(OSError(number, "again"))
            assert b" 200 " in await served.answer(QUICK)
    lines = [line for line in logs if line["event"] == "web.accept_failed"]
    assert [line["error"] for line in lines] == [errno.errorcode[number]] * 2, "once each time that it begins"
    assert not said, "no traceback"


async def test_of_bodies_that_arrive_slowly_from_one_address_the_first_make_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bodies, "ARRIVING_AT_ONCE", 3)
    async with serving() as served:
        mine = await served.connect(BEGUN["half a body"], "127.0.0.2")
        async with AsyncExitStack() as stack:
            pairs = list[Pair]()
            for _ in range(5):
                pairs.append(pair := await served.connect(BEGUN["half a body"]))
                stack.callback(pair[1].close)
                await asyncio.sleep(0)
            for reader, _ in pairs[:2]:
                assert b" 408 " in await reader.readuntil(b"\r\n")
            for reader, writer in [*pairs[2:], mine]:
                writer.write(b"a" * 4_999)
                assert b" 200 " in await reader.readuntil(b"\r\n")
            for _ in range(20):
                assert b" 200 " in await served.answer(BEGUN["half a body"] + b"a" * 4_999), "nobody's slow ones stay"
        mine[1].close()
