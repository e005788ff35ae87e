"""What is made of a message never has the keys that were in it; the message log keeps what was said."""

import asyncpg

from tests.support.harness import AppHarness

KEY = "AKIA" + "IOSFODNN7EXAMPLE"  # in two pieces, so that no scanner takes it for one
CARD = "4111111111111111"
ROOM = {"room": "general"}


async def stored(harness: AppHarness, table: str, column: str) -> str:
    """Every value of a column, joined."""
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        return "\n".join(str(row[0]) for row in await connection.fetch(f"SELECT {column} FROM {table} ORDER BY 1"))
    finally:
        await connection.close()


async def test_memories_facts_and_landmarks_have_no_keys(harness: AppHarness) -> None:
    await harness.say("alice", f"We decided to use {KEY} for the deploy.", id="k1", **ROOM)
    await harness.command("alice", f"/nexus remember the card is {CARD}", **ROOM)
    await harness.command("alice", f"/nexus landmark add staging uses {KEY}", **ROOM)
    await harness.command("alice", f"/nexus fact set deploy_key {KEY}", **ROOM)
    await harness.command("alice", f"/nexus fact set card {CARD}", **ROOM)
    await harness.command("alice", f'/nexus fact set nested {{"keys": ["{KEY}", 5]}}', **ROOM)
    assert KEY in await stored(harness, "messages", "text"), "the log keeps what was said"
    assert "the card is [masked: card number]" in await stored(harness, "memories", "text")
    assert "We decided to use [masked: AWS key] for the deploy." in await stored(harness, "memories", "text")
    assert "staging uses [masked: AWS key]" in await stored(harness, "landmarks", "text")
    facts = await stored(harness, "facts", "value")
    assert '{"keys": ["[masked: AWS key]", 5]}' in facts
    for table, column in (("memories", "text"), ("landmarks", "text"), ("facts", "value")):
        assert KEY not in await stored(harness, table, column), table
        assert CARD not in await stored(harness, table, column), table


async def test_a_recalled_message_shows_no_key(harness: AppHarness) -> None:
    await harness.say("alice", f"the staging deploy uses {KEY}", **ROOM)
    answer = await harness.command("bob", "/nexus recall staging deploy", **ROOM)
    assert "the staging deploy uses [masked: AWS key]" in answer.text
    assert KEY not in answer.text


async def test_who_stores_a_key_is_shown_what_is_stored_of_it(harness: AppHarness) -> None:
    noted = await harness.command("alice", f"/nexus remember the card is {CARD}", **ROOM)
    assert noted.text == "Remembered, in #general. It is stored as: the card is [masked: card number]"
    pinned = await harness.command("alice", f"/nexus landmark add staging uses {KEY}", **ROOM)
    assert pinned.text == "Pinned, in #general: staging uses [masked: AWS key]"
    plain = await harness.command("alice", "/nexus remember  two  spaces", **ROOM)
    assert plain.text == "Remembered, in #general."
