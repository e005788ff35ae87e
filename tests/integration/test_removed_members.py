"""A command that is judged by who is in a project, and a change of that at the same moment: one waits for the other."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import pytest

from bot.commands.command import Call
from composer.errors import NotFound, Refused
from composer.repositories.database import Transaction
from composer.settings import Settings
from tests.support.harness import AppHarness, open_harness
from tests.support.lock_waits import until_stopped

T = TypeVar("T")
LAB = {"room": "lab"}
ASSIGN = "project assign apollo --yes"
REMOVE = "project member remove apollo bob"


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    """The project apollo with alice as its admin, bob as a writer and the room #lab. bob has opened #den."""
    async with open_harness(settings) as harness:
        await harness.say("alice", "the vault code is walnut", **LAB)
        await harness.say("bob", "hello", **LAB)
        await harness.say("bob", "hello", room="den")
        for text in ("project create apollo", ASSIGN, "project member add apollo bob write"):
            await give(harness, "alice", text)
        await give(harness, "bob", "project accept apollo")
        yield harness


async def give(harness: AppHarness, user: str, text: str, room: str = "lab") -> str:
    return (await harness.command(user, f"/nexus {text}", room=room)).text


async def begun(settings: Settings, act: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """A task that is done, or waits for a lock."""
    task = asyncio.ensure_future(act)
    await until_stopped(settings, task)
    return task


async def remove_bob(harness: AppHarness, tx: Transaction) -> None:
    workspace = harness.workspace()
    bob = await tx.people.find_user(workspace.platform, workspace.name, "bob")
    alice = await tx.people.find_user(workspace.platform, workspace.name, "alice")
    assert bob is not None
    assert alice is not None
    (project,) = await tx.projects.find_for(alice.id)
    assert await tx.projects.remove_member(project.id, bob.id)


@pytest.mark.parametrize(
    ("room", "text"),
    [
        ("den", ASSIGN),
        ("lab", "remember --project --yes the tree is oak"),
        ("lab", "fact set --project --yes tree oak"),
        ("lab", "landmark add --project --yes the tree is oak"),
    ],
)
async def test_who_is_being_removed_does_nothing_by_a_role_once_removed(
    harness: AppHarness, settings: Settings, room: str, text: str
) -> None:
    async with harness.app.database.transaction(harness.workspace().tenant_id, "alone") as tx:
        await remove_bob(harness, tx)
        task = await begun(settings, give(harness, "bob", text, room))
        assert not task.done()
    with pytest.raises((NotFound, Refused)):
        await task
    shown = await harness.compose("bob", "what is the vault code?", room="den")
    assert "walnut" not in "".join(section.text for section in shown.prompt.sections)


async def test_what_one_shares_into_a_project_while_removed_stays_where_it_was(
    harness: AppHarness, settings: Settings
) -> None:
    await give(harness, "bob", "remember the tree is oak")
    id = next(line.split()[0] for line in (await give(harness, "bob", "share")).splitlines() if "oak" in line)
    async with harness.app.database.transaction(harness.workspace().tenant_id, "alone") as tx:
        await remove_bob(harness, tx)
        task = await begun(settings, give(harness, "bob", f"share {id} project --yes"))
        assert not task.done()
    with pytest.raises(Refused):
        await task


@pytest.mark.parametrize("text", [ASSIGN, "project member add apollo carol read"])
async def test_a_removal_waits_for_what_is_judged_before_it(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    await harness.say("carol", "hello", **LAB)
    await give(harness, "alice", "project member add apollo bob admin")
    real, judged, removals = Call.facts, [], list[asyncio.Task[str]]()

    async def facts(self: Call, tx: Transaction) -> Any:
        found = await real(self, tx)
        if self.line == f"/nexus {text.removesuffix(' --yes')}":
            judged.append(found)
            if len(judged) == 2:  # the first one looks only whether to ask for a yes
                removals.append(await begun(settings, give(harness, "alice", REMOVE)))
                assert not removals[0].done()
        return found

    monkeypatch.setattr(Call, "facts", facts)
    room = "den" if text == ASSIGN else "lab"
    await give(harness, "bob", text, room)
    assert "no longer" in await removals[0]
