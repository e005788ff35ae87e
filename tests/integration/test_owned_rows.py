"""Rows that others own change no read of what is one's own: not by the statements alone, and not by the check in code
alone."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import asyncpg
import pytest

from composer.model import Visibility, room_id, user_id
from composer.ports.database import Row, Statements
from composer.repositories.own_data import OwnData, OwnFilter
from composer.repositories.reminders import Reminders
from composer.visibility import Owned, owned_by_user
from tests.support.harness import AppHarness
from tests.support.stored_rows import NOW, Rows, Tag

ROOM = {"room": "general"}
LIMIT = 100  # more than there are
KINDS = ("memories", "facts", "landmarks", "pending", "summaries", "reminders")


@pytest.fixture
async def rows(harness: AppHarness) -> AsyncIterator[Rows]:
    """A room with alice and bob, and what stores rows of it."""
    for user in ("alice", "bob"):
        await harness.say(user, "good morning", **ROOM)
    at = harness.workspace()
    async with harness.app.database.transaction(at.tenant_id) as tx:
        conversation = await tx.conversations.get(room_id(at, "general"))
        assert conversation is not None
    raw = await asyncpg.connect(harness.app.settings.database_url)
    yield Rows(raw, at.tenant_id, conversation, harness.app.directory.agents(at.tenant_id)[0].id)
    await raw.close()


async def store(harness: AppHarness, rows: Rows, user: str, minute: int) -> None:
    """One of everything that a person can own, public and private, a fact that holds now, and an answer."""
    namespace = f"room:{room_id(harness.workspace(), 'general')}"
    for n, visibility in enumerate((Visibility.PUBLIC, Visibility.PRIVATE)):
        tag = Tag(namespace, visibility, user_id(harness.workspace(), user), mark=f"{user} {visibility}")
        await rows.insert(tag, minute + n)
    await harness.command(user, f"/nexus fact set {user}{minute} bees", **ROOM)
    await harness.ask(user, "@nexus who keeps bees?", **ROOM)
    await harness.command(user, "/nexus remind here in 20 minutes bees", **ROOM)


async def read(harness: AppHarness, own_data: OwnData, reminders: Reminders) -> dict[str, list[Any]]:
    """What every read of alice's own rows returns: the ids, where each row is checked again."""
    at = harness.workspace()
    own = owned_by_user(at.tenant_id, user_id(at, "alice"), ())
    found: dict[str, list[Any]] = {
        "messages": [row["id"] async for page in own_data.messages(own) for row in page],
        "open reminders": [reminder.id for reminder in await reminders.open(own)],
        "reach": [item.id for item in await own_data.memory(own, OwnFilter(), LIMIT, NOW)],
        "by id": [item.id for item in await own_data.of_id(own, "", LIMIT, NOW)],
    }
    found["turns"] = [row["id"] for row in await own_data.turns(own)]
    items = await own_data.items(own, KINDS)
    return found | {kind: [item["id"] for item in items[kind]] for kind in KINDS}


class Unfiltered:
    """Statements as they would be without their clause on the owner: they get everybody's ids."""

    def __init__(self, statements: Statements, users: Sequence[Any]) -> None:
        self._statements, self._users = statements, list(users)

    async def fetch(self, query: str, /, **values: Any) -> Sequence[Row]:
        return await self._statements.fetch(query, **values | {"user_ids": self._users})

    async def fetch_as(self, kind: Any, query: str, /, **values: Any) -> Any:
        return await self._statements.fetch_as(kind, query, **values | {"user_ids": self._users})

    async def fetch_value(self, query: str, /, **values: Any) -> Any:
        return await self._statements.fetch_value(query, **values | {"user_ids": self._users})


async def test_what_others_own_changes_no_read_of_ones_own(
    harness: AppHarness, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Owned, "admits", lambda owned, owner: True)
    shown = []
    for minute, user in enumerate(("alice", "bob", "alice")):  # the last time is the control
        await store(harness, rows, user, 10 * minute + 1)
        async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
            shown.append(await read(harness, tx.own_data, tx.reminders))
    before, after, control = shown
    assert all(before.values())
    assert after == before
    assert all(len(control[name]) > len(ids) for name, ids in before.items())


async def test_without_the_owner_in_sql_the_check_in_code_shows_only_ones_own(harness: AppHarness, rows: Rows) -> None:
    for minute, user in enumerate(("alice", "bob")):
        await store(harness, rows, user, 10 * minute + 1)
    at = harness.workspace()
    users = [user_id(at, name) for name in ("alice", "bob")]
    async with harness.app.database.transaction(at.tenant_id, "read") as tx:
        everyones: Any = Unfiltered(tx.own_data._sql, users)
        assert {row["user_id"] for row in await everyones.fetch("own_items", kinds=["memories"])} == set(users)
        found = await read(harness, OwnData(everyones), Reminders(everyones))
        assert found == await read(harness, tx.own_data, tx.reminders)
