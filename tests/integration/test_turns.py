"""Turns: a message that wants an answer gets exactly one, whichever process answers and however often it retries."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from bot.script.changes import change_message
from bot.script.places import incoming, place_of
from composer.memory.index import embed_next, index_next
from composer.model import (
    CONSOLE,
    Attachment,
    Message,
    Trust,
    Turn,
    TurnState,
    Usage,
    Visibility,
    Workspace,
    derived_id,
    room_id,
    tenant_id,
    user_id,
)
from composer.ports.models import Vectors
from composer.ports.observer import TurnReport
from composer.repositories.turns import Answer, StoredTurn, Turns
from composer.settings import Settings
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.process_locks import PostgresProcessLocks
from composer.visibility import readable_conversation
from tests.support.databases import service_url
from tests.support.embedder import HashedWords, Unmetered
from tests.support.harness import START, AppHarness, open_harness
from tests.support.open_turns import open_turns
from tests.support.receiver import DM, HERE, TENANT, Receiver, said
from tests.support.waiting import TIMEOUT_SECONDS


def minute(number: float) -> datetime:
    return START + timedelta(minutes=number)


async def queued(receiver: Receiver, *texts: str) -> list[Turn]:
    """The turns of questions to @nexus in #general."""
    batch = [said(f"m{n}", f"@nexus {text}", minute=n) for n, text in enumerate(texts)]
    return list((await receiver(*batch)).turns)


def answered(turn: Turn, text: str = "an answer", *, prompt: str | None = None, failure: str | None = None) -> Answer:
    id = derived_id("reply", str(turn.id))
    reply = Message(id, "reply:m0", 1_000, minute(50), None, turn.agent_id, "Nexus", text, "room:x", Visibility.PUBLIC)
    usage = Usage(prompt_tokens=10, completion_tokens=5)
    return Answer(turn, None if failure else reply, failure, prompt, model="offline", usage=usage)


@pytest.fixture
async def two_processes(settings: Settings) -> AsyncIterator[list[PostgresProcessLocks]]:
    """The locks of two live processes."""
    assert settings.database_url is not None
    both = [PostgresProcessLocks(service_url(settings.database_url), 7 + n) for n in range(2)]
    for presence in both:
        await presence.open()
    yield both
    for presence in both:
        await presence.close()


async def unowned(database: PostgresDatabase, *served: str) -> list[uuid.UUID]:
    """The conversations that a process which delivers there would take over."""
    async with database.statement(TENANT) as tx:
        return await tx.turns.unowned(served or (CONSOLE,))


async def test_a_turn_goes_from_queued_to_answered_to_sent_only(receiver: Receiver) -> None:
    [turn] = await queued(receiver, "hello")
    here = turn.conversation_id
    async with receiver.database.transaction(TENANT) as tx:
        stored = await tx.turns.get(turn.id)
        assert stored is not None
        assert (stored.turn, stored.state) == (turn, "queued")
        await tx.turns.mark_sent(turn.id, minute(1))
        assert [each.state for each in await tx.turns.open(here)] == ["queued"], "an unanswered turn cannot be sent"
        assert await tx.turns.store_answer(answered(turn), minute(50)) is True
        assert [each.state for each in await tx.turns.open(here)] == ["answered"]
        await tx.turns.mark_sent(turn.id, minute(2))
        assert await tx.turns.open(here) == []
        assert await tx.turns.store_answer(answered(turn), minute(50)) is False
        await tx.messages.append([], indexed=True, turns=[(turn, minute(3))])
        assert await tx.turns.open(here) == []


async def test_a_turn_is_read_by_one_statement_that_leaves_no_tenant_behind(receiver: Receiver) -> None:
    [turn] = await queued(receiver, "hello")
    async with receiver.database.statement(TENANT) as tx:
        assert await tx.messages.get(turn.message_id) is None, "a statement that sets no tenant sees none"
        found = await tx.turns.get(turn.id)
        assert found is not None
        assert found.question is not None
        assert (found.turn, found.question.id, found.reply) == (turn, turn.message_id, None)
        assert await tx.messages.get(turn.message_id) is None, "nor does the next one on its connection"
    async with receiver.database.statement(tenant_id("another")) as tx:
        assert await tx.turns.get(turn.id) is None


