"""What models use is recorded, kept within budgets, shown to those who may see it, and blanked with its people."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import asyncpg
import pytest
from structlog.testing import capture_logs

from bot.console import schedule
from bot.console import usage as reporting
from bot.console.doctor import run_doctor
from bot.script.places import incoming
from composer.errors import BadInput, BudgetUsedUp
from composer.model import Agent, Usage, conversation_id, user_id
from composer.ports.models import ChatMessage, Chunk, Work, WorkKind
from composer.repositories.usage import NO_ONE_ID, Dimension
from composer.settings import AgentSettings, BudgetSettings, PriceSettings, Settings, TenantSettings
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.models.tokens import tokenizer_for
from composer.usage.budgets import Budget, BudgetPeriod
from composer.usage.ledger import CallLedger, UsageRules
from composer.usage.meter import Meter
from composer.usage.prices import Prices
from tests.support.canaries import place
from tests.support.databases import service_url
from tests.support.harness import START, AppHarness, open_harness
from tests.support.model_server import Fail, ModelServer, Raw, Say
from tests.support.waiting import TIMEOUT_SECONDS, until

ROOM: dict[str, Any] = {"room": "general"}
# Too long to stand whole in a summary.
LONG_TALK: Final = [
    (("alice", "bob")[n % 2], f"we decided to ship part {n} of the order to Rotterdam this week") for n in range(16)
]
DM: dict[str, Any] = {"dm": "nexus"}
PRICES = {"m": PriceSettings(input=Decimal(1), cached_input=Decimal("0.1"), output=Decimal(10))}
ROWS = """
    SELECT u.kind, a.slug, c.kind AS place, p.name, u.model, u.calls, u.failures, u.prompt_tokens > 0
    FROM model_usage AS u
    LEFT JOIN agents AS a ON a.id = u.agent_id
    LEFT JOIN conversations AS c ON c.id = u.conversation_id
    LEFT JOIN users AS p ON p.id = u.user_id ORDER BY 1, 2, 3, 4, 5
