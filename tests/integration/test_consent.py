"""Only what the recording policy and the author allow is stored, and one person may link several users."""

import pytest

from bot.script.places import incoming, place_of
from composer.errors import BadInput, NexusError, NotFound, Refused
from tests.support.harness import AppHarness


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
        await harness.command("bob", "/nexus why", room="general")
    await harness.command("bob", "/nexus opt-in", room="general")
    await harness.say("bob", "the wombat is red", room="general")
    assert "the wombat is red" in await prompt_text(harness, "ann", "and the wombat?", room="general")


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


async def test_linked_users_share_private_memories_until_they_unlink(harness: AppHarness) -> None:
    await harness.say("ann", "my cat is called Mia", dm="nexus")
    await harness.say("annika", "hello", dm="nexus")
    await harness.say("eve", "hello", dm="nexus")
    before = await prompt_text(harness, "annika", "what is my cat called?", dm="nexus")
    assert "Mia" not in before
    code = (await harness.command("ann", "/nexus link", dm="nexus")).text.split("/nexus link ")[1].split()[0]
    with pytest.raises(BadInput):
        await harness.command("ann", f"/nexus link {code}", dm="nexus")
    code = (await harness.command("ann", "/nexus link", dm="nexus")).text.split("/nexus link ")[1].split()[0]
    await harness.command("annika", f"/nexus link {code.lower()}", dm="nexus")
    assert "Mia" in await prompt_text(harness, "annika", "what is my cat called?", dm="nexus")
    assert "Mia" not in await prompt_text(harness, "eve", "what is my cat called?", dm="nexus")
    with pytest.raises(NotFound):
        await harness.command("eve", f"/nexus link {code}", dm="nexus")
    await harness.command("annika", "/nexus unlink", dm="nexus")
    assert "Mia" not in await prompt_text(harness, "annika", "what is my cat called?", dm="nexus")


async def test_the_profile_of_a_linked_person_is_read_in_a_room_whichever_user_posts(harness: AppHarness) -> None:
    await harness.command("ann", "/nexus remember I speak Finnish --everywhere", dm="nexus")
    await harness.say("annika", "hello", room="general")
    assert "I speak Finnish" not in await prompt_text(harness, "annika", "which language do I speak?", room="general")
    code = (await harness.command("ann", "/nexus link", dm="nexus")).text.split("/nexus link ")[1].split()[0]
    await harness.command("annika", f"/nexus link {code}", dm="nexus")
    assert "I speak Finnish" in await prompt_text(harness, "annika", "which language do I speak?", room="general")


async def test_a_link_code_expires(harness: AppHarness) -> None:
    code = (await harness.command("ann", "/nexus link", dm="nexus")).text.split("/nexus link ")[1].split()[0]
    harness.clock.tick(11 * 60)
    with pytest.raises(NexusError):
        await harness.command("annika", f"/nexus link {code}", dm="nexus")
