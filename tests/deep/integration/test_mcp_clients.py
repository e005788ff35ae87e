"""MCP and the API as awkward clients ask: with a slash, with any Accept header, from a page in a browser."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.settings import Settings
from tests.support.api import bearer, key_of
from tests.support.harness import AppHarness, open_harness
from tests.support.web import served_at

LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
PAGE = "https://app.example.com"
ASKS_LEAVE = {
    "Origin": PAGE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization",
}


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update={"requests_per_minute": 100_000})) as harness:
        yield harness


async def asked(harness: AppHarness, url: str, path: str, headers: dict[str, Any]) -> httpx2.Response:
    """The answer to a list of tools; only these headers are sent, besides those that the key needs."""
    key = await key_of(harness, "alice", "claude")
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
        client.headers.clear()
        sent = {**bearer(key), "Content-Type": "application/json", **headers}
        return await client.post(path, json=LIST, headers=sent)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp//", "/mcp/?x=1"])
async def test_a_slash_at_the_end_leads_to_the_same_address(harness: AppHarness, url: str, path: str) -> None:
    answer = await asked(harness, url, path, {"Accept": "application/json, text/event-stream"})
    assert (answer.status_code, "tools" in answer.json().get("result", {})) == (200, True)


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "text/event-stream",
        "text/event-stream, application/json",
        "application/json;q=0.9, text/event-stream;q=0.8",
        "*/*",
        "application/*",
        "text/html",
        "",
        None,
    ],
)
async def test_any_accept_header_is_taken_and_none(harness: AppHarness, url: str, accept: str | None) -> None:
    answer = await asked(harness, url, "/mcp", {} if accept is None else {"Accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["result"]["tools"]


async def test_without_a_key_a_slash_changes_nothing(harness: AppHarness, url: str) -> None:
    await key_of(harness, "alice", "claude")
    async with httpx2.AsyncClient(base_url=url) as client:
        assert [(await client.post(path, json=LIST)).status_code for path in ("/mcp", "/mcp/")] == [401, 401]
        assert (await client.get("/v1/entries/")).status_code == 404


@pytest.mark.parametrize("origins", [None, "https://other.example.com", PAGE, f"http://localhost:1, {PAGE}", "*"])
async def test_a_page_asks_from_a_browser_only_where_its_site_is_named(
    harness: AppHarness, settings: Settings, origins: str | None
) -> None:
    named = settings.model_validate({**settings.model_dump(), "web_origins": origins})
    app = replace(harness.app, settings=named)
    key = await key_of(harness, "alice", "claude")
    allowed = origins is not None and ("*" in origins or PAGE in origins)
    async with served_at(web_app(app, Metrics(()), {}, None)) as url, httpx2.AsyncClient(base_url=url) as client:
        for path in ("/mcp", "/mcp/", "/v1/query", "/v1/chat/completions"):
            leave = await client.options(path, headers=ASKS_LEAVE)
            assert ("access-control-allow-origin" in leave.headers) is allowed
            assert (leave.status_code == 200) is allowed
            assert "access-control-allow-credentials" not in leave.headers
        answer = await client.post("/mcp", json=LIST, headers={**bearer(key), "Origin": PAGE})
        assert answer.headers.get("access-control-allow-origin") == ((PAGE, "*")[origins == "*"] if allowed else None)
        refused = await client.post("/mcp", json=LIST, headers={"Origin": PAGE})
        assert refused.status_code == 401
        assert ("access-control-allow-origin" in refused.headers) is allowed
