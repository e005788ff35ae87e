"""Forgetting, deletion and edits erase text from every layer and every table, for good."""

from typing import Any

import asyncpg
import pytest
import redis

from composer.errors import NexusError
from composer.memory.forget import RETRACTED
from composer.ports import IndexEntry
from composer.settings import Settings
from composer.text.terms import terms
from tests.conftest import Stage
from tests.e2e.canaries import insert_summary

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


async def tell(stage: Stage, **where: Any) -> None:
    """The secret, told in every way that a person has, and asked about, so that it flows on into answers."""
    await stage.say("alice", f"I prefer the vault {SECRET}.", id="said", **where)
    await stage.command("alice", f"/nexus remember the vault is {SECRET}", **where)
    await stage.command("alice", f'/nexus fact set vault "{SECRET}"', **where)
    await stage.command("alice", f"/nexus landmark add the vault is {SECRET}", **where)
    await summarise(stage, "said")
    reply = await stage.ask("alice", "@nexus what is the vault?", id="asked", **where)
    assert SECRET in reply.text


async def summarise(stage: Stage, *messages: str) -> None:
    """A day's summary of some messages, with its lineage."""
    here = stage.workspace()
    async with stage.app.store.transaction(here.tenant_id) as tx:
        ids = [(await tx.log.find_message(here.platform, here.name, id))[0][0] for id in messages]
        found = await tx.log.message(ids[0])
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
        for id in ids:
            await tx.recall._sql.execute("lineage_insert", ["summary"], [summary.id], ["message"], [id])
    await stage.app.indexer.catch_up(here.tenant_id)


async def shown(stage: Stage, user: str, text: str = "what of the vault?", **where: Any) -> str:
    composed = await stage.compose(user, text, **where)
    return "\n".join(message.content for message in composed.prompt.role_messages)


@pytest.mark.parametrize("where", [ROOM, {"dm": "nexus"}, {"session": "s1"}], ids=str)
async def test_forget_everything_leaves_no_trace_in_any_table_or_cache(
    stage: Stage, settings: Settings, where: dict[str, str]
) -> None:
    await tell(stage, **where)
    tables = {"messages", "memories", "facts", "landmarks", "summaries", "turns", "recall_terms", "cache"}
    assert await everywhere(settings) == tables, "this shows nothing of a layer that held nothing"
    assert "--yes" in (await stage.command("alice", "/nexus forget everything", **where)).text
    assert SECRET in await shown(stage, "alice", **where)
    receipt = await stage.command("alice", "/nexus forget everything --yes", **where)
    assert receipt.text.startswith("Forgotten for good: ")
    for word in ("message", "memor", "fact", "landmark", "summar", "answer", "prompt"):
        assert word in receipt.text
    assert await everywhere(settings) == set()
    assert (await stage.command("alice", "/nexus forget everything --yes", **where)).text in (
        "There was nothing to forget.",
        receipt.text,
    )


async def test_forgetting_by_words_erases_only_one_s_own_messages(stage: Stage) -> None:
    await stage.say("alice", f"the vault is {SECRET}", **ROOM)
    await stage.say("bob", "the vault is numbat3", **ROOM)
    await stage.say("alice", "we deploy on Fridays", **ROOM)
    receipt = await stage.command("alice", f"/nexus forget {SECRET.upper()}", **ROOM)
    assert receipt.text == "Forgotten for good: 1 message."
    assert "numbat3" in await shown(stage, "alice", **ROOM)
    assert "Fridays" in await shown(stage, "alice", **ROOM)
    assert SECRET not in await shown(stage, "alice", **ROOM)
    assert (await stage.command("alice", "/nexus forget numbat3", **ROOM)).text == "There was nothing to forget."
    assert "numbat3" in await shown(stage, "alice", **ROOM)


async def test_forgetting_here_leaves_other_conversations(stage: Stage) -> None:
    await stage.say("alice", f"the vault is {SECRET}", **ROOM)
    await stage.say("alice", f"the vault is {SECRET}", dm="nexus")
    await stage.command("alice", "/nexus forget here --yes", **ROOM)
    assert SECRET not in await shown(stage, "alice", **ROOM)
    assert SECRET in await shown(stage, "alice", dm="nexus")


