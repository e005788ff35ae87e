"""Text that is forgotten or edited while the model answers remains neither in the stored prompt nor in the answer."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from bot.console import schedule
from bot.script.places import incoming, place_of
from composer.memory.forget import RETRACTED, forget
from composer.model import CONSOLE, Turn, derived_id
from composer.ports.observer import TurnOutcome, TurnReport
from composer.repositories.turns import Answer
from composer.settings import AgentSettings, Settings
from tests.integration.test_forget import SECRET, tables_with_secret
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, RecordedDelivery, open_harness
from tests.support.open_turns import open_turns
from tests.support.waiting import until

ROOM = {"room": "general"}


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),)})
    async with open_harness(plain, model=model) as harness:
        yield harness


async def begin_answer(harness: AppHarness, model: Model, says: str, *, secret: bool = True) -> None:
    """Ask a question and wait until the model has begun its answer, which then waits for the gate."""
    model.gate, model.says, before = asyncio.Event(), [says], len(model.shown)
    place = place_of("general", None, None)
    message = incoming(harness.workspace(), place, "bob", "@nexus what of the vault?", harness.clock.tick(), id="asked")
    await harness.app.receive(harness.workspace(), [message])
    await until(lambda: len(model.shown) > before)
    assert not secret or SECRET in model.shown[-1]


async def finish_answer(harness: AppHarness, model: Model) -> str:
    assert model.gate is not None
    model.gate.set()
    await harness.app.turns.settle()
    return harness.delivery.replies[-1].text


async def stored_prompts(settings: Settings) -> int:
    """How many prompts are stored."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM turns WHERE prompt IS NOT NULL"))
    finally:
        await connection.close()


async def test_recalled_text_forgotten_while_the_model_answers_leaves_no_trace(
    harness: AppHarness, settings: Settings, model: Model
) -> None:
    await harness.command("alice", f"/nexus remember the vault is {SECRET}", **ROOM)
    await begin_answer(harness, model, "You will like it there.")
    await harness.command("alice", f"/nexus forget {SECRET} --yes", **ROOM)
    assert await finish_answer(harness, model) == RETRACTED
    assert await tables_with_secret(settings) == set()


@pytest.mark.parametrize("made", ["landmark", "summary"])
async def test_derived_items_erased_while_the_model_answers_leave_no_trace(
    harness: AppHarness, settings: Settings, model: Model, made: str
) -> None:
    message = f"{'We decided that' if made == 'landmark' else 'Important for the release plan:'} the vault is {SECRET}."
    await harness.say("alice", message, id="said", **ROOM)
    # then the message itself is out of view
    await harness.say_all("carol", [f"ok, thanks {n}" for n in range(60)], **ROOM)
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.settings.set("retrieval.top_k", "0", harness.clock.now())  # only the layers that need no recall
    if made == "summary":
        harness.clock.set(harness.clock.now() + timedelta(days=1))
        model.says = ["1"]
        assert (await schedule.run(harness.app, "session", harness.clock.now())).done
    await begin_answer(harness, model, f"It is {SECRET}.")
    await harness.change("said", None)
    assert await finish_answer(harness, model) == RETRACTED
    assert await tables_with_secret(settings) == set()


async def test_an_answer_that_repeats_nothing_erased_is_stored_without_its_prompt(
    harness: AppHarness, settings: Settings, model: Model
) -> None:
    await harness.say("alice", f"the vault is {SECRET}", id="said", **ROOM)
    await begin_answer(harness, model, "I could not say.")
    await harness.change("said", None)
    assert await finish_answer(harness, model) == "I could not say."
    assert await stored_prompts(settings) == 0
    assert await tables_with_secret(settings) == set()


async def test_without_erasures_nothing_is_retracted(harness: AppHarness, settings: Settings, model: Model) -> None:
    await harness.say("alice", f"the vault is {SECRET}", **ROOM)
    await harness.command("alice", f"/nexus remember the vault is {SECRET}", **ROOM)
    await harness.command("alice", f'/nexus fact set vault "{SECRET}"', **ROOM)
    await begin_answer(harness, model, f"It is {SECRET}.")
    assert await finish_answer(harness, model) == f"It is {SECRET}."
    assert await stored_prompts(settings) == 1


async def test_the_delivery_abandons_a_turn_whose_question_is_erased_while_the_model_answers(
    harness: AppHarness, model: Model
) -> None:
    await harness.say("alice", f"the vault is {SECRET}", id="said", **ROOM)
    await begin_answer(harness, model, f"It is {SECRET}.")
    await harness.change("asked", None)
    assert model.gate is not None
    model.gate.set()
    await harness.app.turns.settle()
    assert harness.delivery.replies == []
    assert len(harness.delivery.abandoned) == 1


