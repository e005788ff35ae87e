"""Forgetting, deletion and edits erase text from every layer and every table, for good."""

from typing import Any

import asyncpg
import pytest
import redis

from composer.errors import NexusError
from composer.memory.forget import RETRACTED
from composer.repositories.lineage import insert_lineage
from composer.repositories.recall import IndexEntry
from composer.settings import Settings
from composer.text.terms import terms
from tests.support.canaries import insert_summary
from tests.support.harness import AppHarness

pytestmark = pytest.mark.integration

SECRET = "quokka7"
ROOM = {"room": "general"}


async def everywhere(settings: Settings) -> set[str]:
    """The tables and cache keys in which the secret stands, in whatever column."""
    assert settings.database_url is not None
    assert settings.redis_url is not None
    connection = await asyncpg.connect(settings.database_url)
    try:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        found = {
            table
            for (table,) in tables
            if await connection.fetchval(f'SELECT count(*) FROM "{table}" AS t WHERE t::text ILIKE $1', f"%{SECRET}%")
        }
    finally:
        await connection.close()
    cache = redis.Redis.from_url(settings.redis_url, decode_responses=True)
    for key in cache.scan_iter("*"):
        kind = cache.type(key)
        value = cache.lrange(key, 0, -1) if kind == "list" else cache.get(key)
        if SECRET in str(value):
            found.add("cache")
    return found


async def tell(harness: AppHarness, **where: Any) -> None:
    """The secret, told in every way that a person has, and asked about, so that it flows on into answers."""
    await harness.say("alice", f"I prefer the vault {SECRET}.", id="said", **where)
    await harness.command("alice", f"/nexus remember the vault is {SECRET}", **where)
    await harness.command("alice", f'/nexus fact set vault "{SECRET}"', **where)
    await harness.command("alice", f"/nexus landmark add the vault is {SECRET}", **where)
    await summarise(harness, "said")
    reply = await harness.ask("alice", "@nexus what is the vault?", id="asked", **where)
    assert SECRET in reply.text


async def summarise(harness: AppHarness, *messages: str) -> None:
    """A day's summary of some messages, with its lineage."""
    here = harness.workspace()
    async with harness.app.database.transaction(here.tenant_id) as tx:
        ids = [(await tx.messages.find_by_external_id(here.platform, here.name, id))[0][0] for id in messages]
        found = await tx.messages.get(ids[0])
        assert found is not None
        text = f"they spoke of {SECRET}"
        summary = IndexEntry(
            found[1],
            "summary",
            found[0].namespace,
            found[0].visibility,
            None,
            found[0].at,
            dict.fromkeys(terms(text), 1),
        )
        await insert_summary(tx, here.tenant_id, summary, text)
        await insert_lineage(tx.recall._sql, [("summary", summary.id, "message", id) for id in ids])
    await harness.app.indexer.catch_up(here.tenant_id)


async def shown(harness: AppHarness, user: str, text: str = "what of the vault?", **where: Any) -> str:
    composed = await harness.compose(user, text, **where)
    return "\n".join(message.content for message in composed.prompt.role_messages)


@pytest.mark.parametrize("where", [ROOM, {"dm": "nexus"}, {"session": "s1"}], ids=str)
async def test_forget_everything_leaves_no_trace_in_any_table_or_cache(
    harness: AppHarness, settings: Settings, where: dict[str, str]
) -> None:
    await tell(harness, **where)
    tables = {"messages", "memories", "facts", "landmarks", "summaries", "turns", "recall_terms", "cache"}
    assert await everywhere(settings) == tables, "this shows nothing of a layer that held nothing"
    assert "--yes" in (await harness.command("alice", "/nexus forget everything", **where)).text
    assert SECRET in await shown(harness, "alice", **where)
    receipt = await harness.command("alice", "/nexus forget everything --yes", **where)
    assert receipt.text.startswith("Forgotten for good: ")
    for word in ("message", "memor", "fact", "landmark", "summar", "answer", "prompt"):
        assert word in receipt.text
    assert await everywhere(settings) == set()
    assert (await harness.command("alice", "/nexus forget everything --yes", **where)).text in (
        "There was nothing to forget.",
        receipt.text,
    )


async def test_forgetting_by_words_erases_only_one_s_own_messages(harness: AppHarness) -> None:
    await harness.say("alice", f"the vault is {SECRET}", **ROOM)
    await harness.say("bob", "the vault is numbat3", **ROOM)
    await harness.say("alice", "we deploy on Fridays", **ROOM)
    receipt = await harness.command("alice", f"/nexus forget {SECRET.upper()}", **ROOM)
    assert receipt.text == "Forgotten for good: 1 message."
    assert "numbat3" in await shown(harness, "alice", **ROOM)
    assert "Fridays" in await shown(harness, "alice", **ROOM)
    assert SECRET not in await shown(harness, "alice", **ROOM)
    assert (await harness.command("alice", "/nexus forget numbat3", **ROOM)).text == "There was nothing to forget."
    assert "numbat3" in await shown(harness, "alice", **ROOM)


