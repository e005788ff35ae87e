"""What is forgotten or edited while the model answers is neither kept in the prompt that it stood in, nor told."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from bot.console import jobs as schedule
from bot.script.places import incoming, place_of
from composer.memory.forget import RETRACTED
from composer.settings import AgentSettings, Settings
from tests.conftest import Stage, stage_on
from tests.e2e.discord_stage import Model, until
from tests.integration.test_forget import SECRET, everywhere

pytestmark = pytest.mark.integration

ROOM = {"room": "general"}


@pytest.fixture
async def model() -> Model:
    return Model()


@pytest.fixture
async def stage(settings: Settings, model: Model) -> AsyncIterator[Stage]:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),)})
    async with stage_on(plain, model=model) as staged:
        yield staged


async def asking(stage: Stage, model: Model, says: str) -> None:
    """A question whose answer has begun and waits for the gate."""
    model.gate, model.says, before = asyncio.Event(), [says], len(model.shown)
    place = place_of("general", None, None)
    said = incoming(stage.workspace(), place, "bob", "@nexus what of the vault?", stage.clock.tick(), id="asked")
    await stage.app.receive(stage.workspace(), [said])

    async def shown() -> bool:
        return len(model.shown) > before

    await until(shown)
    assert SECRET in model.shown[-1]


async def answer(stage: Stage, model: Model) -> str:
    assert model.gate is not None
    model.gate.set()
    await stage.app.turns.settle()
    return stage.door.replies[-1].text


async def kept(settings: Settings) -> int:
    """How many prompts are kept."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM turns WHERE prompt IS NOT NULL"))
    finally:
        await connection.close()


@pytest.mark.parametrize("by", ["deletion", "edit", "person"])
async def test_what_is_forgotten_while_the_model_answers_leaves_no_trace(
    stage: Stage, settings: Settings, model: Model, by: str
) -> None:
    await stage.say("alice", f"the vault is {SECRET}", id="said", **ROOM)
    await asking(stage, model, f"It is {SECRET}.")
    if by == "person":
        await stage.command("alice", f"/nexus forget {SECRET}", **ROOM)
    else:
        await stage.change("said", None if by == "deletion" else "the vault is nobody's")
    assert await answer(stage, model) == RETRACTED
    assert await everywhere(settings) == set()


async def test_what_was_recalled_and_is_forgotten_while_the_model_answers_leaves_no_trace(
    stage: Stage, settings: Settings, model: Model
) -> None:
    await stage.command("alice", f"/nexus remember the vault is {SECRET}", **ROOM)
    await asking(stage, model, "You will like it there.")
    await stage.command("alice", f"/nexus forget {SECRET}", **ROOM)
    assert await answer(stage, model) == RETRACTED
    assert await everywhere(settings) == set()


@pytest.mark.parametrize("made", ["landmark", "summary"])
async def test_what_was_made_from_it_and_goes_with_it_while_the_model_answers_leaves_no_trace(
    stage: Stage, settings: Settings, model: Model, made: str
) -> None:
    said = f"{'We decided that' if made == 'landmark' else 'Important for the release plan:'} the vault is {SECRET}."
    await stage.say("alice", said, id="said", **ROOM)
    for n in range(60):  # then the message itself is out of view
        await stage.say("alice", f"ok, thanks {n}", **ROOM)
    await stage.app.indexer.catch_up(stage.workspace().tenant_id)
    async with stage.app.store.transaction(stage.workspace().tenant_id) as tx:
        await tx.settings.put("retrieval.top_k", "0", stage.clock.now())  # nothing but the layers that are always there
    if made == "summary":
        stage.clock.set(stage.clock.now() + timedelta(days=1))
        model.says = [f"They spoke of {SECRET}."]
        assert (await schedule.run(stage.app, "session", stage.clock.now())).done
    await asking(stage, model, f"It is {SECRET}.")
    await stage.change("said", None)
    assert await answer(stage, model) == RETRACTED
    assert await everywhere(settings) == set()


async def test_an_answer_that_repeats_nothing_of_it_stands_without_its_prompt(
    stage: Stage, settings: Settings, model: Model
) -> None:
    await stage.say("alice", f"the vault is {SECRET}", id="said", **ROOM)
    await asking(stage, model, "I could not say.")
    await stage.change("said", None)
    assert await answer(stage, model) == "I could not say."
    assert await kept(settings) == 0
    assert await everywhere(settings) == set()


async def test_nothing_forgotten_nothing_withdrawn(stage: Stage, settings: Settings, model: Model) -> None:
    await stage.say("alice", f"the vault is {SECRET}", **ROOM)
    await stage.command("alice", f"/nexus remember the vault is {SECRET}", **ROOM)
    await stage.command("alice", f'/nexus fact set vault "{SECRET}"', **ROOM)
    await asking(stage, model, f"It is {SECRET}.")
    assert await answer(stage, model) == f"It is {SECRET}."
    assert await kept(settings) == 1
