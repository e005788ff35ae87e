"""What somebody may not read changes nothing in what they, or a tool of theirs, are told for a question: not a byte.

As in test_unreadable_rows.py, each question is asked twice, without the second check in code, before and after rows
that it must not see are stored between those that it may see; as a control, the same rows under readable access tags
change the answer. Then two worlds are built by hand that differ only in what alice may not read.
"""

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
import httpx2
import numpy as np
import pytest

from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.entries.search import EntryReader, EntrySearch
from composer.model import (
    GLOBAL_NAMESPACE,
    Visibility,
    derived_id,
    dm_namespace,
    entries_namespace,
    profile_namespace,
    project_namespace,
    session_namespace,
    team_namespace,
)
from composer.ports.models import Vectors
from composer.settings import Settings
from composer.visibility import Readable
from tests.support.api import bearer, key_of
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.stored_rows import NOW, WIDTH, Rows, Tag
from tests.support.web import served_at

QUESTIONS = (
    {"question": "budget launch", "limit": 50, "budget": 16_000},
    {"question": "budget launch", "limit": 50, "budget": 300},
    {"question": "budget launch", "limit": 3, "strategy": "recent"},
    {"question": "budget launch key", "limit": 50, "kinds": ["fact"], "budget": 16_000},
    {"question": "budget launch", "limit": 50, "budget": 16_000, "answer": True},
)


@dataclass(frozen=True)
class Scene:
    """A viewer with their key, the tags of rows that it may read, and of rows that it may not."""

    key: str
    visible: Sequence[Tag]
    hidden: Sequence[Tag]


@asynccontextmanager
async def _scene(harness: AppHarness, vendor: str | None) -> AsyncIterator[tuple[Scene, Rows, asyncpg.Connection]]:
    """Alice, or a tool of hers; she is in the project apollo and a team with bob, who is in others."""
    for name in ("alice", "bob"):
        await harness.say(name, "hello", dm="nexus")
    await harness.command("alice", "/nexus project create apollo", room="general")
    await harness.command("alice", "/nexus project create ares --isolated", room="general")
    await harness.command("bob", "/nexus project create zeus", room="other")
    raw = await asyncpg.connect(harness.app.settings.database_url)
    try:
        alice, bob = [await raw.fetchval("SELECT id FROM users WHERE name = $1", name) for name in ("alice", "bob")]
        apollo, ares, zeus = [
            await raw.fetchval("SELECT id FROM projects WHERE slug = $1", slug) for slug in ("apollo", "ares", "zeus")
        ]
        team, other = await _team(raw, [alice, bob]), await _team(raw, [bob])
        tenant, agent = harness.workspace().tenant_id, harness.app.directory.agents(harness.workspace().tenant_id)[0]
        private, shared, public = Visibility.PRIVATE, Visibility.SHARED, Visibility.PUBLIC
        visible = [
            Tag(entries_namespace(alice), private, alice),
            Tag(profile_namespace(alice), shared, alice),
            Tag(project_namespace(apollo), shared, bob),
            Tag(team_namespace(team), private, bob),
        ]
        hidden = [
            Tag(entries_namespace(bob), private, bob),
            Tag(entries_namespace(alice), private, bob),
            Tag(entries_namespace(alice), public, alice),
            Tag(entries_namespace(alice), private, None),
            Tag(profile_namespace(bob), shared, bob),
            Tag(project_namespace(zeus), shared, alice),
            Tag(project_namespace(ares), shared, alice),
            Tag(team_namespace(other), private, bob),
            Tag(team_namespace(other), shared, bob),
            Tag(GLOBAL_NAMESPACE, shared, bob),
            Tag(dm_namespace(alice, agent.id), private, alice),
            Tag(session_namespace(alice, agent.id, uuid.UUID(int=1)), private, alice),
            Tag("room:general", public, alice),
        ]
        if vendor is not None:
            hidden += [Tag(each.namespace, each.visibility, each.user, ("nexus", "other")) for each in visible]
        async with harness.app.database.transaction(tenant) as tx:
            place = await tx.conversations.get(
                await raw.fetchval("SELECT id FROM conversations WHERE kind = 'dm' LIMIT 1")
            )
        assert place is not None
        scene = Scene(await key_of(harness, "alice", vendor), visible, hidden)
        yield scene, Rows(raw, tenant, place, agent.id), raw
    finally:
        await raw.close()


