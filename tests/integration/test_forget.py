"""Forgetting, deletion and edits erase text from every layer and every table, for good."""

from collections.abc import Coroutine, Sequence
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import redis

from bot.console import schedule
from composer.errors import NexusError, Unavailable
from composer.memory.forget import RETRACTED
from composer.model import Conversation, Message, Trust, derived_id
from composer.repositories import erasure
from composer.repositories.lineage import insert_lineage
from composer.repositories.recall import IndexEntry
from composer.settings import Settings
from composer.stores.database.working_cache import RedisWorkingCache
from composer.text.terms import terms
from composer.visibility import Grants
from tests.support.canaries import insert_summary
from tests.support.entries import OF_TOOL, Hub
from tests.support.harness import AppHarness

SECRET = "quokka7"
ROOM = {"room": "general"}


async def tables_with_secret(settings: Settings) -> set[str]:
    """The tables that contain the secret in any column, and "cache" if a cache value contains it."""
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


async def test_what_is_forgotten_while_a_view_is_read_is_not_cached_after_it(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # docs/architecture.md: forgetting reaches the caches. The view was read before, and cached for a week.
    await harness.say("alice", f"the vault is {SECRET}", id="said", **ROOM)
    redis.Redis.from_url(settings.redis_url or "").flushall()
    replace, forgotten = RedisWorkingCache.replace, list[bool]()

    async def slow(cache: RedisWorkingCache, conversation: Conversation, messages: Sequence[Message]) -> None:
        if not forgotten:
            forgotten.append(True)
            await harness.command("alice", f"/nexus forget {SECRET} --yes", **ROOM)
        await replace(cache, conversation, messages)

    monkeypatch.setattr(RedisWorkingCache, "replace", slow)
    await harness.compose("alice", "@nexus hello there", **ROOM)
    assert forgotten
    assert await tables_with_secret(settings) == set()


async def test_what_is_forgotten_while_the_cache_is_away_is_taken_out_of_it_later(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.say("alice", f"the vault is {SECRET}", id="said", **ROOM)
    await harness.compose("alice", "@nexus hello there", **ROOM)
    assert await tables_with_secret(settings) >= {"cache"}

    async def away(cache: RedisWorkingCache, command: Coroutine[Any, Any, Any]) -> Any:
        command.close()
        raise Unavailable("The working cache does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(RedisWorkingCache, "_run", away)
        await harness.command("alice", f"/nexus forget {SECRET} --yes", **ROOM)
    assert await tables_with_secret(settings) == {"cache"}
    await harness.say("bob", "something else", room="elsewhere")
    assert await tables_with_secret(settings) == set()


async def test_what_is_forgotten_while_the_cache_is_away_goes_after_a_restart_too(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never_told(cache: RedisWorkingCache, conversations: Sequence[UUID]) -> None:
        raise Unavailable("The working cache does not answer.")

    await harness.say("bob", "something else", room="elsewhere")
    await harness.compose("bob", "@nexus hello there", room="elsewhere")
    await harness.say("alice", f"the vault is {SECRET}", id="said", **ROOM)
    await harness.compose("alice", "@nexus hello there", **ROOM)
    with monkeypatch.context() as patched:
        patched.setattr(RedisWorkingCache, "erase", never_told)
        await harness.command("alice", f"/nexus forget {SECRET} --yes", **ROOM)
    assert await tables_with_secret(settings) == {"cache"}
    assert (await schedule.run(harness.app, "expiry", harness.clock.now())).state == "done"
    assert await tables_with_secret(settings) == set()
    assert len(await harness.app.cache.versions()) == 1, "what is current stays"


async def store_secret(harness: AppHarness, **where: Any) -> None:
    """Store the secret in every way that a user can, and ask about it, so that an answer repeats it."""
    await harness.say("alice", f"I prefer the vault {SECRET}.", id="said", **where)
    await harness.command("alice", f"/nexus remember the vault is {SECRET}", **where)
    await harness.command("alice", f'/nexus fact set vault "{SECRET}"', **where)
    await harness.command("alice", f"/nexus landmark add the vault is {SECRET}", **where)
    await summarise(harness, "said")
    reply = await harness.ask("alice", "@nexus what is the vault?", id="asked", **where)
    assert SECRET in reply.text


async def summarise(harness: AppHarness, *messages: str) -> None:
    """A day's summary of some messages, with its lineage."""
    workspace = harness.workspace()
    async with harness.app.database.transaction(workspace.tenant_id) as tx:
        ids = [(await tx.messages.find_by_external_id(workspace.platform, workspace.name, id))[0][0] for id in messages]
        found = await tx.messages.get(ids[0])
        assert found is not None
        text = f"they spoke of {SECRET}"
        summary = IndexEntry(
            derived_id("summary", *messages),
            "summary",
            found.namespace,
            found.visibility,
            None,
            found.at,
            dict.fromkeys(terms(text), 1),
        )
        await insert_summary(tx, workspace.tenant_id, summary, text)
        await insert_lineage(tx.recall._sql, [("summary", summary.id, "message", id) for id in ids])
    await harness.app.indexer.catch_up(workspace.tenant_id)


async def prompt_text(harness: AppHarness, user: str, text: str = "what of the vault?", **where: Any) -> str:
    composed = await harness.compose(user, text, **where)
    return "\n".join(message.content for message in composed.prompt.role_messages)


@pytest.mark.parametrize("where", [ROOM, {"dm": "nexus"}, {"session": "s1"}], ids=str)
async def test_forget_everything_leaves_no_trace_in_any_table_or_cache(
    harness: AppHarness, settings: Settings, where: dict[str, str]
) -> None:
    await store_secret(harness, **where)
    tables = {"messages", "memories", "facts", "landmarks", "summaries", "turns", "recall_terms", "cache"}
    assert await tables_with_secret(settings) == tables, "a layer without the secret would not be tested"
    assert "--yes" in (await harness.command("alice", "/nexus forget everything", **where)).text
    assert SECRET in await prompt_text(harness, "alice", **where)
    receipt = await harness.command("alice", "/nexus forget everything --yes", **where)
    assert receipt.text.startswith("Forgotten for good: ")
    for word in ("message", "memor", "fact", "landmark", "summar", "answer", "prompt"):
        assert word in receipt.text
    assert await tables_with_secret(settings) == set()
    again = await harness.command("alice", "/nexus forget everything --yes", **where)
    assert again.text == "Nothing was erased: there was nothing to forget."


async def test_forgetting_by_words_erases_only_messages_of_the_caller(harness: AppHarness) -> None:
    await harness.say("alice", f"the vault is {SECRET}", **ROOM)
    await harness.say("bob", "the vault is numbat3", **ROOM)
    await harness.say("alice", "we deploy on Fridays", **ROOM)
    receipt = await harness.command("alice", f"/nexus forget {SECRET.upper()} --yes", **ROOM)
    assert receipt.text.startswith("Forgotten for good: 1 message. Receipt: ")
    assert "numbat3" in await prompt_text(harness, "alice", **ROOM)
    assert "Fridays" in await prompt_text(harness, "alice", **ROOM)
    assert SECRET not in await prompt_text(harness, "alice", **ROOM)
    assert (
        await harness.command("alice", "/nexus forget numbat3 --yes", **ROOM)
    ).text == "Nothing was erased: there was nothing to forget."
    assert "numbat3" in await prompt_text(harness, "alice", **ROOM)


async def test_forgetting_by_words_shows_whole_words_of_ones_own_first(harness: AppHarness, settings: Settings) -> None:
    await harness.say("alice", "the vault is quokka7, all agreed", **ROOM)
    await harness.say("alice", "the ball is round", **ROOM)
    await harness.say("bob", "all of quokka7", **ROOM)
    asked = await harness.command("alice", f"/nexus forget {SECRET}", **ROOM)
    assert asked.text == (
        "the vault is quokka7, all agreed\n"
        "This erases 1 message and 0 other items of yours, for good, with all that was made from them.\n"
        f"To confirm: /nexus forget {SECRET} --yes"
    )
    assert asked.confirm == f"/nexus forget {SECRET} --yes"
    assert "messages" in await tables_with_secret(settings)
    for part in ("al", "e", "ball is roun"):
        answer = await harness.command("alice", f"/nexus forget {part}", **ROOM)
        assert answer.text.startswith(("Nothing was erased", "Nothing of yours has exactly the words"))
        assert not answer.confirm
    assert "ball is round" not in (await harness.command("alice", "/nexus forget all agreed", **ROOM)).text


async def test_a_message_and_the_memory_with_its_words_are_told_apart(harness: AppHarness) -> None:
    await harness.say("alice", f"the vault is {SECRET}", **ROOM)
    await harness.command("alice", f"/nexus remember the vault is {SECRET}", **ROOM)
    shown = (await harness.command("alice", f"/nexus forget {SECRET}", **ROOM)).text.split("\n")
    assert sorted(shown[:2]) == [f"memory: the vault is {SECRET}", f"message: the vault is {SECRET}"]


async def test_of_many_matches_ten_are_shown(harness: AppHarness) -> None:
    await harness.say_all("alice", [f"{SECRET} number {n}" + " and so on" * 30 for n in range(12)], **ROOM)
    lines = (await harness.command("alice", f"/nexus forget {SECRET}", **ROOM)).text.split("\n")
    assert len([line for line in lines if line.startswith(SECRET) and len(line) <= 100]) == 10
    assert lines[10:12] == [
        "… and 2 more",
        "This erases 12 messages and 0 other items of yours, for good, with all that was made from them.",
    ]


async def test_of_a_long_text_the_part_with_the_words_is_shown(harness: AppHarness) -> None:
    await harness.say("alice", f"{'and so on ' * 300}then Open\nthe vault {SECRET}{' and so on' * 30}", **ROOM)
    shown = (await harness.command("alice", f"/nexus forget open  the VAULT {SECRET}", **ROOM)).text.split("\n")[0]
    assert shown.startswith("… so on and so on and so on then Open the vault quokka7 and so on")
    assert len(shown) == 100
    shown = (await harness.command("alice", "/nexus forget and so", **ROOM)).text.split("\n")[0]
    assert shown.startswith("and so on and so on")


async def test_words_are_found_in_every_page_of_what_one_owns(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "ERASURE_PAGE", 3)
    for n in range(9):
        await harness.say("alice", f"zebra {n}", **ROOM)
        await harness.command("alice", f"/nexus remember zebra note {n}", **ROOM)
        await harness.command("alice", f"/nexus fact set zebra{n} zebra", **ROOM)
        await harness.say("bob", f"zebra of bob {n}", **ROOM)
    asked = await harness.command("alice", "/nexus forget zebra", **ROOM)
    assert "9 messages and 18 other items" in asked.text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (r'{"note": "ask\n%s"}', SECRET),
        (r'{"note": ["ask\t%s now"]}', f"ask {SECRET}"),
        (r'{"note": "ask \"%s\" now"}', f'ask "{SECRET}" now'),
        (r'{"ask\n%s": 1}', SECRET),
    ],
)
async def test_words_are_found_in_the_json_of_a_fact_as_they_were_said(
    harness: AppHarness, settings: Settings, value: str, words: str
) -> None:
    # Before, only the JSON text was searched, in which a line break is a backslash and an n: "nquokka7".
    await harness.command("alice", f"/nexus fact set plan {value % SECRET}", **ROOM)
    asked = await harness.command("alice", f"/nexus forget {words}", **ROOM)
    assert asked.text.startswith("plan = {")
    await harness.command("alice", f"/nexus forget {words} --yes", **ROOM)
    assert await tables_with_secret(settings) == set()


async def test_words_are_found_in_the_metadata_of_entries_also_of_those_that_wait(
    harness: AppHarness, settings: Settings
) -> None:
    said, hub = {"note": {"of": [f"ask\n{SECRET}"]}}, Hub(harness, {Trust.TOOL})
    await hub.write("alice", "the first", metadata=said)
    await harness.command("alice", "/nexus project create apollo", dm="nexus")
    async with hub.request("alice") as (_, access):
        project, grants = access.projects[0].id, OF_TOOL | {Grants.WRITE_PROJECTS}
    await hub.write("alice", "the second", "claude", project=project, grants=grants, metadata=said)
    assert {"memories", "quarantine"} <= await tables_with_secret(settings)
    asked = await harness.command("alice", f"/nexus forget {SECRET}", dm="nexus")
    assert "0 messages and 2 other items" in asked.text
    await harness.command("alice", f"/nexus forget {SECRET} --yes", dm="nexus")
    assert await tables_with_secret(settings) == set()


@pytest.mark.parametrize("command", ["forget here", "forget everything", "forget message said", "erase user alice"])
async def test_what_a_session_was_called_goes_with_the_last_of_what_is_in_it(
    harness: AppHarness, settings: Settings, command: str
) -> None:
    # Before, only the API forgot it: the name is what its person wrote.
    await harness.say("alice", "hello", session=SECRET, id="said")
    await harness.say("alice", "hello", session="other")
    connection = await asyncpg.connect(settings.database_url)
    await connection.execute("UPDATE users SET admin = true")
    await connection.close()
    await harness.command("alice", f"/nexus {command} --yes", session=SECRET)
    assert await tables_with_secret(settings) == set()
    await harness.say("alice", "hello again", session=SECRET)
    assert await tables_with_secret(settings) == {"conversations"}


async def test_a_session_in_which_something_is_left_keeps_its_name(harness: AppHarness, settings: Settings) -> None:
    await harness.say("alice", "hello", session=SECRET, id="said")
    await harness.command("alice", "/nexus remember it is blue", session=SECRET)
    await harness.command("alice", "/nexus forget message said --yes", session=SECRET)
    assert await tables_with_secret(settings) == {"conversations"}
    assert f"session {SECRET}" in (await harness.command("alice", "/nexus share", dm="nexus")).text
    await harness.command("alice", "/nexus forget here --yes", session=SECRET)
    assert await tables_with_secret(settings) == set()


async def test_a_session_in_which_nothing_but_a_retracted_post_is_left_has_no_name_any_more(
    harness: AppHarness, settings: Settings
) -> None:
    await harness.command("alice", "/nexus remind here in 20 minutes stretch", session=SECRET)
    harness.clock.tick(30 * 60)
    await harness.app.due_posts.post_due()
    await harness.app.turns.settle()
    assert len(harness.delivery.replies) == 1
    await harness.command("alice", "/nexus forget here --yes", session=SECRET)
    assert await tables_with_secret(settings) == set()


@pytest.mark.parametrize("kind", ["remember the vault is", "fact set vault", "landmark add the vault is"])
async def test_an_item_is_forgotten_by_its_id(harness: AppHarness, settings: Settings, kind: str) -> None:
    await harness.command("alice", f"/nexus {kind} {SECRET}", dm="nexus")
    id = (await harness.command("alice", "/nexus share", dm="nexus")).text.split()[0]
    with pytest.raises(NexusError, match=f"^You have no message, memory, fact or landmark '{id}'"):
        await harness.command("bob", f"/nexus forget item {id} --yes", dm="nexus")
    asked = await harness.command("alice", f"/nexus forget item {id}", **ROOM)
    assert SECRET in asked.text.split("\n")[0]
    assert asked.confirm == f"/nexus forget item {id} --yes"
    assert await tables_with_secret(settings)
    receipt = await harness.command("alice", f"/nexus forget item {id.upper()} --yes", **ROOM)
    assert receipt.text.startswith("Forgotten for good: 1 ")
    assert await tables_with_secret(settings) == set()


async def test_forgetting_by_words_goes_through_every_page(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "ERASURE_PAGE", 2)
    for n in range(5):
        await harness.say("alice", f"{SECRET} number {n}", **ROOM)
    await harness.command("alice", f"/nexus forget {SECRET} --yes", **ROOM)
    assert await tables_with_secret(settings) == set()


async def test_forget_here_leaves_other_conversations_unchanged(harness: AppHarness) -> None:
    await harness.say("alice", f"the vault is {SECRET}", **ROOM)
    await harness.say("alice", f"the vault is {SECRET}", dm="nexus")
    await harness.command("alice", "/nexus forget here --yes", **ROOM)
    assert SECRET not in await prompt_text(harness, "alice", **ROOM)
    assert SECRET in await prompt_text(harness, "alice", dm="nexus")


async def test_nobody_can_forget_the_messages_of_another_user(harness: AppHarness) -> None:
    await harness.say("alice", f"the vault is {SECRET}", id="hers", **ROOM)
    with pytest.raises(NexusError, match=r"^You have no message 'hers' here\.$"):
        await harness.command("bob", "/nexus forget message hers", **ROOM)
    await harness.command("bob", "/nexus forget everything --yes", **ROOM)
    await harness.command("bob", "/nexus forget here --yes", **ROOM)
    assert SECRET in await prompt_text(harness, "alice", **ROOM)
    await harness.command("alice", "/nexus forget message hers", **ROOM)
    assert SECRET not in await prompt_text(harness, "alice", **ROOM)


async def test_a_deletion_on_the_platform_erases_everything_derived_from_the_message(
    harness: AppHarness, settings: Settings
) -> None:
    await harness.say("alice", f"I prefer the vault {SECRET}.", id="said", **ROOM)
    await summarise(harness, "said")
    reply = await harness.ask("bob", "@nexus what is the vault?", id="asked", **ROOM)
    assert SECRET in reply.text
    await harness.change("said", None)
    assert await tables_with_secret(settings) == set()
    assert RETRACTED in await prompt_text(harness, "bob", **ROOM)
    with pytest.raises(NexusError, match="There is no answer to you here"):
        await harness.command("bob", "/nexus why --details", **ROOM)
    await harness.say("alice", f"I prefer the vault {SECRET}.", id="said", **ROOM)
    assert await tables_with_secret(settings) == set(), "a repeated event stored it again"


async def test_an_edit_replaces_the_text_in_every_layer(harness: AppHarness, settings: Settings) -> None:
    await harness.say("alice", f"I prefer the vault {SECRET}.", id="said", **ROOM)
    await summarise(harness, "said")
    assert SECRET in (await harness.ask("bob", "@nexus what is the vault?", **ROOM)).text
    await harness.change("said", "I prefer the vault numbat3.")
    assert await tables_with_secret(settings) == set()
    assert "numbat3" in await prompt_text(harness, "bob", **ROOM)
    found = await harness.command("bob", "/nexus recall numbat3", **ROOM)
    assert "numbat3" in found.text
    assert SECRET not in found.text


async def test_a_question_deleted_before_its_answer_is_not_answered(harness: AppHarness) -> None:
    await harness.say("alice", "hello", **ROOM)
    harness.app.turns._adapters.clear()  # no adapter delivers answers yet
    await harness.say("alice", f"@nexus the vault is {SECRET}?", id="asked", **ROOM)
    await harness.change("asked", None)
    harness.app.turns.serve("console", harness.delivery)
    await harness.app.take_over()
    await harness.app.turns.settle()
    assert harness.delivery.replies == []


async def test_a_receipt_counts_nothing_that_its_reader_may_not_read(harness: AppHarness) -> None:
    """Her receipt does not tell alice whether others asked in private."""
    receipts = []
    for workspace, asked_in_private in (("quiet", False), ("busy", True)):
        where = {"workspace": workspace}
        await harness.command("alice", "/nexus project create apollo", **ROOM, **where)
        await harness.command("alice", "/nexus project assign apollo --yes", **ROOM, **where)
        await harness.say("bob", "hello", dm="nexus", **where)
        await harness.command("alice", "/nexus project member add apollo bob", **ROOM, **where)
        await harness.command("bob", "/nexus project accept apollo", **ROOM, **where)
        await harness.command("bob", "/nexus project assign apollo", dm="nexus", **where)
        await harness.say("alice", f"the vault is {SECRET}", id=f"said in {workspace}", **ROOM, **where)
        if asked_in_private:
            reply = await harness.ask("bob", "what is the vault?", dm="nexus", **where)
            assert SECRET in reply.text
        receipts.append(
            (await harness.command("alice", f"/nexus forget {SECRET} --yes", **ROOM, **where)).text.split(" Receipt")[0]
        )
        assert SECRET not in await prompt_text(harness, "bob", dm="nexus", **where)
    assert receipts[0] == receipts[1]
