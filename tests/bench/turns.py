"""Turns a second in a hundred rooms at once, and how long each waits for its model to be asked; none may be lost."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bot.importers.history import import_history
from bot.script.places import incoming, place_of
from composer.app import App
from composer.model import CONSOLE, Agent, Turn, Usage, Workspace
from composer.ports.models import ChatMessage, Chunk
from composer.repositories.turns import Answer
from composer.stores.models.minilm import MiniLM
from tests.bench.cpu import Cpu
from tests.bench.report import Report, quantile
from tests.bench.world import PEOPLE, START, Vocabulary, data_folder, history, opened, person, stores
from tests.bench.world import room as room_name

NAME: Final = "turns"
ROOMS: Final = 100
SEEDED: Final = 4_000  # messages over all rooms
ASKED: Final = 5  # questions in each room, one after another
SHARES: Final = (0.5, 0.8)  # of what was reached, offered evenly in time
SLOW_MODEL: Final = 2.0  # seconds


@dataclass
class Times:
    """When (perf_counter seconds) each question was sent, its model asked and its answer delivered, by its number."""

    sent: dict[int, float] = field(default_factory=dict)
    asked: dict[int, float] = field(default_factory=dict)
    delivered: dict[int, float] = field(default_factory=dict)
    done: dict[int, asyncio.Event] = field(default_factory=dict)


class NumberedModel:
    """Answers a question with its number, after a pause."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self.seconds = 0.0

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        number = messages[-1].content.rpartition(" number ")[2].strip()
        self._times.asked[int(number)] = time.perf_counter()
        if self.seconds:
            await asyncio.sleep(self.seconds)
        yield Chunk(f"As was decided: {number}", Usage(1, 1))


class TimedDelivery:
    """A delivery that shows nothing and notes when the whole answer is there."""

    def __init__(self, times: Times) -> None:
        self._times = times

    def on_wait(self, turn: Turn) -> None:
        pass

    def on_start(self, turn: Turn) -> None:
        """Nothing is shown."""

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """Nothing is shown."""

    async def deliver(self, reply: Answer) -> None:
        """Note the time of the answer."""
        number = int(reply.text.rpartition(" ")[2])
        self._times.delivered[number] = time.perf_counter()
        self._times.done[number].set()

    async def abandon(self, turn: Turn) -> None:
        """Nothing was shown."""

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        """Nothing is shown."""


@dataclass
class Office:
    """A hundred rooms, and how to ask in one."""

    app: App
    workspace: Workspace
    times: Times
    vocabulary: Vocabulary
    random: np.random.Generator
    count: int = 0

    async def ask(self, room: int) -> int:
        """Send a question to the agent in a room; returns its number. It is answered in the background."""
        self.count += 1
        number, here = self.count, place_of(room_name(room), None, None)
        asker = person(room % PEOPLE)  # one alone would have half of the places for answers
        text = f"@nexus what about {self.vocabulary.text(self.random, 3, 5)} number {number}"
        said = incoming(self.workspace, here, asker, text, self.app.clock.now(), id=f"q{number}")
        self.times.done[number] = asyncio.Event()
        self.times.sent[number] = time.perf_counter()
        await self.app.receive(self.workspace, [said])
        return number

    async def ask_and_wait(self, room: int, times: int) -> None:
        """Ask in a room, each time when the last answer is there."""
        for _ in range(times):
            await self.times.done[await self.ask(room)].wait()

    def spans(self, numbers: Sequence[int]) -> dict[str, list[float]]:
        """Milliseconds from a question to its model, and to its answer."""
        sent = self.times.sent
        return {
            "to the model": [1000 * (self.times.asked[n] - sent[n]) for n in numbers],
            "to the answer": [1000 * (self.times.delivered[n] - sent[n]) for n in numbers],
        }


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Ask in a hundred rooms: as fast as they are answered, then at a steady rate, then a model that takes its time."""
    times, each = Times(), 2 if quick else ASKED
    model = NumberedModel(times)
    figures: dict[str, float] = {}
    with data_folder() as home:
        async with stores(home) as servers, opened(home, servers, NAME, model=model, embedder=MiniLM()) as app:
            app.turns.serve(CONSOLE, TimedDelivery(times))
            office = await _open(app, times, note)
            indexing = asyncio.create_task(app.indexer.run())
            try:
                await _everywhere(office, 1)  # participants are known, plans and connections are there
                cpu = Cpu(app.settings.database_url or "")
                await cpu.look()
                note(f"{ROOMS * each} questions, each room's as fast as they are answered")
                figures |= await _as_fast_as_possible(office, cpu, each)
                for share in SHARES:
                    figures |= await _steadily(office, share, figures["turns a second"], ROOMS * each, note)
                model.seconds = SLOW_MODEL
                note(f"a question in each room, of a model that takes {SLOW_MODEL:.0f} s")
                started = time.perf_counter()
                await _everywhere(office, 1)
                figures["turns a second, slow model"] = ROOMS / (time.perf_counter() - started)
            finally:
                indexing.cancel()
                await asyncio.gather(indexing, return_exceptions=True)
    figures["lost"] = float(office.count - len(times.delivered))
    report = Report(NAME, figures=figures)
    report.table(
        f"turns in {ROOMS} rooms at once (aims: 60 a second, p95 under 250 ms, none lost; model asked after 15 ms)",
        ["", "figure"],
        [[name, value] for name, value in figures.items()],
    )
    return report


async def _open(app: App, times: Times, note: Callable[[str], None]) -> Office:
    vocabulary = Vocabulary()
    workspace = app.directory.workspace(CONSOLE, NAME)
    note(f"storing and indexing {SEEDED:,} messages")
    await import_history(app, history(SEEDED, vocabulary, NAME, rooms=ROOMS + 1), lambda _: None)
    await app.indexer.catch_up(workspace.tenant_id)
    assert app.clock.now() > START
    return Office(app, workspace, times, vocabulary, np.random.default_rng(7))


async def _everywhere(office: Office, each: int) -> None:
    await asyncio.gather(*(office.ask_and_wait(room, each) for room in range(ROOMS)))


async def _as_fast_as_possible(office: Office, cpu: Cpu, each: int) -> dict[str, float]:
    started, before, first = time.perf_counter(), cpu.now(), office.count
    await _everywhere(office, each)
    took, turns = time.perf_counter() - started, office.count - first
    return {"turns a second": turns / took, "CPU ms a turn": (cpu.now() - before) / turns}


async def _steadily(
    office: Office, share: float, capacity: float, turns: int, note: Callable[[str], None]
) -> dict[str, float]:
    """Send questions evenly in time, a share of what was reached, whether or not earlier ones are answered."""
    rate = share * capacity
    note(f"{turns} questions, {rate:.0f} a second")
    began, sending = time.perf_counter(), []
    for n in range(turns):
        await asyncio.sleep(max(0.0, began + n / rate - time.perf_counter()))
        sending.append(asyncio.create_task(office.ask(n % ROOMS)))
    numbers = await asyncio.gather(*sending)
    await asyncio.gather(*(office.times.done[number].wait() for number in numbers))
    return {
        f"ms {what} at {share:.0%} of that, {name}": quantile(values, at)
        for what, values in office.spans(numbers).items()
        for name, at in (("p50", 0.5), ("p95", 0.95))
    }
