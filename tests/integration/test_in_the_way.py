"""Transactions that wait for each other: the one that the database ends is tried again by whoever made it."""

import asyncio
import uuid

import asyncpg
import pytest

from composer.errors import Unavailable
from composer.settings import Settings
from composer.stores.postgres import PostgresDatabase
from tests.support.receiver import connection_of
from tests.support.waiting import TIMEOUT_SECONDS

pytestmark = pytest.mark.integration

TENANT = uuid.UUID(int=1)


async def test_a_transaction_that_a_deadlock_ended_may_be_tried_again(settings: Settings) -> None:
    assert settings.database_url is not None
    admin = await asyncpg.connect(settings.database_url)
    name = await admin.fetchval("SELECT current_database()")
    await admin.execute(f"ALTER DATABASE {name} SET deadlock_timeout = '10ms'")
    await admin.close()
    database, both = await PostgresDatabase.open(settings.database_url), asyncio.Barrier(2)

    async def crossing(first: int, second: int) -> None:
        async with database.transaction(TENANT) as tx:
            await connection_of(tx).execute("SELECT pg_advisory_xact_lock($1)", first)
            await both.wait()
            await connection_of(tx).execute("SELECT pg_advisory_xact_lock($1)", second)

    try:
        ends = await asyncio.gather(crossing(1, 2), crossing(2, 1), return_exceptions=True)
        assert {type(end) for end in ends} == {type(None), Unavailable}
        await crossing_alone(database)
    finally:
        await database.close()


async def crossing_alone(database: PostgresDatabase) -> None:
    """The connection that was in it is good for the next one."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        for _ in range(3):
            async with database.transaction(TENANT) as tx:
                assert await tx.people.find_user_ids("console", "acme", []) == {}