async def test_a_turn_that_was_queued_just_now_is_known_as_it_is_read(receiver: Receiver) -> None:
    files = (Attachment("a.txt", "text/plain", "text", 4), Attachment("v.ogg", "audio/ogg", seconds=1.5))
    zone = timezone(timedelta(hours=2))
    at = (START + timedelta(microseconds=1_234)).astimezone(zone)
    await receiver(said("m1", "hello", user="bob"))
    async with receiver.database.transaction(TENANT, "alone") as tx:
        await tx.people.set_opted_out(user_id(HERE, "bob"), opted_out=True)
    received = await receiver(
        replace(said("m2", '@nexus line\n"two" \U0001f600', attachments=files, mentions=("bob", "carol")), at=at),
        said("m3", "@nexus @scout and?", reply_to="m2", sender_trust=Trust.GUEST, minute=1),
        said("m4", "@nexus what is kept of me?", user="bob", minute=2),
        said("m5", "hello", place=DM, minute=3),
    )
    assert len(received.turns) == 5
    for turn in received.turns:
        async with receiver.database.statement(TENANT) as tx:
            queued_now = StoredTurn(turn, TurnState.QUEUED, received.questions[turn.message_id])
            assert queued_now == await tx.turns.get(turn.id)


async def test_a_delivered_answer_is_recorded_by_one_statement_unless_its_text_was_replaced(
    harness: AppHarness,
) -> None:
    here = harness.workspace()
    given = [await harness.ask("alice", text, room="general") for text in ("@nexus hello", "@nexus and now?")]
    first, second = (answer.replaced("replaced") for answer in given)
    ids = first.turn.id, second.turn.id
    async with harness.app.database.transaction(here.tenant_id) as tx:
        await tx.erasure._sql.execute("erase_replace_text", ids=await replies(harness), text="replaced")
    async with harness.app.database.statement(here.tenant_id) as tx:
        for answer in (first, second):
            assert await tx.turns.mark_delivered(answer, minute(1)) == answer, "it was recorded before"
    await answered_again(harness)
    async with harness.app.database.statement(here.tenant_id) as tx:
        assert await tx.turns.mark_delivered(first.replaced("another"), minute(1)) == first
        assert await states(harness) == dict.fromkeys(ids, "answered")
        failure = replace(second, message=None, failure="It failed.")
        assert await tx.turns.mark_delivered(first, minute(1)) == replace(first, sent=True)
        assert await tx.turns.mark_delivered(failure, minute(1)) == replace(failure, sent=True)
        assert await states(harness) == dict.fromkeys(ids, "sent")
        gone = replace(first, turn=replace(first.turn, id=uuid.uuid4()))
        assert await tx.turns.mark_delivered(gone, minute(1)) is None
    async with harness.app.database.statement(tenant_id("another")) as tx:
        assert await tx.turns.mark_delivered(first, minute(1)) is None


async def states(harness: AppHarness) -> dict[uuid.UUID, str]:
    """The states of all turns, oldest first."""
    async with harness.app.database.connection() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{harness.workspace().tenant_id}'")
        rows = await connection.fetch("SELECT id, state FROM turns ORDER BY queued_at")
    return {row["id"]: row["state"] for row in rows}


async def replies(harness: AppHarness) -> list[uuid.UUID]:
    async with harness.app.database.connection() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{harness.workspace().tenant_id}'")
        return [row["reply_id"] for row in await connection.fetch("SELECT reply_id FROM turns")]


async def answered_again(harness: AppHarness) -> None:
    """Take back that the answers were sent."""
    async with harness.app.database.connection() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{harness.workspace().tenant_id}'")
        await connection.execute("UPDATE turns SET state = 'answered'")


