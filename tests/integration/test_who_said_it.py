"""Who said something is part of it: equal words of several people are several, and namesakes are told apart."""

from dataclasses import replace

import pytest

from bot.script.places import incoming, place_of
from tests.support.harness import AppHarness

ROOM = {"room": "general"}


async def section(harness: AppHarness, user: str, text: str, name: str = "RECALL") -> str:
    await harness.say(user, "here we go on", **ROOM, thread="later")
    composed = await harness.compose(user, text, **ROOM, thread="later")
    return next(each.text for each in composed.prompt.sections if each.name == name)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("I prefer tea.", "who prefers tea?"),
        ("I can work on Saturday.", "who can work on Saturday?"),
        ("I am allergic to peanuts.", "who is allergic to peanuts?"),
        ("+1 for the blue logo", "who is for the blue logo?"),
        ("Ich nehme das Fahrrad.", "Wer nimmt das Fahrrad?"),
    ],
)
async def test_what_four_people_say_alike_is_recalled_of_each(harness: AppHarness, said: str, asked: str) -> None:
    for user in ("ann", "ben", "cem", "dee"):
        await harness.say(user, said, **ROOM)
        await harness.say(user, said, **ROOM)  # once more by the same person counts as one
    recalled = await section(harness, "eve", f"@nexus {asked}")
    assert [recalled.count(f" {user} (") for user in ("ann", "ben", "cem", "dee")] == [1, 1, 1, 1]


async def test_what_the_asker_said_is_marked_as_their_own(harness: AppHarness) -> None:
    await harness.say("ann", "My locker is number 12.", **ROOM)
    await harness.say("ben", "My locker is number 44.", **ROOM)
    recalled = await section(harness, "ben", "@nexus what is my locker number?")
    own, other = sorted(recalled.splitlines()[1:], key=lambda line: " ann " in line)
    assert " ben (the asker's own, " in own
    assert "asker" not in other


async def test_people_of_one_name_are_told_apart_by_the_command_too(harness: AppHarness) -> None:
    where = place_of("general", None, None)
    for user, text in (("u1", "My desk is by the window."), ("u2", "My desk is next to the kitchen.")):
        said = incoming(harness.workspace(), where, user, text, harness.clock.tick())
        await harness.app.receive(harness.workspace(), [replace(said, user_name="Alex Kim")])
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    found = (await harness.command("eve", "/nexus recall desk", **ROOM)).text
    assert "Alex Kim [1] (" in found
    assert "Alex Kim [2] (" in found
