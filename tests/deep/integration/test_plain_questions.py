"""Plain questions, which name no subject to search for, find what answers them, with and without a model."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from composer.settings import AgentSettings, Settings
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness

ROOM: Final[dict[str, Any]] = {"room": "general"}
DM: Final[dict[str, Any]] = {"dm": "nexus"}
TALK: Final = (  # day of May 2026, hour, who, where, what
    (4, 9, "alice", "general", "Morning, I bring the projector today."),
    (4, 10, "bob", "general", "The vendor quoted 900 euros for the chairs."),
    (5, 9, "carol", "general", "I find the blue logo too dark."),
    (5, 10, "carol", "general", "The invoice of the printer is paid."),
    (6, 9, "carol", "general", "Our stand at the fair is number 12."),
    (6, 10, "bob", "general", "Who takes the parcel to the post office?"),
    (6, 15, "dave", "general", "We decided to move the servers to Frankfurt."),
    (6, 16, "dave", "general", "I will send the offer to Acme by Friday."),
    (6, 16, "erin", "vault", "The takeover is called project heron."),
    (6, 17, "carol", "vault", "The price of the takeover is nine million."),
)
MISSED: Final = ("blue logo", "invoice of the printer", "stand at the fair", "servers to Frankfurt")
CAROLS: Final = ("blue logo", "invoice of the printer", "stand at the fair")
SECRET: Final = ("heron", "nine million", "allergic", "Porto", "knee")


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    """Alice and bob are in general, erin and carol in the private vault. It is Thursday, 7 May. No model is set up."""
    async with open_harness(settings) as harness:
        await tell(harness)
        yield harness


@pytest.fixture
async def model() -> Model:
    return Model()


@pytest.fixture
async def modelled(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    """The same with a model."""
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),)})
    async with open_harness(plain, model=model) as harness:
        await tell(harness)
        yield harness


async def tell(harness: AppHarness) -> None:
    for n, (day, hour, user, room, text) in enumerate(TALK):
        harness.clock.set(datetime(2026, 5, day, hour, n, tzinfo=UTC))
        await harness.say(user, text, room=room, private=room == "vault")
    harness.clock.set(datetime(2026, 5, 7, 8, tzinfo=UTC))
    await harness.command("bob", "/nexus landmark add Tickets are answered within a day --yes", **ROOM)
    await harness.command("alice", "/nexus remember I am allergic to nuts", **DM)
    await harness.command("alice", "/nexus fact set shoe_size 39 --yes", **DM)
    await harness.say("alice", "My sister marries in Porto in June.", **DM)
    await harness.command("alice", "/nexus remember I speak Danish --everywhere --yes", **DM)
    await harness.say("bob", "My knee hurts and nobody may know.", **DM)
    # what was said before is outside of the view
    await harness.say_all("frank", [f"Parking slot {n} is taken." for n in range(45)], room="garage")


async def sent(harness: AppHarness, user: str, question: str, **place: Any) -> str:
    """What a model is shown for a question, without the rules and the question itself."""
    prompt = (await harness.compose(user, question, **place)).prompt
    return "\n".join(each.text for each in prompt.sections if each.name not in ("SYSTEM", "MESSAGE"))


async def recalled(harness: AppHarness, user: str, question: str, **place: Any) -> str:
    prompt = (await harness.compose(user, question, **place)).prompt
    return "".join(each.text for each in prompt.sections if each.name == "RECALL")


async def both(harness: AppHarness, user: str, question: str, **place: Any) -> tuple[str, str]:
    """What a model is shown, and the answer without one, in a room with a mention."""
    asked = question if "dm" in place else f"@nexus {question}"
    shown = await sent(harness, user, asked, **place)
    return shown, (await harness.ask(user, asked, **place)).text


@pytest.mark.parametrize(
    "question",
    [
        "what did I miss?",
        "catch me up please",
        "anything new while I was away?",
        "Was habe ich verpasst?",
        "Bring mich bitte auf den neuesten Stand",
        "Qu'est-ce que j'ai raté ?",
        "何を見逃しましたか？",
    ],
)
async def test_what_one_missed_is_what_others_said_since_one_wrote(harness: AppHarness, question: str) -> None:
    for _ in range(2):  # to have asked before is no visit: nobody else wrote since
        shown, answer = await both(harness, "alice", question, **ROOM)
        assert "What the asker missed is what others said since 2026-05-04 09:01." in shown
        for said in MISSED:
            assert said in shown
        assert "Frankfurt" in answer
        assert "projector" not in answer
        assert not any(secret in shown + answer for secret in SECRET)


async def test_who_missed_nothing_is_told_so(harness: AppHarness) -> None:
    await harness.say("alice", "Thanks all, noted.", **ROOM)
    assert "Nobody else" not in (await both(harness, "alice", "what did I miss?", **ROOM))[1]
    await harness.say("bob", "Fine.", **ROOM)
    await harness.say("alice", "Good.", **ROOM)
    answer = (await harness.ask("frank", "@nexus what did I miss?", room="garage")).text
    assert answer == "(offline: no model is configured) Nobody else has written here since you did."


async def test_in_a_dm_one_missed_what_was_said_in_the_rooms_that_it_reads(harness: AppHarness) -> None:
    shown, answer = await both(harness, "alice", "what did I miss?", **DM)
    assert not any(said in shown + answer for said in MISSED)
    assert "/nexus rooms on" in answer
    await harness.command("alice", "/nexus rooms on", **DM)
    shown, answer = await both(harness, "alice", "what did I miss?", **DM)
    assert all(said in shown for said in MISSED)
    assert "Frankfurt" in answer
    assert not any(secret in shown for secret in ("heron", "nine million", "knee"))


@pytest.mark.parametrize(
    "question",
    [
        "what do you know about me?",
        "tell me everything you remember about me",
        "what have you stored about me?",
        "Was weißt du über mich?",
        "Was hast du dir über mich gemerkt?",
        "¿Qué sabes de mí?",
        "Что ты знаешь обо мне?",
    ],
)
async def test_what_is_known_about_the_asker_is_shown_where_it_may_be(harness: AppHarness, question: str) -> None:
    shown, answer = await both(harness, "alice", question, **DM)
    for known in ("allergic to nuts", "Porto", "Danish", "shoe_size"):
        assert known in shown
        assert known in answer
    shown, answer = await both(harness, "alice", question, **ROOM)
    assert "projector" in shown
    assert "Danish" in shown  # shared with everyone on purpose
    assert not any(secret in shown + answer for secret in (*SECRET, "shoe_size"))


@pytest.mark.parametrize(
    "question",
    [
        "list the decisions",
        "what decisions have been made?",
        "what did we agree on?",
        "Welche Entscheidungen haben wir getroffen?",
        "Zeig mir alle Beschlüsse",
        "Quelles décisions avons-nous prises ?",
        "Какие решения мы приняли?",
    ],
)
async def test_decisions_are_listed_with_their_date_and_who(harness: AppHarness, question: str) -> None:
    shown, answer = await both(harness, "alice", question, **ROOM)
    for text in (shown, answer):
        assert "Frankfurt" in text
        assert "Tickets are answered within a day" in text
    assert "bob (2026-05-07)" in answer
    assert "dave (2026-05-06" in answer
    assert "projector" not in answer


@pytest.mark.parametrize(
    "question",
    ["what did we decide about the servers?", "Was haben wir zu Frankfurt beschlossen?"],
)
async def test_a_decision_about_something_is_found(harness: AppHarness, question: str) -> None:
    shown, answer = await both(harness, "alice", question, **ROOM)
    assert "Frankfurt" in shown
    assert "Frankfurt" in answer
    assert "Tickets" not in answer


@pytest.mark.parametrize(
    "question",
    [
        "what did Carol say?",
        "what has carol been saying?",
        "what were Carol's last messages?",
        "Was hat Carol gesagt?",
        "Was schrieb Carol?",
        "Qu'a dit Carol ?",
        "Что сказала Carol?",
    ],
)
async def test_what_somebody_said_is_theirs_and_of_this_room(harness: AppHarness, question: str) -> None:
    shown, answer = await both(harness, "alice", question, **ROOM)
    assert all(said in shown and said in answer for said in CAROLS)
    assert "chairs" not in answer
    assert not any(secret in shown + answer for secret in SECRET)
    shown = await sent(harness, "erin", f"@nexus {question}", room="vault", private=True)
    assert "nine million" in shown


async def test_what_is_known_about_somebody_else_is_what_they_said(harness: AppHarness) -> None:
    for question in ("what do you know about Carol?", "Was weißt du über Carol?"):
        _, answer = await both(harness, "alice", question, **ROOM)
        assert "blue logo" in answer
        assert "projector" not in answer
        assert not any(secret in answer for secret in SECRET)


async def test_decisions_of_a_time_are_those_alone(harness: AppHarness) -> None:
    for question in ("what did we decide yesterday?", "Was haben wir gestern beschlossen?"):
        _, answer = await both(harness, "alice", question, **ROOM)
        assert "Frankfurt" in answer
        assert "Tickets" not in answer


async def test_what_somebody_said_of_a_time_or_a_subject(harness: AppHarness) -> None:
    for question in ("what did carol say yesterday?", "Was hat Carol gestern gesagt?"):
        shown, answer = await both(harness, "alice", question, **ROOM)
        assert "stand at the fair" in answer
        assert "logo" not in answer
    for question in ("what did carol say about the logo?", "what does Carol think of the logo?"):
        shown, answer = await both(harness, "alice", question, **ROOM)
        assert "blue logo" in shown
        assert "blue logo" in answer.splitlines()[1]


async def test_what_somebody_said_of_a_subject_is_found_where_others_said_more_of_it(harness: AppHarness) -> None:
    await harness.say_all(
        "frank", [f"About the logo, the logo, again the logo: version {n} of the logo." for n in range(75)], **ROOM
    )
    for question in ("what did carol say about the logo?", "what does Carol think of the logo?"):
        assert "blue logo" in await recalled(harness, "alice", f"@nexus {question}", **ROOM)


async def test_whom_the_viewer_may_read_nothing_of_is_an_ordinary_word(harness: AppHarness) -> None:
    """A question that names somebody who wrote elsewhere alone is answered as if they did not exist."""
    questions = (
        *("what did Zora say?", "what did Zora say about the blue logo?", "Was hat Zora gesagt?"),
        *("what did we decide with Zora?", "what did I miss from Zora?", "what does Zora think?"),
    )
    asked = [(f"@nexus {question}", place) for question in questions for place in (ROOM, DM)]
    before = [await sent(harness, "alice", question, **place) for question, place in asked]
    now = harness.clock.now()
    await harness.say("Zora", "The blue logo hides a heron.", room="vault2", private=True)
    await harness.say("Zora", "What did I miss about the blue logo?", **DM)
    await harness.command("Zora", "/nexus remember the blue logo hides a heron", **DM)
    harness.clock.set(now)
    assert [await sent(harness, "alice", question, **place) for question, place in asked] == before


async def test_namesakes_are_told_apart(harness: AppHarness) -> None:
    await harness.say("Ann Miller", "I water the plants.", **ROOM)
    await harness.say("Ann Lee", "I feed the fish.", **ROOM)
    await harness.say_all("bob", ["Ping." for _ in range(45)], **ROOM)
    assert "fish" in await recalled(harness, "alice", "@nexus what did Ann say?", **ROOM)
    text = await recalled(harness, "alice", "@nexus what did Ann Miller say?", **ROOM)
    assert "plants" in text
    assert "fish" not in text


@pytest.mark.parametrize(
    ("question", "told", "untold"),
    [
        ("summarise this week", "servers to Frankfurt", "knee"),
        ("give me a recap of yesterday", "servers to Frankfurt", "blue logo"),
        ("summarise this channel", "servers to Frankfurt", "knee"),
        ("Fasse diese Woche zusammen", "servers to Frankfurt", "knee"),
        ("Gib mir eine Zusammenfassung von gestern", "servers to Frankfurt", "blue logo"),
        ("Riassumi questa settimana", "servers to Frankfurt", "knee"),
        ("was war gestern los?", "servers to Frankfurt", "blue logo"),
    ],
)
async def test_a_time_or_a_room_is_summed_up(harness: AppHarness, question: str, told: str, untold: str) -> None:
    shown, answer = await both(harness, "alice", question, **ROOM)
    assert told in shown
    assert told in answer
    assert untold not in answer
    assert question not in answer
    assert not any(secret in shown + answer for secret in SECRET)


@pytest.mark.parametrize(
    "question",
    [
        "what are the open tasks?",
        "list all action items",
        "who has to do what?",
        "Welche Aufgaben sind noch offen?",
        "Was muss noch erledigt werden, welche Aufgaben gibt es?",
        "¿Qué tareas están abiertas?",
    ],
)
async def test_tasks_are_listed(harness: AppHarness, question: str) -> None:
    shown, answer = await both(harness, "bob", question, **ROOM)
    assert "action item" in shown
    assert "offer to Acme" in answer
    assert "chairs" not in answer


@pytest.mark.parametrize(
    "question",
    [
        "what are the open questions?",
        "any open questions?",
        "which questions were not answered?",
        "Welche Fragen sind noch offen?",
        "Gibt es unbeantwortete Fragen?",
        "Quelles questions sont sans réponse ?",
    ],
)
async def test_open_questions_are_listed(harness: AppHarness, question: str) -> None:
    await harness.say("bob", "Is the coffee machine repaired?", **ROOM)
    await harness.say("dave", "Yes, since noon.", **ROOM)
    shown, answer = await both(harness, "alice", question, **ROOM)
    assert "parcel to the post office?" in shown
    assert "parcel to the post office?" in answer
    assert "coffee machine" not in answer


@pytest.mark.parametrize(
    "question",
    [
        "what are my reminders?",
        "list my reminders",
        "do I have any reminders?",
        "Welche Erinnerungen habe ich?",
        "Zeig meine Erinnerungen",
        "Quels sont mes rappels ?",
        "Какие у меня напоминания?",
    ],
)
async def test_reminders_are_listed_where_they_may_be_read(harness: AppHarness, question: str) -> None:
    await harness.command("alice", "/nexus remind me tomorrow 9:00 call the printer", **ROOM)
    await harness.command("alice", "/nexus remind here every weekday at 9:30 stand-up", **ROOM)
    await harness.command("bob", "/nexus remind me tomorrow 9:00 see about the knee", **DM)
    assert "stand-up" not in await sent(harness, "bob", f"@nexus {question}", **ROOM)
    shown, answer = await both(harness, "alice", question, **DM)
    for text in (shown, answer):
        assert "call the printer" in text
        assert "2026-05-08 09:00" in text
    assert "stand-up" not in shown
    shown, answer = await both(harness, "alice", question, **ROOM)
    assert "stand-up" in shown
    assert "stand-up" in answer
    assert "printer" not in shown.replace("invoice of the printer", "")
    assert "/nexus remind list" in answer


async def test_forgetting_a_reminder_reaches_the_answer_that_lists_it(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus remind me tomorrow 9:00 call the zoologist", **DM)
    assert "zoologist" in (await harness.ask("alice", "what are my reminders?", **DM)).text
    assert "zoologist" in (await harness.command("alice", "/nexus why --details", **DM)).text
    await harness.command("alice", "/nexus forget zoologist --yes", **DM)
    assert "zoologist" not in await sent(harness, "alice", "what are my reminders?", **DM)
    assert "zoologist" not in (await harness.command("alice", "/nexus why --details", **DM)).text


async def test_what_is_known_about_something_else_is_no_list_about_the_asker(harness: AppHarness) -> None:
    for question in ("what do you know about the fair?", "what do you know about the logo?"):
        _, answer = await both(harness, "alice", question, **ROOM)
        assert "projector" not in answer
        assert question.split()[-1].rstrip("?") in answer


async def test_a_question_as_a_command_finds_the_same(harness: AppHarness) -> None:
    for question, found in (
        ("what did I miss?", "Frankfurt"),
        ("list the decisions", "Tickets"),
        ("what did carol say?", "blue logo"),
        ("Was weißt du über mich?", "Danish"),
        ("summarise yesterday", "Frankfurt"),
    ):
        answer = (await harness.command("alice", f"/nexus {question}", **ROOM)).text
        assert found in answer, question
        assert not any(secret in answer for secret in SECRET)


async def test_a_model_is_asked_with_what_answers(modelled: AppHarness, model: Model) -> None:
    for question, found in (
        ("what did I miss?", "servers to Frankfurt"),
        ("Welche Entscheidungen gibt es?", "Tickets are answered within a day"),
        ("what did carol say?", "blue logo"),
    ):
        await modelled.ask("alice", f"@nexus {question}", **ROOM)
        assert found in model.shown[-1]
        assert not any(secret in model.shown[-1] for secret in SECRET)
