"""`nexus replay` composes an earlier prompt again, as of then, and says why a section differs."""

import json
import re
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.console.operations import replay_sentences, replay_turn
from composer.errors import BadInput, NotFound
from composer.people import replay as replaying
from composer.settings import Settings, TenantSettings
from tests.support.harness import AppHarness, ManualClock, open_harness

ROOM = {"room": "general"}


async def answered(harness: AppHarness, text: str, user: str = "alice", **place: Any) -> str:
    """Ask something; return the id of the turn as why shows it."""
    await harness.ask(user, text, **place)
    why = (await harness.command(user, "/nexus why --details", **place)).text
    found = re.search(r"^Turn ([0-9a-f-]{36})\.$", why, re.MULTILINE)
    assert found is not None
    return found[1]


async def reasons(harness: AppHarness, turn: str) -> dict[str, list[str]]:
    found = await replay_turn(harness.app, turn)
    return {each.section: [why for why, _ in each.reasons] for each in found.differences}


async def world(harness: AppHarness) -> str:
    await harness.say("bob", "the heron nests in the vault", **ROOM)
    await harness.command("bob", "/nexus remember the heron likes the vault --everywhere --yes", **ROOM)
    await harness.command("bob", "/nexus fact set bird heron", **ROOM)
    await harness.command("bob", "/nexus landmark add feed the heron", **ROOM)
    return await answered(harness, "@nexus what of the heron in the vault?", **ROOM)


async def test_an_answer_is_composed_the_same_again_whatever_came_later(harness: AppHarness) -> None:
    turn = await world(harness)
    await harness.say("bob", "the heron left the vault", **ROOM)
    await harness.command("bob", "/nexus fact set bird osprey", **ROOM)
    listed = (await harness.command("bob", "/nexus landmark list", **ROOM)).text
    await harness.command("bob", f"/nexus landmark retire {listed.split()[0]}", **ROOM)
    found = await replay_turn(harness.app, turn)
    assert (found.result, found.differences) == (replaying.SAME, ())
    assert replay_sentences(found) == "The same prompt, composed again as of then."


async def test_what_was_moved_or_may_not_be_read_any_more_is_named_as_the_reason(harness: AppHarness) -> None:
    turn = await world(harness)
    listed = (await harness.command("bob", "/nexus share", dm="nexus")).text
    id = next(line.split()[0] for line in listed.splitlines() if "likes the vault" in line)
    await harness.command("bob", f"/nexus share {id} here", dm="nexus")
    assert await reasons(harness, turn) == {"RECALL": [replaying.MOVED]}
    await harness.move("bob", "general", joined=False)
    await harness.command("bob", f"/nexus share {id} everywhere --yes", dm="nexus")
    assert await reasons(harness, turn) == {"RECALL": [replaying.HIDDEN]}
    shown = replay_sentences(await replay_turn(harness.app, turn))
    assert "heron" not in shown + json.dumps((await replay_turn(harness.app, turn)).as_json())


async def test_an_asker_who_left_the_room_reads_none_of_it(harness: AppHarness) -> None:
    await harness.say("bob", "good morning", room="cave", private=True)
    await harness.move("alice", "cave", joined=True)
    turn = await answered(harness, "@nexus who is here?", room="cave")
    await harness.move("alice", "cave", joined=False)
    found = await reasons(harness, turn)
    assert found == {"WORKING": [replaying.HIDDEN], "MESSAGE": [replaying.HIDDEN]}, "nothing else has changed"


async def test_a_cleared_prompt_is_said_to_be_erased_or_edited(harness: AppHarness) -> None:
    await harness.say("bob", "the heron nests in the vault", id="nest", **ROOM)
    turn = await answered(harness, "@nexus where does the heron nest?", **ROOM)
    await harness.change("nest", "the heron nests elsewhere")
    found = await replay_turn(harness.app, turn)
    assert found.result == replaying.SOURCE_NOT_STORED
    assert "1 of the messages in it were edited" in found.note
    await harness.change("nest", None)
    assert "erased since, or it has expired" in (await replay_turn(harness.app, turn)).note


async def test_an_unknown_turn_is_refused(harness: AppHarness) -> None:
    await harness.say("bob", "good morning", **ROOM)
    with pytest.raises(BadInput, match="not the id of a turn"):
        await replay_turn(harness.app, "m1")
    with pytest.raises(NotFound, match="no answered turn"):
        await replay_turn(harness.app, str(uuid.UUID(int=7)))


async def test_the_date_in_a_prompt_is_the_tenants_and_is_composed_the_same_again(settings: Settings) -> None:
    tokyo = settings.model_copy(update={"tenants": {"acme": TenantSettings(timezone="Asia/Tokyo")}})
    clock = ManualClock(datetime(2026, 5, 4, 15, 30, tzinfo=UTC))  # half past midnight in Tokyo
    async with open_harness(tokyo, clock=clock) as harness:
        turn = await answered(harness, "@nexus what day is it?", **ROOM)
        asked = harness.delivery.replies[-1].prompt
        assert asked is not None
        assert "Today is Tuesday, 2026-05-05 in Asia/Tokyo; times are UTC, " in asked
        assert ", in the text of summaries Asia/Tokyo." in asked
        assert (await replay_turn(harness.app, turn)).result == replaying.SAME
        await harness.say("alice", "good morning", workspace="other", **ROOM)
        other = (await harness.compose("alice", "@nexus what day is it?", workspace="other", **ROOM)).prompt.as_text()
        assert "Today is Monday, 2026-05-04; times are UTC." in other
    async with open_harness(settings, clock=clock) as harness:
        assert await reasons(harness, turn) == {"CONTEXT": [replaying._OF_SECTION["CONTEXT"]]}
