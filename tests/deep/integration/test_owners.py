"""A conversation has one owner among the processes over one database: apps of one test stand for processes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from bot.script.places import incoming, place_of
from bot.web.sessions import ApiSessions, EventKind, StoredQuestion
from composer.app import App
from composer.errors import Unavailable
from composer.model import CONSOLE, Agent, Usage
from composer.ports.models import ChatMessage, Chunk
from composer.repositories.turns import Answer
from composer.settings import Settings
from composer.stores.database.process_locks import PostgresProcessLocks
from tests.support.api_sessions import Sessions, valid
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import until


class Gated:
    """A model that answers once its gate is open."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        self.asked.append(messages[-1].content)
        yield Chunk("It is ")
        await self.gate.wait()
        yield Chunk("so.", Usage(1, 1))


@dataclass
class Process:
    """An app over the database of the test, with its model."""

    harness: AppHarness
    model: Gated

    @property
    def app(self) -> App:
        return self.harness.app

    @property
    def answered(self) -> list[str]:
        """The questions that this process has answered, in that order."""
        return [reply.in_reply_to for reply in self.harness.delivery.replies]

    async def ask(self, id: str, room: str = "general") -> None:
        """Receive a question, and do not wait for its answer."""
        here = self.harness.workspace()
        said = incoming(here, place_of(room, None, None), "alice", f"@nexus {id}?", self.harness.clock.tick(), id=id)
        await self.app.receive(here, [said])

    async def begins(self, count: int = 1) -> None:
        """Wait until the model was asked so often."""
        await until(lambda: len(self.model.asked) >= count)


Open = Callable[..., Any]


@pytest.fixture
async def opened(settings: Settings) -> AsyncIterator[Open]:
    """Opens processes. Their clocks are one, as those of machines nearly are."""
    async with AsyncExitStack() as stack:
        first: list[AppHarness] = []

        async def open_process(**changed: Any) -> Process:
            model = Gated()
            clock = first[0].clock if first else None
            opening = open_harness(settings.model_copy(update=changed), model=model, clock=clock)
            first.append(await stack.enter_async_context(opening))
            return Process(first[-1], model)

        yield open_process


