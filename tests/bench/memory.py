"""Memory of a serving process: after its start, and after compositions."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

import bot.console.main  # noqa: F401  (what a real process has loaded counts)
from bot.console.history import import_history
from bot.console.place import question
from bot.console.script import PLATFORM
from composer.app import open_app
from composer.settings import Settings
from tests.bench.report import Report
from tests.bench.start import served
from tests.bench.world import FURNISHED, PLAIN, Vocabulary, asker, data_folder, history, place

MESSAGES: Final = 2_000
COMPOSITIONS: Final = 50
MB: Final = 1_000_000
AIM: Final = "aim: under 250 MB"


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Resident memory of `nexus run`, and of a process of the same parts that imports, embeds and composes."""
    note("measuring memory")
    rows: list[tuple[str, float]] = []
    with data_folder() as home:
        with served(home) as process:
            rows.append(("nexus run, ready, embedder loaded", psutil.Process(process.pid).memory_info().rss / MB))
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.bench.memory",
            str(home),
            str(200 if quick else MESSAGES),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await child.communicate()
        for line in out.decode().splitlines():
            what, _, size = line.rpartition(": ")
            rows.append((what, float(size)))
    report = Report("memory", figures=dict(rows))
    report.table(f"resident memory of one process ({AIM})", ["state", "MB"], [list(row) for row in rows])
    return report


async def _grow(home: Path, count: int) -> None:
    def say(what: str) -> None:
        sys.stdout.write(f"{what}: {psutil.Process(os.getpid()).memory_info().rss / MB:.1f}\n")

    say("all modules imported")
    async with open_app(Settings(home=home), index=False) as app:
        say("open, embedder loaded")
        here, vocabulary = app.directory.workspace(PLATFORM, "memory"), Vocabulary()
        await import_history(app, history(count, vocabulary, here.name), lambda _: None)
        await app.indexer.catch_up(here.tenant_id)
        say(f"after importing and embedding {count:,} messages (with the bench's own data)")
    async with open_app(Settings(home=home), index=False) as app:
        del vocabulary
        await _compose(app_questions(app), app)
        say(f"after {COMPOSITIONS} compositions")
