"""Recall brings what was said beside a hit: in the same talk, at that time, and for this viewer."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

import pytest

from composer.layers.semantic import episode_id_of
from composer.memory.index import index_next
from composer.ports import Candidate
from composer.settings import Settings
from composer.visibility import conversation_namespace
from composer.workspace import message_id, room_id
from tests.conftest import START
from tests.integration.receiving import HERE, TENANT, Receiving, receiving_on, said

pytestmark = pytest.mark.integration

LATER = START + timedelta(days=1)


@pytest.fixture
async def taking(settings: Settings) -> AsyncIterator[Receiving]:
    async with receiving_on(settings) as receiving:
        yield receiving


async def talk(taking: Receiving) -> None:
    """A question, its answer, a remark, and something two hours on."""
    await taking(
        said("m0", "good morning", minute=0),
        said("m1", "which day suits the launch", minute=1),
        said("m2", "friday", user="bob", minute=2),
        said("m3", "fine with me", minute=3),
        said("m4", "lunch", minute=123),
        answer=False,
    )
    while await index_next(taking.database, TENANT):
        pass


async def found(
    taking: Receiving, term: str, *, now: datetime = LATER, leave_out: Sequence[str] = ()
) -> dict[str, Candidate]:
    """What a search for one stem brings in the room, by the ids of the messages."""
    readable = conversation_namespace(await taking.access_context())
    away = [episode_id_of(message_id(room_id(HERE, "general"), id)) for id in leave_out]
    async with taking.database.transaction(TENANT, snapshot=True) as tx:
        rows = await tx.recall.search(readable, None, [term], 60, away, now)
    return {row.item.messages[0]: row for row in rows}


async def test_what_was_said_just_before_and_after_comes_along(taking: Receiving) -> None:
    await talk(taking)
    rows = await found(taking, "launch")
    assert set(rows) == {"m0", "m1", "m2"}
    assert rows["m1"].before == rows["m0"].item.id
    assert rows["m1"].after == rows["m2"].item.id
    assert rows["m2"].words == 0
    assert (rows["m2"].before, rows["m2"].after) == (None, None), "only the best are looked beside"


async def test_what_was_said_hours_before_is_not_beside(taking: Receiving) -> None:
    await talk(taking)
    assert set(await found(taking, "lunch")) == {"m4"}


async def test_asked_of_an_earlier_time_what_came_after_is_not_there(taking: Receiving) -> None:
    await talk(taking)
    rows = await found(taking, "launch", now=START + timedelta(seconds=90))
    assert set(rows) == {"m0", "m1"}
    assert rows["m1"].after is None


async def test_what_the_prompt_shows_already_does_not_come_along(taking: Receiving) -> None:
    await talk(taking)
    assert set(await found(taking, "launch", leave_out=["m2"])) == {"m0", "m1"}


async def test_what_was_forgotten_stands_beside_nothing(taking: Receiving) -> None:
    await talk(taking)
    await taking.forget("m2")
    rows = await found(taking, "launch")
    assert set(rows) == {"m0", "m1", "m3"}
    assert rows["m1"].after == rows["m3"].item.id


async def test_what_may_not_be_read_stands_between_no_two_others(taking: Receiving) -> None:
    """As if it were absent: the very rows that come when it was forgotten."""
    await talk(taking)
    hidden = message_id(room_id(HERE, "general"), "m2")
    async with taking.database._pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{TENANT}'")
        await connection.execute("UPDATE messages SET visibility = 'private' WHERE id = $1", hidden)
        await connection.execute("UPDATE recall_index SET visibility = 'private' WHERE id = $1", episode_id_of(hidden))
    unseen = await found(taking, "launch")
    await taking.forget("m2")
    assert unseen == await found(taking, "launch")
    assert set(unseen) == {"m0", "m1", "m3"}
