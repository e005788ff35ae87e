"""Nightly jobs: their duration, memory, and statements per room."""

import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, timedelta
from typing import Any, Final, TypeVar

import asyncpg
import psutil

from bot.console import schedule
from bot.importers.history import import_history
from composer.app import App
from composer.model import CONSOLE
from composer.stores.database.statements import PostgresStatements
from tests.bench.report import Report
from tests.bench.world import START, HashEmbedder, Vocabulary, data_folder, history, opened, stores

T = TypeVar("T")
MESSAGES: Final = 100_000
ROOMS: Final = 1_000
DAYS: Final = 7  # a week of messages, as the jobs find them after it


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Import a team's messages, then run the jobs that summarise them, and again with nothing to do. Embedding is free
    here: the bench `import` measures its cost."""
    count, rooms = (5_000, 50) if quick else (MESSAGES, ROOMS)
    rows: list[list[Any]] = []
    report = Report("jobs")
    with data_folder() as home:
        async with stores(home) as servers, opened(home, servers, "jobs", embedder=HashEmbedder()) as app:
            note(f"importing {count:,} messages")
            lines = history(count, Vocabulary(), "jobs", rooms, DAYS)
            await import_history(app, lines, lambda _: None)
            await app.indexer.catch_up(app.directory.workspace(CONSOLE, "jobs").tenant_id)
            end = max(line.event.at or START for line in lines).astimezone(UTC) + timedelta(days=8)
            del lines
            places = await _places(app)
            for name in ("session", "day", "week", "day"):
                note(f"the job {name}")
                before = _memory()
                with _counted() as statements, _watched() as peak:
                    outcome, seconds = await _timed(lambda name=name: schedule.run(app, name, end))  # type: ignore[misc]
                label = name if name not in report.figures else f"{name}, again"
                done = max(outcome.done, 1)
                figures = [outcome.state, outcome.done, seconds, before, peak[0], statements[0] / places]
                report.figures[label] = [*figures, statements[0] / done]
                rows.append([label, *figures, statements[0] / done])
    head = ["job", "state", "spans", "seconds", "MB before", "peak MB", "statements a room", "and a span"]
    report.table(f"jobs over {count:,} messages in {places:,} rooms and DMs", head, rows)
    return report


async def _places(app: App) -> int:
    connection = await asyncpg.connect(app.settings.database_url)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM conversations"))
    finally:
        await connection.close()


def _memory() -> float:
    """Of this process, in MB."""
    return float(psutil.Process().memory_info().rss / 2**20)


@contextmanager
def _watched() -> Iterator[list[float]]:
    """Measure the peak memory of this process within the block, ten times a second."""
    peak, over = [_memory()], threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            peak[0] = max(peak[0], _memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()


async def _timed(step: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    started = time.perf_counter()
    return await step(), time.perf_counter() - started


@contextmanager
def _counted() -> Iterator[list[int]]:
    """Count the statements that are sent within the block."""
    count, methods = (
        [0],
        {name: getattr(PostgresStatements, name) for name in ("fetch", "fetch_one", "fetch_value", "execute")},
    )

    def counting(method: Any) -> Any:
        async def sent(self: PostgresStatements, *args: Any, **values: Any) -> Any:
            count[0] += 1
            return await method(self, *args, **values)

        return sent

    for name, method in methods.items():
        setattr(PostgresStatements, name, counting(method))
    try:
        yield count
    finally:
        for name, method in methods.items():
            setattr(PostgresStatements, name, method)
