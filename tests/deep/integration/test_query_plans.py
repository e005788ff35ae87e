"""Query plans: with known table sizes, a reading statement is planned once per connection and gives the same rows."""

import json
from dataclasses import replace
from typing import Final

import asyncpg
import pytest

from bot.script.places import incoming, place_of
from bot.web.pages.admin import SHOWN_FIGURES
from composer.model import user_id
from composer.ports.database import Mode
from composer.repositories.ordering import Order
from composer.repositories.own_data import OwnFilter
from composer.repositories.table_statistics import FIRST_LOOK, TableStatistics
from composer.settings import Settings
from composer.stores.database.postgres import PostgresDatabase
from composer.visibility import owned_by_user
from sql.loader import parse_query, queries
from tests.support.databases import service_url
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.receiver import TENANT, connection_of

LARGE: Final = ("messages", "episodes", "recall_index", "recall_terms")
MESSAGES: Final = [
    ("alice", "the launch of apollo is on friday"),
    ("bob", "I prefer tea for the launch"),
    ("carol", "the budget of apollo was 400 euros"),
    ("alice", "we decided to use postgres for the budget"),
    ("bob", "friday is fine, the launch can wait"),
]


async def set_row_counts(settings: Settings, rows: int, *tables: str) -> None:
    """Set the row counts that the server believes in."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        for table in tables:
            await connection.execute(
                "SELECT pg_restore_relation_stats('schemaname', 'public', 'relname', $1::text, 'reltuples', $2::real)",
                table,
                rows,
            )
    finally:
        await connection.close()


async def plan_mode(settings: Settings, mode: Mode) -> str:
    """The plan mode of a transaction in a newly opened store."""
    assert settings.database_url is not None
    database = await PostgresDatabase.open(service_url(settings.database_url))
    try:
        async with database.transaction(TENANT, mode) as tx:
            return str(await connection_of(tx).fetchval("SHOW plan_cache_mode"))
    finally:
        await database.close()


async def test_plans_are_reused_when_the_sizes_of_all_large_tables_are_known(settings: Settings) -> None:
    await set_row_counts(settings, 0, *LARGE)
    assert await plan_mode(settings, "share") == "force_custom_plan", "a writing transaction makes tables grow"
    await set_row_counts(settings, 50_000, *LARGE)
    assert await plan_mode(settings, "read") == "force_generic_plan"
    assert await plan_mode(settings, "share") == "auto"


@pytest.mark.parametrize("small", LARGE)
async def test_plans_are_not_reused_while_a_large_table_may_be_empty(settings: Settings, small: str) -> None:
    async with open_harness(settings) as harness:
        await harness.say("alice", "the launch is on friday", room="general")
        await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    await set_row_counts(settings, 50_000, *LARGE)
    await set_row_counts(settings, 0, small)
    assert await plan_mode(settings, "read") == "force_custom_plan"


async def test_plans_are_reused_where_entries_are_stored_and_nothing_is_said(settings: Settings) -> None:
    await forget_statistics(settings)
    async with open_harness(settings) as harness:
        for number in range(FIRST_LOOK):
            await Hub(harness).write("alice", f"note {number} of the launch")
        await TableStatistics(harness.app.database).refresh()
    rows = await analysed_rows(settings)
    assert rows["recall_index"] > 0
    assert rows["messages"] == -1
    assert await plan_mode(settings, "read") == "force_generic_plan"


async def prompts(harness: AppHarness) -> list[str]:
    """The prompts of questions that find much, little and nothing, each composed more than once."""
    questions = [
        "when is the launch of apollo?",
        "what was the budget?",
        "tea or postgres?",
        "zzz",
        "@bob and the friday",
    ]
    found = [await harness.compose(user, text, room="general") for text in questions * 2 for user in ("alice", "dave")]
    found.append(await harness.compose("alice", "when is the launch?", dm="nexus"))
    return [json.dumps(composed.prompt.as_json(), sort_keys=True) for composed in found]


async def test_a_reused_plan_gives_the_same_prompts(settings: Settings) -> None:
    async with open_harness(settings) as harness:
        for number in range(60):
            user, text = MESSAGES[number % len(MESSAGES)]
            await harness.say(user, f"{text} ({number})", room="general")
        await harness.say("alice", "my launch is a secret", dm="nexus")
        await harness.command("alice", '/nexus fact set deploy_day "friday"', room="general")
        await harness.command("alice", "/nexus landmark add apollo flies", room="general")
        await harness.say("dave", "hello", room="general")
        planned_anew, clock = await prompts(harness), harness.clock
        assert any('"layer": "semantic"' in prompt for prompt in planned_anew)
    await set_row_counts(settings, 50_000, *LARGE)
    assert await plan_mode(settings, "read") == "force_generic_plan"
    async with open_harness(settings, clock=clock) as harness:
        assert await prompts(harness) == planned_anew


FETCHED: Final = "SELECT idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'memories'"
READ: Final = FETCHED.replace("idx_tup_fetch", "idx_tup_fetch + seq_tup_read")


async def test_the_latest_of_a_persons_memories_are_read_without_the_others(settings: Settings) -> None:
    async with open_harness(settings) as harness:
        for number in range(40):
            await Hub(harness).write("alice", f"note {number} of the launch")
        at = harness.workspace()
        own = owned_by_user(at.tenant_id, user_id(at, "alice"), ())
        await set_row_counts(settings, 50_000, *LARGE)
        in_order = [OwnFilter(order=order) for order in Order]
        for wanted in (*in_order, OwnFilter(words=("launch",), shelf="notes")):
            async with harness.app.database.transaction(at.tenant_id, "read") as tx:
                before = await connection_of(tx).fetchval(FETCHED)
                assert len(await tx.own_data.memory(own, wanted, 5, harness.clock.now())) == 5
                assert await connection_of(tx).fetchval(FETCHED) - before < 10, wanted
        nothing, now = OwnFilter(words=("zzz",), most=6), harness.clock.now()
        async with harness.app.database.transaction(at.tenant_id, "read") as tx:
            before = await connection_of(tx).fetchval(FETCHED)
            assert await tx.own_data.memory(own, nothing, 5, now) == []
            assert await tx.own_data.read_to(own, nothing) is not None
            assert {each.count for each in await tx.own_data.labels(own, 9, now, most=6)} == {6, 1}
            assert await connection_of(tx).fetchval(FETCHED) - before < 30
            assert await tx.own_data.read_to(own, replace(nothing, most=41)) is None
        for order in Order:
            some = OwnFilter(order=order, most=6)
            async with harness.app.database.transaction(at.tenant_id, "read") as tx:
                before = await connection_of(tx).fetchval(FETCHED)
                assert len(await tx.own_data.memory(own, some, 5, now)) == 5
                assert len(await tx.own_data.namespaces(own, now)) == 1
                assert [each.count for each in await tx.own_data.times(own, some, now)] == [6, 0]
                assert await connection_of(tx).fetchval(FETCHED) - before < 30, order


async def test_figures_for_admins_read_no_more_memories_than_they_show(settings: Settings) -> None:
    async with open_harness(settings) as harness:
        for number in range(40):
            await Hub(harness).write("alice", f"note {number} of the launch")
        await set_row_counts(settings, 50_000, *LARGE)
        now = harness.clock.now()
        async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
            before = await connection_of(tx).fetchval(READ)
            assert await tx.tenant_figures.counts(now, SHOWN_FIGURES) == {
                "people": 1, "admins": 0, "rooms": 0, "messages": 0, "answers_good": 0, "answers_bad": 0,
            }  # fmt: skip
            assert await connection_of(tx).fetchval(READ) == before
            bounded = await tx.tenant_figures.people(now.date(), now, 9, None, most=7)
            assert [each.entries for each in bounded] == [7]
            assert await connection_of(tx).fetchval(READ) - before <= 7
            assert [each.entries for each in await tx.tenant_figures.people(now.date(), now, 9, None)] == [40]
            assert (await tx.tenant_figures.counts(now))["memories"] == 40


async def analysed_rows(settings: Settings) -> dict[str, float]:
    """The row counts of the large tables, as the planner knows them; -1 for a table that was never analysed."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        rows = await connection.fetch(
            "SELECT relname, reltuples FROM pg_class WHERE relname = ANY ($1) AND relkind = 'r'", LARGE
        )
    finally:
        await connection.close()
    return {row["relname"]: row["reltuples"] for row in rows}


