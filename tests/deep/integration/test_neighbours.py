"""Recall adds the messages next to a hit: of the same discussion, close in time, and readable to the viewer."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

import pytest

from bot.script.places import place_of
from composer.memory.index import index_next
from composer.model import Incoming, message_id, room_id
from composer.repositories.recall import Candidate, episode_id_of
from composer.settings import Settings
from composer.visibility import readable_conversation
from tests.support.harness import START
from tests.support.receiver import HERE, TENANT, Receiver, open_receiver, said

LATER = START + timedelta(days=1)


@pytest.fixture
async def receiver(settings: Settings) -> AsyncIterator[Receiver]:
    async with open_receiver(settings) as receiver:
        yield receiver


async def store_discussion(receiver: Receiver) -> None:
    """Store a question, its answer, a remark, and a message two hours later."""
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


async def search_room(
    receiver: Receiver, term: str, *, now: datetime = LATER, leave_out: Sequence[str] = ()
) -> dict[str, Candidate]:
    """What a search for one stem finds in the room, by message id."""
    readable = readable_conversation(await receiver.access_context())
    away = [episode_id_of(message_id(room_id(HERE, "general"), id)) for id in leave_out]
    async with receiver.database.transaction(TENANT, "read") as tx:
        found = await tx.recall.search(readable, None, [term], 60, away, now)
    return {row.item.messages[0]: row for row in found.candidates}


async def test_a_hit_brings_the_messages_just_before_and_after_it(receiver: Receiver) -> None:
    await store_discussion(receiver)
    rows = await search_room(receiver, "launch")
    assert set(rows) == {"m0", "m1", "m2"}
    assert rows["m1"].before == rows["m0"].item.id
    assert rows["m1"].after == rows["m2"].item.id
    assert rows["m2"].words == 0
    assert (rows["m2"].before, rows["m2"].after) == (None, None), "only the best hits get neighbours"


async def test_a_message_hours_earlier_is_no_neighbour(receiver: Receiver) -> None:
    await store_discussion(receiver)
    assert set(await search_room(receiver, "lunch")) == {"m4"}


async def test_a_question_about_an_earlier_time_gets_no_later_neighbour(receiver: Receiver) -> None:
    await store_discussion(receiver)
    rows = await search_room(receiver, "launch", now=START + timedelta(seconds=90))
    assert set(rows) == {"m0", "m1"}
    assert rows["m1"].after is None


async def test_a_message_already_in_the_prompt_is_no_neighbour(receiver: Receiver) -> None:
    await store_discussion(receiver)
    assert set(await search_room(receiver, "launch", leave_out=["m2"])) == {"m0", "m1"}


async def test_a_forgotten_message_is_no_neighbour(receiver: Receiver) -> None:
    await store_discussion(receiver)
    await receiver.forget("m2")
    rows = await search_room(receiver, "launch")
    assert set(rows) == {"m0", "m1", "m3"}
    assert rows["m1"].after == rows["m3"].item.id


async def test_an_unreadable_message_does_not_separate_its_neighbours(receiver: Receiver) -> None:
    """The rows are the same as after the message was forgotten."""
    await store_discussion(receiver)
    hidden = message_id(room_id(HERE, "general"), "m2")
    async with receiver.database._pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{TENANT}'")
        await connection.execute("UPDATE messages SET visibility = 'private' WHERE id = $1", hidden)
        await connection.execute("UPDATE recall_index SET visibility = 'private' WHERE id = $1", episode_id_of(hidden))
    unseen = await search_room(receiver, "launch")
    await receiver.forget("m2")
    assert unseen == await search_room(receiver, "launch")
    assert set(unseen) == {"m0", "m1", "m3"}


async def store_busy_room(receiver: Receiver, *answers: Incoming) -> None:
    """Store a question, five messages of other discussions, and answers."""
    noise = [said(f"n{n}", f"something else {n}", user="carol", minute=2 + n) for n in range(5)]
    await receiver(said("m1", "which day suits the launch", minute=1), *noise, *answers, answer=False)
    while await index_next(receiver.database, TENANT):
        pass


@pytest.mark.parametrize(
    "answer",
    [
        said("reply", "alice: friday", user="bob", minute=9),
        said("reply", "Alice, friday", user="bob", minute=9),
        said("reply", "@alice friday", user="bob", minute=9),
        said("reply", "friday I think", user="bob", minute=9, mentions=("alice",)),
        said("reply", "friday", user="bob", minute=9, reply_to="m1"),
    ],
)
async def test_a_hit_brings_the_messages_that_answer_it_or_its_author(receiver: Receiver, answer: Incoming) -> None:
    await store_busy_room(receiver, answer)
    rows = await search_room(receiver, "launch")
    assert set(rows) == {"m1", "n0", "reply"}
    assert rows["reply"].reply_to == (rows["m1"].item.id,)
    assert rows["n0"].reply_to == ()


@pytest.mark.parametrize(
    "other",
    [
        said("other", "aliceson: friday", user="bob", minute=9),
        said("other", "I told alice: friday", user="bob", minute=9),
        said("other", "alice: friday", user="bob", minute=32),
        said("other", "alice: friday", user="bob", minute=0),
        said("other", "alice: friday", user="bob", minute=9, place=place_of("elsewhere", None, None)),
    ],
)
async def test_what_is_for_somebody_else_or_far_away_is_no_answer(receiver: Receiver, other: Incoming) -> None:
    await store_busy_room(receiver, said("m0", "good morning", minute=0.5), other)
    assert "other" not in await search_room(receiver, "launch")


async def test_only_the_first_three_answers_are_taken(receiver: Receiver) -> None:
    await store_busy_room(receiver, *(said(f"r{n}", f"alice: day {n}", user="bob", minute=9 + n) for n in range(5)))
    assert set(await search_room(receiver, "launch")) == {"m1", "n0", "r0", "r1", "r2"}


@pytest.mark.parametrize("change", ["visibility = 'private'", "namespace = 'room:another'"])
async def test_an_unreadable_answer_is_as_good_as_forgotten(receiver: Receiver, change: str) -> None:
    await store_busy_room(receiver, *(said(f"r{n}", f"alice: day {n}", user="bob", minute=9 + n) for n in range(5)))
    hidden = message_id(room_id(HERE, "general"), "r1")
    async with receiver.database._pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{TENANT}'")
        await connection.execute(f"UPDATE messages SET {change} WHERE id = $1", hidden)
        await connection.execute(f"UPDATE recall_index SET {change} WHERE id = $1", episode_id_of(hidden))
    unseen = await search_room(receiver, "launch")
    await receiver.forget("r1")
    assert unseen == await search_room(receiver, "launch")
    assert set(unseen) == {"m1", "n0", "r0", "r2", "r3"}


async def test_unreadable_messages_before_an_answer_do_not_hide_it(receiver: Receiver) -> None:
    many = [said(f"x{n}", f"filler {n}", user="carol", minute=7 + n / 60) for n in range(60)]
    await store_busy_room(receiver, *many, said("reply", "alice: friday", user="bob", minute=20))
    assert "reply" not in await search_room(receiver, "launch"), "it is the 66th message after the question"
    ids = [message_id(room_id(HERE, "general"), f"x{n}") for n in range(60)]
    async with receiver.database._pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{TENANT}'")
        await connection.execute("UPDATE messages SET visibility = 'private' WHERE id = ANY ($1)", ids)
    assert "reply" in await search_room(receiver, "launch")
