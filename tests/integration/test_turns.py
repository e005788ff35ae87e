"""Turns: one message that wants an answer gets one, whichever process gives it and however often one tries."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from bot.script.changes import change_message
from bot.script.places import PLATFORM, incoming, place_of
from composer.memory.index import embed_next, index_next
from composer.model import Message, Turn, Usage, Visibility, derived_id
from composer.ports import Answer, Vectors
from composer.settings import Settings
from composer.stores.postgres import Database
from composer.stores.process_locks import ProcessLocks
from composer.visibility import conversation_namespace
from composer.workspace import room_id, user_id
from tests.conftest import START, Stage, stage_on
from tests.e2e.program import LONGEST
from tests.integration.receiving import HERE, PROCESS, TENANT, Receiving, said
from tests.property.embedder import HashedWords

pytestmark = pytest.mark.integration


def minute(number: float) -> datetime:
    return START + timedelta(minutes=number)


async def queued(taking: Receiving, *texts: str) -> list[Turn]:
    """The turns of questions to @nexus in #general."""
    batch = [said(f"m{n}", f"@nexus {text}", minute=n) for n, text in enumerate(texts)]
    return list((await taking(*batch)).turns)


def answered(turn: Turn, text: str = "an answer", *, prompt: str | None = None, failure: str | None = None) -> Answer:
    id = derived_id("reply", str(turn.id))
    reply = Message(id, "reply:m0", 1_000, minute(50), None, turn.agent_id, "Nexus", text, "room:x", Visibility.PUBLIC)
    usage = Usage(prompt_tokens=10, completion_tokens=5)
    return Answer(turn, prompt, "{}", "offline", usage, minute(50), None if failure else reply, failure)


@pytest.fixture
async def presences(settings: Settings) -> AsyncIterator[list[ProcessLocks]]:
    """Two processes that are present, numbered PROCESS and PROCESS + 1."""
    assert settings.database_url is not None
    both = [ProcessLocks(settings.database_url, PROCESS + n) for n in range(2)]
    for presence in both:
        await presence.open()
    yield both
    for presence in both:
        await presence.close()


async def adopt(database: Database, process: int, *doors: str) -> int:
    async with database.transaction(TENANT) as tx:
        return await tx.turns.adopt(process, doors or (PLATFORM,))


async def test_a_turn_goes_from_queued_to_answered_to_sent_and_never_back(taking: Receiving) -> None:
    [turn] = await queued(taking, "hello")
    async with taking.database.transaction(TENANT) as tx:
        stored = await tx.turns.get(turn.id)
        assert stored is not None
        assert (stored.turn, stored.state) == (turn, "queued")
        await tx.turns.sent(turn.id, minute(1))
        assert (await tx.turns.open(PROCESS))[0][1] == "queued", "what was not answered can not have been sent"
        assert await tx.turns.answer(answered(turn)) is True
        assert (await tx.turns.open(PROCESS))[0][1] == "answered"
        await tx.turns.sent(turn.id, minute(2))
        assert await tx.turns.open(PROCESS) == []
        assert await tx.turns.answer(answered(turn)) is False
        await tx.turns.queue([(turn, minute(3))], PROCESS)
        assert await tx.turns.open(PROCESS) == []


async def test_the_first_answer_stays(taking: Receiving) -> None:
    [turn] = await queued(taking, "hello")

    async def give(text: str) -> bool:
        async with taking.database.transaction(TENANT) as tx:
            return await tx.turns.answer(answered(turn, failure=text))

    assert sorted(await asyncio.gather(*(give(f"answer {n}") for n in range(4)))) == [False, False, False, True]
    async with taking.database.transaction(TENANT, snapshot=True) as tx:
        stored = await tx.turns.get(turn.id)
    assert stored is not None
    assert (stored.state, stored.reply_id) == ("answered", None)
    assert stored.failure is not None
    assert stored.failure.startswith("answer ")


async def test_a_turn_that_failed_before_it_had_a_prompt_is_answered_with_the_reason(taking: Receiving) -> None:
    [turn] = await queued(taking, "hello")
    async with taking.database.transaction(TENANT) as tx:
        assert await tx.turns.answer(answered(turn, failure="There is no such conversation here."))
        stored = await tx.turns.get(turn.id)
    assert stored is not None
    assert (stored.state, stored.failure, stored.prompt) == ("answered", "There is no such conversation here.", None)


async def test_turns_are_open_for_the_process_that_queued_them_oldest_first(taking: Receiving) -> None:
    turns = await queued(taking, "one", "two", "three")
    async with taking.database.transaction(TENANT, snapshot=True) as tx:
        assert await tx.turns.open(PROCESS) == [(turn, "queued") for turn in turns]
        assert await tx.turns.open(PROCESS + 1) == []


