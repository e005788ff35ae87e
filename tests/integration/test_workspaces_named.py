"""Commands of the program name the workspaces that there are, where nothing is stored in the one they were given."""

import pytest

from bot.console import operations
from bot.console.conversations import question
from bot.console.workspaces import naming_workspaces
from bot.script.places import place_of
from composer.errors import NotFound
from composer.model import CONSOLE
from tests.support.harness import AppHarness


async def test_whoever_left_out_the_workspace_is_told_which_there_are(harness: AppHarness) -> None:
    await harness.say("alice", "hello", room="general", workspace="zoo")
    await harness.say("alice", "hello", room="general", workspace="aviary")
    for user in ("alice", "nobody"):
        with pytest.raises(NotFound, match=r"Nothing is stored in the workspace default; .* -w: aviary, zoo\.$"):
            async with naming_workspaces(harness.app, CONSOLE, "default"):
                await operations.set_admin(harness.app, "default", user, True)
    where = harness.app.directory.workspace(CONSOLE, "default"), place_of(None, "nexus", None)
    with pytest.raises(NotFound, match=r"There is no user 'alice' in the workspace default.*-w: aviary, zoo"):
        async with naming_workspaces(harness.app, CONSOLE, "default"):
            await question(harness.app, *where, "alice", "well?", harness.clock.now(), top_k=None, id="q")


async def test_nothing_is_added_where_the_workspace_is_in_use_or_is_the_only_one(harness: AppHarness) -> None:
    for _ in range(2):
        with pytest.raises(NotFound, match=r"^There is no user 'nobody' in the workspace zoo\.$"):
            async with naming_workspaces(harness.app, CONSOLE, "zoo"):
                await operations.set_admin(harness.app, "zoo", "nobody", True)
        await harness.say("alice", "hello", room="general", workspace="zoo")
    with pytest.raises(NotFound, match=r"workspace T1\.$"):  # workspaces of other platforms are none of this one's
        async with naming_workspaces(harness.app, "slack", "T1"):
            await operations.export_user(harness.app, "slack", "T1", "U1")
