"""Every route of the web port by every kind of viewer: whoever adds a route says here who may use it."""

import inspect
import secrets
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import httpx2
import pytest
from fastapi.routing import APIRoute
from fastapi.security.base import SecurityBase

from bot.web.app import ROUTERS
from bot.web.principal import NOT_FOR_TOOLS
from composer.credentials.issuing import KeyRequest, create_key
from composer.repositories.openid_logins import LoginEntry
from composer.settings import AgentSettings, Settings
from composer.stores.statements import PostgresStatements
from composer.usage import operations
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.discord.harness import Model
from tests.support.gateway import ROUTES as GATEWAY_ROUTES
from tests.support.harness import AppHarness, open_harness

pytestmark = pytest.mark.integration

ANYBODY: Final = "anybody"
PEOPLE: Final = "people"
TOOLS: Final = "people and their tools"
ADMINS: Final = "admins"


@dataclass(frozen=True)
class Route:
    """Who may use a route. `body` and `params` are ones that fit. `of`: what of alice's the path names, by its
    parameters; nobody else may know that there is such a thing."""

    who: str
    body: dict[str, Any] | None = None
    of: dict[str, str] | None = None
    params: dict[str, str] | None = None


ENTRY: Final = {"id": "entry"}
TEAM: Final = {"id": "team"}
MEMBER: Final = {"id": "team", "user": "user"}
PROJECT: Final = {"id": "project"}
OF_PROJECT: Final = {"id": "project", "user": "user"}
CHANGE: Final = {"tags": ["x"]}
WRITE: Final = {"content": "x"}

