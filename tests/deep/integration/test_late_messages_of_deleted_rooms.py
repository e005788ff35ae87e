"""What comes from a room, or goes on in it, when its platform has deleted it."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.errors import NotFound
from composer.ingest.rooms import erase_room
from composer.model import Incoming
from composer.repositories.imports import ImportRun
from composer.repositories.messages import Messages
from composer.settings import Settings
from tests.integration.test_compaction import rows
from tests.support.harness import AppHarness, open_harness
from tests.support.lock_waits import until_stopped


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings) as harness:
        yield harness


def said(harness: AppHarness, text: str, room: str, thread: str | None = None) -> Incoming:
    """A message of alice's."""
    place = place_of(room, None, None, thread)
    return incoming(harness.workspace(), place, "alice", text, harness.clock.tick(), id=text)


# docs/architecture.md: what is deleted on its platform is gone from every layer. The first message of a room or a
# thread, delivered after its platform had deleted that, was stored, and stayed.
@pytest.mark.parametrize("thread", [None, "t1"])
async def test_the_first_message_of_a_deleted_room_that_arrives_late_is_not_stored(
    harness: AppHarness, settings: Settings, thread: str | None
) -> None:
    at, database = harness.workspace(), harness.app.database
    first = said(harness, "zqfirst", "general", thread)
    harness.clock.tick()
    await erase_room(database, at, "general", thread, harness.clock.now())
    await harness.app.receive(at, [first])
    await harness.app.receive(at, [first], answer=False, run=ImportRun(uuid.uuid4(), "export.zip"))  # docs/import.md
    assert await rows(settings, "SELECT text FROM messages") == []


# The same while that message is being stored.
@pytest.mark.parametrize("thread", [None, "t1"])
async def test_the_first_message_of_a_room_that_is_deleted_while_it_is_stored_goes_with_it(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, thread: str | None
) -> None:
    at, database, append = harness.workspace(), harness.app.database, Messages.append
    await harness.app.receive(at, [said(harness, "zqkept", "elsewhere")])
    erasing = list[asyncio.Task[Any]]()

    async def append_while_it_is_deleted(messages: Messages, *args: Any, **named: Any) -> None:
        await append(messages, *args, **named)
        deleted = erase_room(database, at, "general", thread, harness.clock.now())
        erasing.append(asyncio.create_task(deleted))
        await until_stopped(settings, erasing[0])

    monkeypatch.setattr(Messages, "append", append_while_it_is_deleted)
    await harness.app.receive(at, [said(harness, "zqfirst", "general", thread)])
    await erasing[0]
    assert [row["text"] for row in await rows(settings, "SELECT text FROM messages")] == ["zqkept"]


# The same where it gives a command: what that stored was recalled in the project of the room. One that forgets is done.
@pytest.mark.parametrize("thread", [None, "t1"])
async def test_a_command_that_arrives_after_its_room_was_deleted_stores_nothing(
    harness: AppHarness, settings: Settings, thread: str | None
) -> None:
    at, app = harness.workspace(), harness.app
    await harness.app.receive(at, [said(harness, "zqgone", "general", thread), said(harness, "zqelsewhere", "board")])
    late = said(harness, "/nexus remember zqlate", "general", thread)
    forgets = said(harness, "/nexus forget everything --yes", "general", thread)
    harness.clock.tick()
    await erase_room(app.database, at, "general", thread, harness.clock.now())
    with pytest.raises(NotFound):
        await run_command(app, at, late)
    assert await rows(settings, "SELECT text FROM memories") == []
    assert "1 message" in (await run_command(app, at, forgets)).text
    again = said(harness, "/nexus remember zqafter", "general", thread)
    await run_command(app, at, again)
    assert [row["text"] for row in await rows(settings, "SELECT text FROM memories")] == ["zqafter"]


# docs/architecture.md: what is deleted on its platform is gone from every layer. A message that its platform delivered,
# perhaps once more, after its room or thread was deleted was stored, and stayed.
@pytest.mark.parametrize("thread", [None, "t1"])
async def test_a_message_that_arrives_after_its_room_was_deleted_is_not_stored(
    harness: AppHarness, settings: Settings, thread: str | None
) -> None:
    def said(text: str, thread: str | None) -> Incoming:
        place = place_of("general", None, None, thread)
        return incoming(harness.workspace(), place, "alice", text, harness.clock.tick(), id=text)

    at, now = harness.workspace(), harness.clock.now
    for place in (None, "t1"):
        await harness.app.receive(at, [said(f"zqearly {place}", place)])
    late = [said("zqlate in the thread", "t1"), said("zqlate in the room", None)]
    harness.clock.tick()
    await erase_room(harness.app.database, at, "general", thread, now())
    await harness.app.receive(at, late)
    await harness.app.receive(at, [said("zqafter that", "t1")])  # where a platform was wrong, nothing is lost
    stored = [row["text"] for row in await rows(settings, "SELECT text FROM messages ORDER BY at")]
    room = [] if thread is None else ["zqearly None", "zqlate in the room"]
    assert stored == [*room, "zqafter that"]
