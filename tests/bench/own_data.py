"""What one person asks of all that they ever said (export, forget, privacy), and how long everybody else waits for it:
the longest time without a turn of the event loop."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import asyncpg

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.app import App
from composer.model import CONSOLE
from tests.bench.report import Report
from tests.bench.world import START, HashEmbedder, data_folder, opened, stores

MESSAGES: Final = 100_000
ALICE: Final = "alice"
COPIES: Final = """
INSERT INTO messages (tenant_id, id, conversation_id, seq, external_id, at, user_id, author, text, namespace,
                      visibility, indexed)
SELECT tenant_id, md5('copy' || k)::uuid, conversation_id, seq + k, external_id || k, at + k * interval '1 minute',
       user_id, author, 'message ' || k || ' about ' || repeat(md5(k::text) || ' ', 4), namespace, visibility, true
FROM messages, generate_series(1, $1::int) AS k
WHERE text = 'the first one'
"""


@dataclass
class Gap:
    """The longest time in which the event loop did nothing else, in ms, and how long it all took, in s."""

    ms: float = 0.0
    seconds: float = 0.0


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Store one person's messages, then export them and look for words in them."""
    count = 5_000 if quick else MESSAGES
    report = Report("own data", figures={"messages": count})
    rows = []
    with data_folder() as home:
        async with stores(home) as servers, opened(home, servers, "own", embedder=HashEmbedder()) as app:
            note(f"storing {count:,} messages")
            await _fill(app, count)
            gc.collect()
            gc.freeze()  # as bot/serving.py does
            for command in ("/nexus export", "/nexus forget zebra crossing", "/nexus privacy"):
                async with _watched() as gap:
                    await _give(app, command)
                rows.append((command, gap.seconds, gap.ms))
                report.figures |= {f"{command} s": gap.seconds, f"{command} gap_ms": gap.ms}
    report.table(f"one person's {count:,} messages", ["command", "s", "longest gap ms"], rows)
    return report


async def _fill(app: App, count: int) -> None:
    await _say(app)
    connection: asyncpg.Connection[Any] = await asyncpg.connect(app.settings.database_url)
    try:
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(COPIES, count - 1)
        await connection.execute("ANALYZE messages")
    finally:
        await connection.close()


async def _say(app: App) -> None:
    here = app.directory.workspace(CONSOLE, "own")
    message = incoming(here, place_of("general", None, None), ALICE, "the first one", START, id="m1", name=ALICE)
    await app.receive(here, [message], answer=False)


async def _give(app: App, command: str) -> None:
    here = app.directory.workspace(CONSOLE, "own")
    at = START + timedelta(days=1)
    await run_command(
        app, here, incoming(here, place_of(None, "nexus", None), ALICE, command, at, id=command, name=ALICE)
    )


@asynccontextmanager
async def _watched() -> AsyncIterator[Gap]:
    gap, started = Gap(), time.perf_counter()
    watching = asyncio.create_task(_watch(gap))
    await asyncio.sleep(0.05)
    try:
        yield gap
    finally:
        gap.seconds = time.perf_counter() - started
        watching.cancel()


async def _watch(gap: Gap) -> None:
    before = time.perf_counter()
    while True:
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        gap.ms, before = max(gap.ms, (now - before) * 1_000), now
