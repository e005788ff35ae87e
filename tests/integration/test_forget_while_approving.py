"""Text that is forgotten while somebody approves or amends what was made from it leaves no trace."""

import asyncio

import asyncpg
import pytest

from bot.script.places import incoming, place_of
from composer import visibility
from composer.memory.forget import Receipt, forget
from composer.memory.remember import amend_landmark
from composer.memory.review import approve
from composer.model import Trust
from composer.repositories.database import Transaction
from tests.support.harness import AppHarness
from tests.support.lock_waits import until_stopped

pytestmark = pytest.mark.integration

ROOM = {"room": "general"}
LEFT = """SELECT text FROM messages UNION ALL SELECT text FROM memories UNION ALL SELECT text FROM landmarks
          UNION ALL SELECT text FROM quarantine"""


async def approve_all(tx: Transaction, harness: AppHarness, access: visibility.AccessContext) -> None:
    reviewable = visibility.reviewable(access, room_admin=True, pooled=True)
    items = await tx.quarantine.find_pending(reviewable)
    assert items
    for item in items:
        await approve(tx, item, harness.clock.now())


async def amend(tx: Transaction, harness: AppHarness, access: visibility.AccessContext) -> None:
    now = harness.clock.now()
    [before] = await tx.landmarks.find(visibility.readable(access, []), now)
    text = "paint the vault green, on Friday"
    await amend_landmark(tx, before, text, "alice", access.asker, "event", now)


@pytest.mark.parametrize(("trust", "act"), [(Trust.GUEST, approve_all), (Trust.MEMBER, amend)])
async def test_what_is_approved_or_amended_while_its_source_is_forgotten_is_gone(
    harness: AppHarness, trust: Trust, act: object
) -> None:
    here, database = harness.workspace(), harness.app.database
    await harness.say("alice", "good morning all", **ROOM)
    place = place_of("general", None, None)
    said = "We decided to paint the vault green."
    await harness.app.receive(here, [incoming(here, place, "bob", said, harness.clock.tick(), id="said", trust=trust)])
    await harness.app.indexer.catch_up(here.tenant_id)
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        row = await connection.fetchrow("SELECT id, conversation_id AS room FROM messages WHERE external_id = 'said'")
        alice = await connection.fetchval("SELECT id FROM users WHERE name = 'alice'")
        assert row is not None

        async def forgetting() -> Receipt:
            async with database.transaction(here.tenant_id, "alone") as tx:
                return await forget(tx, [row["id"]], [], harness.clock.now())

        async with database.transaction(here.tenant_id, "alone" if act is approve_all else "share") as tx:
            access = await tx.conversations.access_context(row["room"], alice, Trust.MEMBER)
            assert access is not None
            await (approve_all if act is approve_all else amend)(tx, harness, access)
            task = asyncio.create_task(forgetting())
            await until_stopped(harness.app.settings, task)
        assert (await task).counts["message"] == 1
        assert not [text for (text,) in await connection.fetch(LEFT) if "vault" in text]
    finally:
        await connection.close()
