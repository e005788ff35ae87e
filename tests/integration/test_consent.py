"""Only what the recording policy and the author allow is stored, and one person may link several users."""

from collections.abc import AsyncIterator

import pytest

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.errors import BadInput, NotFound, Refused
from composer.model import ConversationKind, Place
from composer.people.credentials.leaving import end_access, holders
from composer.settings import Settings, TenantSettings
from tests.support.harness import AppHarness, open_harness


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    """An open app, in which one tenant owns two workspaces."""
    tenants = {"acme": TenantSettings(workspaces=("acme", "acme-eu"))}
    async with open_harness(settings.model_copy(update={"tenants": tenants})) as opened:
        yield opened


async def prompt_text(harness: AppHarness, user: str, text: str, **where: str) -> str:
    composed = await harness.compose(user, text, **where)
    return composed.prompt.as_text()


async def test_a_room_with_memory_off_stores_nothing_beyond_the_answer(harness: AppHarness) -> None:
    await harness.say("ann", "hello", room="general")
    await harness.command("ann", "/nexus memory off", room="general")
    await harness.say("bob", "the wombat is blue", room="general")
    reply = await harness.ask("bob", "@nexus what did I say of the walrus?", room="general")
    assert reply.text
    await harness.command("ann", "/nexus memory on", room="general")
    prompt = await prompt_text(harness, "ann", "what of the wombat and the walrus?", room="general")
    assert "the wombat is blue" not in prompt
    assert "what did I say of the walrus" not in prompt


async def test_a_room_with_mentions_only_stores_only_messages_to_the_agent(harness: AppHarness) -> None:
    await harness.say("ann", "hello", room="general")
    await harness.command("ann", "/nexus memory mentions only", room="general")
    await harness.say("bob", "the wombat is blue", room="general")
    await harness.say("bob", "@nexus the walrus is green", room="general")
    prompt = await prompt_text(harness, "ann", "what of the wombat and the walrus?", room="general")
    assert "the wombat is blue" not in prompt
    assert "the walrus is green" in prompt


async def test_only_a_room_admin_changes_the_recording_policy(harness: AppHarness) -> None:
    await harness.say("ann", "hello", room="general")
    await harness.say("bob", "hello", room="general")
    with pytest.raises(Refused):
        await harness.command("bob", "/nexus memory off", room="general")
    with pytest.raises(BadInput):
        await harness.command("ann", "/nexus memory sometimes", room="general")


async def test_the_messages_of_a_user_who_opted_out_are_answered_and_then_erased(harness: AppHarness) -> None:
    await harness.command("bob", "/nexus opt-out", room="general")
    await harness.say("bob", "the wombat is blue", room="general")
    reply = await harness.ask("bob", "@nexus my walrus is green, is it?", room="general")
    assert reply.prompt is not None
    assert "my walrus is green" in reply.prompt
    await harness.say("ann", "the wombat again", room="general")
    prompt = await prompt_text(harness, "ann", "what of the wombat and the walrus?", room="general")
    assert "the wombat is blue" not in prompt
    assert "my walrus is green" not in prompt
    with pytest.raises(NotFound):
        await harness.command("bob", "/nexus why --details", room="general")
    await harness.command("bob", "/nexus opt-in", room="general")
    await harness.say("bob", "the wombat is red", room="general")
    assert "the wombat is red" in await prompt_text(harness, "ann", "and the wombat?", room="general")


async def test_an_edit_that_changes_nothing_erases_nothing_after_an_opt_out(harness: AppHarness) -> None:
    await harness.say("bob", "the wombat is blue", id="said", room="general")
    await harness.command("bob", "/nexus opt-out", room="general")
    await harness.change("said", "the wombat is blue")  # platforms send one when they unfurl a link
    assert "the wombat is blue" in await prompt_text(harness, "ann", "the wombat?", room="general")
    await harness.change("said", "the wombat is green")
    assert "the wombat is" not in await prompt_text(harness, "ann", "the wombat?", room="general")


async def test_ephemeral_messages_do_not_move_the_view_of_others(harness: AppHarness) -> None:
    await harness.command("carol", "/nexus opt-out", dm="nexus")

    async def add_messages(room: str, first: int) -> None:
        place, workspace = place_of(room, None, None), harness.workspace()
        messages = [
            incoming(workspace, place, "ann", f"plan {n}", harness.clock.tick(), id=f"p{n}")
            for n in range(first, first + 30)
        ]
        await harness.app.receive(workspace, messages)

    views = []
    for room, asks in (("general", 0), ("office", 7)):
        await add_messages(room, 0)
        for n in range(asks):
            await harness.ask("carol", f"@nexus hush {n}", room=room)
        await add_messages(room, 30)
        prompt = (await harness.compose("bob", "what now?", room=room)).prompt
        (view,) = (section for section in prompt.sections if section.name == "WORKING")
        views.append([item.text for item in view.sources])
    assert views[0] == views[1] != []


async def test_an_ephemeral_message_is_in_nobody_elses_view_before_it_is_erased(harness: AppHarness) -> None:
    await harness.command("bob", "/nexus opt-out", room="general")
    workspace = harness.workspace()
    message = incoming(
        workspace, place_of("general", None, None), "bob", "@nexus my walrus is green", harness.clock.tick(), id="w1"
    )
    await harness.app.receive(workspace, [message])
    prompt = await prompt_text(harness, "ann", "the walrus?", room="general")
    assert "my walrus is green" not in prompt
    await harness.app.turns.settle()


async def link_code(harness: AppHarness) -> str:
    return (await harness.command("ann", "/nexus link", dm="nexus")).text.split("/nexus link ")[1].split()[0]


