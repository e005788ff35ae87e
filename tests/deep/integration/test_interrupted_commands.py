"""Commands that a restart interrupts: one that erases is finished, every other one is answered as not done."""

from functools import partial
from typing import Any, Final

import asyncpg
import pytest

from bot.commands.command import DONE_BEFORE, TAKEN, CommandAnswer
from bot.commands.idempotency import (
    InterruptedCommand,
    answer_interrupted,
    begin_command,
    mark_answered,
    take_over_interrupted,
)
from bot.commands.table import COMMANDS, run_command
from bot.script.places import incoming, place_of
from composer.errors import Refused, Unavailable
from composer.ingest.rooms import set_room_private
from composer.model import Incoming, room_id
from composer.settings import Settings
from tests.support.harness import AppHarness, open_harness
from tests.support.lock_waits import release_locks

ROOM: Final[dict[str, Any]] = {"room": "board"}
ERASING: Final = (
    "forget everything --yes",
    "forget here --yes",
    "forget zqplum --yes",
    "erase room --yes",
    "erase user alice --yes",
    "erase project apollo --yes",
)


@pytest.fixture
async def office(harness: AppHarness, settings: Settings) -> AppHarness:
    """A room of a project that alice opened, an admin of the workspace, with bob in it."""
    await harness.say("alice", "good morning all", **ROOM)
    await harness.say("bob", "good morning to you", **ROOM)
    await rows(settings, "UPDATE users SET admin = true WHERE name = 'alice' RETURNING id")
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    await harness.command("alice", "/nexus project assign apollo --yes", **ROOM)
    return harness


