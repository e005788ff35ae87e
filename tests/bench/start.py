"""Time from start to ready: of the program and of its composition root alone, on an empty and on a used folder."""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from composer.app import open_app
from composer.settings import Settings
from tests.bench.report import Report
from tests.bench.world import data_folder

AIM: Final = "aim: first under 5 s, later under 2 s"
UP: Final = b"Nexus is running"
REPEATS: Final = 3


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Measure first and later starts; later ones are the median of some, each with stopped servers."""
    note("measuring starts")
    repeats = 1 if quick else REPEATS
    rows: list[tuple[str, float, float]] = []
    with data_folder() as home:
        rows.append(("open_app alone, in a process with everything imported", await _opened(home), await _opened(home)))
    with data_folder() as home:
        first = _up(home)
        rows.append(
            ("nexus run, until it says that it is up", first, statistics.median(_up(home) for _ in range(repeats)))
        )
    for title, words in (("nexus migrate, whole process", ["migrate"]), ("nexus doctor, whole process", ["doctor"])):
        with data_folder() as home:
            first = _whole(home, words)
            rows.append((title, first, statistics.median(_whole(home, words) for _ in range(repeats))))
    with data_folder() as home:
        rows.append(("nexus import of one message (first) and nexus compose (later)", *_composed(home, repeats)))
    report = Report("start", figures={title: {"first": first, "later": later} for title, first, later in rows})
    report.table(f"seconds from start to ready ({AIM})", ["what", "first", "later"], [list(row) for row in rows])
    return report


def _composed(home: Path, repeats: int) -> tuple[float, float]:
    """Import one message into an empty folder, then ask about it."""
    said = home / "said.jsonl"
    said.write_text(
        '{"type":"message","at":"2026-05-04T09:00:00Z","room":"general","user":"ann","text":"we launch on Friday"}\n'
    )
    first = _whole(home, ["import", str(said)])
    asking = ["compose", "--as", "ann", "--room", "general", "--json", "when is the launch?"]
    return first, statistics.median(_whole(home, asking) for _ in range(repeats))


async def _opened(home: Path) -> float:
    started = time.perf_counter()
    async with open_app(Settings(home=home)):
        return time.perf_counter() - started


def _up(home: Path) -> float:
    with ready(home, "run") as (_, seconds):
        return seconds


@contextmanager
def ready(home: Path, command: str) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """Start a serving process; yield it and the seconds until it was ready; stop it afterwards."""
    started = time.perf_counter()
    process = subprocess.Popen(_command(command), env=_environment(home), stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if UP in line:
                break
        yield process, time.perf_counter() - started
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def _whole(home: Path, words: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(_command(*words), env=_environment(home), stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "bot.console.main", *words]


def _environment(home: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("NEXUS_")}
    return kept | {"NEXUS_HOME": str(home)}
