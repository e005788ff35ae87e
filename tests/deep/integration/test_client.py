"""The Python client: a method for each route, and used against a served Nexus."""

import asyncio
import inspect
import re
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.routing import Match

import nexus_client
from bot.web.app import web_app
from bot.web.document import document
from bot.web.gateway.errors import is_of_gateway
from bot.web.metrics import Metrics
from nexus_client import AsyncNexus, Conflict, Forbidden, Invalid, Nexus, NotFound, Unauthorized, Unavailable
from tests.support.api import key_of, person
from tests.support.harness import AppHarness
from tests.support.web import served_at

ROOT = Path(__file__).parents[3]


@pytest.fixture
def served(harness: AppHarness) -> FastAPI:
    return web_app(harness.app, Metrics([]), {}, None)


@pytest.fixture
async def url(served: FastAPI) -> AsyncIterator[str]:
    async with served_at(served) as url:
        yield url


OF_BROWSERS = ("/v1/logout", "/v1/rooms", "/v1/settings/rooms", "/v1/waiting")


def test_every_route_of_the_api_has_a_method(served: FastAPI) -> None:
    routes = {
        f"{method.upper()} {path}"
        for path, methods in document(served)["paths"].items()
        for method in methods
        if path.startswith("/v1/") and not path.startswith(OF_BROWSERS) and not is_of_gateway(path)
    }
    first_lines = [(inspect.getdoc(method) or "") for _, method in inspect.getmembers(AsyncNexus, inspect.isfunction)]
    known = {found[0] for line in first_lines if (found := re.match(r"[A-Z]+ /v1/[\w/{}-]+", line))}
    assert known == routes


def test_every_request_of_the_docs_has_a_route(served: FastAPI) -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").replace("\\\n", " ")
    asked = re.findall(r'curl (?:-X (\w+) )?"?\$NEXUS(/v1/[^\s?"]+)', page)
    assert len(asked) > 8
    for method, path in asked:
        scope = {"type": "http", "method": method or "GET", "path": path.replace("ID", str(uuid.UUID(int=0)))}
        assert any(route.matches(scope)[0] is Match.FULL for route in served.router.routes), (method, path)


async def test_a_person_and_a_tool_use_it(harness: AppHarness, url: str) -> None:
    key, tool = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    bob = await person(harness, "bob")
    async with AsyncNexus(url, key) as alice, AsyncNexus(url, tool) as claude:
        first = await alice.write("we deploy on fridays", tags=["ops"])
        for n in range(5):
            harness.clock.tick()
            await claude.agent_write(f"note {n}")
        assert [entry["content"] async for entry in alice.entries(limit=2)][-1] == "we deploy on fridays"
        assert [entry["snippet"] async for entry in claude.agent_by_tag("ops")] == ["we deploy on fridays"]
        changed = await alice.change(first["id"], version=1, tags=["ops/eu"])
        assert changed["version"] == 2
        assert [entry["snippet"] async for entry in claude.agent_by_tag("ops/eu")] == ["we deploy on fridays"]
        assert [entry async for entry in claude.agent_by_tag("..")] == [], "dots lead to no other address"
        with pytest.raises(Conflict):
            await alice.change(first["id"], version=1, tags=[])
        assert (await claude.agent_latest())["content"] == "note 4"
        with pytest.raises(Forbidden, match="its person does it"):
            await claude.entry(first["id"])
        team = await alice.create_team("Ops")
        await alice.invite(team, str(bob.id))
        assert (await alice.share(first["id"], team))["shared"]["team"] == {"id": team, "name": "Ops"}
        assert [entry["id"] async for entry in claude.agent_team_entries(team)] == [first["id"]]
        await alice.trash(first["id"])
        with pytest.raises(NotFound):
            await claude.agent_entry(first["id"])
        assert (await alice.restore(first["id"]))["id"] == first["id"]
        with pytest.raises(Invalid):
            await alice.write("")


async def test_a_person_talks_and_asks_with_it(harness: AppHarness, url: str) -> None:
    key = await key_of(harness, "alice")
    async with AsyncNexus(url, key) as alice:
        await alice.write("the vault opens at nine")
        await harness.app.indexer.catch_up(harness.workspace().tenant_id)
        found = await alice.query("when does the vault open?")
        assert "the vault opens at nine" in str(found)
        answer = await alice.chat("when does the vault open?", session="s1")
        assert answer["text"]
        assert (await alice.turn(answer["turn"]))["text"] == answer["text"]
        names = [name async for name, _ in alice.chat_events("and when does it close?", session="s1")]
        assert (names[0], names[-1]) == ("start", "done")
        assert len((await alice.episodes(session="s1"))["items"]) == 2
        assert [each["session"] for each in (await alice.sessions())["items"]] == ["s1"]
        await alice.forget_session("s1")
        assert (await alice.sessions())["items"] == []