async def test_an_answer_that_was_delivered_is_sent_though_one_statement_could_not_record_it(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = Turns.mark_delivered

    async def blind(self: Turns, answer: Answer, now: datetime) -> Answer | None:
        found = await mark(self, answer.replaced("another text"), now)
        return found and answer

    monkeypatch.setattr(Turns, "mark_delivered", blind)
    await harness.ask("alice", "@nexus hello", room="general")
    assert list((await states(harness)).values()) == ["sent"]


async def test_the_first_answer_stays(receiver: Receiver) -> None:
    [turn] = await queued(receiver, "hello")

    async def give(text: str) -> bool:
        async with receiver.database.transaction(TENANT) as tx:
            return await tx.turns.store_answer(answered(turn, failure=text), minute(50))

    assert sorted(await asyncio.gather(*(give(f"answer {n}") for n in range(4)))) == [False, False, False, True]
    async with receiver.database.transaction(TENANT, "read") as tx:
        stored = await tx.turns.get(turn.id)
    assert stored is not None
    assert (stored.state, stored.reply_id) == ("answered", None)
    assert stored.failure is not None
    assert stored.failure.startswith("answer ")


async def test_a_turn_that_fails_before_its_prompt_is_answered_with_the_reason(receiver: Receiver) -> None:
    [turn] = await queued(receiver, "hello")
    async with receiver.database.transaction(TENANT) as tx:
        assert await tx.turns.store_answer(answered(turn, failure="There is no such conversation here."), minute(50))
        stored = await tx.turns.get(turn.id)
    assert stored is not None
    assert (stored.state, stored.failure, stored.prompt) == ("answered", "There is no such conversation here.", None)


async def test_open_turns_are_read_in_the_order_of_their_messages(receiver: Receiver) -> None:
    turns = await queued(receiver, "one", "two", "three")
    same_time = (await receiver(*(said(f"s{n}", "@nexus at once", minute=9) for n in range(8)))).turns
    async with receiver.database.statement(TENANT) as tx:
        found = await tx.turns.open(turns[0].conversation_id)
    assert [each.turn for each in found] == [*turns, *same_time]
    assert {(each.state, each.workspace) for each in found} == {("queued", HERE.name)}


async def test_a_conversation_that_a_live_process_owns_is_not_taken_over(
    receiver: Receiver, two_processes: list[PostgresProcessLocks]
) -> None:
    [turn] = await queued(receiver, "one")
    assert await unowned(receiver.database) == [turn.conversation_id]
    assert await two_processes[0].take([turn.conversation_id])
    assert await unowned(receiver.database) == []
    await two_processes[0].close()
    await lock_released(receiver.database, two_processes[0].number)
    assert await unowned(receiver.database) == [turn.conversation_id]


async def test_a_turn_that_its_process_keeps_for_itself_is_not_taken_over(
    receiver: Receiver, two_processes: list[PostgresProcessLocks]
) -> None:
    first, second = await queued(receiver, "one", "two")
    await two_processes[0].take([first.id])
    assert await unowned(receiver.database) == [first.conversation_id], "the other one is nobody's"
    await two_processes[0].take([second.id])
    assert await unowned(receiver.database) == []


async def test_what_is_answered_and_unsent_is_taken_over_too(receiver: Receiver) -> None:
    turns = await queued(receiver, "one", "two", "three")
    async with receiver.database.transaction(TENANT) as tx:
        await tx.turns.store_answer(answered(turns[0]), minute(50))
        await tx.turns.store_answer(answered(turns[1], failure="no"), minute(50))
        await tx.turns.mark_sent(turns[1].id, minute(9))
    assert await receiver.turns() == ["m0>nexus", "m2>nexus"]


async def lock_released(database: PostgresDatabase, process: int) -> None:
    """Wait until the server has noticed that a connection was closed."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while await locked(database, process):
            pass


async def locked(database: PostgresDatabase, process: int) -> bool:
    async with database._pool.acquire() as connection:
        found = await connection.fetchval(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
            " AND (classid::bigint << 32 | objid::bigint) = $1",
            process,
        )
    return bool(found)


async def test_only_tenants_with_open_turns_are_looked_at(receiver: Receiver) -> None:
    other = Workspace(tenant_id("another"), "another", CONSOLE, "another")
    await receiver(replace(said("m9", "hello"), workspace="another"), workspace=other)
    assert await receiver.database.tenants_with_open_work() == []
    [turn] = await queued(receiver, "one")
    assert await receiver.database.tenants_with_open_work() == [TENANT]
    async with receiver.database.transaction(TENANT) as tx:
        await tx.turns.store_answer(answered(turn, failure="no"), minute(50))
        await tx.turns.mark_sent(turn.id, minute(9))
    assert await receiver.database.tenants_with_open_work() == []


async def test_a_process_takes_over_only_turns_that_its_adapters_can_deliver(receiver: Receiver) -> None:
    [turn] = await queued(receiver, "one")
    assert await unowned(receiver.database, "discord", "slack") == []
    assert await unowned(receiver.database, "discord", CONSOLE) == [turn.conversation_id]


async def test_a_process_of_one_workspace_takes_over_no_turns_of_another(receiver: Receiver) -> None:
    """Each Slack workspace has a process of its own, whose token the others don't have."""
    [turn] = await queued(receiver, "one")
    assert await unowned(receiver.database, f"{CONSOLE}:another") == []
    assert await unowned(receiver.database, f"{CONSOLE}:{HERE.name}") == [turn.conversation_id]


async def test_what_one_process_has_locked_no_other_has(two_processes: list[PostgresProcessLocks]) -> None:
    one, two = two_processes
    here, there = uuid.uuid4(), uuid.uuid4()
    first = await one.take([here])
    assert one.held(here) == first[here]
    assert await one.take([here]) == first, "it is the same lock"
    assert set(await two.take([here, there])) == {there}
    await one.release([here, there])
    assert one.held(here) is None
    assert await two.take([here])


async def test_locks_are_lost_when_their_connection_breaks_and_that_is_told(
    receiver: Receiver, two_processes: list[PostgresProcessLocks]
) -> None:
    one, two = two_processes
    here, lost = uuid.uuid4(), asyncio.Event()
    await one.open(on_lost=lost.set)
    before = (await one.take([here]))[here]
    await end_connection_of(receiver.database, one.number)
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await lost.wait()
    assert one.held(here) is None
    assert await one.take([uuid.uuid4()], reconnect=False) == {}
    await one.check()
    assert (await one.take([here]))[here] > before, "it is another lock"
    await one.close()
    await lock_released(receiver.database, one.number)
    assert await two.take([here])


async def end_connection_of(database: PostgresDatabase, process: int) -> None:
    """Let the server end the connection of a process's locks."""
    async with database._pool.acquire() as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
            " AND (classid::bigint << 32 | objid::bigint) = $1",
            process,
        )


