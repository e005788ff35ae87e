"""Who is in a private room of a chat platform is asked when it would be read outside it, and kept for a minute."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from bot.commands.table import run_command
from composer.errors import Unavailable
from composer.ingest.rooms import set_room_members
from composer.model import ConversationKind, Incoming, Place, Trust, Workspace, room_id, user_id
from composer.ports.memberships import NOWHERE, RoomsOnPlatform
from composer.settings import Settings, TenantSettings
from composer.tasks.signals import end_tasks
from composer.turn import memberships
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import until

CODE = "The code of the harbour is zqvault."
QUESTION = "what is the code of the harbour?"
UNSAID = "does not tell me now which private channels you are in"


@dataclass
class Platform:
    """A chat platform that knows who is in which room; `asked` are the questions that it was asked."""

    inside: set[tuple[str, str]] = field(default_factory=set)  # person, room
    asked: list[tuple[str, str]] = field(default_factory=list)  # workspace, person
    broken: Exception | None = None
    silent: bool = False
    slow: bool = False

    async def rooms_of(self, workspace: str, person: str) -> RoomsOnPlatform | None:
        self.asked.append((workspace, person))
        if self.broken is not None:
            raise self.broken
        if self.slow:
            await asyncio.Event().wait()
        return None if self.silent else RoomsOnPlatform([room for who, room in self.inside if who == person])


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    """A Slack workspace with the private channel vault, in which alice and bob have written. The DMs of both read
    rooms, and the platform says nothing yet."""
    workspaces = ("slack:T1", "slack:T2", "discord:G1")
    tenants = {"acme": TenantSettings(workspaces=workspaces)}
    async with open_harness(settings.model_copy(update={"tenants": tenants})) as harness:
        harness.app.turns.serve("slack", harness.delivery)
        for user in ("alice", "bob"):
            await write(harness, user, CODE if user == "bob" else "hello")
            await write(harness, user, "hello", dm=True)
            await order(harness, user, "rooms on")
        yield harness


@pytest.fixture
def slack(harness: AppHarness) -> Platform:
    platform = Platform({("alice", "vault"), ("bob", "vault")})
    harness.app.memberships.serve("slack", platform)
    return platform


def workspace(harness: AppHarness, platform: str = "slack", name: str = "T1") -> Workspace:
    return harness.app.directory.workspace(platform, name)


def sent(harness: AppHarness, user: str, text: str, *, dm: bool, seconds: float = 1) -> Incoming:
    place = Place(ConversationKind.DM, "nexus") if dm else Place(ConversationKind.ROOM, "vault", private=True)
    at = harness.clock.tick(seconds)
    return Incoming("slack", "T1", place, user, user, f"{at.timestamp()}", text, at, sender_trust=Trust.MEMBER)


async def write(harness: AppHarness, user: str, text: str, *, dm: bool = False, answer: bool = False) -> None:
    here = workspace(harness)
    await harness.app.receive(here, [sent(harness, user, text, dm=dm)], answer=answer)
    await harness.app.turns.settle()
    await harness.app.indexer.catch_up(here.tenant_id)


async def order(harness: AppHarness, user: str, text: str, *, dm: bool = True) -> str:
    given = sent(harness, user, f"/nexus {text}", dm=dm)
    return (await run_command(harness.app, workspace(harness), given)).text


async def sees(harness: AppHarness, user: str = "alice") -> bool:
    """Whether somebody's DM reads the room."""
    return "zqvault" in await order(harness, user, f"recall {QUESTION}")


async def test_a_private_channel_is_read_by_those_of_whom_the_platform_says_that_they_are_in_it(
    harness: AppHarness, slack: Platform
) -> None:
    slack.inside = {("alice", "vault")}
    assert await sees(harness)
    assert not await sees(harness, "bob"), "who is recorded as a member, but has left unnoticed"
    await write(harness, "carol", "hello", dm=True)
    await order(harness, "carol", "rooms on")
    assert not await sees(harness, "carol")
    harness.clock.tick(61)
    slack.inside |= {("carol", "vault")}
    assert await sees(harness, "carol"), "who was never heard of there"


async def test_an_answer_is_read_from_it_too(harness: AppHarness, slack: Platform) -> None:
    await write(harness, "alice", QUESTION, dm=True, answer=True)
    assert "zqvault" in await order(harness, "alice", "why --prompt") + await order(harness, "alice", "why")
    slack.inside.clear()
    harness.clock.tick(61)
    assert "vault" not in await order(harness, "alice", "why")
    await write(harness, "alice", QUESTION, dm=True, answer=True)
    assert "zqvault" not in await order(harness, "alice", "why")


async def test_what_a_platform_said_is_used_for_a_minute_and_for_nobody_else(
    harness: AppHarness, slack: Platform
) -> None:
    assert await sees(harness)
    slack.inside.clear()
    harness.clock.tick(57)
    assert await sees(harness)
    assert slack.asked == [("T1", "alice")]
    assert not await sees(harness, "bob")
    harness.clock.tick(3)
    assert not await sees(harness)
    assert slack.asked == [("T1", "alice"), ("T1", "bob"), ("T1", "alice")]


async def test_what_was_said_of_a_later_time_than_now_is_not_used(harness: AppHarness, slack: Platform) -> None:
    assert await sees(harness)
    slack.inside.clear()
    harness.clock.tick(-3_600)
    assert not await sees(harness)


async def test_who_is_told_to_have_left_reads_it_no_more_at_once_in_every_process(
    harness: AppHarness, slack: Platform
) -> None:
    assert await sees(harness)
    gone = {"vault": {"alice": False}}
    await set_room_members(harness.app.database, workspace(harness), gone, harness.clock.tick(1))
    assert not await sees(harness)
    assert slack.asked == [("T1", "alice")]
    harness.clock.tick(60)
    assert await sees(harness), "the platform says otherwise since"


