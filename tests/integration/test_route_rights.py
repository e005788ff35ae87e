"""Every route of the web port by every kind of viewer, by its path and by what the document says that it takes."""

import inspect
import re
import secrets
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import httpx2
import pytest
from fastapi.openapi.utils import get_openapi
from fastapi.security.base import SecurityBase
from starlette.routing import Match
from starlette.types import Scope

from bot.slack.signed_http import SLACK_EVENTS_PATH
from bot.web import app, pages
from bot.web.principal import NOT_FOR_TOOLS
from bot.web.routes.billing import STRIPE_EVENTS_PATH
from composer.people.credentials.issuing import KeyRequest, create_key
from composer.repositories.openid_logins import LoginEntry
from composer.settings import AgentSettings, Settings
from composer.stores.database.statements import PostgresStatements
from composer.usage import operations
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.discord.harness import Model
from tests.support.gateway import ROUTES as GATEWAY_ROUTES
from tests.support.harness import AppHarness, open_harness

ANYBODY: Final = "anybody"
PEOPLE: Final = "people"
TOOLS: Final = "people and their tools"
ADMINS: Final = "admins"
SIGNED_IN: Final = "people in a browser"  # tests/deep/integration/test_pages_rooms.py


@dataclass(frozen=True)
class Route:
    """Who may use a route. `body` and `params` are ones that fit. `of`: what of alice's the path names, by its
    parameters; nobody else may know that there is such a thing."""

    who: str
    body: dict[str, Any] | None = None
    of: dict[str, str] | None = None
    params: dict[str, str] | None = None


# Who may use the routes below a path; all others are for people alone.
WHO: Final = {
    "/health/": ANYBODY,
    "/ready/": ANYBODY,
    "/metrics/": ANYBODY,
    "/v1/agent/": TOOLS,
    "/v1/query/": TOOLS,
    "/v1/whoami/": TOOLS,
    "/v1/health/": TOOLS,
    "/mcp/": TOOLS,
    "/v1/admin/": ADMINS,
    "/v1/billing/": ADMINS,
    "/v1/rooms/": SIGNED_IN,
    "/v1/settings/rooms/": SIGNED_IN,
    "/v1/waiting/": SIGNED_IN,
}
# What an `{id}` below a path is of. Other parameters are named by what they are of.
IDS: Final = {
    "/v1/entries/": "entry",
    "/v1/agent/entries/": "entry",
    "/v1/memory/": "entry",
    "/v1/teams/": "team",
    "/v1/agent/team/": "team",
    "/v1/projects/": "project",
    "/v1/rooms/": "room",
    "/v1/keys/": "key",
    "/v1/webhooks/": "webhook",
    "/v1/sessions/": "web session",
    "/v1/logins/": "login",
    "/v1/admin/invitations/": "invitation",
    "/v1/admin/imports/": "import",
    "/v1/admin/projects/": "project",
    "/v1/admin/teams/": "team",
    "/v1/waiting/": "landmark",
    "/v1/chat/sessions/": "conversation",
    "/v1/reminders/": "reminder",
}
NAMED: Final = {"entry", "user", "turn", "session", "invite", "landmark"}
NOBODYS: Final = {"name"}  # a tag
# Bodies that fit where one of what the document requires does not.
BODIES: Final[dict[str, dict[str, Any]]] = {
    "/v1/webhooks": {"url": "https://hook.example/"},
    "/v1/agent/forget": {"everything": True},
    "/v1/entries/bulk": {"ids": [str(uuid.UUID(int=7))], "act": "trash"},
    "/v1/admin/users/{user}": {"admin": True},
    "/v1/waiting": {"ids": [str(uuid.UUID(int=7))], "act": "accept"},
    "/v1/waiting/{id}": {"act": "accept"},
    "/v1/rooms/{id}/project": {"project": str(uuid.UUID(int=7))},
    "/v1/rooms/{id}/digest": {"period": "daily"},
    "/v1/rooms/{id}/landmarks/{landmark}": {"state": "current"},
    "/v1/projects/{id}/landmarks/{landmark}": {"state": "current"},
    "/mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
}
# Statements that are run beside requests, in batches or every few seconds.
BESIDE_REQUESTS: Final = frozenset({"tables_have_statistics", "credential_used"})
# Pages by which a browser signs in and out (tests/integration/test_login_page.py, test_openid.py).
PAGES: Final = {("GET", "/login"), ("POST", "/login"), ("GET", "/login/done"), ("POST", "/v1/logout")} | {
    ("GET", "/login/openid"),
    ("GET", "/login/openid/done"),
    ("GET", "/login/account"),
    ("POST", "/login/account/connect"),
    ("POST", "/login/account/confirm"),
    ("POST", "/login/account/disconnect"),
}
# By which AI tools sign in, and their people allow it (tests/deep/integration/test_oauth.py, test_oauth_attacks.py).
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


# What people see in a browser (tests/integration/test_pages.py, test_invitations.py).
PAGES_OF_PEOPLE: Final = {
    (method, route.path)
    for route in app.ROUTES
    if route.endpoint.__module__.startswith(pages.__name__)
    for method in route.methods or ()
}

# By which services of others send what they have signed; they are there where that is set.
SIGNED: Final = {SLACK_EVENTS_PATH, STRIPE_EVENTS_PATH}

NOT_OF_API: Final = PAGES | PAGES_OF_OAUTH | PAGES_OF_PEOPLE | set(GATEWAY_ROUTES)