async def test_the_last_prompt_is_the_callers_own_in_a_conversation_they_may_read(receiver: Receiver) -> None:
    [mine] = await queued(receiver, "one")
    [others] = (await receiver(said("m9", "@nexus two", user="bob", minute=9))).turns
    alice, bob = user_id(HERE, "alice"), user_id(HERE, "bob")
    async with receiver.database.transaction(TENANT) as tx:
        await tx.turns.store_answer(answered(mine, prompt='{"n": 1}', failure="x"), minute(50))
        await tx.turns.store_answer(answered(others, prompt='{"n": 2}', failure="x"), minute(50))
        access = await tx.conversations.access_context(room_id(HERE, "general"), alice, Trust.MEMBER)
        assert access is not None
        own, here = readable_conversation(access), access.conversation

        async def last(who: uuid.UUID, id: str | None = None) -> str | None:
            found = await tx.turns.last_prompt(own, here, who, id)
            return None if found is None else found.prompt

        assert await last(alice) == '{"n": 1}'
        assert await last(bob) == '{"n": 2}'
        assert await last(alice, "m9") is None
        assert await last(alice, "m0") == '{"n": 1}'
        assert await tx.turns.last_prompt(own, replace(here, namespace="room:other"), alice, None) is None


async def test_an_erased_question_is_not_answered(receiver: Receiver) -> None:
    await queued(receiver, "one", "two")
    await receiver.forget("m0")
    assert await receiver.turns() == ["m1>nexus"]


async def test_an_answered_but_unsent_turn_is_sent_by_the_next_process_without_another_call(settings: Settings) -> None:
    async with open_harness(settings) as first:
        here = first.workspace()
        unserved = replace(said("q1", "@nexus hello"), workspace=here.name, adapter="elsewhere")
        [turn] = (await first.app.receive(here, [unserved])).turns
        async with first.app.database.transaction(here.tenant_id) as tx:
            assert await tx.turns.store_answer(answered(turn, failure="What was stored."), minute(50))
    async with open_harness(settings) as second:
        second.app.turns.serve("elsewhere", second.delivery)
        for _ in range(2):
            await second.app.take_over()
            await second.app.turns.settle()
        assert [(reply.in_reply_to, reply.text, reply.failed) for reply in second.delivery.replies] == [
            ("q1", "What was stored.", True)
        ]
        assert second.delivery.chunks == []