ROUTES: Final[dict[tuple[str, str], Route]] = {
    ("GET", "/health"): Route(ANYBODY),
    ("GET", "/ready"): Route(ANYBODY),
    ("GET", "/metrics"): Route(ANYBODY),
    ("POST", "/v1/chat"): Route(PEOPLE, {"content": "hello"}),
    ("GET", "/v1/chat/turns/{turn}"): Route(PEOPLE, of={"turn": "turn"}),
    ("GET", "/v1/chat/sessions"): Route(PEOPLE),
    ("DELETE", "/v1/chat/session/{session:path}"): Route(PEOPLE, of={"session:path": "session"}),
    ("GET", "/v1/episodes"): Route(PEOPLE),
    ("POST", "/v1/query"): Route(TOOLS, {"question": "x"}),
    ("GET", "/v1/agent/search"): Route(TOOLS, params={"q": "x"}),
    ("GET", "/v1/entries"): Route(PEOPLE),
    ("POST", "/v1/entries"): Route(PEOPLE, WRITE),
    ("GET", "/v1/entries/{id}"): Route(PEOPLE, of=ENTRY),
    ("PATCH", "/v1/entries/{id}"): Route(PEOPLE, CHANGE, ENTRY),
    ("DELETE", "/v1/entries/{id}"): Route(PEOPLE, of=ENTRY),
    ("POST", "/v1/entries/{id}/restore"): Route(PEOPLE, of=ENTRY),
    ("POST", "/v1/entries/{id}/forget"): Route(PEOPLE, of=ENTRY),
    ("PUT", "/v1/entries/{id}/team"): Route(PEOPLE, {"team": "<team>"}, ENTRY),
    ("DELETE", "/v1/entries/{id}/team"): Route(PEOPLE, of=ENTRY),
    ("POST", "/v1/entries/forget"): Route(PEOPLE, {}),
    ("GET", "/v1/entries/export"): Route(PEOPLE),
    ("POST", "/v1/entries/import"): Route(PEOPLE, {"format": "nexus-entries", "version": 1, "entries": [WRITE]}),
    ("GET", "/v1/export"): Route(PEOPLE),
    ("GET", "/v1/entries/pending"): Route(PEOPLE),
    ("POST", "/v1/entries/pending/{id}/approve"): Route(PEOPLE, of=ENTRY),
    ("POST", "/v1/entries/pending/{id}/reject"): Route(PEOPLE, of=ENTRY),
    ("POST", "/v1/agent/entries"): Route(TOOLS, WRITE),
    ("GET", "/v1/agent/entries"): Route(TOOLS),
    ("GET", "/v1/agent/entries/latest"): Route(TOOLS),
    ("GET", "/v1/agent/entries/by-tag/{name:path}"): Route(TOOLS),
    ("GET", "/v1/agent/entries/{id}"): Route(TOOLS, of=ENTRY),
    ("POST", "/v1/agent/entries/{id}/forget"): Route(TOOLS, of=ENTRY),
    ("POST", "/v1/agent/forget"): Route(TOOLS, {"everything": True}),
    ("GET", "/v1/agent/team/{id}/entries"): Route(TOOLS, of=TEAM),
    ("GET", "/v1/agent/teams"): Route(TOOLS),
    ("GET", "/v1/agent/projects"): Route(TOOLS),
    ("GET", "/v1/teams"): Route(PEOPLE),
    ("POST", "/v1/teams"): Route(PEOPLE, {"name": "x"}),
    ("GET", "/v1/teams/{id}"): Route(PEOPLE, of=TEAM),
    ("PATCH", "/v1/teams/{id}"): Route(PEOPLE, {"name": "y"}, TEAM),
    ("DELETE", "/v1/teams/{id}"): Route(PEOPLE, of=TEAM),
    ("GET", "/v1/teams/{id}/invites"): Route(PEOPLE, of=TEAM),
    ("DELETE", "/v1/teams/{id}/invites/{invite}"): Route(PEOPLE, of={"id": "team", "invite": "entry"}),
    ("GET", "/v1/teams/{id}/members"): Route(PEOPLE, of=TEAM),
    ("PATCH", "/v1/teams/{id}/members/{user}"): Route(PEOPLE, {"role": "member"}, MEMBER),
    ("DELETE", "/v1/teams/{id}/members/{user}"): Route(PEOPLE, of=MEMBER),
    ("POST", "/v1/teams/{id}/leave"): Route(PEOPLE, of=TEAM),
    ("DELETE", "/v1/teams/{id}/entries/{entry}"): Route(PEOPLE, of={"id": "team", "entry": "entry"}),
    ("POST", "/v1/teams/{id}/invites"): Route(PEOPLE, {"user": "<user>"}, TEAM),
    ("POST", "/v1/teams/{id}/accept"): Route(PEOPLE, of=TEAM),
    ("POST", "/v1/teams/{id}/decline"): Route(PEOPLE, of=TEAM),
    ("GET", "/v1/invites"): Route(PEOPLE),
    ("GET", "/v1/projects"): Route(PEOPLE),
    ("POST", "/v1/projects"): Route(PEOPLE, {"name": "apollo"}),
    ("GET", "/v1/projects/{id}"): Route(PEOPLE, of=PROJECT),
    ("PATCH", "/v1/projects/{id}"): Route(PEOPLE, {"name": "ares"}, PROJECT),
    ("DELETE", "/v1/projects/{id}"): Route(PEOPLE, of=PROJECT),
    ("GET", "/v1/projects/{id}/members"): Route(PEOPLE, of=PROJECT),
    ("PUT", "/v1/projects/{id}/members/{user}"): Route(PEOPLE, {"role": "read"}, OF_PROJECT),
    ("DELETE", "/v1/projects/{id}/members/{user}"): Route(PEOPLE, of=OF_PROJECT),
    ("POST", "/mcp"): Route(TOOLS, {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}),
    ("GET", "/v1/whoami"): Route(TOOLS),
    ("GET", "/v1/keys"): Route(PEOPLE),
    ("POST", "/v1/keys"): Route(PEOPLE, {"vendor": "claude"}),
    ("DELETE", "/v1/keys/{id}"): Route(PEOPLE, of={"id": "key"}),
    ("GET", "/v1/settings"): Route(PEOPLE),
    ("PATCH", "/v1/settings"): Route(PEOPLE, {"budget": 1_000}),
    ("GET", "/v1/usage"): Route(PEOPLE),
    ("GET", "/v1/admin/usage"): Route(ADMINS),
    ("GET", "/v1/admin/users"): Route(ADMINS),
    ("GET", "/v1/admin/figures"): Route(ADMINS),
    ("GET", "/v1/health"): Route(TOOLS),
    ("GET", "/v1/sessions"): Route(PEOPLE),
    ("DELETE", "/v1/sessions/{id}"): Route(PEOPLE, of={"id": "web session"}),
    ("GET", "/v1/logins"): Route(PEOPLE),
    ("DELETE", "/v1/logins/{id}"): Route(PEOPLE, of={"id": "login"}),
}
# Statements that are run beside requests, in batches or every few seconds.
BESIDE_REQUESTS: Final = frozenset({"tables_have_statistics", "api_key_used"})
# Pages by which a browser signs in and out (tests/integration/test_login_page.py, test_openid.py).
PAGES: Final = {("GET", "/login"), ("POST", "/login"), ("GET", "/login/done"), ("POST", "/v1/logout")} | {
    ("GET", "/login/openid"),
    ("GET", "/login/openid/done"),
    ("GET", "/login/account"),
    ("POST", "/login/account/connect"),
    ("POST", "/login/account/confirm"),
    ("POST", "/login/account/disconnect"),
}
# By which AI tools sign in, and their people allow it (tests/integration/test_oauth.py, test_oauth_attacks.py).
PAGES_OF_OAUTH: Final = {
    ("GET", "/.well-known/oauth-protected-resource"),
    ("GET", "/.well-known/oauth-protected-resource/mcp"),
    ("GET", "/.well-known/oauth-authorization-server"),
    ("GET", "/.well-known/openid-configuration"),
    ("GET", "/oauth/authorize"),
    ("POST", "/oauth/consent"),
    ("POST", "/oauth/token"),
    ("POST", "/oauth/register"),
    ("POST", "/oauth/revoke"),
}


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    many = {"agents": (AgentSettings(model="gpt-4o"),), "requests_per_minute": 100_000}
    async with open_harness(settings.model_copy(update=many), model=Model()) as harness:
        yield harness


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that are run, in their order."""
    names: list[str] = []
    for method in ("fetch", "fetch_one", "fetch_value", "execute"):
        doing = getattr(PostgresStatements, method)

        async def noted(self: object, *args: object, _doing: Any = doing, **options: object) -> object:
            names.append(str(args[0]))
            return await _doing(self, *args, **options)

        monkeypatch.setattr(PostgresStatements, method, noted)
    return names


def test_every_route_says_who_may_use_it() -> None:
    served = {
        (method, route.path)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    assert served - PAGES - PAGES_OF_OAUTH - set(GATEWAY_ROUTES) == set(ROUTES), (
        "a new route is classified in ROUTES, and one that went is taken out"
    )


def test_no_request_waits_for_a_thread() -> None:
    waiting = [route.dependant for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    while waiting:
        each = waiting.pop()
        waiting += each.dependencies
        security = isinstance(each.call, SecurityBase)
        assert each.call is None or security or inspect.iscoroutinefunction(each.call), each.call


async def test_who_brings_no_valid_credential_gets_one_and_the_same_answer(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    viewers = {"none": {}, "wrong": bearer(f"nx_{harness.workspace().tenant}_{'0' * 64}")}
    for vendor in (None, "claude"):
        viewers[f"revoked {vendor}"] = bearer(await _revoked_key(harness, "alice", vendor))
        viewers[f"expired {vendor}"] = bearer(await _expired_key(harness, "alice", vendor))
    harness.clock.tick(timedelta(hours=2).total_seconds())
    await key_of(harness, "bob", "claude")  # so that MCP is on
    answers = set()
    for (method, path), route in ROUTES.items():
        for name, headers in viewers.items():
            answer = await _ask(client, method, path, route, {}, headers)
            if route.who == ANYBODY:
                assert answer.status_code == 200, (path, name)
            else:
                assert answer.status_code == 401, (method, path, name)
                answers.add(answer.content)
    assert len(answers) == 1


async def test_tools_use_their_own_routes_alone(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    tool, own = bearer(await key_of(harness, "alice", "claude")), bearer(await key_of(harness, "alice"))
    for (method, path), route in ROUTES.items():
        by_tool = await _ask(client, method, path, route, {}, tool)
        refused = by_tool.status_code == 403 and by_tool.json()["detail"] == NOT_FOR_TOOLS
        assert refused == (route.who in (PEOPLE, ADMINS)), (method, path, by_tool.text)
        by_person = await _ask(client, method, path, route, {}, own)
        if route.who == ADMINS:
            assert (by_person.status_code, "Only an admin" in by_person.json()["detail"]) == (403, True), path
            continue
        assert by_person.status_code in (200, 201, 204, 404, 409), (method, path, by_person.text)


async def test_what_is_anothers_looks_like_nothing_to_everybody_else(
    harness: AppHarness, client: httpx2.AsyncClient, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor by the time that it takes: the database is asked the same."""
    monkeypatch.setattr(operations, "METER_FLUSH_SECONDS", 10_000)  # what was counted is stored at the end
    alice = bearer(await key_of(harness, "alice"))
    things = await _things(harness, client, alice)
    admin = await person(harness, "root")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(admin.id, True)
    others = {
        "another person": await key_of(harness, "bob"),
        "another person's tool": await key_of(harness, "bob", "claude"),
        "a person of another tenant": await key_of(harness, "alice", workspace="umbrella"),
        "an admin": await key_of(harness, "root"),
    }
    unknown = {name: str(uuid.uuid4()) for name in things}
    for (method, path), route in ROUTES.items():
        for name, key in others.items():
            if route.of is None or (route.who == PEOPLE and "tool" in name):
                continue
            await _ask(client, method, path, route, unknown, bearer(key))  # what is read once in a while is read now
            statements.clear()
            nothing = await _ask(client, method, path, route, unknown, bearer(key))
            asked_of_nothing = [each for each in statements if each not in BESIDE_REQUESTS]
            statements.clear()
            hers = await _ask(client, method, path, route, things, bearer(key))
            assert [each for each in statements if each not in BESIDE_REQUESTS] == asked_of_nothing, (
                method,
                path,
                name,
            )
            assert hers.status_code == 404, (method, path, name, hers.text)
            assert _without(hers, things) == _without(nothing, unknown), (method, path, name)
    assert await _things_as_seen(client, alice, things) == ["of alice", "Ops"], "nothing of hers has changed"


