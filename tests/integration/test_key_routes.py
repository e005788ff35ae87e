"""What opens a memory, over the API: who asks, keys that give no more than who makes them has, and their end."""

from datetime import timedelta
from typing import Any

import httpx2

from bot.script.places import incoming, place_of
from bot.web.credentials import COOKIE_ON_LOCALHOST
from composer.model import Trust
from composer.people.credentials.principal import EVERY_PERMISSION, TOOL_PERMISSIONS
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness

NO_ADMIN = EVERY_PERMISSION - {"admin"}


async def made(client: httpx2.AsyncClient, key: str, status: int = 201, **wanted: Any) -> dict[str, Any]:
    answer = await client.post("/v1/keys", json=wanted, headers=bearer(key))
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_each_credential_says_whom_it_stands_for(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    alice, tenant = await person(harness, "alice"), harness.workspace().tenant
    own, tool = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    same = {"tenant": tenant, "user": str(alice.id), "name": "alice"}
    assert (await client.get("/v1/whoami", headers=bearer(own))).json() == same | {
        "vendor": None,
        "kind": "person",
        "permissions": sorted(NO_ADMIN),
        "key": own[:-56],
        "expires_at": None,
    }
    assert (await client.get("/v1/whoami", headers=bearer(tool))).json() == same | {
        "vendor": "claude",
        "kind": "tool",
        "permissions": sorted(TOOL_PERMISSIONS),
        "key": tool[:-56],
        "expires_at": None,
    }
    cookie = {"Cookie": f"{COOKIE_ON_LOCALHOST}={await cookie_of(harness, 'alice')}"}
    web = (await client.get("/v1/whoami", headers=cookie)).json()
    assert (web["kind"], web["key"], web["user"]) == ("person", None, str(alice.id))
    assert web["expires_at"] is not None
    assert (await client.get("/v1/whoami")).status_code == 401


async def test_a_person_makes_sees_and_revokes_keys(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    own = await key_of(harness, "alice")
    harness.clock.tick()  # they are listed in the order in which they were made
    new = await made(client, own, vendor="claude", name="laptop")
    assert (new["permissions"], new["current"]) == (sorted(TOOL_PERMISSIONS), False)
    assert new["key"].startswith(new["prefix"])
    assert (await client.get("/v1/whoami", headers=bearer(new["key"]))).json()["vendor"] == "claude"
    listed = await client.get("/v1/keys", headers=bearer(own))
    items = listed.json()["items"]
    assert [(each["vendor"], each["current"]) for each in items] == [(None, True), ("claude", False)]
    assert new["key"] not in listed.text
    gone = await client.delete(f"/v1/keys/{new['id']}", headers=bearer(own))
    assert gone.status_code == 204
    assert (await client.get("/v1/whoami", headers=bearer(new["key"]))).status_code == 401
    again = await client.get("/v1/keys", headers=bearer(own))
    assert [each["revoked_at"] is None for each in again.json()["items"]] == [True, False]
    assert (await client.delete(f"/v1/keys/{new['id']}", headers=bearer(own))).status_code == 204


async def test_others_keys_and_sessions_look_like_none(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    alices, bobs = await key_of(harness, "alice"), await key_of(harness, "bob")
    await cookie_of(harness, "alice")
    key = (await client.get("/v1/keys", headers=bearer(alices))).json()["items"][0]["id"]
    session = (await client.get("/v1/sessions", headers=bearer(alices))).json()["items"][0]["id"]
    none = "00000000-0000-0000-0000-000000000000"
    for path, id in (("keys", key), ("sessions", session)):
        theirs = await client.delete(f"/v1/{path}/{id}", headers=bearer(bobs))
        nobodys = await client.delete(f"/v1/{path}/{none}", headers=bearer(bobs))
        assert (theirs.status_code, theirs.content) == (404, nobodys.content)
    assert (await client.get("/v1/sessions", headers=bearer(bobs))).json() == {"items": []}
    assert len((await client.get("/v1/keys", headers=bearer(bobs))).json()["items"]) == 1
    assert (await client.get("/v1/whoami", headers=bearer(alices))).status_code == 200


async def test_a_key_without_manage_and_a_tool_see_and_end_nothing(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    own = await key_of(harness, "alice")
    await cookie_of(harness, "alice")
    key = (await client.get("/v1/keys", headers=bearer(own))).json()["items"][0]["id"]
    session = (await client.get("/v1/sessions", headers=bearer(own))).json()["items"][0]["id"]
    without = await key_of(harness, "alice", None, sorted(NO_ADMIN - {"manage"}))
    for asking in (without, await key_of(harness, "alice", "claude")):
        for method, path in (
            ("GET", "/v1/keys"),
            ("POST", "/v1/keys"),
            ("DELETE", f"/v1/keys/{key}"),
            ("GET", "/v1/sessions"),
            ("DELETE", f"/v1/sessions/{session}"),
        ):
            body = dict[str, Any]() if method == "POST" else None
            refused = await client.request(method, path, headers=bearer(asking), json=body)
            assert refused.status_code == 403, (method, path)
    assert len((await client.get("/v1/sessions", headers=bearer(own))).json()["items"]) == 1


async def test_a_key_makes_none_that_may_do_more_or_lives_longer(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    project = "project-00000000-0000-0000-0000-000000000001"
    some = await key_of(harness, "alice", None, ["manage", "entries:read", "projects:read"])
    for more in ("entries:write", "chat", "admin", "teams:read", f"{project}:write"):
        assert "so it can't give it" in (await made(client, some, 403, permissions=[more]))["detail"] or more == "admin"
    assert (await made(client, some, permissions=[f"{project}:read"]))["permissions"] == [f"{project}:read"]
    assert (await made(client, some))["permissions"] == ["entries:read", "manage", "projects:read"]
    assert (await made(client, some, vendor="claude"))["permissions"] == ["entries:read", "projects:read"]
    for never in ("manage", "chat", "admin"):
        await made(client, some, 403, vendor="claude", permissions=[never])

    until = harness.clock.now() + timedelta(days=2)
    short = (await made(client, await key_of(harness, "alice"), expires_at=until.isoformat()))["key"]
    for later in (dict[str, str](), {"expires_at": (until + timedelta(seconds=1)).isoformat()}):
        assert "The key that asks ends at" in (await made(client, short, 403, **later))["detail"]
    assert (await made(client, short, expires_at=until.isoformat()))["expires_at"] is not None
    harness.clock.tick(2 * 24 * 3_600)
    assert (await client.get("/v1/whoami", headers=bearer(short))).status_code == 401


async def test_a_repeated_request_makes_one_key_and_does_not_show_it_again(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    own = await key_of(harness, "alice")
    headers = bearer(own) | {"Idempotency-Key": "once"}
    first = await client.post("/v1/keys", json={"vendor": "claude"}, headers=headers)
    again = await client.post("/v1/keys", json={"vendor": "claude"}, headers=headers)
    assert (first.status_code, again.status_code) == (201, 409)
    assert "shown once" in again.json()["detail"]
    assert first.json()["key"] not in again.text
    assert len((await client.get("/v1/keys", headers=bearer(own))).json()["items"]) == 2


async def test_a_person_ends_a_web_session_at_once(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    cookie = {"Cookie": f"{COOKIE_ON_LOCALHOST}={await cookie_of(harness, 'alice')}"}
    own = await key_of(harness, "alice")
    items = (await client.get("/v1/sessions", headers=cookie)).json()["items"]
    assert [(each["browser"], each["current"]) for each in items] == [("browser", True)]
    assert (await client.delete(f"/v1/sessions/{items[0]['id']}", headers=bearer(own))).status_code == 204
    assert (await client.get("/v1/sessions", headers=cookie)).status_code == 401


async def test_guests_make_no_keys_and_wrong_requests_say_what_is_wrong(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    own = await key_of(harness, "alice")
    mistakes: list[dict[str, Any]] = [
        {"vendor": "No Tool!"},
        {"permissions": []},
        {"permissions": ["everything"]},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"expires_at": "2030-01-01T00:00:00"},
        {"name": "x" * 81},
        {"admin": True},
    ]
    for wrong in mistakes:
        assert (await made(client, own, 422, **wrong))["detail"].endswith(".")
    guest, at, place = await key_of(harness, "gast"), harness.workspace(), place_of("general", None, None)
    said = incoming(at, place, "gast", "hi", harness.clock.tick(), id="guest", trust=Trust.GUEST)
    await harness.app.receive(at, [said])
    assert "Guests" in (await made(client, guest, 403))["detail"]
