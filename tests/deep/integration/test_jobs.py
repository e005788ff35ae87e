"""Summaries and scheduled jobs: each summary covers one namespace and is the same however often the jobs run."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from apscheduler.triggers.interval import IntervalTrigger

from bot.console import schedule
from composer.ingest.rooms import set_thread_archived
from composer.model import Agent
from composer.ports.database import Mode
from composer.ports.models import Tokenizer, UsageAccount
from composer.settings import Settings, TenantSettings
from composer.stores.models.tokens import tokenizer_for
from composer.summaries.texts import SummaryInput, SummaryText
from composer.summaries.tiers import TIERS, SummaryTiers
from jobs.runner import Runner
from jobs.schedule import JOBS_BY_NAME, Job
from jobs.work import JobRun
from tests.support.harness import AppHarness, open_harness

ROOM = {"room": "general"}
MONDAY = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
DAY = timedelta(days=1)


class Quoting:
    """A writer that repeats its whole input, so that a test sees what went in. `on_delay` runs before each summary."""

    def __init__(self) -> None:
        self.given: list[list[str]] = []

    async def summarise(
        self,
        inputs: Sequence[SummaryInput],
        budget: int,
        tokenizer: Tokenizer,
        account: UsageAccount,
        agent: Agent | None = None,
    ) -> SummaryText:
        self.given.append([piece.text for piece in inputs])
        await self.on_delay(self.given[-1])
        text = "\n".join(piece.text for piece in inputs)
        return SummaryText(text, "quoting", tokenizer.count(text))

    async def on_delay(self, texts: list[str]) -> None:
        """Does nothing unless a test overrides it."""


class Killed(BaseException):
    """The process was killed."""


class DatabaseKilledAtCommit:
    """A database whose process is killed as its `commits_left`-th transaction is about to commit."""

    def __init__(self, store: Any, commits_left: int) -> None:
        self._store = store
        self.commits_left = commits_left

    @asynccontextmanager
    async def transaction(self, tenant: Any, mode: Mode = "share") -> AsyncIterator[Any]:
        async with self._store.transaction(tenant, mode) as tx:
            yield tx
            self.commits_left -= 1
            if self.commits_left == 0:
                raise Killed


def quoting_tiers(harness: AppHarness, writer: Quoting, store: Any = None) -> SummaryTiers:
    return SummaryTiers(store or harness.app.database, writer, lambda agent: tokenizer_for(""))


async def say(harness: AppHarness, at: datetime, text: str, id: str, user: str = "alice", **where: Any) -> None:
    harness.clock.set(at - timedelta(minutes=1))
    await harness.say(user, text, id=id, **(where or ROOM))


async def write(harness: AppHarness, now: datetime, *tiers: str, by: SummaryTiers | None = None) -> tuple[int, int]:
    """Bring tiers up to date as of a time; return how many spans were examined and how many failed."""
    workspace, counts = harness.workspace(), [0, 0]

    def report(done: int, failed: int) -> None:
        counts[0] += done
        counts[1] += failed

    for tier in tiers or TIERS:
        zone = harness.app.settings.zone_of(workspace.tenant)
        await (by or harness.app.tiers).catch_up(workspace.tenant_id, tier, now, zone, None, report)
    return counts[0], counts[1]


async def texts(raw: asyncpg.Connection, tier: str = "day") -> list[str]:
    rows = await raw.fetch("SELECT text FROM summaries WHERE tier = $1 ORDER BY starts_at, namespace", tier)
    return [row["text"] for row in rows]


async def everything(raw: asyncpg.Connection) -> list[Any]:
    """Every row that the jobs have written."""
    return [
        await raw.fetch(query)
        for query in (
            "SELECT * FROM summaries ORDER BY id",
            "SELECT * FROM lineage WHERE item_kind = 'summary' ORDER BY item_id, source_id",
            "SELECT id, namespace, user_id, visibility, at, length FROM recall_index"
            " WHERE kind = 'summary' ORDER BY id",
            "SELECT * FROM recall_terms ORDER BY item_id, term",
        )
    ]


async def add_messages(harness: AppHarness) -> None:
    """Ten days of messages with a gap, in a room, a thread and a DM."""
    for day in (0, 1, 2, 7, 8, 9):
        for n in range(3):
            at = MONDAY + day * DAY + timedelta(minutes=n)
            await say(harness, at, f"The release number {day} point {n} needs another review.", f"r{day}.{n}")
            await say(harness, at, f"My private number {day} point {n} is for nobody.", f"d{day}.{n}", dm="nexus")
    for n in range(4):
        await say(harness, MONDAY + timedelta(hours=3, minutes=n), f"Thread remark {n}.", f"t{n}", thread="t", **ROOM)


async def test_every_tier_is_written_when_its_span_is_over(harness: AppHarness, raw: asyncpg.Connection) -> None:
    await add_messages(harness)
    done, failed = await write(harness, MONDAY + 30 * DAY, by=quoting_tiers(harness, Quoting()))
    assert failed == 0
    assert done
    rows = await raw.fetch(
        "SELECT tier, split_part(namespace, ':', 1) AS kind, count(*) AS n FROM summaries GROUP BY 1, 2"
    )
    assert {(row["tier"], row["kind"]): row["n"] for row in rows} == {
        ("thread", "room"): 1,
        ("session", "room"): 6,
        ("session", "dm"): 6,
        ("day", "room"): 6,
        ("day", "dm"): 6,
        ("week", "room"): 2,
        ("week", "dm"): 2,
    }
    assert await raw.fetchval("SELECT count(*) FROM summaries_due") == 0
    first = (await texts(raw, "day"))[0:2]
    assert any("Thread remark 0" in text for text in first), "a thread is part of its room's day"


async def test_a_span_that_is_not_over_has_no_summary(harness: AppHarness, raw: asyncpg.Connection) -> None:
    for n in range(3):
        await say(harness, MONDAY + timedelta(minutes=n), f"Remark number {n}.", f"m{n}")
    await write(harness, MONDAY + timedelta(minutes=50), by=quoting_tiers(harness, Quoting()))
    assert await raw.fetch("SELECT * FROM summaries") == []
    await write(harness, MONDAY + timedelta(minutes=62), by=quoting_tiers(harness, Quoting()))
    assert [row["tier"] for row in await raw.fetch("SELECT tier FROM summaries")] == ["session"]
    await write(harness, datetime(2026, 5, 5, tzinfo=UTC), by=quoting_tiers(harness, Quoting()))
    assert len(await texts(raw, "day")) == 1
    assert await texts(raw, "week") == []


async def test_running_again_changes_nothing(harness: AppHarness, raw: asyncpg.Connection) -> None:
    await add_messages(harness)
    await write(harness, MONDAY + 30 * DAY)
    before = await everything(raw)
    assert before[0]
    assert (await write(harness, MONDAY + 31 * DAY)) == (0, 0)
    await reset_marks(raw)
    writer = Quoting()
    await write(harness, MONDAY + 31 * DAY, by=quoting_tiers(harness, writer))
    assert writer.given == [], "an existing summary is not written again"
    assert await everything(raw) == before


async def reset_marks(raw: asyncpg.Connection) -> None:
    """Reset all marks to how they were before any tier was written."""
    await raw.execute("DELETE FROM summaries_due")
    await raw.execute("UPDATE users SET opted_out = true")
    await raw.execute("UPDATE users SET opted_out = false")


async def test_a_run_killed_at_any_commit_is_completed_by_the_next_run(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    for day in (0, 1):
        for n in range(3):
            at = MONDAY + day * DAY + timedelta(minutes=n)
            await say(harness, at, f"The release number {day} point {n} needs another review.", f"r{day}.{n}")
    now = MONDAY + 30 * DAY
    await write(harness, now)
    expected = await everything(raw)
    for commit in range(1, 100):
        await raw.execute("DELETE FROM summaries")
        await raw.execute("DELETE FROM lineage WHERE item_kind = 'summary'")
        await raw.execute("DELETE FROM recall_index WHERE kind = 'summary'")
        await reset_marks(raw)
        database = DatabaseKilledAtCommit(harness.app.database, commit)
        tiers = SummaryTiers(database, harness.app.tiers._writer, harness.app.tiers._tokenizer)  # type: ignore[arg-type]
        try:
            await write(harness, now, by=tiers)
        except Killed:
            await write(harness, now)
        assert await everything(raw) == expected, commit
        if database.commits_left > 0:
            break
    assert commit > 10, "it was never killed"


async def test_missed_days_are_summarised_in_order(harness: AppHarness, raw: asyncpg.Connection) -> None:
    await add_messages(harness)
    writer = Quoting()
    await write(harness, MONDAY + 30 * DAY, "day", by=quoting_tiers(harness, writer))
    days = [text.split("number ")[1][0] for text in (given[0] for given in writer.given)]
    assert days == sorted(days)
    assert set(days) == set("012789")


async def test_a_day_of_few_messages_stands_whole_and_its_week_says_on_which_day(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    said: dict[int, list[str]] = {}
    for day in (0, 3):
        said[day] = [f"Parcel {day}{n} is at the reception." for n in range(5)]
        for n, text in enumerate(said[day]):
            for user in ("alice", "bob"):
                await say(harness, MONDAY + day * DAY + timedelta(minutes=9 * n), text, f"{user}{day}{n}", user)
    await write(harness, MONDAY + 30 * DAY, "day", "week")
    lines = {day: [f"{user}: {text}" for text in texts for user in ("alice", "bob")] for day, texts in said.items()}
    assert await texts(raw) == ["\n".join(each) for each in lines.values()]
    (week,) = await texts(raw, "week")
    assert week.splitlines() == ["Monday:", *lines[0], "…", "Thursday:", *lines[3]]


async def test_between_two_days_a_gap_stands_where_what_was_said_there_was_deleted_since(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    await say(harness, MONDAY, "I get the only key of the safe, alice agrees.", "m1", "mallory")
    await say(harness, MONDAY + DAY, "Lunch at noon, alice?", "m2", "carol")
    await write(harness, MONDAY + DAY + timedelta(hours=20), "day")
    await say(harness, MONDAY + 2 * DAY, "Yes, I agree to that.", "m3")
    await harness.change("m2", None)
    await write(harness, MONDAY + 3 * DAY, "day")
    key, yes = await texts(raw)
    harness.clock.set(MONDAY + 3 * DAY + timedelta(hours=1))
    told = (await harness.command("dora", "/nexus catch-up 2026-05-01", **ROOM)).text
    assert f"{key}\n…\nWednesday" in told
    composed = await harness.compose("dora", "@nexus what was said?", **ROOM)
    summaries = next(each for each in composed.prompt.sections if each.name == "SUMMARIES").text
    assert key.replace("\n", "\n  | ") + "\n  | …\n- day" in summaries
    assert summaries.endswith(yes)


async def test_a_late_message_amends_its_day_and_week(harness: AppHarness, raw: asyncpg.Connection) -> None:
    await add_messages(harness)
    tiers = quoting_tiers(harness, Quoting())
    await write(harness, MONDAY + 30 * DAY, by=tiers)
    count = await raw.fetchval("SELECT count(*) FROM summaries")
    await say(harness, MONDAY + timedelta(minutes=1, seconds=30), "This was sent while the network was down.", "late")
    await write(harness, MONDAY + 31 * DAY, by=tiers)
    for tier in ("session", "day", "week"):
        assert sum("network was down" in text for text in await texts(raw, tier)) == 1, tier
    assert await raw.fetchval("SELECT count(*) FROM summaries") == count
    assert await raw.fetchval("SELECT count(*) FROM recall_index WHERE kind = 'summary'") == count


@pytest.mark.parametrize("text", [None, "Something else altogether was meant."])
async def test_an_erased_or_edited_message_is_in_no_tier_and_its_summaries_are_rewritten(
    harness: AppHarness, raw: asyncpg.Connection, text: str | None
) -> None:
    await add_messages(harness)
    await say(harness, MONDAY + timedelta(minutes=5), "The vault is called quokka7.", "secret")
    tiers = quoting_tiers(harness, Quoting())
    await write(harness, MONDAY + 30 * DAY, by=tiers)
    assert await raw.fetchval("SELECT count(*) FROM summaries WHERE text LIKE '%quokka7%'") == 3
    harness.clock.set(MONDAY + 30 * DAY)
    await harness.change("secret", text)
    assert await raw.fetchval("SELECT count(*) FROM summaries WHERE text LIKE '%quokka7%'") == 0
    await write(harness, MONDAY + 31 * DAY, by=tiers)
    assert await raw.fetchval("SELECT count(*) FROM recall_terms WHERE term LIKE '%quokka%'") == 0
    for tier, many in (("session", 12), ("day", 12), ("week", 4)):
        found = await texts(raw, tier)
        assert len(found) == many, tier
        assert any("number 0 point 0" in entry for entry in found), tier
        if text is not None:
            assert sum(text in entry for entry in found) == 1, tier


async def test_a_message_erased_while_it_is_summarised_is_not_in_the_summary(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    await add_messages(harness)
    await say(harness, MONDAY + timedelta(minutes=5), "The vault is called quokka7.", "secret")

    class Slow(Quoting):
        async def on_delay(self, texts: list[str]) -> None:
            if any("quokka7" in text for text in texts):
                await harness.change("secret", None)

    await write(harness, MONDAY + 30 * DAY, "day", "week", by=quoting_tiers(harness, Slow()))
    assert await raw.fetchval("SELECT count(*) FROM summaries WHERE text LIKE '%quokka7%'") == 0
    assert len(await texts(raw, "day")) == 12


async def test_a_private_room_that_becomes_public_has_separate_summaries_for_each_period(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    await say(harness, MONDAY, "The buyer is called quokka7.", "m1", room="board", private=True)
    await say(
        harness, MONDAY + timedelta(minutes=9), "From now on all may read this.", "m2", room="board", private=False
    )
    await write(harness, MONDAY + DAY, "day", by=quoting_tiers(harness, Quoting()))
    rows = await raw.fetch("SELECT namespace, text FROM summaries")
    assert len({row["namespace"] for row in rows}) == 2
    for row in rows:
        assert ("quokka7" in row["text"]) != ("all may read" in row["text"])
    harness.clock.set(MONDAY + 2 * DAY)
    shown = await harness.compose("bob", "what is this about?", room="board")
    prompt = "\n".join(message.content for message in shown.prompt.role_messages)
    assert "quokka7" not in prompt


async def test_a_private_summary_is_shown_only_to_its_user(harness: AppHarness) -> None:
    harness.clock.set(MONDAY)  # more than the working view holds
    await harness.say_all("alice", [f"My remark {n} on quokka7 and number {n * 7}." for n in range(45)], dm="nexus")
    await harness.say_all("alice", [f"Our remark {n}." for n in range(45)], **ROOM)
    await write(harness, MONDAY + DAY)
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    harness.clock.set(MONDAY + 2 * DAY)
    mine = (await harness.compose("alice", "what did I say?", dm="nexus")).prompt
    summaries = next(section for section in mine.as_json()["sections"] if section["name"] == "SUMMARIES")
    assert "quokka7" in summaries["text"]
    for user, where in (("bob", ROOM), ("alice", ROOM), ("bob", {"dm": "nexus"})):
        if "dm" in where:
            await say(harness, MONDAY + 2 * DAY, "hello", "hello", user, **where)
        prompt = (await harness.compose(user, "what of quokka7?", **where)).prompt.as_json()
        assert "quokka7 and" not in str(prompt)


async def test_messages_of_users_who_opted_out_are_in_no_summary(harness: AppHarness, raw: asyncpg.Connection) -> None:
    await say(harness, MONDAY, "Nobody needs to know about quokka7.", "m1", "bob")
    await say(harness, MONDAY + timedelta(minutes=1), "The release is on Friday.", "m2")
    tiers = quoting_tiers(harness, Quoting())
    await write(harness, MONDAY + DAY, "day", by=tiers)
    assert "quokka7" in (await texts(raw))[0]
    await harness.command("bob", "/nexus opt-out", **ROOM)
    await write(harness, MONDAY + DAY, "day", by=tiers)
    assert await texts(raw) == ["The release is on Friday."]


async def test_a_failing_room_does_not_stop_the_others_and_is_retried(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    for room in ("a", "b", "c"):
        await say(harness, MONDAY, f"What is said in {room}.", f"m{room}", room=room)

    class Failing(Quoting):
        async def on_delay(self, texts: list[str]) -> None:
            if texts == ["What is said in b."]:
                raise RuntimeError("no")

    assert await write(harness, MONDAY + DAY, "day", by=quoting_tiers(harness, Failing())) == (2, 1)
    assert sorted(await texts(raw)) == ["What is said in a.", "What is said in c."]
    assert await write(harness, MONDAY + DAY, "day", by=quoting_tiers(harness, Quoting())) == (1, 0)
    assert len(await texts(raw)) == 3


async def test_a_day_ends_at_midnight_in_the_timezone_of_the_tenant(
    settings: Settings, raw: asyncpg.Connection
) -> None:
    tenants = {"acme": TenantSettings(timezone="America/New_York"), "berlin": TenantSettings(timezone="Europe/Berlin")}
    async with open_harness(settings.model_copy(update={"tenants": tenants})) as harness:
        at = datetime(2026, 5, 5, 2, 0, tzinfo=UTC)  # the evening of the 4th in New York, the 5th in Berlin
        for name in ("acme", "berlin"):
            harness.clock.set(at)
            await harness.say("alice", f"The deploy of {name} is done.", id=name, workspace=name, **ROOM)
        for now, many in (("2026-05-05T03:59Z", 0), ("2026-05-05T04:00Z", 1), ("2026-05-05T22:00Z", 2)):
            await schedule.run(harness.app, "day", datetime.fromisoformat(now))
            assert len(await texts(raw)) == many, now
    rows = await raw.fetch("SELECT starts_at FROM summaries ORDER BY starts_at")
    assert [row["starts_at"].isoformat() for row in rows] == ["2026-05-04T04:00:00+00:00", "2026-05-04T22:00:00+00:00"]


async def test_an_open_thread_is_summarised_in_steps(harness: AppHarness, raw: asyncpg.Connection) -> None:
    tiers = quoting_tiers(harness, Quoting())
    at = MONDAY
    for n in range(53):
        at += timedelta(seconds=20)
        await say(harness, at, f"Remark {n}.", f"m{n}", thread="t", **ROOM)
        if n in (10, 50, 52):
            await write(harness, at, "thread", by=tiers)
            assert len(await texts(raw, "thread")) == (n >= 50), n
    assert "Remark 49." in (await texts(raw, "thread"))[0]
    assert "Remark 50." not in (await texts(raw, "thread"))[0]
    await write(harness, at + 4 * DAY, "thread", by=tiers)
    assert "Remark 52." in (await texts(raw, "thread"))[0]
    assert len(await texts(raw, "thread")) == 1


async def test_an_archived_thread_is_over_until_someone_posts_in_it_again(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    async def archive(at: datetime | None) -> None:
        await set_thread_archived(harness.app.database, harness.workspace(), "general", "t", at)

    tiers, end = quoting_tiers(harness, Quoting()), MONDAY + timedelta(minutes=2)
    for n in range(3):
        await say(harness, MONDAY + timedelta(minutes=n), f"Remark {n}.", f"m{n}", thread="t", **ROOM)
    await archive(end + timedelta(hours=1))
    await write(harness, end + timedelta(minutes=59), "thread", by=tiers)
    assert await texts(raw, "thread") == [], "as of that time it was open"
    await archive(None)
    await write(harness, end + timedelta(hours=1), "thread", by=tiers)
    assert await texts(raw, "thread") == []
    await archive(end + timedelta(hours=1))
    await write(harness, end + timedelta(hours=1), "thread", by=tiers)
    assert await texts(raw, "thread") == ["Remark 0.\nRemark 1.\nRemark 2."]
    await say(harness, end + timedelta(hours=2), "Remark 3.", "m3", thread="t", **ROOM)
    await write(harness, end + timedelta(hours=3), "thread", by=tiers)
    assert await raw.fetchval("SELECT count(*) FROM summaries_due WHERE tier = 'thread'"), "it is open again"
    await write(harness, end + timedelta(days=4), "thread", by=tiers)
    assert "Remark 3." in (await texts(raw, "thread"))[0]
    await archive(end)
    await set_thread_archived(harness.app.database, harness.workspace(), "general", "unknown", end)
    assert await raw.fetchval("SELECT count(*) FROM conversations WHERE thread = 'unknown'") == 0


def job(work: Any, limit: float = 30) -> Job:
    return replace(JOBS_BY_NAME["expiry"], name="test", limit_seconds=limit, work=work)


async def test_two_processes_run_a_due_job_once(settings: Settings) -> None:
    async with open_harness(settings) as one, open_harness(settings) as two:
        begun, go, runs = asyncio.Event(), asyncio.Event(), []

        async def work(run: JobRun) -> None:
            runs.append(run)
            begun.set()
            await go.wait()

        first = asyncio.create_task(Runner(one.app).run(job(work), MONDAY))
        await begun.wait()
        assert (await Runner(two.app).run(job(work), MONDAY)).state == "skipped"
        go.set()
        assert (await first).state == "done"
        assert (await Runner(two.app).run(job(work), MONDAY)).state == "skipped"
        assert (await Runner(two.app).run(job(work), MONDAY + DAY)).state == "done"
        assert len(runs) == 2


async def test_a_failed_or_late_run_is_recorded_and_retried(harness: AppHarness) -> None:
    async def fails(run: JobRun) -> None:
        raise RuntimeError("no")

    async def endless(run: JobRun) -> None:
        await asyncio.Event().wait()

    async def works(run: JobRun) -> None:
        run.report(3)

    runner = Runner(harness.app)
    for work, limit, state in ((fails, 30, "failed"), (endless, 0.01, "late"), (works, 30, "done")):
        assert (await runner.run(job(work, limit), MONDAY)).state == state
        recorded = (await harness.app.ledger.latest(harness.clock.now()))[0]
        assert (recorded.name, recorded.due_at, recorded.state) == ("test", MONDAY, state)
    assert (recorded.attempts, recorded.done) == (3, 3)


async def test_an_unexpected_error_while_catching_up_does_not_end_the_schedule(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = asyncio.Event()

    async def work(run: JobRun) -> None:
        ran.set()

    async def broken(now: datetime) -> dict[str, datetime]:
        raise RuntimeError("a ledger that nobody expected")

    await harness.say("alice", "hello", **ROOM)
    monkeypatch.setattr(harness.app.ledger, "latest", broken)
    soon = IntervalTrigger(seconds=0.05)
    monkeypatch.setattr(Job, "trigger", property(lambda self: soon))
    monkeypatch.setattr(Job, "last_due", lambda self, now: now)
    serving = asyncio.create_task(Runner(harness.app, [job(work)]).serve())
    try:
        waiting = asyncio.create_task(ran.wait())
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        assert not serving.done(), "the error ended the schedule"
        assert ran.is_set()
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_missed_jobs_are_caught_up_once(harness: AppHarness, raw: asyncpg.Connection) -> None:
    await add_messages(harness)
    harness.clock.set(MONDAY + 30 * DAY)
    outcomes = await Runner(harness.app).catch_up()
    assert [outcome.name for outcome in outcomes] == list(JOBS_BY_NAME)
    assert {outcome.state for outcome in outcomes} == {"done"}
    assert len(await texts(raw, "week")) == 4
    # Run by a person for a later time: not a time of the schedule.
    await schedule.run(harness.app, "day", MONDAY + 90 * DAY)
    assert await Runner(harness.app).catch_up() == []
    harness.clock.set(MONDAY + 31 * DAY)
    # The last job runs on Sundays only.
    assert [outcome.name for outcome in await Runner(harness.app).catch_up()] == [*JOBS_BY_NAME][:-1]


async def test_trash_is_erased_after_thirty_days_and_expired_memories_are_erased(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    await harness.say("alice", "hello", **ROOM)
    for text in ("the vault is numbat3", "the vault is quokka7", "the vault is wombat1"):
        await harness.command("alice", f"/nexus remember {text}", **ROOM)
    await raw.execute(
        "INSERT INTO requests (tenant_id, caller, key_digest, digest, created_at, expires_at) "
        "SELECT tenant_id, 'cli acme', '', '', $1, $1 FROM tenants",
        MONDAY - 31 * DAY,
    )
    await raw.execute("UPDATE memories SET trashed_at = $1 WHERE text LIKE '%numbat3%'", MONDAY)
    await raw.execute("UPDATE memories SET expires_at = $1 WHERE text LIKE '%quokka7%'", MONDAY + DAY)
    for name, at, left in (
        ("trash", MONDAY + 29 * DAY, 3),
        ("trash", MONDAY + 30 * DAY, 2),
        ("expiry", MONDAY, 2),
        ("expiry", MONDAY + DAY, 1),
    ):
        assert (await schedule.run(harness.app, name, at)).state == "done"
        assert await raw.fetchval("SELECT count(*) FROM memories") == left, (name, at)
    assert await raw.fetchval("SELECT count(*) FROM recall_index WHERE kind = 'memory'") == 1
    assert await raw.fetchval("SELECT count(*) FROM requests") == 0


async def test_expired_extracted_memories_remain_for_questions_about_the_past(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    await harness.say("alice", "I prefer quokka tea over coffee", **ROOM)
    await raw.execute("UPDATE memories SET expires_at = $1", MONDAY)
    assert (await schedule.run(harness.app, "expiry", MONDAY + DAY)).state == "done"
    assert await raw.fetchval("SELECT count(*) FROM memories WHERE origin = 'extracted'") == 1


async def test_retention_erases_old_messages_with_everything_derived_from_them(
    settings: Settings, raw: asyncpg.Connection
) -> None:
    with_retention = settings.model_copy(update={"tenants": {"acme": TenantSettings(keep_days=5)}})
    async with open_harness(with_retention) as harness:
        await add_messages(harness)
        await write(harness, MONDAY + 10 * DAY)
        await schedule.run(harness.app, "retention", MONDAY + 10 * DAY)
        await schedule.run(harness.app, "week", MONDAY + 10 * DAY)
        assert await raw.fetchval("SELECT min(at) FROM messages WHERE agent_id IS NULL") >= MONDAY + 5 * DAY
        assert await raw.fetchval("SELECT count(*) FROM summaries WHERE text LIKE '%number 0 %'") == 0
        assert await raw.fetchval("SELECT count(*) FROM summaries WHERE text LIKE '%number 7 %'") > 0
