"""Consolidation: a repeated statement is merged and a contradicted one superseded, within its own scope only."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from bot.console.operations import set_admin
from bot.script.places import incoming
from composer.errors import BadInput, Refused
from composer.layers.retrieval_settings import RETRIEVAL
from composer.memory.forget import forget
from composer.model import CONSOLE
from composer.repositories.memories import Memories, SupersededMemory
from tests.support.canaries import place
from tests.support.harness import AppHarness

ROOM = {"room": "general"}
_numbers = itertools.count()


async def memories(harness: AppHarness) -> list[dict[str, Any]]:
    """All stored memories, oldest first, with the source messages of each."""
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        rows = await connection.fetch(
            """
            SELECT m.*, ARRAY(SELECT s.external_id FROM lineage AS l JOIN messages AS s ON s.id = l.source_id
                              WHERE l.item_id = m.id ORDER BY s.at) AS said_in,
                   n.text AS newer
            FROM memories AS m LEFT JOIN memories AS n ON n.id = m.superseded_by ORDER BY m.created_at, m.id
            """
        )
    finally:
        await connection.close()
    return [dict(row) for row in rows]


async def recalled(harness: AppHarness, text: str, user: str = "bob", **where: Any) -> list[str]:
    """The memories (no plain messages) in a prompt."""
    composed = await harness.compose(user, text, **(where or {"room": "general"}))
    sections = json.loads(json.dumps(composed.prompt.as_json()))["sections"]
    found = [s for section in sections if section["name"] == "RECALL" for s in section["sources"]]
    ids = {source["id"] for source in found if source["kind"] not in ("episode", "summary")}
    return [memory["text"] for memory in await memories(harness) if str(memory["id"]) in ids]


async def fill_view(harness: AppHarness) -> None:
    """Post so many messages that the earlier ones leave the view."""
    here = harness.workspace()
    filler = [
        incoming(
            here,
            place(ROOM),
            "carol",
            f"unrelated chatter number {n}",
            harness.clock.tick(),
            id=f"fill{next(_numbers)}",
        )
        for n in range(100)
    ]
    await harness.app.receive(here, filler, answer=False)
    await harness.app.indexer.catch_up(here.tenant_id)


async def test_a_repeated_statement_is_one_memory_with_both_messages(harness: AppHarness) -> None:
    await harness.say("alice", "I prefer green tea over coffee", id="a1", **ROOM)
    await harness.say("alice", "I prefer green tea over the coffee!", id="a2", **ROOM)
    await harness.say("bob", "I prefer green tea over coffee", id="b1", **ROOM)
    assert [(m["author"], m["said_in"]) for m in await memories(harness)] == [("alice", ["a1", "a2"]), ("bob", ["b1"])]


async def test_a_memory_survives_while_one_of_its_sources_remains(harness: AppHarness) -> None:
    await harness.say("alice", "I prefer green tea over coffee", id="a1", **ROOM)
    await harness.say("alice", "I prefer green tea over coffee.", id="a2", **ROOM)
    await harness.change("a1", None)
    assert [(m["text"], m["said_in"]) for m in await memories(harness)] == [("I prefer green tea over coffee.", ["a2"])]
    await harness.change("a2", None)
    assert await memories(harness) == []


async def test_a_newer_statement_supersedes_the_older_one_and_the_history_shows_both(harness: AppHarness) -> None:
    await harness.say("alice", "We decided to deploy billing on Fridays", id="a1", **ROOM)
    await fill_view(harness)
    between = harness.clock.tick()
    await harness.say("alice", "We decided to deploy billing on Mondays", id="a2", **ROOM)
    old, new = await memories(harness)
    assert (old["newer"], old["valid_to"]) == (new["text"], new["created_at"])
    assert new["superseded_by"] is None
    await fill_view(harness)
    assert await recalled(harness, "when do we deploy billing?") == ["We decided to deploy billing on Mondays"]
    now = harness.clock.now()
    harness.clock.set(between)
    assert await recalled(harness, "when do we deploy billing?") == ["We decided to deploy billing on Fridays"]
    harness.clock.set(now)
    history = (await harness.command("bob", "/nexus history billing", **ROOM)).text
    assert "We decided to deploy billing on Fridays" in history
    assert "We decided to deploy billing on Mondays" in history


async def test_each_row_of_the_history_is_checked_for_access_again(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.say("alice", "We decided to deploy billing on Fridays", id="a1", **ROOM)
    await harness.say("alice", "We decided to deploy billing on Mondays", id="a2", **ROOM)
    read = Memories.find_superseded

    async def history(change: Callable[[SupersededMemory], SupersededMemory]) -> str:
        async def careless(self: Memories, *args: Any) -> list[SupersededMemory]:
            return [change(row) for row in await read(self, *args)]

        monkeypatch.setattr(Memories, "find_superseded", careless)
        return (await harness.command("bob", "/nexus history billing", **ROOM)).text

    def elsewhere(old: SupersededMemory) -> SupersededMemory:
        assert old.newer is not None
        return replace(old, newer=replace(old.newer, namespace="room:elsewhere"))

    assert "Mondays" in await history(lambda old: old)
    of_others = await history(elsewhere)
    assert "Fridays" in of_others
    assert "Mondays" not in of_others
    assert "Fridays" not in await history(lambda old: replace(old, namespace="room:elsewhere"))


async def test_a_successor_that_only_other_vendors_may_read_is_not_in_the_history(harness: AppHarness) -> None:
    await harness.say("alice", "We decided to deploy billing on Fridays", id="a1", **ROOM)
    await harness.say("alice", "We decided to deploy billing on Mondays", id="a2", **ROOM)
    async with harness.app.database._pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{harness.workspace().tenant_id}'")
        await connection.execute("UPDATE memories SET allowed_vendors = '{claude}' WHERE superseded_by IS NULL")
    history = (await harness.command("bob", "/nexus history billing", **ROOM)).text
    assert "Fridays" in history
    assert "Mondays" not in history


async def test_forgetting_the_newer_statement_restores_the_older_one(harness: AppHarness) -> None:
    for number, day in enumerate(("Fridays", "Mondays", "Tuesdays"), 1):
        await harness.say("alice", f"We decided to deploy billing on {day}", id=f"a{number}", **ROOM)
    await harness.change("a2", None)
    first, third = await memories(harness)
    assert (first["superseded_by"], first["valid_to"]) == (third["id"], third["created_at"])
    await harness.change("a3", "never mind")
    [only] = await memories(harness)
    assert (only["superseded_by"], only["valid_to"]) == (None, None)
    await fill_view(harness)
    assert await recalled(harness, "when do we deploy billing?") == ["We decided to deploy billing on Fridays"]


async def test_statements_of_other_scopes_neither_merge_with_nor_supersede_a_memory(
    harness: AppHarness,
) -> None:
    await harness.say("alice", "We decided to deploy billing on Fridays", **ROOM)
    await harness.say("alice", "We decided to deploy billing on Mondays", dm="nexus")
    await harness.say("alice", "We decided to deploy billing on Tuesdays", session="s1")
    await harness.say("alice", "We decided to deploy billing on Fridays", room="vault", private=True)
    await harness.say("bob", "We decided to deploy billing on Mondays", **ROOM)
    found = await memories(harness)
    assert len(found) == 5
    assert {m["superseded_by"] for m in found} == {None}
    assert {m["valid_to"] for m in found} == {None}
    assert all(len(m["said_in"]) == 1 for m in found)
    history = await harness.command("bob", "/nexus history billing", **ROOM)
    assert "Mondays" not in history.text


async def test_a_note_is_never_merged_or_superseded(harness: AppHarness) -> None:
    await harness.command("alice", "/nexus remember We decided to deploy billing on Fridays", **ROOM)
    await harness.say("alice", "We decided to deploy billing on Mondays", **ROOM)
    await harness.say("alice", "We decided to deploy billing on Fridays", **ROOM)
    remaining = [m for m in await memories(harness) if m["origin"] != "extracted"]
    assert [(m["text"], m["superseded_by"]) for m in remaining] == [("We decided to deploy billing on Fridays", None)]


async def test_an_action_item_is_recalled_until_its_deadline_has_passed(harness: AppHarness) -> None:
    await harness.say("alice", "I'll send the quarterly figures to the board by tomorrow", **ROOM)
    await fill_view(harness)
    assert len(await recalled(harness, "who sends the quarterly figures to the board?")) == 1
    harness.clock.tick(4 * 86_400)
    assert await recalled(harness, "who sends the quarterly figures to the board?") == []


async def test_indexing_the_same_messages_again_changes_nothing(harness: AppHarness) -> None:
    for text in ("I prefer green tea", "I prefer green tea.", "I hate green tea", "I usually walk to the office"):
        await harness.say("alice", text, **ROOM)
    before = await memories(harness)
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        postings = await connection.fetchval("SELECT count(*) FROM recall_terms")
        await connection.execute("UPDATE messages SET indexed = false")
        await harness.app.indexer.catch_up(harness.workspace().tenant_id)
        assert await connection.fetchval("SELECT count(*) FROM recall_terms") == postings
    finally:
        await connection.close()
    assert await memories(harness) == before


async def test_a_change_of_the_retrieval_settings_applies_to_the_next_question(harness: AppHarness) -> None:
    await harness.say("alice", "the vault opens with the copper key", **ROOM)
    await harness.say("root", "hello", **ROOM)
    await fill_view(harness)
    with pytest.raises(Refused, match="Only an admin of this workspace"):
        await harness.command("alice", "/nexus settings top_k 0", **ROOM)
    await set_admin(harness.app, harness.name, "root", True)
    question = "which key opens the vault?"

    async def texts() -> list[str]:
        prompt = (await harness.compose("alice", question, **ROOM)).prompt
        return [item.text for section in prompt.sections if section.name == "RECALL" for item in section.sources]

    assert any("copper" in text for text in await texts())
    shown = (await harness.command("root", "/nexus settings", **ROOM)).text
    assert all(f"{key} = " in shown and RETRIEVAL.settings[key].help in shown for key in RETRIEVAL.settings)
    hides, erases = (line for line in shown.split("\n") if "_days = " in line)
    assert "nothing is erased" in hides
    assert erases.startswith("keep_days = for ever  (in nexus.toml)  erases messages older")
    assert erases.endswith("but the landmarks that somebody pinned, accepted or amended")
    with pytest.raises(BadInput, match=r"erases messages for good.*page Admin.*retention_days 30"):
        await harness.command("root", "/nexus settings keep_days 30", **ROOM)
    await harness.command("root", "/nexus settings top_k 0", **ROOM)
    assert await texts() == []
    await harness.command("root", "/nexus settings top-k default", **ROOM)
    assert any("copper" in text for text in await texts())
    await harness.command("root", "/nexus settings strategy recent", **ROOM)
    recent = await texts()
    assert recent
    await harness.command("root", "/nexus settings strategy hybrid", **ROOM)
    await harness.command("root", "/nexus settings retention_days 30", **ROOM)
    harness.clock.tick(40 * 86_400)
    assert await texts() == []
    for wrong in ("top_k many", "top_k -1", "top_k 101", "strategy newest", "colour 1", "top_k 1 2", "top_k ²"):
        with pytest.raises(BadInput):
            await harness.command("root", f"/nexus settings {wrong}", **ROOM)
    elsewhere = harness.app.directory.workspace(CONSOLE, "globex")
    async with harness.app.database.transaction(elsewhere.tenant_id) as tx:
        assert await tx.settings.all() == {}


async def test_items_past_retention_take_no_place_from_newer_ones(harness: AppHarness) -> None:
    here = harness.workspace()
    for n in range(120):
        statements = incoming(here, place(ROOM), "carol", f"copper pipes {n}", harness.clock.tick(), id=f"old{n}")
        await harness.app.receive(here, [statements], answer=False)
    harness.clock.tick(40 * 86_400)
    long = f"the plumber wrote at length about many things, and once of copper: {'and so on, ' * 30}"
    await harness.say("alice", long, id="new", **ROOM)
    await fill_view(harness)
    set_to = "/nexus settings retention_days 30"
    await harness.say("root", "hello", **ROOM)
    await set_admin(harness.app, harness.name, "root", True)
    await harness.command("root", set_to, **ROOM)
    prompt = (await harness.compose("bob", "copper pipes", **ROOM)).prompt
    recall = next(section for section in prompt.sections if section.name == "RECALL")
    assert "new" in {message for source in recall.sources for message in source.messages}
    assert not any("copper pipes" in source.text for source in recall.sources)


async def test_paraphrases_are_one_memory_with_both_messages(harness: AppHarness) -> None:
    await harness.say("alice", "I love hiking in the mountains", id="a1", **ROOM)
    await harness.say("alice", "I really enjoy going hiking in the mountains", id="a2", **ROOM)
    first, second = await memories(harness)
    assert (second["merged_into"], first["merged_into"]) == (first["id"], None)
    assert first["said_in"] == ["a1", "a2"]
    await fill_view(harness)
    assert await recalled(harness, "what about hiking in the mountains?") == ["I love hiking in the mountains"]
    assert "enjoy" not in (await harness.command("alice", "/nexus history hiking", **ROOM)).text


async def test_merging_does_not_depend_on_the_order_or_batches_of_indexing(
    harness: AppHarness,
) -> None:
    here = harness.workspace()
    statements = [
        incoming(here, place(ROOM), "alice", text, harness.clock.tick(), id=f"s{number}")
        for number, text in enumerate(
            (
                "I love hiking in the mountains",
                "I really enjoy going hiking in the mountains",
                "I enjoy painting landscapes",
                "I enjoy hiking in the mountains.",
                "I love to paint landscapes",
            )
        )
    ]
    seen = []
    for room, batches in (
        ("one", [statements]),
        ("each", [[m] for m in statements]),
        ("back", [[m] for m in reversed(statements)]),
    ):
        for batch in batches:
            moved = [incoming(here, place({"room": room}), "alice", m.text, m.at, id=f"{room}-{m.id}") for m in batch]
            await harness.app.receive(here, moved, answer=False)
            await harness.app.indexer.catch_up(here.tenant_id)
        stand = [m for m in await memories(harness) if m["merged_into"] is None and m["said_in"][0].startswith(room)]
        seen.append([(m["text"], [id.removeprefix(f"{room}-") for id in m["said_in"]]) for m in stand])
    assert seen[0] == [
        ("I love hiking in the mountains", ["s0", "s1", "s3"]),
        ("I enjoy painting landscapes", ["s2", "s4"]),
    ]
    assert seen[1:] == [seen[0], seen[0]]


async def test_a_statement_that_negates_any_wording_supersedes_the_memory(harness: AppHarness) -> None:
    await harness.say("alice", "We decided to ship the quarterly report", id="a1", **ROOM)
    await harness.say("alice", "We agreed to go ahead and ship the quarterly report", id="a2", **ROOM)
    await harness.say("alice", "We decided to not ship the quarterly report ahead", id="a3", **ROOM)
    found = {m["text"]: m for m in await memories(harness)}
    first, merged, last = (found[text] for text in found)
    assert merged["merged_into"] == first["id"]
    assert (first["superseded_by"], first["valid_to"]) == (last["id"], last["created_at"])


async def test_paraphrases_of_other_scopes_are_not_merged(harness: AppHarness) -> None:
    wordings = ("I love hiking in the mountains", "I really enjoy going hiking in the mountains")
    scopes: list[dict[str, Any]] = [ROOM, {"dm": "nexus"}, {"session": "s1"}, {"room": "vault", "private": True}]
    for number, scope in enumerate(scopes):
        await harness.say("alice", wordings[number % 2], **scope)
    await harness.say("bob", wordings[1], **ROOM)
    assert [m["merged_into"] for m in await memories(harness)] == [None] * 5


async def test_forgetting_a_message_leaves_the_wordings_of_the_other_sources(harness: AppHarness) -> None:
    await harness.say("alice", "We decided to adopt the blue logo", id="a1", **ROOM)
    await harness.say("alice", "We agreed to adopt the blue logo", id="a2", **ROOM)
    await harness.say("alice", "We decided that we will adopt the blue logo", id="a3", **ROOM)
    assert [m["said_in"] for m in await memories(harness) if m["merged_into"] is None] == [["a1", "a2", "a3"]]
    await harness.change("a1", None)
    stand = [m for m in await memories(harness) if m["merged_into"] is None]
    assert [(m["text"], m["said_in"]) for m in stand] == [("We agreed to adopt the blue logo", ["a2", "a3"])]


async def test_a_forgotten_memory_does_not_return_in_another_wording(harness: AppHarness) -> None:
    await harness.say("alice", "I love hiking in the mountains", id="a1", **ROOM)
    await harness.say("alice", "I really enjoy going hiking in the mountains", id="a2", **ROOM)
    here, [first, _] = harness.workspace(), await memories(harness)
    async with harness.app.database.transaction(here.tenant_id, "alone") as tx:
        receipt = await forget(tx, [], [("memory", first["id"])], harness.clock.now())
    assert receipt.counts["memory"] == 2
    await harness.app.indexer.catch_up(here.tenant_id)
    assert await memories(harness) == []


async def test_one_decision_is_proposed_once_however_it_is_worded(harness: AppHarness) -> None:
    await harness.say("alice", "We decided to adopt the blue logo", **ROOM)
    await harness.say("alice", "We agreed to adopt the blue logo", **ROOM)
    listed = (await harness.command("alice", "/nexus landmark list", **ROOM)).text
    assert "We decided to adopt the blue logo" in listed
    assert "We agreed" not in listed