async def test_turns_of_one_conversation_are_answered_in_order(harness: AppHarness) -> None:
    here = harness.workspace()
    batch = [replace(said(f"q{n}", f"@nexus question {n}", minute=n), workspace=here.name) for n in range(5)]
    await harness.app.receive(here, batch)
    await harness.app.turns.settle()
    assert [reply.in_reply_to for reply in harness.delivery.replies] == [f"q{n}" for n in range(5)]
    assert await open_turns(harness.app.database, here.tenant_id) == []


class Interrupted(HashedWords):
    """An embedder during whose first call another message is posted."""

    harness: AppHarness | None = None

    def interrupt(self, harness: AppHarness) -> None:
        self.harness = harness

    async def embed(self, texts: Sequence[str]) -> Vectors:
        harness, self.harness = self.harness, None
        if harness is not None:
            await post(harness, "and to ship on Mondays")
        return await super().embed(texts)


class Overtaken(HashedWords):
    """An embedder during whose first call another process edits a message and indexes its new text."""

    harness: AppHarness | None = None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        harness, self.harness = self.harness, None
        if harness is not None:
            here = harness.workspace()
            await change_message(harness.app, here, "m1", "we ship on Mondays")
            await index_next(harness.app.database, here.tenant_id)
        return await super().embed(texts)


async def backlog(harness: AppHarness) -> int:
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        return sum((await tx.maintenance.backlog()).indexing)


async def post(harness: AppHarness, text: str) -> None:
    here = harness.workspace()
    said = incoming(here, place_of("general", None, None), "alice", text, harness.clock.tick())
    await harness.app.receive(here, [said])


async def test_a_message_posted_while_the_indexer_works_is_indexed_without_another_message(settings: Settings) -> None:
    embedder = Interrupted()
    async with open_harness(settings, embedder=embedder) as harness:
        indexing = asyncio.create_task(harness.app.indexer.run())
        try:
            embedder.interrupt(harness)
            await post(harness, "we decided to deploy on Fridays")
            async with asyncio.timeout(TIMEOUT_SECONDS):
                while embedder.harness is not None or await backlog(harness):  # noqa: ASYNC110 (it works in the background)
                    await asyncio.sleep(0.01)
        finally:
            indexing.cancel()
            await asyncio.gather(indexing, return_exceptions=True)


async def test_a_vector_of_text_edited_meanwhile_is_not_stored(settings: Settings) -> None:
    embedder = Overtaken()
    async with open_harness(settings, embedder=embedder) as harness:
        here = harness.workspace()
        said = incoming(
            here, place_of("general", None, None), "alice", "the vault is open", harness.clock.tick(), id="m1"
        )
        await harness.app.receive(here, [said])
        await index_next(harness.app.database, here.tenant_id)
        embedder.harness = harness
        done = await embed_next(harness.app.database, Unmetered(embedder), here.tenant_id)
        assert (done.items, done.more) == (1, True)
        assert await backlog(harness) == 1, "the new text has the vector of the old one"
        await harness.app.indexer.catch_up(here.tenant_id)
        assert await backlog(harness) == 0


async def test_an_adapter_that_fails_while_reporting_a_delay_blocks_no_later_question(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    respond, broken = harness.app.responder.respond, [True]

    async def breaks_once(*given: Any) -> TurnReport:
        if broken.pop() if broken else False:
            raise RuntimeError("nobody foresaw this")
        return await respond(*given)

    async def on_delay(turn: Turn, sentence: str) -> None:
        raise RuntimeError("nor this")

    monkeypatch.setattr(harness.app.responder, "respond", breaks_once)
    monkeypatch.setattr(harness.delivery, "on_delay", on_delay)
    with suppress(RuntimeError):
        await harness.say("alice", "@nexus one", room="general")
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await harness.say("alice", "@nexus two", room="general")
    assert [reply.turn.adapter for reply in harness.delivery.replies] == ["console"]