async def rows(settings: Settings, query: str) -> list[Any]:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return [row[0] for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def interrupt(harness: AppHarness, user: str, text: str) -> Incoming:
    """A command that a process began before it died."""
    place = place_of("board", None, None)
    given = incoming(
        harness.workspace(), place, user, f"/nexus {text}", harness.clock.tick(), id=f"call {harness.clock.now()}"
    )
    assert await begin_command(harness.app, harness.workspace(), given, {})
    return given


async def taken_over(harness: AppHarness, settings: Settings) -> list[InterruptedCommand]:
    """The commands that the next process takes over, in the order in which they were given."""
    await rows(settings, "UPDATE requests SET process = 1 RETURNING made")
    return await take_over_interrupted(harness.app, harness.workspace())


async def answered(harness: AppHarness, command: InterruptedCommand) -> str:
    harness.clock.tick()
    finish = partial(run_command, harness.app, harness.workspace(), late=True)
    return (await answer_interrupted(harness.app, harness.workspace(), command, finish)).text


async def never(given: Incoming) -> CommandAnswer:
    raise AssertionError(given)


def test_what_erases_is_finished_and_nothing_else() -> None:
    finished = {name for name, command in COMMANDS.items() if command.finishes}
    assert finished == {"forget", "erase room", "erase user", "erase project", "opt-out"}


@pytest.mark.parametrize(
    "text", ["remember the vault is quokka7", "fact set vault quokka7", "recall quokka7", "opt-in", "no such quokka7"]
)
async def test_a_command_that_erases_nothing_is_stored_without_its_words_and_answered_as_not_done(
    office: AppHarness, settings: Settings, text: str
) -> None:
    await interrupt(office, "alice", text)
    (stored,) = await rows(settings, "SELECT call::text FROM requests WHERE call IS NOT NULL")
    assert "quokka7" not in stored
    assert '"alice"' in stored, "who is to be answered"
    (found,) = await taken_over(office, settings)
    answer = await answered(office, found)
    assert "nothing was done. Give the command again." in answer
    assert "quokka7" not in answer
    assert not await rows(settings, "SELECT id FROM memories") + await rows(settings, "SELECT id FROM facts")


@pytest.mark.parametrize("text", ERASING)
async def test_what_is_forgotten_after_a_restart_is_what_there_was_when_it_was_asked_for(
    office: AppHarness, settings: Settings, text: str
) -> None:
    await office.say("alice", "zqplum is early", **ROOM)
    await office.command("alice", "/nexus fact set early zqplum", **ROOM)
    await interrupt(office, "alice", text)
    office.clock.tick(60)
    await office.say("alice", "zqplum is late", **ROOM)
    await office.command("alice", "/nexus fact set late zqplum", **ROOM)
    (found,) = await taken_over(office, settings)
    assert (await answered(office, found)).startswith("Forgotten for good")
    assert await rows(settings, "SELECT text FROM messages WHERE text LIKE 'zqplum%'") == ["zqplum is late"]
    assert await rows(settings, "SELECT key FROM facts") == ["late"]


async def test_what_was_said_right_before_it_is_forgotten_by_a_clock_that_is_ahead_too(
    office: AppHarness, settings: Settings
) -> None:
    await interrupt(office, "alice", "forget everything --yes")
    ahead = incoming(
        office.workspace(), place_of("board", None, None), "alice", "zqplum is early", office.clock.tick(3), id="ahead"
    )
    await office.app.receive(office.workspace(), [ahead])
    (found,) = await taken_over(office, settings)
    assert (await answered(office, found)).startswith("Forgotten for good")
    assert not await rows(settings, "SELECT text FROM messages WHERE text LIKE 'zqplum%'")


async def test_who_opts_out_is_stored_no_more_after_a_restart(office: AppHarness, settings: Settings) -> None:
    await interrupt(office, "bob", "opt-out")
    (found,) = await taken_over(office, settings)
    assert "not stored" in await answered(office, found)
    await office.say("bob", "zqplum", **ROOM)
    assert not await rows(settings, "SELECT text FROM messages WHERE text LIKE 'zqplum%'")


async def test_a_command_that_another_process_has_taken_over_is_done_by_that_one_alone(
    harness: AppHarness, settings: Settings
) -> None:
    # After a restart of PostgreSQL nobody sees that the first process lives, until it answers somebody.
    workspace = harness.workspace()
    await harness.say("alice", "hello", **ROOM)
    given = await interrupt(harness, "alice", "forget here --yes")
    await release_locks(harness.app, settings)  # as PostgreSQL does
    async with open_harness(settings) as other:
        (found,) = await take_over_interrupted(other.app, workspace)
        with pytest.raises(Refused, match=TAKEN):
            await run_command(harness.app, workspace, given)
        await mark_answered(harness.app, workspace, given)  # with that
        finish = partial(run_command, other.app, workspace, late=True)
        answer = await answer_interrupted(other.app, workspace, found, finish)
    assert answer.text.startswith("Forgotten for good: 1 message.")


async def test_what_was_erased_before_the_database_failed_is_not_erased_again(
    office: AppHarness, settings: Settings
) -> None:
    workspace = office.workspace()
    await interrupt(office, "alice", "forget everything --yes")
    (found,) = await taken_over(office, settings)

    async def finish(given: Incoming) -> CommandAnswer:
        await run_command(office.app, workspace, given, late=True)
        raise Unavailable("The database does not answer.")

    with pytest.raises(Unavailable):
        await answer_interrupted(office.app, workspace, found, finish)
    await office.say("alice", "zqplum", **ROOM)
    answer = await answer_interrupted(office.app, workspace, found, never)
    assert answer.text.startswith("I did `/nexus forget`")
    with pytest.raises(Refused, match=DONE_BEFORE):
        await run_command(office.app, workspace, found.incoming)
    assert await rows(settings, "SELECT text FROM messages WHERE text = 'zqplum'") == ["zqplum"]


async def test_a_command_that_only_asked_for_confirmation_is_not_marked_as_done(
    office: AppHarness, settings: Settings
) -> None:
    for _ in range(4):
        await office.say("alice", "the vault is quokka7", **ROOM)
    await run_command(office.app, office.workspace(), await interrupt(office, "alice", "forget quokka7"))
    (found,) = await taken_over(office, settings)
    assert not found.done
    assert "This erases 4 messages and 0 other items of yours" in await answered(office, found)


@pytest.mark.parametrize("closed", [True, False])
async def test_finishing_a_command_does_not_change_whether_its_room_is_private(
    office: AppHarness, settings: Settings, closed: bool
) -> None:
    await interrupt(office, "alice", "forget everything --yes")
    workspace, agents = office.workspace(), office.app.directory.agents(office.workspace().tenant_id)
    await set_room_private(office.app.database, workspace, agents, "board", closed, office.clock.tick())
    (found,) = await taken_over(office, settings)
    await answered(office, found)
    async with office.app.database.transaction(workspace.tenant_id, "read") as tx:
        room = await tx.conversations.get(room_id(workspace, "board"))
    assert room is not None
    assert room.private is closed
