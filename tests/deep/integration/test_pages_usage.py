"""The page of usage, and the routes below it: one's own figures, everyone's for admins, and nobody's words."""

import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import httpx2
import pytest

from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.ports.models import WorkKind
from composer.repositories.usage import Figures, LedgerKey
from composer.settings import BudgetSettings, PlanSettings, PriceSettings, Settings
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness, open_harness
from tests.support.pages import BITES, Person
from tests.support.web import served_at

SECRET = "zqsecret"
ROOM, DM = {"room": "general"}, {"dm": "nexus"}
LIMITS: dict[str, Any] = {
    "plan": "small",
    "plans": {"small": PlanSettings(entries=10, writes=10)},
    "budgets": (BudgetSettings(per="day", tokens=1_000), BudgetSettings(per="month", tokens=70, kind="answers")),
}
PRICED: dict[str, Any] = {
    "prices": {"gpt-4o": PriceSettings(input=Decimal(2), output=Decimal(8))},
    "budgets": (BudgetSettings(per="day", money=Decimal(5)),),
}


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update=LIMITS)) as harness:
        yield harness


async def root_of(harness: AppHarness) -> None:
    """Make root an admin."""
    found = await person(harness, "root")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(found.id, True)


async def conversations(harness: AppHarness) -> list[uuid.UUID]:
    """All that there are."""
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        return [row["id"] for row in await connection.fetch("SELECT id FROM conversations ORDER BY id")]
    finally:
        await connection.close()


async def used(
    harness: AppHarness,
    name: str,
    tokens: int,
    place: uuid.UUID | None,
    model: str = "gpt-4o",
    days_ago: int = 0,
    cost: Decimal = Decimal(0),
) -> None:
    """Record that models used tokens for somebody."""
    found, here = await person(harness, name), harness.workspace()
    day = (harness.clock.now() - timedelta(days=days_ago)).date()
    agent = harness.app.directory.agents(here.tenant_id)[0].id
    key = LedgerKey(day, WorkKind.ANSWER, agent, place, found.id, model)
    async with harness.app.database.transaction(here.tenant_id) as tx:
        await tx.usage.add(
            key, Figures(calls=1, prompt_tokens=tokens, unpriced_tokens=0 if cost else tokens, cost=cost), 0
        )


async def test_who_is_no_admin_sees_their_own_alone(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await used(harness, "alice", 1_234, None)
    alice = Person(client, await cookie_of(harness, "alice"))
    before = [await alice.page(path) for path in ("/usage", "/usage?whose=everyone", "/usage?days=7")]
    assert "1,234" in before[0]
    assert before[1] == before[0], "asking for everyone's shows one's own"
    for text in before:
        assert "Everyone" not in text
        assert "What is left" not in text
    await used(harness, "bob", 77_777, None, "bobs-model")
    await client.post("/v1/entries", json={"content": SECRET}, headers=bearer(await key_of(harness, "bob")))
    assert [await alice.page(path) for path in ("/usage", "/usage?whose=everyone", "/usage?days=7")] == before
    key = bearer(await key_of(harness, "alice"))
    for by in ("day", "agent", "room", "person", "kind", "model"):
        found = (await client.get("/v1/usage/models", params={"by": by}, headers=key)).json()
        assert sum(each["prompt_tokens"] for each in found["items"]) == 1_234
    refused = await client.get("/v1/admin/usage/models", headers=key)
    assert refused.status_code == 403


async def test_an_admin_sees_everyones_figures_and_what_is_left(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    await root_of(harness)
    await harness.say("bob", SECRET, room=SECRET, private=True)
    await harness.say("bob", SECRET, **DM)
    await harness.say("bob", "good morning", **ROOM)
    for number, place in enumerate(await conversations(harness), 1):
        await used(harness, "bob", 1_000 * number, place)
    await used(harness, "alice", 55, None, days_ago=40)
    root = Person(client, await cookie_of(harness, "root"))
    own, everyone = await root.page("/usage"), await root.page("/usage?whose=everyone")
    assert "No model is set up: agents answer by quoting" in own
    assert SECRET not in own + everyone
    for text in ("#general", "DMs", "private rooms", "gpt-4o", "bob", "6,000 of 1,000 used", "nothing left"):
        assert text in everyone, text
    assert "alice" not in everyone, "it was earlier"
    assert "alice" in await root.page("/usage?whose=everyone&days=90")
    assert "0 of 10 used" in everyone
    key = bearer(await key_of(harness, "root"))
    rooms = (await client.get("/v1/admin/usage/models", params={"by": "room"}, headers=key)).json()["items"]
    assert {each["name"] for each in rooms} == {"#general", "DMs", "private rooms"}
    usage = (await client.get("/v1/admin/usage", headers=key)).json()
    assert usage["plan"] == "small"
    told = [(each["per"], each["kind"], each["tokens"], each["used"]) for each in usage["budgets"]]
    assert told == [("day", None, 1_000, 6_000), ("month", "answers", 70, 6_000)]


async def test_what_models_cost_is_shown_where_prices_are_set(settings: Settings) -> None:
    async with open_harness(settings.model_copy(update=PRICED)) as harness:
        await root_of(harness)
        await used(harness, "root", 600_000, None, cost=Decimal("1.2"))
        await used(harness, "root", 5_000, None, model="other")
        served = web_app(harness.app, Metrics([]), {}, None)
        async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
            shown = await Person(client, await cookie_of(harness, "root")).page("/usage")
            for text in ("1.20 USD", "tokens without a price", "1.20 USD of 5.00 USD used", "3.80 USD left"):
                assert text in shown, text
            key = bearer(await key_of(harness, "root"))
            models = (await client.get("/v1/usage/models", params={"by": "model"}, headers=key)).json()
            assert [(each["cost"], each["unpriced_tokens"]) for each in models["items"]] == [(1.2, 0), (0, 5_000)]
            assert models["currency"] == "USD"
            (budget,) = (await client.get("/v1/admin/usage", headers=key)).json()["budgets"]
            assert (budget["tokens"], budget["money"], budget["spent"]) == (None, 5, 1.2)


async def test_days_are_chosen_within_a_year(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await used(harness, "alice", 10, None, days_ago=3)
    await used(harness, "alice", 20, None)
    key = bearer(await key_of(harness, "alice"))
    today = harness.clock.now().date()

    async def asked(**params: Any) -> httpx2.Response:
        return await client.get("/v1/usage/models", params=params, headers=key)

    found = (await asked(since=str(today))).json()
    assert [(each["name"], each["prompt_tokens"]) for each in found["items"]] == [(str(today), 20)]
    assert len((await asked()).json()["items"]) == 2
    assert (await asked(since=str(today), until=str(today - timedelta(days=1)))).status_code == 422
    assert (await asked(since=str(today - timedelta(days=400)))).status_code == 422
    assert (await asked(by="words")).status_code == 422
    assert (await asked(until="0001-01-01")).status_code == 200
    alice = Person(client, await cookie_of(harness, "alice"))
    assert "7 days" in await alice.page("/usage?days=12"), "an odd number is the usual one"
    assert (await alice.get("/usage?days=100000")).status_code == 422


async def test_no_name_is_markup(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await root_of(harness)
    for bite in BITES:
        await used(harness, bite, 100, None, bite)
    root = Person(client, await cookie_of(harness, "root"))
    text = await root.page("/usage?whose=everyone")
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "<b hx-get" not in text
