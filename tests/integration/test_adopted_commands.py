"""Commands that were interrupted by a restart: what running them again changes, and how they are forgotten."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

import asyncpg
import pytest

from bot.commands.command import DONE, TAKEN, Call, CommandAnswer, command_id
from bot.commands.command import FORGOTTEN as FORGOTTEN_BEFORE_IT_WAS_DONE
from bot.commands.idempotency import (
    FORGOTTEN,
    InterruptedCommand,
    adopt_interrupted,
    answer_interrupted,
    begin_command,
    mark_answered,
)
from bot.commands.table import run_command
from bot.script.places import incoming
from composer.errors import BadInput, NotFound, Refused, Unavailable
from composer.ingest.changes import change_message
from composer.ingest.rooms import set_room_private
from composer.model import ConversationKind, Incoming, Place
from composer.repositories.database import Transaction
from composer.settings import Settings
from composer.workspace import room_id
from tests.support.harness import AppHarness, open_harness
from tests.support.lock_waits import release_locks, until_stopped
from tests.support.waiting import until

pytestmark = pytest.mark.integration

BOARD = Place(ConversationKind.ROOM, "board", private=False)


async def interrupted(harness: AppHarness, user: str, text: str, room: str = "board") -> Incoming:
    """A command that a process began before it died."""
    place = replace(BOARD, name=room)
    sent = incoming(harness.workspace(), place, user, text, harness.clock.tick(), id=f"call-{text}")
    assert await begin_command(harness.app, harness.workspace(), sent, {"channel": room})
    return sent


async def make_admin(settings: Settings, name: str) -> None:
    connection = await asyncpg.connect(settings.database_url)
    try:
        await connection.execute("UPDATE users SET admin = true WHERE name = $1", name)
    finally:
        await connection.close()


async def unanswered(settings: Settings) -> list[str]:
    """Assign the unanswered commands to a dead process and return their stored calls."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        await connection.execute("UPDATE commands SET process = 1")
        return [row[0] for row in await connection.fetch("SELECT call::text FROM commands WHERE call IS NOT NULL")]
    finally:
        await connection.close()


async def adopted(harness: AppHarness, settings: Settings) -> list[InterruptedCommand]:
    await unanswered(settings)
    return await adopt_interrupted(harness.app, harness.workspace())


async def is_private(harness: AppHarness) -> bool:
    async with harness.app.database.transaction(harness.workspace().tenant_id, snapshot=True) as tx:
        found = await tx.conversations.get(room_id(harness.workspace(), "board"))
    assert found is not None
    return found.private


@pytest.mark.parametrize("closed", [True, False])
async def test_running_a_command_again_does_not_change_whether_its_room_is_private(
    harness: AppHarness, settings: Settings, closed: bool
) -> None:
    await harness.say("alice", "hello", room="board", private=False)
    await interrupted(harness, "alice", "/nexus fact list")
    workspace, agents = harness.workspace(), harness.app.directory.agents(harness.workspace().tenant_id)
    await set_room_private(harness.app.database, workspace, agents, "board", closed, harness.clock.tick())
    (found,) = await adopted(harness, settings)
    await run_command(harness.app, workspace, found.incoming)
    assert await is_private(harness) is closed


async def test_forgetting_everything_erases_the_text_of_an_unanswered_command(
    harness: AppHarness, settings: Settings
) -> None:
    await interrupted(harness, "alice", "/nexus remember the vault is quokka7")
    await interrupted(harness, "bob", "/nexus remember the vault is numbat3")
    await harness.say("alice", "hello", room="board")
    await harness.say("bob", "hello", room="board")
    await harness.command("alice", "/nexus forget everything --yes", dm="nexus")
    (remaining,) = await unanswered(settings)
    assert "numbat3" in remaining


