"""Every scheduled job, run twice or killed at any write and run again, has the effect of one run."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import asyncpg
import pytest
import pytest_asyncio
from anyio.from_thread import start_blocking_portal

from bot.console import schedule
from bot.script.places import incoming, place_of
from composer.app import open_app
from composer.ingest.tenants import TenantDirectory
from composer.memory.extraction import BatchRules, ConversationSource
from composer.memory.learner import CLAIM_DURATION, Learner
from composer.model import CONSOLE, derived_id
from composer.ports.extraction import ExtractedStatement, MessageBatch
from composer.ports.models import Vectors
from composer.repositories import table_statistics
from composer.settings import AgentSettings, PlanSettings, Settings, TenantSettings
from composer.stores.backup.backup import DatabaseBackup
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.embedded.servers import Servers
from composer.stores.models.tokens import tokenizer_for
from composer.tasks.shares import Places
from jobs.schedule import JOBS
from tests.property.product import ScriptedModel
from tests.support.databases import database_url, run_sql
from tests.support.embedder import HashedWords
from tests.support.harness import START, AppHarness, ManualClock, RecordedDelivery
from tests.support.stripe import FakeStripe, charged_by, open_stripe

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOM: Final = {"room": "general"}
NOW: Final = START + timedelta(days=45)
CUSTOMER: Final = "cus_1"
SLOW: Final = ("backup", "restore-test")  # each run starts a PostgreSQL program: killed at every third point only
OF_ONE_RUN: Final = {
    "audit_events": " - '{id,at,signature}'::text[]",
    "audit_unsealed": " - '{id}'::text[]",
    "audit_seals": " - '{event_id,sealed_at,event_digest,before,signature}'::text[]",
    "billing_customers": " - 'version'",  # how often the provider was asked
}
RUN_TABLES: Final = ("job_runs", "deployment", "model_usage")  # a model that is asked again is paid again


class Killed(BaseException):
    """The process was killed."""


@dataclass
class KillPoints:
    """The points where a process can be killed: just before and just after each commit. It is killed at the `at`-th
    of these points; 0: never."""

    at: int = 0
    passed: int = 0

    def begin(self, at: int = 0) -> None:
        self.at, self.passed = at, 0

    def point(self) -> None:
        self.passed += 1
        if self.passed == self.at:
            raise Killed

    def around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The same context manager, with a point before its end and one after it."""

        @asynccontextmanager
        async def with_points(*args: Any, **options: Any) -> AsyncIterator[Any]:
            async with original(*args, **options) as opened:
                yield opened
                if not options.get("snapshot"):
                    self.point()
            if not options.get("snapshot"):
                self.point()

        return with_points


class FixedExtractor:
    """An extractor that makes one statement from each message (composer.ports.Extractor)."""

    async def extract(
        self, batch: MessageBatch, near: Callable[[Vectors], Awaitable[list[Any]]]
    ) -> list[ExtractedStatement]:
        return [
            ExtractedStatement("decision", f"the team chose {message.text}", (message.id,))
            for message in batch.messages
        ]