async def _team(raw: asyncpg.Connection, members: Sequence[uuid.UUID]) -> uuid.UUID:
    """A team with these members."""
    tenant = await raw.fetchval("SELECT tenant_id FROM users LIMIT 1")
    team = derived_id("team", *map(str, members))
    made = "INSERT INTO teams (tenant_id, id, name, created_at) VALUES ($1, $2, $3, now())"
    await raw.execute(made, tenant, team, team.hex)
    joined = (
        "INSERT INTO team_members (tenant_id, team_id, user_id, role, joined_at) VALUES ($1, $2, $3, 'member', now())"
    )
    for user in members:
        await raw.execute(joined, tenant, team, user)
    return team


async def _insert(rows: Rows, raw: asyncpg.Connection, tag: Tag, n: int) -> None:
    """Insert rows whose memory, which is in the index, is in force."""
    await rows.insert(tag, n)
    await raw.execute("UPDATE memories SET superseded_by = NULL, valid_to = NULL")


async def _told(harness: AppHarness, key: str) -> list[bytes]:
    """What the questions are answered with, always at the same time."""
    harness.clock.set(NOW)
    app = web_app(harness.app, Metrics([]), {}, None)
    async with served_at(app) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        answers = [await client.post("/v1/query", json=each, headers=bearer(key)) for each in QUESTIONS]
    assert {answer.status_code for answer in answers} == {200}, answers[0].text
    return [answer.content for answer in answers]


async def vector_of_rows(search: EntrySearch, reader: EntryReader, text: str) -> Vectors:
    """A question's vector that is like those of the rows."""
    return np.ones(WIDTH, dtype=np.float32)


@pytest.mark.parametrize("vendor", [None, "claude"])
async def test_rows_that_may_not_be_read_change_no_byte(
    settings: Settings, vendor: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = settings.model_copy(update={"requests_per_minute": 10_000})
    async with open_harness(many) as harness, _scene(harness, vendor) as (scene, rows, raw):
        monkeypatch.setattr(Readable, "admits", lambda readable, row: True)
        monkeypatch.setattr(EntrySearch, "_vector", vector_of_rows)
        for n, tag in enumerate(scene.visible):
            await _insert(rows, raw, tag, 20 * n)
        before = await _told(harness, scene.key)
        assert [told[:200] for told in before if b"visible" not in told] == [], "these could show nothing hidden"
        for n, tag in enumerate(scene.hidden):
            await _insert(rows, raw, tag, 20 * (n % len(scene.visible)) + 1 + n // len(scene.visible))
        await _insert(rows, raw, scene.hidden[0], 199)  # the latest
        assert await _told(harness, scene.key) == before
        for n, tag in enumerate(scene.visible):  # the control: under other tags such rows change every answer
            await _insert(rows, raw, tag, 20 * n + 19)
        after = await _told(harness, scene.key)
        assert all(new != old for new, old in zip(after, before, strict=True))


async def test_two_worlds_that_differ_only_in_what_alice_may_not_read_tell_her_the_same(settings: Settings) -> None:
    """The second world holds another person's entries, a tool's own, and what was said in rooms and DMs."""
    told: list[list[bytes]] = []
    async with open_harness(settings.model_copy(update={"requests_per_minute": 10_000})) as harness:
        hub = Hub(harness)
        for name in ("alice", "bob"):
            await harness.say(name, "hello", dm="nexus")
        for number in range(4):
            await hub.write("alice", f"the launch number {number} has a budget of {number} euros", event=f"a{number}")
        own, tool = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
        told.append([*await _told(harness, own), *await _told(harness, tool)])
        for number in range(4):
            await hub.write("bob", f"the launch number {number} has a budget of {number} euros", event=f"b{number}")
        for place in ({"room": "general"}, {"dm": "nexus"}, {"session": "s1"}):
            await harness.say("alice", "@nexus the budget of the launch is zqsaid", **place)
            await harness.command("alice", "/nexus remember the budget of the launch is zqnoted", **place)
            await harness.command("bob", "/nexus fact set budget_of_launch zqfact --everywhere --yes", **place)
        told.append([*await _told(harness, own), *await _told(harness, tool)])
    assert told[0] == told[1]
