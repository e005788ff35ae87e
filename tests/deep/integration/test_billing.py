"""Plans that are charged by a provider: bought and managed by admins on its pages, given and taken back as it says what
was paid, whatever order its events come in."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import pytest

from bot.console import schedule
from bot.console.doctor import run_doctor
from bot.web.app import web_app
from bot.web.metrics import Metrics
from bot.web.routes.billing import STRIPE_EVENTS_PATH
from composer.app import App
from composer.ingest.tenants import TenantDirectory
from composer.model import tenant_id
from composer.operations.billing import configured_billing
from composer.repositories.audit import AuditEvent
from composer.repositories.operations import Operation
from composer.settings import PlanSettings, Settings
from composer.usage.plans import Plan
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness, open_harness
from tests.support.pages import OWN, Person
from tests.support.stripe import FakeStripe, charged_by, open_stripe, signed
from tests.support.web import served_at

PLANS: Final = {
    "free": PlanSettings(writes=10),
    "team": PlanSettings(writes=1_000, price=("price_team", "price_team_old")),
    "firm": PlanSettings(price=("price_firm",), entries=1_000),
}
CREATED, UPDATED, DELETED = (f"customer.subscription.{each}" for each in ("created", "updated", "deleted"))


@dataclass
class Office:
    """A Nexus that sells plans, its web port, the provider and an admin, whose keys `headers` are."""

    harness: AppHarness
    client: httpx2.AsyncClient
    stripe: FakeStripe
    headers: dict[str, str]

    @property
    def app(self) -> App:
        return self.harness.app

    async def tell(self, about: Any, type: str = UPDATED, **sign: Any) -> httpx2.Response:
        """Have the provider send an event about something."""
        body = about if isinstance(about, bytes) else self.stripe.event(about, type)
        headers = signed(body, **{"at": self.harness.clock.tick(1)} | sign)
        return await self.client.post(STRIPE_EVENTS_PATH, content=body, headers=headers)

    async def shown(self) -> dict[str, Any]:
        answer = await self.client.get("/v1/billing", headers=self.headers)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def plan(self) -> str | None:
        """The name of the plan that holds, once this process has heard of what was stored."""
        found = await self.limits()
        return None if found is None else found.name

    async def limits(self) -> Plan | None:
        """The plan that holds."""
        tenant = self.harness.workspace().tenant_id
        async with self.app.database.transaction(tenant, "read") as tx:
            self.app.directory.take(tenant, await tx.settings.all())
        return self.app.directory.plan(tenant)

    async def buy(self, plan: str, headers: dict[str, str] | None = None) -> httpx2.Response:
        return await self.client.post("/v1/billing/checkout", json={"plan": plan}, headers=headers or self.headers)

    async def customer(self) -> str:
        """The customer that the organisation is, after its admin went to buy."""
        assert (await self.buy("team")).status_code == 200
        return next(reversed(self.stripe.customers))

    async def audited(self) -> list[AuditEvent]:
        """What was recorded of changed settings, oldest first."""
        async with self.app.database.transaction(self.harness.workspace().tenant_id, "read") as tx:
            return [each for each in reversed(await tx.audit.find(limit=100)) if each.act.startswith("setting.")]


def selling(settings: Settings, stripe: FakeStripe) -> Settings:
    """Settings with plans that the provider charges for."""
    changed = {
        **charged_by(stripe, PLANS),
        "plan": "free",
        "public_url": "http://localhost:8080",
        "requests_per_minute": 10_000,
        "admin_requests_per_minute": 10_000,
    }
    return settings.model_copy(update=changed)


async def make_admin(harness: AppHarness, name: str, workspace: str | None = None) -> dict[str, str]:
    found = await person(harness, name, workspace)
    async with harness.app.database.transaction(harness.workspace(workspace).tenant_id) as tx:
        await tx.people.set_admin(found.id, True)
    return bearer(await key_of(harness, name, workspace=workspace))


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with (
        open_stripe(datetime(2026, 5, 4, 9, tzinfo=UTC)) as stripe,
        open_harness(selling(settings, stripe)) as harness,
        served_at(web_app(harness.app, Metrics([]), {}, None)) as url,
        httpx2.AsyncClient(base_url=url, timeout=60) as client,
    ):
        yield Office(harness, client, stripe, await make_admin(harness, "root"))


async def test_a_plan_is_bought_on_the_providers_page_and_given_once_it_is_paid(office: Office) -> None:
    assert await office.shown() == {
        "plan": "free",
        "status": "none",
        "until": None,
        "ends": False,
        "changeable": True,
        "plans": ["team", "firm"],
    }
    page = (await office.buy("team")).json()["url"]
    assert urlsplit(page).hostname == "checkout.stripe.test"
    [customer] = office.stripe.customers
    _, path, form = office.stripe.asked[-1]
    tenant = str(office.harness.workspace().tenant_id)
    assert (path, form["customer"], form["line_items[0][price]"]) == ("/v1/checkout/sessions", customer, "price_team")
    assert form["success_url"] == form["cancel_url"] == "http://localhost:8080/usage"
    assert (form["mode"], form["subscription_data[metadata][nexus_tenant]"]) == ("subscription", tenant)
    assert await office.plan() == "free", "nothing is paid yet"
    held = office.stripe.subscribe(customer, "price_team")
    assert (await office.tell(held, CREATED)).status_code == 200
    assert await office.plan() == "team"
    shown = await office.shown()
    until = datetime.fromtimestamp(held["items"]["data"][0]["current_period_end"], UTC)
    assert (shown["plan"], shown["status"], shown["ends"]) == ("team", "active", False)
    assert datetime.fromisoformat(shown["until"]) == until
    [changed] = await office.audited()
    assert (changed.act, changed.actor, changed.details) == ("setting.set", None, {"key": "plan.name", "by": "billing"})


async def test_another_plan_takes_the_place_of_the_one_that_there_is(office: Office) -> None:
    customer = await office.customer()
    held = office.stripe.subscribe(customer, "price_team")
    await office.tell(held, CREATED)
    assert (await office.buy("team")).status_code == 409
    page = (await office.buy("firm")).json()["url"]
    assert urlsplit(page).hostname == "billing_portal.stripe.test", "a second subscription would be charged beside it"
    form, flow = office.stripe.asked[-1][2], "flow_data[subscription_update_confirm]"
    item = held["items"]["data"][0]["id"]
    assert (form[f"{flow}[subscription]"], form[f"{flow}[items][0][id]"]) == (held["id"], item)
    assert form[f"{flow}[items][0][price]"] == "price_firm"
    held["items"]["data"][0]["price"]["id"] = "price_firm"
    await office.tell(held)
    assert await office.plan() == "firm"
    portal = await office.client.post("/v1/billing/portal", headers=office.headers)
    assert urlsplit(portal.json()["url"]).hostname == "billing_portal.stripe.test"
    assert office.stripe.asked[-1][2] == {"customer": customer, "return_url": "http://localhost:8080/usage"}


async def test_where_the_provider_changes_no_plan_the_page_for_everything_is_shown(office: Office) -> None:
    held = office.stripe.subscribe(await office.customer(), "price_team")
    await office.tell(held, CREATED)
    office.stripe.changes_plans = False
    page = (await office.buy("firm")).json()["url"]
    assert urlsplit(page).hostname == "billing_portal.stripe.test"
    assert not [name for name in office.stripe.asked[-1][2] if name.startswith("flow_data")]


async def test_what_is_paid_stays_if_the_file_stops_giving_it(settings: Settings) -> None:
    async with open_stripe(datetime(2026, 5, 4, 9, tzinfo=UTC)) as stripe:
        sold = selling(settings, stripe)
        given = sold.model_copy(update={"plan": "team"})
        async with open_harness(given) as harness:
            billing = configured_billing(given, harness.app.directory, harness.app.database)
            assert billing is not None
            await make_admin(harness, "root")
            tenant = harness.workspace().tenant_id
            await billing.checkout(tenant, "acme", "team")
            stripe.subscribe(next(iter(stripe.customers)), "price_team")
            assert await billing.refresh(tenant, harness.clock.now())
            later = await TenantDirectory.load(sold, harness.app.database)
            assert later.plan_name(tenant) == "team"
            await later.stop()


@pytest.mark.parametrize("page", ["javascript:alert(1)//", "http://pay.example.com", "//pay.example.com", "https://"])
async def test_nobody_is_led_to_what_is_no_page_of_https(office: Office, page: str) -> None:
    office.stripe.pages = page
    assert (await office.buy("team")).status_code == 503
    assert (await office.client.post("/v1/billing/portal", headers=office.headers)).status_code == 503


async def test_a_plan_lasts_until_its_end_and_through_failed_payments_that_are_tried_again(office: Office) -> None:
    held = office.stripe.subscribe(await office.customer(), "price_team")
    await office.tell(held, CREATED)
    held["status"] = "past_due"
    await office.tell(held)
    assert ((await office.shown())["status"], await office.plan()) == ("past_due", "team")
    held |= {"status": "active", "cancel_at_period_end": True}
    await office.tell(held)
    assert ((await office.shown())["ends"], await office.plan()) == (True, "team")
    held["status"] = "canceled"
    await office.tell(held, DELETED)
    assert ((await office.shown())["status"], await office.plan()) == ("none", "free")
    held["status"] = "incomplete_expired"
    await office.tell(held)
    assert (await office.shown())["status"] == "none", "that one never comes back either"
    assert [(each.act, each.details["by"]) for each in await office.audited()] == [
        ("setting.set", "billing"),
        ("setting.reset", "billing"),
    ]


@pytest.mark.parametrize("status", ["incomplete", "unpaid", "paused"])
async def test_what_is_not_paid_gives_no_plan(office: Office, status: str) -> None:
    customer = await office.customer()
    held = office.stripe.subscribe(customer, "price_team", status=status)
    await office.tell(held, CREATED)
    assert ((await office.shown())["status"], await office.plan()) == (status, "free")
    page = (await office.buy("team")).json()["url"]
    pays_there = "billing_portal" if status in ("unpaid", "paused") else "checkout"
    assert urlsplit(page).hostname == f"{pays_there}.stripe.test"


async def test_events_may_come_twice_late_and_in_any_order(office: Office) -> None:
    customer = await office.customer()
    first = office.stripe.subscribe(customer, "price_team")
    made = office.stripe.event(first, CREATED)
    first["items"]["data"][0]["price"]["id"] = "price_firm"
    upgraded = office.stripe.event(first)
    for body in (upgraded, made, made, upgraded):
        assert (await office.tell(body)).status_code == 200
        assert await office.plan() == "firm", "the provider is asked what holds now"
    first["status"] = "canceled"
    for body in (office.stripe.event(first, DELETED), upgraded, made):
        await office.tell(body)
        assert await office.plan() == "free"
    assert [each.act for each in await office.audited()] == ["setting.set", "setting.reset"], "each counts once"


async def test_of_two_events_at_once_the_later_state_is_kept(office: Office) -> None:
    """The first one is told the earlier state, and stores what it was told after the second one has."""
    held = office.stripe.subscribe(await office.customer(), "price_team")
    looked_up, go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        office.stripe.before_customer = office_waits_no_more
        looked_up.set()
        await go_on.wait()

    async def office_waits_no_more() -> None:
        """The others are answered at once."""

    office.stripe.before_customer = wait
    early = asyncio.create_task(office.tell(held, CREATED))
    await looked_up.wait()
    held["status"] = "canceled"
    assert (await office.tell(held, DELETED)).status_code == 200
    go_on.set()
    assert (await early).status_code == 200
    assert ((await office.shown())["status"], await office.plan()) == ("none", "free")


async def test_forged_old_and_odd_events_change_nothing(office: Office) -> None:
    held = office.stripe.subscribe(await office.customer(), "price_team")
    now, asked = office.harness.clock.now(), len(office.stripe.asked)
    body = office.stripe.event(held, CREATED)
    good = signed(body, now)["Stripe-Signature"]
    stamp = good.partition(",")[0]
    refused = {
        "another secret": signed(body, now, "whsec_other")["Stripe-Signature"],
        "too old": signed(body, now - timedelta(seconds=301))["Stripe-Signature"],
        "too early": signed(body, now + timedelta(seconds=301))["Stripe-Signature"],
        "another time than was signed": good.replace(stamp, f"t={int(now.timestamp()) - 1}"),
        "another scheme": signed(body, now, scheme="v0")["Stripe-Signature"],
        "no time": good.partition(",")[2],
        "no signature": stamp,
        "nothing": "",
        "odd": "t=,v1",
        "a time that is no number": good.replace(stamp, "t=١٢٣"),
        "a long time": good.replace(stamp, "t=" + "9" * 5_000),
        "no ASCII": f"{stamp},v1=é",
    }
    for name, header in refused.items():
        given = {b"Stripe-Signature": header.encode()}
        answer = await office.client.post(STRIPE_EVENTS_PATH, content=body, headers=given)
        assert answer.status_code == 401, name
    changed = await office.client.post(
        STRIPE_EVENTS_PATH, content=body.replace(b"active", b"unpaid"), headers={"Stripe-Signature": good}
    )
    assert changed.status_code == 401
    for odd in (b"", b"{", b"[]", b'{"type": "x"}', b'{"type": "x", "data": {"object": 3}}', b"\xff"):
        assert (await office.tell(odd)).status_code == 400, odd
    assert len(office.stripe.asked) == asked, "nobody is asked because of them"
    assert await office.plan() == "free"
    two = {"Stripe-Signature": f"{stamp},v1={'0' * 64},{good.partition(',')[2]}"}  # while a secret is being replaced
    assert (await office.client.post(STRIPE_EVENTS_PATH, content=body, headers=two)).status_code == 200
    assert await office.plan() == "team"


async def test_events_about_nobody_here_and_about_others_change_nothing(office: Office) -> None:
    other = await make_admin(office.harness, "boss", "umbrella")
    ours, theirs = await office.customer(), ""
    assert (await office.buy("firm", other)).status_code == 200
    theirs = next(reversed(office.stripe.customers))
    assert theirs != ours
    held = office.stripe.subscribe(theirs, "price_firm")
    claimed = held | {"metadata": {"nexus_tenant": str(office.harness.workspace().tenant_id)}}
    stranger = {"id": "sub_x", "object": "subscription", "customer": "cus_stranger", "metadata": {}}
    odd = stranger | {"metadata": {"nexus_tenant": "no id"}}
    nobodys = stranger | {"metadata": {"nexus_tenant": str(tenant_id("nobody"))}}
    invoice = {"id": "price_team", "object": "price"}
    elsewhere = stranger | {"customer": "../prices/price_team"}
    for about in (claimed, stranger, odd, nobodys, invoice, elsewhere):
        assert (await office.tell(about)).status_code == 200
    assert not [path for _, path, _ in office.stripe.asked if path.startswith("/v1/prices")]
    assert await office.plan() == "free"
    await office.tell(held | {"metadata": {}}, CREATED)
    tenant = office.harness.workspace("umbrella").tenant_id
    async with office.app.database.transaction(tenant, "read") as tx:
        assert json.loads((await tx.settings.all())["plan.name"]) == "firm"
    assert await office.plan() == "free", "each organisation has what it has paid for"


async def test_only_admins_buy_and_see_what_was_paid(office: Office) -> None:
    alice = bearer(await key_of(office.harness, "alice"))
    tool = bearer(await key_of(office.harness, "root", "claude"))
    for headers in (alice, tool):
        assert (await office.client.get("/v1/billing", headers=headers)).status_code == 403
        assert (await office.buy("team", headers)).status_code == 403
        assert (await office.client.post("/v1/billing/portal", headers=headers)).status_code == 403
    assert (await office.client.get("/v1/billing")).status_code == 401
    assert not office.stripe.asked
    assert (await office.client.post("/v1/billing/portal", headers=office.headers)).status_code == 409
    unknown = await office.buy("free")
    assert (unknown.status_code, unknown.json()["detail"]) == (
        422,
        "There is no plan 'free' to buy: choose one of team, firm.",
    )


async def test_one_organisation_is_one_customer(office: Office) -> None:
    answers = await asyncio.gather(*(office.buy("team") for _ in range(3)))
    assert {each.status_code for each in answers} == {200}
    assert len(office.stripe.customers) == 1
    [customer] = office.stripe.customers
    assert "root" not in json.dumps([office.stripe.asked, office.stripe.customers]), "the provider is told of nobody"
    office.stripe.customers[customer] = {"id": customer, "object": "customer", "deleted": True}
    assert (await office.buy("team")).status_code == 200, "another one is made in place of one that is gone"
    assert len(office.stripe.customers) == 2


async def test_a_price_of_former_days_gives_its_plan_and_one_of_none_changes_nothing(office: Office) -> None:
    customer = await office.customer()
    held = office.stripe.subscribe(customer, "price_team_old")
    await office.tell(held, CREATED)
    assert await office.plan() == "team"
    held["items"]["data"][0]["price"]["id"] = "price_of_none"
    await office.tell(held)
    assert await office.plan() == "team", "it is paid, and whoever runs Nexus has to say for what"


async def test_what_an_operator_chose_stays_until_something_else_is_paid(office: Office) -> None:
    held = office.stripe.subscribe(await office.customer(), "price_team")
    await office.tell(held, CREATED)

    async def choose(**chosen: Any) -> dict[str, Any]:
        await office.plan()
        answer = await office.client.patch("/v1/admin/settings", json={"plan": chosen}, headers=office.headers)
        assert answer.status_code == 200, answer.text
        return {each["name"]: each["value"] for each in answer.json()["plan"]}

    assert (await choose(name="FIRM"))["name"] == "firm"
    await office.tell(held)
    assert await office.limits() == Plan("firm", 1_000), "nothing else was paid"
    await choose(name=None, writes=7)
    held["items"]["data"][0]["price"]["id"] = "price_firm"
    await office.tell(held)
    assert await office.limits() == Plan("firm", 1_000, None, {Operation.WRITES: 7}), "a limit by itself stays"
    await choose(name="", writes=None)
    assert await office.plan() is None
    unknown = {"plan": {"name": "none such"}}
    refused = await office.client.patch("/v1/admin/settings", json=unknown, headers=office.headers)
    assert refused.status_code == 422
    boss = await make_admin(office.harness, "boss", "umbrella")
    refused = await office.client.patch("/v1/admin/settings", json={"plan": {"name": "firm"}}, headers=boss)
    assert refused.status_code == 403, "in an installation of several it costs whoever looks after it"


async def test_the_only_organisation_gives_itself_no_plan_that_is_sold(settings: Settings) -> None:
    async with open_stripe(datetime(2026, 5, 4, 9, tzinfo=UTC)) as stripe:
        sold = selling(settings, stripe).model_copy(update={"owner": None})
        async with (
            open_harness(sold) as harness,
            served_at(web_app(harness.app, Metrics([]), {}, None)) as url,
            httpx2.AsyncClient(base_url=url, timeout=60) as client,
        ):
            headers = await make_admin(harness, "root")
            for chosen in ({"name": "firm"}, {"writes": "unlimited"}):
                refused = await client.patch("/v1/admin/settings", json={"plan": chosen}, headers=headers)
                assert refused.status_code == 403, chosen
            assert (
                await client.post("/v1/billing/checkout", json={"plan": "firm"}, headers=headers)
            ).status_code == 200


async def test_a_lost_event_is_made_up_for_by_the_daily_job(office: Office) -> None:
    held = office.stripe.subscribe(await office.customer(), "price_team")
    await schedule.run(office.app, "billing", office.harness.clock.tick(60))
    assert await office.plan() == "team"
    held["status"] = "canceled"
    await schedule.run(office.app, "billing", office.harness.clock.tick(60))
    assert await office.plan() == "free"
    before = await office.audited()
    await schedule.run(office.app, "billing", office.harness.clock.tick(60))
    assert await office.audited() == before


async def test_a_provider_that_is_away_is_said_and_its_event_comes_again(office: Office) -> None:
    held = office.stripe.subscribe(await office.customer(), "price_team")
    for status in (500, 429, 409):
        office.stripe.status = status
        assert (await office.tell(held, CREATED)).status_code == 503
        answer = await office.buy("firm")
        assert (answer.status_code, answer.json()["detail"]) == (
            503,
            "The billing provider does not answer: try again later.",
        )
    office.stripe.status = 401
    answer = await office.buy("firm")
    assert (answer.status_code, answer.json()["detail"]) == (
        500,
        "Billing is not set up right: tell whoever runs Nexus.",
    )
    office.stripe.status = 0
    await office.tell(held, CREATED)
    assert await office.plan() == "team"


async def test_admins_find_it_on_the_page_of_usage(office: Office) -> None:
    root = Person(office.client, await cookie_of(office.harness, "root"))
    alice = Person(office.client, await cookie_of(office.harness, "alice"))
    shown = await root.page("/usage")
    assert "Change plan" in shown
    assert "Manage billing" not in shown
    assert "Change plan" not in await alice.page("/usage")
    pressed = await root.press("/usage/plan", plan="team")
    assert 'http-equiv="refresh" content="0;url=https://checkout.stripe.test/' in pressed.text
    assert "form-action 'self'" in pressed.headers["content-security-policy"]
    for path, values in (("/usage/plan", {"plan": "team"}), ("/usage/billing", {})):
        assert (await alice.press(path, **values)).status_code == 404
        assert (await root.press(path, csrf="0", **values)).status_code == 403
    held = office.stripe.subscribe(next(iter(office.stripe.customers)), "price_team")
    await office.tell(held, CREATED)
    await office.plan()
    shown = await root.page("/usage")
    assert "paid until" in shown
    assert "Manage billing" in shown
    assert "https://billing_portal.stripe.test/" in (await root.press("/usage/billing")).text
    refused = await root.press("/usage/plan", plan="team")
    assert (refused.status_code, "This workspace has that plan already." in refused.text) == (409, True)
    for state, said in (
        ({"cancel_at_period_end": True}, "ends on"),
        ({"status": "past_due"}, "The last payment failed. It is tried again"),
        ({"status": "unpaid"}, "Something is still to be paid"),
    ):
        held.update(state)
        await office.tell(held)
        assert said in await root.page("/usage")


async def test_nothing_is_shown_where_billing_is_off(settings: Settings) -> None:
    plans = {"free": PlanSettings(writes=10)}
    async with (
        open_harness(settings.model_copy(update={"plan": "free", "plans": plans})) as harness,
        served_at(web_app(harness.app, Metrics([]), {}, None)) as url,
        httpx2.AsyncClient(base_url=url, timeout=60) as client,
    ):
        headers = await make_admin(harness, "root")
        found = (await client.get("/v1/billing", headers=headers)).json()
        assert (found["plan"], found["status"], found["changeable"], found["plans"]) == ("free", None, False, [])
        for path, body in (("checkout", {"plan": "free"}), ("portal", None)):
            answer = await client.post(f"/v1/billing/{path}", json=body, headers=headers)
            assert (answer.status_code, answer.json()["detail"]) == (
                404,
                "Plans are not sold here: whoever runs Nexus sets them.",
            )
        root = Person(client, await cookie_of(harness, "root"))
        shown = await root.page("/usage")
        assert "Change plan" not in shown
        assert "Manage billing" not in shown
        assert (await root.press("/usage/plan", plan="free")).status_code == 404
        assert (await client.post(STRIPE_EVENTS_PATH, content=b"{}", headers=OWN)).status_code == 404
        await schedule.run(harness.app, "billing", harness.clock.tick(60))


async def test_the_doctor_asks_for_every_price_that_is_sold(settings: Settings) -> None:
    async with open_stripe(datetime(2026, 5, 4, 9, tzinfo=UTC)) as stripe:
        sold = selling(settings, stripe)

        async def said(*, live: bool = True) -> tuple[bool | None, str]:
            [found] = [each for each in await run_doctor(sold, live=live) if each.name == "billing"]
            return found.ok, found.detail

        assert await said(live=False) == (None, "team, firm: not asked; nexus doctor --live does")
        assert await said() == (True, "Stripe answers, in test mode, and sells team, firm")
        stripe.sell("price_firm", active=False)
        assert await said() == (False, "price_firm, the price of the plan firm, is not active and recurring at Stripe.")
        del stripe.prices["price_team"]
        assert await said() == (False, "Stripe knows no price_team, the price of the plan team.")
        stripe.status = 401
        ok, detail = await said()
        assert (ok, detail.startswith("Stripe refuses /v1/prices/price_team (401)")) == (False, True)
