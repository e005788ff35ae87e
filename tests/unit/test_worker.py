"""The worker that answers queued turns."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import asyncpg
import pytest

from composer.errors import Unavailable, for_operator
from composer.model import Agent, Message, Turn, TurnState, Usage, Visibility
from composer.ports.observer import NoObserver, TurnOutcome, TurnReport
from composer.repositories.turns import OpenTurn
from composer.settings.server_urls import ServerUrl
from composer.stores.database.postgres import translate_postgres_errors
from composer.tasks.signals import InteractivePriority
from composer.turn import worker as worker_module
from composer.turn.delivery import Delivery
from composer.turn.respond import Responder
from composer.turn.worker import TurnWorker
from tests.support.harness import START

PLACES = 4
CONCURRENT = 3  # what one tenant has of them
TENANT, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)
AGENT = Agent(uuid.UUID(int=2), "nexus", "Nexus", "", "", 8_000)


class FreeLocks:
    """Locks that are always free."""

    number = 1

    def __init__(self) -> None:
        self._held: dict[uuid.UUID, int] = {}

    async def take(self, ids: Collection[uuid.UUID], *, reconnect: bool = True) -> Mapping[uuid.UUID, int]:
        return {id: self._held.setdefault(id, 1) for id in ids}

    async def release(self, ids: Collection[uuid.UUID]) -> None:
        pass

    def held(self, id: uuid.UUID) -> int | None:
        return self._held.get(id)


class OpenTurns:
    """A database that knows the open turns: those that were started, until they are answered. It is also their
    repository."""

    def __init__(self, answered: Callable[[], Collection[uuid.UUID]]) -> None:
        self.stored: list[Turn] = []
        self.askers: dict[uuid.UUID, uuid.UUID] = {}
        self._answered = answered

    @property
    def turns(self) -> "OpenTurns":
        return self

    @asynccontextmanager
    async def statement(self, tenant: uuid.UUID) -> AsyncIterator["OpenTurns"]:
        yield self

    async def open(self, conversation: uuid.UUID) -> list[OpenTurn]:
        return [
            OpenTurn(each, TurnState.QUEUED, "acme", self.askers.get(each.id))
            for each in self.stored
            if each.conversation_id == conversation and each.id not in self._answered()
        ]


@dataclass
class Stage:
    """A worker, and what is stored."""

    worker: TurnWorker
    database: OpenTurns

    def ask(self, turn: Turn, asker: uuid.UUID) -> None:
        """Start a turn of somebody."""
        self.database.askers[turn.id] = asker
        self.start(turn, questions=[replace(question_of(turn), user_id=asker)])

    def start(self, *turns: Turn, questions: Collection[Message] = ()) -> None:
        """Start turns that were stored while their conversations were locked."""
        self.database.stored += turns
        held = {each.conversation_id: 1 for each in turns}
        self.worker.start(turns, held, {each.id: each for each in questions})


class OutageResponder:
    """Answers the turns of every adapter except `broken`, which hangs."""

    def __init__(self) -> None:
        self.answered: list[uuid.UUID] = []
        self.repaired = False

    async def respond(self, turn: Turn, agent: Agent, delivery: Delivery, asked: Message | None = None) -> TurnReport:
        if turn.adapter == "broken" and not self.repaired:
            raise Unavailable("The platform does not answer.")
        self.answered.append(turn.id)
        return TurnReport(turn, TurnOutcome.DELIVERED, {"model": 12.5}, Usage(30, 4), "small")


class SilentDelivery:
    """Counts the messages about a delay."""

    def __init__(self) -> None:
        self.delayed: list[uuid.UUID] = []
        self._changed = asyncio.Event()

    def on_wait(self, turn: Turn) -> None:
        pass

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        self.delayed.append(turn.id)
        self._changed.set()

    async def all_delayed(self, count: int) -> None:
        while len(self.delayed) < count:
            self._changed.clear()
            await self._changed.wait()


def turn(number: int, adapter: str) -> Turn:
    """A turn in a conversation of its own."""
    id = uuid.UUID(int=number)
    return Turn(id, TENANT, id, id, AGENT.id, adapter)


def agents(_: uuid.UUID) -> Mapping[uuid.UUID, Agent]:
    return {AGENT.id: AGENT}


def stage_of(responder: object, answered: Callable[[], Collection[uuid.UUID]], concurrent: int = PLACES) -> Stage:
    """A worker that answers so many turns at once. `answered` gives the turns that are."""
    database = OpenTurns(answered)
    worker = TurnWorker(
        cast(Any, database),
        FreeLocks(),
        cast(Responder, responder),
        agents,
        lambda tenant: None,
        InteractivePriority(),
        NoObserver(),
        concurrent=concurrent,
    )
    return Stage(worker, database)


async def test_an_outage_of_one_platform_does_not_stop_the_others() -> None:
    responder, broken = OutageResponder(), SilentDelivery()
    stage = stage_of(responder, lambda: responder.answered)
    worker = stage.worker
    worker.serve("broken", cast(Delivery, broken))
    worker.serve("healthy", cast(Delivery, SilentDelivery()))
    stuck = [turn(number, "broken") for number in range(100, 100 + CONCURRENT)]
    for each in stuck:
        stage.start(each)
    await broken.all_delayed(len(stuck))
    healthy = turn(1, "healthy")
    stage.start(healthy)
    for _ in range(1_000):  # steps of the event loop, not time
        if healthy.id in responder.answered:
            break
        await asyncio.sleep(0)
    assert responder.answered == [healthy.id]
    responder.repaired = True
    await worker.settle()
    assert set(responder.answered) == {healthy.id, *(each.id for each in stuck)}
    assert len(broken.delayed) == len(stuck), "each delay is reported once"


class SlowResponder:
    """Answers turns when told to, and notes how many are being answered at once."""

    def __init__(self) -> None:
        self.working = self.most = 0
        self.asked: list[Message | None] = []
        self.answered: list[uuid.UUID] = []
        self.go_on = asyncio.Event()
        self._ends: dict[int, asyncio.Event] = {}

    def let_go(self, number: int) -> None:
        """Let one turn end."""
        self._ends[number].set()

    async def _may_end(self, turn: Turn) -> None:
        one = self._ends.setdefault(turn.id.int, asyncio.Event())
        waits = [asyncio.create_task(each.wait()) for each in (self.go_on, one)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def respond(self, turn: Turn, agent: Agent, delivery: Delivery, asked: Message | None = None) -> TurnReport:
        self.working += 1
        self.asked.append(asked)
        self.most = max(self.most, self.working)
        await self._may_end(turn)
        self.working -= 1
        self.answered.append(turn.id)
        return TurnReport(turn, TurnOutcome.DELIVERED)


async def test_as_many_turns_are_answered_at_once_as_the_setting_allows() -> None:
    responder = SlowResponder()
    stage = stage_of(responder, lambda: responder.answered)
    worker = stage.worker
    worker.serve("slow", cast(Delivery, SilentDelivery()))
    for number in range(100, 110):
        stage.start(turn(number, "slow"))
    for _ in range(100):  # steps of the event loop
        await asyncio.sleep(0)
    assert responder.working == CONCURRENT
    responder.go_on.set()
    await worker.settle()
    assert (responder.most, worker.open) == (CONCURRENT, 0)


async def test_slow_questions_of_one_person_leave_places_to_everybody_else() -> None:
    """Of 70 questions in as many sessions half of the places are taken; who asks in the same tenant is answered, and
    who asks in another one, also where the tenant has all that it may."""
    responder = HangingResponder(range(1_000, 2_000))
    stage = stage_of(responder, lambda: responder.answered, concurrent=32)
    stage.worker.serve("slow", cast(Delivery, SilentDelivery()))
    one, others = uuid.UUID(int=50), [uuid.UUID(int=51), uuid.UUID(int=52)]
    for number in range(1_000, 1_070):
        stage.ask(turn(number, "slow"), one)
    await steps()
    assert responder.working == 16
    stage.ask(turn(1, "slow"), others[0])
    await steps()
    assert [each.int for each in responder.answered] == [1]
    for number in range(1_100, 1_140):
        stage.ask(turn(number, "slow"), others[number % 2])
    await steps()
    assert responder.working == 24
    stage.ask(replace(turn(2, "slow"), tenant_id=OTHER), uuid.UUID(int=60))
    await steps()
    assert [each.int for each in responder.answered] == [1, 2]
    responder.go_on.set()
    await stage.worker.settle()
    assert (responder.most, stage.worker.open) == (24, 0)


async def test_of_those_who_wait_for_a_place_whoever_has_fewest_is_answered_next() -> None:
    responder = HangingResponder(range(100, 200))
    stage = stage_of(responder, lambda: responder.answered)
    stage.worker.serve("slow", cast(Delivery, SilentDelivery()))
    ann, bob = uuid.UUID(int=50), uuid.UUID(int=51)
    for number in range(100, 110):
        stage.ask(turn(number, "slow"), ann)
    stage.ask(turn(110, "slow"), bob)
    await steps()
    assert responder.begun == [100, 101, 110]
    stage.ask(turn(111, "slow"), bob)
    stage.ask(turn(1, "slow"), uuid.UUID(int=52))
    responder.let_go(100)
    await steps()
    assert responder.begun[3:5] == [1, 102], "who has none, then who has one and waits for longest"
    responder.go_on.set()
    await stage.worker.settle()


async def test_a_turn_that_waits_for_disk_space_is_not_said_to_be_lost() -> None:
    with pytest.raises(Unavailable) as full:
        async with translate_postgres_errors(ServerUrl("postgresql://127.0.0.1/nexus")):
            raise asyncpg.DiskFullError
    assert str(full.value) == "The database has no disk space left; try again in a moment."
    assert "nothing was stored" in for_operator(full.value)


async def test_a_database_that_takes_no_changes_for_a_while_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        async with translate_postgres_errors(ServerUrl("postgresql://127.0.0.1/nexus")):
            raise asyncpg.ReadOnlySQLTransactionError


class Asked:
    """Notes what it is given as the question of each turn; the first attempt at each fails."""

    def __init__(self) -> None:
        self.given: list[tuple[int, Message | None]] = []
        self.answered: list[uuid.UUID] = []

    async def respond(self, turn: Turn, agent: Agent, delivery: Delivery, asked: Message | None = None) -> TurnReport:
        again = turn.id.int in {number for number, _ in self.given}
        self.given.append((turn.id.int, asked))
        if not again:
            raise Unavailable("The database does not answer.")
        self.answered.append(turn.id)
        return TurnReport(turn, TurnOutcome.DELIVERED)


async def test_only_a_turn_that_begins_at_once_has_the_question_that_was_stored_and_only_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_module, "TURN_RETRY_SECONDS", 0.0)
    responder = Asked()
    stage = stage_of(responder, lambda: responder.answered)
    stage.worker.serve("chat", cast(Delivery, SilentDelivery()))
    first, second = turn(1, "chat"), replace(turn(2, "chat"), conversation_id=uuid.UUID(int=1))
    for each in (first, second):
        stage.start(each, questions=[question_of(each)])
    await stage.worker.settle()
    assert responder.given == [(1, question_of(first)), (1, None), (2, None), (2, None)]


async def test_a_turn_that_waits_for_others_is_read_when_it_begins() -> None:
    responder = SlowResponder()
    stage = stage_of(responder, lambda: responder.answered)
    worker = stage.worker
    worker.serve("slow", cast(Delivery, SilentDelivery()))
    for number in range(100, 100 + CONCURRENT):
        stage.start(turn(number, "slow"))
    while responder.working < CONCURRENT:  # noqa: ASYNC110 (steps of the event loop, not time)
        await asyncio.sleep(0)
    late = turn(1, "slow")
    stage.start(late, questions=[question_of(late)])
    responder.go_on.set()
    await worker.settle()
    assert responder.asked == [None] * (CONCURRENT + 1)


class HangingResponder(SlowResponder):
    """Answers the turns of all but one asker at once; notes who is being answered beside whom."""

    def __init__(self, hangs: Collection[int]) -> None:
        super().__init__()
        self.hangs = hangs
        self.begun: list[int] = []

    async def respond(self, turn: Turn, agent: Agent, delivery: Delivery, asked: Message | None = None) -> TurnReport:
        self.begun.append(turn.id.int)
        if turn.id.int not in self.hangs:
            self.answered.append(turn.id)
            return TurnReport(turn, TurnOutcome.DELIVERED)
        return await super().respond(turn, agent, delivery, asked)


def of_one_room(stage: Stage, *askers: int) -> list[Turn]:
    """Turns 1, 2, … of one conversation, of these askers."""
    turns = [replace(turn(number, "chat"), conversation_id=uuid.UUID(int=1)) for number in range(1, len(askers) + 1)]
    stage.database.askers |= {each.id: uuid.UUID(int=asker) for each, asker in zip(turns, askers, strict=True)}
    return turns


async def steps(count: int = 300) -> None:
    """Let the event loop take so many steps."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("together", [True, False])