async def break_locks(process: Process, settings: Settings) -> None:
    """Let the server end the connection of a process's locks."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
            " AND (classid::bigint << 32 | objid::bigint) = $1",
            process.app.locks.number,
        )
    finally:
        await connection.close()


async def test_who_receives_a_question_that_another_process_is_to_answer_tells_it(opened: Open) -> None:
    one, other = await opened(), await opened()
    one.model.gate.clear()
    await one.ask("q1")
    await one.begins()
    await other.ask("q2")
    await one.ask("q3")
    await other.ask("q4")
    await other.app.turns.settle()
    assert other.answered == [], "another one owns the conversation"
    one.model.gate.set()
    await until(lambda: len(one.answered) == 4)
    assert one.answered == ["q1", "q2", "q3", "q4"]
    assert other.model.asked == []


async def test_whoever_receives_the_next_question_owns_a_conversation_that_is_free(opened: Open) -> None:
    one, other = await opened(), await opened()
    for number in range(3):
        for process in (one, other):
            await process.ask(f"q{number}{process is one}")
            await process.app.turns.settle()
    assert (len(one.answered), len(other.answered)) == (3, 3)


@pytest.mark.parametrize("at", ["before", "after"])
async def test_a_question_that_is_stored_while_the_owner_lets_go_is_answered(
    opened: Open, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """The other process finds the conversation owned just before, or free just after, and nobody looks again later."""
    one, other = await opened(), await opened()
    release, releases = PostgresProcessLocks.release, 0

    async def released(self: PostgresProcessLocks, ids: Collection[UUID]) -> None:
        nonlocal releases
        releases += self is one.app.locks
        first = self is one.app.locks and releases == 1
        if first and at == "before":
            await other.ask("q2")
        await release(self, ids)
        if first and at == "after":
            await other.ask("q2")

    monkeypatch.setattr(PostgresProcessLocks, "release", released)
    await one.ask("q1")
    await until(lambda: len([*one.answered, *other.answered]) == 2)
    assert sorted([*one.answered, *other.answered]) == ["q1", "q2"]


async def test_questions_that_arrive_at_once_at_several_processes_are_all_answered_in_order(opened: Open) -> None:
    processes = [await opened() for _ in range(3)]
    order: list[str] = []
    for process in processes:
        deliver = process.harness.delivery.deliver

        async def noted(reply: Answer, deliver: Any = deliver) -> None:
            order.append(reply.in_reply_to)
            await deliver(reply)

        process.harness.delivery.deliver = noted
    asked = [f"q{number:02}" for number in range(60)]
    for number, id in enumerate(asked):
        await processes[number % 3].ask(id)
    await until(lambda: len(order) >= len(asked))
    assert order == asked


async def test_an_owner_whose_locks_are_lost_begins_anew_and_doubles_nothing(opened: Open, settings: Settings) -> None:
    one, other = await opened(), await opened()
    one.model.gate.clear()
    other.model.gate.clear()
    await one.ask("q1")
    await one.begins()
    await break_locks(one, settings)
    await until(lambda: len(one.model.asked) + len(other.model.asked) == 2)  # one of them has begun again
    await other.app.take_over()
    one.model.gate.set()
    other.model.gate.set()
    await until(lambda: [*one.answered, *other.answered])
    await asyncio.gather(one.app.turns.settle(), other.app.turns.settle())
    assert [*one.answered, *other.answered] == ["q1"]
    assert len(one.model.asked) + len(other.model.asked) == 2
    await other.ask("q2")
    await other.app.turns.settle()
    assert [*one.answered, *other.answered] == ["q1", "q2"]


async def test_what_a_process_whose_locks_are_lost_was_doing_stops_while_another_one_does_it(
    opened: Open, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await opened(), await opened()
    one.model.gate.clear()
    await one.ask("q1")
    await one.begins()

    async def unreachable(self: PostgresProcessLocks) -> Any:
        if self is one.app.locks:
            raise Unavailable("The database does not answer.")
        return await connected(self)

    connected = PostgresProcessLocks._connected
    monkeypatch.setattr(PostgresProcessLocks, "_connected", unreachable)
    await break_locks(one, settings)
    await until(lambda: one.harness.delivery.delays)
    await other.app.take_over()
    await other.app.turns.settle()
    assert other.answered == ["q1"]
    one.model.gate.set()
    monkeypatch.setattr(PostgresProcessLocks, "_connected", connected)
    await one.app.turns.settle()
    assert one.answered == []


async def test_a_conversation_whose_owner_cannot_deliver_is_left_to_one_that_can(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, healthy = await opened(), await opened()

    async def deliver(reply: Answer) -> None:
        raise Unavailable("The platform does not answer.")

    monkeypatch.setattr(broken.harness.delivery, "deliver", deliver)
    await broken.ask("q1")
    await broken.ask("q2")
    await until(lambda: broken.harness.delivery.delays)

    async def taken_over() -> bool:
        await healthy.app.take_over()
        return len(healthy.answered) == 2

    await until(taken_over)
    assert healthy.answered == ["q1", "q2"]
    assert len(broken.model.asked) + len(healthy.model.asked) == 2, "what is answered is not asked again"


async def test_a_process_that_is_busy_leaves_conversations_to_others(opened: Open) -> None:
    busy, idle = await opened(concurrent_answers=1), await opened()
    busy.model.gate.clear()
    await busy.ask("q1")
    await busy.begins()
    await busy.ask("q2", room="random")
    await until(lambda: idle.answered)
    busy.model.gate.set()
    await busy.app.turns.settle()
    assert (busy.answered, idle.answered) == (["q1"], ["q2"])


async def test_a_process_that_stops_lets_go_of_its_conversations(opened: Open) -> None:
    one, other = await opened(), await opened()
    one.model.gate.clear()
    await one.ask("q1")
    await one.begins()
    assert await other.app.take_over() == 0
    await one.app.turns.stop()
    assert await other.app.take_over() == 1
    await other.app.turns.settle()
    assert (one.answered, other.answered) == ([], ["q1"])


async def test_what_could_not_be_stored_keeps_no_conversation(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = await opened(), await opened()
    announce = type(one.app.turns).announce

    async def failing(self: Any, *given: Any) -> Any:
        await announce(self, *given)
        raise Unavailable("The database does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(type(one.app.turns), "announce", failing)
        with pytest.raises(Unavailable):
            await one.ask("q1")
    await other.ask("q1")  # its platform sends it again, to another process
    await until(lambda: [*one.answered, *other.answered])
    assert one.answered == ["q1"], "who had announced it still owns the conversation, and was told"
    await other.ask("q2")
    await until(lambda: len([*one.answered, *other.answered]) == 2)


async def test_a_turn_that_fails_ends_with_a_sentence_and_is_not_tried_again(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await opened(), await opened()

    async def respond(*given: Any) -> Any:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(one.app.responder, "respond", respond)
    await one.ask("q1")
    await one.app.turns.settle()
    [sentence] = one.harness.delivery.delays
    assert sentence.startswith("Something went wrong with this answer. Ask again")
    assert await other.app.take_over() == 0


# --- answers that only the process that received the question can show ------------------------------------------------


def sessions_of(process: Process) -> Sessions:
    """Sessions over the API, served by a process."""
    return Sessions(process.harness, process.app, ApiSessions(process.app, look_seconds=0.02))


async def test_a_question_over_the_api_is_answered_by_its_process_in_the_order_of_the_session(
    opened: Open, settings: Settings
) -> None:
    one, other = await opened(), await opened()
    await one.ask("hello")
    await one.app.turns.settle()
    here, there = sessions_of(one), sessions_of(other)
    alice = await here.bearer("alice")
    one.model.gate.clear()
    asked = [(here, await here.ask(alice, "which is it?", id="a1"))]
    await one.begins(2)
    for number, sessions in ((2, there), (3, here), (4, there), (5, there), (6, here)):
        asked.append((sessions, await sessions.ask(alice, "and then?", id=f"a{number}")))
    following = [asyncio.create_task(kinds(sessions, question)) for sessions, question in asked]
    assert other.model.asked == []
    one.model.gate.set()
    for each in await asyncio.gather(*following):
        assert each[-1] is EventKind.ANSWER
    assert (len(one.model.asked), len(other.model.asked)) == (1 + 3, 3)
    assert await answered_in_order(settings) == [f"api:a{number}" for number in range(1, 7)]


async def answered_in_order(settings: Settings) -> list[str]:
    """The questions over the API in the order of their answers in the log."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        rows = await connection.fetch(
            "SELECT q.external_id FROM turns AS t JOIN messages AS q ON q.id = t.message_id"
            " JOIN messages AS r ON r.id = t.reply_id WHERE t.adapter = 'rest' ORDER BY r.seq"
        )
    finally:
        await connection.close()
    return [row["external_id"] for row in rows]