async def in_other_workspace(harness: AppHarness, user: str, text: str, **where: str) -> str:
    """The prompt for a question in the other workspace."""
    return (await harness.compose(user, text, workspace="acme-eu", **where)).prompt.as_text()


async def test_linked_users_share_private_memories_until_they_unlink(harness: AppHarness) -> None:
    await harness.say("ann", "my cat is called Mia", dm="nexus")
    for user in ("annika", "eve"):
        await harness.say(user, "hello", dm="nexus", workspace="acme-eu")
    question = "what is my cat called?"
    assert "Mia" not in await in_other_workspace(harness, "annika", question, dm="nexus")
    code = await link_code(harness)
    with pytest.raises(BadInput, match="your own code"):
        await harness.command("ann", f"/nexus link {code}", dm="nexus")
    shown = await harness.command("annika", f"/nexus link {code.lower()}", dm="nexus", workspace="acme-eu")
    assert "belongs to ann on console (acme)" in shown.text
    assert "Mia" not in await in_other_workspace(harness, "annika", question, dm="nexus"), "it was only shown"
    await harness.command("annika", f"/nexus link {code.lower()} --yes", dm="nexus", workspace="acme-eu")
    assert "Mia" in await in_other_workspace(harness, "annika", question, dm="nexus")
    assert "Mia" not in await in_other_workspace(harness, "eve", question, dm="nexus")
    report = (await harness.command("ann", "/nexus privacy", dm="nexus")).text
    assert report.count("your DM with @nexus: ") == 1, "what is counted of both accounts is one number"
    assert "your DM with @nexus: 2 answers, 1 memory, 2 messages." in report
    with pytest.raises(NotFound):
        await harness.command("eve", f"/nexus link {code} --yes", dm="nexus", workspace="acme-eu")
    await harness.command("annika", "/nexus unlink", dm="nexus", workspace="acme-eu")
    assert "Mia" not in await in_other_workspace(harness, "annika", question, dm="nexus")


async def test_the_profile_of_a_linked_person_is_read_in_a_room_whichever_user_posts(harness: AppHarness) -> None:
    await harness.command("ann", "/nexus remember I speak Finnish --everywhere --yes", dm="nexus")
    await harness.say("annika", "hello", room="general", workspace="acme-eu")
    question = "which language do I speak?"
    assert "I speak Finnish" not in await in_other_workspace(harness, "annika", question, room="general")
    code = await link_code(harness)
    await harness.command("annika", f"/nexus link {code} --yes", dm="nexus", workspace="acme-eu")
    assert "I speak Finnish" in await in_other_workspace(harness, "annika", question, room="general")


async def test_a_link_code_expires(harness: AppHarness) -> None:
    code = await link_code(harness)
    harness.clock.tick(11 * 60)
    with pytest.raises(NotFound):
        await harness.command("annika", f"/nexus link {code} --yes", dm="nexus", workspace="acme-eu")


async def test_a_link_code_is_taken_no_later_by_a_command_that_a_restart_interrupted(harness: AppHarness) -> None:
    # It is run up to a quarter of an hour after it was given; the person was promised ten minutes.
    code = await link_code(harness)
    workspace, place = harness.workspace("acme-eu"), Place(ConversationKind.DM, "nexus")
    at = harness.clock.tick(9 * 60)
    entered = incoming(workspace, place, "annika", f"/nexus link {code} --yes", at, id="entered")
    harness.clock.tick(2 * 60)
    with pytest.raises(NotFound, match="has expired"):
        await run_command(harness.app, workspace, entered)


@pytest.mark.parametrize("left", [False, True])
async def test_a_link_code_ends_when_its_person_forgets_everything_or_leaves(harness: AppHarness, left: bool) -> None:
    # README: whoever enters it reads their private memories. With all else that opens these it goes.
    await harness.say("ann", "hello", dm="nexus")
    code = await link_code(harness)
    if left:
        assert await holders(harness.app.database, harness.workspace()) == ("ann",)
        await end_access(harness.app.database, harness.workspace(), "ann")
    else:
        await harness.command("ann", "/nexus forget everything --yes", dm="nexus")
    await harness.say("ann", "my cat is called Mia", dm="nexus")
    with pytest.raises(NotFound):
        await harness.command("annika", f"/nexus link {code} --yes", dm="nexus", workspace="acme-eu")


async def test_no_code_is_shown_or_entered_where_others_read(harness: AppHarness) -> None:
    code = await link_code(harness)
    for place in ({"room": "general"}, {"session": "s1"}):
        for text in ("/nexus link", f"/nexus link {code}", f"/nexus link {code} --yes"):
            with pytest.raises(BadInput, match="works only in a DM"):
                await harness.command("annika", text, workspace="acme-eu", **place)


async def test_accounts_of_one_workspace_are_never_linked(harness: AppHarness) -> None:
    await harness.say("ann", "my cat is called Mia", dm="nexus")
    code = await link_code(harness)
    for text in (f"/nexus link {code}", f"/nexus link {code} --yes"):
        with pytest.raises(Refused, match="same workspace"):
            await harness.command("mallory", text, dm="nexus")
    await harness.command("annika", f"/nexus link {code} --yes", dm="nexus", workspace="acme-eu")
    further = await harness.command("annika", "/nexus link", dm="nexus", workspace="acme-eu")
    code = further.text.split("/nexus link ")[1].split()[0]
    with pytest.raises(Refused, match="same workspace"):  # nor over a third account
        await harness.command("mallory", f"/nexus link {code} --yes", dm="nexus")
    assert "Mia" not in await prompt_text(harness, "mallory", "what is my cat called?", dm="nexus")