async def test_a_model_that_hangs_for_one_person_holds_up_their_own_questions_alone(together: bool) -> None:
    responder = HangingResponder({1})
    stage = stage_of(responder, lambda: responder.answered)
    stage.worker.serve("chat", cast(Delivery, SilentDelivery()))
    turns = of_one_room(stage, 100, 100, 200, 300, 200)
    if together:
        stage.start(*turns)
    else:
        for each in turns:
            stage.start(each)
            await steps()
    await steps()
    assert [each.int for each in responder.answered] == [3, 4, 5]
    responder.go_on.set()
    await stage.worker.settle()
    assert [each.int for each in responder.answered] == [3, 4, 5, 1, 2]
    assert sorted(responder.begun) == [1, 2, 3, 4, 5], "each was begun once"
    assert stage.worker.open == 0


async def test_so_many_people_are_answered_side_by_side_in_one_conversation() -> None:
    responder = HangingResponder(range(1, 10))
    stage = stage_of(responder, lambda: responder.answered, concurrent=50)
    stage.worker.serve("chat", cast(Delivery, SilentDelivery()))
    stage.start(*of_one_room(stage, *range(100, 109)))
    await steps()
    assert responder.begun == [1, 2, 3, 4][: worker_module.MAX_SIDE_BY_SIDE]
    responder.go_on.set()
    await stage.worker.settle()
    assert sorted(responder.begun) == list(range(1, 10))