async def test_what_a_living_process_has_is_not_adopted(taking: Receiving, presences: list[ProcessLocks]) -> None:
    await queued(taking, "one", "two")
    assert await adopt(taking.database, PROCESS + 1) == 0
    assert await taking.turns(PROCESS) == ["m0>nexus", "m1>nexus"]


async def test_what_a_dead_process_left_is_adopted_whole_by_one(
    taking: Receiving, presences: list[ProcessLocks]
) -> None:
    turns = await queued(taking, "one", "two", "three")
    async with taking.database.transaction(TENANT) as tx:
        await tx.turns.answer(answered(turns[0]))
        await tx.turns.answer(answered(turns[1], failure="no"))
        await tx.turns.sent(turns[1].id, minute(9))
    await presences[0].close()
    await gone(taking.database, PROCESS)
    adopted = await asyncio.gather(*(adopt(taking.database, PROCESS + 1) for _ in range(3)))
    assert sorted(adopted) == [0, 0, 2], "what is unanswered or unsent, once"
    assert await taking.turns(PROCESS) == []
    assert await taking.turns(PROCESS + 1) == ["m0>nexus", "m2>nexus"]


async def gone(database: Database, process: int) -> None:
    """Wait until the server has noticed that a connection was cut."""
    async with asyncio.timeout(180):
        while await locked(database, process):
            pass


async def locked(database: Database, process: int) -> bool:
    async with database._pool.acquire() as connection:
        found = await connection.fetchval(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
            " AND (classid::bigint << 32 | objid::bigint) = $1",
            process,
        )
    return bool(found)


async def test_of_two_that_come_after_a_dead_process_each_turn_goes_to_one(taking: Receiving) -> None:
    await queued(taking, *(f"question {n}" for n in range(20)))  # no ProcessLocks holds PROCESS: it is dead
    adopted = await asyncio.gather(adopt(taking.database, 101), adopt(taking.database, 102))
    assert sum(adopted) >= 20
    assert await taking.turns(PROCESS) == []
    assert sorted([*await taking.turns(101), *await taking.turns(102)]) == sorted(f"m{n}>nexus" for n in range(20))


async def test_a_process_adopts_only_what_its_doors_can_deliver(taking: Receiving) -> None:
    await queued(taking, "one")
    assert await adopt(taking.database, PROCESS + 1, "discord", "slack") == 0
    assert await adopt(taking.database, PROCESS + 1, "discord", PLATFORM) == 1


async def test_a_number_of_sixty_two_bits_is_found_among_the_living(taking: Receiving, settings: Settings) -> None:
    assert settings.database_url is not None
    number = 2**62 - 12_345
    presence = ProcessLocks(settings.database_url, number)
    await presence.open()
    await queued(taking, "one")
    assert await adopt(taking.database, number) == 1
    assert await adopt(taking.database, PROCESS + 1) == 0
    await presence.close()
    await gone(taking.database, number)
    assert await adopt(taking.database, PROCESS + 1) == 1


async def test_one_process_at_a_time_answers_in_a_conversation(presences: list[ProcessLocks]) -> None:
    one, two = presences
    here, there = uuid.uuid4(), uuid.uuid4()
    assert await one.take(here)
    assert not await two.take(here)
    assert await two.take(there)
    await one.release(here)
    assert await two.take(here)


async def test_a_conversation_is_free_again_when_its_process_dies(
    taking: Receiving, presences: list[ProcessLocks]
) -> None:
    one, two = presences
    here = uuid.uuid4()
    assert await one.take(here)
    await one.close()
    await gone(taking.database, PROCESS)
    assert await two.take(here)


async def test_the_last_prompt_is_the_askers_own_and_of_a_conversation_that_they_may_read(taking: Receiving) -> None:
    [mine] = await queued(taking, "one")
    [others] = (await taking(said("m9", "@nexus two", user="bob", minute=9))).turns
    alice, bob = user_id(HERE, "alice"), user_id(HERE, "bob")
    async with taking.database.transaction(TENANT) as tx:
        await tx.turns.answer(answered(mine, prompt='{"n": 1}', failure="x"))
        await tx.turns.answer(answered(others, prompt='{"n": 2}', failure="x"))
        access = await tx.log.access_context(room_id(HERE, "general"), alice)
        assert access is not None
        own, here = conversation_namespace(access), access.conversation

        async def last(who: uuid.UUID, id: str | None = None) -> str | None:
            found = await tx.turns.last_prompt(own, here, who, id)
            return None if found is None else found[0]

        assert await last(alice) == '{"n": 1}'
        assert await last(bob) == '{"n": 2}'
        assert await last(alice, "m9") is None
        assert await last(alice, "m0") == '{"n": 1}'
        assert await tx.turns.last_prompt(own, replace(here, namespace="room:other"), alice, None) is None


async def test_an_erased_question_is_not_answered(taking: Receiving) -> None:
    await queued(taking, "one", "two")
    await taking.forget("m0")
    assert await taking.turns() == ["m1>nexus"]


