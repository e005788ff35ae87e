"""Rows that others own change no read of what is one's own: not by the statements alone, and not by the check in code
alone."""

from collections.abc import Sequence
from typing import Any

import pytest

from composer.ports.database import Row, Statements
from composer.repositories.database import Transaction
from composer.repositories.holdings import Holdings
from composer.repositories.reach import Reach
from composer.visibility import Owned, owned_by_user
from composer.workspace import user_id
from tests.support.harness import AppHarness

pytestmark = pytest.mark.integration

ROOM, DM, SESSION = {"room": "general"}, {"dm": "nexus"}, {"session": "s1"}
LIMIT = 4  # more than alice has


async def store(harness: AppHarness, user: str) -> None:
    """One of everything that a person can own, but summaries and what waits for approval."""
    for place in (ROOM, DM, SESSION):
        await harness.say(user, f"{user} says good morning", **place)
    await harness.command(user, f"/nexus remember {user} keeps bees", **ROOM)
    await harness.command(user, f"/nexus fact set {user} {user}", **ROOM)
    await harness.command(user, f"/nexus landmark add {user} decides", **ROOM)
    await harness.ask(user, f"@nexus who is {user}?", **ROOM)


def owned(harness: AppHarness) -> Owned:
    at = harness.workspace()
    return owned_by_user(at.tenant_id, user_id(at, "alice"), ())


async def everything(harness: AppHarness, tx: Transaction, holdings: Holdings, reach: Reach) -> dict[str, list[Any]]:
    """What every read of alice's own rows returns, where each row is checked again: by id and owner."""
    own = owned(harness)
    found: dict[str, list[Any]] = {
        "turns": [(row["id"], row["user_id"]) for row in await holdings.turns(own)],
        "messages": [(row["id"], row["user_id"]) async for page in holdings.messages(own) for row in page],
        "reach": await reach.find(own, "", LIMIT, harness.clock.now()),
    }
    for name in ("memories", "facts", "landmarks", "pending", "summaries"):
        found[name] = [(row["id"], row["user_id"]) for row in await getattr(holdings, name)(own)]
    return found


class Unfiltered:
    """Statements as they would be without their clause on the owner: they get everybody's ids."""

    def __init__(self, statements: Statements, users: Sequence[Any]) -> None:
        self._statements, self._users = statements, list(users)

    async def fetch(self, query: str, /, **values: Any) -> Sequence[Row]:
        return await self._statements.fetch(query, **values | {"user_ids": self._users})

    async def fetch_value(self, query: str, /, **values: Any) -> Any:
        return await self._statements.fetch_value(query, **values | {"user_ids": self._users})


async def test_what_others_own_changes_no_read_of_ones_own(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Owned, "admits", lambda owned, owner: True)
    await store(harness, "alice")
    shown = []
    for other in (None, "bob"):
        if other is not None:
            await store(harness, other)
        async with harness.app.database.transaction(harness.workspace().tenant_id, snapshot=True) as tx:
            shown.append(await everything(harness, tx, tx.holdings, tx.reach))
    before, after = shown
    assert all(before[name] for name in ("turns", "messages", "reach", "memories", "facts", "landmarks"))
    assert after == before


async def test_without_the_owner_in_sql_the_check_in_code_shows_only_ones_own(harness: AppHarness) -> None:
    for user in ("alice", "bob"):
        await store(harness, user)
    at = harness.workspace()
    users = [user_id(at, name) for name in ("alice", "bob")]
    async with harness.app.database.transaction(at.tenant_id, snapshot=True) as tx:
        everyones: Any = Unfiltered(tx.holdings._sql, users)
        found = await everything(harness, tx, Holdings(everyones), Reach(everyones, tx.audit))
        before = await everything(harness, tx, tx.holdings, tx.reach)
        loaded = await everyones.fetch("holdings_memories")
    assert {row["user_id"] for row in loaded} == set(users), "the statement returns what others own"
    assert all("bob" not in item.text for item in found.pop("reach"))
    del before["reach"]  # of which the latest few are read, and then checked
    assert found == before
