"""What `forget` shows before it erases: the answers that it replaces, and what recall finds of words in other forms."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from bot.commands.confirmations import Confirmations
from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.memory.forget import RETRACTED
from composer.settings import AgentSettings, Settings
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness

ROOM, DM = {"room": "general"}, {"dm": "nexus"}


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),), "extraction": "pattern"})
    async with open_harness(plain, model=model) as harness:
        yield harness


async def answered(harness: AppHarness, model: Model, user: str, answer: str, **place: str) -> None:
    model.says = [answer]
    await harness.ask(user, "@nexus where is the vault?", **place)


async def answers(raw: asyncpg.Connection) -> list[str]:
    return [row["text"] for row in await raw.fetch("SELECT text FROM messages WHERE agent_id IS NOT NULL ORDER BY at")]


async def told(harness: AppHarness, model: Model) -> None:
    """alice tells where the vault is; an answer in the room says it, one in her DM, and one in bob's DM."""
    await harness.say("alice", "the vault is behind the heliotrope curtain", id="said", **ROOM)
    for user in ("alice", "bob"):
        await harness.say(user, "hi", **ROOM)
        await harness.say(user, "hi", **DM)
        await harness.command(user, "/nexus rooms on --yes", **DM)
    await answered(harness, model, "carol", "Behind the heliotrope curtain.", **ROOM)
    await answered(harness, model, "alice", "The curtain hides it, heliotrope.", **DM)
    await answered(harness, model, "bob", "Look for heliotrope.", **DM)


@pytest.mark.parametrize("what", ["heliotrope", "message said"])
async def test_the_answers_that_will_be_replaced_are_shown_as_far_as_one_may_see_them(
    harness: AppHarness, model: Model, raw: asyncpg.Connection, what: str
) -> None:
    await told(harness, model)
    asked = await harness.command("alice", f"/nexus forget {what}", **ROOM)
    assert "2 answers that say it will be replaced by a notice:" in asked.text
    assert "- here: Behind the heliotrope curtain." in asked.text
    assert "- in your DM with Nexus: The curtain hides it, heliotrope." in asked.text
    assert "Look for" not in asked.text, "that is in bob's DM"
    assert RETRACTED not in await answers(raw)
    await harness.command("alice", asked.confirm, **ROOM)
    assert (await answers(raw)).count(RETRACTED) == 3


async def test_an_answer_that_says_it_beside_other_things_is_replaced(
    harness: AppHarness, model: Model, raw: asyncpg.Connection
) -> None:
    for number, text in enumerate(("the lift is slow again", "my surgery is on 14 November", "the rent went up")):
        await harness.say(f"user{number}", text, id=f"said{number}", **ROOM)
    several = "So far: the elevator takes long, an operation is coming up and they pay more for the flat."
    for answer in (several, "The elevator takes long, and they pay more for the flat."):
        model.says = [answer]
        await harness.ask("carol", "@nexus what did I miss?", **ROOM)
    await harness.command("user1", "/nexus forget message said1 --yes", **ROOM)
    assert await answers(raw) == [RETRACTED, "The elevator takes long, and they pay more for the flat."]


async def test_what_the_program_says_itself_stays(settings: Settings, raw: asyncpg.Connection) -> None:
    offline = settings.model_copy(update={"extraction": "pattern"})
    async with open_harness(offline) as harness:
        await harness.say("alice", "I will be on leave from 7 December, my sister gets married", id="said", **DM)
        for text in (
            "remind me tomorrow at 3 p.m. to call Tom",
            "which colour has the sofa?",
            "when am I away, on leave?",
        ):
            await harness.ask("alice", text, **DM)
        before = await answers(raw)
        await harness.command("alice", "/nexus forget message said --yes", **DM)
        stay = await answers(raw)
    assert "call Tom" in before[1]
    assert "remember nothing" in before[2]
    assert "on leave" in before[3]
    assert stay == [RETRACTED, *before[1:3], RETRACTED], "the first one answers the message"


async def test_what_others_asked_elsewhere_changes_nothing_of_what_is_shown(harness: AppHarness, model: Model) -> None:
    await told(harness, model)
    first = await harness.command("alice", "/nexus forget heliotrope", **ROOM)
    await answered(harness, model, "bob", "Heliotrope is the word, as I said.", **DM)
    assert (await harness.command("alice", "/nexus forget heliotrope", **ROOM)).text == first.text


