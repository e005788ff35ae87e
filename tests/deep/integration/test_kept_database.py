"""The database that the tests of a worker share keeps nothing of a test."""

import uuid

import asyncpg
import pytest

from composer.settings import Settings
from composer.stores.database.schema import prepare
from composer.stores.embedded.servers import Servers
from tests.support.databases import run_sql
from tests.support.harness import open_harness
from tests.support.kept_database import KeptDatabase

TENANT = "INSERT INTO tenants VALUES (gen_random_uuid(), 'acme', now())"


async def test_rows_are_deleted(servers: Servers) -> None:
    database = await KeptDatabase.make(servers.database_url)
    try:
        await run_sql(database.url, TENANT)
        assert await database.reset()
        assert database.is_as_made
        left = await asyncpg.connect(database.url)
        assert await left.fetchval("SELECT count(*) FROM tenants") == 0
        await left.close()
    finally:
        await database.drop()


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE tenants ADD COLUMN more text",
        "REVOKE SELECT ON tenants FROM nexus_service",
        "ALTER TABLE messages DISABLE ROW LEVEL SECURITY",
        "CREATE TABLE more (id int)",
        "DO $$ BEGIN EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO nexus_service', current_database()); END $$",
        "DELETE FROM schema_migrations WHERE version = 68",
    ],
)
async def test_a_database_that_is_not_as_it_was_made_is_not_used_again(servers: Servers, change: str) -> None:
    database = await KeptDatabase.make(servers.database_url)
    try:
        await run_sql(database.url, change)
        assert not await database.reset()
        assert not database.is_as_made
    finally:
        await database.drop()


async def test_the_first_app_of_a_test_finds_it_migrated_and_the_others_prepare_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = []

    async def counted(*given: object) -> object:
        prepared.append(given)
        return await prepare(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("tests.support.kept_database.prepare", counted)
    for opened in range(3):
        async with open_harness(settings) as harness:
            await harness.say("alice", "hello", room="general", id=f"m{opened}")
            assert len(prepared) == opened


async def test_the_locks_of_an_app_that_has_closed_are_free_for_the_next_one(settings: Settings) -> None:
    conversation = uuid.uuid4()
    async with open_harness(settings) as first:
        assert await first.app.locks.take([conversation])
        async with open_harness(settings) as second:
            assert not await second.app.locks.take([conversation])
    async with open_harness(settings) as third:
        assert await third.app.locks.take([conversation])
