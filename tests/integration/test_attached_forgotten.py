"""What came with a message as a file or an image is forgotten with it, in the answers too that were made from it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from bot.script.places import PLATFORM, incoming
from composer.ingest.changes import change
from composer.memory.forget import RETRACTED
from composer.model import Attachment, ConversationKind, Message, Place, Turn
from composer.settings import AgentSettings, Settings
from tests.conftest import Stage, stage_on
from tests.e2e.discord_stage import Model
from tests.integration.test_forget import everywhere

pytestmark = pytest.mark.integration

GENERAL = Place(ConversationKind.ROOM, "general")
PNG = b"\x89PNG\r\n\x1a\n" + b"a sketch of the loom"
PHOTO = Attachment("desk.png", "image/png", size=len(PNG), address="https://files/desk.png")
NOTES = Attachment("codes.txt", "text/plain", "the vault opens with quokka7", 28)


class Shelf:
    """Where the images are (composer.ports.Images)."""

    async def fetch(self, turn: Turn, message: Message, attachment: Attachment, most: int) -> bytes:
        return PNG


@pytest.fixture
async def model() -> Model:
    return Model()


@pytest.fixture
async def stage(settings: Settings, model: Model) -> AsyncIterator[Stage]:
    seeing = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o", images=True),), "extraction": "off"})
    async with stage_on(seeing, model=model) as staged:
        staged.app.responder.register_image_source(PLATFORM, Shelf())
        yield staged


async def post(stage: Stage, user: str, text: str, id: str, **more: Any) -> None:
    said = incoming(stage.workspace(), GENERAL, user, text, stage.clock.tick(), id=id)
    await stage.app.receive(stage.workspace(), [replace(said, **more)])
    await stage.app.turns.settle()
    await stage.app.indexer.catch_up(stage.workspace().tenant_id)


async def answers(stage: Stage) -> list[str]:
    composed = await stage.compose("carol", "hello", room="general")
    return [message.content for message in composed.prompt.role_messages if message.role == "assistant"]


async def test_an_answer_that_looked_at_another_message_s_image_goes_with_that(stage: Stage, model: Model) -> None:
    await post(stage, "bob", "look at this", "photo", attachments=(PHOTO,))
    model.says = ["A passport lies there, number 4711.", "I could not say."]
    await post(stage, "alice", "@nexus anything to mind?", "asked", reply_to="photo")
    await post(stage, "alice", "@nexus hm?", "again")
    await stage.change("photo", None)
    assert await answers(stage) == [RETRACTED, "I could not say."]


async def test_an_answer_that_repeats_an_attached_file_goes_with_that(stage: Stage, model: Model) -> None:
    await post(stage, "bob", "for later", "notes", attachments=(NOTES,))
    model.says = ["With quokka7.", "Nothing new."]
    await post(stage, "alice", "@nexus how do I get in?", "asked")
    await post(stage, "alice", "@nexus news?", "again")
    await stage.change("notes", "for much later")
    assert await answers(stage) == ["With quokka7.", "Nothing new."]
    await stage.change("notes", None)
    assert await answers(stage) == [RETRACTED, "Nothing new."]


async def take_off(stage: Stage, id: str, text: str, *files: str) -> None:
    """Edit a message so that these files alone are still attached."""
    here, now = stage.workspace(), stage.clock.tick()
    agents = stage.app.directory.agents(here.tenant_id)
    receipt = await change(stage.app.store, here, agents, GENERAL, "bob", id, text, (), now, files)
    if receipt is not None:
        await stage.app.forgotten(here, receipt)
    await stage.app.indexer.catch_up(here.tenant_id)


async def test_what_is_taken_off_a_message_is_forgotten(stage: Stage, model: Model, settings: Settings) -> None:
    notes = replace(NOTES, address="https://files/codes.txt?sig=1")
    await post(stage, "bob", "look at this", "photo", attachments=(PHOTO, notes))
    model.says = ["A passport lies there, number 4711.", "With quokka7.", "Nothing new."]
    await post(stage, "alice", "@nexus anything to mind?", "asked", reply_to="photo")
    await post(stage, "alice", "@nexus how do I get in?", "then")
    await post(stage, "alice", "@nexus news?", "again")
    await take_off(stage, "photo", "look at this", PHOTO.address, "https://files/codes.txt?sig=2")
    assert RETRACTED not in await answers(stage)
    await take_off(stage, "photo", "look at this", "https://files/codes.txt?sig=2")
    assert await answers(stage) == [RETRACTED, "With quokka7.", "Nothing new."]
    await take_off(stage, "photo", "look at this")
    assert await answers(stage) == [RETRACTED, RETRACTED, "Nothing new."]
    assert await everywhere(settings) == set()


async def test_words_to_forget_are_looked_for_in_attached_files_too(stage: Stage) -> None:
    await post(stage, "bob", "for later", "notes", attachments=(NOTES,))
    forgotten = await stage.command("alice", "/nexus forget quokka7", room="general")
    assert forgotten.text == "There was nothing to forget."
    forgotten = await stage.command("bob", "/nexus forget quokka7", room="general")
    assert forgotten.text == "Forgotten for good: 1 message."
