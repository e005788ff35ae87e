"""The path of a message from end to end, on real stores."""

from tests.support.harness import AppHarness


async def test_a_message_in_a_room_is_recalled_in_that_room(harness: AppHarness) -> None:
    await harness.say("carol", "we decided to deploy on Fridays", room="general")
    reply = await harness.ask("alice", "@nexus when do we deploy?", room="general")
    assert "Fridays" in reply.text


async def test_a_message_in_a_dm_is_not_recalled_in_a_room(harness: AppHarness) -> None:
    await harness.say("bob", "my salary is 91k", dm="nexus")
    reply = await harness.ask("alice", "@nexus what is the salary of bob?", room="general")
    assert reply.prompt is not None
    assert "91k" not in reply.prompt
    again = await harness.ask("bob", "what is my salary?", dm="nexus")
    assert again.prompt is not None
    assert "91k" in again.prompt


async def test_an_agent_sees_its_own_replies_in_a_dm_and_in_a_session(harness: AppHarness) -> None:
    for where in ({"dm": "nexus"}, {"session": "s1"}):
        first = await harness.ask("bob", "hello", **where)
        prompt = (await harness.compose("bob", "what did you just say?", **where)).prompt
        [own] = [m.content for m in prompt.role_messages if m.role == "assistant"]
        assert first.text.startswith(f"{own} (offline: "), "the notice is not shown to a model"


async def test_a_question_about_an_earlier_time_sees_no_later_landmark(harness: AppHarness) -> None:
    await harness.say("alice", "hello", room="general")
    at = harness.clock.now()
    harness.clock.tick(86_400)
    await harness.command("alice", "/nexus landmark add we moved to Berlin", room="general")
    assert "Berlin" in (await harness.compose("alice", "@nexus where are we?", room="general")).prompt.as_text()
    harness.clock.set(at)
    assert "Berlin" not in (await harness.compose("alice", "@nexus where are we?", room="general")).prompt.as_text()