@pytest.mark.parametrize("is_stored", [False, True], ids=["not stored", "stored, and erased before"])
async def test_parts_of_an_unfinished_answer_are_queued_for_retraction_when_its_question_is_erased(
    harness: AppHarness, model: Model, raw: asyncpg.Connection, *, is_stored: bool
) -> None:
    await begin_answer(harness, model, "It is nothing.", secret=False)
    tenant = harness.workspace().tenant_id
    [(turn, _)] = await open_turns(harness.app.database, tenant)
    async with harness.app.database.transaction(tenant) as tx:
        assert await tx.deliveries.record_part(turn.id, 0, "p0", harness.clock.now())
    if is_stored:
        await raw.execute("UPDATE turns SET state = 'answered', reply_id = gen_random_uuid()")
    await harness.change("asked", None)
    async with harness.app.database.transaction(tenant) as tx:
        assert not await tx.deliveries.record_part(turn.id, 1, "p1", harness.clock.now()), "nobody could retract it"
    async with harness.app.database.transaction(tenant, "read") as tx:
        assert [
            part.external_id for part in await tx.deliveries.pending_retractions(CONSOLE, 10, harness.clock.now())
        ] == ["p0"]
        own, another = f"{CONSOLE}:{harness.workspace().name}", f"{CONSOLE}:another"
        assert len(await tx.deliveries.pending_retractions(own, 10, harness.clock.now())) == 1
        assert not await tx.deliveries.pending_retractions(another, 10, harness.clock.now()), (
            "its token can't edit here"
        )
    assert model.gate is not None
    model.gate.set()
    await harness.app.turns.settle()


async def test_an_answer_that_was_not_delivered_before_its_question_was_erased_ends_for_good(
    harness: AppHarness, settings: Settings
) -> None:
    reply = await harness.ask("alice", "@nexus what of the vault?", id="asked", **ROOM)
    await set_state(settings, "answered")
    await harness.change("asked", None)
    report = await respond_again(harness, reply.turn)
    assert (report.outcome, harness.delivery.abandoned) == (TurnOutcome.ERASED, [reply.turn.id])
    assert await open_turns(harness.app.database, reply.turn.tenant_id) == [], "it would be taken up again and again"


async def test_an_answer_that_was_erased_by_itself_before_its_delivery_is_not_delivered_as_an_empty_one(
    harness: AppHarness, settings: Settings
) -> None:
    reply = await harness.ask("alice", "@nexus what of the vault?", id="asked", **ROOM)
    await set_state(settings, "answered")
    async with harness.app.database.transaction(reply.turn.tenant_id, "alone") as tx:
        await forget(tx, [derived_id("reply", str(reply.turn.id))], [], harness.clock.now())
    harness.delivery.replies.clear()
    report = await respond_again(harness, reply.turn)
    assert (report.outcome, harness.delivery.replies) == (TurnOutcome.ERASED, [])
    assert harness.delivery.abandoned == [reply.turn.id], "parts of it may be shown"


class ErasedMeanwhile(RecordedDelivery):
    """The reply is erased by itself while the platform takes it."""

    def __init__(self, harness: AppHarness) -> None:
        super().__init__()
        self._harness = harness

    async def deliver(self, reply: Answer) -> None:
        await super().deliver(reply)
        async with self._harness.app.database.transaction(reply.turn.tenant_id, "alone") as tx:
            await forget(tx, [derived_id("reply", str(reply.turn.id))], [], self._harness.clock.now())


async def test_a_reply_that_is_erased_while_it_is_delivered_counts_as_erased(
    harness: AppHarness, settings: Settings
) -> None:
    reply = await harness.ask("alice", "@nexus what of the vault?", id="asked", **ROOM)
    await set_state(settings, "answered")
    agent = harness.app.directory.agents_by_id(reply.turn.tenant_id)[reply.turn.agent_id]
    report = await harness.app.responder.respond(reply.turn, agent, ErasedMeanwhile(harness))
    assert report.outcome is TurnOutcome.ERASED
    assert (await respond_again(harness, reply.turn)).outcome is TurnOutcome.ANSWERED_ELSEWHERE, "it ended for good"


async def test_what_was_delivered_stays_when_an_ephemeral_question_was_erased_and_its_turn_comes_up_again(
    harness: AppHarness,
) -> None:
    await harness.command("bob", "/nexus opt-out", **ROOM)
    reply = await harness.ask("bob", "@nexus what of the vault?", **ROOM)
    await harness.app.indexer.catch_up(reply.turn.tenant_id)
    report = await respond_again(harness, reply.turn)
    assert (report.outcome, harness.delivery.abandoned) == (TurnOutcome.ANSWERED_ELSEWHERE, [])


async def respond_again(harness: AppHarness, turn: Turn) -> TurnReport:
    """Let a process take up a turn that it still holds for unfinished."""
    agent = harness.app.directory.agents_by_id(turn.tenant_id)[turn.agent_id]
    return await harness.app.responder.respond(turn, agent, harness.delivery)


async def set_state(settings: Settings, state: str) -> None:
    """Let all turns be as they were before their last step, which a crash cut off."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        await connection.execute("UPDATE turns SET state = $1, sent_at = NULL", state)
    finally:
        await connection.close()
