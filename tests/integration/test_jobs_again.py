"""Every job of the schedule, run twice, and killed at every point and run again: as if it had run once."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import asyncpg
import pytest
import pytest_asyncio

from bot.console import jobs as schedule
from bot.script.places import PLATFORM, incoming, place_of
from composer.app import open_app
from composer.memory.extraction import CLAIM_DURATION, ExtractionWorker
from composer.model import Message, derived_id
from composer.ports.extraction import ExtractedStatement
from composer.ports.models import Vectors
from composer.settings import AgentSettings, Settings, TenantSettings
from composer.stores.backup import DatabaseBackup
from composer.stores.embedded.servers import Servers
from composer.stores.postgres import PostgresDatabase
from jobs.table import JOBS
from tests.property.product import Parrot
from tests.support.databases import database_url, run_sql
from tests.support.embedder import HashedWords
from tests.support.harness import START, AppHarness, ManualClock, RecordedDelivery

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

ROOM: Final = {"room": "general"}
NOW: Final = START + timedelta(days=45)
SLOW: Final = ("backup", "restore-test")  # a program of PostgreSQL's each time: every third point
OF_THE_RUN: Final = ("job_runs", "deployment")


class Killed(BaseException):
    """The process is no more."""


@dataclass
class Deaths:
    """Where a process can die so that it matters: just before and just after anything is written for good. It dies
    at the `at`-th of these points; 0: never."""

    at: int = 0
    passed: int = 0

    def begin(self, at: int = 0) -> None:
        self.at, self.passed = at, 0

    def point(self) -> None:
        self.passed += 1
        if self.passed == self.at:
            raise Killed

    def around(self, honest: Callable[..., Any]) -> Callable[..., Any]:
        """The same, with a point before its end and one after it."""

        @asynccontextmanager
        async def mortal(*args: Any, **options: Any) -> AsyncIterator[Any]:
            async with honest(*args, **options) as opened:
                yield opened
                if not options.get("snapshot"):
                    self.point()
            if not options.get("snapshot"):
                self.point()

        return mortal


class Fixed:
    """An extractor that draws one statement from each message (composer.ports.Extractor)."""

    async def extract(
        self, messages: Sequence[Message], near: Callable[[Vectors], Awaitable[list[Any]]]
    ) -> list[ExtractedStatement]:
        return [ExtractedStatement("decision", f"the team chose {message.text}", (message.id,)) for message in messages]


@dataclass
class House:
    """A harness with work for every job, which can be put back to how it was."""

    harness: AppHarness
    raw: asyncpg.Connection
    deaths: Deaths
    tables: dict[str, str]  # with their columns, but for those that follow from others

    async def reset(self) -> None:
        backups = self.harness.app.settings.home / "backups"
        for path in backups.iterdir():
            path.unlink()
        for path in (backups.parent / "kept").iterdir():
            shutil.copy(path, backups)
        every = ", ".join(f"public.{name}" for name in self.tables)
        fill = "; ".join(
            f"INSERT INTO public.{name} ({columns}) SELECT {columns} FROM kept.{name}"
            for name, columns in self.tables.items()
        )
        async with self.raw.transaction():
            await self.raw.execute(f"SET LOCAL session_replication_role = replica; TRUNCATE {every}; {fill}")
        self.harness.clock.set(NOW)

    async def content(self) -> dict[str, Any]:
        """Every row, and the names of the backups; not which runs there were."""
        found: dict[str, Any] = {
            name: await self.raw.fetch(f"SELECT to_jsonb(t)::text AS row FROM public.{name} AS t ORDER BY 1")
            for name in self.tables
            if name not in OF_THE_RUN
        }
        backups = self.harness.app.settings.home / "backups"
        return found | {"backups": sorted(path.name for path in backups.iterdir())}

    async def run(self, name: str) -> Any:
        self.deaths.begin()
        return await schedule.run(self.harness.app, name, NOW)

    async def killed(self, name: str, at: int) -> None:
        """A process that runs a job dies at a point, with all that it was doing; then some time goes by."""
        before = asyncio.all_tasks()
        self.deaths.begin(at)
        with pytest.raises(Killed):
            await schedule.run(self.harness.app, name, NOW)
        others = [task for task in asyncio.all_tasks() - before if not _of_the_driver(task)]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self.harness.clock.set(NOW + CLAIM_DURATION)


def _of_the_driver(task: asyncio.Task[Any]) -> bool:
    """Whether it brings a connection back to its pool: what is cancelled in that never comes back."""
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and "asyncpg" in code.co_filename


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    await run_sql(servers.database_url, "CREATE DATABASE house TEMPLATE template")
    url, deaths = database_url(servers.database_url, "house"), Deaths()
    settings = Settings(
        home=tmp_path_factory.mktemp("house"),
        database_url=url,
        redis_url=f"{servers.redis_url}?db=7",
        agents=(AgentSettings(model="m"),),
        openai_base_url="http://127.0.0.1:9",
        tenants={"acme": TenantSettings(keep_days=43)},
        backups=2,
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
                patch.setattr(owner, name, deaths.around(getattr(owner, name)))
            clock = ManualClock()
            async with open_app(settings, clock=clock, model=Parrot(), embedder=HashedWords(), index=False) as app:
                delivery, here = RecordedDelivery(), app.directory.workspace(PLATFORM, "acme").tenant_id
                app.turns.serve(PLATFORM, delivery)
                numbers = iter(range(10_000))
                drawing = ExtractionWorker(
                    app.database, Fixed(), clock, lambda: derived_id("attempt", str(next(numbers))), lambda _: None
                )
                harness = AppHarness(replace(app, extractions=drawing), delivery, clock)
                await add_sample_data(harness, raw, here)
                yield await kept(harness, raw, deaths)
    finally:
        await raw.close()
        await run_sql(servers.database_url, "DROP DATABASE house WITH (FORCE)")


async def add_sample_data(harness: AppHarness, raw: asyncpg.Connection, tenant: Any) -> None:
    """Two days of talk in a room, a thread and a DM, and something that every job has to see to."""
    for day in range(2):
        harness.clock.set(START + timedelta(days=4 * day))
        for n in range(3):
            await harness.say("alice", f"the release {day} point {n} needs another review", **ROOM)
            await harness.say("bob", f"the crane {day} point {n} waits for a part", thread="t", **ROOM)
            await harness.say("alice", f"my number {day} point {n} is for nobody", dm="nexus")
    for words in ("the trash holds quokka7", "the ticket ends with wombat8"):
        await harness.command("alice", f"/nexus remember {words}", **ROOM)
    await raw.execute("UPDATE memories SET deleted_at = $1 WHERE text LIKE '%quokka7%'", START)
    await raw.execute("UPDATE memories SET expires_at = $1 WHERE text LIKE '%wombat8%'", START + timedelta(days=5))
    user = await raw.fetchval("SELECT id FROM users LIMIT 1")
    await raw.execute("INSERT INTO link_codes VALUES ($1, 'hash', $2, $3)", tenant, user, START)
    here, place = harness.workspace(), place_of("general", None, None)
    late = [incoming(here, place, "carol", f"late words {n}", harness.clock.tick(), id=f"late{n}") for n in range(3)]
    await harness.app.receive(here, late, answer=False)
    harness.clock.set(NOW)


async def kept(harness: AppHarness, raw: asyncpg.Connection, deaths: Deaths) -> House:
    """The house, with a copy of everything to put back."""
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
    return House(harness, raw, deaths, tables)


@pytest.mark.parametrize("name", [job.name for job in JOBS])
async def test_a_job_that_is_run_twice_or_killed_and_run_again_has_run_once(house: House, name: str) -> None:
    await house.reset()
    before = await house.content()
    outcome = await house.run(name)
    assert (outcome.state, outcome.done > 0) == ("done", True), outcome
    once = await house.content()
    assert once != before or name == "restore-test", "there was nothing for it to do"
    points = house.deaths.passed
    await house.run(name)
    assert await house.content() == once, "run twice"
    assert points >= 4, "the run begins and ends in the ledger"
    for at in range(1, points + 1, 3 if name in SLOW else 1):
        await house.reset()
        await house.killed(name, at)
        assert (await house.run(name)).state == "done"
        assert await house.content() == once, f"killed at point {at} of {points}"
