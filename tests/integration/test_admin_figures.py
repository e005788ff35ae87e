"""What an admin sees of the days: answers, how long they took, what failed, what came in and was learnt, what waits."""

from datetime import timedelta
from typing import Any, Final

import asyncpg
import httpx2

from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness
from tests.support.pages import Person

# Of the turns of today, in the order in which they were asked: the seconds, and why it failed.
ENDED: Final = ((2.0, None), (4.0, None), (30.0, None), (60.0, "model away"))


async def admin_of(harness: AppHarness, client: httpx2.AsyncClient) -> tuple[Person, dict[str, str]]:
    found = await person(harness, "root")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(found.id, True)
    return Person(client, await cookie_of(harness, "root")), bearer(await key_of(harness, "root"))


async def figures(client: httpx2.AsyncClient, key: dict[str, str], days: int = 2) -> dict[str, Any]:
    answer = await client.get("/v1/admin/figures/days", params={"days": days}, headers=key)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_days_without_anything_say_so(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root, key = await admin_of(harness, client)
    found = await figures(client, key, 30)
    assert len(found["items"]) == 30
    assert {each["answers"] + each["messages"] + each["learnt"] for each in found["items"]} == {0}
    assert {each["p95_seconds"] for each in found["items"]} == {None}
    assert (found["waiting"], found["waiting_since"]) == (0, None)
    shown = await root.page("/admin/figures")
    assert "Figures come with the first message." in shown
    assert "data-chart" not in shown


async def test_each_day_has_its_answers_and_what_came_in(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root, key = await admin_of(harness, client)
    harness.clock.set(harness.clock.now().replace(hour=9, minute=0))
    await harness.say("alice", "the day before", room="general")
    harness.clock.set(harness.clock.now() + timedelta(days=1))
    for number in range(len(ENDED) + 1):
        await harness.ask("alice", f"when do we deploy {number}?", dm="nexus")
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        turns = [row["id"] for row in await connection.fetch("SELECT id FROM turns ORDER BY queued_at")]
        for turn, (seconds, failure) in zip(turns, ENDED, strict=False):
            await connection.execute(
                "UPDATE turns SET answered_at = queued_at + $2, failure = $3 WHERE id = $1",
                *(turn, timedelta(seconds=seconds), failure),
            )
        await connection.execute("UPDATE turns SET state = 'queued', answered_at = NULL WHERE id = $1", turns[-1])
        memory = "UPDATE memories SET origin = 'extracted', created_at = $1"
        await harness.command("alice", "/nexus remember we deploy on Fridays", dm="nexus")
        await connection.execute(memory, harness.clock.now())
    finally:
        await connection.close()
    found = await figures(client, key)
    before, today = found["items"]
    assert (before["messages"], before["answers"], before["learnt"]) == (1, 0, 0)
    assert (today["messages"], today["answers"], today["failures"], today["learnt"]) == (len(ENDED) + 1, 3, 1, 1)
    assert today["p50_seconds"] == 4.0
    assert 27 < today["p95_seconds"] < 28
    assert found["waiting"] == 1
    assert found["waiting_since"] is not None
    shown = await root.page("/admin/figures?days=7")
    assert "1 question waits for its answer," in shown
    assert shown.count("data-chart") == 2, "no model is set up, of which calls could be drawn"
    assert 'data-value="27.4' in shown
    assert "No model was asked in these days." in shown


async def test_nobody_else_sees_them(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    _, key = await admin_of(harness, client)
    await harness.say("carol", "good morning", room="general", workspace="umbrella")
    assert {each["messages"] for each in (await figures(client, key))["items"]} == {0}
    alice = Person(client, await cookie_of(harness, "alice"))
    assert (await alice.get("/admin/figures")).status_code == 404
    others = bearer(await key_of(harness, "alice"))
    assert (await client.get("/v1/admin/figures/days", headers=others)).status_code == 403
    assert (await client.get("/v1/admin/figures/days?days=91", headers=key)).status_code == 422
