"""A message in a thread that follows up an agent's answer is a question without a mention; nothing else is."""

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from bot.script.places import incoming
from composer.model import ConversationKind, Incoming, Place, Trust
from composer.settings import AgentSettings, Settings
from tests.support.harness import AppHarness, open_harness

ROOM = Place(ConversationKind.ROOM, "general")
THREAD = Place(ConversationKind.THREAD, "general", "t1")


@dataclass
class Thread:
    """A thread of #general, in which people talk."""

    harness: AppHarness
    numbers: list[str] = field(default_factory=list)

    def message(self, user: str, text: str, *, place: Place = THREAD, minutes: float = 1, **more: Any) -> Incoming:
        at = self.harness.clock.tick(minutes * 60)
        self.numbers.append(f"n{len(self.numbers)}")
        return replace(incoming(self.harness.workspace(), place, user, text, at, id=self.numbers[-1]), **more)

    async def receive(self, *messages: Incoming, answer: bool = True) -> list[str]:
        """Receive messages at once. Returns whom the answers to them answer, as `agent>message`."""
        before = len(self.harness.delivery.replies)
        await self.harness.app.receive(self.harness.workspace(), messages, answer=answer)
        await self.harness.app.turns.settle()
        agents = {each.id: each.slug for each in self.harness.app.directory.agents(self.harness.workspace().tenant_id)}
        return sorted(agents[each.turn.agent_id] for each in self.harness.delivery.replies[before:])

    async def say(self, user: str, text: str, **more: Any) -> list[str]:
        return await self.receive(self.message(user, text, **more))


@pytest.fixture
async def thread(harness: AppHarness) -> Thread:
    return Thread(harness)


async def test_a_participants_next_message_is_a_question(thread: Thread) -> None:
    assert await thread.say("alice", "@nexus when is the launch?") == ["nexus"]
    assert await thread.say("alice", "and who leads it?") == ["nexus"]
    assert await thread.say("alice", "what did @bob say about that?") == ["nexus"]
    assert await thread.say("bob", "@nexus is the date fixed?") == ["nexus"]
    assert await thread.say("alice", "and the budget?") == ["nexus"], "she has asked here before"


async def test_who_has_not_asked_the_agent_here_is_not_answered(thread: Thread) -> None:
    await thread.say("alice", "@nexus when is the launch?")
    assert await thread.say("bob", "is that so?") == []
    assert await thread.say("alice", "I think so") == [], "she talks to Bob"
    assert await thread.say("alice", "don't you?") == []
    assert await thread.say("alice", "@nexus is it?") == ["nexus"]
    assert await thread.say("alice", "why?") == ["nexus"]


async def test_a_thread_without_an_answer_is_left_alone(thread: Thread) -> None:
    assert await thread.say("alice", "when is the launch?") == []
    assert await thread.say("alice", "does anybody know?") == []
    assert await thread.say("alice", "@nexus when is it?", place=ROOM) == ["nexus"]
    assert await thread.say("alice", "and who leads it?", place=ROOM) == [], "a room is no thread"
    assert await thread.say("alice", "anybody?") == []
    assert await thread.say("alice", "who?", place=replace(THREAD, thread="t2")) == []


@pytest.mark.parametrize(
    "text",
    [
        "@bob what do you think?",
        "hey @bob, look",
        "  (@bob) see above",
        "@here lunch?",
        "lunch, @channel",
        "@everyone hi",
    ],
)
async def test_a_message_for_somebody_else_is_left_alone_and_so_is_what_comes_after_it(
    thread: Thread, text: str
) -> None:
    await thread.say("alice", "@nexus when is the launch?")
    assert await thread.say("alice", text) == []
    assert await thread.say("alice", "well?") == []


async def test_a_reply_to_somebody_elses_message_is_left_alone(thread: Thread) -> None:
    await thread.say("bob", "it is on Friday")
    await thread.say("alice", "@nexus when is the launch?")
    assert await thread.say("alice", "are you sure?", reply_to="n0") == []
    await thread.say("alice", "@nexus when is the launch?")
    assert await thread.say("alice", "are you sure?", reply_to="t1") == ["nexus"], "Slack's name of the thread"


async def test_an_old_answer_is_not_followed_up(thread: Thread) -> None:
    await thread.say("alice", "@nexus when is the launch?")
    assert await thread.say("alice", "and who leads it?", minutes=60) == ["nexus"]
    assert await thread.say("alice", "and the budget?", minutes=61) == []


async def test_two_people_who_talk_to_each_other_are_interrupted_once(thread: Thread) -> None:
    await thread.say("alice", "@nexus when is the launch?")
    await thread.say("bob", "@nexus and who leads it?")
    assert await thread.say("alice", "Bob, will you come?") == ["nexus"], "this can't be told from a question"
    assert await thread.say("bob", "sure") == []
    assert await thread.say("alice", "good") == []
    assert await thread.say("bob", "see you") == []


