"""Turns a second of one, two and four processes over one database, in many rooms and in one, and how many answers
overtook another of their conversation."""

import asyncio
import json
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final

import asyncpg

from composer.stores.embedded.servers import Servers
from tests.bench.report import Report
from tests.bench.world import data_folder, stores

PROCESSES: Final = (1, 2, 4)
ROOMS: Final = 24
ASKED: Final = 240  # questions in all, in many rooms
ASKED_OF_ONE: Final = 60  # in one room
STILL: Final = 120.0  # seconds without a further answer after which missing ones count as lost


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Hand questions to the processes in turn, each as soon as the one before it in its room is stored."""
    rows: list[list[object]] = []
    report = Report("processes")
    with data_folder() as home:
        async with stores(home) as servers:
            for rooms, asked in ((ROOMS, ASKED), (1, ASKED_OF_ONE)):
                for count in PROCESSES:
                    note(f"{count} processes, {rooms} rooms")
                    rate, overtaken, lost = await _run(home, servers, count, rooms, asked // 5 if quick else asked)
                    first = report.figures.setdefault(f"{rooms} rooms, 1 processes", {"a second": rate})["a second"]
                    report.figures[f"{rooms} rooms, {count} processes"] = {
                        "a second": rate,
                        "overtaken": overtaken,
                        "lost": lost,
                    }
                    rows.append([f"{rooms} rooms, {count} processes", rate, rate / first, overtaken, lost])
    report.table(
        "several processes over one database (aims: none overtaken, none lost)",
        ["", "turns a second", "of one process", "overtaken", "lost"],
        rows,
    )
    return report


async def _run(home: Path, servers: Servers, count: int, rooms: int, asked: int) -> tuple[float, int, int]:
    """Turns a second, how many answers overtook another, and how many questions have none."""
    name = f"of_{count}_in_{rooms}"
    connection = await asyncpg.connect(servers.database_url)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    log = home / f"{name}.log"
    url = servers.database_url.replace("/nexus?", f"/{name}?")
    given = {"home": str(home), "database_url": url, "redis_url": servers.redis_url, "log": str(log)}
    async with AsyncExitStack() as stack:
        processes = [await stack.enter_async_context(_process(given)) for _ in range(count)]
        for process in processes:  # plans and connections are there, and every room is
            await _talk(processes, process, [f"warm{number}" for number in range(2)], "warm")
        await _answered(log, 2 * count)
        started = time.perf_counter()
        ids = [[f"r{room}q{number}" for number in range(asked // rooms)] for room in range(rooms)]
        await asyncio.gather(
            *(_talk(processes[room % count :] + processes[: room % count], None, of_room, f"room{room}")
              for room, of_room in enumerate(ids))
        )  # fmt: skip
        found = await _answered(log, 2 * count + rooms * (asked // rooms))
        took = time.perf_counter() - started
    order: dict[str, list[str]] = defaultdict(list)
    for conversation, id in dict.fromkeys(found):
        order[conversation].append(id)
    overtaken = sum(
        one > other
        for of_room in order.values()
        if not of_room[0].startswith("warm")
        for numbers in [[int(id.rpartition("q")[2]) for id in of_room]]
        for one, other in pairwise(numbers)
    )
    total = rooms * (asked // rooms)
    return total / took, overtaken, total + 2 * count - len(set(found))


class _Process:
    """A process that answers (tests/support/answering.py)."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child
        self._said: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        assert self._child.stdout is not None
        while line := await self._child.stdout.readline():
            text = line.decode().strip()
            self._said["up" if text.startswith("up ") else text].set()

    async def up(self) -> None:
        """Wait until it serves."""
        await self._said["up"].wait()

    async def ask(self, room: str, id: str) -> None:
        """Hand a question to it; returns once it is stored."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps({"room": room, "id": id}).encode() + b"\n")
        await self._said[f"stored {id}"].wait()


@asynccontextmanager
async def _process(given: dict[str, str]) -> AsyncIterator[_Process]:
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    words = [sys.executable, "-m", "tests.support.answering", json.dumps(given)]
    child = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, stderr=null)
    process = _Process(child)
    try:
        await process.up()
        yield process
    finally:
        child.kill()
        await child.wait()
        await process.listening


async def _talk(processes: Sequence[_Process], only: _Process | None, ids: Sequence[str], room: str) -> None:
    """Ask in a room, each time another process."""
    for number, id in enumerate(ids):
        process = only or processes[number % len(processes)]
        await process.ask(room, f"{id}{processes.index(process)}" if only else id)


async def _answered(log: Path, count: int) -> list[tuple[str, str]]:
    """The conversation and the question of each answer, once there are so many, or no more come."""
    found: list[tuple[str, str]] = []
    since = time.perf_counter()
    while len(set(found)) < count and time.perf_counter() - since < STILL:
        await asyncio.sleep(0.02)
        lines = _lines(log)
        if len(lines) > len(found):
            found, since = [(words[0], words[1]) for words in map(str.split, lines)], time.perf_counter()
    return found


def _lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []
