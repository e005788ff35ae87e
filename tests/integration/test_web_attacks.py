"""Attacks on the web port where two things meet that were tested apart: a browser's cookie and the gateway, a write and
the erasure of its person, a client that leaves and the plan that counts it."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from composer.settings import Settings
from tests.support.api import cookie_of
from tests.support.browser import OWN
from tests.support.gateway import MODEL, GatewayStage, gateway_stage

pytestmark = pytest.mark.integration

HI = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
OFF = {"X-Nexus-Memory": "off"}


@pytest.fixture
async def stage(settings: Settings) -> AsyncIterator[GatewayStage]:
    async with gateway_stage(settings) as stage:
        yield stage


async def browsers(stage: GatewayStage, *names: str) -> list[dict[str, str]]:
    """What the browsers of people send who are signed in."""
    return [OWN | {"Cookie": f"nexus={await cookie_of(stage.harness, name)}"} for name in names]


# docs/gateway.md: an Idempotency-Key goes on as a digest of it and of whose it is, since everybody shares an account at
# the server. Of browsers no key was in it, so the server would have answered bob as it had answered alice.
@pytest.mark.parametrize("more", [{}, {"Authorization": "Bearer x"}])
async def test_a_name_of_a_repeat_is_that_of_one_browser_alone(stage: GatewayStage, more: dict[str, str]) -> None:
    alice, bob = await browsers(stage, "alice", "bob")
    async with httpx2.AsyncClient(base_url=stage.url) as http:
        for headers in (alice, alice, bob):
            sent = {**headers, **more, **OFF, "Idempotency-Key": "one"}
            assert (await http.post("/v1/chat/completions", json=HI, headers=sent)).status_code == 200
    first, again, others = (sent.headers["idempotency-key"] for sent in stage.upstream.requests)
    assert first == again
    assert others not in (first, "one")


# docs/gateway.md: the key of Nexus, and cookies, never go on; a key is looked for in every header that does.
async def test_no_cookie_crosses_over_in_another_header(stage: GatewayStage) -> None:
    [alice] = await browsers(stage, "alice")
    text = alice["Cookie"].removeprefix("nexus=")
    async with httpx2.AsyncClient(base_url=stage.url) as http:
        sent = {**alice, **OFF, "User-Agent": f"tool {text}", "X-Title": text}
        assert (await http.post("/v1/chat/completions", json=HI, headers=sent)).status_code == 200
    assert text not in str(stage.upstream.requests[0].headers)