@pytest.mark.parametrize("how", ["silent", "away", "failing", "slow", "unserved"])
async def test_without_an_answer_nothing_private_is_read_and_that_is_said(
    harness: AppHarness, slack: Platform, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    assert await sees(harness)
    harness.clock.tick(61)
    slack.silent, slack.slow = how == "silent", how == "slow"
    slack.broken = {"away": Unavailable("Slack is away."), "failing": KeyError("channels")}.get(how)
    if how == "slow":
        monkeypatch.setattr(memberships, "ASK_SECONDS", 0.01)
    if how == "unserved":
        del harness.app.memberships._sources["slack"]
        harness.app.memberships.serve("discord", Platform())
    assert not await sees(harness)
    in_the_room = await order(harness, "alice", f"recall {QUESTION}", dm=False)
    assert "zqvault" in in_the_room, "as always"
    said = await order(harness, "alice", "rooms")
    assert UNSAID in said
    assert "vault" not in said
    slack.silent, slack.slow, slack.broken = False, False, None
    harness.app.memberships.serve("slack", slack)
    assert await sees(harness), "what failed is not kept"
    said = await order(harness, "alice", "rooms")
    assert UNSAID not in said
    assert '"#vault"' in said


async def test_a_process_that_can_ask_nobody_reads_no_private_channel(harness: AppHarness) -> None:
    assert not await sees(harness)
    here = workspace(harness)
    assert await harness.app.memberships.of(here.tenant_id, user_id(here, "alice")) is NOWHERE


async def test_the_room_of_another_workspace_or_platform_is_not_meant(harness: AppHarness, slack: Platform) -> None:
    """Ids are of one workspace: a room that is called the same elsewhere is another room."""
    tenant, account = workspace(harness).tenant_id, ("slack", "T2", "alice")
    said = await harness.app.memberships._answer(tenant, account)
    assert said is not None
    assert said[1] == {room_id(workspace(harness, name="T2"), "vault")}
    assert room_id(workspace(harness), "vault") not in said[1]


async def test_nobody_is_asked_about_whose_dm_reads_no_rooms_nor_in_a_room(
    harness: AppHarness, slack: Platform
) -> None:
    await order(harness, "alice", "rooms off")
    slack.asked.clear()
    harness.clock.tick(61)
    await write(harness, "alice", QUESTION, dm=True, answer=True)
    await write(harness, "bob", f"@nexus {QUESTION}", answer=True)
    assert not slack.asked
    await order(harness, "bob", "remember the tree is oak")
    assert not slack.asked


async def test_all_accounts_of_a_person_are_asked_about(harness: AppHarness, slack: Platform) -> None:
    """What one of their platforms does not say is left out; the rest is read."""
    discord = Platform({("9", "den")})
    harness.app.memberships.serve("discord", discord)
    there = workspace(harness, "discord", "G1")
    at = harness.clock.tick()
    place = Place(ConversationKind.ROOM, "den", private=True)
    told = Incoming("discord", "G1", place, "8", "eve", "1", "The code of the harbour is zqden.", at)
    own = Incoming("discord", "G1", Place(ConversationKind.DM, "nexus"), "9", "alice", "2", "hello", at)
    for each in (told, own):
        await harness.app.receive(there, [each], answer=False)
    await harness.app.indexer.catch_up(there.tenant_id)
    async with harness.app.database.transaction(there.tenant_id, "alone") as tx:
        await tx.people.link(user_id(workspace(harness), "alice"), user_id(there, "9"))
    shown = await order(harness, "alice", f"recall {QUESTION}")
    assert "zqvault" in shown
    assert "zqden" in shown
    assert (slack.asked[-1], discord.asked[-1]) == (("T1", "alice"), ("G1", "9"))
    harness.clock.tick(61)
    discord.broken = Unavailable("Discord is away.")
    shown = await order(harness, "alice", f"recall {QUESTION}")
    assert "zqvault" in shown
    assert "zqden" not in shown
    assert UNSAID in await order(harness, "alice", "rooms")


async def test_no_connection_to_the_database_is_held_while_a_platform_is_asked(
    harness: AppHarness, slack: Platform
) -> None:
    """As many DMs as a process has connections, and more, may wait for a platform that is slow."""
    people = [f"p{number}" for number in range(20)]
    for user in people:
        await write(harness, user, "hello", dm=True)
    slack.slow = True
    here = workspace(harness)
    waiting = [asyncio.create_task(harness.app.memberships.of(here.tenant_id, user_id(here, user))) for user in people]
    await until(lambda: len(slack.asked) == len(people))
    async with asyncio.timeout(30), harness.app.database.transaction(here.tenant_id) as tx:
        assert await tx.people.trust(user_id(here, "alice")) is not None
    await end_tasks(waiting)


async def test_a_private_room_of_the_terminal_is_read_as_its_own_store_says(harness: AppHarness) -> None:
    await harness.say("dora", CODE, room="cave", private=True)
    await harness.say("dora", "hello", dm="nexus")
    await harness.command("dora", "/nexus rooms on", dm="nexus")
    assert "zqvault" in (await harness.command("dora", f"/nexus recall {QUESTION}", dm="nexus")).text
    await harness.move("dora", "cave", joined=False)
    assert "zqvault" not in (await harness.command("dora", f"/nexus recall {QUESTION}", dm="nexus")).text


async def test_the_age_of_an_answer_is_a_minute() -> None:
    assert timedelta(minutes=1) == memberships.MAX_AGE