async def test_answers_that_one_may_not_see_where_one_asks_are_counted(harness: AppHarness, model: Model) -> None:
    await told(harness, model)
    asked = await harness.command("alice", "/nexus forget heliotrope", **DM)
    assert "- here: The curtain hides it, heliotrope." in asked.text
    assert "- 1 that you can't see" in asked.text


async def test_the_words_are_erased_and_the_answers_left_where_one_chooses_that(
    harness: AppHarness, model: Model, raw: asyncpg.Connection
) -> None:
    await told(harness, model)
    before = await answers(raw)
    confirmations = Confirmations()
    given = incoming(
        harness.workspace(), place_of("general", None, None), "alice", "/nexus forget heliotrope", harness.clock.tick()
    )
    shown = await run_command(harness.app, harness.workspace(), given)
    yes, leave, cancel = confirmations.buttons(given, shown)
    assert (yes.label, yes.confirms, leave.label) == ("Yes", True, "Erase, leave the answers")
    assert cancel.label == "Cancel"
    assert f"To leave the answers: {shown.choices[0].command}" in shown.text
    receipt = await harness.command("alice", shown.choices[0].command, **ROOM)
    assert "1 message" in receipt.text
    assert "answer" not in receipt.text
    assert await answers(raw) == before
    assert await raw.fetchval("SELECT count(*) FROM messages WHERE external_id = 'said'") == 0
    assert await raw.fetchval("SELECT count(*) FROM turns WHERE prompt::text LIKE '%heliotrope curtain%'") == 0


async def test_where_no_answer_says_it_one_message_goes_at_once(harness: AppHarness, raw: asyncpg.Connection) -> None:
    await harness.say("alice", "the vault is behind the heliotrope curtain", id="said", **ROOM)
    assert (await harness.command("alice", "/nexus forget message said", **ROOM)).text.startswith("Forgotten for good")
    assert await raw.fetchval("SELECT count(*) FROM messages") == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("We met in the café yesterday.", "cafe"),
        ("The cats sleep in the office.", "cat"),
        ("Die Kündigungen gehen am Freitag raus.", "Kündigung"),
        ("Hôm qua tôi đi bệnh viện.", "benh vien"),
        ("Πήγα στο νοσοκομείο χθες.", "νοσοκομειο"),
        ("We were launching rockets.", "launch"),
    ],
)
async def test_words_in_another_form_are_found_as_recall_finds_them_and_one_chooses(
    harness: AppHarness, raw: asyncpg.Connection, text: str, words: str
) -> None:
    await harness.say("alice", text, id="said", **ROOM)
    await harness.say_all("bob", [f"lift number {number} is slow" for number in range(12)], **ROOM)
    if text not in (await harness.command("alice", f"/nexus recall {words}", **ROOM)).text:
        pytest.skip("recall does not find it either")
    asked = await harness.command("alice", f"/nexus forget {words}", **ROOM)
    assert f"1. {text} [item " in asked.text
    assert not asked.confirm, "nothing has exactly these words"
    [choice] = asked.choices
    assert choice.label == "Erase 1"
    chosen = await harness.command("alice", choice.command, **ROOM)
    assert chosen.confirm == f"{choice.command} --yes"
    assert (await harness.command("alice", chosen.confirm, **ROOM)).text.startswith("Forgotten for good: 1 message")
    assert await raw.fetchval("SELECT count(*) FROM messages WHERE external_id = 'said'") == 0


async def test_what_has_exactly_the_words_comes_first_and_several_others_are_chosen_together(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    await harness.say("alice", "my cat sleeps", id="exact", **ROOM)
    await harness.say("alice", "cats everywhere", id="one", **ROOM)
    await harness.say("alice", "all cats are grey", id="two", **ROOM)
    await harness.say("bob", "cats of others", **ROOM)
    asked = await harness.command("alice", "/nexus forget cat", **ROOM)
    assert asked.text.startswith("my cat sleeps\nThis erases 1 message")
    assert "others" not in asked.text.partition("This erases")[2].partition("cats")[2], "bob's are not hers to erase"
    assert [each.label for each in asked.choices] == ["Erase 1", "Erase 2"]
    ids = " ".join(each.command.rsplit(" ", 1)[1] for each in asked.choices)
    assert "2 messages" in (await harness.command("alice", f"/nexus forget item {ids}", **ROOM)).text
    await harness.command("alice", f"/nexus forget item {ids} --yes", **ROOM)
    left = [row["external_id"] for row in await raw.fetch("SELECT external_id FROM messages WHERE text LIKE '%cat%'")]
    assert sorted(left)[:1] == ["exact"]
    assert {"one", "two"}.isdisjoint(left)
