"""A button does what was shown: not less because the room went on talking, and never something else."""

from datetime import timedelta
from functools import partial
from typing import Any

import asyncpg
import pytest

from bot.commands.command import CommandAnswer
from bot.commands.confirmations import CANCELLED, LIFETIME, USED, Begin, Confirmations
from bot.commands.idempotency import begin_command
from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.errors import NexusError, NotFound, Refused, Unavailable
from composer.model import Incoming
from tests.support.harness import AppHarness

ROOM: dict[str, Any] = {"room": "general"}


def given(harness: AppHarness, text: str) -> Incoming:
    return incoming(harness.workspace(), place_of("general", None, None), "alice", text, harness.clock.tick())


async def pressed(
    harness: AppHarness, confirmations: Confirmations, button: str | None, begin: Begin | None = None
) -> CommandAnswer:
    async def run(command: Incoming, *, preview: bool = False) -> CommandAnswer:
        try:
            return await run_command(harness.app, harness.workspace(), command, preview=preview)
        except NexusError as error:
            return CommandAnswer(str(error))

    assert button is not None
    begin = begin or partial(begin_command, harness.app, harness.workspace(), address={})
    return (await confirmations.press(button, given(harness, ""), harness.clock.now(), run, begin))[1]


async def shown(harness: AppHarness, confirmations: Confirmations, text: str) -> str | None:
    command = given(harness, text)
    return confirmations.button(command, await run_command(harness.app, harness.workspace(), command))


