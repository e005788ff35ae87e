"""What a command is judged by: who its sender is to the room, now, and once more when it changes something."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from bot.commands.command import Call
from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.errors import NotFound, Refused
from composer.model import ConversationKind, Place, room_id, user_id
from composer.ports.database import Mode
from composer.repositories.database import Transaction
from composer.rights.relations import ActorFacts
from tests.support.harness import AppHarness

CAVE: dict[str, Any] = {"room": "cave"}


async def facts(harness: AppHarness, user: str, room: str) -> ActorFacts:
    """What a person is to a room, as of now."""
    at = harness.workspace()
    async with harness.app.database.transaction(at.tenant_id) as tx:
        conversation = await tx.conversations.get(room_id(at, room))
        assert conversation is not None
        return await tx.permissions.facts(conversation, user_id(at, user), ())


def meanwhile(monkeypatch: pytest.MonkeyPatch, harness: AppHarness, user: str, room: str) -> None:
    """Let a person leave a room after their command was judged, and before it changes anything."""
    changing = Call.changing

    @asynccontextmanager
    async def overtaken(call: Call, mode: Mode = "share") -> AsyncIterator[Transaction]:
        await harness.move(user, room, joined=False)
        async with changing(call, mode) as tx:
            yield tx

    monkeypatch.setattr(Call, "changing", overtaken)


@pytest.mark.parametrize("line", ["fact set vault open", "project create vault"])
async def test_who_leaves_a_private_room_while_their_command_runs_does_nothing_there(
    harness: AppHarness, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.say("alice", "good morning", private=True, **CAVE)
    await harness.move("bob", "cave", joined=True)
    assert (await facts(harness, "bob", "cave")).access.joined
    meanwhile(monkeypatch, harness, "bob", "cave")
    with pytest.raises(NotFound, match=r"^There is no room 'cave' here\.$"):
        await harness.command("bob", f"/nexus {line}", **CAVE)
    assert "vault" not in (await harness.command("alice", "/nexus fact list", **CAVE)).text
    assert "vault" not in (await harness.command("bob", "/nexus project list", room="lobby")).text


async def test_a_right_that_is_lost_while_the_command_runs_does_not_count(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.say("alice", "good morning", room="lobby")
    await harness.say("bob", "good morning", room="lobby")
    meanwhile(monkeypatch, harness, "alice", "lobby")
    with pytest.raises(Refused, match="Only an admin of #lobby may change what is stored"):
        await harness.command("alice", "/nexus memory off", room="lobby")
    assert "off" not in (await harness.command("bob", "/nexus memory", room="lobby")).text


async def test_who_has_left_a_room_is_not_its_admin_whatever_the_row_of_their_membership_says(
    harness: AppHarness,
) -> None:
    await harness.say("alice", "good morning", room="lobby")
    assert (await facts(harness, "alice", "lobby")).room_admin
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:  # leaving ends the right too; this row is as if it did not
        await connection.execute("UPDATE members SET left_at = joined_at, admin = true")
    finally:
        await connection.close()
    found = await facts(harness, "alice", "lobby")
    assert (found.room_admin, found.access.joined) == (False, False)


async def test_who_opened_a_room_and_left_it_is_not_its_admin_again_when_they_come_back(harness: AppHarness) -> None:
    await harness.say("alice", "good morning", room="lobby")
    await harness.move("alice", "lobby", joined=False)
    await harness.move("alice", "lobby", joined=True)
    found = await facts(harness, "alice", "lobby")
    assert (found.room_admin, found.access.joined) == (False, True)


@pytest.mark.parametrize("platform", ["slack", "discord"])
async def test_where_the_platform_names_the_admins_of_a_room_who_writes_first_is_none(
    harness: AppHarness, platform: str
) -> None:
    at = replace(harness.workspace(), platform=platform)
    first = replace(
        incoming(at, place_of("general", None, None), "alice", "good morning", harness.clock.tick()),
        place=Place(ConversationKind.ROOM, "general", private=False),
    )
    await harness.app.receive(at, [first])
    off = replace(first, id="off", text="/nexus memory off", at=harness.clock.tick())
    with pytest.raises(Refused, match="Only an admin of #general may change what is stored"):
        await run_command(harness.app, at, off)
    by_admin = replace(off, id="by admin", sender_is_room_admin=True)
    assert "off" in (await run_command(harness.app, at, by_admin)).text
