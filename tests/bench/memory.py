"""Memory of a serving process: after its start, while it imports, and after compositions."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

import bot.console.cli.service  # noqa: F401  (what the real program has loaded counts)
from bot.console.conversations import question
from bot.importers.history import import_history
from composer.app import open_app
from composer.model import CONSOLE
from composer.settings import Settings
from tests.bench.report import Report
from tests.bench.start import ready
from tests.bench.world import BUSY, PLAIN, Vocabulary, asker, data_folder, history, place

MESSAGES: Final = 2_000
COMPOSITIONS: Final = 50
WORKSPACE: Final = "memory"
MB: Final = 1_000_000
AIM: Final = "aim: under 250 MB with the embedder loaded"


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Measure the resident memory of `nexus run`, and of processes of the same parts that import and compose."""
    note("measuring memory")
    found: dict[str, float] = {}
    with data_folder() as home:
        with ready(home, "run") as (process, _):
            found["nexus run, ready"] = psutil.Process(process.pid).memory_info().rss / MB
        for role in ("import", "compose"):
            command = ["-m", "tests.bench.memory", role, str(home), str(500 if quick else MESSAGES)]
            child = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
            out, _ = await child.communicate()
            if child.returncode != 0:
                raise RuntimeError(f"the measured process ended with {child.returncode}")
            for line in out.decode().splitlines():
                what, _, size = line.rpartition(": ")
                found[what] = float(size)
    report = Report("memory", figures=dict(found))
    report.table(f"resident memory of one process ({AIM})", ["state", "MB"], [[k, v] for k, v in found.items()])
    return report


def _say(what: str) -> None:
    sys.stdout.write(f"{what}: {psutil.Process().memory_info().rss / MB:.1f}\n")


async def _import(home: Path, count: int) -> None:
    lines = history(count, Vocabulary(), WORKSPACE)
    async with open_app(Settings(home=home), index=False) as app:
        await import_history(app, lines, lambda _: None)
        await app.indexer.catch_up(app.directory.workspace(CONSOLE, WORKSPACE).tenant_id)
        _say(f"after importing and embedding {count:,} messages")


async def _compose(home: Path) -> None:
    _say("all modules imported")
    async with open_app(Settings(home=home), index=False) as app:
        _say("open, embedder loaded")
        here = app.directory.workspace(CONSOLE, WORKSPACE)
        for number in range(COMPOSITIONS):
            name = (BUSY, *PLAIN)[number % 20]
            text = f"what was it that we said about number {number}, and who was going to look at it?"
            asked, _ = await question(
                app, here, place(name), asker(name), text, app.clock.now(), top_k=None, id=f"q{number}"
            )
            await app.composer.compose(asked)
        _say(f"after {COMPOSITIONS} compositions")


if __name__ == "__main__":
    role, folder, size = sys.argv[1:]
    asyncio.run(_import(Path(folder), int(size)) if role == "import" else _compose(Path(folder)))
