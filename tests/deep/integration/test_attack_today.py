"""Attacks on what was repaired last: who waits for what is being received, and what is deleted before it arrives."""

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
from tests.support.held_erasure import HeldErasure
from tests.support.lock_waits import until_stopped
from tests.support.waiting import until

pytestmark = pytest.mark.integration


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


# README: what takes long stops nobody else. Somebody who forgets something waits for what is being received, and all of
# the organisation's messages for them; a message in a room that is being erased held up that, until it was erased.
async def test_messages_are_received_while_somebody_forgets_beside_an_erasure(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, database = harness.workspace(), harness.app.database
    await harness.app.receive(at, [said(harness, "zqold", "general"), said(harness, "zqkept", "elsewhere")])
    await harness.command("bob", "/nexus fact set code zqorchid --yes", dm="nexus")
    held = HeldErasure(monkeypatch)
    erasing = asyncio.create_task(erase_room(database, at, "general", None, harness.clock.now()))
    await held.until_held()
    waiting = asyncio.create_task(harness.app.receive(at, [said(harness, "zqnew", "general")]))
    await until_stopped(settings, waiting)
    forgetting = asyncio.create_task(harness.command("bob", "/nexus forget everything --yes", dm="nexus"))
    await until_waiting(settings, 2, forgetting)
    other = asyncio.create_task(harness.app.receive(at, [said(harness, "zqother", "elsewhere")]))
    await until_waiting(settings, 3, other)
    stored = other.done()
    held.go.set()
    await asyncio.gather(erasing, waiting, forgetting, other)
    assert stored
    assert "Forgotten for good" in forgetting.result().text


# README: an outage of one part stops nobody else. Whoever had a lock and took it another way, as one who deletes a
# project over the API does, was refused while others waited for them: for want of a place among those who wait.
@pytest.mark.parametrize("begins", [False, True])
async def test_who_has_a_lock_takes_it_another_way_while_others_wait_for_it(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, begins: bool
) -> None:
    monkeypatch.setattr("composer.stores.lock_waits.PATIENCE_SECONDS", 0)
    tenant, database = harness.workspace().tenant_id, harness.app.database

    async def erase() -> None:
        async with database.transaction(tenant) as tx:
            await tx.summaries.lock()

    async with database.transaction(tenant, blocks_erasure=begins) as tx:
        await tx.erasure.block()
        async with database.transaction(tenant, blocks_erasure=True):
            waiting = [asyncio.create_task(erase()) for _ in range(3)]
            await until_waiting(settings, 3, waiting[0])
            again = asyncio.create_task(tx.summaries.lock())
            await until_waiting(settings, 4, again)
        await again
        await tx.erasure.block()
    await asyncio.gather(*waiting)


# The same for who waits for a lock of another organisation's: its erasure took all places among those who wait.
@pytest.mark.parametrize("begins", [False, True])
async def test_an_organisation_that_waits_for_its_erasure_leaves_places_to_others(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, begins: bool
) -> None:
    monkeypatch.setattr("composer.stores.lock_waits.PATIENCE_SECONDS", 0)
    tenants, database = [harness.workspace(name).tenant_id for name in ("long", "short")], harness.app.database

    async def wait(tenant: uuid.UUID) -> None:
        async with database.transaction(tenant, blocks_erasure=begins) as tx:
            if not begins:
                await tx.summaries.lock()

    async with database.transaction(tenants[0]) as long:
        await long.summaries.lock()
        waiting = [asyncio.create_task(wait(tenants[0])) for _ in range(2 if begins else 3)]
        await until_waiting(settings, len(waiting), waiting[0])
        async with database.transaction(tenants[1]) as short:
            await short.summaries.lock()
            other = asyncio.create_task(wait(tenants[1]))
            await until_waiting(settings, len(waiting) + 1, other)
        await other
    await asyncio.gather(*waiting)


async def until_waiting(settings: Settings, count: int, task: asyncio.Task[Any]) -> None:
    """Wait until so many transactions wait for a lock, or a task has ended."""
    waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"

    async def are_waiting() -> bool:
        return task.done() or len(await rows(settings, waiting)) >= count

    await until(are_waiting)
