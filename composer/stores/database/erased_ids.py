"""Look for erased ids in everything that is stored: every table, every stored prompt, every key and value of Redis; and
for words in the planner's statistics, which outlive their rows."""

import re
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

import asyncpg
from redis import asyncio as redis

from composer.errors import Unavailable
from composer.settings.server_urls import ServerUrl
from composer.stores.database.postgres import CONNECT_TIMEOUT_SECONDS, translate_postgres_errors
from sql.loader import queries

ID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
# Where an erased id stays on purpose: so that it is not stored again, that a turn knows which question it was for, and
# that a repeated request does not make again what it made.
TOMBSTONES: Final = frozenset({("erased", "id"), ("turns", "message_id"), ("turns", "reply_id"), ("requests", "made")})
ROWS_AT_A_TIME: Final = 1_000
# How ids are read from a column, by its type.
_EXPRESSIONS: Final = {
    "uuid": "{0}::text",
    "uuid[]": "array_to_string({0}, ' ')",
    "text": "{0}",
    "text[]": "array_to_string({0}, ' ')",
    "jsonb": "{0}::text",
    "json": "{0}::text",
}


async def find_ids(
    database: ServerUrl, cache: ServerUrl, tenant: uuid.UUID, is_wanted: Callable[[uuid.UUID], bool]
) -> Mapping[str, int]:
    """How often ids that are wanted occur in a tenant's rows and in the cache, by `table.column` or "cache"; and the
    columns of words of which the database keeps samples, whatever these are.

    Raises Unavailable.
    """
    found: defaultdict[str, int] = defaultdict(int)
    async for place, text in _texts(database, cache, tenant):
        found[place] += 1 if text is None else sum(is_wanted(uuid.UUID(id)) for id in ID.findall(text))
    return {place: count for place, count in found.items() if count}


async def _texts(database: ServerUrl, cache: ServerUrl, tenant: uuid.UUID) -> AsyncIterator[tuple[str, str | None]]:
    """All texts with their places. None: a text that is nobody's row, and should not be there."""
    async with translate_postgres_errors(database):
        connection = await asyncpg.connect(database, timeout=CONNECT_TIMEOUT_SECONDS)
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                await connection.execute("SELECT set_config('nexus.tenant', $1, true)", str(tenant))
                for row in await connection.fetch(queries()["columns_with_ids"].sql):
                    table, column = row["table"], row["column"]
                    if row["sampled"]:
                        yield f"statistics of {table}.{column}", None
                    if (table, column) in TOMBSTONES:
                        continue
                    text = _EXPRESSIONS[row["type"]].format(f'"{column}"')
                    statement = f'SELECT {text} FROM "{table}" WHERE "{column}" IS NOT NULL AND tenant_id = $1'
                    async for value in connection.cursor(statement, tenant, prefetch=ROWS_AT_A_TIME):
                        yield f"{table}.{column}", value[0]
        finally:
            await connection.close()
    client = redis.Redis.from_url(cache)
    try:
        async for key in client.scan_iter("*"):
            values = await client.lrange(key, 0, -1) if await client.type(key) == b"list" else [await client.get(key)]
            for value in (key, *values):
                yield "cache", (value or b"").decode("utf-8", "replace")
    except redis.RedisError as error:
        raise Unavailable(f"Redis at {cache} did not answer ({type(error).__name__}).") from error
    finally:
        await client.aclose()
