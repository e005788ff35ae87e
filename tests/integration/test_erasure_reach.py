"""What an erasure reaches in other places, and what it leaves to other people."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from bot.script.places import incoming, place_of
from composer.ingest.changes import change_message
from composer.ingest.rooms import erase_room
from composer.memory.forget import forget
from composer.model import CONSOLE, message_id, room_id
from composer.settings import AgentSettings, Settings
from tests.support.discord.harness import Model
from tests.support.erased_ids import find_remains
from tests.support.harness import AppHarness, open_harness

ROOM = {"room": "general"}


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),), "extraction": "pattern"})
    async with open_harness(plain, model=model) as harness:
        yield harness


# --- posted answers --------------------------------------------------------------------------------------------------


async def post_answer(harness: AppHarness, model: Model, raw: asyncpg.Connection, part: str, **where: Any) -> None:
    """An answer that repeats the secret, recorded as posted under the id `part`."""
    model.says = ["It is zqvault, as I was told."]
    await harness.ask("bob", "@nexus what is the code of the vault?", id=f"asked-{part}", **where)
    turn = await raw.fetchval(
        "SELECT id FROM turns WHERE message_id = (SELECT id FROM messages WHERE external_id = $1)", f"asked-{part}"
    )
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        assert await tx.deliveries.record_part(turn, 0, part, harness.clock.now())


async def retractions(harness: AppHarness) -> list[str]:
    """The ids of the posts that are to be retracted."""
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        return sorted(
            part.external_id for part in await tx.deliveries.pending_retractions(CONSOLE, 10, harness.clock.now())
        )


async def test_an_answer_of_which_a_posted_part_is_deleted_is_erased(
    harness: AppHarness, settings: Settings, model: Model, raw: asyncpg.Connection
) -> None:
    await post_answer(harness, model, raw, "posted", **ROOM)
    workspace, agents = harness.workspace(), harness.app.directory.agents(harness.workspace().tenant_id)
    receipt = await change_message(
        harness.app.database, workspace, agents, place_of("general", None, None), "nexus", "posted", None, (),
        harness.clock.tick(),
    )  # fmt: skip
    assert receipt is not None
    await harness.app.forgotten(workspace.tenant_id, receipt)
    assert await find_remains(settings, "zqvault") == {}


async def test_what_was_answered_elsewhere_from_a_deleted_thread_is_retracted(
    harness: AppHarness, settings: Settings, model: Model, raw: asyncpg.Connection
) -> None:
    thread = {**ROOM, "thread": "t1"}
    await harness.say("alice", "the code of the vault is zqvault", **thread)
    await post_answer(harness, model, raw, "inside", **thread)
    await post_answer(harness, model, raw, "outside", **ROOM)
    receipt = await erase_room(harness.app.database, harness.workspace(), "general", "t1", harness.clock.tick())
    assert receipt is not None
    await harness.app.forgotten(harness.workspace().tenant_id, receipt)
    assert await retractions(harness) == ["outside"]
    assert await find_remains(settings, "zqvault") == {}


async def test_nothing_that_is_posted_changes_when_messages_only_grow_old(
    harness: AppHarness, settings: Settings, model: Model, raw: asyncpg.Connection
) -> None:
    await harness.say("alice", "the code of the vault is zqvault", id="said", **ROOM)
    await post_answer(harness, model, raw, "posted", **ROOM)
    said = message_id(room_id(harness.workspace(), "general"), "said")
    async with harness.app.database.transaction(harness.workspace().tenant_id, "alone") as tx:
        receipt = await forget(tx, [said], [], harness.clock.now(), by_age=True)
    await harness.app.forgotten(harness.workspace().tenant_id, receipt)
    assert await retractions(harness) == []
    assert await find_remains(settings, "zqvault") == {}


# --- what others said before -----------------------------------------------------------------------------------------


async def test_forgetting_a_value_brings_back_the_value_of_somebody_else(harness: AppHarness) -> None:
    for user, day in (("bob", "12 June"), ("alice", "13 June"), ("carol", "14 June")):
        await harness.command(user, f'/nexus fact set launch "{day}"', **ROOM)
    await harness.command("carol", "/nexus forget launch --yes", **ROOM)
    assert "13 June" in (await harness.command("bob", "/nexus fact get launch", **ROOM)).text
    await harness.command("alice", "/nexus forget everything --yes", **ROOM)
    answer = (await harness.command("bob", "/nexus fact get launch", **ROOM)).text
    assert ("12 June" in answer, "13 June" in answer) == (True, False)


async def test_forgetting_an_amendment_brings_back_what_somebody_else_pinned(harness: AppHarness) -> None:
    await harness.say("bob", "hello", **ROOM)
    await harness.command("carol", "/nexus landmark add we hire in May", **ROOM)
    id = (await harness.command("bob", "/nexus landmark list", **ROOM)).text.split()[0]
    await harness.command("bob", f"/nexus landmark amend {id} we hire in June", **ROOM)
    assert "May" not in (await harness.command("carol", "/nexus landmark list", **ROOM)).text
    await harness.command("bob", "/nexus forget everything --yes", **ROOM)
    listed = (await harness.command("carol", "/nexus landmark list", **ROOM)).text
    assert ("May" in listed, "June" in listed) == (True, False)


# --- deletions that come first, and titles ---------------------------------------------------------------------------


async def receive_titled(harness: AppHarness, user: str, text: str, title: str, thread: str | None = None) -> None:
    """A message whose place has a title on its platform."""
    place = replace(place_of("general", None, None, thread), title=title)
    message = incoming(harness.workspace(), place, user, text, harness.clock.tick(), id=f"titled-{user}")
    await harness.app.receive(harness.workspace(), [message])
    await harness.app.turns.settle()
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)


async def test_a_message_that_was_deleted_before_it_arrived_is_not_stored(
    harness: AppHarness, settings: Settings
) -> None:
    await harness.say("bob", "hello", **ROOM)
    at, place = harness.workspace(), place_of("general", None, None)
    agents = harness.app.directory.agents(at.tenant_id)
    now = harness.clock.tick()
    assert await change_message(harness.app.database, at, agents, place, "bob", "early", None, [], now) is None
    await harness.say("bob", "the code is zqearly", id="early", **ROOM)
    assert await find_remains(settings, "zqearly") == {}
    await harness.say("bob", "the code is zqlater", id="later", **ROOM)
    assert await find_remains(settings, "zqlater") != {}


async def test_titles_of_threads_are_not_stored(harness: AppHarness, settings: Settings) -> None:
    await receive_titled(harness, "alice", "what of my pay?", "zqpay talk", thread="t1")
    assert await find_remains(settings, "zqpay") == {}


async def test_the_title_of_a_room_comes_with_what_is_recorded_and_goes_with_the_last_of_it(
    harness: AppHarness, settings: Settings
) -> None:
    await harness.command("alice", "/nexus opt-out", **ROOM)
    await receive_titled(harness, "alice", "nothing of this is kept", "zqtitle")
    assert await find_remains(settings, "zqtitle") == {}
    await receive_titled(harness, "bob", "this is kept", "zqtitle")
    assert await find_remains(settings, "zqtitle") != {}
    await harness.command("bob", "/nexus forget everything --yes", **ROOM)
    assert await find_remains(settings, "zqtitle") == {}


# --- what people have decided ----------------------------------------------------------------------------------------


async def propose(harness: AppHarness, raw: asyncpg.Connection, *ids: str, using: str = "the biling database") -> str:
    """A decision that bob states in these messages. Returns the beginning of the id of its landmark."""
    await harness.say("carol", "hello", **ROOM)
    for id in ids:
        await harness.say("bob", f"We decided to use Postgres for {using}.", id=id, **ROOM)
    [landmark] = await raw.fetch("SELECT id FROM landmarks")
    return str(landmark["id"].hex[:8])


async def landmarks(raw: asyncpg.Connection) -> set[tuple[str, str]]:
    """(state, text) of every landmark."""
    return {(row["state"], row["text"]) for row in await raw.fetch("SELECT state, text FROM landmarks")}


async def test_corrected_spelling_leaves_an_accepted_decision_pinned(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    id = await propose(harness, raw, "d1")
    await harness.command("carol", f"/nexus landmark accept {id}", **ROOM)
    await harness.change("d1", "We decided to use Postgres for the billing database.")
    [(state, text)] = await landmarks(raw)
    assert (state, "billing" in text, "biling" in text) == ("pinned", True, False)
    await harness.change("d1", "We decided to use MySQL for the billing database.")
    [(state, text)] = await landmarks(raw)
    assert (state, "Postgres" in text) == ("proposed", False)


async def test_an_amendment_outlives_corrected_spelling_and_not_the_deletion(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    id = await propose(harness, raw, "d1")
    await harness.command("carol", f"/nexus landmark amend {id} Postgres 18, approved by the board", **ROOM)
    await harness.change("d1", "We decided to use Postgres for the billing database.")
    assert ("pinned", "Postgres 18, approved by the board") in await landmarks(raw)
    assert {state for state, _ in await landmarks(raw)} == {"pinned", "retired"}
    await harness.change("d1", None)
    assert await landmarks(raw) == set()


async def test_a_retired_decision_does_not_return_when_one_statement_of_it_is_deleted(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    id = await propose(harness, raw, "d1", "d2")
    await harness.command("carol", f"/nexus landmark retire {id}", **ROOM)
    await harness.change("d1", None)
    assert {state for state, _ in await landmarks(raw)} == {"retired"}
    await harness.change("d2", None)
    assert await landmarks(raw) == set()


async def test_a_memory_stays_where_its_owner_filed_it_when_its_message_is_edited_a_little(
    harness: AppHarness, raw: asyncpg.Connection
) -> None:
    await harness.say("bob", "My favourite editor is vim.", id="e1", dm="nexus")
    id = (await raw.fetchval("SELECT id FROM memories")).hex[:8]
    await harness.command("bob", f"/nexus share {id} everywhere --yes", dm="nexus")
    await harness.change("e1", "My favourite editor is vim!")
    assert [row["visibility"] for row in await raw.fetch("SELECT visibility FROM memories")] == ["shared"]
    await harness.change("e1", "My favourite editor is emacs!")
    assert [row["visibility"] for row in await raw.fetch("SELECT visibility FROM memories")] == ["private"]
