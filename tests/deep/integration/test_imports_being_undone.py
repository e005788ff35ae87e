"""What comes while an import is being undone."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.script.places import incoming, place_of
from composer.ingest.imports import find_import, undo_import
from composer.memory.forget import RECEIPT_KEY_BYTES
from composer.model import Incoming
from composer.repositories.imports import ImportRun, Imports
from composer.repositories.messages import Messages
from composer.settings import Settings
from tests.integration.test_compaction import rows
from tests.support.harness import AppHarness, open_harness
from tests.support.lock_waits import until_stopped

MEMBERS_OF_ALICE = "SELECT 1 FROM members AS m JOIN users AS u ON u.id = m.user_id WHERE u.name = 'alice'"


def said(harness: AppHarness, text: str, room: str) -> Incoming:
    """A message of alice's."""
    return incoming(harness.workspace(), place_of(room, None, None), "alice", text, harness.clock.tick(), id=text)


async def undo(harness: AppHarness, run: ImportRun) -> None:
    database, new_key = harness.app.database, lambda: b"k" * RECEIPT_KEY_BYTES
    async for _ in undo_import(database, await find_import(database, run.id.hex), new_key, harness.clock.now()):
        pass


async def imported(harness: AppHarness) -> ImportRun:
    """An import that makes alice known, and a room."""
    run = ImportRun(uuid.uuid4(), "export.zip")
    await harness.app.receive(harness.workspace(), [said(harness, "zqold", "general")], answer=False, run=run)
    return run


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update={"requests_per_minute": 10_000})) as harness:
        yield harness


# docs/architecture.md: what was acknowledged is not lost. Undoing an import deletes the rooms that it made and that
# nothing uses. A message that came into one of them just then, of which the last batch had none, was deleted with it.
async def test_a_message_in_a_room_of_an_import_that_is_being_undone_stays(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, place, run = harness.workspace(), place_of("general", None, None), ImportRun(uuid.uuid4(), "export.zip")
    monkeypatch.setattr("composer.ingest.imports.UNDO_BATCH", 1)
    old = incoming(at, place, "alice", "zqold", harness.clock.tick(), id="old")
    await harness.app.receive(at, [old], answer=False, run=run)
    database, append, undoing = harness.app.database, Messages.append, list[asyncio.Task[None]]()
    found = await find_import(database, run.id.hex)
    undone = undo_import(database, found, lambda: b"k" * RECEIPT_KEY_BYTES, harness.clock.now())

    async def undo() -> None:
        async for _ in undone:
            pass

    async def append_and_undo(messages: Messages, *args: Any, **named: Any) -> None:
        await append(messages, *args, **named)
        undoing.append(asyncio.create_task(undo()))
        await until_stopped(settings, undoing[0])

    await anext(undone)  # the messages; the rooms are deleted by the next step
    monkeypatch.setattr(Messages, "append", append_and_undo)
    new = incoming(at, place, "alice", "zqnew", harness.clock.tick(), id="new")
    await harness.app.receive(at, [new], answer=False)
    await undoing[0]
    assert [row["text"] for row in await rows(settings, "SELECT text FROM messages")] == ["zqnew"]


# docs/architecture.md: a message that was acknowledged is stored. What somebody says for the first time waits for the
# undoing of the import that made their room and them, and deletes both: the database refused it then, and on Discord,
# which delivers nothing again, it was lost.
async def test_a_message_of_somebody_whose_import_is_being_undone_is_stored(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, run = harness.workspace(), await imported(harness)
    new = said(harness, "zqnew", "general")
    delete, receiving = Imports.delete_unused, list[asyncio.Task[Any]]()

    async def delete_while_it_waits(imports: Imports, id: uuid.UUID) -> tuple[int, int]:
        receiving.append(asyncio.create_task(harness.app.receive(at, [new])))
        await until_stopped(settings, receiving[0])
        return await delete(imports, id)

    monkeypatch.setattr(Imports, "delete_unused", delete_while_it_waits)
    await undo(harness, run)
    assert len((await receiving[0]).new) == 1
    assert await rows(settings, MEMBERS_OF_ALICE)


# The same beside a message in another room: its person was deleted, and with them that they are in that room.
async def test_who_speaks_elsewhere_while_their_import_is_undone_stays(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = harness.workspace()
    await harness.say("bob", "hello", room="elsewhere")
    run, append, undoing = await imported(harness), Messages.append, list[asyncio.Task[None]]()

    async def append_while_it_is_undone(messages: Messages, *args: Any, **named: Any) -> None:
        await append(messages, *args, **named)
        undoing.append(asyncio.create_task(undo(harness, run)))
        await until_stopped(settings, undoing[0])

    monkeypatch.setattr(Messages, "append", append_while_it_is_undone)
    await harness.app.receive(at, [said(harness, "zqnew", "elsewhere")])
    await undoing[0]
    assert await rows(settings, MEMBERS_OF_ALICE)


# docs/import.md: undoing an import leaves what platforms delivered. A message of the import that its platform delivered
# just then was acknowledged, and erased with the others.
@pytest.mark.parametrize("is_new", [True, False], ids=["a room of the import", "a room that was there"])
async def test_a_message_that_its_platform_delivers_while_its_import_is_undone_stays(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, *, is_new: bool
) -> None:
    if not is_new:
        await harness.say("alice", "hello", room="general")
    at, place, run = harness.workspace(), place_of("general", None, None), ImportRun(uuid.uuid4(), "export.zip")
    both = [incoming(at, place, "alice", f"zq{n}", harness.clock.tick(), id=f"zq{n}") for n in range(2)]
    await harness.app.receive(at, both, answer=False, run=run)
    database, keep, undoing = harness.app.database, Imports.keep, list[asyncio.Task[None]]()

    async def undo() -> None:
        found = await find_import(database, run.id.hex)
        async for _ in undo_import(database, found, lambda: b"k" * RECEIPT_KEY_BYTES, harness.clock.now()):
            pass

    async def kept(imports: Imports, messages: Any) -> None:
        undoing.append(asyncio.create_task(undo()))
        await until_stopped(settings, undoing[0])
        await keep(imports, messages)

    monkeypatch.setattr(Imports, "keep", kept)
    await harness.app.receive(at, both[:1])
    await undoing[0]
    assert [row["text"] for row in await rows(settings, "SELECT text FROM messages WHERE text LIKE 'zq%'")] == ["zq0"]
