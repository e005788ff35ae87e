"""How long the jobs of a night take, in what memory, with how many statements a room; and a backup."""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, timedelta
from typing import Any, Final, TypeVar

import psutil

from bot.console import schedule
from bot.console.history import import_history
from bot.console.script import PLATFORM
from composer.stores.statements import Statements
from tests.bench.report import Report
from tests.bench.world import START, HashEmbedder, Vocabulary, data_folder, history, opened, stores

T = TypeVar("T")
MESSAGES: Final = 100_000


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Import a team's talk, then run the jobs that summarise it, again with nothing to do, and back it up and restore
    it. The embedder costs nothing here: what an embedding costs is in the bench `import`."""
    count = 5_000 if quick else MESSAGES
    rows: list[list[Any]] = []
    report = Report("jobs")
    with data_folder() as home:
        async with stores(home) as servers, opened(home, servers, "jobs", embedder=HashEmbedder()) as app:
            note(f"importing {count:,} messages")
            lines = history(count, Vocabulary(), "jobs")
            await import_history(app, lines, lambda _: None)
            await app.indexer.catch_up(app.directory.workspace(PLATFORM, "jobs").tenant_id)
            rooms = len({(line.event.room, line.event.dm, line.event.session) for line in lines})  # type: ignore[union-attr]
            end = max(line.event.at or START for line in lines).astimezone(UTC) + timedelta(days=8)
            for name in ("session", "day", "week", "day"):
                note(f"the job {name}")
                with _counted() as statements:
                    outcome, seconds = await _timed(lambda name=name: schedule.run(app, name, end))  # type: ignore[misc]
                label = name if name not in report.figures else f"{name}, again"
                memory = psutil.Process().memory_info().rss / 2**20
                figures = [outcome.state, outcome.done, seconds, memory, statements[0] / rooms]
                report.figures[label] = figures
                rows.append([label, *figures])
            note("backup and restore")
            path = home / "bench.backup"
            manifest, wrote = await _timed(lambda: app.backup.write(path, end))
            _, restored = await _timed(lambda: app.backup.rehearse(path))
            size = path.stat().st_size / 2**20
    head = ["job", "state", "spans", "seconds", "MB", "statements a room"]
    report.table(f"jobs over {count:,} messages in {rooms:,} rooms, DMs and sessions", head, rows)
    report.figures["backup"] = {"rows": manifest.rows, "write_s": wrote, "restore_s": restored, "mb": size}
    report.table("backup", ["rows", "MB", "write s", "restore s"], [[manifest.rows, size, wrote, restored]])
    return report


async def _timed(step: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    started = time.perf_counter()
    return await step(), time.perf_counter() - started


@contextmanager
def _counted() -> Iterator[list[int]]:
    """How many statements were sent meanwhile."""
    count, methods = [0], {name: getattr(Statements, name) for name in ("fetch", "row", "value", "execute")}

    def counting(method: Any) -> Any:
        async def sent(self: Statements, *args: Any) -> Any:
            count[0] += 1
            return await method(self, *args)

        return sent

    for name, method in methods.items():
        setattr(Statements, name, counting(method))
    try:
        yield count
    finally:
        for name, method in methods.items():
            setattr(Statements, name, method)
