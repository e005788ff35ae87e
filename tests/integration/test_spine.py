"""The way of a message, end to end, on real stores."""

from tests.conftest import Stage


async def test_what_was_said_in_a_room_is_recalled_in_it(stage: Stage) -> None:
    await stage.say("carol", "we decided to deploy on Fridays", room="general")
    reply = await stage.ask("alice", "@nexus when do we deploy?", room="general")
    assert "Fridays" in reply.text


async def test_what_was_said_in_a_dm_is_not_known_in_a_room(stage: Stage) -> None:
    await stage.say("bob", "my salary is 91k", dm="nexus")
    reply = await stage.ask("alice", "@nexus what is the salary of bob?", room="general")
    assert reply.prompt is not None
    assert "91k" not in reply.prompt
    again = await stage.ask("bob", "what is my salary?", dm="nexus")
    assert again.prompt is not None
    assert "91k" in again.prompt


async def test_an_agent_sees_its_own_answers_in_a_dm_and_in_a_session(stage: Stage) -> None:
    for where in ({"dm": "nexus"}, {"session": "s1"}):
        first = await stage.ask("bob", "hello", **where)
        prompt = (await stage.compose("bob", "what did you just say?", **where)).prompt
        assert [m.content for m in prompt.role_messages if m.role == "assistant"] == [first.text]


async def test_a_question_about_an_earlier_time_sees_no_later_landmark(stage: Stage) -> None:
    await stage.say("alice", "hello", room="general")
    at = stage.clock.now()
    stage.clock.tick(86_400)
    await stage.command("alice", "/nexus landmark add we moved to Berlin", room="general")
    assert "Berlin" in (await stage.compose("alice", "@nexus where are we?", room="general")).prompt.as_text()
    stage.clock.set(at)
    assert "Berlin" not in (await stage.compose("alice", "@nexus where are we?", room="general")).prompt.as_text()
