"""Rows that a viewer may not read change nothing in any read of a repository, not even a count or a score.

Each read is asked twice: before and after rows that it must not see are stored between those that it may see. They have
the same words, vectors and times. As a control the same rows are then given readable access tags, and every read
changes. All this without the second check in code, so that it can't hide what a statement lets through.

The other way round: without the predicate in SQL, the second check lets no unreadable row through.
"""

import inspect
import re
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any, Final, cast

import asyncpg
import numpy as np
import pytest
import redis

from bot.commands.suggestions import suggest
from bot.commands.table import COMMANDS
from bot.script.places import incoming, place_of
from composer import visibility
from composer.layers import episodic, semantic, structured, working
from composer.layers.semantic import Retrieval, SearchQuery, Shown
from composer.model import Conversation, ConversationKind, Message, Role, Trust, Visibility, derived_id
from composer.ports.clock import EARLIEST
from composer.ports.database import Statements
from composer.repositories.database import Transaction
from composer.repositories.recall import Candidate, episode_id_of
from composer.visibility import JoinedRoom, PoolMember, ProjectFacts, Readable, Reviewable
from tests.support.databases import run_sql
from tests.support.harness import AppHarness
from tests.support.program import ROOT
from tests.support.stored_rows import NOW, TERMS, WIDTH, Rows, Tag

LIMIT: Final = 200
ROW_IDS: Final = [derived_id("row", str(n)) for n in range(200)]
MESSAGE_IDS: Final = [derived_id("message", str(n)) for n in range(200)]


@dataclass(frozen=True)
class Scene:
    """A viewer at a place, the tags of rows that they may read and of rows that they may not read."""

    viewer: uuid.UUID
    readable: Readable
    conversation: Conversation
    agent: uuid.UUID
    visible: Sequence[Tag]
    hidden: Sequence[Tag]


@asynccontextmanager
async def _scene(harness: AppHarness, kind: str) -> AsyncIterator[tuple[Scene, Rows]]:
    """A viewer in a room or a DM, and what stores rows there past the access checks, over a connection of its own."""
    raw = await asyncpg.connect(harness.app.settings.database_url)
    try:
        scene = await _viewer(harness, raw, kind)
        yield scene, Rows(raw, harness.workspace().tenant_id, scene.conversation, scene.agent)
    finally:
        await raw.close()


async def _viewer(harness: AppHarness, raw: asyncpg.Connection, kind: str) -> Scene:
    """A viewer in a room, or in a DM, of a project that pools another room."""
    app, here = harness.app, harness.workspace()
    await harness.say("bob", "hello", room="general")
    await harness.say("alice", "hello", room="general")
    await harness.say("alice", "hello", dm="nexus")
    place = await raw.fetchval("SELECT id FROM conversations WHERE kind = $1", kind)
    alice, bob = [await raw.fetchval("SELECT id FROM users WHERE name = $1", name) for name in ("alice", "bob")]
    async with app.database.transaction(here.tenant_id, "read") as tx:
        access = await tx.conversations.access_context(place, alice, Trust.MEMBER)
    assert access is not None
    pool = (PoolMember("room:pooled", ConversationKind.ROOM, private=False, pooled=False),)
    access = replace(access, project=ProjectFacts(uuid.uuid4(), "apollo", False, Role.WRITE, pool))
    joined = JoinedRoom("room:joined", "joined", private=True, project_id=None, isolated=False)
    access = replace(access, reads_rooms=True, joined_rooms=(joined,))
    readable = visibility.readable(access, [])
    own = readable.namespaces
    room = kind == "room"
    seen = (Visibility.PUBLIC, None) if room else (Visibility.PRIVATE, alice)
    unseen = [(Visibility.PRIVATE, alice), (Visibility.PRIVATE, bob)] if room else [(Visibility.PUBLIC, alice)]
    visible = [Tag(n, *seen) for n in own] + [Tag(n, Visibility.SHARED, alice) for n in own]
    hidden = [Tag(n, *each) for n in own for each in (*unseen, (Visibility.PRIVATE, bob), (Visibility.PRIVATE, None))]
    hidden += [Tag(n, Visibility.SHARED, alice, ("claude",)) for n in (*own, "room:pooled")]
    hidden += [Tag("room:other", Visibility.PUBLIC, bob), Tag(f"dm:{bob}:x", Visibility.SHARED, alice)]
    hidden += [Tag("room:pooled ", Visibility.SHARED, alice)]  # nearly the name of a pooled one
    hidden += [Tag("room:joined", Visibility.PRIVATE, user) for user in (alice, bob, None)]
    hidden += [Tag("room:joined", Visibility.SHARED, alice, ("claude",)), Tag("room:joined.1", Visibility.PUBLIC, bob)]
    return Scene(alice, readable, access.conversation, app.directory.agents(here.tenant_id)[0].id, visible, hidden)


