"""What is done over the API is counted by month, kind and tool: once each, whoever stops when, and by nobody's name
that was erased."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import date, datetime, timedelta
from typing import Any, Final

import httpx2
import pytest

from bot.console import schedule
from bot.web.app import ROUTES, web_app
from bot.web.metering import operation_of
from bot.web.metrics import Metrics
from composer.errors import Unavailable
from composer.repositories.database import Transaction
from composer.repositories.operations import Operation, OperationTotals
from composer.repositories.usage import NO_ONE_ID
from composer.settings import AgentSettings, Settings
from composer.usage.operations import Actor
from tests.support.api import bearer, key_of, person
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import until
from tests.support.web import served_at

MAY: Final = date(2026, 5, 1)
# What neither writes nor reads memory: credentials, teams, projects, settings, figures, models.
NOT_COUNTED: Final = (
    "/v1/embeddings",
    "/v1/models",
    "/v1/whoami",
    "/v1/keys",
    "/v1/logins",
    "/v1/sessions",
    "/v1/settings",
    "/v1/privacy",
    "/v1/usage",
    "/v1/admin/",
    "/v1/billing",
    "/v1/health",
    "/v1/teams",
    "/v1/invites",
    "/v1/people",
    "/v1/activity",
    "/v1/agents",
    "/v1/connect",
    "/v1/events",
    "/v1/webhooks",
    "/v1/gateway/requests",
    "/v1/reminders",
    "/v1/rooms",  # what is in a room is no entry
    "/v1/waiting",
    "/v1/projects",
    "/v1/agent/teams",
    "/v1/agent/projects",
    "/v1/logout",
    "/v1/chat/turns/{turn}/rating",
    "/v1/chat/turns/{turn}/stop",
    "/v1/export",  # all that is stored of a person is never limited
)


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    many = {"agents": (AgentSettings(model="gpt-4o"),), "requests_per_minute": 10_000}
    async with open_harness(settings.model_copy(update=many), model=Model()) as harness:
        yield harness


async def counted(harness: AppHarness, *, user: uuid.UUID | None = None) -> dict[tuple[str, str], int]:
    """What the totals of this month have, by vendor and kind, of everyone or of one user; all is stored first."""
    await harness.app.operations.settle()
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        rows = await tx.operations._sql.fetch("operations_report", since=MAY, user_ids=None if user is None else [user])
    return {(row["vendor"], row["operation"]): row["count"] for row in rows}


def test_every_route_counts_as_an_operation_or_is_known_to_be_none() -> None:
    of_api = [route for route in ROUTES if route.path.startswith("/v1/")]
    uncounted = [route.path for route in of_api if operation_of(route) is None]
    assert all(path.startswith(NOT_COUNTED) for path in uncounted), uncounted


async def test_each_kind_is_counted_for_who_did_it(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    alice, tool = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "alice", "claude"))
    id = (await client.post("/v1/entries", json={"content": "The bees live here."}, headers=alice)).json()["id"]
    await client.post("/v1/agent/entries", json={"content": "x"}, headers=tool)
    await client.patch(f"/v1/entries/{id}", json={"tags": ["a"]}, headers=alice)
    for headers, path in ((alice, "/v1/entries"), (alice, f"/v1/entries/{id}"), (tool, "/v1/agent/entries")):
        assert (await client.get(path, headers=headers)).status_code == 200
    await client.post("/v1/query", json={"question": "where do the bees live?"}, headers=tool)
    await client.post("/v1/chat", json={"content": "hello"}, headers=alice)
    await client.delete(f"/v1/entries/{id}", headers=alice)
    assert await counted(harness) == {
        ("api", "writes"): 2,
        ("claude", "writes"): 1,
        ("api", "reads"): 2,
        ("claude", "reads"): 1,
        ("claude", "searches"): 1,
        ("claude", "hits"): 1,
        ("api", "chats"): 1,
        ("api", "removals"): 1,
    }


async def test_what_fails_and_what_is_no_operation_is_not_counted(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = bearer(await key_of(harness, "alice"))
    for method, path, body in (
        ("GET", f"/v1/entries/{uuid.uuid4()}", None),
        ("POST", "/v1/entries", {"content": ""}),
        ("PATCH", f"/v1/entries/{uuid.uuid4()}", {"tags": []}),
        ("POST", "/v1/query", {"question": " "}),
        ("GET", "/v1/keys", None),
        ("GET", "/v1/whoami", None),
        ("GET", "/v1/settings", None),
    ):
        await client.request(method, path, json=body, headers=alice)
    assert await counted(harness) == {}


async def test_a_repeated_request_is_counted_once(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    alice = bearer(await key_of(harness, "alice"))
    once = alice | {"Idempotency-Key": "k1"}
    for _ in range(3):
        assert (await client.post("/v1/entries", json={"content": "x"}, headers=once)).status_code == 201
        await client.post("/v1/query", json={"question": "x?"}, headers=alice | {"Idempotency-Key": "k2"})
        await client.post("/v1/chat", json={"content": "hello", "id": "m1"}, headers=alice)
        await harness.app.operations.settle()  # a repeat may come in another batch
    expected = {("api", "writes"): 1, ("api", "searches"): 1, ("api", "chats"): 1}
    assert await counted(harness) == expected
    await client.post("/v1/query", json={"question": "y?"}, headers=alice | {"Idempotency-Key": "k2"})
    await client.post("/v1/query", json={"question": "x?"}, headers=alice)
    assert (await counted(harness))[("api", "searches")] == 3, "another question is another operation"


async def test_a_write_that_is_taken_back_is_not_counted(
    harness: AppHarness, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = bearer(await key_of(harness, "alice"))

    async def fails(*args: Any) -> None:
        raise Unavailable("The database is away.")

    with monkeypatch.context() as patched:
        patched.setattr(OperationTotals, "add", fails)
        assert (await client.post("/v1/entries", json={"content": "x"}, headers=alice)).status_code == 503
    assert (await client.get("/v1/entries", headers=alice)).json()["items"] == [], "nor is it stored uncounted"


async def test_several_processes_count_together_and_nothing_is_lost_when_one_stops(
    harness: AppHarness, client: httpx2.AsyncClient, settings: Settings
) -> None:
    alice = bearer(await key_of(harness, "alice"))
    async with open_harness(settings.model_copy(update={"requests_per_minute": 10_000})) as other:
        served = web_app(other.app, Metrics([]), {}, None)
        async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as elsewhere:
            asked = [each.get("/v1/entries", headers=alice) for each in (client, elsewhere) for _ in range(10)]
            asked += [each.post("/v1/entries", json={"content": "x"}, headers=alice) for each in (client, elsewhere)]
            assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200, 201}
    assert await counted(harness) == {("api", "reads"): 20, ("api", "writes"): 2}


async def test_what_was_counted_is_stored_soon_without_being_asked_for(harness: AppHarness) -> None:
    found, tenant = await person(harness, "alice"), harness.workspace().tenant_id
    for _ in range(2):  # the second batch is begun after the first has ended
        before = await stored(harness)
        harness.app.operations.count(Actor(tenant, found.id, "claude"), Operation.READS)
        await until(lambda before=before: _is_more(harness, before))  # type: ignore[misc]


async def stored(harness: AppHarness) -> int:
    """How many reads are stored."""
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        return (await tx.operations.used(MAY)).get(Operation.READS, 0)


async def _is_more(harness: AppHarness, before: int) -> bool:
    return await stored(harness) > before


async def test_what_the_database_does_not_take_is_stored_later(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await person(harness, "alice")
    actor, meter = Actor(harness.workspace().tenant_id, found.id, "claude"), harness.app.operations
    meter.count(actor, Operation.READS)
    meter.count(actor, Operation.SEARCHES, 5, b"digest")

    async def away(tx: Transaction, *args: Any) -> None:
        raise Unavailable("The database is away.")

    with monkeypatch.context() as patched:
        patched.setattr(OperationTotals, "add", away)
        await meter.settle()
    meter.count(actor, Operation.READS)
    meter.count(actor, Operation.SEARCHES, 5, b"digest")
    assert await counted(harness) == {("claude", "reads"): 2, ("claude", "searches"): 1}


async def test_usage_shows_ones_own_by_month_with_the_tokens_and_the_models(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "bob"))
    tool = bearer(await key_of(harness, "alice", "claude"))
    await client.post("/v1/entries", json={"content": "The bees live in the garden."}, headers=alice)
    found = (await client.post("/v1/query", json={"question": "where do the bees live?"}, headers=tool)).json()
    await client.post("/v1/chat", json={"content": "hello"}, headers=alice)
    await client.get("/v1/entries", headers=bob)
    answer = await client.get("/v1/usage", headers=alice)
    assert answer.status_code == 200, answer.text
    usage = answer.json()
    assert usage["since"] == "2026-05-01"
    totals = {(each["operation"], each["vendor"]): (each["count"], each["tokens"]) for each in usage["operations"]}
    assert totals == {
        ("writes", "api"): (1, 7),
        ("searches", "claude"): (1, found["tokens"]),
        ("hits", "claude"): (1, 0),
        ("chats", "api"): (1, 0),
    }
    [answers] = [each for each in usage["models"] if each["kind"] == "answers"]
    assert (answers["month"], answers["calls"] >= 1, answers["prompt_tokens"] > 0) == ("2026-05-01", True, True)
    own = (await client.get("/v1/usage", headers=bob)).json()
    assert [(each["operation"], each["count"]) for each in own["operations"]] == [("reads", 1)]
    assert own["models"] == []
    harness.clock.set(datetime(2026, 7, 2, tzinfo=harness.clock.now().tzinfo))
    assert (await client.get("/v1/usage", headers=alice)).json()["operations"] == []
    back = (await client.get("/v1/usage", params={"months": 3}, headers=alice)).json()
    assert (back["since"], len(back["operations"])) == ("2026-05-01", 4)
    refused = await client.get("/v1/usage", headers=bearer(await key_of(harness, "alice", permissions=["chat"])))
    assert refused.status_code == 403


async def test_the_hit_rate_is_the_share_of_searches_that_found_something(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, tool = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "alice", "claude"))

    async def rate(headers: dict[str, str] = alice, path: str = "/v1/entries") -> float | None:
        await harness.app.operations.settle()
        answer = await client.get(path, params={"stats": True}, headers=headers)
        found: float | None = answer.json()["stats"]["hit_rate"]
        return found

    assert await rate() is None
    await client.post("/v1/query", json={"question": "where do the bees live?"}, headers=alice)
    assert await rate() == 0.0
    await client.post("/v1/entries", json={"content": "The bees live in the garden."}, headers=alice)
    once = {**tool, "Idempotency-Key": "k1"}
    for _ in range(2):  # a repeat counts once
        await client.post("/v1/query", json={"question": "where do the bees live?"}, headers=once)
    assert await rate() == 0.5
    await client.get("/v1/agent/search", params={"q": "where do the bees live?"}, headers=tool)
    assert await rate() == 0.6667
    assert await rate(bearer(await key_of(harness, "bob"))) is None
    assert await rate(tool, "/v1/agent/entries") is None


async def test_who_is_erased_is_named_by_no_total_and_the_figures_stay(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    found, alice = await person(harness, "alice"), bearer(await key_of(harness, "alice"))
    await client.post("/v1/entries", json={"content": "x"}, headers=alice)
    await client.get("/v1/entries", headers=alice)
    tool = bearer(await key_of(harness, "alice", "zq-diagnosis"))
    await client.get("/v1/agent/entries", headers=tool)
    await harness.app.operations.settle()
    await client.get("/v1/entries", headers=alice)  # these wait to be stored while she is erased
    await client.get("/v1/agent/entries", headers=tool)
    await harness.command("alice", "/nexus forget everything --yes", dm="nexus")
    everyones = {("api", "writes"): 1, ("api", "reads"): 2, ("other", "reads"): 2}
    assert await counted(harness) == everyones
    assert await counted(harness, user=found.id) == {}
    assert await counted(harness, user=NO_ONE_ID) == everyones


async def test_an_erasure_and_the_writes_of_its_person_never_wait_for_each_other(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, span = bearer(await key_of(harness, "alice")), "--since 2026-05-01 --yes"
    await client.post("/v1/entries", json={"content": "x"}, headers=alice)
    for n in range(6):
        writes = [client.post("/v1/entries", json={"content": f"{n} {m}"}, headers=alice) for m in range(8)]
        once = alice | {"Idempotency-Key": f"k{n}"}
        await client.post("/v1/query", json={"question": "x?"}, headers=once)
        forgetting = harness.command("alice", f"/nexus forget everything {span}", dm="nexus")
        answers = await asyncio.gather(*writes[:4], forgetting, harness.app.operations.settle(), *writes[4:])
        assert {each.status_code for each in answers if isinstance(each, httpx2.Response)} == {201}


async def test_who_has_opted_out_is_not_named(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    found, alice = await person(harness, "alice"), bearer(await key_of(harness, "alice"))
    await harness.command("alice", "/nexus opt-out", dm="nexus")
    await client.get("/v1/entries", headers=alice)
    await client.post("/v1/entries", json={"content": "x"}, headers=alice)
    assert await counted(harness, user=found.id) == {}
    assert await counted(harness) == {("api", "reads"): 1, ("api", "writes"): 1}


async def test_totals_are_in_the_persons_export_and_report_and_deleted_with_the_usage(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = bearer(await key_of(harness, "alice"))
    await client.get("/v1/entries", headers=alice)
    await harness.app.operations.settle()
    answer = await harness.command("alice", "/nexus export", dm="nexus")
    assert answer.file is not None
    assert '"operation": "reads"' in answer.file.text
    report = (await harness.command("alice", "/nexus privacy", dm="nexus")).text
    assert "1 operation over the API" in report
    harness.clock.tick(timedelta(days=430).total_seconds())
    await schedule.run(harness.app, "retention", harness.clock.now())
    assert await counted(harness) == {}