async def test_what_comes_before_the_answer_to_a_follow_up_is_one_too(thread: Thread) -> None:
    first = thread.message("alice", "@nexus when is the launch?")
    second = thread.message("alice", "I mean the big one")
    assert await thread.receive(first, second) == ["nexus"], "there is no answer here yet"
    more = [thread.message("alice", "and who leads it?"), thread.message("alice", "or who did?")]
    assert await thread.receive(*more) == ["nexus", "nexus"]
    mixed = [thread.message("alice", "why?"), thread.message("bob", "hm"), thread.message("alice", "Bob?")]
    assert await thread.receive(*mixed) == ["nexus"]


async def test_a_message_that_comes_late_is_judged_by_what_stood_before_it(thread: Thread) -> None:
    await thread.say("alice", "@nexus when is the launch?")
    asked, between = thread.message("alice", "and who leads it?"), thread.message("bob", "hm")
    assert await thread.receive(between) == []
    assert await thread.receive(asked) == ["nexus"]


async def test_bots_and_history_are_never_answered(thread: Thread) -> None:
    await thread.say("alice", "@nexus when is the launch?")
    assert await thread.say("alice", "and who leads it?", sender_trust=Trust.TOOL) == []
    await thread.say("alice", "@nexus when is the launch?")
    assert await thread.receive(thread.message("alice", "and who leads it?"), answer=False) == []
    await thread.say("alice", "@nexus when is the launch?")
    alert = thread.message("jira", "LAUNCH-1 was closed", sender_trust=Trust.TOOL)
    assert await thread.receive(alert, answer=False) == []
    assert await thread.say("alice", "oh") == [], "it is about the alert"


async def test_a_guest_may_follow_up_too(thread: Thread) -> None:
    assert await thread.say("gus", "@nexus when is the launch?", sender_trust=Trust.GUEST) == ["nexus"]
    assert await thread.say("gus", "and who leads it?", sender_trust=Trust.GUEST) == ["nexus"]


async def test_an_admin_of_the_room_switches_it_off_and_on(thread: Thread) -> None:
    where = {"room": "general"}
    await thread.say("alice", "@nexus when is the launch?")
    with pytest.raises(Exception, match="Only an admin of #general may set when I answer in its threads: ask one"):
        await thread.harness.command("bob", "/nexus follow off", thread="t1", **where)
    answered = await thread.harness.command("alice", "/nexus follow off", thread="t1", **where)
    assert answered.text == "In the threads of #general I answer only who mentions me. To change that: /nexus follow on"
    assert await thread.say("alice", "and who leads it?") == []
    await thread.say("alice", "@nexus when is the launch?")
    elsewhere = replace(THREAD, name="random")
    await thread.say("alice", "@nexus hello", place=elsewhere)
    assert await thread.say("alice", "and who leads it?", place=elsewhere) == ["nexus"]
    answered = await thread.harness.command("alice", "/nexus follow on", **where)
    assert answered.text.startswith(
        "In the threads of #general a follow-up to my answer needs no mention, for 60 minutes"
    )
    assert (await thread.harness.command("bob", "/nexus follow", **where)).text == answered.text
    assert await thread.say("alice", "and who leads it?") == ["nexus"]


async def test_where_not_every_message_is_stored_a_mention_is_needed(thread: Thread) -> None:
    await thread.say("alice", "@nexus when is the launch?")
    await thread.harness.command("alice", "/nexus memory mentions", room="general")
    assert await thread.say("alice", "and who leads it?") == []
    assert "Not every message" in (await thread.harness.command("alice", "/nexus follow", room="general")).text
    await thread.harness.command("alice", "/nexus memory on", room="general")
    await thread.say("alice", "@nexus when is the launch?")
    await thread.harness.command("alice", "/nexus opt-out", room="general")
    assert await thread.say("alice", "and who leads it?") == []


async def test_what_is_forgotten_is_no_question_any_more(thread: Thread) -> None:
    await thread.say("alice", "@nexus when is the launch?")
    await thread.harness.change("n0", None)
    assert await thread.say("alice", "and who leads it?") == []


async def test_an_edit_that_comes_first_counts(thread: Thread) -> None:
    await thread.say("alice", "@nexus when is the launch?")
    await thread.say("bob", "@nexus who leads it?")
    await thread.harness.change("n1", "who leads it?")
    assert await thread.say("alice", "and when?") == [], "it says no more that it was for the agent"


