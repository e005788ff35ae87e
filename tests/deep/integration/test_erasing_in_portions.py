"""A long erasure goes in portions: others write between two of them, its receipt lists everything, and one that a crash
interrupts goes on when it is asked for again."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from bot.script.places import incoming, place_of
from composer.ingest.rooms import erase_room
from composer.memory import portions
from composer.ports.database import Mode
from composer.repositories.erasure import receipt_digest
from composer.settings import Settings
from composer.stores.database.postgres import PostgresDatabase
from tests.integration.test_compaction import rows
from tests.support.harness import AppHarness

SECRET = "zqorchid"
COMMANDS = ("erase room --yes", "forget here --yes", "forget everything --yes", "forget vault --yes")
LEFT = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"


class _KilledError(BaseException):
    """The process was killed."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "PORTION", 2)


@pytest.fixture
async def told(harness: AppHarness, settings: Settings) -> AppHarness:
    """A room of which an admin has told a lot, was answered from it, and where somebody else says other things."""
    for number in range(7):
        await harness.say("alice", f"I prefer {SECRET}{number} for the vault", room="general")
    await harness.ask("alice", "@nexus what do I prefer for the vault?", room="general")
    await harness.say("bob", "hello", room="board")
    await rows(settings, "UPDATE users SET admin = true WHERE name = 'alice' RETURNING 1")
    return harness


async def tables_with_secret(settings: Settings) -> set[str]:
    connection = await asyncpg.connect(settings.database_url)
    try:
        found = f"SELECT EXISTS (SELECT FROM {{}} AS t WHERE t::text LIKE '%{SECRET}%')"
        return {name for (name,) in await connection.fetch(LEFT) if await connection.fetchval(found.format(name))}
    finally:
        await connection.close()


async def said(settings: Settings) -> set[uuid.UUID]:
    found = f"SELECT id FROM messages WHERE text LIKE '%{SECRET}%' AND agent_id IS NULL"
    return {row["id"] for row in await rows(settings, found)}


async def listed(settings: Settings, ids: set[uuid.UUID]) -> set[uuid.UUID]:
    """Which of these are in any receipt."""
    receipts = await rows(settings, "SELECT key, digests FROM receipts")
    return {id for id in ids if any(receipt_digest(row["key"], id) in row["digests"] for row in receipts)}


@pytest.mark.parametrize(
    "command", ["erase room --yes", "forget here --yes", "forget everything --yes", "forget vault --yes"]
)
async def test_others_write_between_two_portions_and_the_receipt_lists_everything(
    told: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    transaction, between, ids = PostgresDatabase.transaction, list[int](), await said(settings)
    at, busy = told.workspace(), list[bool]()

    @asynccontextmanager
    async def begun(database: PostgresDatabase, tenant: uuid.UUID, mode: Mode = "share") -> AsyncIterator[Any]:
        async with transaction(database, tenant, mode) as tx:
            yield tx
        if mode == "alone" and not busy:
            busy.append(True)
            hello = incoming(
                at, place_of("board", None, None), "bob", "hello", told.clock.tick(), id=f"b{len(between)}"
            )
            between.append(len((await told.app.receive(at, [hello])).new))
            busy.clear()

    monkeypatch.setattr(PostgresDatabase, "transaction", begun)
    answer = (await told.command("alice", f"/nexus {command}", room="general")).text
    assert between[:4] == [1, 1, 1, 1], "stored at once, while the erasure goes on"
    assert await tables_with_secret(settings) == set()
    assert len(ids) >= 7
    assert await listed(settings, ids) == ids
    [receipt] = await rows(settings, "SELECT id, counts FROM receipts")
    assert receipt["id"] in answer
    assert "8 messages" in answer


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("after", range(1, 6))
async def test_one_that_is_killed_between_two_portions_is_whole_when_it_is_done_again(
    told: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, command: str, after: int
) -> None:
    transaction, left, ids = PostgresDatabase.transaction, [after], await said(settings)

    @asynccontextmanager
    async def begun(database: PostgresDatabase, tenant: uuid.UUID, mode: Mode = "share") -> AsyncIterator[Any]:
        if mode == "alone":
            left[0] -= 1
            if left[0] < 0:
                raise _KilledError
        async with transaction(database, tenant, mode) as tx:
            yield tx

    with monkeypatch.context() as patch:
        patch.setattr(PostgresDatabase, "transaction", begun)
        with pytest.raises(_KilledError):
            await told.command("alice", f"/nexus {command}", room="general")
    await told.app.indexer.catch_up(told.workspace().tenant_id)
    assert "Forgotten for good" in (await told.command("alice", f"/nexus {command}", room="general")).text
    assert await tables_with_secret(settings) == set()
    assert await listed(settings, ids) == ids


async def test_what_is_said_and_answered_between_two_portions_goes_too(
    told: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction, asked = PostgresDatabase.transaction, list[bool]()

    @asynccontextmanager
    async def begun(database: PostgresDatabase, tenant: uuid.UUID, mode: Mode = "share") -> AsyncIterator[Any]:
        async with transaction(database, tenant, mode) as tx:
            yield tx
        if mode == "alone" and not asked:
            asked.append(True)
            await told.say("carol", "@nexus what does alice prefer for the vault?", room="general")

    monkeypatch.setattr(PostgresDatabase, "transaction", begun)
    await told.command("alice", "/nexus forget everything --yes", room="general")
    assert asked
    assert await tables_with_secret(settings) == set()


async def test_a_room_that_its_platform_deleted_is_erased_in_portions(told: AppHarness, settings: Settings) -> None:
    receipt = await erase_room(told.app.database, told.workspace(), "general", None, told.clock.tick())
    assert receipt is not None
    assert receipt.counts["message"] == 8
    assert await tables_with_secret(settings) == set()
