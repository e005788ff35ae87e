"""What an API is asked to embed is recorded and kept within budgets, and answers go on without it; several processes
keep within one budget together."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from bot.console import schedule
from bot.console.doctor import run_doctor
from composer.errors import BudgetUsedUp
from composer.model import Agent, Usage
from composer.ports.models import ChatMessage, Chunk, Work, WorkKind
from composer.repositories.usage import Amount, Spent
from composer.settings import BudgetSettings, PriceSettings, Settings
from composer.stores.models.tokens import tokenizer_for
from composer.usage.budgets import Budget, BudgetPeriod
from composer.usage.ledger import RESERVATION_LIFETIME, CallLedger, UsageRules
from composer.usage.meter import Meter
from composer.usage.prices import Prices
from tests.deep.integration.test_usage import DM, PRICES, ROOM, Paid, make_admin, paid
from tests.support.harness import AppHarness
from tests.support.model_server import Fail, Raw, Say
from tests.support.waiting import TIMEOUT_SECONDS

REMOTE: Final = "e5-remote"
OF_EMBEDDINGS: Final = """
    SELECT a.slug, c.kind AS place, p.name, u.model, u.calls, u.failures, u.refused, u.estimated,
        u.prompt_tokens, u.cost
    FROM model_usage AS u
    LEFT JOIN agents AS a ON a.id = u.agent_id
    LEFT JOIN conversations AS c ON c.id = u.conversation_id
    LEFT JOIN users AS p ON p.id = u.user_id WHERE u.kind = 'embeddings' ORDER BY 1, 2, 3