"""


@dataclass
class Paid:
    """A harness whose agents ask a model behind a socket."""

    harness: AppHarness
    server: ModelServer

    async def rows(self, statement: str = ROWS) -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(self.harness.app.settings.database_url)
        try:
            return [tuple(row) for row in await connection.fetch(statement)]
        finally:
            await connection.close()

    @property
    def models_asked(self) -> list[str]:
        return [each.body["model"] for each in self.server.requests if each.path.endswith("/chat/completions")]

    async def post(self, *messages: tuple[str, str], where: dict[str, Any] | None = None) -> None:
        """Messages that no agent answers."""
        here = self.harness.workspace()
        for user, text in messages:
            message = incoming(here, place(where or ROOM), user, text, self.harness.clock.tick(1), id=text)
            await self.harness.app.receive(here, [message], answer=False)
        await self.harness.app.indexer.catch_up(here.tenant_id)

    async def extract(self) -> int:
        assert self.harness.app.extractions is not None
        self.harness.clock.tick(600)
        return await self.harness.app.extractions.learn_due(self.harness.workspace().tenant_id)

    async def cost(self) -> Decimal:
        ((cost,),) = await self.rows("SELECT coalesce(sum(cost), 0) FROM model_usage")
        return Decimal(cost)


@asynccontextmanager
async def paid(settings: Settings, *budgets: BudgetSettings, **changes: Any) -> AsyncIterator[Paid]:
    async with ModelServer() as server:
        agent = {"model": "m", **changes.pop("agent", {})}
        update = {
            "openai_base_url": server.url,
            "agents": (AgentSettings(**agent),),
            "model_timeout": TIMEOUT_SECONDS,
            "prices": PRICES,
            "budgets": budgets,
            **changes,
        }
        async with open_harness(settings.model_copy(update=update)) as harness:
            yield Paid(harness, server)


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Paid]:
    async with paid(settings) as opened:
        yield opened


async def test_every_kind_of_call_is_recorded_with_whom_it_was_for(office: Paid) -> None:
    harness = office.harness
    await harness.ask("alice", "@nexus hello?", **ROOM)
    await harness.ask("bob", "hello?", **DM)
    office.server.default = Say((json.dumps({"memory": []}),))
    await office.extract()
    await office.extract()
    office.server.default = Say(("1, 2",))
    await office.post(*LONG_TALK)
    await schedule.run(harness.app, "session", harness.clock.tick(4 * 3_600))
    kinds = sorted({row[:6] for row in await office.rows()}, key=str)
    assert kinds == [
        ("answers", "nexus", "dm", "bob", "m", 1),
        ("answers", "nexus", "room", "alice", "m", 1),
        ("extraction", "nexus", "dm", "bob", "m", 1),
        ("extraction", "nexus", "room", None, "m", 1),
        ("summaries", "nexus", "room", None, "m", 1),
    ]
    assert all(row[7] for row in await office.rows())
    assert await office.cost() > 0


async def test_cached_and_fresh_tokens_have_their_own_price(office: Paid) -> None:
    office.server.default = Say(("yes", "and", "no"), cached=2)
    await office.harness.ask("alice", "@nexus hello?", **ROOM)
    ((prompt, cached, completion, unpriced),) = await office.rows(
        "SELECT prompt_tokens, cached_tokens, completion_tokens, unpriced_tokens FROM model_usage"
    )
    assert (cached, completion, unpriced) == (2, 3, 0)
    assert await office.cost() == (Decimal(prompt - 2) + Decimal("0.2") + 30) / 1_000_000


async def test_calls_of_a_model_without_a_price_are_counted_in_tokens_alone(settings: Settings) -> None:
    async with paid(settings, prices={}) as office:
        await office.harness.ask("alice", "@nexus hello?", **ROOM)
        ((prompt, completion, unpriced, cost),) = await office.rows(
            "SELECT prompt_tokens, completion_tokens, unpriced_tokens, cost FROM model_usage"
        )
        assert (unpriced, cost) == (prompt + completion, 0)


async def test_tokens_are_estimated_where_the_api_reports_none_and_failures_are_counted(office: Paid) -> None:
    office.server.refuses_stream_options = True
    await office.harness.ask("alice", "@nexus hello?", **ROOM)
    office.server.default = Fail(401)
    await office.harness.ask("alice", "@nexus hello again?", **ROOM)
    figures = "SELECT calls, failures, estimated, prompt_tokens > 100, completion_tokens FROM model_usage"
    assert await office.rows(figures) == [(2, 1, 1, True, 4)]


async def test_offline_answers_use_nothing(settings: Settings) -> None:
    async with open_harness(settings) as harness:
        await harness.ask("alice", "@nexus hello?", **ROOM)
        async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
            assert await tx.usage.spent(START.date()) == []


async def test_days_are_those_of_the_tenants_time_zone(settings: Settings) -> None:
    acme = TenantSettings(workspaces=("acme",), timezone="Asia/Tokyo")
    async with paid(settings, tenants={"acme": acme}) as office:
        office.harness.clock.set(datetime(2026, 5, 4, 14, 50, tzinfo=UTC))
        await office.harness.ask("alice", "@nexus hello?", **ROOM)
        office.harness.clock.set(datetime(2026, 5, 4, 15, 10, tzinfo=UTC))
        await office.harness.ask("alice", "@nexus hello?", **ROOM)
        assert await office.rows("SELECT day FROM model_usage ORDER BY day") == [
            (date(2026, 5, 4),),
            (date(2026, 5, 5),),
        ]


# --- budgets ----------------------------------------------------------------------------------------------------------


async def test_without_a_budget_left_a_question_is_answered_by_one_plain_sentence(settings: Settings) -> None:
    async with paid(
        settings, BudgetSettings(per="day", tokens=1_600, kind="answers"), agent={"tools": False}
    ) as office:
        with capture_logs() as logs:
            replies = [await office.harness.ask("alice", "@nexus hello?", **ROOM) for _ in range(7)]
        assert replies[-1].text == (
            "What may be spent on answers today is used up, so I can't answer. Ask again tomorrow; an admin of the "
            "workspace can see more with /nexus usage --everyone."
        )
        assert [log["event"] for log in logs if log["event"].startswith("budget.")] == ["budget.used_up"]


async def test_a_budget_that_is_smaller_than_one_answer_is_to_be_raised_and_not_waited_for(
    settings: Settings,
) -> None:
    async with paid(settings, BudgetSettings(per="day", tokens=1, kind="answers")) as office:
        with capture_logs() as logs:
            reply = await office.harness.ask("alice", "@nexus hello?", **ROOM)
            await office.harness.ask("alice", "@nexus hello again?", **ROOM)
        assert reply.failed
        assert reply.text == (
            "The whole budget for answers of a day is smaller than what this may need, so I can't answer, and not "
            "later either. Whoever runs Nexus can raise it."
        )
        assert office.models_asked == []
        assert [log["event"] for log in logs].count("budget.too_small") == 1, "the operator is told once"
        (check,) = [
            each
            for each in await run_doctor(office.harness.app.settings, clock=office.harness.clock)
            if each.name == "usage"
        ]
        assert check.ok is None
        assert "acme: answers: 1 tokens a day: 0 tokens used; 2 calls refused, which were not answered" in check.detail


async def test_a_budget_has_room_again_on_the_next_day(settings: Settings) -> None:
    async with paid(settings, BudgetSettings(per="day", tokens=1_600), agent={"tools": False}) as office:
        asked = [await office.harness.ask("alice", "@nexus hello?", **ROOM) for _ in range(6)]
        assert not asked[0].failed
        assert asked[-1].failed
        ((used,),) = await office.rows("SELECT sum(prompt_tokens + completion_tokens) FROM model_usage")
        assert used <= 1_600
        office.harness.clock.tick(24 * 3_600)
        assert not (await office.harness.ask("alice", "@nexus hello?", **ROOM)).failed


async def test_a_budget_of_a_month_goes_on_over_days_and_a_budget_of_another_tenant_does_not_count(
    settings: Settings,
) -> None:
    other = BudgetSettings(per="month", money=Decimal(0), tenant="other")
    budgets = (other, BudgetSettings(per="month", tokens=1_600))
    async with paid(settings, budgets[0]) as office:
        assert not (await office.harness.ask("alice", "@nexus hello?", **ROOM)).failed
        assert (await office.harness.ask("alice", "@nexus hello?", workspace="other", **ROOM)).failed
    async with paid(settings, budgets[1], agent={"tools": False}) as office:
        for _ in range(6):
            await office.harness.ask("alice", "@nexus hello?", **ROOM)
        office.harness.clock.tick(24 * 3_600)
        assert "on the first of the next month" in (await office.harness.ask("alice", "@nexus hello?", **ROOM)).text
        office.harness.clock.set(datetime(2026, 6, 1, 9, tzinfo=UTC))
        assert not (await office.harness.ask("alice", "@nexus hello?", **ROOM)).failed


class Gate:
    """A model that answers once it is let."""

    def __init__(self) -> None:
        self.asked, self.open = asyncio.Event(), asyncio.Event()

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        self.asked.set()
        await self.open.wait()
        yield Chunk("yes")
        yield Chunk(usage=Usage(10, 1))


async def test_a_call_that_is_running_counts_with_the_most_that_it_may_use(harness: AppHarness) -> None:
    tenant, gate = harness.workspace().tenant_id, Gate()
    rules = UsageRules((), Prices({}), lambda _: [Budget(BudgetPeriod.DAY, tokens=1_500)], lambda _: UTC)
    calls = CallLedger(harness.app.database, harness.clock, uuid.uuid4, rules)
    meter = Meter(calls, gate, tokenizer_for, harness.clock)
    work = Work(tenant, WorkKind.ANSWER, replace(harness.app.directory.agents(tenant)[0], model="m"))

    async def ask() -> str:
        return "".join([chunk.text async for chunk in meter.stream(work, [ChatMessage("user", "hello?")])])

    first = asyncio.create_task(ask())
    await gate.asked.wait()
    with pytest.raises(BudgetUsedUp):
        await asyncio.wait_for(ask(), TIMEOUT_SECONDS)
    gate.open.set()
    assert await first == "yes"
    assert await ask() == "yes", "it counts with what it used once it has ended"


async def test_without_a_budget_left_patterns_extract_and_the_messages_leave_the_queue(settings: Settings) -> None:
    async with paid(settings, BudgetSettings(per="day", money=Decimal(0), kind="extraction")) as office:
        await office.post(("alice", "I prefer tabs over spaces"))
        assert await office.extract() == 1
        assert office.models_asked == []
        assert await office.rows("SELECT origin, author FROM memories") == [("extracted", "alice")]
        assert await office.rows("SELECT count(*) FROM extraction_queue") == [(0,)]
        assert not (await office.harness.ask("alice", "@nexus hello?", **ROOM)).failed


async def test_without_a_budget_left_summaries_are_extractive(settings: Settings) -> None:
    async with paid(settings, BudgetSettings(per="day", tokens=0, kind="summaries"), extraction="off") as office:
        await office.post(*LONG_TALK)
        await schedule.run(office.harness.app, "session", office.harness.clock.tick(4 * 3_600))
        assert office.models_asked == []
        assert await office.rows("SELECT model FROM summaries") == [("extractive",)]


async def test_a_budget_in_money_asks_only_models_with_a_price(settings: Settings) -> None:
    budget = BudgetSettings(per="day", money=Decimal(100))
    async with paid(settings, budget, agent={"model": "unpriced"}) as office:
        reply = await office.harness.ask("alice", "@nexus hello?", **ROOM)
        assert (reply.failed, office.server.requests) == (True, [])
        assert "has no price, so I can't answer: tell whoever runs Nexus." in reply.text
    async with paid(settings, budget, agent={"model": "unpriced", "fallback_models": ("also-unpriced", "m")}) as office:
        reply = await office.harness.ask("alice", "@nexus hello?", **ROOM)
        assert (reply.failed, office.models_asked) == (False, ["m"])


@pytest.mark.parametrize("prompt", [0, 1, -5, 10**12, "many", None])
async def test_of_an_answer_whose_usage_can_not_be_true_our_own_count_is_recorded(
    settings: Settings, prompt: Any
) -> None:
    async with paid(settings) as office:
        usage = {"prompt_tokens": prompt, "completion_tokens": 0}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello."}}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
        office.server.script.append(Raw(json.dumps(body).encode(), "application/json"))
        await office.harness.ask("alice", f"@nexus hello? {'word ' * 2_000}", **ROOM)
        figures = "SELECT calls, estimated, prompt_tokens BETWEEN 2000 AND 5000, completion_tokens FROM model_usage"
        assert await office.rows(figures) == [(1, 1, True, 3)]


# --- fallback models --------------------------------------------------------------------------------------------------


async def test_a_fallback_model_answers_when_the_first_one_fails_and_the_stored_answer_names_it(
    settings: Settings,
) -> None:
    async with paid(settings, agent={"fallback_models": ("other/b", "c")}) as office:
        office.server.models = {"c"}
        reply = await office.harness.ask("alice", "@nexus hello?", **ROOM)
        assert (reply.failed, reply.text) == (False, "Hello there.")
        assert office.models_asked == ["m", "other/b", "c"]
        assert await office.rows("SELECT model FROM turns") == [("c",)]
        why = (await office.harness.command("alice", "/nexus why --details", **ROOM)).text
        assert why.startswith("Model: c. That answer's prompt had ")
        assert await office.rows("SELECT model, calls, failures FROM model_usage ORDER BY 1") == [
            ("c", 1, 0),
            ("m", 1, 1),
            ("other/b", 1, 1),
        ]


async def test_a_model_that_keeps_failing_is_skipped_until_the_pause_is_over(settings: Settings) -> None:
    async with paid(settings, agent={"fallback_models": ("b",)}) as office:
        office.server.models = {"b"}
        for _ in range(3):
            office.harness.clock.tick(-60)  # `ask` moves the clock by a minute
            await office.harness.ask("alice", "@nexus hello?", **ROOM)
        office.server.requests.clear()
        office.harness.clock.tick(-60)
        await office.harness.ask("alice", "@nexus hello?", **ROOM)
        assert office.models_asked == ["b"]
        office.server.models = None
        office.server.requests.clear()
        await office.harness.ask("alice", "@nexus hello?", **ROOM)
        assert office.models_asked == ["m"]


async def test_an_answer_that_has_begun_is_not_begun_again_by_another_model(settings: Settings) -> None:
    async with paid(settings, agent={"fallback_models": ("b",)}) as office:
        assert not (await office.harness.ask("alice", "@nexus hi?", **ROOM)).failed
        office.server.script.append(Say(("Half an ans",), drop=True))
        assert (await office.harness.ask("alice", "@nexus hello?", **ROOM)).failed
        assert office.models_asked == ["m", "m"]


# --- prompts that are too long, and hidden reasoning ------------------------------------------------------------------


async def test_a_prompt_that_is_too_long_for_the_model_is_answered_by_a_smaller_one_once(office: Paid) -> None:
    harness = office.harness
    await harness.say_all("alice", [f"{n} " + f"part{n} " * 40 for n in range(30)], **ROOM)
    office.server.max_words = 900
    with capture_logs() as logs:
        reply = await harness.ask("alice", "@nexus and now?", **ROOM)
    assert (reply.failed, reply.text) == (False, "Hello there.")
    first, second = (sum(len(m["content"]) for m in each.body["messages"]) for each in office.server.requests)
    assert second < first * 0.7
    assert reply.prompt is not None
    assert "and now?" in json.dumps(office.server.requests[-1].body)
    assert len(harness.delivery.started) == 1
    assert "prompt.too_long" in [log["event"] for log in logs]
    assert await office.rows("SELECT count(*) FROM compactions") == [(0,)], "the view shrinks for this answer alone"
    office.server.max_words = 1
    office.server.requests.clear()
    reply = await harness.ask("alice", "@nexus and then?", **ROOM)
    assert reply.text == "This is too long for the model that answers here: write less, or tell whoever runs Nexus."
    assert "finds the prompt longer" in reply.failure_details
    assert len(office.server.requests) == 2


async def test_a_reasoning_model_writes_summaries_and_answers_probes(settings: Settings) -> None:
    async with paid(settings, extraction="off") as office:
        office.server.default = Say(("1",), reasoning=900)
        await office.post(*LONG_TALK)
        await schedule.run(office.harness.app, "session", office.harness.clock.tick(4 * 3_600))
        written = ("m", f"alice: {LONG_TALK[0][1]}\n\u2026\nalice: {LONG_TALK[2][1]}\n\u2026")
        assert await office.rows("SELECT model, text FROM summaries") == [written]
        ((calls, completion),) = await office.rows("SELECT calls, completion_tokens FROM model_usage")
        assert (calls, completion > 900) == (1, True), "the request that was in vain is counted too"
        checks = await run_doctor(office.harness.app.settings, clock=office.harness.clock, live=True)
        assert {check.name: check.ok for check in checks}["model of @nexus"] is True


async def test_a_summary_that_fails_is_said_by_doctor(settings: Settings) -> None:
    async with paid(settings, extraction="off") as office:
        office.server.default = Say(reasoning=10**7)
        await office.post(*LONG_TALK)
        await schedule.run(office.harness.app, "session", office.harness.clock.tick(4 * 3_600))
        (check,) = [
            each
            for each in await run_doctor(office.harness.app.settings, clock=office.harness.clock)
            if each.name == "usage"
        ]
        assert (check.ok, check.detail) == (None, "acme: calls that failed today: 1 of summaries")


@pytest.mark.parametrize("model", [{"extraction_model": "x"}, {"agent": {"summary_model": "x"}}])
async def test_doctor_asks_every_model_that_is_named(settings: Settings, model: dict[str, Any]) -> None:
    async with paid(settings, **model) as office:
        office.server.models = {"m"}
        checks = await run_doctor(office.harness.app.settings, clock=office.harness.clock, live=True)
        by_name = {check.name: check.ok for check in checks}
        assert (by_name["model of @nexus"], by_name["model x"]) == (True, False)
        nowhere = office.harness.app.settings.model_copy(update={"openai_base_url": None})
        by_name = {check.name: check.ok for check in await run_doctor(nowhere, clock=office.harness.clock, live=True)}
        assert (by_name["model of @nexus"], by_name["model x"]) == (False, False)


# --- people -----------------------------------------------------------------------------------------------------------


async def test_forgetting_everything_takes_a_person_and_their_dm_out_of_the_ledger_and_leaves_the_figures(
    office: Paid,
) -> None:
    harness = office.harness
    await harness.ask("alice", "@nexus hello?", **ROOM)
    await harness.ask("alice", "hello?", **DM)
    await harness.ask("bob", "@nexus hello?", **ROOM)
    office.server.default = Say((json.dumps({"memory": []}),))
    await office.extract()
    sums = "SELECT sum(calls), sum(prompt_tokens), sum(cost) FROM model_usage"
    before = await office.rows(sums)
    await harness.command("alice", "/nexus forget everything --yes", **ROOM)
    assert {row[3] for row in await office.rows()} == {None, "bob"}
    assert {row[2] for row in await office.rows()} == {None, "room"}
    assert await office.rows(sums) == before


async def test_erasing_some_days_of_a_person_blanks_these_days(office: Paid) -> None:
    harness = office.harness
    await harness.ask("alice", "@nexus hello?", **ROOM)
    harness.clock.tick(24 * 3_600)
    await harness.ask("alice", "@nexus hello?", **ROOM)
    await harness.command("alice", "/nexus forget everything --until 2026-05-04 --yes", **ROOM)
    days = await office.rows(f"SELECT day, user_id = '{NO_ONE_ID}' FROM model_usage ORDER BY day")
    assert days == [(date(2026, 5, 4), True), (date(2026, 5, 5), False)]


async def test_erasing_a_person_takes_them_out_of_the_ledger(office: Paid) -> None:
    harness = office.harness
    await harness.ask("alice", "hello?", **DM)
    await harness.ask("bob", "@nexus hello?", **ROOM)
    await make_admin(harness, "bob")
    await harness.command("bob", "/nexus erase user alice --yes", **ROOM)
    assert {(row[2], row[3]) for row in await office.rows()} == {(None, None), ("room", "bob")}


FORGET, OPT_OUT, ERASE = "/nexus forget everything --yes", "/nexus opt-out", "/nexus erase user alice --yes"


@asynccontextmanager
async def running_call(office: Paid, where: dict[str, Any]) -> AsyncIterator[Paid]:
    """A call of a model for alice that is running in another process, and that ends with the block."""
    harness, gate = office.harness, Gate()
    workspace = harness.workspace()
    other = await PostgresDatabase.open(service_url(harness.app.settings.database_url), connections=2)
    rules = UsageRules((), Prices({}), lambda _: [], lambda _: UTC)
    meter = Meter(CallLedger(other, harness.clock, uuid.uuid4, rules), gate, tokenizer_for, harness.clock)
    agent = replace(harness.app.directory.agents(workspace.tenant_id)[0], model="other")
    alice = user_id(workspace, "alice")
    conversation = conversation_id(workspace, place(where), alice, agent.id)
    work = Work(workspace.tenant_id, WorkKind.ANSWER, agent, conversation, alice)

    async def ask() -> None:
        async for _ in meter.stream(work, [ChatMessage("user", "hello?")]):
            pass

    asking = asyncio.create_task(ask())
    try:
        await asyncio.wait_for(gate.asked.wait(), TIMEOUT_SECONDS)
        yield office
        gate.open.set()
        await asyncio.wait_for(asking, TIMEOUT_SECONDS)
    finally:
        asking.cancel()
        await other.close()


RUNNING = """
    SELECT p.name, c.kind, u.calls FROM model_usage AS u
    LEFT JOIN conversations AS c ON c.id = u.conversation_id
    LEFT JOIN users AS p ON p.id = u.user_id WHERE u.model = 'other'
