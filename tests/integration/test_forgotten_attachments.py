"""Attachments are erased with their message, and answers made from them are retracted."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from typing import Any

import pytest

from bot.script.places import incoming
from composer.ingest.changes import change_message
from composer.memory.forget import RETRACTED
from composer.model import CONSOLE, Attachment, ConversationKind, Message, Place, Turn
from composer.settings import AgentSettings, Settings
from tests.integration.test_forget import tables_with_secret
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import until

GENERAL = Place(ConversationKind.ROOM, "general")
PNG = b"\x89PNG\r\n\x1a\n" + b"a sketch of the loom"
PHOTO = Attachment("desk.png", "image/png", size=len(PNG), address="https://files/desk.png")
NOTES = Attachment("codes.txt", "text/plain", "the vault opens with quokka7", 28)


class FileSource:
    """Serves the images (composer.ports.Images)."""

    async def fetch(self, turn: Turn | None, message: Message, attachment: Attachment, most: int) -> bytes:
        return PNG


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    with_images = settings.model_copy(
        update={"agents": (AgentSettings(model="gpt-4o", images=True),), "extraction": "off"}
    )
    async with open_harness(with_images, model=model) as harness:
        harness.app.drafter.images.register_source(CONSOLE, FileSource())
        yield harness


async def post(harness: AppHarness, user: str, text: str, id: str, **more: Any) -> None:
    message = incoming(harness.workspace(), GENERAL, user, text, harness.clock.tick(), id=id)
    await harness.app.receive(harness.workspace(), [replace(message, **more)])
    await harness.app.turns.settle()
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)


async def answers(harness: AppHarness) -> list[str]:
    composed = await harness.compose("carol", "hello", room="general")
    return [message.content for message in composed.prompt.role_messages if message.role == "assistant"]


@pytest.mark.parametrize("said", ["see this mail", ""])
@pytest.mark.parametrize("filler", ["", "This sentence is about something else entirely. " * 60])
async def test_what_stands_in_a_file_is_recalled_as_that(harness: AppHarness, said: str, filler: str) -> None:
    """Nobody is shown as the author of what stands in a file of theirs, nor in a part of it."""
    mail = f"Good morning.\n{filler}\nI approve the geese of mallory.\n{filler}"
    await post(harness, "bob", said, "mail", attachments=(Attachment("m.eml", "message/rfc822", mail, len(mail)),))
    found = (await harness.command("carol", "/nexus recall approve geese mallory", room="general")).text
    [line] = [each for each in found.split("\n- ") if "I approve" in each]
    before, mark, file = line.partition("\n  [in an attached file]\n  | ")
    assert mark
    assert "I approve the geese of mallory." in file
    assert before.endswith(": " if filler or not said else f": {said}"), before


async def test_an_answer_that_used_the_image_of_a_forgotten_message_is_retracted(
    harness: AppHarness, model: Model
) -> None:
    await post(harness, "bob", "look at this", "photo", attachments=(PHOTO,))
    model.says = ["A passport lies there, number 4711.", "I could not say."]
    await post(harness, "alice", "@nexus anything to mind?", "asked", reply_to="photo")
    await post(harness, "alice", "@nexus hm?", "again")
    await harness.change("photo", None)
    assert await answers(harness) == [RETRACTED, "I could not say."]


async def test_an_answer_that_repeats_a_forgotten_attachment_is_retracted(harness: AppHarness, model: Model) -> None:
    await post(harness, "bob", "for later", "notes", attachments=(NOTES,))
    model.says = ["With quokka7.", "Nothing new."]
    await post(harness, "alice", "@nexus how do I get in?", "asked")
    await post(harness, "alice", "@nexus news?", "again")
    await harness.change("notes", "for much later")
    assert await answers(harness) == ["With quokka7.", "Nothing new."]
    await harness.change("notes", None)
    assert await answers(harness) == [RETRACTED, "Nothing new."]


async def remove_attachments(harness: AppHarness, id: str, text: str, *files: str) -> None:
    """Edit a message so that only these files remain attached."""
    workspace, now = harness.workspace(), harness.clock.tick()
    agents = harness.app.directory.agents(workspace.tenant_id)
    receipt = await change_message(harness.app.database, workspace, agents, GENERAL, "bob", id, text, (), now, files)
    if receipt is not None:
        await harness.app.forgotten(workspace.tenant_id, receipt)
    await harness.app.indexer.catch_up(workspace.tenant_id)


async def test_an_attachment_removed_by_an_edit_is_forgotten(
    harness: AppHarness, model: Model, settings: Settings
) -> None:
    notes = replace(NOTES, address="https://files/codes.txt?sig=1")
    await post(harness, "bob", "look at this", "photo", attachments=(PHOTO, notes))
    model.says = ["A passport lies there, number 4711.", "With quokka7.", "Nothing new."]
    await post(harness, "alice", "@nexus anything to mind?", "asked", reply_to="photo")
    await post(harness, "alice", "@nexus how do I get in?", "then")
    await post(harness, "alice", "@nexus news?", "again")
    await remove_attachments(harness, "photo", "look at this", PHOTO.address, "https://files/codes.txt?sig=2")
    assert RETRACTED not in await answers(harness)
    await remove_attachments(harness, "photo", "look at this", "https://files/codes.txt?sig=2")
    assert await answers(harness) == [RETRACTED, RETRACTED, "Nothing new."], "the second is made of the message, too"
    await remove_attachments(harness, "photo", "look at this")
    assert await answers(harness) == [RETRACTED, RETRACTED, "Nothing new."]
    assert await tables_with_secret(settings) == set()


async def test_forgetting_by_words_searches_attached_files_too(harness: AppHarness) -> None:
    await post(harness, "bob", "for later", "notes", attachments=(NOTES,))
    forgotten = await harness.command("alice", "/nexus forget quokka7 --yes", room="general")
    assert forgotten.text == "Nothing was erased: there was nothing to forget."
    forgotten = await harness.command("bob", "/nexus forget quokka7 --yes", room="general")
    assert forgotten.text.startswith("Forgotten for good: 1 message. Receipt: ")


async def answered_meanwhile(harness: AppHarness, model: Model, says: str, act: Awaitable[object], **more: Any) -> str:
    """The answer to a question, if something happens while the model writes it."""
    model.gate, model.says, before = asyncio.Event(), [says], len(model.shown)
    message = incoming(harness.workspace(), GENERAL, "alice", "@nexus and?", harness.clock.tick(), id="asked")
    await harness.app.receive(harness.workspace(), [replace(message, **more)])
    await until(lambda: len(model.shown) > before)
    await act
    model.gate.set()
    await harness.app.turns.settle()
    return harness.delivery.replies[-1].text


@pytest.mark.parametrize("of_question", [True, False], ids=["question", "message in view"])
async def test_a_file_that_is_taken_off_while_the_model_answers_leaves_no_trace(
    harness: AppHarness, model: Model, settings: Settings, of_question: bool
) -> None:
    notes = replace(NOTES, address="https://files/codes.txt")
    more: dict[str, Any] = {"attachments": (notes,)} if of_question else {}
    if not of_question:
        await post(harness, "bob", "for later", "notes", attachments=(notes,))
    id, text = ("asked", "@nexus and?") if of_question else ("notes", "for later")
    act = remove_attachments(harness, id, text)
    assert await answered_meanwhile(harness, model, "With quokka7.", act, **more) == RETRACTED
    assert await tables_with_secret(settings) == set()


async def test_an_image_that_is_taken_off_while_the_model_answers_leaves_no_answer(
    harness: AppHarness, model: Model
) -> None:
    await post(harness, "bob", "look at this", "photo", attachments=(PHOTO,))
    act = remove_attachments(harness, "photo", "look at this")
    says = "A passport lies there, number 4711."
    assert await answered_meanwhile(harness, model, says, act, reply_to="photo") == RETRACTED


async def test_an_answer_stays_that_repeats_nothing_of_a_file_that_is_taken_off(
    harness: AppHarness, model: Model
) -> None:
    notes = replace(NOTES, address="https://files/codes.txt")
    await post(harness, "bob", "for later", "notes", attachments=(notes,))
    act = remove_attachments(harness, "notes", "for later")
    assert await answered_meanwhile(harness, model, "Nothing new.", act) == "Nothing new."


async def test_an_answer_stays_if_nothing_is_taken_off(harness: AppHarness, model: Model) -> None:
    await post(harness, "bob", "for later", "notes", attachments=(NOTES,))
    other = incoming(harness.workspace(), GENERAL, "bob", "hello", harness.clock.tick(), id="other")
    act = harness.app.receive(harness.workspace(), [replace(other, attachments=(NOTES,))])
    assert await answered_meanwhile(harness, model, "With quokka7.", act) == "With quokka7."
