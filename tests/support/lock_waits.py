"""Tasks that a lock of the database holds up, and processes that hold locks no more."""

import asyncio
from typing import Any

import asyncpg

from composer.app import App
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


async def release_locks(app: App, settings: Settings) -> None:
    """Let go of the locks by which others see that this process lives, as its end does; the server hears of that a
    moment later."""
    await app.locks.close()
    connection = await asyncpg.connect(settings.database_url)
    held = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND (classid::int8 << 32 | objid::int8) = $1"

    async def released() -> bool:
        return not await connection.fetchval(f"SELECT EXISTS ({held})", app.locks.number)

    try:
        await until(released)
    finally:
        await connection.close()
