"""Long work over text: in threads that are taken by turns, so that nobody's text makes others wait behind all of it."""

import ast
import asyncio
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import composer
from composer.tasks.shares import acting_for
from composer.text.work import MAX_LOOP_CHARS, READING_THREADS, in_thread, off_loop, reading_threads

RED, BLUE = uuid.UUID(int=1), uuid.UUID(int=2)
ANN, BOB = uuid.UUID(int=11), uuid.UUID(int=12)
# They wait for a disk, a server or an import of code, and read no text of people.
WITHOUT_TEXT = ("stores", "app", "operations")


class _Reading:
    """Readings that go on until they are let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._may_end = threading.Event()
        self._loop, self.one_has_begun = asyncio.get_running_loop(), asyncio.Event()

    def read(self, name: str) -> str:
        self.begun.append(name)
        self._loop.call_soon_threadsafe(self.one_has_begun.set)
        self._may_end.wait()
        return name

    def end(self) -> None:
        self._may_end.set()


@asynccontextmanager
async def _one_person_at_their_worst(texts: int) -> AsyncIterator[tuple[_Reading, list[asyncio.Task[str]]]]:
    """Many long texts of one person, which all wait to be read."""
    reading = _Reading()
    with acting_for(RED, ANN):
        tasks = [asyncio.create_task(off_loop(MAX_LOOP_CHARS + 1, lambda: reading.read("ann"))) for _ in range(texts)]
    try:
        await reading.one_has_begun.wait()
        yield reading, tasks
    finally:
        reading.end()
        await asyncio.gather(*tasks)
    assert (reading_threads.taken, reading_threads.waiting) == (0, 0)


async def test_one_person_has_one_thread_however_much_they_send() -> None:
    async with _one_person_at_their_worst(40) as (reading, _):
        assert (reading_threads.taken, reading_threads.waiting) == (1, 39)
        assert reading.begun == ["ann"]


async def test_others_texts_are_read_beside_it() -> None:
    async with _one_person_at_their_worst(40) as (reading, tasks):
        with acting_for(BLUE, BOB):
            assert await off_loop(MAX_LOOP_CHARS + 1, lambda: "bob") == "bob"
            assert await in_thread(str.upper, "bob") == "BOB"
        assert reading.begun == ["ann"]
        assert not any(task.done() for task in tasks)


async def test_another_person_of_the_same_tenant_is_next_and_not_last() -> None:
    async with _one_person_at_their_worst(40) as (reading, tasks):
        with acting_for(RED, BOB):
            theirs = asyncio.create_task(in_thread(reading.read, "bob"))
        await asyncio.sleep(0)
        reading.end()
        await theirs
        assert sum(task.done() for task in tasks) <= READING_THREADS


async def test_short_texts_are_read_at_once_by_everybody() -> None:
    async with _one_person_at_their_worst(3) as (_, tasks):
        with acting_for(RED, ANN):
            assert await off_loop(MAX_LOOP_CHARS, threading.get_ident) == threading.get_ident()
        assert not any(task.done() for task in tasks)


async def test_who_leaves_gives_the_place_to_the_next() -> None:
    async with _one_person_at_their_worst(3) as (_, tasks):
        tasks[1].cancel()
        await asyncio.wait(tasks[1:2])
        assert reading_threads.waiting == 1
        del tasks[1]


def test_no_other_thread_reads_peoples_texts() -> None:
    """Threads that nobody counts would be taken by whoever sends most."""
    folder = Path(composer.__file__).parent
    found = [
        str(file.relative_to(folder))
        for file in sorted(folder.rglob("*.py"))
        if file.relative_to(folder).parts[0] not in WITHOUT_TEXT
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"to_thread", "run_in_executor"}
    ]
    assert found == ["text/work.py"]
