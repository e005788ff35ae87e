"""What a tenant may use, by its plan: refused with one sentence beyond it, warned of from 80% on, by all processes
together."""

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bot.console import schedule
from bot.console import usage as reporting
from bot.console.doctor import run_doctor
from bot.web.app import web_app
from bot.web.metering import QUOTA
from bot.web.metrics import Metrics
from composer.errors import Misconfigured
from composer.repositories.database import Transaction
from composer.repositories.operations import DueNotice
from composer.repositories.usage import Dimension
from composer.settings import AgentSettings, PlanSettings, Settings, TenantSettings, load_settings
from composer.turn.scheduled.quotas import OF_API, QuotaNotices
from composer.visibility import RECALL_IS_OFF
from tests.support.api import bearer, key_of, person
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness
from tests.support.mcp_clients import called, mcp_client
from tests.support.web import served_at

Open = Callable[..., AbstractAsyncContextManager[tuple[AppHarness, httpx2.AsyncClient]]]


@pytest.fixture
def office(settings: Settings) -> Open:
    """Opens Nexus with a plan of these limits for the tenant acme, and a client of its web port."""

    @asynccontextmanager
    async def opened(clock: Any = None, **limits: int) -> AsyncIterator[tuple[AppHarness, httpx2.AsyncClient]]:
        changed = {
            "agents": (AgentSettings(model="gpt-4o"),),
            "requests_per_minute": 10_000,
            "plans": {"small": PlanSettings(**limits)},
            "tenants": {"acme": TenantSettings(plan="small")},
        }
        async with open_harness(settings.model_copy(update=changed), model=Model(), clock=clock) as harness:
            served = web_app(harness.app, Metrics([]), {}, None)
            async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
                yield harness, client

    return opened


async def write(client: httpx2.AsyncClient, headers: dict[str, str], **entry: Any) -> httpx2.Response:
    return await client.post("/v1/entries", json={"content": "x", **entry}, headers=headers)


async def test_a_quota_is_used_up_by_the_whole_tenant_and_begins_again_with_the_month(office: Open) -> None:
    async with office(writes=3) as (harness, client):
        alice, bob = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "bob"))
        other = bearer(await key_of(harness, "alice", workspace="umbrella"))
        for headers in (alice, bob, alice):
            assert (await write(client, headers)).status_code == 201
        refused = await write(client, bob)
        assert (refused.status_code, refused.headers["content-type"]) == (429, "application/problem+json")
        assert refused.json()["detail"] == (
            "The plan of this workspace has no writes left in this month: they begin again on 2026-06-01. Its operator "
            "can set a larger plan."
        )
        until = datetime(2026, 6, 1, tzinfo=UTC)
        assert int(refused.headers["retry-after"]) == round((until - harness.clock.now()).total_seconds())
        items = (await client.get("/v1/entries", headers=bob)).json()["items"]
        assert len(items) == 1, "nothing is stored of what was refused, and reading is another quota"
        assert (await write(client, other)).status_code == 201, "another tenant has no part in it"
        harness.clock.set(until)
        assert (await write(client, bob)).status_code == 201


async def test_processes_together_never_exceed_a_quota_of_writes(office: Open) -> None:
    async with office(writes=10) as (harness, client), office(harness.clock, writes=10) as (_, elsewhere):
        people = [bearer(await key_of(harness, name)) for name in ("alice", "bob")]
        asked = [write(each, people[n % 2]) for n in range(12) for each in (client, elsewhere)]
        statuses = [answer.status_code for answer in await asyncio.gather(*asked)]
        assert (statuses.count(201), statuses.count(429)) == (10, 14)


async def test_from_four_fifths_on_answers_say_how_much_is_used(office: Open) -> None:
    async with office(reads=5, writes=100) as (harness, client):
        alice, said = bearer(await key_of(harness, "alice")), []
        for _ in range(6):
            answer = await client.get("/v1/entries", headers=alice)
            said.append((answer.status_code, answer.headers.get(QUOTA)))
        nearly = "4 of 5 reads of this month are yours; they begin again on 2026-06-01"
        assert said == [(200, None)] * 4 + [(200, nearly), (429, None)]
        assert QUOTA not in (await write(client, alice)).headers


async def test_members_are_told_of_their_own_use_alone_and_admins_of_all(office: Open) -> None:
    async with office(reads=10, searches=10, chats=10) as (harness, client):
        alice, bob = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "bob"))
        tool = bearer(await key_of(harness, "alice", "claude"))
        root = await person(harness, "root")
        async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
            await tx.people.set_admin(root.id, True)
        admin = bearer(await key_of(harness, "root"))

        async def reads(headers: dict[str, str]) -> httpx2.Response:
            return await client.get("/v1/agent/entries", headers=headers)

        async def searches(headers: dict[str, str]) -> httpx2.Response:
            return await client.post("/v1/query", json={"question": "x?"}, headers=headers)

        for ask, quota in ((reads, "reads"), (searches, "searches")):
            for _ in range(8):
                assert (await ask(bob)).status_code == 200
            assert QUOTA not in (await ask(alice)).headers, "that others have used most is not told"
            assert (await ask(admin)).headers[QUOTA].startswith(f"9 of 10 {quota} of this month; ")
            refused = [await ask(each) for each in (alice, tool, bob)]
            assert {each.status_code for each in refused} == {429}
            assert len({each.text for each in refused}) == 1, "of every member"
            assert not {"8", "9", "10"} & set(refused[0].json()["detail"].replace("-", " ").split()), "no figures"


