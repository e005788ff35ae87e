"""Backup and restore of a large log: duration and size."""

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, TypeVar

import asyncpg

from bot.importers.history import import_history
from composer.app import App
from composer.model import CONSOLE
from tests.bench.report import Report
from tests.bench.world import START, HashEmbedder, Vocabulary, data_folder, history, opened, settled, stores

T = TypeVar("T")
MESSAGES: Final = 1_000_000
IMPORTED: Final = 10_000  # imported as usual; the others are copies of these, at later times and under other ids
_IDS: Final = {  # by table: the ids that a copy has of its own
    "messages": ("id",),
    "episodes": ("id", "message_id"),
    "recall_index": ("id",),
    "recall_terms": ("item_id",),
}
_LATER: Final = (
    """, 'external_id', t.external_id || '.' || k, 'seq', t.seq + k * 100000, 'at', t.at + k * interval '121 days'"""
)


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Fill a database, back it up, and restore it into another one, which compares every table's rows."""
    count = 2 * IMPORTED if quick else MESSAGES
    with data_folder() as home:
        async with stores(home) as servers, opened(home, servers, "backup", embedder=HashEmbedder()) as app:
            note(f"storing {count:,} messages")
            await import_history(app, history(IMPORTED, Vocabulary(), "backup"), lambda _: None)
            await app.indexer.catch_up(app.directory.workspace(CONSOLE, "backup").tenant_id)
            database = await _multiplied(app, count // IMPORTED - 1)
            await settled(app)
            note("the backup")
            path = home / "bench.backup"
            manifest, wrote = await _timed(lambda: app.backup.write(path, START + timedelta(days=1)))
            note("the restore")
            _, restored = await _timed(lambda: app.backup.test_restore(path))
            size = path.stat().st_size / 2**20
    messages = manifest.tables["messages"]
    report = Report("backup", figures={"messages": messages, "rows": manifest.rows, "database_mb": database})
    report.figures |= {"file_mb": size, "write_s": wrote, "restore_s": restored}
    head = ["messages", "rows", "database MB", "file MB", "backup s", "restore s"]
    report.table("backup and restore", head, [[messages, manifest.rows, database, size, wrote, restored]])
    return report


async def _multiplied(app: App, copies: int) -> float:
    """Copy every message so many times, indexed like the first; return the size of the database in MB."""
    connection: asyncpg.Connection[Any] = await asyncpg.connect(app.settings.database_url)
    try:
        await connection.execute("SET session_replication_role = replica; SET synchronous_commit = off")
        for table, ids in _IDS.items():
            own = ", ".join(f"'{id}', md5(t.{id}::text || k)::uuid" for id in ids)
            own += _LATER if table == "messages" else ""
            columns = await connection.fetch(
                "SELECT column_name FROM information_schema.columns"
                " WHERE table_schema = 'public' AND table_name = $1 AND is_generated = 'NEVER'",
                table,
            )
            names = [row["column_name"] for row in columns]
            await connection.execute(
                f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(f'c.{name}' for name in names)}"
                f" FROM {table} AS t, generate_series(1, $1::int) AS k,"
                f" jsonb_populate_record(t, jsonb_build_object({own})) AS c",
                copies,
            )
        return float(await connection.fetchval("SELECT pg_database_size(current_database())") / 2**20)
    finally:
        await connection.close()


async def _timed(step: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    started = time.perf_counter()
    return await step(), time.perf_counter() - started
