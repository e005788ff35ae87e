"""Commands that were interrupted by a restart: what running them again changes, and how they are forgotten."""

from dataclasses import replace

import asyncpg
import pytest

from bot.commands.idempotency import InterruptedCommand, adopt_interrupted, begin_command
from bot.commands.table import run_command
from bot.script.places import incoming
from composer.ingest.changes import set_room_private
from composer.model import ConversationKind, Incoming, Place
from composer.settings import Settings
from composer.workspace import room_id
from tests.support.harness import AppHarness

pytestmark = pytest.mark.integration

BOARD = Place(ConversationKind.ROOM, "board", private=False)


async def interrupted(stage: Stage, user: str, text: str) -> Incoming:
    """A command that a process began before it died."""
    sent = incoming(stage.workspace(), BOARD, user, text, stage.clock.tick(), id=f"call-{text}")
    assert await begin_command(stage.app, stage.workspace(), sent, {"channel": "board"})
    return sent


async def unanswered(settings: Settings) -> list[str]:
    """The stored calls of unanswered commands, which now belong to a dead process."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        await connection.execute("UPDATE commands SET process = 1")
        return [row[0] for row in await connection.fetch("SELECT call::text FROM commands WHERE call IS NOT NULL")]
    finally:
        await connection.close()


async def adopted(stage: Stage, settings: Settings) -> list[InterruptedCommand]:
    await unanswered(settings)
    return await adopt_interrupted(stage.app, stage.workspace())


async def is_private(harness: AppHarness) -> bool:
    async with harness.app.database.transaction(harness.workspace().tenant_id, snapshot=True) as tx:
        found = await tx.conversations.get(room_id(harness.workspace(), "board"))
    assert found is not None
    return found.private


@pytest.mark.parametrize("closed", [True, False])
async def test_a_command_that_is_run_again_does_not_open_a_room_that_was_closed_meanwhile(
    stage: Stage, settings: Settings, closed: bool
) -> None:
    await stage.say("alice", "hello", room="board", private=False)
    await interrupted(stage, "alice", "/nexus fact list")
    here, agents = stage.workspace(), stage.app.directory.agents(stage.workspace().tenant_id)
    await set_room_private(stage.app.store, here, agents, "board", closed, stage.clock.tick())
    (cut,) = await adopted(stage, settings)
    await run_command(stage.app, here, cut.incoming)
    assert await is_private(stage) is closed


async def test_forgetting_everything_erases_the_text_of_an_unanswered_command(stage: Stage, settings: Settings) -> None:
    await interrupted(stage, "alice", "/nexus remember the vault is quokka7")
    await interrupted(stage, "bob", "/nexus remember the vault is numbat3")
    await stage.say("alice", "hello", room="board")
    await stage.say("bob", "hello", room="board")
    await stage.command("alice", "/nexus forget everything --yes", dm="nexus")
    (remaining,) = await unanswered(settings)
    assert "numbat3" in remaining


async def test_a_command_that_only_asked_for_confirmation_is_not_done(stage: Stage, settings: Settings) -> None:
    for _ in range(4):
        await stage.say("alice", "the vault is quokka7", room="board", private=False)
    called = await interrupted(stage, "alice", "/nexus forget quokka7")
    answer = await run_command(stage.app, stage.workspace(), called)
    assert "4 messages and 0 other entries of yours contain these words" in answer.text
    (cut,) = await adopted(stage, settings)
    assert not cut.done
    await run_command(stage.app, stage.workspace(), replace(called, text="/nexus forget quokka7 --yes"))
    (cut,) = await adopted(stage, settings)
    assert cut.done
