"""Who asks over the API: a credential or nobody, and a tool on its own routes alone."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI, Request

from bot.web.app import web_app
from bot.web.credentials import COOKIE, COOKIE_ON_LOCALHOST, is_own_page
from bot.web.metrics import Metrics
from bot.web.principal import Bearer
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness
from tests.support.web import served_at

OF_TOOLS = ["/v1/agent/x", "/v1/query/x", "/v1/whoami/x", "/v1/health/x", "/mcp/x"]
OF_PEOPLE = ["/v1/x", "/v1/agentx", "/v1/queryx", "/mcpx", "/v1/health2", "/v1/agent"]


@pytest.fixture
async def client(harness: AppHarness) -> AsyncIterator[httpx2.AsyncClient]:
    served = web_app(harness.app, Metrics([]), {}, None)
    for path in (*OF_TOOLS, *OF_PEOPLE):
        _add_probe(served, path)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url) as client:
        yield client


def _add_probe(served: FastAPI, path: str) -> None:
    """Add a route that says who asks."""

    async def probe(principal: Bearer) -> dict[str, str | None]:
        return {"user": str(principal.user), "vendor": principal.vendor}

    for method in ("GET", "POST"):
        served.add_api_route(path, probe, methods=[method])


async def test_a_person_uses_every_route_and_a_tool_its_own_alone(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = await person(harness, "alice")
    own, tool = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    for path in (*OF_TOOLS, *OF_PEOPLE):
        answer = await client.get(path, headers=bearer(own))
        assert (answer.status_code, answer.json()) == (200, {"user": str(alice.id), "vendor": None}), path
    for path in OF_TOOLS:
        answer = await client.get(path, headers=bearer(tool))
        assert (answer.status_code, answer.json()) == (200, {"user": str(alice.id), "vendor": "claude"}), path
    for path in OF_PEOPLE:
        answer = await client.get(path, headers=bearer(tool))
        assert answer.status_code == 403, path
        assert "its person does it" in answer.json()["detail"]


async def test_whoever_brings_no_valid_credential_is_answered_alike(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key = await key_of(harness, "alice")
    wrong = [
        {},
        {"Authorization": key},
        {"Authorization": f"Basic {key}"},
        bearer("x"),
        bearer(key[:-1]),
        bearer(key.upper()),
        bearer(key + "0"),
        bearer(key.replace("nx_", "nxs_")),
        bearer(key.replace(harness.workspace().tenant, "other")),
        bearer(f"nx_{harness.workspace().tenant}_{'0' * 64}"),
    ]
    answers = [await client.get("/v1/x", headers=headers) for headers in wrong]
    several = await client.get("/v1/x", headers=[("Authorization", f"Bearer {key}"), ("Authorization", "Bearer x")])
    for answer in (*answers, several, await client.get("/v1/x", params={"access_token": key, "key": key})):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.content == answers[0].content
    assert (await client.get("/v1/x", headers=bearer(key))).status_code == 200


async def test_a_cookie_names_its_person_and_a_page_of_another_site_changes_nothing_with_it(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    cookie = await cookie_of(harness, "alice")
    sent = {"Cookie": f"{COOKIE_ON_LOCALHOST}={cookie}"}
    assert (await client.get("/v1/x", headers=sent)).status_code == 200
    here = str(client.base_url).rstrip("/")
    for own in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": here}):
        assert (await client.post("/v1/x", headers=sent | own)).status_code == 200
    foreign: list[dict[str, str]] = [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Origin": here},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ]
    for headers in foreign:
        assert (await client.post("/v1/x", headers=sent | headers)).status_code == 401, headers
    secure = {"Cookie": f"{COOKIE}={cookie}"}
    assert (await client.get("/v1/x", headers=secure)).status_code == 401, "only under https"


async def test_a_cookie_counts_by_its_exact_name_and_once(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    cookie, other = await cookie_of(harness, "alice"), await cookie_of(harness, "eve")
    name = COOKIE_ON_LOCALHOST
    good = [
        f"{name}={cookie}",
        f"a=b; {name}={cookie}",
        f"x;{name}={cookie};",
        f"{name.upper()}={other}; {name}={cookie}",
    ]
    for text in good:
        assert (await client.get("/v1/x", headers={"Cookie": text})).status_code == 200, text
    wrong: list[list[tuple[bytes, bytes]]] = [
        [(b"Cookie", f"{name}={cookie}; {name}={other}".encode())],
        [(b"Cookie", f"{name}={cookie}".encode()), (b"Cookie", f"{name}={other}".encode())],
        [(b"Cookie", f"{name.upper()}={cookie}".encode())],
        [(b"Cookie", f"={name}={cookie}".encode())],
        [(b"Cookie", f'{name}="{cookie}"'.encode())],
        [(b"Cookie", b"\xa0" + f"{name}={cookie}".encode())],
        [(b"Cookie", b"\x85" + f"{name}={cookie}".encode())],
        [(b"Cookie", name.encode() + b"\xa0=" + cookie.encode())],
    ]
    for headers in wrong:
        assert (await client.get("/v1/x", headers=headers)).status_code == 401, headers


@pytest.mark.parametrize(
    ("public_url", "origin", "own"),
    [
        ("https://nexus.example", "https://nexus.example", True),
        ("https://nexus.example", "http://nexus.example", False),
        ("https://nexus.example", "https://nexus.example:8443", False),
        ("https://nexus.example", "https://nexus.example.evil.example", False),
        ("https://nexus.example", "null", False),
        (None, "http://localhost:8080", False),
        (None, "http://nexus.example", True),
        (None, "ftp://nexus.example", False),
        (None, "//nexus.example", False),
        (None, "http://[", False),
        ("https://nexus.example", "https://nexus.example:x", False),
        ("https://nexus.example:443", "https://nexus.example", True),
    ],
)
def test_a_page_is_ours_by_its_whole_origin(public_url: str | None, origin: str, own: bool) -> None:
    headers = [(b"host", b"nexus.example"), (b"origin", origin.encode())]
    assert is_own_page(Request({"type": "http", "headers": headers}), public_url) is own
