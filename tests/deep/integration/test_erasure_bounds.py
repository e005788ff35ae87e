"""How far an edit, a span and an erasure reach: what lies just inside goes, and what lies just outside stays."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from composer.memory.forget import RETRACTED
from composer.settings import AgentSettings, Settings
from tests.integration.test_erasure import answers, ask, say_filler
from tests.support.discord.harness import Model
from tests.support.erased_ids import find_remains
from tests.support.harness import AppHarness, open_harness

ROOM = {"room": "general"}
DAY = 24 * 3600  # seconds


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),), "extraction": "pattern"})
    async with open_harness(plain, model=model) as harness:
        yield harness


# --- edits -----------------------------------------------------------------------------------------------------------


async def test_an_answer_in_other_words_goes_when_its_source_is_rewritten_and_not_when_a_letter_is_corrected(
    harness: AppHarness, model: Model
) -> None:
    await harness.say("alice", "my pay is ninety thousand since the sprng of last year", id="said", **ROOM)
    await say_filler(harness)
    await ask(harness, model, "bob", "how much is alice's pay since last year?", "Quite a bit, I gather.")
    await harness.change("said", "my pay is ninety thousand since the spring of last year")
    assert await answers(harness) == ["Quite a bit, I gather."]
    await harness.change("said", "lunch will be served upstairs at noon")
    assert await answers(harness) == [RETRACTED]


async def test_an_answer_that_repeats_what_an_edit_leaves_stays(harness: AppHarness, model: Model) -> None:
    await harness.say("alice", "I prefer green tea over strong coffe", id="said", **ROOM)
    await ask(harness, model, "bob", "what does alice drink?", "Green tea.")
    await harness.change("said", "I prefer green tea over strong coffee")
    assert await answers(harness) == ["Green tea."]


async def test_a_memory_with_another_source_is_made_again_when_one_of_its_messages_is_edited(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    await harness.say("alice", "I love hiking in the mountains", id="one", **ROOM)
    await harness.say("alice", "I love hiking in the mountains", id="two", **ROOM)
    await harness.change("one", "lunch will be served upstairs at noon")
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    assert await raw.fetchval("SELECT count(*) FROM memories WHERE text LIKE '%hiking%' AND merged_into IS NULL") == 1


# --- lineage ---------------------------------------------------------------------------------------------------------


async def test_nothing_shows_that_what_was_forgotten_has_been_there(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    await harness.say("alice", "I love hiking in the mountains", **ROOM)
    assert await raw.fetchval("SELECT count(*) FROM lineage")
    await harness.command("alice", "/nexus forget everything --yes", **ROOM)
    assert await raw.fetchval("SELECT count(*) FROM lineage") == 0


async def test_no_turn_waits_for_a_question_that_was_deleted(harness: AppHarness, raw: asyncpg.Connection) -> None:
    await harness.say("alice", "hello", **ROOM)
    harness.app.turns._adapters.clear()  # no adapter delivers answers yet
    await harness.say("alice", "@nexus where is the vault?", id="asked", **ROOM)
    assert await raw.fetchval("SELECT count(*) FROM turns") == 1
    await harness.change("asked", None)
    assert await raw.fetchval("SELECT count(*) FROM turns") == 0


# --- routes ----------------------------------------------------------------------------------------------------------


async def test_forget_here_takes_what_was_stored_before_and_after_the_room_was_opened(
    harness: AppHarness, settings: Settings
) -> None:
    await harness.say("alice", "hello", room="attic", private=True)
    await harness.command("alice", "/nexus remember the code is zqclosed", room="attic")
    await harness.say("alice", "now it is open", room="attic", private=False)
    await harness.command("alice", "/nexus remember the code is zqopen", room="attic")
    await harness.command("alice", "/nexus forget here --yes", room="attic")
    assert await find_remains(settings, "zqclosed", "zqopen") == {}


async def test_a_span_counts_for_memories_too(harness: AppHarness, settings: Settings) -> None:
    for day in range(4):
        await harness.command("alice", f"/nexus remember the number is zqday{day}", **ROOM)
        harness.clock.tick(DAY)
    await harness.command("alice", "/nexus forget here --since 2026-05-05 --until 2026-05-06 --yes", **ROOM)
    assert (await find_remains(settings, *(f"zqday{n}" for n in range(4)))).keys() == {"zqday0", "zqday3"}


async def test_erasing_a_project_leaves_the_dms_that_chose_it(harness: AppHarness, settings: Settings) -> None:
    await harness.command("carol", "/nexus project create apollo", **ROOM)
    await harness.command("carol", "/nexus project assign apollo --yes", **ROOM)
    await harness.say("carol", "in the room zqroom", **ROOM)
    await harness.say("carol", "to the agent zqdm", dm="nexus")
    await harness.command("carol", "/nexus project assign apollo --yes", dm="nexus")
    await make_admin(harness, "carol")
    await harness.command("carol", "/nexus erase project apollo --yes", **ROOM)
    assert (await find_remains(settings, "zqroom", "zqdm")).keys() == {"zqdm"}


async def test_erasing_a_project_takes_the_threads_of_its_rooms(harness: AppHarness, settings: Settings) -> None:
    await harness.say("carol", "before the project zqbefore", thread="t1", **ROOM)
    await harness.command("carol", "/nexus project create apollo", **ROOM)
    await harness.command("carol", "/nexus project assign apollo --yes", **ROOM)
    await harness.say("carol", "in the room zqroom", **ROOM)
    await harness.say("carol", "in the thread zqthread", thread="t2", **ROOM)
    await harness.say("carol", "elsewhere zqother", room="attic", thread="t3")
    await make_admin(harness, "carol")
    await harness.command("carol", "/nexus erase project apollo --yes", **ROOM)
    assert (await find_remains(settings, "zqbefore", "zqroom", "zqthread", "zqother")).keys() == {"zqother"}


async def make_admin(harness: AppHarness, user: str) -> None:
    at = harness.workspace()
    async with harness.app.database.transaction(at.tenant_id) as tx:
        found = await tx.people.find_user(at.platform, at.name, user)
        assert found is not None
        await tx.people.set_admin(found.id, True)
