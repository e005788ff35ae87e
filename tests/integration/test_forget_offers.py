"""Who asks in words to have something forgotten is offered the command with its ids, and nothing is erased by that."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from composer.settings import Settings
from tests.support.harness import AppHarness
from tests.support.model_server import Say
from tests.support.tool_office import DM, LAB, Office, opened

BEFORE = "Your message before: /nexus forget message "


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[Office]:
    async with opened(settings) as office:
        yield office


@pytest.mark.parametrize("place", [LAB, DM], ids=["room", "dm"])
async def test_the_command_that_is_offered_erases_what_was_meant(office: Office, place: dict[str, Any]) -> None:
    await office.harness.say("alice", "@nexus my badge opens the vault", id="badge", **place)
    await office.harness.say("bob", "and mine the cellar", id="cellar", **LAB)
    office.server.script.append(Say(("Sure, I forgot it!",)))
    reply = await office.harness.ask("alice", "@nexus please forget that", id="asked", **place)
    assert reply.text == (
        "Sure, I forgot it!\n\nNothing was forgotten by that. To erase for good, with all that was made from it:\n"
        f"{BEFORE}badge"
    )
    assert "".join(office.harness.delivery.chunks).endswith(reply.text)
    assert ("badge",) in await office.rows("SELECT external_id FROM messages"), "nothing is erased yet"
    asked = await office.harness.command("alice", reply.text.partition("before: ")[2], **place)
    assert "will be replaced by a notice:" in asked.text
    await office.harness.command("alice", asked.confirm, **place)
    left = {row[0] for row in await office.rows("SELECT external_id FROM messages")}
    assert "badge" not in left
    assert {"cellar", "asked"} <= left


async def test_it_is_offered_offline_too(harness: AppHarness) -> None:
    await harness.say("alice", "my badge opens the vault", id="badge", **DM)
    reply = await harness.ask("alice", "please forget that", **DM)
    assert reply.text.endswith(f"{BEFORE}badge")


@pytest.mark.parametrize(
    "text",
    ["Er meinte, vergiss das", "Oublie ça, je vais le faire moi-même", "Lösch das bitte: Zeile 5 in main.py"],
)
async def test_nothing_is_offered_under_an_answer_to_ordinary_words(harness: AppHarness, text: str) -> None:
    await harness.say("alice", "der Server heisst walnut", **DM)
    assert "/nexus forget" not in (await harness.ask("alice", text, **DM)).text


async def test_a_message_that_speaks_of_itself_is_offered_itself(office: Office) -> None:
    reply = await office.harness.ask("alice", "the salary is 91k, please don't remember this", id="asked", **DM)
    assert reply.text.endswith("The one that I answer here: /nexus forget message asked")
    assert BEFORE not in reply.text, "there is none"


async def test_nobody_is_offered_messages_of_others(office: Office) -> None:
    await office.harness.say("bob", "my badge opens the vault", id="badge", **LAB)
    reply = await office.harness.ask("alice", "@nexus forget that", **LAB)
    assert "badge" not in reply.text
    assert "/nexus forget WORDS" in reply.text


async def test_a_question_that_is_not_stored_is_not_offered(office: Office) -> None:
    await office.harness.say("alice", "my badge opens the vault", id="badge", **DM)
    await office.harness.command("alice", "/nexus opt-out", **DM)
    reply = await office.harness.ask("alice", "the salary is 91k, please don't remember this", id="asked", **DM)
    assert reply.text.endswith("Your message is not stored: it is erased once it is answered.")
    assert f"{BEFORE}badge" in reply.text


async def test_who_asks_for_nothing_of_that_is_offered_nothing(office: Office) -> None:
    reply = await office.harness.ask("alice", "I always forget that, thank you", **DM)
    assert reply.text == "Hello there."


async def test_later_prompts_do_not_show_the_offer(office: Office) -> None:
    await office.harness.say("alice", "my badge opens the vault", id="badge", **DM)
    await office.harness.ask("alice", "forget that", **DM)
    await office.harness.ask("alice", "how are you?", **DM)
    shown = [m["content"] for m in office.server.requests[-1].body["messages"] if m["role"] == "assistant"]
    assert shown == ["Hello there."] * 2