"""


@pytest.mark.parametrize(("where", "place_stays"), [(ROOM, "room"), (DM, None)])
@pytest.mark.parametrize(
    "commands",
    [
        (("alice", FORGET),),
        (("alice", FORGET), ("alice", "hello again")),  # who comes back is named again, but not for what was before
        (("bob", ERASE), ("alice", "hello again")),
        (("alice", f"{FORGET} --since 2026-05-04"),),
        (("alice", OPT_OUT),),
        (("alice", FORGET), ("alice", OPT_OUT), ("alice", "/nexus opt-in"), ("alice", "hello again")),
    ],
    ids=["forget", "forget, come back", "erase, come back", "forget a day", "opt out", "forget, opt out and in"],
)
async def test_a_call_that_is_running_does_not_name_who_is_forgotten_meanwhile(
    office: Paid, commands: Sequence[tuple[str, str]], where: dict[str, Any], place_stays: str | None
) -> None:
    harness = office.harness
    await harness.ask("bob", "@nexus hello?", **ROOM)
    await harness.ask("alice", "hello?" if "dm" in where else "@nexus hello?", **where)
    await make_admin(harness, "bob")
    async with running_call(office, where):
        for user, text in commands:
            await (harness.command if text.startswith("/") else harness.say)(user, text, **ROOM)
    assert await office.rows(RUNNING) == [(None, place_stays, 1)]


async def test_a_call_names_who_was_not_forgotten_meanwhile(office: Paid) -> None:
    await office.harness.ask("alice", "hello?", **DM)
    async with running_call(office, DM):
        await office.harness.command("bob", FORGET, **ROOM)
    assert await office.rows(RUNNING) == [("alice", "dm", 1)]


async def test_a_call_that_ends_while_a_person_is_being_taken_out_waits_and_does_not_name_them(office: Paid) -> None:
    harness = office.harness
    await harness.ask("alice", "hello?", **DM)
    workspace = harness.workspace()
    calls = AsyncExitStack()
    await calls.enter_async_context(running_call(office, DM))
    async with harness.app.database.transaction(workspace.tenant_id) as tx:
        await tx.usage.blank([user_id(workspace, "alice")])
        ending = asyncio.create_task(calls.aclose())

        async def waits() -> bool:
            return ending.done() or (await office.rows("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"))[0][0]

        await until(waits)
    await ending
    assert await office.rows(RUNNING) == [(None, None, 1)]


@pytest.mark.parametrize("where", [ROOM, DM])
async def test_who_has_opted_out_is_not_named_in_the_ledger(office: Paid, where: dict[str, Any]) -> None:
    harness = office.harness
    await harness.command("alice", OPT_OUT, **where)
    assert not (await harness.ask("alice", "@nexus hello?", **where)).failed
    assert {row[3] for row in await office.rows()} == {None}
    await harness.command("alice", "/nexus opt-in", **where)
    await harness.ask("alice", "@nexus hello?", **where)
    assert {row[3] for row in await office.rows()} == {None, "alice"}


async def test_an_export_and_privacy_have_a_persons_own_usage(office: Paid) -> None:
    harness = office.harness
    await harness.ask("alice", "@nexus hello?", **ROOM)
    await harness.ask("bob", "@nexus hello?", **ROOM)
    answer = await harness.command("alice", "/nexus export", **ROOM)
    assert answer.file is not None
    (entry,) = json.loads(answer.file.text)["usage"]
    assert (entry["day"], entry["kind"], entry["model"], entry["calls"]) == ("2026-05-04", "answers", "m", 1)
    privacy = (await harness.command("alice", "/nexus privacy", **ROOM)).text
    assert "1 call of a model in your name" in privacy


async def test_figures_older_than_the_tenants_usage_days_are_deleted_by_retention(settings: Settings) -> None:
    acme = TenantSettings(workspaces=("acme",), timezone="Asia/Tokyo", usage_days=40)
    async with paid(settings, tenants={"acme": acme}) as office:
        harness, days = office.harness, "SELECT DISTINCT day FROM model_usage ORDER BY day"
        for workspace in (None, "other"):
            harness.clock.set(datetime(2026, 5, 4, 9, tzinfo=UTC))
            await harness.ask("alice", "@nexus hello?", workspace=workspace, **ROOM)
        harness.clock.set(datetime(2026, 5, 5, 9, tzinfo=UTC))
        await harness.ask("alice", "@nexus hello?", **ROOM)
        await run_doctor(harness.app.settings, clock=harness.clock, live=True)
        four, five = (date(2026, 5, 4),), (date(2026, 5, 5),)
        own = "SELECT DISTINCT day FROM model_usage WHERE kind = 'answers' AND tenant_id = "
        tenant = f"'{harness.workspace().tenant_id}' ORDER BY day"
        await schedule.run(harness.app, "retention", datetime(2026, 6, 13, 14, 50, tzinfo=UTC))
        assert await office.rows(own + tenant) == [four, five], "in Tokyo the 4th is 40 days ago"
        run = await schedule.run(harness.app, "retention", datetime(2026, 6, 13, 15, 10, tzinfo=UTC))
        assert (run.done, await office.rows(own + tenant)) == (1, [five])
        assert await office.rows(days) == [four, five], "others keep theirs for as long as is common"
        await schedule.run(harness.app, "retention", datetime(2027, 7, 1, tzinfo=UTC))
        assert await office.rows(days) == []


# --- who sees it ------------------------------------------------------------------------------------------------------


async def make_admin(harness: AppHarness, name: str) -> None:
    here = harness.workspace()
    async with harness.app.database.transaction(here.tenant_id) as tx:
        user = await tx.people.find_user(here.platform, here.name, name)
        assert user is not None
        await tx.people.set_admin(user.id, True)


async def test_a_person_sees_what_is_in_their_name_and_an_admin_what_is_in_everyones(office: Paid) -> None:
    harness = office.harness
    await harness.ask("alice", "@nexus hello?", **ROOM)
    await harness.ask("bob", "@nexus hello?", **ROOM)
    await make_admin(harness, "alice")
    own = (await harness.command("alice", "/nexus usage --by person", **ROOM)).text
    assert "  alice: 1 call, " in own
    assert "bob" not in own
    assert "Budgets" not in own
    everyone = (await harness.command("alice", "/nexus usage --everyone --by person", **ROOM)).text
    assert "  alice: 1 call, " in everyone
    assert "  bob: 1 call, " in everyone
    later = (await harness.command("alice", "/nexus usage --since 2026-05-05 --until 2026-05-06", **ROOM)).text
    assert later == "No call of a model is recorded in your name from 2026-05-05 until 2026-05-06."


@pytest.mark.parametrize(
    ("by", "line"),
    [
        ("day", "  2026-05-04: 3 calls, "),
        ("agent", "  @nexus: 3 calls, "),
        ("kind", "  answers: 3 calls, "),
        ("model", "  m: 3 calls, "),
        ("room", "  #general: 1 call, "),
        ("room", "  DMs: 2 calls, "),
    ],
)
async def test_usage_is_shown_by_what_is_asked_for(office: Paid, by: str, line: str) -> None:
    harness = office.harness
    await harness.ask("alice", "@nexus hello?", **ROOM)
    await harness.ask("bob", "hello?", **DM)
    await harness.ask("alice", "hello?", **DM)
    await make_admin(harness, "alice")
    assert line in (await harness.command("alice", f"/nexus usage --everyone --by {by}", **ROOM)).text


async def test_the_name_of_a_private_room_is_shown_only_to_who_is_in_it(office: Paid) -> None:
    harness = office.harness
    await harness.ask("bob", "@nexus hello?", room="cave", private=True)
    await harness.ask("carol", "@nexus hello?", room="attic", private=True)
    await harness.say("alice", "good morning", **ROOM)
    await make_admin(harness, "alice")

    async def rooms(command: str, user: str) -> list[str]:
        text = (await harness.command(user, f"/nexus usage {command} --by room", **ROOM)).text
        return sorted(line.strip().partition(":")[0] for line in text.splitlines() if line.startswith("  "))

    assert await rooms("--everyone", "alice") == ["private rooms"]
    assert await rooms("", "bob") == ["#cave"]
    await harness.move("alice", "cave", joined=True)
    assert await rooms("--everyone", "alice") == ["#cave", "private rooms"]
    await harness.move("bob", "cave", joined=False)
    assert await rooms("", "bob") == ["private rooms"]
    lines = [row async for row in reporting.usage(harness.app, Dimension.ROOM, None, None)]
    assert [line.name for line in lines[0].lines] == ["private rooms"], "nor to the operator"


async def test_days_of_usage_are_named_as_those_of_recall(office: Paid) -> None:
    harness = office.harness
    await harness.ask("alice", "@nexus hello?", **ROOM)
    today = harness.clock.now().date()
    harness.clock.tick(timedelta(days=1).total_seconds())
    for given in ("yesterday", str(today), f"{today}T09:00:00Z", f"{today:%A}"):
        text = (await harness.command("alice", f"/nexus usage --since {given} --until {given}", **ROOM)).text
        assert text.startswith(f"Calls of models in your name from {today} until {today}, by day:"), given
        found = [each async for each in reporting.usage(harness.app, Dimension.DAY, given, given)]
        assert (found[0].since, found[0].until) == (today, today)
        assert found[0].lines
    with pytest.raises(BadInput, match="'soon' is not a day"):
        await harness.command("alice", "/nexus usage --since soon", **ROOM)


async def test_what_others_do_does_not_change_what_a_person_sees(office: Paid) -> None:
    harness = office.harness
    await harness.ask("alice", "@nexus hello?", **ROOM)

    async def seen() -> list[str]:
        commands = [f"/nexus usage --by {by}" for by in Dimension]
        return [(await harness.command("alice", each, **ROOM)).text for each in (*commands, "/nexus privacy")]

    before = await seen()
    await harness.ask("bob", "hello?", **DM)
    await harness.ask("bob", "@nexus hello?", room="cave", private=True)
    assert await seen() == before


async def test_the_operator_sees_every_tenant_its_budgets_and_probes(settings: Settings) -> None:
    budgets = (BudgetSettings(per="month", tokens=1_000_000, tenant="acme"),)
    async with paid(settings, *budgets, timezone="Europe/Berlin") as office:
        harness = office.harness
        await harness.ask("alice", "@nexus hello?", **ROOM)
        await harness.ask("alice", "@nexus hello?", workspace="other", **ROOM)
        checks = await run_doctor(harness.app.settings, clock=harness.clock, live=True)
        assert {check.name: check.ok for check in checks}["model of @nexus"] is True
        found = [each async for each in reporting.usage(harness.app, Dimension.KIND, None, None)]
        assert [(each.tenant, each.lines[0].name, len(each.budgets)) for each in found] == [
            ("acme", "answers", 1),
            ("other", "answers", 0),
            (reporting.INSTALLATION_NAME, "probes", 0),
        ]
        text = reporting.text(found[0], harness.app, Dimension.KIND)
        assert "budget: all work: 1,000,000 tokens a month: " in text
        row, budget = reporting.as_json(found[0], harness.app, Dimension.KIND)
        assert (row["tenant"], row["name"], row["calls"], row["currency"]) == ("acme", "answers", 1, "USD")
        assert budget["budget"] == {"period": "month", "tokens": 1_000_000}
        assert budget["used"]["tokens"] == row["prompt_tokens"] + row["completion_tokens"]
