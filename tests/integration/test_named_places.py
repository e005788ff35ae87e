"""A place that may not be read any more is named nowhere: in no explanation, mark, list, refusal or suggestion. And
commands that many give at once wait for each other, and end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pytest

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.errors import BadInput, NotFound, Refused
from composer.model import ConversationKind, Incoming, Place, Trust
from composer.ports.memberships import RoomsOnPlatform
from composer.settings import Settings
from tests.support.harness import AppHarness, open_harness

DM: Final[dict[str, Any]] = {"dm": "nexus"}
CODE: Final = "The code of the harbour is zqvault."
QUESTION: Final = "what is the code of the harbour?"
ASKED: Final = ("why", "why --prompt", f"recall {QUESTION}", "rooms", "project list", "remind list", "catch-up #vault")
Act = Callable[[AppHarness], Awaitable[object]]


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    """alice's DM reads the private room vault, where bob told the code, and she has asked for it."""
    async with open_harness(settings) as harness:
        await harness.say("bob", "hello", room="vault", private=True)
        await harness.move("alice", "vault", joined=True)
        await harness.say("bob", CODE, id="told", room="vault")
        await harness.command("alice", "/nexus rooms on", **DM)
        await harness.ask("alice", QUESTION, **DM)
        yield harness


async def told(harness: AppHarness, texts: tuple[str, ...] = ASKED, **place: Any) -> str:
    """All that alice is told by some commands."""
    answers = []
    for text in texts:
        try:
            answer = await harness.command("alice", f"/nexus {text}", **(place or DM))
        except (NotFound, Refused) as error:
            answers.append(str(error))
        except Exception as error:
            answers.append(str(error).replace("#vault", ""))
        else:
            answers.append(answer.text + ("" if answer.file is None else answer.file.text))
    return "\n".join(answers)


async def isolate(harness: AppHarness) -> None:
    await harness.command("bob", "/nexus project create ares --isolated", room="vault")
    await harness.command("bob", "/nexus project assign ares --yes", room="vault")


async def test_what_a_dm_reads_of_a_room_is_explained_there(harness: AppHarness) -> None:
    text = await told(harness)
    assert "zqvault" in text
    assert "#vault" in text, "the control"


@pytest.mark.parametrize(
    ("act", "named"),
    [
        (lambda harness: harness.move("alice", "vault", joined=False), False),
        (lambda harness: harness.command("alice", "/nexus rooms off", **DM), True),
        (isolate, False),
    ],
    ids=["she left", "rooms off", "isolated"],
)
async def test_what_is_out_of_reach_is_neither_told_nor_named(harness: AppHarness, act: Act, named: bool) -> None:
    await act(harness)
    assert "#vault" not in await told(harness, ("why --prompt", "why", f"recall {QUESTION}"))
    assert ("#vault" in await told(harness, ("rooms",))) is named


@pytest.fixture
async def office(settings: Settings) -> AsyncIterator[AppHarness]:
    """A Slack workspace: uma and vic are in the private channel den; the DM of each reads rooms."""
    async with open_harness(settings) as harness:
        harness.app.turns.serve("slack", harness.delivery)
        for user in ("uma", "vic"):
            await write(harness, user, f"{user} said that the code of the harbour is zq{user}den.")
            await write(harness, user, "hello", dm=True)
            await order(harness, user, "rooms on")
        yield harness


def sent(harness: AppHarness, user: str, text: str, *, dm: bool, trust: Trust = Trust.MEMBER) -> Incoming:
    place = Place(ConversationKind.DM, "nexus") if dm else Place(ConversationKind.ROOM, "den", private=True)
    at = harness.clock.tick()
    return Incoming("slack", "T1", place, user, user, f"{at.timestamp()}", text, at, sender_trust=trust)