@pytest.mark.parametrize(
    ("who", "command"),
    [
        ("alice", "forget quokka7"),
        ("alice", "forget here"),
        ("alice", "forget everything"),
        ("root", "erase user alice"),
        ("root", "erase room"),
        ("root", "erase project apollo"),
    ],
)
async def test_what_is_forgotten_is_not_stored_by_a_command_that_was_interrupted_before(
    harness: AppHarness, settings: Settings, who: str, command: str
) -> None:
    # Before, only "forget everything" reached them: what was forgotten was stored when Nexus started again.
    await harness.say("root", "hello", room="board")
    await harness.command("root", "/nexus project create apollo", room="board")
    await harness.command("root", "/nexus project assign apollo --yes", room="board")
    await harness.say("alice", "hello", room="board")
    await make_admin(settings, "root")
    await interrupted(harness, "alice", "/nexus remember the vault is quokka7")
    await interrupted(harness, "bob", "/nexus remember the vault is numbat3", room="attic")
    answer = (await harness.command(who, f"/nexus {command} --yes", room="board")).text
    assert "1 command" in answer
    (remaining,) = await unanswered(settings)
    assert "numbat3" in remaining
    assert [found.incoming.user for found in await adopted(harness, settings)] == ["bob"]


async def test_interrupted_commands_of_others_and_elsewhere_and_of_other_words_stay(
    harness: AppHarness, settings: Settings
) -> None:
    await harness.say("alice", "hello", room="board")
    await harness.say("bob", "hello", room="board")
    await interrupted(harness, "alice", "/nexus remember the attic is numbat3")
    await interrupted(harness, "bob", "/nexus remember the vault is quokka7")
    await interrupted(harness, "alice", "/nexus remember the vault is quokka7", room="attic")
    for command in ("forget quokka", "forget here --since 2026-05-05", "forget message 1"):
        with suppress(NotFound):
            await harness.command("alice", f"/nexus {command} --yes", room="board")
    assert len(await unanswered(settings)) == 3
    await harness.command("alice", "/nexus forget here --yes", room="board")
    assert len(await unanswered(settings)) == 2
    asked = await harness.command("alice", "/nexus forget quokka7", room="board")
    assert "1 command of yours that I have not answered will not run." in asked.text
    await harness.command("alice", "/nexus forget quokka7 --yes", room="board")
    (remaining,) = await unanswered(settings)
    assert '"user": "bob"' in remaining


async def test_a_command_that_only_asked_for_confirmation_is_not_marked_as_done(
    harness: AppHarness, settings: Settings
) -> None:
    for _ in range(4):
        await harness.say("alice", "the vault is quokka7", room="board", private=False)
    called = await interrupted(harness, "alice", "/nexus forget quokka7")
    answer = await run_command(harness.app, harness.workspace(), called)
    assert "This erases 4 messages and 0 other items of yours" in answer.text
    (found,) = await adopted(harness, settings)
    assert not found.done
    await run_command(harness.app, harness.workspace(), replace(called, text="/nexus forget quokka7 --yes"))
    (found,) = await adopted(harness, settings)
    assert found.done


async def test_a_command_is_not_run_that_is_forgotten_once_it_is_adopted(
    harness: AppHarness, settings: Settings
) -> None:
    # Commands are finished one after the other, and one may ask a model for seconds: meanwhile people give others.
    await harness.say("alice", "hello", room="board")
    await interrupted(harness, "alice", "/nexus remember the vault is quokka7")
    (found,) = await adopted(harness, settings)

    async def forget_first(given: Incoming) -> Incoming:
        answer = await harness.command("alice", "/nexus forget quokka7 --yes", room="board")
        assert "1 command" in answer.text
        return given

    async def run(given: Incoming) -> CommandAnswer:
        return await run_command(harness.app, harness.workspace(), given)

    answer = await answer_interrupted(harness.app, harness.workspace(), found, forget_first, run)
    assert answer.text == FORGOTTEN
    assert "quokka7" not in (await harness.command("alice", "/nexus recall vault", room="board")).text


@pytest.mark.parametrize("how", ["done", "expired"])
async def test_the_answer_to_an_interrupted_command_does_not_repeat_what_was_forgotten_since(
    harness: AppHarness, settings: Settings, how: str
) -> None:
    # README: forgetting erases. On Discord such an answer may go to a DM, and stay there.
    await harness.say("alice", "hello", room="board")
    await interrupted(harness, "alice", "/nexus remember the vault is quokka7")
    (found,) = await adopted(harness, settings)
    if how == "done":
        found = replace(found, done=True)
    else:
        harness.clock.set(found.expires_at)
    await harness.command("alice", "/nexus forget quokka7 --yes", room="board")

    async def never(given: Incoming) -> CommandAnswer:
        raise AssertionError(given)

    async def as_it_was(given: Incoming) -> Incoming:
        return given

    answer = await answer_interrupted(harness.app, harness.workspace(), found, as_it_was, never)
    assert answer.text == FORGOTTEN