@dataclass
class JobHarness:
    """A harness with work for every job, which can be reset to its first state."""

    harness: AppHarness
    raw: asyncpg.Connection
    kill_points: KillPoints
    tables: dict[str, str]  # with their columns, except generated ones

    async def reset(self) -> None:
        backups = self.harness.app.settings.home / "backups"
        for path in backups.iterdir():
            path.unlink()
        for path in (backups.parent / "kept").iterdir():
            shutil.copy(path, backups)
        fill = "; ".join(  # DELETE, not TRUNCATE, which makes new files for every table and index
            f"DELETE FROM public.{name}; INSERT INTO public.{name} ({columns}) SELECT {columns} FROM kept.{name}"
            for name, columns in self.tables.items()
        )
        async with self.raw.transaction():
            await self.raw.execute(f"SET LOCAL session_replication_role = replica; {fill}")
        self.harness.clock.set(NOW)

    async def content(self) -> dict[str, Any]:
        """Every row except those that record the runs and the use of models, and the names of the backups.
        Rows of the audit log have random ids, signatures that depend on them, and the time of the run that added
        them."""
        found: dict[str, Any] = {
            name: await self.raw.fetch(
                f"SELECT (to_jsonb(t){OF_ONE_RUN.get(name, '')})::text AS row FROM public.{name} AS t ORDER BY 1"
            )
            for name in self.tables
            if name not in RUN_TABLES
        }
        backups = self.harness.app.settings.home / "backups"
        return found | {"backups": sorted(path.name for path in backups.iterdir())}

    async def run(self, name: str) -> Any:
        self.kill_points.begin()
        return await schedule.run(self.harness.app, name, NOW)

    async def killed(self, name: str, at: int) -> None:
        """Run a job in a process that is killed at a point, with all its tasks; then some time passes."""
        before = asyncio.all_tasks()
        self.kill_points.begin(at)
        with pytest.raises(Killed):
            await schedule.run(self.harness.app, name, NOW)
        others = [task for task in asyncio.all_tasks() - before if not _is_driver_task(task)]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self.harness.clock.set(NOW + CLAIM_DURATION)


def _is_driver_task(task: asyncio.Task[Any]) -> bool:
    """Whether it returns a connection to its pool: a connection is lost if that is cancelled."""
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and "asyncpg" in code.co_filename


