"""Facts whose key is set by several at the same time, or set while its value is being forgotten."""

import asyncio
from typing import Any

import pytest

from composer.memory.forget import forget
from composer.memory.remember import Author, set_fact
from composer.model import Visibility, room_id, user_id
from composer.settings import Settings
from composer.visibility import AccessTag
from tests.deep.integration.test_interrupted_commands import rows
from tests.support.harness import AppHarness
from tests.support.waiting import until

ROOM: dict[str, Any] = {"room": "board"}


async def waits(settings: Settings) -> bool:
    """Whether somebody waits for a lock."""
    return bool((await rows(settings, "SELECT count(*) FROM pg_locks WHERE NOT granted"))[0])


async def tag_of(harness: AppHarness, user: str) -> AccessTag:
    await harness.say("alice", "hello", **ROOM)
    await harness.say("bob", "hello", **ROOM)
    at = harness.workspace()
    return AccessTag(f"room:{room_id(at, 'board')}", Visibility.PUBLIC, user_id(at, user))


@pytest.mark.parametrize("before", [False, True])
async def test_a_key_that_two_set_at_the_same_time_has_the_later_value_and_both_in_its_history(
    harness: AppHarness, settings: Settings, before: bool
) -> None:
    tag = await tag_of(harness, "alice")
    if before:
        await harness.command("alice", "/nexus fact set day Friday", **ROOM)
    at, now, is_set = harness.workspace(), harness.clock.tick(), asyncio.Event()

    async def monday() -> None:
        async with harness.app.database.transaction(at.tenant_id) as tx:
            await set_fact(tx, tag, "day", '"Monday"', Author("alice"), "mcp", "one", now)
            is_set.set()
            await until(lambda: waits(settings))

    async def tuesday() -> None:
        await is_set.wait()
        async with harness.app.database.transaction(at.tenant_id) as tx:
            await set_fact(tx, tag, "day", '"Tuesday"', Author("alice"), "mcp", "two", now)

    await asyncio.gather(monday(), tuesday())
    assert (await harness.command("bob", "/nexus fact get day", **ROOM)).text.startswith('day = "Tuesday"')
    history = (await harness.command("bob", "/nexus fact history day", **ROOM)).text
    assert [day for day in ("Friday", "Monday", "Tuesday") if day in history] == [
        *(["Friday"] if before else []),
        "Monday",
        "Tuesday",
    ]
    assert await rows(settings, "SELECT count(*) FROM facts WHERE valid_to IS NULL") == [1]


async def test_a_fact_may_be_set_while_its_value_is_being_forgotten(harness: AppHarness, settings: Settings) -> None:
    tag = await tag_of(harness, "bob")
    await harness.command("alice", "/nexus fact set day Friday", **ROOM)
    at, is_set = harness.workspace(), asyncio.Event()
    (id,) = await rows(settings, "SELECT id FROM facts")

    async def set_monday() -> None:
        async with harness.app.database.transaction(at.tenant_id) as tx:
            await set_fact(tx, tag, "day", '"Monday"', Author("bob"), "mcp", "request", harness.clock.now())
            is_set.set()
            await until(lambda: waits(settings))

    async def forget_friday() -> None:
        await is_set.wait()
        async with harness.app.database.transaction(at.tenant_id, "alone") as tx:
            await forget(tx, [], [("fact", id)], harness.clock.now())

    await asyncio.gather(set_monday(), forget_friday())
    assert (await harness.command("bob", "/nexus fact get day", **ROOM)).text.startswith('day = "Monday"')
    assert "Friday" not in (await harness.command("bob", "/nexus fact history day", **ROOM)).text