async def test_one_persons_turns_stay_in_order_whatever_fails_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "TURN_RETRY_SECONDS", 0.0)
    responder = Asked()  # the first attempt at each fails
    stage = stage_of(responder, lambda: responder.answered)
    delivery = SilentDelivery()
    stage.worker.serve("chat", cast(Delivery, delivery))
    turns = of_one_room(stage, 100, 200, 100, 200, 100)
    stage.start(*turns)
    await stage.worker.settle()
    answered = [each.int for each in responder.answered]
    assert [each for each in answered if each % 2] == [1, 3, 5]
    assert [each for each in answered if not each % 2] == [2, 4]
    assert sorted(each.int for each in delivery.delayed) == [1, 2, 3, 4, 5], "each delay is said of its own turn, once"


async def test_a_room_whose_lock_is_lost_is_answered_again_by_all_its_people() -> None:
    responder = HangingResponder({1, 2})
    stage = stage_of(responder, lambda: responder.answered)
    stage.worker.serve("chat", cast(Delivery, SilentDelivery()))
    stage.start(*of_one_room(stage, 100, 200))
    await steps()
    assert responder.begun == [1, 2]
    stage.worker.on_lost()
    await steps()
    assert sorted(responder.begun) == [1, 1, 2, 2]
    responder.go_on.set()
    await stage.worker.settle()
    assert sorted(each.int for each in responder.answered) == [1, 2]


def question_of(turn: Turn) -> Message:
    return Message(turn.message_id, "q", 1, START, turn.id, None, "Alice", "hello?", "room:x", Visibility.PUBLIC)
