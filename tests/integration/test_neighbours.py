"""Recall brings what was said beside a hit: in the same talk, at that time, and for this viewer."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

import pytest

from composer.memory.index import index_next
from composer.repositories.recall import Candidate, episode_id_of
from composer.settings import Settings
from composer.visibility import readable_conversation
from composer.workspace import message_id, room_id
from tests.support.harness import START
from tests.support.receiver import HERE, TENANT, Receiver, open_receiver, said

pytestmark = pytest.mark.integration

LATER = START + timedelta(days=1)


@pytest.fixture
async def receiver(settings: Settings) -> AsyncIterator[Receiver]:
    async with open_receiver(settings) as receiver:
        yield receiver


async def talk(receiver: Receiver) -> None:
    """A question, its answer, a remark, and something two hours on."""
    await receiver(
        said("m0", "good morning", minute=0),
        said("m1", "which day suits the launch", minute=1),
        said("m2", "friday", user="bob", minute=2),
        said("m3", "fine with me", minute=3),
        said("m4", "lunch", minute=123),
        answer=False,
    )
    while await index_next(receiver.database, TENANT):
        pass


async def found(
    receiver: Receiver, term: str, *, now: datetime = LATER, leave_out: Sequence[str] = ()
) -> dict[str, Candidate]:
    """What a search for one stem brings in the room, by the ids of the messages."""
    readable = readable_conversation(await receiver.access_context())
    away = [episode_id_of(message_id(room_id(HERE, "general"), id)) for id in leave_out]
    async with receiver.database.transaction(TENANT, snapshot=True) as tx:
        rows = await tx.recall.search(readable, None, [term], 60, away, now)
    return {row.item.messages[0]: row for row in rows}


async def test_what_was_said_just_before_and_after_comes_along(receiver: Receiver) -> None:
    await talk(receiver)
    rows = await found(receiver, "launch")
    assert set(rows) == {"m0", "m1", "m2"}
    assert rows["m1"].before == rows["m0"].item.id
    assert rows["m1"].after == rows["m2"].item.id
    assert rows["m2"].words == 0
    assert (rows["m2"].before, rows["m2"].after) == (None, None), "only the best are looked beside"


async def test_what_was_said_hours_before_is_not_beside(receiver: Receiver) -> None:
    await talk(receiver)
    assert set(await found(receiver, "lunch")) == {"m4"}


async def test_asked_of_an_earlier_time_what_came_after_is_not_there(receiver: Receiver) -> None:
    await talk(receiver)
    rows = await found(receiver, "launch", now=START + timedelta(seconds=90))
    assert set(rows) == {"m0", "m1"}
    assert rows["m1"].after is None


async def test_what_the_prompt_shows_already_does_not_come_along(receiver: Receiver) -> None:
    await talk(receiver)
    assert set(await found(receiver, "launch", leave_out=["m2"])) == {"m0", "m1"}


async def test_what_was_forgotten_stands_beside_nothing(receiver: Receiver) -> None:
    await talk(receiver)
    await receiver.forget("m2")
    rows = await found(receiver, "launch")
    assert set(rows) == {"m0", "m1", "m3"}
    assert rows["m1"].after == rows["m3"].item.id


async def test_what_may_not_be_read_stands_between_no_two_others(receiver: Receiver) -> None:
    """As if it were absent: the very rows that come when it was forgotten."""
    await talk(receiver)
    hidden = message_id(room_id(HERE, "general"), "m2")
    async with receiver.database._pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{TENANT}'")
        await connection.execute("UPDATE messages SET visibility = 'private' WHERE id = $1", hidden)
        await connection.execute("UPDATE recall_index SET visibility = 'private' WHERE id = $1", episode_id_of(hidden))
    unseen = await found(receiver, "launch")
    await receiver.forget("m2")
    assert unseen == await found(receiver, "launch")
    assert set(unseen) == {"m0", "m1", "m3"}
