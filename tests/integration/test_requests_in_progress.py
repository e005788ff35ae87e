"""Requests in progress, by whichever keys and tools: nobody's keep others from being served."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import SecretStr

from bot.web import app as web
from bot.web.app import web_app
from bot.web.metrics import Metrics
from bot.web.principal import Bearer
from bot.web.state import WebState
from composer.settings import Settings
from composer.settings.server_urls import ServerUrl
from composer.tasks.shares import Places
from tests.support.api import bearer, key_of
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import until
from tests.support.web import served_at

LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
MACHINE_KEY = "nx_machine_" + "m" * 40


@dataclass
class Office:
    """Nexus with places for eight requests: four of one person, six of one tenant."""

    client: httpx2.AsyncClient
    places: Places
    state: WebState
    going_on: asyncio.Event
    begun: list[asyncio.Task[httpx2.Response]] = field(default_factory=list)

    def begin(self, path: str, key: str) -> None:
        self.begun.append(asyncio.create_task(self.client.get(path, headers=bearer(key))))

    async def whoami(self, key: str) -> httpx2.Response:
        return await self.client.get("/v1/whoami", headers=bearer(key))


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    given = {
        "requests_per_minute": 10_000,
        "gateway_base_url": ServerUrl("http://127.0.0.1:1/v1"),
        "gateway_keys": {"machine": SecretStr(MACHINE_KEY)},
        "gateway_tenant": "acme",
    }
    async with open_harness(settings.model_copy(update=given)) as opened:
        yield opened


@pytest.fixture
async def office(harness: AppHarness, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Office]:
    monkeypatch.setattr(web, "REQUESTS_AT_ONCE", 8)
    monkeypatch.setattr(web, "PLACE_SECONDS", 0.1)
    served, going_on = web_app(harness.app, Metrics(()), {}, None), asyncio.Event()
    _add_slow_routes(served, going_on)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        made = Office(client, served.state.nexus.places, served.state.nexus, going_on)
        try:
            yield made
        finally:
            going_on.set()
            await asyncio.gather(*made.begun, return_exceptions=True)


def _add_slow_routes(served: FastAPI, going_on: asyncio.Event) -> None:
    @served.get("/v1/agent/waits", include_in_schema=False)
    async def waits(_: Bearer) -> None:
        await going_on.wait()

    @served.get("/v1/agent/streams", include_in_schema=False)
    async def streams(_: Bearer) -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"first"
            await going_on.wait()

        return StreamingResponse(parts())


@pytest.mark.parametrize("path", ["/v1/agent/waits", "/v1/agent/streams"])
async def test_a_person_has_a_share_with_all_keys_and_tools_and_others_are_served(
    harness: AppHarness, office: Office, path: str
) -> None:
    keys = [await key_of(harness, "alice", vendor) for vendor in (None, None, "claude", "cursor")]
    others = [await key_of(harness, "bob"), await key_of(harness, "carol", workspace="umbrella")]
    for key in keys * 5:
        office.begin(path, key)
    await until(lambda: office.places.taken == 4)
    for key in keys:
        refused = await office.whoami(key)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert "try again" in refused.json()["detail"]
    for key in others:
        assert (await office.whoami(key)).status_code == 200
    await until(lambda: office.places.taken == 4 and sum(each.done() for each in office.begun) == 16)
    office.going_on.set()
    answers = await asyncio.gather(*office.begun)
    assert [answer.status_code for answer in answers].count(200) == 4
    assert (await office.whoami(keys[0])).status_code == 200
    await until(lambda: office.places.taken == 0)


async def test_a_tenant_has_a_share_and_another_is_served(harness: AppHarness, office: Office) -> None:
    for name in ("alice", "bob", "dave"):
        key = await key_of(harness, name)
        for _ in range(4):
            office.begin("/v1/agent/waits", key)
    await until(lambda: office.places.taken == 6)
    assert (await office.whoami(await key_of(harness, "erin"))).status_code == 503
    assert (await office.whoami(await key_of(harness, "carol", workspace="umbrella"))).status_code == 200


async def test_who_leaves_gives_the_place_back(harness: AppHarness, office: Office) -> None:
    alice = await key_of(harness, "alice")
    for _ in range(3):
        async with office.client.stream("GET", "/v1/agent/streams", headers=bearer(alice)) as answer:
            assert answer.status_code == 200
            assert office.places.taken == 1
        await until(lambda: office.places.taken == 0)


async def test_wrong_keys_and_who_has_none_take_no_place(harness: AppHarness, office: Office) -> None:
    for key in ("nx_wrong", "nx_wrong_too"):
        assert (await office.client.get("/v1/agent/waits", headers=bearer(key))).status_code == 401
    assert (await office.client.get("/v1/agent/waits")).status_code == 401
    await until(lambda: office.places.taken == 0)


async def test_tools_over_mcp_share_with_their_person(harness: AppHarness, office: Office) -> None:
    alice, tool = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    other = await key_of(harness, "bob", "claude")

    async def listed(key: str) -> int:
        return (await office.client.post("/mcp", json=LIST_TOOLS, headers=bearer(key))).status_code

    assert await listed(tool) == 200
    for _ in range(4):
        office.begin("/v1/agent/waits", alice)
    await until(lambda: office.places.taken == 4)
    assert (await listed(tool), await listed(other)) == (503, 200)
    await until(lambda: office.places.taken == 4)


async def test_the_gateway_shares_with_the_person_too(harness: AppHarness, office: Office) -> None:
    alice, bob = await key_of(harness, "alice"), await key_of(harness, "bob")
    for _ in range(4):
        office.begin("/v1/agent/waits", alice)
    await until(lambda: office.places.taken == 4)
    refused = await office.client.get("/v1/models", headers=bearer(alice))
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert "try again" in refused.json()["error"]["message"]
    assert (await office.client.get("/v1/models", headers=bearer(bob))).status_code == 502, "its model server is away"
    machine = await office.client.get("/v1/models", headers=bearer(MACHINE_KEY))
    assert machine.status_code == 502, "a key without an owner has a share of its own"
    await until(lambda: office.places.taken == 4)


async def test_what_only_works_takes_turns_by_person_and_what_waits_for_a_model_is_not_among_it(
    harness: AppHarness, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred searches of one person take turns with everybody's, for whom a place for work is always free."""
    monkeypatch.setattr(office.state.fair_use, "admit", _nothing_to_count)
    alice, bob = await key_of(harness, "alice"), await key_of(harness, "bob")
    carol = await key_of(harness, "carol", workspace="umbrella")
    for _ in range(4):
        office.begin("/v1/agent/waits", alice)
    await until(lambda: office.state.work.taken == 4)
    for key in (bob, carol):
        assert (await office.whoami(key)).status_code == 200
    await until(lambda: office.state.work.taken == 4)
    chat = {"content": "hello", "session": "s"}
    said = await office.client.post("/v1/chat", json=chat, headers=bearer(bob))
    assert said.status_code == 200
    office.going_on.set()
    await asyncio.gather(*office.begun)
    await until(lambda: office.state.work.taken == 0)


async def _nothing_to_count(*_: object, **__: object) -> None:
    """Every request is admitted."""