async def test_of_several_agents_the_one_that_answered_is_asked(settings: Settings) -> None:
    agents = (AgentSettings(), AgentSettings(slug="scout", name="Scout"))
    async with open_harness(settings.model_copy(update={"agents": agents})) as harness:
        thread = Thread(harness)
        await thread.say("alice", "@scout when is the launch?")
        assert await thread.say("alice", "and who leads it?") == ["scout"]
        assert await thread.say("alice", "@nexus what do you think?") == ["nexus"]
        assert await thread.say("alice", "why?") == ["nexus"]
        await thread.say("bob", "@scout hello")
        assert await thread.say("alice", "hello too") == ["scout"], "whom she has asked here too"
        await thread.say("carol", "@scout hello")
        await thread.say("bob", "@nexus hello")
        assert await thread.say("carol", "hello too") == [], "whom she has not asked"


async def test_a_question_to_another_agent_is_not_skipped(settings: Settings) -> None:
    agents = (AgentSettings(), AgentSettings(slug="scout", name="Scout"))
    async with open_harness(settings.model_copy(update={"agents": agents})) as harness:
        thread = Thread(harness)
        await thread.say("alice", "@nexus when is the launch?")
        both = thread.message("alice", "@scout look it up"), thread.message("alice", "the big one")
        assert await thread.receive(*both) == ["scout"]


async def test_tenants_are_apart(settings: Settings) -> None:
    async with open_harness(settings) as harness:
        thread = Thread(harness)
        await thread.say("alice", "@nexus when is the launch?")
        other = replace(thread, harness=replace(harness, name="other"))
        assert await other.say("alice", "and who leads it?") == []


async def test_zero_minutes_switch_it_off_everywhere(settings: Settings) -> None:
    async with open_harness(settings.model_copy(update={"follow_up_minutes": 0})) as harness:
        thread = Thread(harness)
        await thread.say("alice", "@nexus when is the launch?")
        assert await thread.say("alice", "and who leads it?", minutes=0) == []
        said = await harness.command("alice", "/nexus follow on", room="general")
        assert said.text == "Follow-ups need a mention everywhere: whoever runs Nexus has switched them off."


async def test_a_thread_shows_the_question_that_it_hangs_under_with_its_answer(thread: Thread) -> None:
    harness = thread.harness
    await thread.say("alice", "the launch of Petrel is on 12 June")
    await harness.command("alice", "/nexus remember Petrel is launched from Oslo", room="general")
    asked = thread.message("alice", "@nexus where is Petrel launched from?", place=ROOM)
    await thread.receive(asked)
    answer = harness.delivery.replies[-1].text
    assert "Oslo" in answer
    await thread.say("bob", "something else", place=ROOM)
    for text in ("and who leads it?", "and why?"):
        assert await thread.say("alice", text, place=replace(THREAD, thread=asked.id)) == ["nexus"]
        prompt = json.loads(harness.delivery.replies[-1].prompt or "")
        [related] = [each for each in prompt["sections"] if each["name"] == "RELATED"]
        assert asked.text in related["text"]
        assert answer.splitlines()[0] in related["text"]
        assert "something else" not in related["text"]
    explained = await harness.command("alice", "/nexus why --details", room="general", thread=asked.id)
    assert "RELATED" in explained.text
    await harness.change(asked.id, None)
    later = (await harness.compose("alice", "@nexus and?", room="general", thread=asked.id)).prompt
    [left] = [each.text for each in later.sections if each.name == "RELATED"]
    assert "Petrel" not in left


async def test_what_was_asked_in_private_is_neither_followed_up_nor_shown_once_the_room_is_public(
    thread: Thread,
) -> None:
    board = replace(ROOM, name="board", private=True)
    asked = thread.message("alice", "@nexus does Petrel sail?", place=board)
    under = replace(THREAD, name="board", thread=asked.id, room_private=True)
    assert await thread.receive(asked) == ["nexus"]
    assert await thread.say("alice", "and when?", place=under) == ["nexus"]
    assert "does Petrel sail?" in (thread.harness.delivery.replies[-1].prompt or "")
    assert await thread.say("bob", "hello", place=replace(board, private=False)) == []
    opened = replace(under, room_private=False)
    assert await thread.say("alice", "and why?", place=opened) == []
    assert await thread.say("alice", "@nexus and why?", place=opened) == ["nexus"]
    assert "Petrel" not in (thread.harness.delivery.replies[-1].prompt or "")


async def test_a_thread_under_a_question_in_its_room_is_the_answers(thread: Thread) -> None:
    # On Slack an answer stands in a thread under its question, which is called by the question's id.
    asked = thread.message("alice", "@nexus when is the launch?", place=ROOM)
    assert await thread.receive(asked) == ["nexus"]
    under = replace(THREAD, thread=asked.id)
    assert await thread.say("bob", "hm", place=under) == []
    assert await thread.say("alice", "@nexus when is it?", place=ROOM) == ["nexus"]
    under = replace(THREAD, thread=thread.numbers[-1])
    assert await thread.say("alice", "and who leads it?", place=under) == ["nexus"]
    assert await thread.say("alice", "and the budget?", place=under) == ["nexus"]
    assert thread.harness.clock.tick(0) - asked.at < timedelta(hours=1)