def _without(answer: httpx2.Response, asked: dict[str, str]) -> tuple[int, str, list[str]]:
    """All of an answer, but what was asked for, which a sentence may repeat, and its length and time."""
    text = answer.text
    for value in asked.values():
        text = text.replace(value, "…")
    return answer.status_code, text, sorted(set(answer.headers) - {"date", "content-length"})


async def _ask(
    client: httpx2.AsyncClient,
    method: str,
    path: str,
    route: Route,
    things: dict[str, str],
    headers: dict[str, str],
) -> httpx2.Response:
    """Ask a route for some things, or for ones that nobody has."""
    for parameter, thing in (route.of or {"name": "x"}).items():
        path = path.replace(f"{{{parameter}}}", things.get(thing) or str(uuid.uuid4()))
    body = route.body
    if body is not None:
        made = {f"<{name}>": value for name, value in things.items()}
        body = {name: made.get(v, str(uuid.uuid4())) if str(v).startswith("<") else v for name, v in body.items()}
    return await client.request(method, path, json=body, params=route.params, headers=headers)


async def _things(harness: AppHarness, client: httpx2.AsyncClient, alice: dict[str, str]) -> dict[str, str]:
    """The ids of what alice has: an entry that she shares with her team, a project, a turn, a session."""
    entry = (await client.post("/v1/entries", json={"content": "of alice"}, headers=alice)).json()["id"]
    team = (await client.post("/v1/teams", json={"name": "Ops"}, headers=alice)).json()["id"]
    await client.put(f"/v1/entries/{entry}/team", json={"team": team}, headers=alice)
    project = (await client.post("/v1/projects", json={"name": "apollo"}, headers=alice)).json()["id"]
    said = {"content": "hello", "session": "plans"}
    turn = (await client.post("/v1/chat", json=said, headers=alice)).json()
    user = str((await person(harness, "alice")).id)
    await cookie_of(harness, "alice")
    key = (await client.get("/v1/keys", headers=alice)).json()["items"][0]["id"]
    browser = (await client.get("/v1/sessions", headers=alice)).json()["items"][0]["id"]
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        login = LoginEntry(uuid.uuid4(), uuid.UUID(user), "https://login.example", "alice", harness.clock.now(), None)
        await tx.openid_logins.connect(login, b"digest")
    things = {"entry": entry, "team": team, "turn": turn["turn"], "session": "plans", "user": user}
    things["project"] = project
    return {**things, "key": key, "web session": browser, "login": str(login.id)}


async def _things_as_seen(client: httpx2.AsyncClient, alice: dict[str, str], things: dict[str, str]) -> list[str]:
    entry = (await client.get(f"/v1/entries/{things['entry']}", headers=alice)).json()
    return [entry["content"], entry["shared"]["team"]["name"]]


async def _revoked_key(harness: AppHarness, name: str, vendor: str | None) -> str:
    text = await _new_key(harness, name, KeyRequest(vendor, "revoked"))
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        keys = await tx.api_keys.of([(await person(harness, name)).id])
        await tx.api_keys.revoke([key.id for key in keys if key.name == "revoked"], harness.clock.now())
    return text


async def _expired_key(harness: AppHarness, name: str, vendor: str | None) -> str:
    await person(harness, name)
    until = harness.clock.now() + timedelta(hours=1)
    return await _new_key(harness, name, KeyRequest(vendor, "expired", expires_at=until))


async def _new_key(harness: AppHarness, name: str, request: KeyRequest) -> str:
    found, here = await person(harness, name), harness.workspace()
    async with harness.app.database.transaction(here.tenant_id) as tx:
        made = await create_key(
            tx, here.tenant, found, request, secrets.token_bytes(32), harness.clock.now(), by=found.id
        )
    return made.text
