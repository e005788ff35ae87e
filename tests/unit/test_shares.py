"""Shares: places are taken in turns by tenant and by person, nobody gets the last ones, and nothing is lost."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from composer.entries.search import EntryQuestion, EntrySearch
from composer.errors import NotFound, Unavailable
from composer.tasks.shares import BUSY, Party, Places, act_for, acting_for, current_party
from composer.turn.compose import Composer

RED, BLUE, GREEN = uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=3)
ANN, BOB, CAT, DAN = (uuid.UUID(int=10 + number) for number in range(4))


class _Work:
    """Tasks that each take a place, and hold it until they are let go."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.running: list[str] = []  # in the order in which they got their places
        self.begun: list[str] = []
        self.cancelled_next: str | None = None  # in the step in which a place is given back
        self._ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(
        self, name: str, tenant: uuid.UUID | None, person: uuid.UUID | None = None, *, background: bool = False
    ) -> None:
        self._ends[name] = asyncio.Event()
        with acting_for(tenant, person, background=background):
            self.tasks[name] = asyncio.create_task(self._run(name))
        await _settled()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self.tasks[name]
        await _settled()

    async def _run(self, name: str) -> None:
        async with self._places.take():
            self.running.append(name)
            self.begun.append(name)
            try:
                await self._ends[name].wait()
            finally:
                self.running.remove(name)
        if self.cancelled_next is not None:
            self.tasks[self.cancelled_next].cancel()


async def _settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@asynccontextmanager
async def _working(most: int, seconds: float | None = None) -> AsyncIterator[tuple[Places, _Work]]:
    places = Places(most, seconds)
    work = _Work(places)
    yield places, work
    for task in work.tasks.values():
        task.cancel()
    await asyncio.gather(*work.tasks.values(), return_exceptions=True)
    assert (places.taken, places.waiting) == (0, 0)


async def test_one_person_alone_has_half_of_all_places_and_their_tenant_three_quarters() -> None:
    async with _working(8) as (places, work):
        for number in range(20):
            await work.begin(f"ann {number}", RED, ANN)
        assert len(work.running) == 4
        for number in range(20):
            await work.begin(f"bob {number}", RED, BOB)
        assert len(work.running) == 6
        await work.begin("cat", BLUE, CAT)
        assert "cat" in work.running
        assert places.has_one_for(Party(GREEN))


async def test_fifty_tasks_of_one_person_wait_behind_the_first_of_everybody_else() -> None:
    async with _working(4) as (_, work):
        for name, tenant, person in (("ann", RED, ANN), ("bob", RED, BOB), ("cat", BLUE, CAT), ("dan", GREEN, DAN)):
            await work.begin(name, tenant, person)
        for number in range(50):
            await work.begin(f"ann {number}", RED, ANN)
        await work.begin("cat again", BLUE, CAT)
        await work.begin("bob again", RED, BOB)
        await work.end("dan")
        assert work.running[-1] == "cat again"  # their tenant holds fewest
        await work.end("ann")
        assert work.running[-1] == "ann 0"  # who has waited longest of those that hold as few
        await work.end("bob")
        assert work.running[-1] == "bob again"


async def test_who_has_waited_longest_among_equals_does_not_stay_first() -> None:
    async with _working(1) as (_, work):
        await work.begin("first", GREEN, DAN)
        for number in range(3):
            await work.begin(f"ann {number}", RED, ANN)
        await work.begin("bob", RED, BOB)
        await work.begin("cat", BLUE, CAT)
        for name in ("first", "ann 0", "cat", "bob", "ann 1"):
            await work.end(name)
        assert work.begun == ["first", "ann 0", "cat", "bob", "ann 1", "ann 2"]


async def test_many_people_of_one_tenant_do_not_go_before_the_one_of_another() -> None:
    async with _working(1) as (_, work):
        await work.begin("first", GREEN)
        for number in range(30):
            await work.begin(f"red {number}", RED, uuid.UUID(int=100 + number))
        await work.begin("cat 0", BLUE, CAT)
        await work.begin("cat 1", BLUE, CAT)
        for name in ("first", "red 0", "cat 0", "red 1"):
            await work.end(name)
        assert work.begun == ["first", "red 0", "cat 0", "red 1", "cat 1"]


async def test_background_work_of_all_tenants_leaves_half_to_those_who_wait() -> None:
    async with _working(8) as (_, work):
        for number, tenant in enumerate((RED, BLUE, GREEN) * 4):
            await work.begin(f"backlog {number}", tenant, background=True)
        assert len(work.running) == 4
        assert work.running == [f"backlog {number}" for number in range(4)]
        for name, tenant in (("ann", RED), ("bob", BLUE), ("cat", GREEN)):
            await work.begin(name, tenant, ANN)
        assert work.running[4:] == ["ann", "bob", "cat"]
        await work.end("backlog 0")  # red's; of those that wait in the background, red has the fewest then
        assert work.running[-1].startswith("backlog")


async def test_a_backlog_of_one_tenant_leaves_places_to_the_backlog_of_another() -> None:
    async with _working(8) as (_, work):
        for number in range(100):
            await work.begin(f"red {number}", RED, background=True)
        await work.begin("blue", BLUE, background=True)
        await work.end("red 0")
        assert work.running[-1] == "blue"


