"""Tasks that a lock of the database holds up."""

import asyncio
from typing import Any

import asyncpg

from composer.settings import Settings
from tests.support.waiting import until


async def until_stopped(settings: Settings, task: asyncio.Future[Any]) -> None:
    """Wait until something waits for a lock of the test's database, or a task has ended: the task of which a test
    expects that it waits. What follows must fail where it has ended."""
    connection = await asyncpg.connect(settings.database_url)

    async def stopped() -> bool:
        return task.done() or await connection.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")

    try:
        await until(stopped)
    finally:
        await connection.close()