async def forget_statistics(settings: Settings) -> None:
    """Leave the planner without statistics, as in a new database, and keep autovacuum from taking some."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        for (table,) in await connection.fetch(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ):
            await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
            await connection.execute("SELECT pg_clear_relation_stats('public', $1)", table)
    finally:
        await connection.close()


async def test_plans_are_reused_as_soon_as_a_new_store_has_a_few_messages(settings: Settings) -> None:
    await forget_statistics(settings)
    assert await plan_mode(settings, "read") == "force_custom_plan"
    async with open_harness(settings) as harness:
        for number in range(FIRST_LOOK):
            await harness.say("alice", f"message {number} of the launch", room="general")
        await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    assert await plan_mode(settings, "read") == "force_generic_plan"


async def test_statistics_are_taken_anew_when_the_tables_have_grown(settings: Settings) -> None:
    await forget_statistics(settings)
    async with open_harness(settings) as harness:
        statistics = TableStatistics(harness.app.database)
        for number in range(40):
            await harness.say("alice", f"message {number} of the launch", room="general")
        await harness.app.indexer.catch_up(harness.workspace().tenant_id)
        assert set(LARGE) <= set(await statistics.refresh())
        assert await statistics.refresh() == []
        here, room = harness.workspace(), place_of("general", None, None)
        more = [incoming(here, room, "alice", f"item {n}", harness.clock.tick(), id=f"i{n}") for n in range(400)]
        await harness.app.receive(here, more)
        await harness.app.indexer.catch_up(here.tenant_id)
        await statistics.refresh()  # unless the indexer did
        assert (await analysed_rows(settings))["messages"] == 440


async def test_a_table_that_another_session_analyses_is_passed_over(settings: Settings) -> None:
    await forget_statistics(settings)
    async with open_harness(settings) as harness:
        await harness.say("alice", "the launch is on friday", room="general")
        other = await asyncpg.connect(settings.database_url)
        try:
            await other.execute("BEGIN; LOCK TABLE messages IN SHARE UPDATE EXCLUSIVE MODE")
            assert "messages" in await TableStatistics(harness.app.database).refresh()
            assert (await analysed_rows(settings))["messages"] == -1
        finally:
            await other.close()
        await TableStatistics(harness.app.database).refresh()
        assert (await analysed_rows(settings))["messages"] == 1


async def test_the_sessions_of_a_person_are_found_by_an_index_of_theirs(settings: Settings) -> None:
    async with open_harness(settings) as harness:
        await harness.say("alice", "when is the launch?", session="s1")
        await set_row_counts(settings, 1_000_000, "conversations")
        rows_of = queries()["sessions_list"].source.partition("FROM (")[2].partition(") AS s\n")[0]
        statement, alice = parse_query("session_rows", rows_of), user_id(harness.workspace(), "alice")
        given = {"tenant_id": TENANT, "user_ids": [alice], "projects": None}
        async with harness.app.database.transaction(TENANT, "read") as tx:
            values = [given[name] for name in statement.parameters]
            rows = await connection_of(tx).fetch(f"EXPLAIN {statement.sql}", *values)
    plan = "\n".join(row[0] for row in rows)
    assert "conversations_sessions_by_user" in plan, plan