async def test_the_synchronous_client_does_the_same(harness: AppHarness, url: str) -> None:
    key = await key_of(harness, "alice")

    def use() -> list[str]:
        with Nexus(url, key) as alice:
            alice.write("from a thread")
            return [entry["content"] for entry in alice.entries()]

    assert await asyncio.to_thread(use) == ["from a thread"]
    with pytest.raises(Unauthorized):
        await asyncio.to_thread(lambda: Nexus(url, key[:-1] + "x").teams())


class Flaky(httpx2.AsyncBaseTransport):
    """A server that fails some times before it answers."""

    def __init__(self, *failures: int | Exception) -> None:
        self.failures, self.seen = list(failures), list[httpx2.Request]()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.seen.append(request)
        if not self.failures:
            return httpx2.Response(200, json={"items": [], "id": "made"})
        failure = self.failures.pop(0)
        if isinstance(failure, Exception):
            raise failure
        return httpx2.Response(failure, json={"detail": "not now"}, headers={"Retry-After": "0"})


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[AsyncNexus, Flaky]]:
    monkeypatch.setattr("nexus_client.aio.random.random", lambda: -1.0)  # no pause

    def make(*failures: int | Exception, **options: Any) -> tuple[AsyncNexus, Flaky]:
        client, transport = AsyncNexus("http://nexus", "key", **options), Flaky(*failures)
        client._http = httpx2.AsyncClient(base_url="http://nexus", transport=transport)
        return client, transport

    return make


async def test_what_fails_for_a_moment_is_tried_again_with_the_same_idempotency_key(
    flaky: Callable[..., tuple[AsyncNexus, Flaky]],
) -> None:
    client, transport = flaky(503, httpx2.ConnectError("gone"), 429)
    assert await client.create_team("Ops") == "made"
    keys = {request.headers["idempotency-key"] for request in transport.seen}
    assert (len(transport.seen), len(keys)) == (4, 1)
    await client.create_team("Ops")
    assert transport.seen[-1].headers["idempotency-key"] not in keys


async def test_what_goes_on_failing_is_raised_with_its_sentence(
    flaky: Callable[..., tuple[AsyncNexus, Flaky]],
) -> None:
    client, transport = flaky(*[503] * 5)
    with pytest.raises(Unavailable, match="not now") as raised:
        await client.teams()
    assert (raised.value.status, len(transport.seen)) == (503, 4)
    client, transport = flaky(409)
    with pytest.raises(Conflict):
        await client.teams()
    assert len(transport.seen) == 1
    assert issubclass(Conflict, nexus_client.NexusError)


class LosesAnswers(httpx2.AsyncBaseTransport):
    """A network that loses the answer to the first request: Nexus has done it, and its sender doesn't know."""

    def __init__(self) -> None:
        self.network, self.seen = httpx2.AsyncHTTPTransport(), list[httpx2.Request]()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self.network.handle_async_request(request)
        self.seen.append(request)
        if len(self.seen) == 1:
            await answer.aread()
            raise httpx2.ReadError("the connection was reset")
        return answer


@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE", "POST"])
async def test_a_change_whose_answer_is_lost_takes_effect_once(harness: AppHarness, url: str, method: str) -> None:
    """Over the real wire. Without a key the second PATCH finds another version, and the second DELETE nothing."""
    key = await key_of(harness, "alice")
    async with AsyncNexus(url, key) as alice:
        entry = (await alice.write("we deploy on fridays"))["id"]
        team = await alice.create_team("Ops")
    async with AsyncNexus(url, key) as alice:
        losing = LosesAnswers()
        alice._http = httpx2.AsyncClient(base_url=url, headers=alice._http.headers, transport=losing)
        if method == "PATCH":
            assert (await alice.change(entry, version=1, tags=["ops"]))["version"] == 2
        elif method == "PUT":
            assert (await alice.share(entry, team))["shared"]["team"] == {"id": team, "name": "Ops"}
        elif method == "DELETE":
            await alice.delete_team(team)
        else:
            await alice.create_team("Dev")
    assert [request.method for request in losing.seen] == [method, method]
    keys = {request.headers["idempotency-key"] for request in losing.seen}
    assert len(keys) == 1
    async with AsyncNexus(url, key) as alice:
        assert len(await alice.teams()) == {"DELETE": 0, "POST": 2}.get(method, 1)