async def test_a_button_works_in_a_room_that_goes_on_talking(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    confirmations = Confirmations()
    button = await shown(harness, confirmations, "/nexus erase room")
    await harness.say("bob", "one more message", **ROOM)
    assert "Forgotten for good: 2 messages" in (await pressed(harness, confirmations, button)).text


async def test_a_button_that_was_pressed_keeps_none_of_the_words_that_it_forgot(harness: AppHarness) -> None:
    for _ in range(2):
        await harness.say("alice", "the vault is quokka7", **ROOM)
    confirmations = Confirmations()
    button = await shown(harness, confirmations, "/nexus forget quokka7")
    assert "quokka7" in str(dict(confirmations._waiting))
    assert "Forgotten for good: 2 messages" in (await pressed(harness, confirmations, button)).text
    assert "quokka7" not in str((dict(confirmations._waiting), dict(confirmations._used)))


async def test_a_press_that_can_not_be_recorded_does_nothing_and_the_button_still_works(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    confirmations = Confirmations()
    button = await shown(harness, confirmations, "/nexus erase room")

    async def unavailable(command: Incoming) -> bool:
        raise Unavailable("The database does not answer.")

    with pytest.raises(Unavailable):
        await pressed(harness, confirmations, button, unavailable)
    assert "Forgotten for good: 1 message" in (await pressed(harness, confirmations, button)).text
    with pytest.raises(Refused, match="pressed this button before"):
        await pressed(harness, confirmations, button)


async def test_a_press_that_was_recorded_before_does_nothing(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    confirmations = Confirmations()
    button = await shown(harness, confirmations, "/nexus erase room")

    async def known(command: Incoming) -> bool:
        return False

    with pytest.raises(Refused) as refused:
        await pressed(harness, confirmations, button, known)
    assert str(refused.value) == USED
    assert "1 message" in (await harness.command("alice", "/nexus erase room", **ROOM)).text


async def test_looking_again_never_does_the_act(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    confirmations = Confirmations()
    button = await shown(harness, confirmations, "/nexus project assign apollo")
    await harness.command("alice", "/nexus project assign apollo --yes", **ROOM)  # so the act opens nothing any more
    before = await audited(harness)
    assert "nothing was done" in (await pressed(harness, confirmations, button)).text
    assert await audited(harness) == before


async def audited(harness: AppHarness) -> int:
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM audit_events") or 0)
    finally:
        await connection.close()


async def namesake(harness: AppHarness, owner: str, *members: str) -> None:
    """A project apollo of `owner` with these members, who see no other by that name before."""
    await harness.command(owner, "/nexus project create apollo", dm="nexus")
    for member in members:
        await harness.command(owner, f"/nexus project member add apollo {member}", dm="nexus")
        await harness.command(member, "/nexus project accept apollo", dm="nexus")


async def test_a_button_puts_a_room_into_no_other_project_of_the_name(harness: AppHarness) -> None:
    for user in ("alice", "bob", "mallory"):
        await harness.say(user, "hello", room="lobby")
    await harness.say("alice", "hello", **ROOM)
    await namesake(harness, "bob", "alice")
    confirmations = Confirmations()
    button = await shown(harness, confirmations, "/nexus project assign apollo")
    await harness.command("bob", "/nexus project member remove apollo alice", dm="nexus")
    await namesake(harness, "mallory", "alice")
    again = await pressed(harness, confirmations, button)
    assert again.confirm, "it asks again"
    listed = (await harness.command("mallory", "/nexus project list", **ROOM)).text
    assert "rooms: none" in listed


async def test_a_button_writes_for_no_other_project_of_the_name(harness: AppHarness) -> None:
    await harness.say("mallory", "I open this room", **ROOM)
    await harness.say("alice", "hello", **ROOM)
    await namesake(harness, "alice", "mallory")
    await harness.command("mallory", "/nexus project assign apollo --yes", **ROOM)
    confirmations = Confirmations()
    button = await shown(harness, confirmations, "/nexus remember the launch code is walrus --project")
    await harness.command("mallory", "/nexus project member remove apollo mallory", dm="nexus")
    await namesake(harness, "mallory", "alice")
    await harness.command("mallory", "/nexus project assign apollo --yes", **ROOM)
    again = await pressed(harness, confirmations, button)
    assert again.confirm
    assert "project apollo:" in again.text, "it asks again, and says which of the two"
    assert "walrus" not in (await harness.command("alice", "/nexus recall launch code", **ROOM)).text


async def test_a_button_shares_with_no_other_project_of_the_name(harness: AppHarness) -> None:
    await harness.say("mallory", "I open this room", **ROOM)
    await harness.say("alice", "hello", **ROOM)
    await harness.command("alice", "/nexus remember the launch code is walrus", dm="nexus")
    id = (await harness.command("alice", "/nexus share", dm="nexus")).text.split()[0]
    await namesake(harness, "alice", "mallory")
    await harness.command("mallory", "/nexus project assign apollo --yes", **ROOM)
    confirmations = Confirmations()
    button = await shown(harness, confirmations, f"/nexus share {id} project")
    await harness.command("mallory", "/nexus project member remove apollo mallory", dm="nexus")
    await namesake(harness, "mallory", "alice")
    await harness.command("mallory", "/nexus project assign apollo --yes", **ROOM)
    again = await pressed(harness, confirmations, button)
    assert again.confirm
    assert "the rooms and sessions of project apollo:" in again.text
    assert "walrus" not in (await harness.command("alice", "/nexus recall launch code", **ROOM)).text


async def test_the_line_that_confirms_names_one_project_for_good(harness: AppHarness) -> None:
    for user in ("alice", "bob", "mallory"):
        await harness.say(user, "hello", room="lobby")
    await harness.say("alice", "hello", **ROOM)
    await namesake(harness, "bob", "alice")
    asked = await harness.command("alice", "/nexus project assign apollo", **ROOM)
    await harness.command("bob", "/nexus project member remove apollo alice", dm="nexus")
    await namesake(harness, "mallory", "alice")
    assert asked.text.endswith(f"To confirm: {asked.confirm}")
    with pytest.raises(NotFound):
        await harness.command("alice", asked.confirm, **ROOM)


async def test_what_is_opened_is_said_by_a_name_that_is_distinct(harness: AppHarness) -> None:
    for user in ("alice", "bob"):
        await harness.say(user, "hello", **ROOM)
    await namesake(harness, "alice")
    await harness.command("alice", "/nexus project assign apollo --yes", **ROOM)
    await namesake(harness, "bob", "alice")
    listed = (await harness.command("alice", "/nexus project list", **ROOM)).text
    names = [line.split()[0] for line in listed.splitlines()]
    here = next(line.split()[0] for line in listed.splitlines() if "#general" in line)
    (other,) = set(names) - {here}
    moved = (await harness.command("alice", f"/nexus project assign {other}", **ROOM)).text
    assert f"recall what {other} remembers" in moved
    assert f"nobody in {here} recalls" in moved
    left = (await harness.command("alice", "/nexus project unassign", **ROOM)).text
    assert f"nobody in {here} recalls" in left


@pytest.mark.parametrize(
    ("word", "done"),
    [("yes", True), ("Yes!", True), ("ja", True), ("はい", True), ("ok.", True), ("cancel", False), ("Nein", False)],
)
async def test_a_question_is_answered_by_a_word(harness: AppHarness, word: str, done: bool) -> None:
    await harness.say("alice", "hello", **ROOM)
    confirmations = Confirmations()
    await shown(harness, confirmations, "/nexus erase room")
    typed = confirmations.typed(given(harness, word))
    answer = await pressed(harness, confirmations, typed)
    assert ("Forgotten for good: 1 message" in answer.text) is done
    assert done or answer.text == CANCELLED
    assert confirmations.typed(given(harness, word)) is None, "it was answered"


@pytest.mark.parametrize("text", ["yes please do the other thing", "yesterday", "no idea", "", "/nexus help"])
async def test_another_message_answers_no_question(harness: AppHarness, text: str) -> None:
    await harness.say("alice", "hello", **ROOM)
    confirmations = Confirmations()
    await shown(harness, confirmations, "/nexus erase room")
    assert confirmations.typed(given(harness, text)) is None


async def test_a_word_answers_what_its_writer_was_asked_there_last(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    confirmations = Confirmations()
    assert confirmations.typed(given(harness, "yes")) is None, "nothing was asked"
    await shown(harness, confirmations, "/nexus erase room")
    last = await shown(harness, confirmations, "/nexus forget hello")
    assert confirmations.typed(given(harness, "yes")) == last
    bob = incoming(harness.workspace(), place_of("general", None, None), "bob", "yes", harness.clock.tick())
    elsewhere = incoming(harness.workspace(), place_of("random", None, None), "alice", "yes", harness.clock.tick())
    assert confirmations.typed(bob) is None
    assert confirmations.typed(elsewhere) is None
    harness.clock.set(harness.clock.now() + LIFETIME + timedelta(seconds=1))
    assert confirmations.typed(given(harness, "yes")) is None, "it was long ago"


async def test_a_word_below_another_message_answers_no_question_and_the_button_still_works(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    confirmations = Confirmations()
    button = await shown(harness, confirmations, "/nexus erase room")
    assert confirmations.typed(given(harness, "when is the launch?")) is None
    assert confirmations.typed(given(harness, "yes")) is None, "it may answer what an agent has asked since"
    assert "Forgotten for good: 1 message" in (await pressed(harness, confirmations, button)).text


async def test_cancel_takes_the_question_back(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    confirmations = Confirmations()
    button = await shown(harness, confirmations, "/nexus erase room")
    assert button is not None
    assert (await pressed(harness, confirmations, confirmations.cancel(button))).text == CANCELLED
    with pytest.raises(Refused, match="has expired"):
        await pressed(harness, confirmations, button)
