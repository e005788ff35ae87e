"""Several processes over one database: each conversation is answered in order, each question once, whoever dies."""

import asyncio
import json
import os
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from composer.settings import Settings
from tests.support import fork_server, runs
from tests.support.program import ROOT
from tests.support.waiting import TIMEOUT_SECONDS, until

ROOMS, QUESTIONS = 12, 300


@dataclass
class Process:
    """One of the processes."""

    child: asyncio.subprocess.Process
    number: int = 0
    said: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    async def listen(self) -> None:
        assert self.child.stdout is not None
        while line := await self.child.stdout.readline():
            text = line.decode().strip()
            if text.startswith("up "):
                self.number = int(text.removeprefix("up "))
            self.said[text.partition(" ")[0] if text.startswith("up ") else text].set()

    async def kill(self) -> None:
        os.kill(self.number, signal.SIGKILL)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await self.child.wait()

    async def ask(self, room: str, id: str) -> None:
        """Give a question to this process, and wait until it is stored."""
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps({"room": room, "id": id}).encode() + b"\n")
        await self.heard(f"stored {id}")

    async def heard(self, text: str) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await self.said[text].wait()


@dataclass
class Service:
    """The processes, and what was answered."""

    settings: Settings
    log: Path
    stack: AsyncExitStack

    @property
    def waits(self) -> Path:
        """While it is there, models wait before they answer."""
        return Path(f"{self.log}.wait")

    @property
    def answered(self) -> list[tuple[str, str, int]]:
        """The conversation and the question of each answer in their order, and the process that gave it."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(room, id, int(process)) for room, id, process in (line.split() for line in lines)]

    def in_order(self) -> dict[str, list[str]]:
        """The questions of each conversation in the order of their answers."""
        found: dict[str, list[str]] = defaultdict(list)
        for room, id, _ in self.answered:
            found[room].append(id)
        return found

    async def start(self) -> Process:
        return await self.stack.enter_async_context(self._started())

    @asynccontextmanager
    async def _started(self) -> AsyncIterator[Process]:
        given = {
            "home": str(self.settings.home),
            "database_url": self.settings.database_url,
            "redis_url": self.settings.redis_url,
            "log": str(self.log),
        }
        words = [*fork_server.command("tests.support.answering", runs.current()), json.dumps(given)]
        pipe = asyncio.subprocess.PIPE
        process = Process(await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdin=pipe, stdout=pipe))
        listening = asyncio.create_task(process.listen())
        try:
            await process.heard("up")
            yield process
        finally:
            if process.child.returncode is None:
                process.child.kill()
            await process.child.wait()
            await listening


@pytest.fixture
async def service(settings: Settings, tmp_path: Path) -> AsyncIterator[Service]:
    async with AsyncExitStack() as stack:
        yield Service(settings, tmp_path / "answers.log", stack)


async def test_three_processes_answer_each_question_once_and_each_conversation_in_order(service: Service) -> None:
    processes = [await service.start() for _ in range(3)]

    async def talk(room: int) -> list[str]:
        """Ask in a room again and again, each time another process, and never wait for an answer."""
        ids = [f"r{room}q{number}" for number in range(QUESTIONS // ROOMS)]
        for number, id in enumerate(ids):
            await processes[(room + number) % 3].ask(f"room{room}", id)
        return ids

    asked = await asyncio.gather(*(talk(room) for room in range(ROOMS)))
    await until(lambda: len(service.answered) >= QUESTIONS)
    assert sorted(service.in_order().values()) == sorted(asked)
    assert len(Counter(process for *_, process in service.answered)) == 3, "each process did some of the work"


async def test_what_a_killed_process_leaves_is_answered_by_another_that_runs_already(service: Service) -> None:
    """No job runs, and nothing is started again."""
    dying, living = await service.start(), await service.start()
    service.waits.touch()
    asked = {f"room{room}": [f"r{room}q{number}" for number in range(4)] for room in range(5)}
    for number in range(4):
        for room, ids in asked.items():
            await (dying if number < 3 else living).ask(room, ids[number])
    for ids in asked.values():
        await dying.heard(f"asked {ids[0]}")
    assert service.answered == []
    await dying.kill()
    service.waits.unlink()
    await until(lambda: len(service.answered) >= 20)
    assert sorted(service.in_order().values()) == sorted(asked.values())
    assert {process for *_, process in service.answered} == {living.number}


async def test_processes_that_are_killed_one_after_another_lose_nothing_and_keep_the_order(service: Service) -> None:
    asked: dict[str, list[str]] = {f"room{room}": [] for room in range(4)}
    for generation in range(3):
        one, other = await service.start(), await service.start()
        for number in range(8):
            for room, ids in asked.items():
                ids.append(f"{room}g{generation}q{number}")
                await (one, other)[number % 2].ask(room, ids[-1])
        for each in (one, other):  # in the middle of it
            await each.kill()
    await service.start()
    await until(lambda: len({id for _, id, _ in service.answered}) == 96)
    seen = {room: list(dict.fromkeys(ids)) for room, ids in service.in_order().items()}
    assert sorted(seen.values()) == sorted(asked.values())
