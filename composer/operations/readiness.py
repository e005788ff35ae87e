"""Whether a running Nexus can serve: its database is migrated and isolates tenants, and its servers answer in time."""

import asyncio
from collections.abc import Awaitable
from typing import Final

import structlog

from composer.errors import Misconfigured, NexusError, where_raised
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.working_cache import RedisWorkingCache
from composer.text.counts import counted

logger = structlog.get_logger()

ANSWER_SECONDS: Final = 1.0  # within which each server must answer


async def missing(database: PostgresDatabase, cache: RedisWorkingCache) -> list[str]:
    """What keeps this process from serving, a sentence each; empty when nothing does. The sentences name no server,
    nobody and no secret."""
    checks = _check("database", _database(database)), _check("cache", cache.ping())
    return [sentence for sentence in await asyncio.gather(*checks) if sentence]


async def _database(database: PostgresDatabase) -> None:
    pending = await database.pending_migrations()
    if pending:
        raise Misconfigured(f"The database's schema is {counted(len(pending), 'migration')} behind: run nexus migrate.")
    await database.check_tenant_isolation()


async def _check(name: str, probe: Awaitable[object]) -> str:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await probe
    except TimeoutError:
        return f"The {name} does not answer within {ANSWER_SECONDS:.0f} second."
    except NexusError as error:
        return str(error)
    except Exception as error:  # a check that fails is no reason to be called ready
        logger.error("readiness.check_failed", check=name, **where_raised(error))
        return f"The check of the {name} failed; the program log says why."
    return ""
