"""Look for texts in everything that is stored, byte by byte: tables, Redis, and the files of a home."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import asyncpg
import redis

from composer.settings import Settings
from composer.stores.audit_keys import KEY_FILE


async def find_remains(settings: Settings, *words: str) -> dict[str, set[str]]:
    """Where each of these words is found, in any case; those that are found nowhere are left out.

    A place is `table.column`, "redis key", "redis value" or a file's name.
    """
    found: dict[str, set[str]] = {}
    pattern = re.compile(b"|".join(re.escape(word.lower().encode()) for word in sorted(words, key=len, reverse=True)))
    by_bytes = {word.lower().encode(): word for word in words}

    def look(place: str, content: bytes) -> None:
        for match in pattern.finditer(content.lower()):
            found.setdefault(by_bytes[match.group()], set()).add(place)

    for place, text in await _cells(settings):
        look(place, text)
    for place, value in _cached(settings):
        look(place, value)
    for file in _files(settings.home):
        look(file.name, file.read_bytes())
    return found


async def _cells(settings: Settings) -> list[tuple[str, bytes]]:
    """Every value of every table, as text, with its table and column; bytes as they are: as digits, digests hold any
    short word by chance."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        columns = await connection.fetch(
            "SELECT c.relname, a.attname, a.atttypid = 'bytea'::regtype"
            " FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid"
            " WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"
            " AND format_type(a.atttypid, NULL) IN ('text', 'jsonb', 'json', 'text[]', 'bytea')"
        )
        found = []
        for table, column, is_bytes in columns:
            as_text = "" if is_bytes else "::text"
            rows = await connection.fetch(f'SELECT "{column}"{as_text} FROM "{table}" WHERE "{column}" IS NOT NULL')
            found += [(f"{table}.{column}", row[0] if is_bytes else row[0].encode()) for row in rows]
        return found
    finally:
        await connection.close()


def _cached(settings: Settings) -> Iterable[tuple[str, bytes]]:
    assert settings.redis_url is not None
    cache = redis.Redis.from_url(settings.redis_url)
    for key in cache.scan_iter("*"):
        yield "redis key", key
        values: list[Any] = cache.lrange(key, 0, -1) if cache.type(key) == b"list" else [cache.get(key)]
        yield from (("redis value", bytes(value or b"")) for value in values)


def _files(home: Path) -> Iterable[Path]:
    """All but those of PostgreSQL, and the key that the audit log is signed with, which is random letters."""
    files = (path for path in home.rglob("*") if path.is_file() and "postgres" not in path.parts)
    return (path for path in files if path.name != KEY_FILE)