async def test_what_was_answered_but_not_sent_is_sent_by_who_adopts_it_and_not_asked_again(settings: Settings) -> None:
    async with stage_on(settings) as first:
        here = first.workspace()
        unserved = replace(said("q1", "@nexus hello"), workspace=here.name, adapter="elsewhere")
        [turn] = (await first.app.receive(here, [unserved])).turns
        async with first.app.store.transaction(here.tenant_id) as tx:
            assert await tx.turns.answer(answered(turn, failure="What was stored."))
    async with stage_on(settings) as second:
        second.app.turns.serve("elsewhere", second.door)
        for _ in range(2):
            await second.app.turns.adopt()
            await second.app.turns.settle()
        assert [(reply.to, reply.text, reply.failed) for reply in second.door.replies] == [
            ("q1", "What was stored.", True)
        ]
        assert second.door.pieces == []


async def test_answers_of_one_conversation_come_one_after_another_in_their_order(stage: Stage) -> None:
    here = stage.workspace()
    batch = [replace(said(f"q{n}", f"@nexus question {n}", minute=n), workspace=here.name) for n in range(5)]
    await stage.app.receive(here, batch)
    await stage.app.turns.settle()
    assert [reply.to for reply in stage.door.replies] == [f"q{n}" for n in range(5)]
    async with stage.app.store.transaction(here.tenant_id, snapshot=True) as tx:
        assert await tx.turns.open(stage.app.locks.number) == []


class Interrupted(HashedWords):
    """An embedder during whose first work someone says something more."""

    stage: Stage | None = None

    def interrupt(self, stage: Stage) -> None:
        self.stage = stage

    async def embed(self, texts: Sequence[str]) -> Vectors:
        stage, self.stage = self.stage, None
        if stage is not None:
            await hear(stage, "and to ship on Mondays")
        return await super().embed(texts)


class Overtaken(HashedWords):
    """An embedder during whose first work another process sees a message edited, and indexes its new words."""

    stage: Stage | None = None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        stage, self.stage = self.stage, None
        if stage is not None:
            here = stage.workspace()
            await change_message(stage.app, here, "m1", "we ship on Mondays")
            await index_next(stage.app.store, here.tenant_id)
        return await super().embed(texts)


async def backlog(stage: Stage) -> int:
    async with stage.app.store.transaction(stage.workspace().tenant_id, snapshot=True) as tx:
        return sum(await tx.recall.backlog())


async def hear(stage: Stage, text: str) -> None:
    here = stage.workspace()
    said = incoming(here, place_of("general", None, None), "alice", text, stage.clock.tick())
    await stage.app.receive(here, [said])


async def test_what_is_said_while_the_indexer_is_at_work_is_indexed_without_another_word(settings: Settings) -> None:
    embedder = Interrupted()
    async with stage_on(settings, embedder=embedder) as stage:
        indexing = asyncio.create_task(stage.app.indexer.run())
        try:
            embedder.interrupt(stage)
            await hear(stage, "we decided to deploy on Fridays")
            async with asyncio.timeout(LONGEST):
                while embedder.stage is not None or await backlog(stage):  # noqa: ASYNC110 (it works in the background)
                    await asyncio.sleep(0.01)
        finally:
            indexing.cancel()
            await asyncio.gather(indexing, return_exceptions=True)


async def test_a_vector_of_words_that_were_edited_meanwhile_is_not_stored(settings: Settings) -> None:
    embedder = Overtaken()
    async with stage_on(settings, embedder=embedder) as stage:
        here = stage.workspace()
        said = incoming(
            here, place_of("general", None, None), "alice", "the vault is open", stage.clock.tick(), id="m1"
        )
        await stage.app.receive(here, [said])
        await index_next(stage.app.store, here.tenant_id)
        embedder.stage = stage
        assert await embed_next(stage.app.store, embedder, here.tenant_id) == 1
        assert await backlog(stage) == 1, "the new words have the vector of the old ones"
        await stage.app.indexer.catch_up(here.tenant_id)
        assert await backlog(stage) == 0


async def test_a_door_that_breaks_while_it_tells_of_trouble_blocks_no_later_question(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    respond, broken = stage.app.responder.respond, [True]

    async def breaks_once(*given: Any) -> None:
        if broken.pop() if broken else False:
            raise RuntimeError("nobody foresaw this")
        await respond(*given)

    async def on_delay(turn: Turn, sentence: str) -> None:
        raise RuntimeError("nor this")

    monkeypatch.setattr(stage.app.responder, "respond", breaks_once)
    monkeypatch.setattr(stage.door, "on_delay", on_delay)
    with suppress(RuntimeError):
        await stage.say("alice", "@nexus one", room="general")
    async with asyncio.timeout(60):
        await stage.say("alice", "@nexus two", room="general")
    assert [reply.turn.adapter for reply in stage.door.replies] == ["console"]
