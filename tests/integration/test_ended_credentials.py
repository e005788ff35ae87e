"""Attacks by being slow: a credential ends while the request that names it is on its way. README: whoever leaves loses
all keys, web sessions and logins at once; a key that has ended opens nothing (docs/keys.md)."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
import pytest
from structlog.testing import capture_logs

from bot.web.gateway import gateway
from composer.errors import Refused
from composer.people.credentials import openid
from composer.people.credentials.leaving import end_access
from composer.people.credentials.openid import OpenIdAccount
from composer.people.credentials.resolver import Resolver
from composer.repositories.api_keys import ApiKeys
from composer.settings import Settings
from tests.integration.test_removed_members import begun
from tests.support.api import bearer, cookie_of, key_of
from tests.support.browser import OWN
from tests.support.gateway import ROUTES, gateway_stage
from tests.support.harness import AppHarness
from tests.support.oauth import fields
from tests.support.oauth_stage import ACCEPT, PUBLIC, SESSION, Nexus, address_of, open_nexus
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("tools_made_once")

WRITE = {"name": "write_entry", "arguments": {"content": "zqlate"}}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": WRITE}
End = Callable[[], Awaitable[object]]


@pytest.fixture
async def nexus(settings: Settings, tmp_path: Path) -> AsyncIterator[Nexus]:
    async with open_nexus(settings, tmp_path) as nexus:
        yield nexus


async def leave(harness: AppHarness, name: str = "alice") -> int:
    return await end_access(harness.app.database, harness.workspace(), name)


async def slowly(
    http: httpx2.AsyncClient, method: str, path: str, body: bytes, end: End, **headers: str
) -> httpx2.Response:
    """The answer to a request whose credential ends between two pieces of its body, after the server had time to look
    at it: another request, which came later, was answered meanwhile."""

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield body[:1]
        assert (await http.get("/v1/whoami", headers=headers)).status_code in (200, 401)
        await end()
        yield body[1:]

    sent = {**headers, "Content-Length": str(len(body))}
    return await http.request(method, path, content=pieces(), headers=sent)


@pytest.fixture
async def http(nexus: Nexus) -> AsyncIterator[httpx2.AsyncClient]:
    async with nexus.http(base_url=PUBLIC) as http:
        yield http


async def entries_of(nexus: Nexus, name: str = "alice") -> list[str]:
    async with nexus.http(headers=bearer(await key_of(nexus.harness, name))) as http:
        return [entry["content"] for entry in (await http.get(f"{PUBLIC}/v1/entries")).json()["items"]]


async def test_a_tools_key_that_ends_before_its_call_is_whole_calls_nothing(
    nexus: Nexus, http: httpx2.AsyncClient
) -> None:
    headers = ACCEPT | bearer(await key_of(nexus.harness, "alice", "claude")) | {"Content-Type": "application/json"}
    body = json.dumps(CALL).encode()
    answer = await slowly(http, "POST", "/mcp", body, lambda: leave(nexus.harness), **headers)
    assert answer.status_code == 401, answer.text
    assert await entries_of(nexus) == []


@pytest.mark.parametrize("path", ["/v1/entries", "/v1/export", "/v1/keys"])
async def test_a_key_that_ends_before_its_request_is_whole_reads_nothing(
    nexus: Nexus, http: httpx2.AsyncClient, path: str
) -> None:
    headers = bearer(await key_of(nexus.harness, "alice")) | {"Idempotency-Key": "x"}
    answer = await slowly(http, "GET", path, b"{}", lambda: leave(nexus.harness), **headers)
    assert answer.status_code == 401, answer.text


async def test_a_key_that_ends_before_its_request_is_whole_asks_no_model(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "STREAM_LOOK_SECONDS", 0.0)
    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url, timeout=60) as http:
        headers = bearer(await key_of(stage.harness, "alice", "claude")) | {"Content-Type": "application/json"}
        body = json.dumps(ROUTES["POST", "/v1/chat/completions"]).encode()
        answer = await slowly(http, "POST", "/v1/chat/completions", body, lambda: leave(stage.harness), **headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
        assert stage.upstream.requests == []


async def test_who_goes_before_their_request_is_whole_is_no_failure_of_ours(nexus: Nexus) -> None:
    key, place = await key_of(nexus.harness, "alice", "claude"), urlsplit(nexus.url)
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Length: 9\r\n\r\n"
    with capture_logs() as logs:
        _, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(f"{head}{{".encode())
        await writer.drain()
        writer.close()
        await until(lambda: any(line["event"] == "web.request" for line in logs))
    assert "web.failed" not in {line["event"] for line in logs}


async def test_a_browser_that_is_signed_out_before_its_form_is_whole_allows_no_app(
    nexus: Nexus, http: httpx2.AsyncClient
) -> None:
    browser, client = await nexus.signed_in(), (await nexus.registered())["client_id"]
    form = fields(await browser.get(address_of(client))) | {"vendor": "claude", "decision": "allow"}
    headers = OWN | {"Cookie": f"{SESSION}={browser.cookies[SESSION]}"}
    headers |= {"Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode(form).encode()
    answer = await slowly(http, "POST", "/oauth/consent", body, lambda: leave(nexus.harness), **headers)
    assert answer.status_code == 403, answer.text
    assert "code=" not in answer.text


# --- between the look at a credential and the transaction of its request ----------------------------------------------


@pytest.fixture
def ending(nexus: Nexus, monkeypatch: pytest.MonkeyPatch) -> list[End]:
    """What happens once, right after the next credential was looked at."""
    ends: list[End] = []
    resolve = Resolver.resolve

    async def resolved(self: Resolver, *args: Any, **options: Any) -> Any:
        found = await resolve(self, *args, **options)
        if found is not None and ends:
            await ends.pop()()
        return found

    monkeypatch.setattr(Resolver, "resolve", resolved)
    return ends


async def credentials_of(nexus: Nexus) -> int:
    return await leave(nexus.harness)  # it counts what it ends


async def test_leaving_waits_for_a_key_that_is_being_made_and_ends_it(
    nexus: Nexus, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, insert, leaving = await key_of(nexus.harness, "alice"), ApiKeys.insert, list[asyncio.Task[Any]]()

    async def inserted(self: ApiKeys, *args: Any) -> None:
        leaving.append(await begun(settings, leave(nexus.harness)))
        assert not leaving[0].done()
        await insert(self, *args)

    monkeypatch.setattr(ApiKeys, "insert", inserted)
    async with nexus.http(headers=bearer(key)) as http:
        made = await http.post(f"{PUBLIC}/v1/keys", json={})
    assert await leaving[0] == 2
    assert await nexus.harness.app.credentials.resolve(made.json()["key"]) is None


async def test_who_leaves_while_connecting_an_account_has_none_connected(nexus: Nexus) -> None:
    app, cookie = nexus.harness.app, await cookie_of(nexus.harness, "alice")
    principal = await app.credentials.resolve(None, cookie)
    assert principal is not None
    await leave(nexus.harness)
    with pytest.raises(Refused):
        async with app.database.transaction(principal.tenant_id) as tx:
            await openid.connect(tx, principal, OpenIdAccount("https://id.example", "1", "x"), app.clock.now())


async def test_who_leaves_while_making_a_key_has_none(nexus: Nexus, ending: list[End]) -> None:
    key = await key_of(nexus.harness, "alice")
    ending.append(lambda: leave(nexus.harness))
    async with nexus.http(headers=bearer(key)) as http:
        answer = await http.post(f"{PUBLIC}/v1/keys", json={})
    assert answer.status_code in (401, 403), answer.text
    assert await credentials_of(nexus) == 0


async def test_who_leaves_while_making_a_key_in_a_browser_has_none(nexus: Nexus, ending: list[End]) -> None:
    cookie = await cookie_of(nexus.harness, "alice")
    ending.append(lambda: leave(nexus.harness))
    async with nexus.http(headers=OWN | {"Cookie": f"{SESSION}={cookie}"}) as http:
        answer = await http.post(f"{PUBLIC}/v1/keys", json={})
    assert answer.status_code in (401, 403), answer.text
    assert await credentials_of(nexus) == 0


async def test_who_leaves_while_allowing_an_app_has_no_app(nexus: Nexus, ending: list[End]) -> None:
    browser, client = await nexus.signed_in(), (await nexus.registered())["client_id"]
    form = fields(await browser.get(address_of(client))) | {"vendor": "claude", "decision": "allow"}
    ending.append(lambda: leave(nexus.harness))
    answer = await browser.press("/oauth/consent", **form)
    assert "code=" not in answer.text
    assert await credentials_of(nexus) == 0


async def test_who_forgets_everything_while_making_a_key_has_none(nexus: Nexus, ending: list[End]) -> None:
    key = await key_of(nexus.harness, "alice")
    ending.append(lambda: nexus.harness.command("alice", "/nexus forget everything --yes", dm="nexus"))
    async with nexus.http(headers=bearer(key)) as http:
        answer = await http.post(f"{PUBLIC}/v1/keys", json={})
    assert answer.status_code in (401, 403, 404), answer.text
    assert await credentials_of(nexus) == 0