async def test_nobody_can_forget_another_person_s_messages(stage: Stage) -> None:
    await stage.say("alice", f"the vault is {SECRET}", id="hers", **ROOM)
    with pytest.raises(NexusError, match=r"^You have no message 'hers' here\.$"):
        await stage.command("bob", "/nexus forget message hers", **ROOM)
    await stage.command("bob", "/nexus forget everything --yes", **ROOM)
    await stage.command("bob", "/nexus forget here --yes", **ROOM)
    assert SECRET in await shown(stage, "alice", **ROOM)
    await stage.command("alice", "/nexus forget message hers", **ROOM)
    assert SECRET not in await shown(stage, "alice", **ROOM)


async def test_a_deletion_on_the_platform_erases_everything_made_from_the_message(
    stage: Stage, settings: Settings
) -> None:
    await stage.say("alice", f"I prefer the vault {SECRET}.", id="said", **ROOM)
    await summarise(stage, "said")
    reply = await stage.ask("bob", "@nexus what is the vault?", id="asked", **ROOM)
    assert SECRET in reply.text
    await stage.change("said", None)
    assert await everywhere(settings) == set()
    assert RETRACTED in await shown(stage, "bob", **ROOM)
    with pytest.raises(NexusError, match="no answer of yours here"):
        await stage.command("bob", "/nexus why", **ROOM)
    await stage.say("alice", f"I prefer the vault {SECRET}.", id="said", **ROOM)
    assert await everywhere(settings) == set(), "an event that is repeated brought it back"


async def test_an_edit_replaces_the_words_in_every_layer(stage: Stage, settings: Settings) -> None:
    await stage.say("alice", f"I prefer the vault {SECRET}.", id="said", **ROOM)
    await summarise(stage, "said")
    assert SECRET in (await stage.ask("bob", "@nexus what is the vault?", **ROOM)).text
    await stage.change("said", "I prefer the vault numbat3.")
    assert await everywhere(settings) == set()
    assert "numbat3" in await shown(stage, "bob", **ROOM)
    found = await stage.command("bob", "/nexus recall numbat3", **ROOM)
    assert "numbat3" in found.text
    assert SECRET not in found.text


async def test_a_question_that_is_deleted_before_its_answer_is_not_answered(stage: Stage) -> None:
    here = stage.workspace()
    await stage.say("alice", "hello", **ROOM)
    stage.app.turns._deliveries.clear()  # nobody answers for now
    await stage.say("alice", f"@nexus the vault is {SECRET}?", id="asked", **ROOM)
    await stage.change("asked", None)
    stage.app.turns.serve("console", stage.door)
    await stage.app.turns.start_claimed(here.tenant_id)
    await stage.app.turns.settle()
    assert stage.door.replies == []


async def test_a_receipt_counts_nothing_that_its_reader_may_not_read(stage: Stage) -> None:
    """What others ask in private is not to be told from what alice is told when she forgets."""
    receipts = []
    for workspace, asked_in_private in (("quiet", False), ("busy", True)):
        here = {"workspace": workspace}
        await stage.command("alice", "/nexus project create apollo", **ROOM, **here)
        await stage.command("alice", "/nexus project assign apollo", **ROOM, **here)
        await stage.say("bob", "hello", dm="nexus", **here)
        await stage.command("alice", "/nexus project member add apollo bob", **ROOM, **here)
        await stage.command("bob", "/nexus project assign apollo", dm="nexus", **here)
        await stage.say("alice", f"the vault is {SECRET}", id=f"said in {workspace}", **ROOM, **here)
        if asked_in_private:
            reply = await stage.ask("bob", "what is the vault?", dm="nexus", **here)
            assert SECRET in reply.text
        receipts.append((await stage.command("alice", f"/nexus forget {SECRET}", **ROOM, **here)).text)
        assert SECRET not in await shown(stage, "bob", dm="nexus", **here)
    assert receipts[0] == receipts[1]
