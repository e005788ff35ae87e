"""An answer goes with the message that it is made of, and not with one that its prompt merely had."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import asyncpg
import pytest

from composer.errors import Unavailable
from composer.memory.forget import RETRACTED
from composer.ports.models import UsageAccount, Vectors
from composer.settings import AgentSettings, Settings
from composer.usage.embedding import EmbeddingMeter
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness

ROOM = {"room": "general"}
TALK = (
    "lunch is at noon", "the printer is out of paper", "I prefer tea in the morning", "the notes are in the wiki",
    "we use Postgres for billing", "the standup is at nine", "my train is late",
)  # fmt: skip
WEDDING = "I am away from 7 December, my sister gets married in Porto, and the table for the guests is long"


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),), "extraction": "pattern"})
    async with open_harness(plain, model=model) as harness:
        yield harness


async def talk(harness: AppHarness, forgotten: str = WEDDING) -> None:
    for text in (*TALK[:4], forgotten, *TALK[4:]):
        await harness.say(
            "alice" if text == forgotten else "bob", text, id="said" if text == forgotten else None, **ROOM
        )


async def is_retracted(harness: AppHarness, model: Model, raw: asyncpg.Connection, question: str, answer: str) -> bool:
    """Whether the answer to a question goes when the message "said" is deleted."""
    model.says = [answer]
    await harness.ask("carol", f"@nexus {question}", **ROOM)
    await harness.change("said", None)
    text = await raw.fetchval("SELECT text FROM messages WHERE agent_id IS NOT NULL")
    assert text in (RETRACTED, answer)
    return bool(text == RETRACTED)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("where does she travel?", "To Porto."),
        ("who is away?", "Alice takes holidays in winter for a family celebration."),
        ("is there a wedding?", "Yes, in the family of Alice: her sibling becomes a wife."),
        ("can Alice come on the tenth of December?", "No, she is on leave by then."),
        ("why is Alice away?", "Because of the marriage of a close relative."),
        ("tell me all that you know", "Lunch is at noon. A wedding takes Alice abroad. There is no paper."),
        ("news?", "- Alice travels to Portugal for a wedding"),
    ],
)
async def test_what_says_it_goes(
    harness: AppHarness, model: Model, raw: asyncpg.Connection, question: str, answer: str
) -> None:
    await talk(harness)
    assert await is_retracted(harness, model, raw, question, answer)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("hello", "Hello! How can I help you today?"),
        ("make a table of who drinks what", "| who | drink |\n|---|---|\n| Bob | tea |"),
        ("make a table of our drinks", "Here is the table:\n| who | drink |\n|---|---|\n| Bob | tea |"),
        ("how long is the break?", "It begins at noon, and nobody says how long it is."),
        ("which database do we use?", "Postgres."),
        ("what is 3 times 4?", "12."),
        ("where are the notes?", "They stand in the wiki."),
        ("thanks", "You are welcome!"),
    ],
)
async def test_what_does_not_say_it_stays(
    harness: AppHarness, model: Model, raw: asyncpg.Connection, question: str, answer: str
) -> None:
    await talk(harness)
    assert not await is_retracted(harness, model, raw, question, answer)


def mark_of(model: Model, words: str) -> str:
    """The mark of the recalled line that says some words, in the prompt that the model was shown last."""
    [line] = [line for line in model.shown[-1].splitlines() if line.startswith("- (s") and words in line]
    return line[3:].partition(")")[0]


async def test_what_is_cited_goes_and_what_was_recalled_beside_it_is_no_reason(
    harness: AppHarness, model: Model, raw: asyncpg.Connection
) -> None:
    await talk(harness, "the fair in Oslo needs a stand")
    await harness.say("bob", "the fair in Oslo has no parking", id="beside", **ROOM)
    await harness.say_all("bob", [f"weather {number}" for number in range(60)], **ROOM)
    question = "@nexus what about the fair in Oslo?"
    await harness.ask("carol", question, **ROOM)
    stand, parking = mark_of(model, "needs a stand"), mark_of(model, "has no parking")
    model.says = [f"A word fell on it ({stand}).", f"Better ask Bob ({parking})."]
    for _ in range(2):
        await harness.ask("carol", question, **ROOM)
    await harness.change("said", None)
    rows = await raw.fetch("SELECT text FROM messages WHERE agent_id IS NOT NULL ORDER BY seq")
    assert [row["text"] for row in rows][1:] == [RETRACTED, f"Better ask Bob ({parking})."]


async def test_the_only_line_that_was_recalled_for_a_question_about_it_is_what_the_answer_rests_on(
    harness: AppHarness, model: Model, raw: asyncpg.Connection
) -> None:
    await talk(harness, "the code of the vault is heliotrope")
    await harness.say_all("bob", [f"weather {number}" for number in range(60)], **ROOM)
    assert await is_retracted(harness, model, raw, "what is the code of the vault?", "You will like it.")


async def test_while_the_embedder_does_not_answer_what_was_recalled_counts(
    harness: AppHarness, model: Model, raw: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk(harness, "the code of the vault is heliotrope")
    await harness.say_all("bob", [f"weather {number}" for number in range(60)], **ROOM)
    embed = EmbeddingMeter.embed

    async def fails_for_lists(
        meter: EmbeddingMeter, texts: Sequence[str], account: UsageAccount, **how: bool
    ) -> Vectors:
        if len(texts) > 1:
            raise Unavailable("The embedder does not answer.")
        return await embed(meter, texts, account, **how)

    monkeypatch.setattr(EmbeddingMeter, "embed", fails_for_lists)
    model.says = ["Like a flower.", "There is soup."]
    await harness.ask("carol", "@nexus what is the code of the vault?", **ROOM)
    await harness.ask("carol", "@nexus hello", **ROOM)
    monkeypatch.undo()
    await harness.change("said", None)
    rows = await raw.fetch("SELECT text FROM messages WHERE agent_id IS NOT NULL ORDER BY seq")
    assert [row["text"] for row in rows] == [RETRACTED, "There is soup."]


async def test_what_the_sources_say_is_read_while_the_model_answers_and_not_again_after_it(
    harness: AppHarness, model: Model, raw: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk(harness)
    model.gate, embed, read = asyncio.Event(), EmbeddingMeter.embed, list[str]()

    async def noted(meter: EmbeddingMeter, texts: Sequence[str], account: UsageAccount, **how: bool) -> Vectors:
        found = await embed(meter, texts, account, **how)
        read.extend(text for text in texts if text.endswith(WEDDING))
        if read and model.gate is not None:
            model.gate.set()
        return found

    monkeypatch.setattr(EmbeddingMeter, "embed", noted)
    model.says = ["She is at a wedding in Portugal."]
    async with asyncio.timeout(60):  # the model waits for it
        await harness.ask("carol", "@nexus where does she travel?", **ROOM)
    assert read == [f"alice: {WEDDING}"]
    await harness.change("said", None)
    assert await raw.fetchval("SELECT text FROM messages WHERE agent_id IS NOT NULL") == RETRACTED


async def test_what_repeats_a_cited_answer_in_far_words_goes_with_it(
    harness: AppHarness, model: Model, raw: asyncpg.Connection
) -> None:
    await talk(harness, "the fair in Oslo needs a stand")
    await harness.say("bob", "the fair in Oslo has no parking", **ROOM)
    await harness.say_all("bob", [f"weather {number}" for number in range(60)], **ROOM)
    await harness.ask("carol", "@nexus what about the fair in Oslo?", **ROOM)
    mark = mark_of(model, "needs a stand")
    model.says = [f"They want us to bring one of our own ({mark}).", "They want us to bring one of our own."]
    for question in ("what about the fair in Oslo?", "can you say that again for the fair?"):
        await harness.ask("carol", f"@nexus {question}", **ROOM)
    await harness.change("said", None)
    rows = await raw.fetch("SELECT text FROM messages WHERE agent_id IS NOT NULL ORDER BY seq")
    assert [row["text"] for row in rows][1:] == [RETRACTED, RETRACTED]
