"""Query plans: with known table sizes, a reading statement is planned once per connection and gives the same rows."""

import json
from typing import Final

import asyncpg
import pytest

from composer.settings import Settings
from composer.stores.postgres import PostgresDatabase
from tests.support.databases import service_url
from tests.support.harness import AppHarness, open_harness
from tests.support.receiver import TENANT, connection_of

pytestmark = pytest.mark.integration

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


async def plan_mode(settings: Settings, *, snapshot: bool) -> str:
    """The plan mode of a transaction in a newly opened store."""
    assert settings.database_url is not None
    database = await PostgresDatabase.open(service_url(settings.database_url))
    try:
        async with database.transaction(TENANT, snapshot=snapshot) as tx:
            return str(await connection_of(tx).fetchval("SHOW plan_cache_mode"))
    finally:
        await database.close()


async def test_reading_reuses_plans_when_the_sizes_of_all_large_tables_are_known(settings: Settings) -> None:
    await set_row_counts(settings, 50_000, *LARGE)
    assert await plan_mode(settings, snapshot=True) == "force_generic_plan"
    assert await plan_mode(settings, snapshot=False) == "force_custom_plan", (
        "a writing transaction makes the tables grow"
    )


@pytest.mark.parametrize("small", LARGE)
async def test_plans_are_not_reused_while_a_large_table_may_be_empty(settings: Settings, small: str) -> None:
    await set_row_counts(settings, 50_000, *LARGE)
    await set_row_counts(settings, 0, small)
    assert await plan_mode(settings, snapshot=True) == "force_custom_plan"


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
    assert await plan_mode(settings, snapshot=True) == "force_generic_plan"
    async with open_harness(settings, clock=clock) as harness:
        assert await prompts(harness) == planned_anew
