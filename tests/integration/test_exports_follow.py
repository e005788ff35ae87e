"""An exported file goes with what it holds, however that is erased: on its platform, with its room, with its import."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from bot.commands.command import require_current
from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.errors import Refused
from composer.ingest.changes import change_message
from composer.ingest.rooms import erase_room
from composer.model import Trust
from composer.people.export_files import export_path
from composer.settings import Settings
from tests.support.harness import AppHarness, open_harness

LAB = {"room": "lab"}


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    """alice and bob wrote in #lab; carol elsewhere. Each has a file in a DM and one of the terminal."""
    async with open_harness(settings) as harness:
        await harness.say("alice", "the code of the vault is walnut", id="told", **LAB)
        await harness.say("bob", "hello", **LAB)
        await harness.say("carol", "hello", room="hall")
        here, now = harness.workspace(), harness.clock.now()
        async with harness.app.database.transaction(here.tenant_id) as tx:
            users = await tx.people.find_user_ids(here.platform, here.name, ["alice", "bob", "carol"])
            for name, user in users.items():
                await tx.posted_files.record("slack", "T1", name, user, now)
                path = export_path(settings.home, user, "nexus-export.json", now)
                path.parent.mkdir(parents=True)
                path.write_text(name)
        yield harness


async def gone(harness: AppHarness) -> tuple[set[str], set[str]]:
    """Whose files in DMs are to be deleted, and whose of the terminal are gone."""
    here = harness.workspace()
    async with harness.app.database.transaction(here.tenant_id, "read") as tx:
        due = await tx.posted_files.due("slack", "T1", harness.clock.now(), 10)
    return {file.external_id for file in due}, {"alice", "bob", "carol"} - left(harness.app.settings.home)


def left(home: Path) -> set[str]:
    return {path.read_text() for path in Path(home, "exports").glob("*/*")}


async def detach(harness: AppHarness) -> None:
    await harness.change("told", "nothing of it is left here")


async def delete_room(harness: AppHarness) -> None:
    here = harness.workspace()
    receipt = await erase_room(harness.app.database, here, "lab", None, harness.clock.tick())
    assert receipt is not None
    await harness.app.forgotten(here.tenant_id, receipt)


Act = Callable[[AppHarness], Awaitable[object]]


@pytest.mark.parametrize(
    ("act", "whose"),
    [
        (lambda harness: harness.change("told", None), {"alice"}),
        (detach, {"alice"}),
        (delete_room, {"alice", "bob"}),
        (lambda harness: harness.change("told", "the code of the vault is walnuts"), set()),
        (lambda harness: harness.command("alice", "/nexus forget message told --yes", **LAB), {"alice"}),
    ],
    ids=["deleted", "most of it edited", "the room deleted", "a letter edited", "forgotten"],
)
async def test_the_files_of_who_wrote_what_is_erased_go_with_it(harness: AppHarness, act: Act, whose: set[str]) -> None:
    await act(harness)
    assert await gone(harness) == (whose, whose)


async def test_the_files_of_a_linked_account_go_too(harness: AppHarness, settings: Settings) -> None:
    connection = await asyncpg.connect(settings.database_url)
    await connection.execute(
        "UPDATE users SET person_id = (SELECT id FROM users WHERE name = 'carol') WHERE name = 'alice'"
    )
    await connection.close()
    await harness.change("told", None)
    assert await gone(harness) == ({"alice", "carol"}, {"alice", "carol"})


async def test_the_files_of_whose_writings_an_admin_of_the_room_takes_back_go_with_these(harness: AppHarness) -> None:
    # Before, the memory went, and stayed in the file of whose it was.
    await harness.command("bob", "/nexus remember the code of the vault is walnut", **LAB)
    assert await gone(harness) == (set(), set())
    await harness.command("alice", "/nexus memory undo bob --yes", **LAB)
    assert await gone(harness) == ({"bob"}, {"bob"})


async def test_the_files_of_who_wrote_what_is_rejected_go_with_it(harness: AppHarness) -> None:
    here = harness.workspace()
    guest = incoming(here, place_of("lab", None, None), "bob", "/nexus remember it is walnut", harness.clock.tick())
    await run_command(harness.app, here, replace(guest, sender_trust=Trust.GUEST))
    id = (await harness.command("alice", "/nexus memory pending", **LAB)).text.split()[0]
    answer = await harness.command("bob", "/nexus export", **LAB)
    assert answer.file is not None
    await harness.command("alice", f"/nexus memory reject {id}", **LAB)
    assert await gone(harness) == ({"bob"}, {"bob"})
    async with harness.app.database.transaction(here.tenant_id) as tx:
        with pytest.raises(Refused, match="ask for it again"):
            await require_current(tx, answer.file)


async def test_a_file_that_was_read_before_a_message_was_deleted_on_its_platform_is_not_put_anywhere(
    harness: AppHarness,
) -> None:
    answer = await harness.command("alice", "/nexus export", **LAB)
    assert answer.file is not None
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await require_current(tx, answer.file)
    await harness.change("told", None)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        with pytest.raises(Refused, match="ask for it again"):
            await require_current(tx, answer.file)


async def test_a_deletion_of_what_is_not_stored_takes_nothing_away(harness: AppHarness) -> None:
    here = harness.workspace()
    agents = harness.app.directory.agents(here.tenant_id)
    place, now = place_of("lab", None, None), harness.clock.tick()
    assert await change_message(harness.app.database, here, agents, place, "alice", "none", None, (), now) is None
    assert await gone(harness) == (set(), set())