async def kinds(sessions: Sessions, question: StoredQuestion) -> list[EventKind]:
    """The kinds of the events of a question."""
    return [event.kind async for event in sessions.served.follow(question, valid)]


async def test_a_question_over_the_api_whose_process_is_gone_is_answered_by_another(opened: Open) -> None:
    one, other = await opened(), await opened()
    await one.ask("hello")
    await one.app.turns.settle()
    here, there = sessions_of(one), sessions_of(other)
    alice = await here.bearer("alice")
    one.model.gate.clear()
    asked = await here.ask(alice, "which is it?")
    await one.begins(2)
    assert await other.app.take_over() == 0, "it is kept as long as its process lives"
    await one.app.turns.stop()
    assert await other.app.take_over() == 1
    await other.app.turns.settle()
    assert (await there.view(alice, asked.turn)).text == "It is so."


async def test_terminals_at_one_place_each_get_their_own_answers(opened: Open) -> None:
    one, other = await opened(), await opened()
    for process in (one, other):
        process.app.turns.serve(CONSOLE, process.harness.delivery, here_only=True)
    one.model.gate.clear()
    await one.ask("q1")
    await one.begins()
    await other.ask("q2")
    one.model.gate.set()
    await other.app.turns.settle()
    assert (one.answered, other.answered) == (["q1"], ["q2"])