async def test_forgetting_here_leaves_other_conversations(harness: AppHarness) -> None:
    await harness.say("alice", f"the vault is {SECRET}", **ROOM)
    await harness.say("alice", f"the vault is {SECRET}", dm="nexus")
    await harness.command("alice", "/nexus forget here --yes", **ROOM)
    assert SECRET not in await shown(harness, "alice", **ROOM)
    assert SECRET in await shown(harness, "alice", dm="nexus")


async def test_nobody_can_forget_another_person_s_messages(harness: AppHarness) -> None:
    await harness.say("alice", f"the vault is {SECRET}", id="hers", **ROOM)
    with pytest.raises(NexusError, match=r"^You have no message 'hers' here\.$"):
        await harness.command("bob", "/nexus forget message hers", **ROOM)
    await harness.command("bob", "/nexus forget everything --yes", **ROOM)
    await harness.command("bob", "/nexus forget here --yes", **ROOM)
    assert SECRET in await shown(harness, "alice", **ROOM)
    await harness.command("alice", "/nexus forget message hers", **ROOM)
    assert SECRET not in await shown(harness, "alice", **ROOM)


async def test_a_deletion_on_the_platform_erases_everything_made_from_the_message(
    harness: AppHarness, settings: Settings
) -> None:
    await harness.say("alice", f"I prefer the vault {SECRET}.", id="said", **ROOM)
    await summarise(harness, "said")
    reply = await harness.ask("bob", "@nexus what is the vault?", id="asked", **ROOM)
    assert SECRET in reply.text
    await harness.change("said", None)
    assert await everywhere(settings) == set()
    assert RETRACTED in await shown(harness, "bob", **ROOM)
    with pytest.raises(NexusError, match="no answer of yours here"):
        await harness.command("bob", "/nexus why", **ROOM)
    await harness.say("alice", f"I prefer the vault {SECRET}.", id="said", **ROOM)
    assert await everywhere(settings) == set(), "an event that is repeated brought it back"


async def test_an_edit_replaces_the_words_in_every_layer(harness: AppHarness, settings: Settings) -> None:
    await harness.say("alice", f"I prefer the vault {SECRET}.", id="said", **ROOM)
    await summarise(harness, "said")
    assert SECRET in (await harness.ask("bob", "@nexus what is the vault?", **ROOM)).text
    await harness.change("said", "I prefer the vault numbat3.")
    assert await everywhere(settings) == set()
    assert "numbat3" in await shown(harness, "bob", **ROOM)
    found = await harness.command("bob", "/nexus recall numbat3", **ROOM)
    assert "numbat3" in found.text
    assert SECRET not in found.text


async def test_a_question_that_is_deleted_before_its_answer_is_not_answered(harness: AppHarness) -> None:
    here = harness.workspace()
    await harness.say("alice", "hello", **ROOM)
    harness.app.turns._deliveries.clear()  # nobody answers for now
    await harness.say("alice", f"@nexus the vault is {SECRET}?", id="asked", **ROOM)
    await harness.change("asked", None)
    harness.app.turns.serve("console", harness.delivery)
    await harness.app.turns.start_claimed(here.tenant_id)
    await harness.app.turns.settle()
    assert harness.delivery.replies == []


async def test_a_receipt_counts_nothing_that_its_reader_may_not_read(harness: AppHarness) -> None:
    """What others ask in private is not to be told from what alice is told when she forgets."""
    receipts = []
    for workspace, asked_in_private in (("quiet", False), ("busy", True)):
        here = {"workspace": workspace}
        await harness.command("alice", "/nexus project create apollo", **ROOM, **here)
        await harness.command("alice", "/nexus project assign apollo", **ROOM, **here)
        await harness.say("bob", "hello", dm="nexus", **here)
        await harness.command("alice", "/nexus project member add apollo bob", **ROOM, **here)
        await harness.command("bob", "/nexus project assign apollo", dm="nexus", **here)
        await harness.say("alice", f"the vault is {SECRET}", id=f"said in {workspace}", **ROOM, **here)
        if asked_in_private:
            reply = await harness.ask("bob", "what is the vault?", dm="nexus", **here)
            assert SECRET in reply.text
        receipts.append((await harness.command("alice", f"/nexus forget {SECRET}", **ROOM, **here)).text)
        assert SECRET not in await shown(harness, "bob", dm="nexus", **here)
    assert receipts[0] == receipts[1]
