"""Answers that were made from what was made of a forgotten message: of summaries, landmarks and memories."""

from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from bot.console import schedule
from bot.script.places import incoming, place_of
from composer.memory.forget import RETRACTED
from composer.settings import AgentSettings, Settings
from tests.integration.test_erasure import answers, ask, say_filler
from tests.support.discord.harness import Model
from tests.support.harness import START, AppHarness, open_harness

ROOM, OTHER, DM = {"room": "general"}, {"room": "other"}, {"dm": "nexus"}
DAY = 24 * 3600  # seconds


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),), "extraction": "pattern"})
    async with open_harness(plain, model=model) as harness:
        yield harness


async def summarise(harness: AppHarness, model: Model, chosen: str) -> None:
    """Have the day's summary written, of the sentences of these numbers."""
    model.says = [chosen]
    assert (await schedule.run(harness.app, "day", harness.clock.now())).done
    assert not model.says, "the summary was written"


async def answer_from_a_summary(harness: AppHarness, model: Model) -> None:
    """An answer that repeats the summary of a day of many messages, one of which is to be forgotten."""
    await harness.say("alice", "my pay is 91k since spring. They raised my zqsummarised again", id="said", **ROOM)
    await say_filler(harness)
    harness.clock.tick(30 * 3600)
    await summarise(harness, model, "2")
    await ask(harness, model, "bob", "what about the day?", "zqsummarised")
    await ask(harness, model, "bob", "and the weather?", "7.")


async def test_an_answer_that_repeats_a_summary_goes_also_when_its_prompt_is_not_stored_any_more(
    harness: AppHarness, model: Model
) -> None:
    await answer_from_a_summary(harness, model)
    harness.clock.tick(harness.app.settings.prompt_days_of("acme") * DAY)
    assert (await schedule.run(harness.app, "expiry", harness.clock.now())).done
    await harness.change("said", None)
    assert await answers(harness) == [RETRACTED, "7."]


async def test_an_answer_that_repeats_a_summary_goes_also_when_it_was_written_anew_since(
    harness: AppHarness, model: Model
) -> None:
    await answer_from_a_summary(harness, model)
    at, place = harness.workspace(), place_of("general", None, None)
    late = incoming(at, place, "carol", "it rained on the whole parade", START + timedelta(minutes=90), id="late")
    await harness.app.receive(at, [late])
    await summarise(harness, model, "3")
    await harness.change("said", None)
    assert await answers(harness) == [RETRACTED, "7."]


async def test_an_answer_in_other_words_goes_with_the_source_of_a_landmark_in_its_prompt(
    harness: AppHarness, model: Model
) -> None:
    await harness.say("alice", "we decided to use zqold for storage", id="said", **ROOM)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.settings.set("retrieval.top_k", "0", harness.clock.now())  # the message is not recalled beside it
    await ask(harness, model, "bob", "shall we go on?", "Gladly.")
    await ask(harness, model, "bob", "where do we keep our data?", "In the storage that we decided to use.")
    await harness.change("said", None)
    assert await answers(harness) == ["Gladly.", RETRACTED]


async def test_an_answer_in_other_words_goes_with_the_source_of_a_memory_in_its_prompt(
    harness: AppHarness, model: Model
) -> None:
    await harness.say("alice", "hello", **OTHER)
    await harness.say("alice", "My favourite editor is vim.", id="said", **DM)
    id = (await harness.command("alice", "/nexus share", **DM)).text.split()[0]
    await harness.command("alice", f"/nexus share {id} everywhere --yes", **DM)
    await ask(harness, model, "alice", "what is my favourite editor?", "The modal one.", **OTHER)
    await ask(harness, model, "bob", "and what is for lunch?", "There is soup.", **ROOM)
    await harness.change("said", None)
    assert await answers(harness, **OTHER) == [RETRACTED]
    assert await answers(harness, **ROOM) == ["There is soup."]


async def test_an_answer_that_begins_like_a_retracted_one_stays(harness: AppHarness, model: Model) -> None:
    await harness.say("alice", "my pay is 91k, mind that", id="said", **ROOM)
    await ask(harness, model, "bob", "what does she earn?", "Sorry, I recall: 91k, a handsome figure.")
    await ask(harness, model, "carol", "will it rain?", "Sorry, nothing relevant.")
    await ask(harness, model, "dave", "what was that figure?", "A handsome one.")
    await harness.change("said", None)
    assert await answers(harness) == [RETRACTED, "Sorry, nothing relevant.", RETRACTED]


async def test_the_prompt_of_a_forgotten_question_goes_also_where_its_lineage_is_lost(
    harness: AppHarness, settings: Settings
) -> None:
    await harness.ask("bob", "@nexus where is zqvault?", id="asked", **ROOM)
    raw = await asyncpg.connect(settings.database_url)
    try:
        assert "zqvault" in await raw.fetchval("SELECT prompt::text FROM turns")
        await raw.execute("DELETE FROM lineage")  # which names the question among the sources of its answer
        await harness.change("asked", None)
        assert await raw.fetchval("SELECT prompt FROM turns") is None
    finally:
        await raw.close()
