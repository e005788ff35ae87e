"""Two values of one key that hold at once, of a room and its project, are shown as a conflict, and said so when set."""

import pytest

from tests.support.harness import AppHarness

ROOM = {"room": "base"}
VALUES = [
    ("launch_date", "3 May", "9 May"),
    ("budget", "5000", "7000"),
    ("wifi", "zqold", "zqnew"),
    ("Liefertag", "Montag", "Dienstag"),
    ("締切", "月曜日", "火曜日"),
]


async def facts(harness: AppHarness, user: str = "alice") -> str:
    composed = await harness.compose(user, "@nexus hello", **ROOM)
    return next(each.text for each in composed.prompt.sections if each.name == "FACTS")


@pytest.fixture
async def project(harness: AppHarness) -> AppHarness:
    await harness.say("alice", "hello", **ROOM)
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    await harness.command("alice", "/nexus project assign apollo --yes", **ROOM)
    return harness


@pytest.mark.parametrize(("key", "old", "new"), VALUES)
async def test_a_room_and_its_project_that_differ_are_shown_as_a_conflict(
    project: AppHarness, key: str, old: str, new: str
) -> None:
    first = await project.command("alice", f"/nexus fact set {key} {old} --project --yes", **ROOM)
    assert first.text.startswith(key)
    assert "Another value" not in first.text
    second = await project.command("alice", f"/nexus fact set {key} {new}", **ROOM)
    assert "Another value holds, too: " in second.text
    assert old in second.text
    lines = (await facts(project)).splitlines()[1:]
    assert len(lines) == 2
    assert next(line for line in lines if new in line).endswith("; conflicts with another value, this is newer)")
    assert next(line for line in lines if old in line).endswith("; conflicts with another value, that is newer)")


async def test_equal_values_and_those_of_two_people_are_no_conflict(project: AppHarness) -> None:
    await project.command("alice", "/nexus fact set day Friday --project --yes", **ROOM)
    assert "Another" not in (await project.command("alice", "/nexus fact set day Friday", **ROOM)).text
    await project.command("alice", "/nexus fact set drink tea --everywhere --yes", **ROOM)
    await project.say("bob", "hello", **ROOM)
    assert (
        "Another" not in (await project.command("bob", "/nexus fact set drink coffee --everywhere --yes", **ROOM)).text
    )
    assert "conflict" not in await facts(project)
