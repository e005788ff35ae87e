"""The marks of an answer stand for messages that an adapter may link to; none of them names another private room."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from composer.model import Agent
from composer.ports.models import ChatMessage, Chunk
from composer.settings import Settings
from tests.support.harness import AppHarness, open_harness

LAB: dict[str, Any] = {"room": "lab"}


class Citing:
    """A chat model that cites the first source, and one that does not exist."""

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        yield Chunk("It is the heron (s1, s99).")


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings, model=Citing()) as harness:
        yield harness


async def pooled(harness: AppHarness, **other: Any) -> None:
    """Say something in another room of the project that lab is in."""
    await harness.say("alice", "hello", **LAB)
    await harness.command("alice", "/nexus project create apollo", **LAB)
    await harness.command("alice", "/nexus project assign apollo --yes", **LAB)
    await harness.say("alice", "the code of the vault is the heron", id="told", **other)
    await harness.command(
        "alice", f"/nexus project assign apollo {'--pool ' if 'private' in other else ''}--yes", **other
    )


async def cited(harness: AppHarness, **place: Any) -> dict[str, str]:
    reply = await harness.ask("alice", "@nexus what is the code of the vault?", **place)
    return {mark: address.external_id for mark, address in reply.cited.items()}


async def test_a_mark_stands_for_the_message_of_a_public_room(harness: AppHarness) -> None:
    await pooled(harness, room="hall")
    assert await cited(harness, **LAB) == {"s1": "told"}


async def test_no_mark_names_a_private_room_to_another(harness: AppHarness) -> None:
    await pooled(harness, room="cave", private=True)
    reply = await harness.ask("alice", "@nexus what is the code of the vault?", **LAB)
    assert "the heron" in (reply.prompt or "")
    assert reply.cited == {}


async def test_a_private_room_cites_its_own_messages(harness: AppHarness) -> None:
    await harness.say("alice", "the code of the vault is the heron", id="told", room="cave", private=True)
    await harness.say_all("alice", [f"nothing new {number}" for number in range(60)], room="cave")
    assert await cited(harness, room="cave") == {"s1": "told"}


async def test_a_dm_cites_the_private_rooms_that_its_person_reads_there(harness: AppHarness) -> None:
    await harness.say("alice", "the code of the vault is the heron", id="told", room="cave", private=True)
    await harness.command("alice", "/nexus rooms on", dm="nexus")
    assert await cited(harness, dm="nexus") == {"s1": "told"}


async def test_a_dm_cites_its_own_messages(harness: AppHarness) -> None:
    await harness.say("alice", "the code of the vault is the heron", id="told", dm="nexus")
    await harness.say_all("alice", [f"nothing new {number}" for number in range(60)], dm="nexus")
    assert await cited(harness, dm="nexus") == {"s1": "told"}


async def test_an_earlier_answer_is_shown_without_its_marks_and_stored_with_them(harness: AppHarness) -> None:
    await pooled(harness, room="hall")
    await harness.ask("alice", "@nexus what is the code of the vault?", **LAB)
    reply = await harness.ask("alice", "@nexus and what is the code of the door?", **LAB)
    sent = json.loads(reply.prompt or "{}")["role_messages"]
    assert {"role": "assistant", "content": "It is the heron."} in sent
    assert reply.text == "It is the heron (s1, s99)."
    why = (await harness.command("alice", "/nexus why --details", **LAB)).text
    assert "(s1)" in why


async def pooled_by_another(harness: AppHarness, **other: Any) -> None:
    """What bob says elsewhere is pooled in a project. Alice is a member of it, has her DM in it, and is not there."""
    for name in ("alice", "bob"):
        await harness.say(name, "hello", **LAB)
    await harness.command("alice", "/nexus project create apollo", **LAB)
    await harness.command("alice", "/nexus project member add apollo bob write", **LAB)
    await harness.command("bob", "/nexus project accept apollo", **LAB)
    await harness.say("bob", "the code of the vault is the heron", id="told", **other)
    pool = "--pool " if other.get("private") else ""
    await harness.command("bob", f"/nexus project assign apollo {pool}--yes", **other)
    await harness.say("alice", "hi", dm="nexus")
    await harness.command("alice", "/nexus project assign apollo --yes", dm="nexus")


@pytest.mark.parametrize("other", [{"room": "cave", "private": True}, {"session": "laptop"}], ids=["room", "session"])
async def test_no_mark_of_a_dm_names_a_place_that_is_only_pooled(harness: AppHarness, other: dict[str, Any]) -> None:
    await pooled_by_another(harness, **other)
    reply = await harness.ask("alice", "what is the code of the vault?", dm="nexus")
    assert "the heron" in (reply.prompt or "")
    assert reply.cited == {}


@pytest.mark.parametrize("place", [{"dm": "nexus"}, {"room": "lab"}], ids=["dm", "room"])
async def test_no_explanation_links_into_a_private_room_of_others(harness: AppHarness, place: dict[str, str]) -> None:
    await pooled_by_another(harness, room="cave", private=True)
    await harness.command("alice", "/nexus project assign apollo --yes", **LAB)
    await harness.ask("alice", "@nexus what is the code of the vault?", **place)
    for text in ("/nexus why --details", "/nexus recall code of the vault"):
        where = place_of(place.get("room"), place.get("dm"), None)
        asked = incoming(harness.workspace(), where, "alice", text, harness.clock.tick(), id=text)
        answer = await run_command(harness.app, harness.workspace(), asked, permalink=lambda to: f"link to {to.name}")
        assert "heron" in answer.text
        assert "link to cave" not in answer.text