async def test_a_repeat_is_answered_after_its_quota_is_used_up_and_removals_always_are(office: Open) -> None:
    async with office(writes=2, reads=0) as (harness, client):
        alice = bearer(await key_of(harness, "alice"))
        once = alice | {"Idempotency-Key": "k"}
        first = (await write(client, once)).json()["id"]
        second = (await write(client, alice)).json()["id"]
        again = await write(client, once)
        assert (again.status_code, again.json()["id"]) == (201, first)
        assert (await write(client, alice)).status_code == 429
        assert (await client.delete(f"/v1/entries/{first}", headers=alice)).status_code == 204
        assert (await client.post(f"/v1/entries/{second}/forget", headers=alice)).status_code == 200
        assert (await client.get("/v1/usage", headers=alice)).status_code == 200
        assert (await client.get("/v1/export", headers=alice)).status_code == 200


async def test_a_search_and_a_chat_are_refused_before_anything_is_asked(office: Open) -> None:
    async with office(searches=1, chats=1) as (harness, client):
        alice, tool = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "alice", "claude"))
        asked = [await client.post("/v1/query", json={"question": "x?"}, headers=each) for each in (alice, tool)]
        assert [answer.status_code for answer in asked] == [200, 429]
        assert "no searches left" in asked[1].json()["detail"]
        said = [await client.post("/v1/chat", json={"content": "hello"}, headers=alice) for _ in range(2)]
        assert [answer.status_code for answer in said] == [200, 429]
        assert (await harness.ask("alice", "@nexus hello?", room="general")).text, "rooms have no such quota"


async def test_tools_over_mcp_have_the_quotas_and_the_settings_of_their_person(office: Open) -> None:
    async with office(searches=2, writes=1) as (harness, client):
        alice, tool = bearer(await key_of(harness, "alice")), await key_of(harness, "alice", "claude")
        async with mcp_client(str(client.base_url).rstrip("/"), tool) as claude:
            assert (await called(claude, "write_entry", content="x"))["state"] == "written"
            assert "no writes left" in await called(claude, "write_entry", content="y")
            assert (await called(claude, "search", query="x?"))["results"] == []
            await client.patch("/v1/settings", json={"recall": False}, headers=alice)
            for name, asked in (("search", {"query": "x?"}), ("browse_entries", {})):
                assert await called(claude, name, **asked) == RECALL_IS_OFF
            await client.patch("/v1/settings", json={"recall": True}, headers=alice)
            assert (await called(claude, "search", query="x?"))["results"] == [], "what was refused did not count"
            assert "no searches left" in await called(claude, "search", query="x?")


async def test_there_are_as_many_entries_as_the_plan_is_for_and_no_more(office: Open) -> None:
    async with office(entries=2) as (harness, client):
        alice, bob = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "bob"))
        first = (await write(client, alice, key="k")).json()["id"]
        assert (await write(client, bob)).status_code == 201
        refused = await write(client, bob)
        assert (refused.status_code, "no room for another entry" in refused.json()["detail"]) == (402, True)
        assert "retry-after" not in refused.headers
        assert (await write(client, alice, key="k", content="y")).status_code == 200, "it replaces one"
        document = {"format": "nexus-entries", "version": 1, "entries": [{"content": f"n{n}"} for n in range(2)]}
        await client.delete(f"/v1/entries/{first}", headers=alice)
        imported = await client.post("/v1/entries/import", json=document, headers=alice)
        assert (imported.status_code, "no room for 2 more entries" in imported.json()["detail"]) == (402, True), (
            imported.text
        )
        assert (await write(client, bob)).status_code == 201, "what is in the trash does not count"
        restored = await client.post(f"/v1/entries/{first}/restore", headers=alice)
        assert restored.status_code == 402
        assert (await client.get("/v1/entries", headers=alice)).json()["items"] == []


async def test_a_long_import_is_stored_where_the_plan_has_room_for_all_of_it_and_else_nothing(office: Open) -> None:
    async with office(entries=601) as (harness, client):
        alice = bearer(await key_of(harness, "alice"))
        entries = [{"content": f"n{n}"} for n in range(602)]  # more than one portion

        async def brought(count: int) -> httpx2.Response:
            document = {"format": "nexus-entries", "version": 1, "entries": entries[:count]}
            return await client.post("/v1/entries/import", json=document, headers=alice)

        refused = await brought(602)
        assert (refused.status_code, "no room for 602 more entries" in refused.json()["detail"]) == (402, True)
        assert (await client.get("/v1/entries", headers=alice)).json()["items"] == []
        assert (await brought(601)).status_code == 200


