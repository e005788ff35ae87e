"""What admins see over the API: people and figures of their own workspace, and never what anything says."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx2
import pytest

from composer.entries import probe
from composer.repositories.database import Transaction
from composer.settings import PlanSettings, Settings
from tests.support.api import bearer, key_of, person
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness

PATHS = ("/v1/admin/usage", "/v1/admin/users", "/v1/admin/figures")
SECRET = "zqsecret"


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    changed = {
        "requests_per_minute": 10_000,
        "admin_requests_per_minute": 10,
        "plan": "small",
        "plans": {"small": PlanSettings(entries=100, writes=50)},
    }
    async with open_harness(settings.model_copy(update=changed)) as harness:
        yield harness


async def admin(harness: AppHarness, name: str = "root", **options: Any) -> dict[str, str]:
    """The headers of an admin."""
    found = await person(harness, name)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(found.id, True)
    return bearer(await key_of(harness, name, **options))


async def asked(client: httpx2.AsyncClient, path: str, headers: dict[str, str], **params: Any) -> dict[str, Any]:
    answer = await client.get(path, params=params, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_an_admin_sees_people_and_figures_and_no_word_of_anybody(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root, hub = await admin(harness), Hub(harness)
    alice, tool = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "alice", "claude"))
    await client.post("/v1/entries", json={"content": SECRET, "title": SECRET, "tags": [SECRET]}, headers=alice)
    await client.post("/v1/agent/entries", json={"content": f"{SECRET} 2"}, headers=tool)
    await hub.trash("alice", (await hub.write("alice", f"{SECRET} 3")).entry.id)
    await harness.say("bob", SECRET, room=SECRET, private=True)
    await harness.command("bob", f"/nexus fact set {SECRET} bees", dm="nexus")
    await harness.say("carol", SECRET, room="general", workspace="umbrella")
    answers = {path: await asked(client, path, root) for path in PATHS}
    assert SECRET not in str(answers), "also names of rooms, tags and keys of facts are contents"
    people = {each["name"]: each for each in answers["/v1/admin/users"]["items"]}
    assert set(people) == {"root", "alice", "bob"}
    assert (people["root"]["admin"], people["alice"]["admin"]) == (True, False)
    assert [people["alice"][name] for name in ("keys", "entries", "operations")] == [2, 2, 2]
    assert people["alice"]["platforms"] == ["console"]
    figures = answers["/v1/admin/figures"]
    assert [figures[name] for name in ("people", "admins", "entries", "in_trash", "facts")] == [3, 1, 2, 1, 1]
    assert figures["operations"] == {"writes": 2}
    quotas = [{"quota": "entries", "used": 2, "most": 100}, {"quota": "writes", "used": 2, "most": 50}]
    assert figures["quotas"] == answers["/v1/admin/usage"]["quotas"] == quotas
    totals = {(each["operation"], each["vendor"], each["count"]) for each in answers["/v1/admin/usage"]["operations"]}
    assert totals == {("writes", "api", 1), ("writes", "claude", 1)}


async def test_only_an_admin_with_a_key_for_that_may_ask_and_not_for_long(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await admin(harness)
    refused = [
        bearer(await key_of(harness, "alice")),
        bearer(await key_of(harness, "root", permissions=["manage", "entries:read"])),
        bearer(await key_of(harness, "root", "claude")),
        bearer(await key_of(harness, "root", workspace="umbrella")),
    ]
    for headers in refused:
        assert [(await client.get(path, headers=headers)).status_code for path in PATHS] == [403] * 3
    statuses = [(await client.get(PATHS[n % 3], headers=root)).status_code for n in range(11)]
    assert statuses == [200] * 10 + [429]
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin((await person(harness, "root")).id, False)
    assert (await client.get(PATHS[0], headers=root)).status_code == 403, "who is no admin any more sees it no more"


async def test_people_are_listed_page_by_page_and_who_was_erased_is_not(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root, names = await admin(harness), [f"p{n}" for n in range(5)]
    for name in names:
        await person(harness, name)
    await harness.command("p2", "/nexus forget everything --yes", dm="nexus")
    found, cursor = [], None
    while True:
        page = await asked(client, "/v1/admin/users", root, limit=2, **({} if cursor is None else {"cursor": cursor}))
        found += [each["name"] for each in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert found == ["root", "p0", "p1", "p3", "p4"]
    assert (await client.get("/v1/admin/users", params={"cursor": "x"}, headers=root)).status_code == 422


async def rows_of(harness: AppHarness) -> dict[str, list[Any]]:
    """Every row of the database but when keys were used last."""
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        names = [row["tablename"] for row in tables if row["tablename"] != "api_keys"]
        return {name: await connection.fetch(f"SELECT * FROM {name} AS t ORDER BY t::text") for name in names}
    finally:
        await connection.close()


async def test_health_stores_lists_and_erases_an_entry_and_leaves_nothing_behind(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    keys = [
        bearer(await key_of(harness, "alice")),
        bearer(await key_of(harness, "alice", "claude", permissions=["teams:read"])),
    ]
    await client.patch("/v1/settings", json={"recall": False}, headers=keys[0])
    await harness.command("alice", "/nexus opt-out", dm="nexus")
    await harness.app.credentials._last_use.settle()
    before = await rows_of(harness)
    for headers in keys:
        found = await asked(client, "/v1/health", headers)
        assert found["working"] is True
        assert all(found["latency_ms"][step] > 0 for step in ("create", "list", "delete"))
    await harness.app.operations.settle()
    assert await rows_of(harness) == before
    assert (await client.get("/v1/health")).status_code == 401


async def test_health_says_so_when_an_entry_is_not_stored(
    harness: AppHarness, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = bearer(await key_of(harness, "alice"))

    async def keeps(tx: Transaction, *args: Any) -> None:
        return None

    with monkeypatch.context() as patched:
        patched.setattr(probe, "forget", keeps)
        answer = await client.get("/v1/health", headers=alice)
    assert (answer.status_code, answer.json()["detail"]) == (503, "An entry that was just erased is still listed.")
    assert (await client.get("/v1/health", headers=alice)).status_code == 200