async def test_a_task_that_holds_a_place_gets_another_one_at_once() -> None:
    places = Places(1)
    async with places.take(), asyncio.timeout(5), places.take(), places.take(RED):
        assert places.taken == 1
    assert places.taken == 0


async def test_a_task_that_another_one_began_inside_needs_a_place_of_its_own() -> None:
    async with _working(1) as (places, work):
        async with places.take():
            await work.begin("child", RED, ANN)
            assert work.running == []
        await _settled()
        assert work.running == ["child"]


async def test_who_waits_too_long_is_told_so_and_background_work_goes_on_waiting() -> None:
    async with _working(1, seconds=0.01) as (places, work):
        await work.begin("first", GREEN)
        await work.begin("backlog", RED, background=True)
        with acting_for(RED, ANN), pytest.raises(Unavailable, match=BUSY):
            async with places.take():
                pass
        assert places.waiting == 1
        await work.end("first")
        assert work.running == ["backlog"]


async def _cancel_waiting(work: _Work) -> None:
    work.tasks["second"].cancel()
    await _settled()
    await work.end("first")


async def _cancel_once_it_is_next(work: _Work) -> None:
    work.cancelled_next = "second"
    await work.end("first")  # gives its place to the second one, which is cancelled before it runs


async def _cancel_just_before(work: _Work) -> None:
    work.tasks["second"].cancel()
    await work.end("first")


@pytest.mark.parametrize("cancel", [_cancel_waiting, _cancel_once_it_is_next, _cancel_just_before])
async def test_the_place_of_who_is_cancelled_goes_to_the_next(cancel: Callable[[_Work], Awaitable[None]]) -> None:
    async with _working(1) as (places, work):
        for name in ("first", "second", "third"):
            await work.begin(name, RED, ANN)
        await cancel(work)
        await _settled()
        assert work.tasks["second"].cancelled()
        assert "second" not in work.begun
        assert (work.running, places.taken) == (["third"], 1)


async def test_a_place_is_given_back_when_what_held_it_fails() -> None:
    places = Places(1)
    with pytest.raises(ValueError, match="broken"):
        async with places.take():
            raise ValueError("broken")
    assert places.taken == 0


async def test_a_task_acts_for_whom_it_was_begun_and_nobody_else_is_told() -> None:
    async def request(person: uuid.UUID) -> list[Party]:
        act_for(RED, person)
        await asyncio.sleep(0)
        child = asyncio.create_task(_party())
        return [current_party(), await child, current_party(BLUE)]

    ann, bob = await asyncio.gather(request(ANN), request(BOB))
    assert ann == [Party(RED, ANN), Party(RED, ANN), Party(BLUE)]
    assert bob == [Party(RED, BOB), Party(RED, BOB), Party(BLUE)]
    assert current_party() == Party()


async def _party() -> Party:
    return current_party()


async def test_who_needs_several_places_waits_until_as_many_are_free_and_counts_as_many() -> None:
    places, order = Places(8), list[str]()
    ends = {name: asyncio.Event() for name in ("first", "second", "third", "other")}

    async def hold(name: str, tenant: uuid.UUID, person: uuid.UUID, amount: int) -> None:
        with acting_for(tenant, person):
            async with places.take(amount=amount):
                order.append(name)
                await ends[name].wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(hold("first", RED, ANN, 3))
        group.create_task(hold("second", RED, ANN, 2))
        await _settled()
        group.create_task(hold("third", RED, ANN, 1))
        group.create_task(hold("other", BLUE, BOB, 4))
        await _settled()
        assert (order, places.taken) == (["first", "other"], 7), (
            "the third is behind the second: both are of one person"
        )
        ends["first"].set()
        await _settled()
        assert (order, places.taken) == (["first", "other", "second", "third"], 7)
        for end in ends.values():
            end.set()
    assert (places.taken, places.waiting) == (0, 0)


class _Read:
    """A read of memory that goes on until it is let go, and then fails."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self._ends = asyncio.Event()

    async def __call__(self, *asked: object) -> NoReturn:
        person = str(current_party().person)
        self.running.append(person)
        await self._ends.wait()
        raise NotFound(person)

    def end(self) -> None:
        self._ends.set()


@pytest.mark.parametrize("of", [Composer, EntrySearch])
async def test_memory_is_read_for_one_answer_of_each_person_at_once(
    of: type[Composer | EntrySearch], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, unused = _Read(), cast(Any, None)
    ask: Callable[..., Coroutine[Any, Any, object]]
    if of is Composer:
        ask = Composer(cast(Any, SimpleNamespace(read=read)), unused).compose
        asked: tuple[Any, ...] = (unused,)
    else:
        monkeypatch.setattr(EntrySearch, "_search", lambda _, *asked: read(*asked))
        ask = EntrySearch(unused, unused, unused, unused, unused).search
        asked = (unused, EntryQuestion("what?", 5, 500))
    tasks = []
    for person in (ANN, ANN, ANN, BOB):
        with acting_for(RED, person):
            tasks.append(asyncio.create_task(ask(*asked)))
    await _settled()
    assert read.running == [str(ANN), str(BOB)]
    read.end()
    assert {type(each) for each in await asyncio.gather(*tasks, return_exceptions=True)} == {NotFound}
    assert read.running == [str(ANN), str(BOB), str(ANN), str(ANN)]
