"""A transaction that the database ends to break a deadlock may be retried by its caller."""

import asyncio
import uuid

import asyncpg

from composer.errors import Overtaken
from composer.settings import Settings
from composer.stores.database.postgres import PostgresDatabase
from tests.support.databases import service_url
from tests.support.receiver import connection_of
from tests.support.waiting import TIMEOUT_SECONDS

TENANT = uuid.UUID(int=1)


async def test_a_transaction_ended_by_a_deadlock_may_be_retried(settings: Settings) -> None:
    assert settings.database_url is not None
    admin = await asyncpg.connect(settings.database_url)
    name = await admin.fetchval("SELECT current_database()")
    await admin.execute(f"ALTER DATABASE {name} SET deadlock_timeout = '10ms'")
    await admin.close()
    database, barrier = await PostgresDatabase.open(service_url(settings.database_url)), asyncio.Barrier(2)

    async def lock_both(first: int, second: int) -> None:
        async with database.transaction(TENANT) as tx:
            await connection_of(tx).execute("SELECT pg_advisory_xact_lock($1)", first)
            await barrier.wait()
            await connection_of(tx).execute("SELECT pg_advisory_xact_lock($1)", second)

    try:
        results = await asyncio.gather(lock_both(1, 2), lock_both(2, 1), return_exceptions=True)
        assert {type(result) for result in results} == {type(None), Overtaken}
        await use_connection_again(database)
    finally:
        await database.close()


async def use_connection_again(database: PostgresDatabase) -> None:
    """The connection of the ended transaction is usable for the next one."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        for _ in range(3):
            async with database.transaction(TENANT) as tx:
                assert await tx.people.find_user_ids("console", "acme", []) == {}