@pytest.fixture(scope="module")
def stripe() -> Iterator[FakeStripe]:
    """A billing provider, at which CUSTOMER has bought a plan. It has a loop of its own, whose tasks nobody kills."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(open_stripe(START)) as stripe:
        stripe.customers[CUSTOMER] = {"id": CUSTOMER, "object": "customer", "metadata": {}}
        stripe.subscribe(CUSTOMER, "price_team")
        yield stripe


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def job_harness(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory, stripe: FakeStripe
) -> AsyncIterator[JobHarness]:
    await run_sql(servers.database_url, "CREATE DATABASE house TEMPLATE template STRATEGY file_copy")
    url, kill_points = database_url(servers.database_url, "house"), KillPoints()
    settings = Settings(
        home=tmp_path_factory.mktemp("house"),
        database_url=url,
        redis_url=servers.redis_url + "?db=7",
        agents=(AgentSettings(model="m"),),
        openai_base_url="http://127.0.0.1:9",
        tenants={"acme": TenantSettings(keep_days=43, plan="tiny")},
        backups=2,
        **charged_by(stripe, {"tiny": PlanSettings(reads=1), "team": PlanSettings(price=("price_team",))}),
    )
    raw = await asyncpg.connect(url)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in (
                (PostgresDatabase, "transaction"),
                (PostgresDatabase, "connection"),
                (DatabaseBackup, "_connected"),
                (DatabaseBackup, "_program"),
            ):
                patch.setattr(owner, name, kill_points.around(getattr(owner, name)))
            # When statistics are taken depends on what was written before, and so would the number of points. So it
            # would where what was set is read again beside the job.
            patch.setattr(table_statistics, "FIRST_LOOK", 10**9)
            patch.setattr(TenantDirectory, "on_notice", lambda *_: None)
            clock = ManualClock()
            async with open_app(
                settings, clock=clock, model=ScriptedModel(), embedder=HashedWords(), index=False
            ) as app:
                delivery, tenant = RecordedDelivery(), app.directory.workspace(CONSOLE, "acme").tenant_id
                app.turns.serve(CONSOLE, delivery)
                numbers = iter(range(10_000))
                learner = Learner(
                    app.database,
                    clock,
                    lambda: derived_id("attempt", str(next(numbers))),
                    ConversationSource(app.directory.quarantine, BatchRules(2_000, tokenizer_for(""))),
                    FixedExtractor(),
                    app.directory.zone,
                    lambda _: None,
                    Places(4, is_background=True),
                )
                harness = AppHarness(replace(app, extractions=learner), delivery, clock)
                await add_sample_data(harness, raw, tenant)
                yield await with_snapshot(harness, raw, kill_points)
    finally:
        await raw.close()
        await run_sql(servers.database_url, "DROP DATABASE house WITH (FORCE)")


async def add_sample_data(harness: AppHarness, raw: asyncpg.Connection, tenant: Any) -> None:
    """Two days of messages in a room, a thread and a DM, and work for every job."""
    for day in range(2):
        harness.clock.set(START + timedelta(days=4 * day))
        for n in range(3):
            await harness.say("alice", f"the release {day} point {n} needs another review", **ROOM)
            await harness.say("bob", f"the crane {day} point {n} waits for a part", thread="t", **ROOM)
            await harness.say("alice", f"my number {day} point {n} is for nobody", dm="nexus")
    for words in ("the trash holds quokka7", "the ticket ends with wombat8"):
        await harness.command("alice", f"/nexus remember {words}", **ROOM)
    await raw.execute("UPDATE memories SET trashed_at = $1 WHERE text LIKE '%quokka7%'", START)
    await raw.execute("UPDATE memories SET expires_at = $1 WHERE text LIKE '%wombat8%'", START + timedelta(days=5))
    user = await raw.fetchval("SELECT id FROM users LIMIT 1")
    await raw.execute("INSERT INTO one_time_codes VALUES ($1, 'digest', 'link', $2, $3)", tenant, user, START)
    workspace, place = harness.workspace(), place_of("general", None, None)
    late = [
        incoming(workspace, place, "carol", f"late words {n}", harness.clock.tick(), id=f"late{n}") for n in range(3)
    ]
    await harness.app.receive(workspace, late, answer=False)
    await raw.execute("UPDATE users SET admin = true WHERE id = $1", user)
    used = (
        "INSERT INTO operation_totals VALUES ($1, date_trunc('month', $3::timestamptz)::date, $2, 'api', 'reads', 1, 0)"
    )
    await raw.execute(used, tenant, user, NOW)
    await raw.execute("INSERT INTO billing_customers (tenant_id, customer) VALUES ($1, $2)", tenant, CUSTOMER)
    harness.clock.set(NOW)


async def with_snapshot(harness: AppHarness, raw: asyncpg.Connection, kill_points: KillPoints) -> JobHarness:
    """The harness, with a copy of everything to reset it from."""
    home = harness.app.settings.home
    (home / "kept").mkdir()
    await harness.app.backup.write(home / "kept" / "nexus-20260501T060000Z.backup", START)
    (home / "backups").mkdir()
    rows = await raw.fetch(
        "SELECT table_name, string_agg(format('%I', column_name), ', ') AS columns FROM information_schema.columns"
        " JOIN information_schema.tables USING (table_schema, table_name)"
        " WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND is_generated = 'NEVER'"
        " GROUP BY 1 ORDER BY 1"
    )
    tables = {row["table_name"]: row["columns"] for row in rows}
    await raw.execute("CREATE SCHEMA kept")
    for name in tables:
        await raw.execute(f"CREATE TABLE kept.{name} AS TABLE public.{name}")
    return JobHarness(harness, raw, kill_points, tables)


@pytest.mark.parametrize("name", [job.name for job in JOBS])
async def test_a_job_run_twice_or_killed_and_run_again_has_the_effect_of_one_run(
    job_harness: JobHarness, name: str
) -> None:
    await job_harness.reset()
    before = await job_harness.content()
    outcome = await job_harness.run(name)
    assert (outcome.state, outcome.done > 0) == ("done", True), outcome
    once = await job_harness.content()
    assert once != before or name == "restore-test", "there was nothing for it to do"
    points = job_harness.kill_points.passed
    await job_harness.run(name)
    assert await job_harness.content() == once, "run twice"
    assert points >= 4, "the run begins and ends in the ledger"
    for at in range(1, points + 1, 3 if name in SLOW else 1):
        await job_harness.reset()
        await job_harness.killed(name, at)
        assert (await job_harness.run(name)).state == "done"
        assert await job_harness.content() == once, f"killed at point {at} of {points}"