async def _everything_read(harness: AppHarness, scene: Scene) -> dict[str, Any]:
    """What every read that takes a Readable returns for the viewer."""
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        question = _question(scene)
        vector = np.ones(WIDTH, dtype=np.float32)
        background = await tx.recall.background(
            scene.readable, scene.conversation, scene.agent, question, {"day": LIMIT}, []
        )
        of_a_period = await tx.recall.background(
            scene.readable, scene.conversation, scene.agent, question, {"day": 0}, [], [(EARLIEST, NOW)]
        )
        by_words = await tx.recall.search(scene.readable, None, TERMS, LIMIT, [], NOW)
        of_a_prompt = await tx.structured.read(scene.readable, NOW, [])
        return {
            "by meaning": (await tx.recall.search(scene.readable, vector, [], LIMIT, [], NOW)).candidates,
            "by words": by_words.candidates,
            "rarities": by_words.rarities,
            "words": await tx.recall.words(scene.readable, {term[:2] for term in TERMS}, LIMIT, NOW),
            "the viewer's": (
                await tx.recall.search(scene.readable, vector, [], 9, [], NOW, authors=[scene.viewer])
            ).candidates,
            "the latest": await tx.recall.latest(scene.readable, ["episode", "memory", "summary"], LIMIT, [], NOW),
            "the latest facts": await tx.recall.latest(scene.readable, ["memory"], LIMIT, [], NOW, details=["fact"]),
            "the best two": (await tx.recall.search(scene.readable, vector, TERMS, 2, [], NOW)).candidates,
            "summaries": background.summaries,
            "summaries of a period": of_a_period.summaries,
            "compaction": background.compaction,
            "summaries of a span": await tx.digests.summaries(
                scene.readable, scene.conversation.id, "day", EARLIEST, NOW + timedelta(days=1)
            ),
            "messages since": await tx.digests.messages_since(scene.readable, scene.conversation.id, EARLIEST, LIMIT),
            "counts": await tx.remembered.counts(scene.readable, NOW),
            "memories": await tx.remembered.memories(scene.readable, NOW, LIMIT),
            "messages of days": await tx.remembered.message_days(
                scene.readable, scene.conversation.id, [EARLIEST, NOW - timedelta(days=1), NOW + timedelta(days=1)]
            ),
            "changes": await tx.remembered.changes(scene.readable, EARLIEST, NOW, LIMIT),
            "facts": await tx.facts.find(scene.readable, NOW),
            "history": await tx.facts.history(scene.readable, "key"),
            "landmarks": await tx.landmarks.find(scene.readable, NOW, retired=True),
            "facts of a prompt": of_a_prompt.facts,
            "landmarks of a prompt": of_a_prompt.landmarks,
            "superseded": await tx.memories.find_superseded(scene.readable, TERMS, LIMIT, NOW),
            "pending": await tx.quarantine.find_pending(Reviewable(scene.readable, scene.readable.without_pool())),
            "contributions": await tx.quarantine.contributions(scene.readable, scene.viewer, EARLIEST),
            "sources": await tx.explanations.find_readable(scene.readable, ROW_IDS),
            "around a message": [
                *(await tx.recall.around(scene.readable, [*map(episode_id_of, MESSAGE_IDS)], 2, EARLIEST, NOW)).items()
            ],
            "messages of sources": await tx.explanations.addresses(scene.readable, MESSAGE_IDS, 3),
        }


# Reads that take a Readable and are not asked above, and where what may not be read is shown to change nothing in them.
ASKED_ELSEWHERE: Final = {
    "entries.count": "tests/deep/property/test_entry_interference.py",
    "entries.find": "tests/deep/property/test_entry_interference.py",
    "entries.find_by_ids": "tests/deep/property/test_entry_interference.py",
    "entries.find_by_key": "tests/deep/property/test_entry_interference.py",
    "entries.find_sorted": "tests/deep/property/test_entry_interference.py",
    "entries.find_own": "tests/deep/property/test_entry_interference.py",
    "entries.find_own_ids": "tests/deep/property/test_entry_interference.py",
    "entries.get": "tests/deep/property/test_entry_interference.py",
    "entries.versions": "tests/integration/test_entry_routes.py",
    "landmarks.with_words": "tests/deep/property/test_page_interference.py",
    "landmarks.messages": "tests/deep/property/test_page_interference.py",
    # Of one conversation, whose namespace is asked for before; in it, whoever reads one message reads all.
    "messages.latest": "tests/deep/property/test_non_interference.py",
    "messages.opening": "tests/integration/test_follow_ups.py",
    "quarantine.count": "tests/deep/integration/test_pages_waiting.py",
    # Who is known does not change with every row.
    "recall.people": "tests/deep/integration/test_plain_questions.py",
    "sessions.of_project": "tests/integration/test_project_sessions.py",
    "turns.last_prompt": "tests/deep/property/test_non_interference.py",
}


