"""What a person sets for themselves over the API: who may, what it changes, and that every process knows at once."""

import json
from typing import Any, Final

import httpx2
import pytest

from bot.console import schedule
from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.settings import Settings
from composer.visibility import RECALL_IS_OFF
from tests.support.api import bearer, key_of
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.web import served_at

DAY: Final = 86_400
DEFAULTS = {
    "recall": True,
    "strategy": None,
    "budget": 2_000,
    "trash_days": 30,
    "keep_days": None,
    "timezone": None,
    "changed_at": None,
}


@pytest.fixture
async def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"requests_per_minute": 10_000})


async def change(client: httpx2.AsyncClient, key: str, **values: Any) -> httpx2.Response:
    return await client.patch("/v1/settings", json=values, headers=bearer(key))


async def shown(client: httpx2.AsyncClient, key: str) -> dict[str, Any]:
    answer = await client.get("/v1/settings", headers=bearer(key))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def found(
    client: httpx2.AsyncClient, key: str, question: str = "where do the bees live?", **options: Any
) -> list[str]:
    answer = await client.post("/v1/query", json={"question": question, **options}, headers=bearer(key))
    assert answer.status_code == 200, answer.text
    return [item["text"] for item in answer.json()["items"]]


async def test_what_a_person_sets_is_theirs_and_what_they_leave_out_stays(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob = await key_of(harness, "alice"), await key_of(harness, "bob")
    assert await shown(client, alice) == DEFAULTS
    answer = await change(client, alice, budget=500, strategy="recent")
    assert answer.json() == DEFAULTS | {"budget": 500, "strategy": "recent", "changed_at": answer.json()["changed_at"]}
    assert answer.json()["changed_at"] is not None
    await change(client, alice, strategy=None, trash_days=7)
    now = await shown(client, alice)
    assert (now["budget"], now["strategy"], now["trash_days"]) == (500, None, 7)
    assert await shown(client, bob) == DEFAULTS


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"budget": -1}, "budget"),
        ({"budget": 16_001}, "budget"),
        ({"trash_days": 0}, "trash_days"),
        ({"trash_days": 366}, "trash_days"),
        ({"keep_days": 366}, "keep_days"),
        ({"recall": None}, "recall"),
        ({"strategy": "exact"}, "strategy"),
        ({"user": "bob"}, "user"),
    ],
)
async def test_what_is_out_of_bounds_is_refused_by_its_name(
    harness: AppHarness, client: httpx2.AsyncClient, values: dict[str, Any], word: str
) -> None:
    alice = await key_of(harness, "alice")
    answer = await change(client, alice, **values)
    assert (answer.status_code, f"`{word}`" in answer.json()["detail"]) == (422, True), answer.text
    assert await shown(client, alice) == DEFAULTS


