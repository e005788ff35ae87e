"""Attacks on repairs that had not been attacked: what waits for what, what is deleted while it is waited for, and what
dies between two steps."""

import asyncio
import uuid
from typing import Any

import httpx2
import pytest

from bot.script.places import incoming, place_of
from composer.settings import Settings
from tests.integration.test_compaction import rows
from tests.integration.test_late_commands import adopted, done_late, interrupt
from tests.support.api import bearer, key_of
from tests.support.entries import Hub
from tests.support.harness import AppHarness
from tests.support.lock_waits import until_stopped
from tests.support.waiting import TIMEOUT_SECONDS, until

pytestmark = pytest.mark.integration

BOARD: dict[str, Any] = {"room": "board"}
MORE_THAN_THE_POOL = 16  # connections of a process to the database


# README: an outage of one part stops nobody else; DESIGN 8: a message that was acknowledged is stored. Whoever waited
# for a long erasure held a connection meanwhile, so that as many requests as there are connections stopped the process:
# no message was stored, nothing was read, of other organisations too.
@pytest.mark.parametrize("once", [False, True], ids=["others", "the same again"])
async def test_who_waits_for_an_erasure_leaves_connections_to_others(
    harness: AppHarness, client: httpx2.AsyncClient, settings: Settings, monkeypatch: pytest.MonkeyPatch, once: bool
) -> None:
    monkeypatch.setattr("composer.stores.lock_waits.PATIENCE_SECONDS", 0)
    key = bearer(await key_of(harness, "alice"))

    async def write(number: int) -> httpx2.Response:
        body, name = {"content": f"zqnote {0 if once else number}"}, {"Idempotency-Key": "0" if once else str(number)}
        return await client.post("/v1/entries", json=body, headers=key | name)

    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.summaries.lock()  # as an erasure does that takes long
        writes = [asyncio.create_task(write(number)) for number in range(MORE_THAN_THE_POOL)]
        await until_stopped(settings, asyncio.gather(*writes))
        async with asyncio.timeout(TIMEOUT_SECONDS):
            for at in (harness.workspace(), harness.workspace("other")):
                hello = incoming(at, place_of("general", None, None), "bob", "hello", harness.clock.tick(), id="hello")
                assert (await harness.app.receive(at, [hello])).new
            assert (await client.get("/v1/entries", headers=key)).status_code == 200
    answers = [await write for write in writes]
    stored = [answer for answer in answers if answer.status_code == 201]
    assert {answer.status_code for answer in answers} <= {201, 503}
    assert len(stored) >= 3
    assert len(await rows(settings, "SELECT 1 FROM memories")) == (1 if once else len(stored))
    assert all(answer.headers.get("Retry-After") for answer in answers if answer not in stored)


# The same: answers that are to be stored wait without a connection, and none is thrown away.
async def test_answers_that_wait_for_an_erasure_leave_connections_to_others(
    harness: AppHarness, settings: Settings
) -> None:
    at = harness.workspace()
    for number in range(MORE_THAN_THE_POOL):
        await harness.say("alice", "hello", room=f"room{number}")
    async with harness.app.database.transaction(at.tenant_id) as tx:
        await tx.summaries.lock()
        for number in range(MORE_THAN_THE_POOL):
            asked = incoming(
                at,
                place_of(f"room{number}", None, None),
                "alice",
                "@nexus hello",
                harness.clock.tick(),
                id=f"q{number}",
            )
            await asyncio.wait_for(harness.app.receive(at, [asked]), TIMEOUT_SECONDS)
        await until(lambda: len(harness.delivery.chunks) >= 8)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            async with harness.app.database.transaction(at.tenant_id, snapshot=True) as other:
                assert await other.people.names([uuid.uuid4()]) == {}
    await harness.app.turns.settle()
    assert len(harness.delivery.replies) == MORE_THAN_THE_POOL
    assert len(harness.delivery.started) == MORE_THAN_THE_POOL  # each was asked once
    assert not harness.delivery.delays


# docs/architecture.md: an erasure that is done late takes what there was when it was asked for. An entry counted as it
# was made first, so that what had been written with its key since then went with it.
async def test_what_is_written_with_a_key_stays_where_all_from_before_is_forgotten_late(
    harness: AppHarness, settings: Settings
) -> None:
    hub = Hub(harness)
    await harness.say("alice", "hello", **BOARD)
    await hub.write("alice", "zqold", "cursor", key="replaced")
    await hub.write("alice", "zqsame", "cursor", key="again")
    await hub.write("alice", "zqpart", "cursor", key="in part", metadata={"from": "before"})
    changed = (await hub.write("alice", "zqchanged", "cursor")).entry
    await interrupt(harness, "alice", "forget everything --yes", **BOARD)
    harness.clock.tick(60)
    await hub.write("alice", "zqnew", "cursor", key="replaced")
    await hub.write("alice", "zqsame", "cursor", key="again")
    await hub.write("alice", "zqother part", "cursor", key="in part")
    await hub.change("alice", changed.id, title="zqtitle")
    [given] = await adopted(harness, settings)
    assert (await done_late(harness, given)).startswith("Forgotten for good")
    assert await texts(settings) == {"zqnew", "zqsame"}


# The same where an admin takes back what somebody wrote.
async def test_what_is_written_with_a_key_stays_where_all_from_before_is_taken_back_late(
    harness: AppHarness, settings: Settings
) -> None:
    hub = Hub(harness)
    await harness.say("alice", "hello", **BOARD)
    await harness.say("bob", "hello", **BOARD)
    for text in ("project create apollo", "project assign apollo --yes", "project member add apollo bob write"):
        await harness.command("alice", f"/nexus {text}", **BOARD)
    [[apollo]] = await rows(settings, "SELECT id FROM projects")
    await hub.write("bob", "zqold", project=apollo, key="replaced")
    await hub.write("bob", "zqstays old", project=apollo)
    await interrupt(harness, "alice", "memory undo bob --yes", **BOARD)
    harness.clock.tick(60)
    await hub.write("bob", "zqnew", project=apollo, key="replaced")
    [given] = await adopted(harness, settings)
    assert (await done_late(harness, given)).startswith("Taken back: 1 memory")
    assert await texts(settings) == {"zqnew"}


async def texts(settings: Settings) -> set[str]:
    return {row["text"] for row in await rows(settings, "SELECT text FROM memories")}
