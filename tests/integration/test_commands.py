"""The commands: what they say, what they keep, and that the same event twice is one call."""

import re

import pytest

from bot.commands.command import CommandAnswer
from bot.commands.table import COMMANDS, parse, run_command
from bot.console.script import incoming
from composer.errors import BadInput, NexusError, Refused
from tests.support.canaries import place
from tests.support.harness import AppHarness

pytestmark = pytest.mark.integration

ROOM = {"room": "general"}


async def call(harness: AppHarness, text: str, id: str, user: str = "alice") -> CommandAnswer:
    """A command as a door hands it in, by the id of its event."""
    here = harness.workspace()
    return await run_command(
        harness.app, here, incoming(here, place(ROOM), user, f"/nexus {text}", harness.clock.tick(), id=id)
    )


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("/nexus fact set a 1", "fact set", "a 1"),
        ("/fact set a 1", "fact set", "a 1"),
        ("/NEXUS FACT SET a  1 ", "fact set", "a  1"),
        ("/nexus", "help", ""),
        ("/nexus remember  two\nlines", "remember", "two\nlines"),
        ("/why", "why", ""),
    ],
)
def test_a_command_is_found_by_its_words_and_keeps_what_follows(text: str, name: str, words: str) -> None:
    command, rest = parse(text)
    assert (command.name, rest) == (name, words)


@pytest.mark.parametrize(
    ("text", "near"),
    [("/nexus fact", "fact set, fact get"), ("/nexus nothing", "agents, "), ("/nexusfact", "agents, ")],
)
def test_an_unknown_command_is_answered_with_those_there_are(text: str, near: str) -> None:
    with pytest.raises(BadInput, match=re.escape(near)):
        parse(text)


async def test_help_names_every_command(harness: AppHarness) -> None:
    said = (await harness.command("alice", "/nexus help", **ROOM)).text
    for command in COMMANDS.values():
        assert f"/nexus {command.name}" in said
        assert command.help in said


async def test_a_fact_is_exact_and_has_a_history(harness: AppHarness) -> None:
    for value in ('{"day": "Friday", "at": [1, 2.5]}', '"Monday"', "null"):
        await harness.command("alice", f"/nexus fact set deploy {value}", **ROOM)
    assert (await harness.command("bob", "/nexus fact get deploy", **ROOM)).text.startswith(
        "deploy = null  (this room; "
    )
    history = (await harness.command("bob", "/nexus fact history deploy", **ROOM)).text.splitlines()
    assert [re.sub(r"^.*?: |  \(alice\)$", "", line) for line in history] == [
        '{"at": [1, 2.5], "day": "Friday"}',
        '"Monday"',
        "null",
    ]
    assert [" to now: " in line for line in history] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("fact set a", "A fact needs a key and a JSON value"),
        ("fact set a Friday", 'The value Friday is not JSON; for a text write "Friday".'),
        ("fact set a NaN", "The value NaN can't be stored: it must not hold NaN, infinity or NUL."),
        ('fact set a "\\u0000"', "can't be stored"),
        (f"fact set {'k' * 201} 1", "A fact's key is one word of at most 200 characters."),
        ("fact set a 1 --global --everywhere", "Choose one of --everywhere and --global."),
        ("fact set a 1 --nowhere", "/nexus fact set has no --nowhere; it has --everywhere --project --global."),
        ("remember", "The text is missing."),
        ("remember " + "x" * 100_001, "That has 100,001 characters; the most is 100,000."),
        ("project create Ünknown!", "A project's name is 1 to 32 characters"),
        ("project member add", "Who, and where?"),
        ("project unassign", "This conversation is in no project."),
        ("recall", "What is to be recalled?"),
        ("forget", "What is to be forgotten?"),
    ],
)
async def test_what_is_wrong_is_said_and_nothing_is_kept(harness: AppHarness, text: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)):
        await harness.command("alice", f"/nexus {text}", **ROOM)
    assert (await harness.command("alice", "/nexus fact list", **ROOM)).text == "There are no facts here."
    assert "I recall nothing" in (await harness.command("alice", "/nexus recall x Friday", **ROOM)).text


async def test_only_an_admin_sets_something_for_everyone(harness: AppHarness) -> None:
    with pytest.raises(Refused, match=r"^Only an admin of this workspace may set something for everyone\.$"):
        await harness.command("alice", "/nexus fact set a 1 --global", **ROOM)


async def test_a_role_says_what_may_be_done_in_a_project(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    await harness.command("alice", "/nexus project assign apollo", **ROOM)
    for user in ("bob", "carol"):
        await harness.say(user, "hello", **ROOM)
        with pytest.raises(NexusError):
            await harness.command(user, "/nexus fact set a 1 --project", **ROOM)
    await harness.command("alice", "/nexus project member add apollo bob read", **ROOM)
    for text in ("fact set a 1 --project", "project assign apollo", "project member add apollo carol"):
        with pytest.raises(Refused):
            await harness.command("bob", f"/nexus {text}", room="bobs")
    await harness.command("alice", "/nexus project member add apollo bob write", **ROOM)
    await harness.command("bob", "/nexus fact set a 1 --project", **ROOM)
    with pytest.raises(Refused, match="Only an admin of apollo"):
        await harness.command("bob", "/nexus project member add apollo carol", **ROOM)
    listed = (await harness.command("bob", "/nexus project member list apollo", **ROOM)).text
    assert listed == "alice  admin\nbob  write"
    await harness.command("bob", "/nexus project member remove apollo bob", **ROOM)
    with pytest.raises(NexusError, match="There is no project 'apollo' here"):
        await harness.command("bob", "/nexus project member list apollo", **ROOM)


async def test_the_same_event_twice_is_one_call(harness: AppHarness) -> None:
    for _ in range(2):
        await call(harness, "fact set deploy 1", "c1")
        await call(harness, "fact set deploy 2", "c2")
        await call(harness, "remember the vault is open", "c3")
        await call(harness, "landmark add the vault is open", "c4")
    assert (await call(harness, "fact get deploy", "c5")).text.startswith("deploy = 2  ")
    assert len((await call(harness, "fact history deploy", "c6")).text.splitlines()) == 2
    assert len((await call(harness, "landmark list", "c7")).text.splitlines()) == 1
    assert (await call(harness, "recall vault", "c8")).text.count("the vault is open") == 1
