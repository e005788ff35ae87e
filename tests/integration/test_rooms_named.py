"""A question that names a room that its asker may read from here: the name is no topic, and says where to look."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from composer.settings import Settings
from tests.support.harness import AppHarness, open_harness

DM: Final[dict[str, Any]] = {"dm": "nexus"}
OPS: Final = (
    (20, 9, "dave", "The backup of the blue cluster failed at night."),  # Friday
    (20, 10, "erin", "I restarted it and it went through."),
    (22, 9, "dave", "Certificates expire on the ninth of March."),
    (22, 10, "erin", "Then let us renew them before Christmas."),
)
ASKED: Final = {
    "what did we say in #ops yesterday?": {2, 3},
    "what was said in #ops on Friday?": {0, 1},
    "what was said yesterday in the ops room?": {2, 3},
    "what did we say in #ops on 22 November?": {2, 3},
}


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    """Erin is in ops and in general, where dave speaks of today. It is Monday morning."""
    async with open_harness(settings) as harness:
        for room, day, hour, user, text in (
            *(("ops", *line) for line in OPS),
            *(("general", 22, 12 + n, "dave", f"General remark number {n} of Sunday.") for n in range(4)),
            *(("general", 23, 1, "dave", f"Late remark number {n} was said today.") for n in range(15)),
        ):
            harness.clock.set(datetime(2026, 11, day, hour, tzinfo=UTC))
            await harness.say(user, text, room=room)
        for room in ("ops", "general"):
            await harness.say("erin", "hello", room=room)
        harness.clock.set(datetime(2026, 11, 23, 2, 20, tzinfo=UTC))
        await harness.say("erin", "hello", **DM)
        await harness.command("erin", "/nexus rooms on", **DM)
        yield harness


async def recalled(harness: AppHarness, question: str, user: str = "erin", **place: Any) -> str:
    """The section RECALL of the prompt that would answer."""
    prompt = (await harness.compose(user, question, **(place or DM))).prompt
    return "".join(section.text for section in prompt.sections if section.name == "RECALL")


async def test_what_was_said_then_in_a_named_room_is_recalled_and_nothing_else(harness: AppHarness) -> None:
    for question in ASKED:  # what was asked before does not crowd out what was said
        await harness.ask("erin", question, **DM)
    for question, wanted in ASKED.items():
        text = await recalled(harness, question)
        assert {n for n, line in enumerate(OPS) if line[3] in text} == wanted, (question, text)
        assert "remark" not in text
        assert "what" not in text


async def test_who_spoke_in_a_named_room_counts_too(harness: AppHarness) -> None:
    text = await recalled(harness, "what did dave say in #ops on Friday?")
    assert OPS[0][3] in text.splitlines()[1]
    reply = await harness.ask("erin", "what did dave say in #ops on Friday?", **DM)
    assert OPS[0][3] in reply.text


async def test_the_offline_answer_quotes_the_named_room(harness: AppHarness) -> None:
    for question, wanted in ASKED.items():
        reply = await harness.ask("erin", question, **DM)
        assert {n for n, line in enumerate(OPS) if line[3] in reply.text} == wanted, (question, reply.text)


async def test_a_room_that_the_asker_may_not_read_from_here_is_an_ordinary_word(harness: AppHarness) -> None:
    asked = [
        (f"what did we say in #{name} yesterday?", place)
        for name in ("zebra", "yak")
        for place in (DM, {"room": "general"})
    ]
    before = [await recalled(harness, question, **place) for question, place in asked]
    now = harness.clock.now()
    harness.clock.set(datetime(2026, 11, 22, 9, tzinfo=UTC))
    await harness.say("dave", "The zebra holds a secret ledger.", room="zebra", private=True)
    await harness.say("dave", "The yak holds a ledger too.", room="yak")
    harness.clock.set(now)
    assert [await recalled(harness, question, **place) for question, place in asked] == before
    elsewhere = await recalled(harness, "what did we say in #ops yesterday?", room="general")
    assert not any(line[3] in elsewhere for line in OPS)


async def test_a_topic_is_looked_for_everywhere_and_first_in_the_named_room(harness: AppHarness) -> None:
    await harness.say("dave", "Certificates expire on the tenth of April.", room="general")
    text = await recalled(harness, "when do certificates expire, as was said in #ops?")
    assert text.index("ninth of March") < text.index("tenth of April")
    text = await recalled(harness, "when do certificates expire, as was said in #general?")
    assert text.index("tenth of April") < text.index("ninth of March")