"""
NOTHING: Final = BudgetSettings(per="day", tokens=0, kind="embeddings")


@asynccontextmanager
async def remote(settings: Settings, *budgets: BudgetSettings, **changes: Any) -> AsyncIterator[Paid]:
    """A harness whose embedder is at the API as well."""
    prices = {**PRICES, REMOTE: PriceSettings(input=Decimal(2), output=Decimal(0))}
    async with paid(settings, *budgets, embedder=REMOTE, prices=prices, **changes) as office:
        office.server.requests.clear()  # the one for the width
        yield office


def embedded(office: Paid) -> list[str]:
    """The texts that the API was asked to embed."""
    asked = [each.body["input"] for each in office.server.requests if each.path.endswith("/embeddings")]
    return [text for texts in asked for text in texts]


async def without_vectors(office: Paid) -> int:
    ((count,),) = await office.rows("SELECT count(*) FROM recall_index WHERE embedding IS NULL")
    return int(count)


async def test_embeddings_are_recorded_with_the_tokens_that_the_api_reports_and_their_price(settings: Settings) -> None:
    async with remote(settings, extraction="off") as office:
        await office.harness.ask("alice", "@nexus when do we ship the boat?", **ROOM)
        question, *indexed = embedded(office)
        words, of_all = len(question.split()), sum(len(text.split()) for text in indexed)
        own = ("nexus", "room", "alice", REMOTE, 1, 0, 0, 0, words, Decimal(words * 2) / 1_000_000)
        of_index = (None, None, None, REMOTE, 1, 0, 0, 0, of_all, Decimal(of_all * 2) / 1_000_000)
        assert await office.rows(OF_EMBEDDINGS) == [own, of_index]
        await make_admin(office.harness, "alice")
        shown = (await office.harness.command("alice", "/nexus usage --everyone --by kind", **ROOM)).text
        assert f"  embeddings: 2 calls, {words + of_all} + 0 tokens, " in shown


async def test_tokens_that_the_api_does_not_report_are_counted_and_failures_too(settings: Settings) -> None:
    async with remote(settings) as office:
        vector = {"index": 0, "embedding": [1.0] * office.server.width}
        body = {"object": "list", "data": [vector], "model": REMOTE}
        office.server.script.append(Raw(json.dumps(body).encode(), "application/json"))
        assert not (await office.harness.ask("alice", "@nexus hello?", **ROOM)).failed
        office.server.script.append(Fail(402))
        assert not (await office.harness.ask("alice", "hello?", **DM)).failed
        rows = {row[1]: row[4:9] for row in await office.rows(OF_EMBEDDINGS)}
        assert rows["room"][:4] == (1, 0, 0, 1)
        assert rows["room"][4] > 0
        assert rows["dm"] == (1, 1, 0, 0, 0)


async def test_an_embedder_that_runs_here_is_not_recorded(settings: Settings) -> None:
    async with paid(settings) as office:
        await office.harness.ask("alice", "@nexus hello?", **ROOM)
        assert await office.rows(OF_EMBEDDINGS) == []


async def test_without_a_budget_left_for_embeddings_answers_recall_by_words(settings: Settings) -> None:
    async with remote(settings, NOTHING, extraction="off") as office:
        await office.post(("bob", "the harpsichord is in the cellar"))
        await office.post(*(("bob", f"small talk number {n}") for n in range(60)))
        with capture_logs() as logs:
            reply = await office.harness.ask("alice", "@nexus where is the harpsichord?", **ROOM)
            await office.harness.ask("alice", "@nexus where is it?", **ROOM)
        assert (reply.failed, reply.text) == (False, "Hello there.")
        prompt = json.dumps(next(each.body for each in office.server.requests if each.path.endswith("completions")))
        assert "the harpsichord is in the cellar" in prompt
        assert embedded(office) == []
        assert [log["event"] for log in logs].count("budget.used_up") <= 1
        assert not [log for log in logs if log["event"] in ("embedder.unavailable", "turn.failed")]
        (check,) = [
            each
            for each in await run_doctor(office.harness.app.settings, clock=office.harness.clock)
            if each.name == "usage"
        ]
        assert "embeddings: 0 tokens a day: 0 tokens used; " in check.detail
        assert "calls refused, which were done by words alone" in check.detail


async def test_what_was_refused_a_vector_gets_it_when_there_is_room_again(settings: Settings) -> None:
    budget = BudgetSettings(per="day", tokens=50, kind="embeddings")
    async with remote(settings, budget, extraction="off") as office:
        await office.post(*(("bob", f"the harpsichord number {n} is in the cellar") for n in range(3)))
        assert await without_vectors(office) == 0
        await office.post(*(("bob", f"the harpsichord number {n} is in the attic") for n in range(3)))
        assert await without_vectors(office) == 3
        run = await schedule.run(office.harness.app, "embedding", office.harness.clock.tick(600))
        assert (run.state, await without_vectors(office)) == ("done", 3), "a used-up budget is no failure of the job"
        await schedule.run(office.harness.app, "embedding", office.harness.clock.tick(24 * 3_600))
        assert await without_vectors(office) == 0


async def test_without_a_budget_left_for_embeddings_patterns_extract_and_summaries_compare_terms(
    settings: Settings,
) -> None:
    budgets = (NOTHING, BudgetSettings(per="day", tokens=0, kind="summaries"))
    async with remote(settings, *budgets) as office:
        office.server.default = Say((json.dumps({"memory": []}),))
        await office.post(("alice", "I prefer tabs over spaces"))
        assert await office.extract() == 1
        assert await office.rows("SELECT origin, author FROM memories") == [("extracted", "alice")]
        await office.post(*(("alice", f"we decided to ship part {n}") for n in range(4)))
        await schedule.run(office.harness.app, "session", office.harness.clock.tick(4 * 3_600))
        assert await office.rows("SELECT model FROM summaries") == [("extractive",)]
        assert embedded(office) == []


async def test_the_doctors_own_embedding_is_a_probe(settings: Settings) -> None:
    async with remote(settings, NOTHING) as office:
        await run_doctor(office.harness.app.settings, clock=office.harness.clock, live=True)
        probes = await office.rows("SELECT model, calls FROM model_usage WHERE kind = 'probes' ORDER BY 1")
        assert (REMOTE, 1) in probes


# --- several processes ------------------------------------------------------------------------------------------------


@dataclass
class Processes:
    """Meters with nothing in common but a database. Their model answers once it is let."""

    harness: AppHarness
    tokens: int
    running: int = 0
    most: int = 0
    open: asyncio.Event = field(default_factory=asyncio.Event)
    judged: asyncio.Queue[bool] = field(default_factory=asyncio.Queue)  # of each call, whether it was let

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncGenerator[Chunk, None]:
        self.running += 1
        self.most = max(self.most, self.running)
        self.judged.put_nowait(True)
        try:
            await self.open.wait()
            yield Chunk("yes")
            yield Chunk(usage=Usage(10, 1))
        finally:
            self.running -= 1

    async def ask(self) -> str:
        """Ask by a meter of a process of its own."""
        app, tenant = self.harness.app, self.harness.workspace().tenant_id
        rules = UsageRules((), Prices({}), lambda _: [Budget(BudgetPeriod.DAY, tokens=self.tokens)], lambda _: UTC)
        calls = CallLedger(app.database, self.harness.clock, uuid.uuid4, rules)
        meter = Meter(calls, self, tokenizer_for, self.harness.clock)
        work = Work(tenant, WorkKind.ANSWER, replace(app.directory.agents(tenant)[0], model="m"))
        try:
            return "".join([chunk.text async for chunk in meter.stream(work, [ChatMessage("user", "hello?")])])
        except BudgetUsedUp:
            self.judged.put_nowait(False)
            raise

    async def reservations(self, at: datetime | None = None) -> list[Spent]:
        """What the calls that run at a time, by default now, may use."""
        now = self.harness.clock.now()
        async with self.harness.app.database.transaction(self.harness.workspace().tenant_id) as tx:
            spent = await tx.usage.spent(now.date())
            return [each for each in await tx.usage.spent(now.date(), at or now) if each not in spent]


async def test_processes_that_ask_at_the_same_moment_stay_within_a_budget_together(harness: AppHarness) -> None:
    await harness.say("alice", "hello", room="lab")  # which stores the tenant
    processes = Processes(harness, tokens=2_500)  # room for two calls, which may use a little over 1,000 each
    asking = [asyncio.create_task(processes.ask()) for _ in range(8)]
    async with asyncio.timeout(TIMEOUT_SECONDS):
        for _ in asking:
            await processes.judged.get()
    processes.open.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert (answers.count("yes"), processes.most) == (2, 2)
    assert await processes.reservations() == [], "what ended is given back"
    assert await processes.ask() == "yes", "it counts with what it used once it has ended"


async def test_a_reservation_of_a_process_that_died_expires(harness: AppHarness) -> None:
    processes, tenant = Processes(harness, tokens=2_500), harness.workspace().tenant_id
    processes.open.set()
    async with harness.app.database.transaction(tenant) as tx:
        until = harness.clock.now() + RESERVATION_LIFETIME
        await tx.usage.reserve(
            tenant, Spent(True, WorkKind.SUMMARY, "nexus", Amount(2_000)), harness.clock.now(), until
        )
    with pytest.raises(BudgetUsedUp):
        await processes.ask()
    harness.clock.tick(RESERVATION_LIFETIME.total_seconds())
    assert await processes.ask() == "yes"
    assert await processes.reservations(until - RESERVATION_LIFETIME) == [], "it is deleted"


async def test_a_call_that_is_given_up_gives_its_reservation_back(harness: AppHarness) -> None:
    processes = Processes(harness, tokens=2_500)
    asking = asyncio.create_task(processes.ask())
    await asyncio.wait_for(processes.judged.get(), TIMEOUT_SECONDS)
    assert len(await processes.reservations()) == 1
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert await processes.reservations() == []
