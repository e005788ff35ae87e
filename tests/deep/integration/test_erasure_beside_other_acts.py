"""An erasure beside something else that somebody does: both take effect, in one order or the other."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from composer.entries import entries
from composer.repositories.people import People
from composer.settings import Settings
from jobs.work import JobRun, purge
from tests.integration.test_compaction import rows
from tests.support.api import bearer, key_of
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.lock_waits import until_stopped


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update={"requests_per_minute": 10_000})) as harness:
        yield harness


# docs/architecture.md: a message that was acknowledged is stored, and forgetting is done. Whoever has had everything
# forgotten gets their name back with their next message. A chat over the API waited with the lock of an erasure for the
# row of its person, which an admin or another account of theirs that erased them had locked, and this for the chat: the
# database ended one of the two.
async def test_a_chat_gives_a_name_back_while_its_person_is_erased_again(
    harness: AppHarness, client: httpx2.AsyncClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore, erasing = People.restore_names, list[asyncio.Task[Any]]()

    async def restored(people: People, names: Any) -> None:
        if not erasing:
            forget = harness.command("bob", "/nexus erase user alice --yes", room="general")
            erasing.append(asyncio.create_task(forget))
            await until_stopped(settings, erasing[0])
        await restore(people, names)

    key = bearer(await key_of(harness, "alice"))
    for user in ("alice", "bob"):
        await harness.say(user, "hello", room="general")
    await rows(settings, "UPDATE users SET admin = true WHERE name = 'bob' RETURNING 1")
    await rows(settings, "UPDATE users SET name = 'someone' WHERE name = 'alice' RETURNING 1")
    monkeypatch.setattr(People, "restore_names", restored)
    answer = await client.post("/v1/chat", json={"content": "zqword"}, headers=key)
    assert answer.status_code == 200, answer.text
    assert (await erasing[0]).text.startswith("Forgotten for good")
    await harness.app.turns.settle()
    assert await rows(settings, "SELECT 1 FROM messages WHERE text LIKE '%zqword%'") == []
    await harness.say("alice", "hello", dm="nexus")
    assert await rows(settings, "SELECT name FROM users WHERE name = 'alice'")


# docs/api.md: a tool forgets what it wrote while it is shared with nobody. It was looked at before its person, who was
# sharing it, was waited for, and was erased for all of the team.
async def test_a_tool_forgets_nothing_that_is_being_shared(
    harness: AppHarness, client: httpx2.AsyncClient, settings: Settings
) -> None:
    hub = Hub(harness)

    alice, tool = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "alice", "cursor"))
    team = (await client.post("/v1/teams", json={"name": "Ops"}, headers=alice)).json()["id"]
    entry = (await hub.write("alice", "zqshared", "cursor")).entry.id
    async with hub.request("alice") as (tx, access):
        await entries.share(tx, access, entry, uuid.UUID(team), harness.clock.now())
        forgetting = asyncio.create_task(client.post(f"/v1/agent/entries/{entry}/forget", headers=tool))
        await until_stopped(settings, forgetting)
    assert (await forgetting).status_code in (403, 404)
    assert [row["text"] for row in await rows(settings, "SELECT text FROM memories")] == ["zqshared"]


# docs/architecture.md: whoever stores an answer shares the lock of an erasure, and locks the conversation after it.
# Deleting a project took them the other way round, so each waited for the other.
async def test_a_project_is_deleted_while_an_answer_is_stored_in_it(
    harness: AppHarness, client: httpx2.AsyncClient, settings: Settings
) -> None:
    await harness.command("alice", "/nexus project create apollo", room="general")
    await harness.command("alice", "/nexus project assign apollo --yes", room="general")
    told = await harness.command("alice", "/nexus fact set day Friday --project --yes", room="general")
    assert await rows(settings, "SELECT 1 FROM facts WHERE namespace LIKE 'project:%'"), told.text
    key = bearer(await key_of(harness, "alice"))
    [project] = (await client.get("/v1/projects", headers=key)).json()["items"]
    [[room]] = await rows(settings, "SELECT id FROM conversations WHERE name = 'general'")

    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:  # as an answer is stored
        path = f"/v1/projects/{project['id']}?confirm=true"
        deleting = asyncio.create_task(client.delete(path, headers=key))
        await until_stopped(settings, deleting)
        await tx.conversations.lock([room])
    answer = await deleting
    assert answer.status_code == 200, answer.text


# docs/architecture.md: what was acknowledged is not lost; an entry in the trash is restorable. The job that empties the
# trash listed what it erases before it waited for the restore of one of them.
async def test_an_entry_that_is_restored_while_the_trash_is_emptied_stays(
    harness: AppHarness, settings: Settings
) -> None:
    hub = Hub(harness)
    kept, gone = [(await hub.write("alice", f"zq{name}")).entry for name in ("kept", "gone")]
    async with hub.request("alice") as (tx, access):
        for each in (kept, gone):
            await entries.trash(tx, access, each.id, harness.clock.now())
    now = harness.clock.tick(31 * 24 * 3_600)

    async with hub.request("alice") as (tx, access):
        await entries.restore(tx, access, kept.id, now)
        emptying = asyncio.create_task(purge(JobRun(harness.app, now, lambda *_: None)))
        await until_stopped(settings, emptying)
    await emptying
    assert [row["text"] for row in await rows(settings, "SELECT text FROM memories")] == ["zqkept"]
