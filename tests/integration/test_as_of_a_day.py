"""`--on DAY` shows facts and memories as they were at the end of that day."""

from datetime import UTC, datetime

import pytest

from composer.errors import BadInput
from tests.support.harness import AppHarness

ROOM = {"room": "general"}


def on(day: int, hour: int = 12) -> datetime:
    return datetime(2026, 5, day, hour, tzinfo=UTC)


async def test_facts_are_shown_as_of_a_day(harness: AppHarness) -> None:
    for day, value in ((5, "Monday"), (7, "Friday")):
        harness.clock.set(on(day))
        await harness.command("alice", f"/nexus fact set deploy_day {value}", **ROOM)

    async def shown(command: str) -> str:
        return (await harness.command("alice", f"/nexus {command}", **ROOM)).text

    assert "Friday" in await shown("fact get deploy_day")
    assert "Monday" in await shown("fact get deploy_day --on 2026-05-06")
    assert "Monday" in await shown("fact list --on 2026-05-05"), "the end of the day counts"
    assert await shown("fact get deploy_day --on 2026-05-04") == "There is no fact 'deploy_day' here on 2026-05-04."
    assert "Friday" in await shown("fact list --on 2026-05-07")
    with pytest.raises(BadInput, match="2026-05-08 is still to come"):
        await shown("fact list --on 2026-05-08")
    for word in ("yesterday", "Wednesday"):
        assert "Monday" in await shown(f"fact get deploy_day --on {word}")
    assert "Friday" in await shown("fact get deploy_day --on today")
    assert await shown("fact get deploy_day --on monday") == "There is no fact 'deploy_day' here on 2026-05-04."


async def test_recall_finds_what_was_known_on_a_day(harness: AppHarness) -> None:
    harness.clock.set(on(5))
    await harness.say("alice", "the launch code is heron", **ROOM)
    harness.clock.set(on(7))
    await harness.say("alice", "the launch code is osprey", **ROOM)

    async def found(flag: str) -> str:
        return (await harness.command("alice", f"/nexus recall launch code {flag}", **ROOM)).text

    assert "osprey" in await found("")
    assert "heron" in await found("--on 2026-05-06")
    assert "osprey" not in await found("--on 2026-05-06")
    assert await found("--on 2026-05-04") == (
        "I found nothing about that here on 2026-05-04. Try other words, or ask where it was discussed."
    )


async def test_a_superseded_memory_is_current_again_on_an_earlier_day(harness: AppHarness) -> None:
    harness.clock.set(on(5))
    await harness.say("alice", "I prefer tea.", **ROOM)
    harness.clock.set(on(7))
    await harness.say("alice", "I don't prefer tea any more.", **ROOM)
    then = (await harness.command("alice", "/nexus recall tea --on 2026-05-06", **ROOM)).text
    assert "any more" not in then
    assert "tea" in then