def test_every_read_that_takes_a_readable_is_asked_or_listed() -> None:
    nothing = Transaction(cast(Statements, None), uuid.uuid4(), None)
    repositories = [name for name, value in vars(Transaction).items() if isinstance(value, cached_property)]
    reads = {
        f"{name}.{method}"
        for name in repositories
        for method, function in inspect.getmembers(type(getattr(nothing, name)), inspect.isfunction)
        if any(each.annotation in (Readable, Reviewable) for each in inspect.signature(function).parameters.values())
    }
    asked = {".".join(found) for found in re.findall(r"tx\.(\w+)\.(\w+)\(", inspect.getsource(_everything_read))}
    assert len(reads) > 20
    assert reads == asked | ASKED_ELSEWHERE.keys()
    assert not asked & ASKED_ELSEWHERE.keys()
    assert all((ROOT / path).is_file() for path in ASKED_ELSEWHERE.values())


def _question(scene: Scene) -> Message:
    conversation = scene.conversation
    id = uuid.uuid4()
    return Message(id, "q", 10_000, NOW, None, None, "alice", "?", conversation.namespace, conversation.visibility)


@pytest.mark.parametrize("kind", ["room", "dm"])
async def test_rows_that_a_viewer_may_not_read_change_no_read(
    harness: AppHarness, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Readable, "admits", lambda readable, row: True)
    async with _scene(harness, kind) as (scene, rows):
        for n, tag in enumerate(scene.visible):
            await rows.insert(tag, 10 * n)
        before = await _everything_read(harness, scene)
        assert all(before.values()), "a read that finds nothing could not show what is hidden"
        for n, tag in enumerate(scene.hidden):
            await rows.insert(tag, 10 * (n // 8) + 1 + n % 8)
        await rows.insert(scene.hidden[0], 199)  # the latest
        assert await _everything_read(harness, scene) == before
        for n, tag in enumerate(scene.visible):  # the control: under other tags such rows change every read
            await rows.insert(tag, 10 * n + 9)
        after = await _everything_read(harness, scene)
        assert all(after[name] != read for name, read in before.items())


@pytest.mark.parametrize("kind", ["room", "dm"])
async def test_no_unreadable_message_is_found_beside_a_hit(
    harness: AppHarness, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Readable, "admits", lambda readable, row: True)
    async with _scene(harness, kind) as (scene, rows):
        hidden = [tag for tag in scene.hidden if tag.vendors is None]  # messages are for every vendor
        hits = [20 * n + 4 for n in range(len(hidden))]  # of these minutes are those that words and vectors find
        for minute in hits:
            await rows.insert(scene.visible[0], minute)
        before = await _found(harness, scene)
        for found in before.values():
            assert sum(text.startswith("visible") for text, *_ in _messages(found)) == len(hits)
        for tag, minute in zip(hidden, hits, strict=True):
            await rows.insert(replace(tag, mark="hidden"), minute - 1)
            await rows.insert(replace(tag, mark="hidden"), minute + 2)
        after = await _found(harness, scene)
        assert {name: _messages(found) for name, found in after.items()} == {
            name: _messages(found) for name, found in before.items()
        }
        for minute in (hits[1] - 2, hits[1] + 3):  # the control: messages that may be read are found there
            await rows.insert(scene.visible[0], minute)
        control = await _found(harness, scene)
        assert all(len(_messages(control[name])) == len(_messages(found)) + 2 for name, found in before.items())


async def _found(harness: AppHarness, scene: Scene) -> dict[str, list[Candidate]]:
    """What is recalled for a question, by meaning and by words."""
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        vector = np.ones(WIDTH, dtype=np.float32)
        return {
            "by meaning": (await tx.recall.search(scene.readable, vector, [], LIMIT, [], NOW)).candidates,
            "by words": (await tx.recall.search(scene.readable, None, TERMS, LIMIT, [], NOW)).candidates,
        }


def _messages(found: Sequence[Candidate]) -> list[tuple[str, str | None, str | None]]:
    """The messages among what was found, with their neighbours, by id."""
    return [(each.item.text, each.before, each.after) for each in found if each.item.kind == "episode"]


async def test_a_successor_that_a_tool_was_not_given_is_not_named(harness: AppHarness) -> None:
    async with _scene(harness, "dm") as (scene, rows):
        await rows.insert(scene.visible[0], 1)
        await rows.insert(scene.visible[0], 2, newer_vendors=["claude"])
        async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
            found = await tx.memories.find_superseded(scene.readable, TERMS, LIMIT, NOW)
        assert [(old.text, old.newer and old.newer.text) for old in found] == [
            ("visible memory 2, old", None),
            ("visible memory 1, old", "visible memory 1, new"),
        ]


RECALLED: Final = {
    "by meaning",
    "by words",
    "rarities",
    "words",
    "the latest",
    "the latest facts",
    "the best two",
    "around a message",
    "sources",
    "messages of sources",
}


async def test_of_a_room_that_is_open_to_a_dm_only_what_is_recalled_is_read(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Readable, "admits", lambda readable, row: True)
    async with _scene(harness, "dm") as (scene, rows):
        for n, tag in enumerate(scene.visible):
            await rows.insert(tag, 10 * n)
        before = await _everything_read(harness, scene)
        for n, visibility in enumerate((Visibility.PUBLIC, Visibility.SHARED)):
            await rows.insert(Tag("room:joined", visibility, None), 10 * n + 1)
        after = await _everything_read(harness, scene)
        assert {name for name, read in before.items() if after[name] != read} == RECALLED
        pinned = [derived_id(kind, str(n)) for kind in ("marked", "proposed") for n in (1, 11)]
        async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
            assert await tx.explanations.find_readable(scene.readable, pinned) == {}  # facts and landmarks


async def _everything_shown(harness: AppHarness, scene: Scene) -> dict[str, str]:
    """What every layer, command and suggestion shows the viewer, as text."""
    here, cache, own = harness.workspace(), harness.app.cache, scene.readable
    question, query = _question(scene), SearchQuery("budget launch", np.ones(WIDTH, dtype=np.float32), TERMS)
    assert harness.app.settings.redis_url is not None
    redis.Redis.from_url(harness.app.settings.redis_url).flushall()
    where: dict[str, Any] = {"room": "general"} if not own.readers else {"dm": "nexus"}
    typing = incoming(here, place_of(where.get("room"), where.get("dm"), None), "alice", "", NOW, id="typing")
    shown: dict[str, Any] = {}
    async with harness.app.database.transaction(here.tenant_id, "read") as tx:
        shown["working"] = await working.read(tx.messages, cache, own, scene.conversation, question)
        background = await episodic.read(tx.recall, own, scene.conversation, scene.agent, question, [])
        shown |= {"summaries": background.summaries, "compaction": background.compaction}
        shown["semantic"] = await semantic.read(tx.recall, own, query, Shown(), Retrieval(top_k=LIMIT), NOW)
        found = await structured.read(tx.structured, own, NOW)
        shown |= {"facts": found.facts, "landmarks": found.landmarks}
        shown["pending"] = await tx.quarantine.find_pending(Reviewable(own, own.without_pool()))
        shown["messages of sources"] = await tx.explanations.addresses(own, MESSAGE_IDS, 3)
    harness.clock.set(NOW)
    commands = ("fact list", "fact get key", "fact history key", "landmark list --retired", "history budget")
    for command in commands:
        shown[command] = (await harness.command("alice", f"/nexus {command}", **where)).text
    for name in ("fact get", "landmark retire"):
        parameter = COMMANDS[name].parameters[0]
        shown[f"suggestions: {name}"] = await suggest(harness.app, here, typing, parameter, [], "")
    return {name: repr(what) for name, what in shown.items()}


@pytest.mark.parametrize("kind", ["room", "dm"])
async def test_without_the_predicate_in_sql_the_check_in_code_shows_nothing_unreadable(
    harness: AppHarness, kind: str
) -> None:
    async with _scene(harness, kind) as (scene, rows):
        assert harness.app.settings.database_url is not None
        await run_sql(
            harness.app.settings.database_url,
            "CREATE OR REPLACE FUNCTION may_read(namespace text, visibility text, user_id uuid, vendors text[],"
            " pooled text[], visibilities text[], readers uuid[], vendor text, rooms text[] DEFAULT '{}')"
            " RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN true",
        )
        for n, tag in enumerate(scene.visible):
            await rows.insert(tag, 10 * n)
        for n, tag in enumerate(scene.hidden):
            await rows.insert(replace(tag, mark="hidden"), 10 * (n // 8) + 1 + n % 8)
        await rows.insert(replace(scene.hidden[0], mark="hidden"), 199)  # the latest
        for name, text in (await _everything_shown(harness, scene)).items():
            assert "hidden" not in text, name
            assert "visible" in text or name == "compaction", f"{name} shows nothing at all"  # there is one at most