def _fitting(schema: dict[str, Any], schemas: dict[str, Any], name: str = "") -> Any:
    """A value that fits a schema of the document: of an object what it requires. `<name>` stands for an id."""
    if "$ref" in schema:
        return _fitting(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
    match schema:
        case {"const": value} | {"enum": [value, *_]}:
            return value
        case {"format": "uuid"}:
            return f"<{name}>"
        case {"format": "date"}:
            return "2026-05-04"
        case {"type": "boolean"}:
            return True
        case {"type": "integer", "minimum": least}:
            return least
        case {"type": "object"}:
            fields = schema.get("properties", {})
            return {each: _fitting(fields[each], schemas, each) for each in schema.get("required", ())}
        case {"type": "array"}:
            return [_fitting(schema["items"], schemas, name)]
    assert schema["type"] == "string", f"a value for {name} is not known: say it in BODIES"
    return "x"


def _route(method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> Route:
    """How a route is to behave, by its path and by what the document says that it takes."""
    who = next((who for start, who in WHO.items() if f"{path}/".startswith(start)), PEOPLE)
    body = BODIES.get(path)
    content = operation.get("requestBody", {}).get("content", {})
    if body is None and "application/json" in content:
        body = _fitting(content["application/json"]["schema"], schemas)
    taken = [each for each in operation.get("parameters", ()) if each["in"] == "query" and each["required"]]
    params = {each["name"]: _fitting(each["schema"], schemas, each["name"]) for each in taken}
    of = {each: _thing(path, each) for each in re.findall(r"{(\w+)(?::path)?}", path) if each not in NOBODYS}
    return Route(who, body, of or None, params or None)


def _thing(path: str, parameter: str) -> str:
    """What of alice's a parameter of a path is of."""
    if parameter != "id":
        assert parameter in NAMED, f"say what {{{parameter}}} of {path} is of"
        return parameter
    return IDS[next(start for start in sorted(IDS, key=len, reverse=True) if path.startswith(start))]


def _routes() -> dict[tuple[str, str], Route]:
    told = get_openapi(title="", version="", routes=app.ROUTES)
    served = {(method, each.path): each.path_format for each in app.ROUTES for method in each.methods or ()}
    found = {}
    for (method, path), as_told in sorted(served.items()):
        if (method, path) not in NOT_OF_API and path not in SIGNED:
            operation = told["paths"].get(as_told, {}).get(method.lower(), {})
            found[method, path] = _route(method, path, operation, told["components"]["schemas"])
    return found


ROUTES: Final = _routes()


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


def test_the_pages_that_are_left_out_are_there() -> None:
    assert {(method, each.path) for each in app.ROUTES for method in each.methods or ()} >= NOT_OF_API


def test_no_route_stands_in_the_way_of_another() -> None:
    for route in app.ROUTES:
        path = re.sub(r"{[^}]*}", "x", route.path)
        for method in route.methods or ():
            scope: Scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
            found = next(each for each in app.ROUTES if each.matches(scope)[0] is Match.FULL)
            assert found is route, (method, route.path)


def test_no_request_waits_for_a_thread() -> None:
    waiting = [route.dependant for route in app.ROUTES]
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
        assert refused == (route.who in (PEOPLE, ADMINS, SIGNED_IN)), (method, path, by_tool.text)
        by_person = await _ask(client, method, path, route, {}, own)
        if route.who == ADMINS:
            assert (by_person.status_code, "Only an admin" in by_person.json()["detail"]) == (403, True), path
            continue
        if route.who == SIGNED_IN:
            assert by_person.status_code == 403, (method, path, by_person.text)
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
            if route.of is None or route.who in (SIGNED_IN, ADMINS) or (route.who == PEOPLE and "tool" in name):
                continue  # what admins ask for is shown to none of the others (deep/integration/test_pages_admin.py)
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
            refused = 403 if route.who == ADMINS and name != "an admin" else 404
            assert hers.status_code == refused, (method, path, name, hers.text)
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
    for parameter, thing in (route.of or {}).items():
        path = re.sub(f"{{{parameter}(:path)?}}", things.get(thing) or str(uuid.uuid4()), path)
    path = re.sub(r"{[^}]*}", "x", path)
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
    conversation = (await client.get("/v1/chat/sessions", headers=alice)).json()["items"][0]["id"]
    user = str((await person(harness, "alice")).id)
    await cookie_of(harness, "alice")
    key = (await client.get("/v1/keys", headers=alice)).json()["items"][0]["id"]
    browser = (await client.get("/v1/sessions", headers=alice)).json()["items"][0]["id"]
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        login = LoginEntry(uuid.uuid4(), uuid.UUID(user), "https://login.example", "alice", harness.clock.now(), None)
        await tx.openid_logins.connect(login, b"digest")
    await harness.command("alice", "/nexus remind me in 20 minutes stretch", dm="nexus")
    reminder = (await client.get("/v1/reminders", headers=alice)).json()["items"][0]["id"]
    things = {
        "entry": entry,
        "team": team,
        "reminder": reminder,
        "turn": turn["turn"],
        "session": "plans",
        "conversation": conversation,
        "user": user,
    }
    hook = (await client.post("/v1/webhooks", json={"url": "https://hook.example/"}, headers=alice)).json()["id"]
    things |= {"project": project, "invitation": str(uuid.uuid4()), "webhook": hook}
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