async def test_only_a_key_that_manages_sees_and_changes_them(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    reads = await key_of(harness, "alice", permissions=["entries:read"])
    for answer in (await change(client, reads, budget=1), await client.get("/v1/settings", headers=bearer(reads))):
        assert answer.status_code == 403, answer.text
        assert "permission manage" in answer.json()["detail"]


async def test_searches_have_the_budget_and_the_strategy_that_are_set_unless_they_name_one(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    hub, alice = Hub(harness), await key_of(harness, "alice")
    tool = await key_of(harness, "alice", "claude")
    await hub.write("alice", "Where the bees live: the bees live in the garden. " * 10)
    await hub.write("alice", "In our garden live ants, wasps and bees. " * 12)
    for key in (alice, tool):
        assert len(await found(client, key)) == 2
    await change(client, alice, budget=100)
    for key in (alice, tool):
        [text] = await found(client, key)
        assert len(text) < 500
        assert len(await found(client, key, budget=2_000)) == 2
    await change(client, alice, budget=0)
    assert await found(client, tool) == []
    await change(client, alice, budget=2_000, strategy="recent")
    assert (await found(client, tool))[0].startswith("In our garden")
    assert (await found(client, tool, strategy="hybrid"))[0].startswith("Where")


async def test_once_recall_is_off_tools_and_questions_get_one_sentence_and_the_person_still_has_their_entries(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    hub, alice = Hub(harness), await key_of(harness, "alice")
    tool, bob = await key_of(harness, "alice", "claude"), await key_of(harness, "bob", "claude")
    id = (await hub.write("alice", "bees", "claude", key="k")).entry.id
    await change(client, alice, recall=False)
    reads = ("entries", "entries/latest", "entries/by-tag/x", f"entries/{id}", "teams", "projects")
    refused = [await client.get(f"/v1/agent/{path}", headers=bearer(tool)) for path in reads]
    for key in (tool, alice):
        refused.append(await client.post("/v1/query", json={"question": "bees"}, headers=bearer(key)))
    for answer in refused:
        assert answer.status_code == 403, answer.text
        assert answer.json()["detail"] == RECALL_IS_OFF
    assert [e["content"] for e in (await client.get("/v1/entries", headers=bearer(alice))).json()["items"]] == ["bees"]
    assert (await client.get("/v1/agent/entries", headers=bearer(bob))).status_code == 200
    written = await client.post("/v1/agent/entries", json={"content": "more", "key": "k"}, headers=bearer(tool))
    assert written.status_code == 201, "a tool still writes, and is told nothing of what it wrote before"
    await change(client, alice, recall=True)
    assert (await client.get("/v1/agent/entries", headers=bearer(tool))).status_code == 200


async def test_a_change_holds_at_once_in_another_process(
    harness: AppHarness, client: httpx2.AsyncClient, settings: Settings
) -> None:
    alice, tool = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    await Hub(harness).write("alice", "The bees live in the garden.")
    async with open_harness(settings, clock=harness.clock) as other:
        served = web_app(other.app, Metrics([]), {}, None)
        async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as elsewhere:
            assert await found(elsewhere, tool) == ["The bees live in the garden."]
            for off in (True, False, True):
                await change(client, alice, recall=not off)
                answer = await elsewhere.post("/v1/query", json={"question": "bees"}, headers=bearer(tool))
                assert answer.status_code == (403 if off else 200)


async def test_all_accounts_of_a_person_have_the_settings_that_were_changed_last(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    first, second = await key_of(harness, "alice"), await key_of(harness, "carol")
    hub, tenant = Hub(harness), harness.workspace().tenant_id
    await change(client, first, budget=100)
    harness.clock.tick()
    await change(client, second, budget=200)
    assert (await shown(client, first))["budget"] == 100
    alice, carol = await hub.user("alice"), await hub.user("carol")
    async with harness.app.database.transaction(tenant, "alone") as tx:
        await tx.people.link(alice, carol)
    assert [(await shown(client, key))["budget"] for key in (first, second)] == [200, 200]
    harness.clock.tick()
    await change(client, first, trash_days=9)
    for key in (first, second):
        now = await shown(client, key)
        assert (now["budget"], now["trash_days"]) == (200, 9)


async def test_the_trash_is_erased_after_the_days_that_its_person_has_set(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    hub, keys = Hub(harness), {name: await key_of(harness, name) for name in ("alice", "bob", "carol")}
    await change(client, keys["alice"], trash_days=2)
    await change(client, keys["carol"], trash_days=60)
    for name in keys:
        await hub.trash(name, (await hub.write(name, f"of {name}")).entry.id)
    left = []
    for days in (1, 2, 28, 30):
        harness.clock.tick(days * DAY)
        await schedule.run(harness.app, "trash", harness.clock.now())
        left.append([name for name in keys if await hub.titles(name, trashed=True)])
    assert left == [["alice", "bob", "carol"], ["bob", "carol"], ["carol"], []]


async def test_what_tools_wrote_is_kept_for_the_days_that_are_set_and_all_else_for_good(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    hub, alice = Hub(harness), await key_of(harness, "alice")
    team = (await client.post("/v1/teams", json={"name": "Ops"}, headers=bearer(alice))).json()["id"]
    shared = (await hub.write("alice", "shared", "claude")).entry.id
    await client.put(f"/v1/entries/{shared}/team", json={"team": team}, headers=bearer(alice))
    await hub.write("alice", "of the tool", "claude")
    await hub.write("alice", "of the person")
    await hub.write("bob", "of bob's tool", "claude")
    harness.clock.tick(9 * DAY)
    await hub.write("alice", "new of the tool", "claude")
    everything = await hub.titles("alice")
    await schedule.run(harness.app, "trash", harness.clock.now())
    assert await hub.titles("alice") == everything, "nothing is erased unless that is set"
    await change(client, alice, keep_days=8)
    harness.clock.tick(DAY)
    await schedule.run(harness.app, "trash", harness.clock.now())
    assert sorted(await hub.titles("alice")) == ["new of the tool", "of the person", "shared"]
    assert await hub.titles("alice", trashed=True) == []
    assert await hub.titles("bob") == ["of bob's tool"]


async def test_they_are_exported_recorded_by_name_alone_and_erased_with_their_person(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    await change(client, await key_of(harness, "alice"), budget=123)
    answer = await harness.command("alice", "/nexus export", dm="nexus")
    assert answer.file is not None
    [own] = json.loads(answer.file.text)["settings"]
    assert (own["budget"], own["recall"]) == (123, True)
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        [row] = await tx.audit.find(act="person.settings", limit=100)
    assert dict(row.details) == {"budget": True}
    await harness.command("alice", "/nexus forget everything --yes", dm="nexus")
    assert await shown(client, await key_of(harness, "alice")) == DEFAULTS
