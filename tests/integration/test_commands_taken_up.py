"""What is stored of a command until it is answered: what it changes when it is run again, and how it is forgotten."""

from dataclasses import replace

import asyncpg
import pytest

from bot.commands.idempotency import InterruptedCommand, begin, cut_off
from bot.commands.table import run_command
from bot.console.script import incoming
from composer.ingest.rooms import set_room_private
from composer.model import ConversationKind, Incoming, Place
from composer.settings import Settings
from composer.workspace import room_id
from tests.support.harness import AppHarness

pytestmark = pytest.mark.integration

BOARD = Place(ConversationKind.ROOM, "board", private=False)


async def given(harness: AppHarness, user: str, text: str) -> Incoming:
    """A command that was begun by a process that died before it was answered."""
    said = incoming(harness.workspace(), BOARD, user, text, harness.clock.tick(), id=f"call-{text}")
    assert await begin(harness.app, harness.workspace(), said, {"channel": "board"})
    return said


async def left(settings: Settings) -> list[str]:
    """What stands of commands, taken from a process that is no more."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        await connection.execute("UPDATE commands SET process = 1")
        return [row[0] for row in await connection.fetch("SELECT call::text FROM commands WHERE call IS NOT NULL")]
    finally:
        await connection.close()


async def taken_up(harness: AppHarness, settings: Settings) -> list[InterruptedCommand]:
    await left(settings)
    return await cut_off(harness.app, harness.workspace())


async def is_private(harness: AppHarness) -> bool:
    async with harness.app.database.transaction(harness.workspace().tenant_id, snapshot=True) as tx:
        found = await tx.conversations.get(room_id(harness.workspace(), "board"))
    assert found is not None
    return found.private


@pytest.mark.parametrize("closed", [True, False])
async def test_a_command_run_again_does_not_open_a_room_that_was_closed_since(
    harness: AppHarness, settings: Settings, closed: bool
) -> None:
    await harness.say("alice", "hello", room="board", private=False)
    await given(harness, "alice", "/nexus fact list")
    here, agents = harness.workspace(), harness.app.directory.agents(harness.workspace().tenant_id)
    await set_room_private(harness.app.database, here, agents, "board", closed, harness.clock.tick())
    (cut,) = await taken_up(harness, settings)
    await run_command(harness.app, here, cut.incoming)
    assert await is_private(harness) is closed


async def test_forgetting_everything_takes_the_words_of_a_command_that_nobody_answered(
    harness: AppHarness, settings: Settings
) -> None:
    await given(harness, "alice", "/nexus remember the vault is quokka7")
    await given(harness, "bob", "/nexus remember the vault is numbat3")
    await harness.say("alice", "hello", room="board")
    await harness.say("bob", "hello", room="board")
    await harness.command("alice", "/nexus forget everything --yes", dm="nexus")
    (kept,) = await left(settings)
    assert "numbat3" in kept


async def test_a_command_that_only_asked_back_was_not_done(harness: AppHarness, settings: Settings) -> None:
    for _ in range(4):
        await harness.say("alice", "the vault is quokka7", room="board", private=False)
    called = await given(harness, "alice", "/nexus forget quokka7")
    answer = await run_command(harness.app, harness.workspace(), called)
    assert "4 messages and 0 other entries of yours hold these words" in answer.text
    (cut,) = await taken_up(harness, settings)
    assert not cut.done
    await run_command(harness.app, harness.workspace(), replace(called, text="/nexus forget quokka7 --yes"))
    (cut,) = await taken_up(harness, settings)
    assert cut.done
