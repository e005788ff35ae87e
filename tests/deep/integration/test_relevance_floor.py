"""A prompt recalls what the question is about: nothing for small talk and for what was never spoken of, and for a
question about a time what was said then."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from composer.model import Place
from composer.prompt.sections import Prompt
from composer.settings import Settings
from tests.support.harness import START, AppHarness, open_harness
from tests.support.receiver import DM, GENERAL, said

ROOM = {"room": "general"}
OLD = [
    ("bob", "the launch moves to the ninth because the venue is free then"),
    ("carol", "hello everybody"),
    ("bob", "when does the launch begin"),
    ("carol", "hi, good morning"),
    ("bob", "the caterer for the launch is Olive and Thyme"),
]


async def fill(harness: AppHarness) -> None:
    """Store messages of the first day, then enough others that the view shows none of them."""
    here = harness.workspace()
    lines = [*OLD, *(("dave", f"unrelated remark number {n}") for n in range(60))]
    sent = [said(f"r{n}", text, user=user, minute=n) for n, (user, text) in enumerate(lines)]
    await harness.app.receive(here, sent, answer=False)
    await harness.app.indexer.catch_up(here.tenant_id)
    harness.clock.set(START + timedelta(days=4))


def recall(prompt: Prompt) -> str:
    return next(section.text for section in prompt.sections if section.name == "RECALL")


async def recalled(harness: AppHarness, question: str) -> str:
    return recall((await harness.compose("alice", f"@nexus {question}", **ROOM)).prompt)


async def test_small_talk_and_what_was_never_spoken_of_recall_nothing(harness: AppHarness) -> None:
    await fill(harness)
    for question in ("hi", "good morning!", "thanks a lot", "what is the capital of Australia?", "who pays the rent?"):
        assert await recalled(harness, question) == "", question
    assert "Olive and Thyme" in await recalled(harness, "who is the caterer for the launch?")


async def test_a_mention_names_a_speaker_as_a_typed_name_does(harness: AppHarness) -> None:
    await fill(harness)
    question = "what did {} book at the venue for the wedding?"
    assert await recalled(harness, question.format("somebody")) == ""
    for name in ("bob", "@bob", "@Bob"):
        assert "the venue is free then" in await recalled(harness, question.format(name)), name


async def test_a_recalled_line_carries_its_mark_time_speaker_and_place(harness: AppHarness) -> None:
    await fill(harness)
    line = next(line for line in (await recalled(harness, "caterer of the launch")).splitlines() if "Olive" in line)
    assert line.endswith('Bob (in "#general"): the caterer for the launch is Olive and Thyme')
    assert line.startswith("- (s1) 2026-05-04 09:04 ")


async def test_a_message_that_only_repeats_the_question_is_not_recalled(harness: AppHarness) -> None:
    await fill(harness)
    text = await recalled(harness, "when does the launch begin?")
    assert "moves to the ninth" in text
    assert "when does the launch begin" not in text


async def test_what_an_agent_was_asked_before_is_not_recalled_before_what_was_said(harness: AppHarness) -> None:
    here = harness.workspace()
    asked = ["when am I on leave?", "when will I be on leave?", "is my leave in June?", "does my leave begin in June?"]
    lines = [*(("alice", f"@nexus {text}") for text in asked), ("alice", "I take my leave from the ninth of June")]
    sent = [said(f"a{n}", text, user=user, minute=n) for n, (user, text) in enumerate(lines)]
    await harness.app.receive(here, sent, answer=False)
    await fill(harness)
    found = (await recalled(harness, "when am I on leave?")).splitlines()
    assert "from the ninth of June" in found[1], "the first line is the heading"
    for question in asked[:2]:
        assert not any(question in line for line in found), "the same is not recalled for itself"


async def test_a_statement_with_the_words_of_the_question_is_recalled(harness: AppHarness) -> None:
    await fill(harness)
    assert "the caterer for the launch is Olive" in await recalled(
        harness, "is the caterer for the launch Olive and Thyme?"
    )


async def test_a_time_does_not_bring_what_the_question_is_not_about(harness: AppHarness) -> None:
    await fill(harness)
    assert await recalled(harness, "what was the capital of Australia on 4 May 2026?") == ""


async def test_a_question_for_a_time_recalls_what_was_said_then(harness: AppHarness) -> None:
    await fill(harness)
    later = [
        replace(said(f"l{n}", f"later remark {n} of another day"), at=START + timedelta(days=3, minutes=n))
        for n in range(60)
    ]
    await harness.app.receive(harness.workspace(), later, answer=False)
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    text = await recalled(harness, "what happened on 4 May 2026?")
    assert text
    assert all(line.split(" ")[2] == "2026-05-04" for line in text.splitlines()[1:])
    assert await recalled(harness, "what happened on 2 May 2026?") == "", "nothing was said then"


async def test_a_day_is_that_of_the_time_zone_and_ends_before_the_next_one_begins(settings: Settings) -> None:
    """Midnight belongs to the day that begins with it."""
    zone = ZoneInfo("America/New_York")
    midnight = datetime(2026, 5, 6, tzinfo=zone)
    moments = {
        "the kettle is blue": midnight - timedelta(microseconds=1),
        "the lamp is green": midnight,
        "the door is red": midnight + timedelta(days=1, microseconds=-1),
        "the roof is black": midnight + timedelta(days=1),
    }
    async with open_harness(settings.model_copy(update={"timezone": str(zone)})) as harness:
        here = harness.workspace()
        lines = [replace(said(f"z{n}", text), at=at) for n, (text, at) in enumerate(moments.items())]
        lines += [
            replace(said(f"y{n}", f"remark {n}"), at=midnight + timedelta(days=1, minutes=1 + n)) for n in range(60)
        ]
        await harness.app.receive(here, lines, answer=False)
        await harness.app.indexer.catch_up(here.tenant_id)
        harness.clock.set((midnight + timedelta(days=1, hours=22)).astimezone(UTC))  # it is the eighth in UTC already
        for question in ("what happened on 6 May 2026?", "what happened yesterday?"):
            text = await recalled(harness, question)
            assert [each for each in moments if each in text] == ["the lamp is green", "the door is red"], question


async def test_a_question_for_a_day_gets_the_summary_of_that_day_within_a_budget(harness: AppHarness) -> None:
    here = harness.workspace()
    for day in range(12):
        spoken = [said(f"d{day}.{n}", f"on day {day} we spoke of subject {day} in detail {n}") for n in range(12)]
        lines = [replace(each, at=START + timedelta(days=day, minutes=n)) for n, each in enumerate(spoken)]
        await harness.app.receive(here, lines, answer=False)
    harness.clock.set(START + timedelta(days=13))
    now, zone = harness.clock.now(), ZoneInfo("UTC")
    for tier in ("session", "day", "week"):
        await harness.app.tiers.catch_up(here.tenant_id, tier, now, zone, None, lambda *_: None)
    await harness.app.indexer.catch_up(here.tenant_id)

    async def summaries(question: str) -> list[str]:
        prompt = (await harness.compose("alice", f"@nexus {question}", **ROOM)).prompt
        section = next(section for section in prompt.sections if section.name == "SUMMARIES")
        assert section.tokens <= 1_500 + 60
        return [line for line in section.text.splitlines() if line.startswith("- ")]

    assert any(line.startswith("- day, 2026-05-06: ") for line in await summaries("what happened on 6 May 2026?"))
    assert not any(line.startswith("- day, 2026-05-06: ") for line in await summaries("what is the plan?"))


@pytest.mark.parametrize("place", [DM, GENERAL])
async def test_a_message_of_a_day_that_has_a_summary_is_recalled_besides_it(harness: AppHarness, place: Place) -> None:
    here = harness.workspace()
    opened = "important: the code of my locker and the code of my door are to be written down, decided today"
    told = "it is heron, that code"
    lunch = [f"the lunch number {n} was good today" for n in range(40)]
    said_then = [*lunch[3:], opened, *lunch[:3], told, "so be it"]
    for day, texts in enumerate((said_then, [f"unrelated remark number {n}" for n in range(60)])):
        lines = [said(f"{day}.{n}", text, place=place, minute=day * 1_440 + n) for n, text in enumerate(texts)]
        await harness.app.receive(here, lines, answer=False)
    now = START + timedelta(days=4)
    harness.clock.set(now)
    for tier in ("session", "day"):
        await harness.app.tiers.catch_up(here.tenant_id, tier, now, ZoneInfo("UTC"), None, lambda *_: None)
    await harness.app.indexer.catch_up(here.tenant_id)
    where = {"dm": "nexus"} if place is DM else ROOM
    found = recall(
        (await harness.compose("alice", "@nexus what is the code of my locker?", **where)).prompt
    ).splitlines()
    summary = next(n for n, line in enumerate(found) if "(summary, " in line)
    (message,) = (n for n, line in enumerate(found) if line.startswith("- (s") and line.endswith(told))
    assert summary != message, found


async def test_words_of_people_stand_in_no_system_message(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus fact set motto per aspera", **ROOM)
    await harness.command("alice", "/nexus landmark add we moor in Lisbon", **ROOM)
    prompt = (await harness.compose("alice", "@nexus what is our motto?", **ROOM)).prompt
    system, opening = prompt.role_messages[:2]
    assert (system.role, opening.role) == ("system", "user")
    assert "aspera" not in system.content
    assert "Lisbon" not in system.content
    assert "general" not in system.content
    assert "aspera" in opening.content
    assert "Lisbon" in opening.content


async def test_a_search_by_hand_shows_no_noise_beside_what_fits(harness: AppHarness) -> None:
    fits, noise = "The launch is on Friday at noon.", "is the lunch on Friday at nine?"
    for n, text in enumerate((noise, *(f"the sky is grey {n}" for n in range(8)), fits)):
        harness.clock.set(START + timedelta(hours=5 * n))
        await harness.say("bob", text, **ROOM)
    found = (await harness.command("alice", "/nexus recall launch on Friday at noon", **ROOM)).text
    assert fits in found
    assert noise not in found
    assert noise in (await harness.command("alice", "/nexus recall lunch at nine", **ROOM)).text
