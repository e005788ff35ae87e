"""A button does what was shown: not less because the room went on talking, and never something else."""

from typing import Any

import asyncpg
import pytest

from bot.commands.command import CommandAnswer
from bot.commands.confirmations import Confirmations
from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.errors import NexusError
from composer.model import Incoming
from tests.support.harness import AppHarness

pytestmark = pytest.mark.integration

ROOM: dict[str, Any] = {"room": "general"}


def given(harness: AppHarness, text: str) -> Incoming:
    return incoming(harness.workspace(), place_of("general", None, None), "alice", text, harness.clock.tick())


async def pressed(harness: AppHarness, confirmations: Confirmations, button: str | None) -> CommandAnswer:
    async def run(command: Incoming, *, only_show: bool = False) -> CommandAnswer:
        try:
            return await run_command(harness.app, harness.workspace(), command, only_show=only_show)
        except NexusError as error:
            return CommandAnswer(str(error))

    assert button is not None
    return (await confirmations.press(button, given(harness, ""), harness.clock.now(), run))[1]


async def shown(harness: AppHarness, confirmations: Confirmations, text: str) -> str | None:
    command = given(harness, text)
    return confirmations.button(command, await run_command(harness.app, harness.workspace(), command))


async def test_a_button_works_in_a_room_that_goes_on_talking(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    confirmations = Confirmations()
    button = await shown(harness, confirmations, "/nexus erase room")
    await harness.say("bob", "one more message", **ROOM)
    assert "Forgotten for good: 2 messages" in (await pressed(harness, confirmations, button)).text


async def test_looking_again_never_does_the_act(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    confirmations = Confirmations()
    button = await shown(harness, confirmations, "/nexus project assign apollo")
    await harness.command("alice", "/nexus project assign apollo --yes", **ROOM)  # so the act opens nothing any more
    before = await audited(harness)
    assert "nothing was done" in (await pressed(harness, confirmations, button)).text
    assert await audited(harness) == before


async def audited(harness: AppHarness) -> int:
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM audit_events") or 0)
    finally:
        await connection.close()
