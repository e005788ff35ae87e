"""What the web port answers to requests that are wrong: one problem each, in a plain sentence, with nothing of ours."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi import FastAPI, Form
from pydantic import BaseModel, ConfigDict
from starlette.responses import StreamingResponse
from structlog.testing import capture_logs

from bot.web import bodies, server
from bot.web.app import web_app
from bot.web.document import document
from bot.web.gateway.errors import is_of_gateway
from bot.web.metrics import Metrics
from bot.web.problems import documented
from composer.errors import AdminNeeded, BadInput, BudgetUsedUp, Misconfigured, NexusError, NotFound, Unavailable
from composer.settings import Settings
from composer.settings.server_urls import ServerUrl
from composer.stores.clock import SystemClock
from tests.support.waiting import TIMEOUT_SECONDS
from tests.support.web import served_at

HOST = b"Host: localhost\r\nConnection: close\r\n"
ERRORS: Mapping[str, NexusError] = {
    "missing": NotFound("There is no such entry."),
    "admin": AdminNeeded("Only an admin may do this."),
    "input": BadInput("The title is too long."),
    "budget": BudgetUsedUp("The budget of this month is used up."),
    "settings": Misconfigured("NEXUS_MODEL is wrong."),
    "away": Unavailable("The database does not answer.", operator="at zqhost:5432"),
    "other": NexusError("It failed."),
}


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str
    count: int = 0


def an_app(public_url: str | None = None) -> FastAPI:
    """The app of the web port with routes of every kind."""
    settings = Settings(home=Path("unused"), public_url=public_url)
    unasked = SimpleNamespace(serve=lambda *_, **__: None, register_source=lambda *_: None)
    unasked.images = unasked  # no test here talks to an agent, or asks the database
    parts = {"turns": unasked, "drafter": unasked, "file_texts": unasked, "database": SimpleNamespace()}
    redis = ServerUrl("redis://127.0.0.1:1/0")
    running = cast(Any, SimpleNamespace(settings=settings, redis_url=redis, clock=SystemClock(), **parts))
    served = web_app(running, Metrics(()), {}, None)

    @served.post("/v1/things")
    async def make(given: Given) -> Given:
        return given

    @served.get("/v1/things")
    async def find(count: int = 1) -> dict[str, int]:
        return {"count": count}

    @served.get("/v1/things/{name}")
    async def one(name: str) -> dict[str, str]:
        return {"name": name}

    @served.delete("/v1/things/{name}")
    async def remove(name: str) -> None:
        return None

    @served.post("/v1/forms")
    async def sign(name: str = Form()) -> dict[str, str]:
        return {"name": name}

    @served.get("/v1/errors/{name}", responses=documented(403, 404, 422, 429))
    async def fail(name: str) -> None:
        raise ERRORS[name]  # a KeyError for any other name

    @served.get("/v1/broken")
    async def broken() -> StreamingResponse:
        async def half() -> AsyncIterator[bytes]:
            yield b"half of "
            raise ValueError("zqsecret")

        return StreamingResponse(half())

    return served


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes
    logs: list[Any] = field(default_factory=list)

    @property
    def detail(self) -> str:
        """The sentence of a problem, which has the form of one."""
        assert self.headers["content-type"] == "application/problem+json"
        told = json.loads(self.body)
        assert set(told) == {"type", "title", "status", "detail"}
        assert told["status"] == self.status
        assert told["detail"].endswith(".")
        assert "\n" not in told["detail"]
        return str(told["detail"])


async def sent(url: str, request: bytes) -> Answer:
    """What comes back for these bytes, until the server closes the connection."""
    port = int(url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with capture_logs() as logs:
        try:
            writer.write(request)
            back = await asyncio.wait_for(reader.read(), TIMEOUT_SECONDS)
        finally:
            writer.close()
    head, _, body = back.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(first.split()[1]) if first else 0, headers, body, logs)


def asking(method: str, path: str, *headers: bytes, body: bytes = b"") -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return f"{method} {path} HTTP/1.1\r\n".encode() + HOST + lines + b"\r\n" + body


def posting(body: bytes, kind: bytes = b"application/json", path: str = "/v1/things") -> bytes:
    return asking("POST", path, b"Content-Type: " + kind, b"Content-Length: %d" % len(body), body=body)


@pytest.fixture(scope="module")
async def url() -> AsyncIterator[str]:
    async with served_at(an_app()) as address:
        yield address


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (b'{"title": "zqtitle", "count": 3}', 200, ""),
        (b"{}", 422, "`title` is missing."),
        (b'{"title": "a", "count": "zqmany"}', 422, "`count` is wrong: input should be a valid integer"),
        (b'{"title": ["zqtitle"]}', 422, "`title` is wrong: input should be a valid string."),
        (b'{"title": "a", "colour": "zqred"}', 422, "`colour` is not known here."),
        (b"[]", 422, "The body of the request is wrong: input should be"),
        (b"null", 422, "The body of the request is wrong: input should be"),
        (b"", 422, "The request needs a body."),
        (b"{", 400, "is not valid JSON in UTF-8."),
        (b'{"title": "a"} zq', 400, "is not valid JSON in UTF-8."),
        (b'{"title": "\xff"}', 400, "is not valid JSON in UTF-8."),
        (b'{"title": "\\ud800"}', 400, "is not valid JSON in UTF-8."),
        (b'{"count": NaN}', 400, "is not valid JSON in UTF-8."),
        (b'{"count": ' + b"9" * 5_000 + b"}", 400, "is not valid JSON in UTF-8."),
        (b'{"count": [{"a": -1e999}]}', 400, "holds a number that is too large."),
        (b"[" * 10_000, 400, "is nested too deeply."),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, 400, "is nested too deeply."),
    ],
)
async def test_a_body_is_judged_by_one_sentence_that_names_the_field(
    url: str, body: bytes, status: int, detail: str
) -> None:
    answer = await sent(url, posting(body))
    assert answer.status == status
    if status != 200:
        assert detail in answer.detail
        assert "zq" not in answer.detail


async def test_a_value_of_the_address_is_judged_likewise(url: str) -> None:
    answer = await sent(url, asking("GET", "/v1/things?count=zqmany"))
    assert answer.status == 422
    assert answer.detail.startswith("`count` is wrong: input should be a valid integer")
    assert "zq" not in answer.detail + json.dumps(answer.logs)


@pytest.mark.parametrize("kind", [b"text/plain", b"application/x-www-form-urlencoded", b"application/jsonp", b"", b"x"])
async def test_a_body_that_is_not_said_to_be_json_is_refused(url: str, kind: bytes) -> None:
    assert (await sent(url, posting(b'{"title": "a"}', kind))).status == 415


@pytest.mark.parametrize("kind", [b"application/json; charset=utf-8", b"Application/JSON", b"application/vnd.a+json"])
async def test_json_may_be_named_in_other_ways(url: str, kind: bytes) -> None:
    assert (await sent(url, posting(b'{"title": "a"}', kind))).status == 200


async def test_a_form_is_taken_where_one_is_asked_for(url: str) -> None:
    answer = await sent(url, posting(b"name=alice", b"application/x-www-form-urlencoded", "/v1/forms"))
    assert (answer.status, json.loads(answer.body)) == (200, {"name": "alice"})


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/v1/things", "GET, HEAD, POST"),
        ("POST", "/v1/things/a", "DELETE, GET, HEAD"),
        ("POST", "/health", "GET, HEAD"),
        ("OPTIONS", "/health", "GET, HEAD"),
        ("BREW", "/openapi.json", "GET, HEAD"),
        ("TRACE", "/v1/things/a", "DELETE, GET, HEAD"),
    ],
)
async def test_another_method_is_told_which_ones_there_are(url: str, method: str, path: str, allow: str) -> None:
    answer = await sent(url, asking(method, path))
    assert (answer.status, answer.headers["allow"]) == (405, allow)
    assert answer.detail


async def test_head_answers_as_get_does_without_its_body(url: str) -> None:
    asked, got = await sent(url, asking("HEAD", "/health")), await sent(url, asking("GET", "/health"))
    assert (asked.status, asked.body, got.body) == (200, b"", b'{"status":"running"}')
    assert asked.headers["content-length"] == got.headers["content-length"]


@pytest.mark.parametrize(
    "path",
    [
        *("/nothing", "/health/", "//health", "/./health", "/v1/../health", "/%2e%2e/health", "/health%2f"),
        *("/HEALTH", "/v1/things/a%2fb", "/v1/things/a/b", "http://elsewhere.example/health", "*", "/docs", "/redoc"),
        *("/health;a=b", "/health%20", "/slack/events"),
    ],
)
async def test_an_address_is_taken_as_it_is_written(url: str, path: str) -> None:
    answer = await sent(url, asking("GET", path))
    assert (answer.status, answer.detail) == (404, "There is nothing at this address.")
    assert path not in [line.get("route") for line in answer.logs]


@pytest.mark.parametrize("path", ["/health%00", "/v1/things/a%00b", "/v1/things?count=%00"])
async def test_a_nul_in_an_address_is_refused(url: str, path: str) -> None:
    assert (await sent(url, asking("GET", path))).status == 400


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("missing", 404),
        ("admin", 403),
        ("input", 422),
        ("budget", 429),
        ("settings", 500),
        ("away", 503),
        ("other", 500),
    ],
)
async def test_each_error_of_ours_has_a_status_and_says_its_sentence(url: str, name: str, status: int) -> None:
    answer = await sent(url, asking("GET", f"/v1/errors/{name}"))
    assert (answer.status, answer.detail) == (status, str(ERRORS[name]))
    assert ("retry-after" in answer.headers) == (status == 503)
    assert "zqhost" not in answer.body.decode() + json.dumps(answer.logs)


async def test_a_bug_is_a_500_without_detail_and_a_line_of_the_log_without_text(url: str) -> None:
    answer = await sent(url, asking("GET", "/v1/errors/zqname"))
    assert (answer.status, answer.detail) == (500, "Something went wrong in Nexus; its log says more.")
    [failed, request] = answer.logs
    assert (failed["event"], failed["error"], failed["route"]) == ("web.failed", "KeyError", "/v1/errors/{name}")
    assert (request["event"], request["status"]) == ("web.request", 500)
    assert "zq" not in json.dumps(answer.logs)


async def test_half_an_answer_is_not_taken_for_a_whole_one(url: str) -> None:
    answer = await sent(url, asking("GET", "/v1/broken"))
    assert answer.body == b"8\r\nhalf of \r\n"  # the last chunk, of length 0, is missing
    assert "zqsecret" not in json.dumps(answer.logs)


async def test_each_request_is_one_line_of_the_log_without_its_path_query_or_sender(url: str) -> None:
    answer = await sent(url, asking("GET", "/v1/things/zqname?q=zqquery", b"User-Agent: zqagent", b"X-Other: zqother"))
    [line] = answer.logs
    assert line.pop("ms") >= 0
    assert line == {
        "event": "web.request",
        "log_level": "info",
        "method": "GET",
        "route": "/v1/things/{name}",
        "status": 200,
        "key": "",
    }


async def test_every_answer_has_the_headers_that_keep_it_from_pages_and_caches(url: str) -> None:
    for path in ("/health", "/nothing", "/openapi.json", "/v1/errors/zq"):
        headers = (await sent(url, asking("GET", path))).headers
        assert headers["cache-control"] == "no-store", path
        assert headers["content-security-policy"].startswith("default-src 'none'"), path
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY"), path
        assert "server" not in headers, path
        assert "strict-transport-security" not in headers, path


@pytest.mark.parametrize(
    ("public_url", "host", "path", "status"),
    [
        (None, "localhost", "/v1/things", 200),
        (None, "localhost:8080", "/v1/things", 200),
        (None, "127.0.0.1:1", "/v1/things", 200),
        (None, "[::1]:8080", "/v1/things", 200),
        (None, "192.168.7.5:8080", "/v1/things", 200),
        (None, "nexus.example.com", "/v1/things", 421),
        (None, "localhost.example.com", "/v1/things", 421),
        (None, "", "/v1/things", 421),
        (None, "[", "/v1/things", 421),
        (None, "nexus.example.com", "/health", 200),
        ("https://nexus.example.com", "nexus.example.com", "/v1/things", 200),
        ("https://nexus.example.com", "NEXUS.example.com:443", "/v1/things", 200),
        ("https://nexus.example.com", "localhost:8080", "/v1/things", 200),
        ("https://nexus.example.com", "192.168.7.5", "/v1/things", 421),
        ("https://nexus.example.com", "evil.example", "/v1/things", 421),
        ("https://nexus.example.com", "nexus.example.com.evil.example", "/v1/things", 421),
        ("https://nexus.example.com", "nexus.example.com@evil.example", "/v1/things", 421),
        ("https://nexus.example.com", "evil.example", "/nothing", 421),
        ("https://nexus.example.com", "nexus:8080", "/health", 200),
    ],
)
async def test_the_api_answers_under_our_names_only(public_url: str | None, host: str, path: str, status: int) -> None:
    async with served_at(an_app(public_url)) as address:
        request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
        answer = await sent(address, request)
    assert answer.status == status
    assert ("strict-transport-security" in answer.headers) == (public_url is not None)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([b"Content-Length: 3", b"Content-Length: 14"], b'{"title": "a"}'),
        ([b"Content-Length: 3, 14"], b'{"title": "a"}'),
        ([b"Content-Length: 3", b"Transfer-Encoding: chunked"], b'e\r\n{"title": "a"}\r\n0\r\n\r\n'),
        ([b"Transfer-Encoding: chunked", b"Content-Length: 14"], b'e\r\n{"title": "a"}\r\n0\r\n\r\n'),
        ([b"Transfer-Encoding: gzip, chunked"], b"0\r\n\r\n"),
        ([b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"], b"0\r\n\r\n"),
        ([b"Transfer-Encoding : chunked"], b"0\r\n\r\n"),
        ([b"Content-Length: -1"], b""),
        ([b"Content-Length: +14"], b'{"title": "a"}'),
        ([b"Content-Length: 0x0e"], b'{"title": "a"}'),
        ([b"Content-Length: " + b"9" * 5_000], b""),
        ([b"Host: evil.example"], b""),
        ([b"X-A: a\x00b"], b""),
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_request_whose_end_can_be_read_in_two_ways_is_refused_and_the_connection_closed(
    url: str, method: str, headers: list[bytes], body: bytes
) -> None:
    second = b"GET /v1/things HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    lines = b"".join(header + b"\r\n" for header in (b"Content-Type: application/json", *headers))
    start = f"{method} /v1/things HTTP/1.1\r\nHost: localhost\r\n".encode()
    answer = await sent(url, start + lines + b"\r\n" + body + second)
    assert answer.status == 400
    assert answer.headers["connection"] == "close"
    assert answer.body.count(b"HTTP/1.1") == 0, "what followed is no request"


async def test_a_body_in_chunks_is_a_body(url: str) -> None:
    chunks = b'5\r\n{"tit\r\n9\r\nle": "a"}\r\n0\r\n\r\n'
    headers = (b"Content-Type: application/json", b"Transfer-Encoding: chunked")
    assert (await sent(url, asking("POST", "/v1/things", *headers, body=chunks))).status == 200


@pytest.mark.parametrize("request_", [b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"hello\r\n\r\n", b"GET\r\n\r\n"])
async def test_what_is_no_http_is_answered_by_a_problem(url: str, request_: bytes) -> None:
    answer = await sent(url, request_)
    assert answer.status == 400
    assert answer.detail.startswith("This is no HTTP request that Nexus can read")


@pytest.mark.parametrize("headers", [[b"X-A: " + b"a" * 17_000], [b"X-%d: a" % number for number in range(3_000)]])
async def test_a_long_head_is_refused(url: str, headers: list[bytes]) -> None:
    answer = await sent(url, asking("GET", "/health", *headers))
    assert (answer.status, answer.detail) == (431, "The head of the request is too long.")
    assert (await sent(url, asking("GET", "/" + "a" * 17_000))).status == 431


async def test_a_long_head_that_goes_on_and_on_is_refused_before_its_end(url: str) -> None:
    answer = await sent(url, b"GET /health HTTP/1.1\r\nX-A: " + b"a" * 17_000)
    assert (answer.status, answer.headers["connection"]) == (400, "close")
    assert "its head has more than 16,384 bytes" in answer.detail


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("path", ["/v1/things", "/nothing"])
async def test_a_long_body_is_refused(url: str, path: str, declared: bool) -> None:
    body = b"x" * (bodies.MAX_REQUEST_BODY_BYTES + 1)
    if declared:
        request = posting(body, path=path)
    else:
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        request = asking("POST", path, b"Content-Type: application/json", b"Transfer-Encoding: chunked", body=chunks)
    answer = await sent(url, request)
    assert answer.status == (413 if path == "/v1/things" else 404)
    assert answer.detail


async def test_who_asks_before_sending_a_long_body_need_not_send_it(url: str) -> None:
    headers = (b"Content-Type: application/json", b"Content-Length: 9999999999", b"Expect: 100-continue")
    answer = await sent(url, asking("POST", "/v1/things", *headers))
    assert (answer.status, answer.headers["connection"]) == (413, "close")


async def test_a_body_that_does_not_arrive_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "PAUSE_SECONDS", 0.05)
    async with served_at(an_app()) as address:
        request = asking("POST", "/v1/things", b"Content-Type: application/json", b"Content-Length: 14", body=b'{"ti')
        answer = await sent(address, request)
    assert answer.status == 408
    assert answer.headers["connection"] == "close"


async def test_a_body_that_arrives_byte_by_byte_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.3)
    async with served_at(an_app()) as address:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.write(asking("POST", "/v1/things", b"Content-Type: application/json", b"Content-Length: 1000000"))

        async def drip() -> None:
            while True:
                writer.write(b" ")
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        back = await asyncio.wait_for(reader.readuntil(b"\r\n"), TIMEOUT_SECONDS)
        dripping.cancel()
        writer.close()
    assert b" 408 " in back


@pytest.mark.parametrize("begun", [b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: local"])
async def test_a_head_that_does_not_arrive_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.05)
    async with served_at(an_app()) as address:
        assert (await sent(address, begun)).status == 0, "closed without an answer"
        monkeypatch.setattr(server, "HEADER_SECONDS", 1.0)  # in which a whole one arrives on a busy machine too
        whole = asking("GET", "/health").replace(b"close", b"keep-alive")
        assert (await sent(address, whole + begun)).status == 200, "nor is that of a second request"


async def test_a_stream_that_is_open_is_cut_when_the_port_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CLOSE_SECONDS", 0.05)
    served, ended = an_app(), []

    @served.get("/v1/stream")
    async def stream() -> StreamingResponse:
        async def events() -> AsyncIterator[bytes]:
            try:
                yield b"first"
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        return StreamingResponse(events())

    async with served_at(served) as address:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.write(asking("GET", "/v1/stream"))
        await asyncio.wait_for(reader.readuntil(b"first"), TIMEOUT_SECONDS)
    assert ended == [True]
    assert b"0\r\n\r\n" not in await asyncio.wait_for(reader.read(), TIMEOUT_SECONDS)
    writer.close()


async def test_the_document_is_openapi_3_1_and_shows_the_problem_of_every_route(url: str) -> None:
    answer = await sent(url, asking("GET", "/openapi.json"))
    told = json.loads(answer.body)
    assert told["openapi"].startswith("3.1")
    assert told["info"]["title"] == "Nexus"
    assert "Problem" in told["components"]["schemas"]
    assert {"/health", "/ready", "/metrics", "/v1/things"} <= set(told["paths"])
    for path, methods in told["paths"].items():
        for method, route in methods.items():
            kind, shape = ("json", "GatewayError") if is_of_gateway(path) else ("problem+json", "Problem")
            problem = route["responses"]["default"]["content"][f"application/{kind}"]
            assert problem["schema"] == {"$ref": f"#/components/schemas/{shape}"}, (path, method)
            assert "HTTPValidationError" not in json.dumps(route), (path, method)
    assert document(an_app("https://nexus.example.com"))["paths"] == told["paths"]