async def test_an_import_counts_as_many_writes_as_it_stores_or_none(office: Open) -> None:
    async with office(writes=3) as (harness, client):
        alice = bearer(await key_of(harness, "alice"))

        async def brought(count: int, **params: Any) -> httpx2.Response:
            entries = [{"content": f"n{n}"} for n in range(count)]
            document = {"format": "nexus-entries", "version": 1, "entries": entries}
            return await client.post("/v1/entries/import", json=document, params=params, headers=alice)

        refused = await brought(4)
        assert (refused.status_code, "fewer than 4 writes left" in refused.json()["detail"]) == (429, True), (
            refused.text
        )
        assert (await client.get("/v1/entries", headers=alice)).json()["items"] == []
        assert (await brought(3)).status_code == 200
        assert (await write(client, alice)).status_code == 429


async def test_the_tokens_of_a_plan_are_a_budget_of_models(office: Open) -> None:
    async with office(tokens=1) as (harness, client):
        alice = bearer(await key_of(harness, "alice"))
        await write(client, alice, content="The bees live in the garden.")
        asked = {"question": "where do the bees live?", "answer": True}
        answer = await client.post("/v1/query", json=asked, headers=alice)
        assert (answer.status_code, "budget" in answer.json()["detail"]) == (429, True), answer.text


async def test_admins_are_told_once_a_month_which_quota_is_nearly_used_up(
    office: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Counter[tuple[uuid.UUID, date]]()
    store = QuotaNotices.store

    async def counted(source: QuotaNotices, tx: Transaction, tenant: uuid.UUID, due: DueNotice, now: datetime) -> Any:
        stored[due.user, due.month] += 1
        assert stored[due.user, due.month] == 1  # where it is not, it would be stored without end
        return await store(source, tx, tenant, due, now)

    monkeypatch.setattr(QuotaNotices, "store", counted)
    async with office(writes=5, entries=100) as (harness, client):
        alice, app = bearer(await key_of(harness, "alice")), harness.app
        for name in ("root", "boss"):
            found = await person(harness, name)
            async with app.database.transaction(harness.workspace().tenant_id) as tx:
                await tx.people.set_admin(found.id, True)

        async def told() -> list[str]:
            before = len(harness.delivery.replies)
            await schedule.run(app, "quotas", harness.clock.tick(300))
            await app.due_posts.post_due()
            await app.turns.settle()
            return [reply.text for reply in harness.delivery.replies[before:]]

        for _ in range(3):
            await write(client, alice)
        assert await told() == []
        await write(client, alice)
        assert await told() == [f"This workspace has used 4 of the 5 writes that its plan has this month. {OF_API}"] * 2
        await write(client, alice)
        assert await told() == []
        harness.clock.set(datetime(2026, 6, 1, tzinfo=UTC))
        assert await told() == []
        for _ in range(4):
            await write(client, alice)
        assert len(await told()) == 2
    assert sorted(stored.values()) == [1] * 4


async def test_nexus_usage_shows_what_was_done_over_the_api_and_the_plan(office: Open) -> None:
    async with office(writes=5, tokens=1_000_000) as (harness, client):
        alice, bob = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "bob"))
        for headers in (alice, alice, bob):
            await write(client, headers)
        await client.get("/v1/entries", headers=alice)
        await harness.app.operations.settle()
        own = (await harness.command("alice", "/nexus usage", dm="nexus")).text
        assert "Done over the API in your name:\n  2026-05: reads 1, writes 2" in own
        assert "Plan" not in own
        found = await person(harness, "root")
        async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
            await tx.people.set_admin(found.id, True)
        everyones = (await harness.command("root", "/nexus usage --everyone", dm="nexus")).text
        assert "2026-05: reads 1, writes 3" in everyones
        assert "Plan, now:\n  3 of 5 writes of this month used" in everyones
        [shown] = [
            each async for each in reporting.usage(harness.app, Dimension.DAY, None, None) if each.tenant == "acme"
        ]
        text = reporting.text(shown, harness.app, Dimension.DAY)
        assert "  over the API in 2026-05: reads 1, writes 3" in text
        assert "  plan: 3 of 5 writes of this month used" in text
        rows = reporting.as_json(shown, harness.app, Dimension.DAY)
        assert {"tenant": "acme", "quota": "writes", "used": 3, "most": 5} in rows
        assert any(row.get("operation") == "reads" and row["count"] == 1 for row in rows)
        checks = await run_doctor(harness.app.settings, clock=harness.clock)
        assert "3 of 5 writes" in next(check.detail for check in checks if check.name == "usage")


async def test_a_plan_that_there_is_not_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "nexus.toml").write_text('[plans.free]\nwrites = 1\n\n[tenants.acme]\nplan = "gold"\n')
    with pytest.raises(Misconfigured, match=r"`tenants.acme.plan` names the plan 'gold', which there is not.*\(free\)"):
        load_settings({"NEXUS_HOME": str(tmp_path)}, tmp_path)
    (tmp_path / "nexus.toml").write_text("[plans.free]\nwrite = 1\n")
    with pytest.raises(Misconfigured, match="did you mean writes"):
        load_settings({"NEXUS_HOME": str(tmp_path)}, tmp_path)