async def as_given(given: Incoming) -> Incoming:
    """What a platform says of a command's sender: nothing has changed."""
    return given


async def test_a_command_that_another_process_has_taken_over_is_done_by_that_one_alone(
    harness: AppHarness, settings: Settings
) -> None:
    # Each of the two did it: after a restart of PostgreSQL nobody sees that the first process lives, until it answers
    # somebody. What was given since was replaced, and both said that they had done it.
    workspace = harness.workspace()
    await harness.say("alice", "hello", room="board")
    given = await interrupted(harness, "alice", "/nexus forget here --yes")
    await release_locks(harness.app, settings)  # as PostgreSQL does
    async with open_harness(settings) as other:
        (found,) = await adopt_interrupted(other.app, workspace)
        with pytest.raises(Refused, match=TAKEN):
            await run_command(harness.app, workspace, given)
        await mark_answered(harness.app, workspace, given)  # with that
        run = partial(run_command, other.app, workspace, late=True)
        answer = await answer_interrupted(other.app, workspace, found, as_given, run)
    assert answer.text.startswith("Forgotten for good: 1 message.")


async def test_a_command_is_not_done_again_that_was_done_before_the_database_failed(
    harness: AppHarness, settings: Settings
) -> None:
    # The next attempt to finish it did it once more.
    workspace = harness.workspace()
    await interrupted(harness, "alice", "/nexus fact set day Friday")
    (found,) = await adopted(harness, settings)

    async def run(given: Incoming) -> CommandAnswer:
        await run_command(harness.app, workspace, given)
        raise Unavailable("The database does not answer.")

    async def never(given: Incoming) -> CommandAnswer:
        raise AssertionError(given)

    with pytest.raises(Unavailable):
        await answer_interrupted(harness.app, workspace, found, as_given, run)
    await harness.command("bob", "/nexus fact set day Monday", room="board")
    answer = await answer_interrupted(harness.app, workspace, found, as_given, never)
    assert answer.text.startswith("`/nexus fact set day Friday` was done")
    with pytest.raises(Refused, match=DONE):
        await run_command(harness.app, workspace, found.incoming)
    assert (await harness.command("bob", "/nexus fact get day", room="board")).text.startswith('day = "Monday"')