async def write(harness: AppHarness, user: str, text: str, *, dm: bool = False) -> None:
    here = harness.app.directory.workspace("slack", "T1")
    await harness.app.receive(here, [sent(harness, user, text, dm=dm)])
    await harness.app.turns.settle()
    await harness.app.indexer.catch_up(here.tenant_id)


async def order(harness: AppHarness, user: str, text: str, trust: Trust = Trust.MEMBER) -> str:
    here = harness.app.directory.workspace("slack", "T1")
    return (await run_command(harness.app, here, sent(harness, user, f"/nexus {text}", dm=True, trust=trust))).text


async def present(harness: AppHarness, *present: str | None) -> None:
    """From a minute later on the platform says that these are in the private channel; it says nothing of None."""

    class Says:
        async def rooms_of(self, workspace: str, person: str) -> RoomsOnPlatform | None:
            return None if None in present else RoomsOnPlatform(["den"] if person in present else [])

    harness.clock.tick(61)
    harness.app.memberships.serve("slack", Says())


@pytest.mark.parametrize(
    "act",
    [
        lambda harness: present(harness, None),
        lambda harness: present(harness, "vic"),
        lambda harness: order(harness, "uma", "rooms off"),
    ],
    ids=["nothing is said", "she is not in it", "rooms off"],
)
async def test_a_private_channel_is_named_to_those_alone_who_are_in_it_as_its_platform_says(
    office: AppHarness, act: Act
) -> None:
    asked = (f"recall {QUESTION}", "why", "why --prompt", "rooms")
    await present(office, "uma", "vic")
    await write(office, "uma", QUESTION, dm=True)
    before = "\n".join([await order(office, "uma", text) for text in asked])
    assert "zqvicden" in before
    assert "den" in before, "the control"
    await act(office)
    after = "\n".join([await order(office, "uma", text) for text in asked[:3]])
    assert "vic said" not in after
    assert "#den" not in after


async def test_a_guest_is_told_nothing_of_a_channel_in_a_dm(office: AppHarness) -> None:
    await present(office, "uma", "vic")
    for text in (f"recall {QUESTION}", "rooms", "project list"):
        said = await order(office, "uma", text, Trust.GUEST)
        assert "zqvicden" not in said
        assert "#den" not in said


async def test_commands_of_many_people_at_once_wait_for_each_other_and_end(settings: Settings) -> None:
    """Those that change who is in a project, who is one person and what is stored, beside each other and messages."""
    async with open_harness(settings) as harness, open_harness(settings, clock=harness.clock) as other:
        people = [f"p{number}" for number in range(6)]
        for user in people:
            await harness.say(user, "hello", room="lab")
            await harness.say(user, "hello", room=f"own-{user}")
        await harness.command("p0", "/nexus project create apollo", room="lab")
        for user in people[1:]:
            await harness.command("p0", f"/nexus project member add apollo {user} admin", room="lab")
            await harness.command(user, "/nexus project accept apollo", room="lab")
        texts = (
            "project assign apollo --yes",
            "remember --project --yes the tree is oak",
            "opt-out",
            "project member add apollo p5 write",
            "project unassign --yes",
            "opt-in",
            "forget message none --yes",
            "project create apollo2",
        )

        async def give(app: AppHarness, user: str, text: str) -> str:
            try:
                return (await app.command(user, f"/nexus {text}", room=f"own-{user}")).text
            except (BadInput, NotFound, Refused) as error:
                return str(error)

        async def speak(user: str) -> str:
            here = harness.workspace()
            place = place_of("lab", None, None)
            said = incoming(here, place, user, "hello again", harness.clock.tick(0), id=f"x{user}")
            await harness.app.receive(here, [said])
            return "said"

        async with asyncio.timeout(120):
            answers = await asyncio.gather(
                *(
                    give((harness, other)[number % 2], user, text)
                    for number, text in enumerate(texts)
                    for user in people
                ),
                *(speak(user) for user in people),
            )
        assert not [text for text in answers if "database" in text or "try again" in text.lower()]
