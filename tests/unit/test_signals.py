"""Interactive priority: background work waits while a turn waits for its answer, but not for ever."""

import asyncio
import uuid

import pytest

from composer.tasks import signals
from composer.tasks.signals import InteractivePriority

ONE, TWO = uuid.uuid4(), uuid.uuid4()


async def test_background_work_waits_until_the_last_turn_has_called_its_model() -> None:
    priority = InteractivePriority()
    await priority.wait()
    priority.begin(ONE)
    priority.begin(TWO)
    work = asyncio.create_task(priority.wait())
    priority.end(ONE)
    await asyncio.sleep(0)
    assert not work.done()
    priority.end(TWO)
    await work


async def test_background_work_continues_after_its_longest_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "MAX_WAIT_SECONDS", 0.0)
    priority = InteractivePriority()
    priority.begin(ONE)
    await priority.wait()


async def test_a_turn_that_ends_twice_has_no_further_effect() -> None:
    priority = InteractivePriority()
    priority.begin(ONE)
    priority.end(ONE)
    priority.end(ONE)
    await priority.wait()


async def test_a_task_that_loses_a_cancellation_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "CANCEL_AGAIN_SECONDS", 0.01)
    lost = 0

    async def work() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if lost == 2:
                    raise
                lost += 1

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ArithmeticError

    tasks: list[asyncio.Task[object]] = [asyncio.create_task(work()), asyncio.create_task(fail())]
    await asyncio.sleep(0)
    await signals.end_tasks(tasks)
    assert lost == 2
    assert all(task.done() for task in tasks)