async def test_a_command_that_is_forgotten_while_it_runs_stores_nothing(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its person is told that it will not run.
    await harness.say("alice", "hello", room="board")
    given = await interrupted(harness, "alice", "/nexus remember the vault is quokka7")
    judged, forgotten, changing = asyncio.Event(), asyncio.Event(), Call.changing

    @asynccontextmanager
    async def slow(call: Call) -> AsyncIterator[Transaction]:
        if call.incoming.id == given.id:
            judged.set()
            await forgotten.wait()
        async with changing(call) as tx:
            yield tx

    monkeypatch.setattr(Call, "changing", slow)
    running = asyncio.create_task(run_command(harness.app, harness.workspace(), given))
    await judged.wait()
    answer = await harness.command("alice", "/nexus forget quokka7 --yes", room="board")
    forgotten.set()
    assert "1 command" in answer.text
    with pytest.raises(Refused, match=FORGOTTEN_BEFORE_IT_WAS_DONE):
        await running
    assert "quokka7" not in (await harness.command("alice", "/nexus recall vault", room="board")).text


@pytest.mark.parametrize("forgets", [0, 1])
async def test_commands_are_taken_over_while_one_of_them_forgets_another(
    harness: AppHarness, settings: Settings, forgets: int
) -> None:
    # Each waited for a record of the other's, in one of the two orders, until the database ended one of them.
    workspace = harness.workspace()
    await harness.say("alice", "hello", room="board")
    given = [await interrupted(harness, "alice", f"/nexus remember the vault is quokka{number}") for number in range(2)]
    ids = sorted(command_id(workspace, each) for each in given)
    await unanswered(settings)  # as another process sees them after a restart of PostgreSQL

    async with harness.app.database.transaction(workspace.tenant_id) as tx:
        await tx.commands.lock()
        await tx.commands.hold(ids[forgets], harness.app.locks.number)
        adopting = asyncio.create_task(adopt_interrupted(harness.app, workspace))
        await until_stopped(settings, adopting)
        await tx.commands.discard_calls([ids[1 - forgets]])
    (found,) = await adopting
    assert command_id(workspace, found.incoming) == ids[forgets]


async def test_two_commands_that_forget_each_other_at_the_same_time_both_forget(harness: AppHarness) -> None:
    # Each waited for the other, mostly, until the database ended one of them.
    text = "/nexus forget everything --yes"
    for number in range(5):
        await harness.say("alice", "the vault is quokka7", room="board")
        given = [await interrupted(harness, "alice", text, f"{room} {number}") for room in ("attic", "cellar")]
        running = (run_command(harness.app, harness.workspace(), each) for each in given)
        for answer in await asyncio.gather(*running):
            assert answer.text.startswith("Forgotten for good: ")
    assert "quokka7" not in (await harness.command("alice", "/nexus recall vault", room="board")).text


@pytest.mark.parametrize(
    ("loosening", "back"),
    [
        ("opt-in", "opt-out"),
        ("memory on", "memory off"),
        ("memory mentions", "memory off"),
        ("rooms on", "rooms off"),
        ("digest daily", "digest off"),
        ("project assign apollo --yes", "project unassign --yes"),
        ("project member add apollo bob admin", "project member remove apollo bob"),
        ("project member apollo bob", "project member remove apollo bob"),
    ],
)
async def test_what_loosens_is_not_run_after_an_interruption_since_its_sender_may_have_taken_it_back(
    harness: AppHarness, settings: Settings, loosening: str, back: str
) -> None:
    await harness.say("alice", "hello", room="board")
    if loosening.startswith("project"):
        await harness.say("bob", "hello", room="board")
        await harness.command("alice", "/nexus project create apollo", room="board")
        await harness.command("alice", "/nexus project member add apollo bob", room="board")
        await harness.command("alice", "/nexus project assign apollo --yes", room="board")
    workspace, direct = harness.workspace(), loosening == "rooms on"
    place = Place(ConversationKind.DM, "nexus") if direct else BOARD
    sent = incoming(workspace, place, "alice", f"/nexus {loosening}", harness.clock.tick(), id="call")
    assert await begin_command(harness.app, workspace, sent, {})
    await harness.command("alice", f"/nexus {back}", **({"dm": "nexus"} if direct else {"room": "board"}))
    (found,) = await adopted(harness, settings)
    with pytest.raises(Refused, match="was interrupted by my restart and not done"):
        await run_command(harness.app, workspace, found.incoming, late=True)


DIRECT = Place(ConversationKind.DM, "nexus")


async def moved_late(
    harness: AppHarness, settings: Settings, share: str, back: str, *, place: Place = DIRECT
) -> InterruptedCommand:
    """A `/nexus share` of alice's only memory that was interrupted, and adopted after another one was given."""
    workspace = harness.workspace()
    listed = await harness.command("alice", "/nexus share", dm="nexus")
    id = listed.text.split()[0]
    sent = incoming(workspace, place, "alice", f"/nexus share {id} {share} --yes", harness.clock.tick(), id="call")
    assert await begin_command(harness.app, workspace, sent, {})
    with suppress(BadInput):  # it is there already
        await harness.command("alice", f"/nexus share {id} {back} --yes", dm="nexus")
    (found,) = await adopted(harness, settings)
    return found


@pytest.mark.parametrize("place", [DIRECT, BOARD])
async def test_an_interrupted_share_does_not_open_what_its_owner_has_closed_since(
    harness: AppHarness, settings: Settings, place: Place
) -> None:
    # README: what is said in a DM, its person alone is answered from, until they share it; here they took that back.
    await harness.say("alice", "hello", room="board")
    await harness.say("alice", "hello", dm="nexus")
    await harness.command("alice", "/nexus remember the vault is quokka7", dm="nexus")
    share = "everywhere" if place.kind is ConversationKind.DM else "here"
    found = await moved_late(harness, settings, share, "here", place=place)
    with pytest.raises(Refused, match="was interrupted by my restart and not done"):
        await run_command(harness.app, harness.workspace(), found.incoming, late=True)
    assert "your DM" in (await harness.command("alice", "/nexus share", dm="nexus")).text


async def test_an_interrupted_share_that_closes_something_is_run(harness: AppHarness, settings: Settings) -> None:
    await harness.say("alice", "hello", dm="nexus")
    await harness.command("alice", "/nexus remember the vault is quokka7 --everywhere --yes", dm="nexus")
    found = await moved_late(harness, settings, "here", "everywhere")
    answer = await run_command(harness.app, harness.workspace(), found.incoming, late=True)
    assert "your DM" in answer.text


@pytest.mark.parametrize("isolated", [True, False])
async def test_an_interrupted_command_takes_no_room_out_of_an_isolated_project(
    harness: AppHarness, settings: Settings, isolated: bool
) -> None:
    flag = " --isolated" if isolated else ""
    await harness.say("alice", "hello", room="board")
    await harness.command("alice", f"/nexus project create apollo{flag}", room="board")
    await harness.command("alice", "/nexus project assign apollo --yes", room="board")
    await interrupted(harness, "alice", "/nexus project unassign --yes")
    (found,) = await adopted(harness, settings)
    if isolated:
        with pytest.raises(Refused, match="was interrupted by my restart and not done"):
            await run_command(harness.app, harness.workspace(), found.incoming, late=True)
    else:
        answer = await run_command(harness.app, harness.workspace(), found.incoming, late=True)
        assert answer.text.startswith("Removed from apollo")


@pytest.mark.parametrize("since", [True, False])
async def test_an_interrupted_command_sets_no_fact_that_was_set_since(
    harness: AppHarness, settings: Settings, since: bool
) -> None:
    # docs/architecture.md: a newer fact supersedes an older one. This one came later, and was given earlier.
    await harness.say("alice", "hello", room="board")
    await harness.command("alice", "/nexus fact set deploy_day Thursday", room="board")
    await interrupted(harness, "alice", "/nexus fact set deploy_day Friday")
    if since:
        await harness.command("alice", "/nexus fact set deploy_day Monday", room="board")
    (found,) = await adopted(harness, settings)
    if since:
        with pytest.raises(Refused, match="was interrupted by my restart and not done"):
            await run_command(harness.app, harness.workspace(), found.incoming, late=True)
    else:
        await run_command(harness.app, harness.workspace(), found.incoming, late=True)
    shown = (await harness.command("alice", "/nexus fact get deploy_day", room="board")).text
    assert ("Monday" if since else "Friday") in shown


async def test_a_command_is_not_run_whose_message_was_deleted_since(harness: AppHarness, settings: Settings) -> None:
    # docs/architecture.md: a message that is deleted on its platform is gone everywhere. On Slack commands may be
    # messages.
    await harness.say("alice", "hello", room="board")
    given = await interrupted(harness, "alice", "/nexus remember the vault is quokka7")
    (found,) = await adopted(harness, settings)
    workspace = harness.workspace()
    agents, now = harness.app.directory.agents(workspace.tenant_id), harness.clock.tick()
    await change_message(harness.app.database, workspace, agents, BOARD, "alice", given.id, None, (), now)

    async def as_it_was(given: Incoming) -> Incoming:
        return given

    async def never(given: Incoming) -> CommandAnswer:
        raise AssertionError(given)

    answer = await answer_interrupted(harness.app, workspace, found, as_it_was, never)
    assert answer.text == FORGOTTEN


WRITES = {
    "remember the vault is quokka7": "recall vault",
    "fact set vault quokka7": "fact list",
    "landmark add the vault is quokka7": "landmark list",
    "remind here tomorrow 9:00 the vault is quokka7": "remind list",
}


async def open_board(harness: AppHarness) -> None:
    workspace = harness.workspace()
    agents, now = harness.app.directory.agents(workspace.tenant_id), harness.clock.tick()
    await set_room_private(harness.app.database, workspace, agents, "board", False, now)


@pytest.mark.parametrize("text", WRITES)
@pytest.mark.parametrize("stated", [True, None])
async def test_an_interrupted_command_of_a_private_room_stores_nothing_in_the_opened_one(
    harness: AppHarness, settings: Settings, text: str, stated: bool | None
) -> None:
    # README: what was said in a room before it was made public is used for no answer; what is said since then is.
    await harness.say("alice", "hello", room="board", private=True)
    place = replace(BOARD, private=stated)
    sent = incoming(harness.workspace(), place, "alice", f"/nexus {text}", harness.clock.tick(), id="call")
    assert await begin_command(harness.app, harness.workspace(), sent, {})
    await open_board(harness)
    await harness.say("alice", "the heron is at the lake", room="board", private=False)
    (found,) = await adopted(harness, settings)
    with pytest.raises(Refused, match="This room was made public"):
        await run_command(harness.app, harness.workspace(), found.incoming, late=True)
    assert "quokka7" not in (await harness.command("alice", f"/nexus {WRITES[text]}", room="board")).text
    assert not await is_private(harness)
    assert "heron" in (await harness.command("alice", "/nexus recall heron", room="board")).text


@pytest.mark.parametrize("text", WRITES)
async def test_a_command_of_a_private_room_stores_nothing_in_it_once_it_is_opened_meanwhile(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    # The command was judged before, and stored after.
    await harness.say("alice", "hello", room="board", private=True)
    changing = Call.changing

    @asynccontextmanager
    async def opened_before(call: Call) -> AsyncIterator[Transaction]:
        await open_board(harness)
        async with changing(call) as tx:
            yield tx

    with monkeypatch.context() as patched:
        patched.setattr(Call, "changing", opened_before)
        with pytest.raises(Refused, match="This room was made public"):
            await harness.command("alice", f"/nexus {text}", room="board", private=True)
    assert "quokka7" not in (await harness.command("alice", f"/nexus {WRITES[text]}", room="board")).text


async def test_an_interrupted_command_says_that_its_room_was_private_then(
    harness: AppHarness, settings: Settings
) -> None:
    await harness.say("alice", "hello", room="board", private=False)
    place = replace(BOARD, private=True)
    sent = incoming(harness.workspace(), place, "alice", "/nexus fact list", harness.clock.tick(), id="call")
    assert await begin_command(harness.app, harness.workspace(), sent, {})
    (found,) = await adopted(harness, settings)
    await run_command(harness.app, harness.workspace(), found.incoming, late=True)
    assert await is_private(harness)


@pytest.mark.parametrize("tightening", ["opt-out", "memory off", "memory"])
async def test_what_tightens_or_only_looks_is_run_after_an_interruption(
    harness: AppHarness, settings: Settings, tightening: str
) -> None:
    await harness.say("alice", "hello", room="board")
    await interrupted(harness, "alice", f"/nexus {tightening}")
    (found,) = await adopted(harness, settings)
    assert (await run_command(harness.app, harness.workspace(), found.incoming, late=True)).text


async def are_waiting(settings: Settings, count: int) -> bool:
    """Whether so many transactions wait for a lock."""
    connection = await asyncpg.connect(settings.database_url)
    try:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        return int(await connection.fetchval(query)) >= count
    finally:
        await connection.close()


async def test_commands_that_lock_people_do_not_wait_in_a_circle_for_one_that_forgets_them(
    harness: AppHarness, settings: Settings
) -> None:
    # One held its own record and waited for the people, one held the people and waited for its record, and an erasure
    # waited for both records, until the database ended one of them.
    for user in ("alice", "bob"):
        await harness.say(user, "hello", room="board")
    await make_admin(settings, "alice")
    await harness.command("alice", "/nexus project create apollo", room="board")
    await harness.command("alice", "/nexus project assign apollo --yes", room="board")
    workspace = harness.workspace()
    sent = partial(incoming, workspace, BOARD, "alice")
    adding = sent("/nexus project member add apollo bob write", harness.clock.tick(), id="add")
    creating = next(  # its record comes later in the order in which records are locked
        each
        for each in (sent("/nexus project create zeus", harness.clock.tick(), id=f"create {n}") for n in range(100))
        if command_id(workspace, each) > command_id(workspace, adding)
    )
    for each in (adding, creating):
        assert await begin_command(harness.app, workspace, each, {})
    running: list[asyncio.Task[CommandAnswer]] = []
    async with harness.app.database.transaction(workspace.tenant_id) as tx:
        await tx.people.lock()
        for number, each in enumerate((adding, creating), 1):
            running.append(asyncio.create_task(run_command(harness.app, workspace, each)))
            await until(partial(are_waiting, settings, number))
        erase = harness.command("alice", "/nexus erase project apollo --yes", room="board")
        running.append(asyncio.create_task(erase))
        await until(partial(are_waiting, settings, 3))
    added, created, erased = [answer.text for answer in await asyncio.gather(*running)]
    assert added == "bob is in apollo with the role write."
    assert created.startswith("Created the project zeus")
    assert erased.startswith("Forgotten for good")
