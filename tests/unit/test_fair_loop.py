"""The event loop in which everybody has a share: whose steps come next, and that none is lost."""

import asyncio
import socket
import threading
import uuid
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any, Final, TypeVar

import pytest

from bot.console.cli.signals import SignalHandling
from composer.tasks import fair_loop
from composer.tasks.fair_loop import FORGET_SECONDS, FairLoop
from composer.tasks.shares import act_for_stranger, acting_for

T = TypeVar("T")
GREEDY, OTHER, ANN, BOB = (uuid.UUID(int=number) for number in range(1, 5))
STEP: Final = 0.001  # seconds


class _Time:
    """A clock that says how long steps take."""

    def __init__(self) -> None:
        self.now = 1.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> _Time:
    clock = _Time()
    monkeypatch.setattr(fair_loop, "perf_counter", clock)
    return clock


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=FairLoop) as runner:
        return runner.run(work)


async def steps(name: str, count: int, order: list[str], time: _Time) -> None:
    for _ in range(count):
        order.append(name)
        time.now += STEP
        await asyncio.sleep(0)


def between(order: list[str], name: str) -> int:
    """How many steps of others come at most before one of `name`, as long as it has any."""
    places = [-1, *(n for n, each in enumerate(order) if each == name)]
    return max(after - before - 1 for before, after in pairwise(places))


@pytest.mark.parametrize("whose", ["another tenant", "another person", "somebody who is not known yet"])
def test_one_persons_many_requests_let_each_step_of_another_wait_for_two_of_theirs(time: _Time, whose: str) -> None:
    order: list[str] = []

    async def stranger() -> None:
        act_for_stranger()
        await steps("other", 10, order, time)

    async def all_at_once() -> None:
        with acting_for(GREEDY, ANN):
            greedy = [asyncio.create_task(steps("greedy", 50, order, time)) for _ in range(40)]
        await asyncio.sleep(0)
        order.clear()
        if whose == "somebody who is not known yet":
            other = asyncio.create_task(stranger())
        else:
            with acting_for(OTHER if whose == "another tenant" else GREEDY, BOB):
                other = asyncio.create_task(steps("other", 10, order, time))
        await other
        await asyncio.gather(*greedy)

    run(all_at_once())
    assert between(order, "other") <= 2
    assert order.count("greedy") > 1_900, "and they are all answered"


def test_two_who_ask_as_much_run_as_much(time: _Time) -> None:
    order: list[str] = []

    async def both() -> None:
        tasks = []
        for tenant, people, name in ((GREEDY, 30, "many"), (OTHER, 1, "one")):
            for person in range(people):
                with acting_for(tenant, uuid.UUID(int=100 + person)):
                    tasks.append(asyncio.create_task(steps(name, 100, order, time)))
        await asyncio.gather(*tasks)

    run(both())
    shared = order[: max(n for n, each in enumerate(order) if each == "one")]
    assert abs(shared.count("many") - shared.count("one")) <= 2


def test_what_one_person_asked_runs_in_its_order(time: _Time) -> None:
    order: list[str] = []

    async def ask() -> None:
        loop = asyncio.get_running_loop()
        with acting_for(GREEDY, ANN):
            for number in range(100):
                loop.call_soon(order.append, str(number))
        await asyncio.sleep(0.01)

    run(ask())
    assert order == [str(number) for number in range(100)]


def test_what_arrives_at_a_socket_is_read_before_the_steps_of_who_opened_it(time: _Time) -> None:
    order: list[str] = []
    near, far = socket.socketpair()

    async def ask() -> None:
        loop = asyncio.get_running_loop()

        def read() -> None:
            order.append("read")
            near.recv(1)

        with acting_for(GREEDY, ANN):
            loop.add_reader(near, read)
            tasks = [asyncio.create_task(steps("step", 5, order, time)) for _ in range(40)]
        far.send(b"x")
        await asyncio.gather(*tasks)
        loop.remove_reader(near)

    with near, far:
        run(ask())
    assert order.index("read") <= 1


def test_nothing_that_other_threads_hand_over_is_lost() -> None:
    async def collect() -> int:
        loop, found, whole = asyncio.get_running_loop(), list[int](), asyncio.Event()

        def take(number: int) -> None:
            found.append(number)
            if len(found) == 4_000:
                whole.set()

        def hand_over() -> None:
            with acting_for(GREEDY, uuid.uuid4()):
                for number in range(1_000):
                    loop.call_soon_threadsafe(take, number)

        threads = [threading.Thread(target=hand_over) for _ in range(4)]
        for thread in threads:
            thread.start()
        await whole.wait()
        for thread in threads:
            thread.join()
        return len(found)

    assert run(collect()) == 4_000


def test_who_asked_long_ago_is_forgotten(time: _Time) -> None:
    async def ask() -> int:
        for _ in range(200):
            with acting_for(uuid.uuid4(), uuid.uuid4()):
                await asyncio.create_task(steps("any", 1, [], time))
            time.now += FORGET_SECONDS
        lines: Any = asyncio.get_running_loop()
        return len(lines._ready._lines)

    assert run(ask()) < 20


def test_cancelled_and_late_steps_are_as_in_any_loop() -> None:
    async def wait() -> str:
        with acting_for(GREEDY, ANN):
            never = asyncio.create_task(asyncio.sleep(1_000))
            never.cancel()
            with pytest.raises(asyncio.CancelledError):
                await never
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await asyncio.Event().wait()
            return await asyncio.to_thread(lambda: "done")

    assert run(wait()) == "done"


def test_every_command_of_nexus_runs_in_this_loop() -> None:
    async def which() -> type[asyncio.AbstractEventLoop]:
        return type(asyncio.get_running_loop())

    assert SignalHandling().run(which()) is FairLoop
