"""Signing in by a link in a browser: looking uses nothing up, the button does, once, and from our own page alone."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from bot.web.app import web_app
from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.metrics import Metrics
from composer.people.credentials.sign_in import make_login_link
from composer.settings.server_urls import ServerUrl
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness
from tests.support.web import served_at

NOBODY = ServerUrl("redis://127.0.0.1:1/0")
OWN = {"Sec-Fetch-Site": "same-origin"}


@asynccontextmanager
async def served_with(
    harness: AppHarness, redis_url: ServerUrl | None = None, **settings: Any
) -> AsyncIterator[httpx2.AsyncClient]:
    changed = harness.app.settings.model_copy(update=settings)
    app = replace(harness.app, settings=changed, redis_url=redis_url or harness.app.redis_url)
    served = web_app(app, Metrics([]), {}, None)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url) as client:
        yield client


@pytest.fixture
async def client(harness: AppHarness) -> AsyncIterator[httpx2.AsyncClient]:
    async with served_with(harness) as client:
        yield client


async def link_of(harness: AppHarness, name: str) -> str:
    found, here = await person(harness, name), harness.workspace()
    async with harness.app.database.transaction(here.tenant_id) as tx:
        return await make_login_link(
            tx, here.tenant, found.id, secrets.token_bytes(32), harness.clock.now(), by=found.id
        )


async def sessions(harness: AppHarness, name: str) -> int:
    found = await person(harness, name)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        return len(await tx.web_sessions.of([found.id], harness.clock.now()))


async def test_looking_at_a_link_uses_nothing_up_and_its_button_signs_in_once(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    code = await link_of(harness, "alice")
    for _ in range(2):
        await client.head("/login", params={"code": code})
        shown = await client.get("/login", params={"code": code})
        assert shown.status_code == 200
    assert f"as alice of {harness.workspace().tenant}" in shown.text
    assert f'value="{code}"' in shown.text
    assert await sessions(harness, "alice") == 0
    used = await client.post("/login", data={"code": code}, headers=OWN)
    assert (used.status_code, used.headers["location"]) == (303, "/")
    assert await sessions(harness, "alice") == 1
    done = await client.get("/login/done")
    assert (done.status_code, code in done.text) == (200, False)
    answer = await client.post("/v1/logout", headers=OWN)
    assert answer.status_code == 204, "with the cookie that it got"
    again = await client.post("/login", data={"code": code}, headers=OWN)
    assert (again.status_code, "set-cookie" in again.headers) == (404, False)


async def test_a_cookie_is_for_this_site_alone_and_for_30_days(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    used = await client.post("/login", data={"code": await link_of(harness, "alice")}, headers=OWN)
    name, _, rest = used.headers["set-cookie"].partition("=")
    assert name == COOKIE_ON_LOCALHOST
    assert {part.strip().lower() for part in rest.split(";")[1:]} == {
        "httponly",
        "max-age=2592000",
        "path=/",
        "samesite=lax",
    }


async def test_by_https_the_cookie_is_bound_to_the_host(harness: AppHarness) -> None:
    async with served_with(harness, public_url="https://nexus.example.com") as client:
        used = await client.post("/login", data={"code": await link_of(harness, "alice")}, headers=OWN)
    cookie = used.headers["set-cookie"]
    assert cookie.startswith("__Host-nexus=nxs_")
    assert "; Secure" in cookie
    assert "; Path=/;" in cookie
    assert "domain" not in cookie.lower()


async def test_wrong_used_and_old_links_are_answered_alike_by_one_sentence(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    used, tenant = await link_of(harness, "alice"), harness.workspace().tenant
    await client.post("/login", data={"code": used}, headers=OWN)
    late = await link_of(harness, "alice")
    harness.clock.tick(301)
    replaced, valid = await link_of(harness, "alice"), await link_of(harness, "alice")
    wrong = [
        used,
        late,
        replaced,
        valid[:-1],
        f"nxl_{tenant}_{'0' * 64}",
        f"nxl_none_{'0' * 64}",
        "x" * 5_000,
        "\ud7ff<",
    ]
    first = await client.get("/login", params={"code": "wrong"})
    assert first.status_code == 404
    assert "This link was used already" in first.text
    for code in wrong:
        shown = await client.get("/login", params={"code": code})
        sent = await client.post("/login", data={"code": code}, headers=OWN)
        assert (shown.status_code, shown.content) == (404, first.content), code
        assert (sent.status_code, sent.content) == (404, first.content), code
        assert "alice" not in shown.text
    assert (await client.get("/login")).status_code == 404
    empty: list[dict[str, str] | None] = [None, {"other": "x"}]
    for form in empty:
        assert (await client.post("/login", headers=OWN, data=form)).status_code == 404
    assert (await client.get("/login", params={"code": valid})).status_code == 200, "and the valid one is still valid"


async def test_a_page_of_another_site_signs_nobody_in(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    code, here = await link_of(harness, "alice"), str(client.base_url).rstrip("/")
    foreign: list[dict[str, str]] = [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Origin": here},
        {"Sec-Fetch-Site": "same-site", "Origin": here},
    ]
    for headers in foreign:
        refused = await client.post("/login", data={"code": code}, headers=headers)
        assert (refused.status_code, "set-cookie" in refused.headers) == (403, False), headers
    assert (await client.post("/login", data={"code": code}, headers={"Origin": here})).status_code == 303


async def test_names_and_codes_stay_text_on_the_page_and_its_address_goes_nowhere(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    code = await link_of(harness, "<b>eve</b>")
    shown = await client.get("/login", params={"code": code})
    assert "<b>" not in shown.text
    assert "&lt;b&gt;eve" in shown.text
    assert "<script" not in shown.text
    assert "http" not in shown.text
    assert shown.headers["referrer-policy"] == "same-origin"
    policy = shown.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "form-action 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "style-src 'self'" in policy
    styles = [part.partition('"')[0] for part in shown.text.split('rel="stylesheet" href="')[1:]]
    assert [(await client.get(style)).status_code for style in styles] == [200, 200], "it looks as the pages do"
    assert shown.headers["cache-control"] == "no-store"


async def test_links_are_limited_by_address(harness: AppHarness) -> None:
    async with served_with(harness, requests_per_minute=3, redis_url=NOBODY) as client:
        answers = [await client.get("/login", params={"code": "x"})]
        answers += [await client.post("/login", data={"code": "x"}, headers=OWN) for _ in range(2)]
    assert [each.status_code for each in answers] == [404, 429, 429], "a process that counts alone gives half"


async def test_signing_out_ends_that_web_session_alone(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    one, other = await cookie_of(harness, "alice"), await cookie_of(harness, "alice")
    key = await key_of(harness, "alice")

    async def out(**headers: str) -> int:
        return (await client.post("/v1/logout", headers=headers)).status_code

    assert await out(**bearer(key)) == 403
    assert await out(Cookie=f"{COOKIE_ON_LOCALHOST}={one}") == 401, "a page of another site sends nobody out"
    assert await sessions(harness, "alice") == 2
    assert await out(Cookie=f"{COOKIE_ON_LOCALHOST}={one}", **OWN) == 204
    assert await out(Cookie=f"{COOKIE_ON_LOCALHOST}={one}", **OWN) == 401
    assert await sessions(harness, "alice") == 1
    assert await out(Cookie=f"{COOKIE_ON_LOCALHOST}={other}", **OWN) == 204
