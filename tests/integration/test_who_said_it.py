"""Who said something is part of it: equal words of several people are several, and namesakes are told apart."""

import re
from dataclasses import replace

import pytest

from bot.console import schedule
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
    assert len(set(re.findall(r"Alex Kim \[\d{4}\] \(", found))) == 2


async def said_as(harness: AppHarness, user: str, name: str, text: str) -> None:
    said = incoming(harness.workspace(), place_of("general", None, None), user, text, harness.clock.tick())
    await harness.app.receive(harness.workspace(), [replace(said, user_name=name)])


def numbers_before(text: str, said: str) -> set[str]:
    return set(re.findall(rf"alice( \[\d{{4}}\])?(?: \([^)]*\))?(?:, [^:]* \d\d:\d\d)?: {said}", text))


@pytest.mark.parametrize("newcomers", range(6))
async def test_who_is_who_in_a_stored_summary_stays_when_others_of_that_name_come(
    harness: AppHarness, newcomers: int
) -> None:
    await said_as(harness, "alice", "alice", "I take care of the invoices.")
    await said_as(harness, "mallory", "alice", "I sold the company car.")
    harness.clock.tick(30 * 3600)
    assert (await schedule.run(harness.app, "day", harness.clock.now())).done
    for number in range(newcomers):
        await said_as(harness, f"newcomer{number}", "alice", "Hello.")
    composed = await harness.compose("dora", "@nexus who sold the company car?", **ROOM)
    sections = {each.name: each.text for each in composed.prompt.sections}
    caught_up = (await harness.command("dora", "/nexus catch-up 40 hours", **ROOM)).text
    marks = list[set[str]]()
    for said in ("I take care", "I sold"):
        shown = [numbers_before(sections[name], said) for name in ("SUMMARIES", "WORKING")]
        shown.append(numbers_before(caught_up, said))
        assert shown[0] == shown[1] == shown[2]
        marks += shown
    assert marks[0] != marks[3]
    assert [len(each) for each in marks] == [1] * 6
    assert "" not in set.union(*marks)


async def test_who_speaks_alone_today_has_the_number_of_the_summary_of_two(harness: AppHarness) -> None:
    await said_as(harness, "alice", "alice", "I take care of the invoices.")
    await said_as(harness, "mallory", "alice", "I sold the company car.")
    harness.clock.tick(30 * 3600)
    assert (await schedule.run(harness.app, "day", harness.clock.now())).done
    for number in range(250):  # until what was said the day before stands in the summary alone
        await harness.say("bob", f"Ping {number}.", **ROOM)
    await said_as(harness, "alice", "alice", "Tea is ready.")
    composed = await harness.compose("dora", "@nexus is tea ready?", **ROOM)
    sections = {each.name: each.text for each in composed.prompt.sections}
    assert "I sold" not in sections["WORKING"]
    own = numbers_before(sections["SUMMARIES"], "I take care")
    assert own != numbers_before(sections["SUMMARIES"], "I sold")
    assert numbers_before(sections["WORKING"], "Tea is ready") == own
