"""A room's privacy has a time: what was stated before, is late or is repeated changes nothing any more."""

import itertools
import random
from dataclasses import replace
from datetime import timedelta

import pytest

from composer.ingest.rooms import set_room_private
from composer.model import Conversation, ConversationKind, Incoming, Place, room_id, thread_id
from tests.support.harness import START
from tests.support.receiver import AGENTS, GENERAL, HERE, TENANT, Receiver, connection_of, said

THREAD = Place(ConversationKind.THREAD, "general", thread="t1")


def stated(id: str, private: bool, *, minute: float, place: Place = GENERAL, text: str = "") -> Incoming:
    """A message with what its platform stated of its room when it was written."""
    at = START + timedelta(minutes=minute)
    if place.kind is ConversationKind.THREAD:
        place = replace(place, room_private=private, stated_at=at)
    else:
        place = replace(place, private=private, stated_at=at)
    return said(id, text or id, place=place, minute=minute)


async def room(receiver: Receiver, name: str = "general") -> Conversation:
    return await receiver.conversation(room_id(HERE, name))


async def namespaces(receiver: Receiver) -> dict[str, str]:
    """The namespace of each message, by its id on the platform."""
    async with receiver.database.transaction(TENANT) as tx:
        rows = await connection_of(tx).fetch("SELECT external_id, namespace FROM messages")
    return {row["external_id"]: row["namespace"] for row in rows}


@pytest.mark.parametrize("place", [GENERAL, THREAD], ids=["room", "thread"])
async def test_a_late_public_message_does_not_open_a_private_room(receiver: Receiver, place: Place) -> None:
    await receiver(stated("m1", False, minute=1, place=place), stated("m3", True, minute=3, place=place))
    await receiver(stated("m2", False, minute=2, place=place))
    assert (await room(receiver)).private
    await receiver(stated("m4", False, minute=4, place=place))
    assert not (await room(receiver)).private


@pytest.mark.parametrize("place", [GENERAL, THREAD], ids=["room", "thread"])
async def test_a_late_private_message_is_filed_with_what_was_said_before_the_opening(
    receiver: Receiver, place: Place
) -> None:
    await receiver(stated("m1", True, minute=1, place=place), stated("m3", False, minute=3, place=place))
    late = await receiver(stated("m2", True, minute=2, place=place, text="@nexus the code is walrus"))
    assert late.turns == ()
    await receiver(stated("m4", False, minute=4, place=place))
    found, now = await namespaces(receiver), await room(receiver)
    assert not now.private
    assert found["m2"] == found["m1"] != now.namespace
    assert found["m3"] == found["m4"] == now.namespace
    id = thread_id(room_id(HERE, "general"), "t1") if place is THREAD else room_id(HERE, "general")
    assert [(m.external_id, m.seq) for m in await receiver.log(id)] == [("m3", 101), ("m4", 102)]


async def test_a_private_message_from_before_a_room_was_met_as_public_is_read_by_nobody(receiver: Receiver) -> None:
    await receiver(stated("m2", False, minute=2))
    await receiver(stated("m1", True, minute=1))
    assert not (await room(receiver)).private
    assert [m.external_id for m in await receiver.log()] == ["m2"]


async def test_a_message_from_an_earlier_private_time_is_not_filed_in_the_present_one(receiver: Receiver) -> None:
    times = [(1, True), (3, False), (5, True)]
    await receiver(*[stated(f"m{minute}", private, minute=minute) for minute, private in times])
    await receiver(stated("m2", True, minute=2), stated("m6", True, minute=6))
    found = await namespaces(receiver)
    assert found["m2"] == found["m1"]
    assert found["m6"] == found["m5"] == (await room(receiver)).namespace != found["m1"]


async def test_a_thread_message_that_is_stored_already_states_nothing_of_its_room(receiver: Receiver) -> None:
    undated = replace(THREAD, room_private=False)
    await receiver(said("m1", place=undated))
    await receiver(said("m2", place=replace(THREAD, room_private=True)))
    await receiver(said("m1", place=undated))
    assert (await room(receiver)).private


async def test_a_report_of_the_present_holds_against_later_times_and_older_reports_against_none(
    receiver: Receiver,
) -> None:
    await receiver(stated("m9", False, minute=9))
    later = START + timedelta(minutes=20)
    await set_room_private(receiver.database, HERE, AGENTS, "general", True, later)
    await set_room_private(receiver.database, HERE, AGENTS, "general", False, later, stated_at=START)
    assert (await room(receiver)).private
    await set_room_private(receiver.database, HERE, AGENTS, "general", True, later + timedelta(minutes=9))
    await receiver(stated("m25", False, minute=25))
    assert (await room(receiver)).private, "stated again in the 29th minute"
    await receiver(stated("m30", False, minute=30))
    assert not (await room(receiver)).private


async def test_a_room_that_is_met_without_a_word_on_its_privacy_opens_with_the_first_one(receiver: Receiver) -> None:
    slack = replace(HERE, platform="slack")
    await receiver(replace(said("m1"), adapter="slack"), workspace=slack)
    id = room_id(slack, "general")
    assert (await receiver.conversation(id)).private
    await receiver(stated("m0", False, minute=-9), workspace=slack)
    assert not (await receiver.conversation(id)).private


@pytest.mark.parametrize("seed", range(6))
async def test_in_any_order_the_latest_word_holds_and_nothing_private_is_read_after_the_last_opening(
    receiver: Receiver, seed: int
) -> None:
    """Messages of rooms and their threads, delivered in any order, in batches of any size, some of them repeatedly."""
    chance = random.Random(seed)
    for number in range(4):
        name, closed = f"room{number}", {minute: chance.random() < 0.5 for minute in range(1, 8)}
        places = [Place(ConversationKind.ROOM, name), Place(ConversationKind.THREAD, name, thread="t")]
        sent = [stated(f"m{m}", private, minute=m, place=chance.choice(places)) for m, private in closed.items()]
        left = chance.sample([*sent, *chance.sample(sent, 3)], 10)
        while left:
            size = chance.randint(1, 4)
            await receiver(*left[:size])
            left = left[size:]
        now = await room(receiver, name)
        assert now.private is closed[7]
        messages = [
            *await receiver.log(room_id(HERE, name)),
            *(await receiver.log(thread_id(room_id(HERE, name), "t")) if any(m.place.thread for m in sent) else []),
        ]
        if not now.private:
            assert [m.external_id for m in messages if closed[int(m.external_id[1:])]] == []


@pytest.mark.parametrize("order", list(itertools.permutations((2, 3, 4, 5))), ids=str)
async def test_what_was_said_before_an_opening_is_not_read_after_it_whenever_it_is_known(
    receiver: Receiver, order: tuple[int, ...]
) -> None:
    messages = {minute: stated(f"m{minute}", minute not in (3, 4), minute=minute) for minute in (1, 2, 3, 4, 5, 6)}
    await receiver(messages[1])
    for minute in order:
        await receiver(messages[minute])
    await receiver(messages[6])
    found, now = await namespaces(receiver), await room(receiver)
    assert now.private
    assert found["m6"] == now.namespace
    assert now.namespace not in (found["m1"], found["m2"])


async def test_a_late_message_does_not_say_that_outsiders_read_a_room_no_more(receiver: Receiver) -> None:
    def told(id: str, outsiders: bool, minute: float, place: Place = GENERAL) -> Incoming:
        at = START + timedelta(minutes=minute)
        return said(id, place=replace(place, outsiders=outsiders, outsiders_at=at), minute=minute)

    async def read_by_outsiders() -> bool:
        return (await receiver.access_context()).outsiders

    await receiver(told("m1", False, 1))
    assert not await read_by_outsiders()
    await receiver(told("m3", True, 3))
    await receiver(told("m2", False, 2))
    await receiver(told("m2b", False, 3, THREAD))
    assert await read_by_outsiders(), "of two statements of one time, the one that says so holds"
    await receiver(told("m5", False, 5), told("m4", True, 4))
    assert await read_by_outsiders() is False, "later messages say that they read it no more"
    await receiver(told("m6", True, 6), told("m5b", False, 5))
    assert await read_by_outsiders()
    await receiver(told("m7", False, 7, THREAD))
    assert not await read_by_outsiders()


@pytest.mark.parametrize("before", [[(6, False)], [(1, True), (2, False), (7, False)]], ids=["met as public", "opened"])
async def test_a_late_private_message_is_not_read_after_the_room_was_public_and_closed_again(
    receiver: Receiver, before: list[tuple[int, bool]]
) -> None:
    for minute, private in (*before, (8, True)):
        await receiver(stated(f"m{minute}", private, minute=minute))
    late = await receiver(stated("m4", True, minute=4, text="@nexus the code is walrus"))
    assert late.turns == ()
    assert "m4" not in {message.external_id for message in await receiver.log()}


@pytest.mark.parametrize("order", list(itertools.permutations((2, 6, 7, 8))), ids=str)
async def test_members_keep_what_was_said_after_an_opening_that_is_known_late(
    receiver: Receiver, order: tuple[int, ...]
) -> None:
    for minute in order:
        await receiver(stated(f"m{minute}", minute != 6, minute=minute))
    shown = {message.external_id for message in await receiver.log()}
    assert {"m7", "m8"} <= shown
    assert "m2" not in shown


async def test_what_was_sent_before_a_thread_became_private_in_the_same_batch_is_taken_as_sent_before(
    receiver: Receiver,
) -> None:
    room_of_thread = Place(ConversationKind.ROOM, "general/deals", private=False)
    thread = Place(ConversationKind.THREAD, "general", thread="deals", private=True)
    await receiver(said("m1", place=room_of_thread, minute=1))
    await receiver.move("alice", "general/deals", joined=False, at=START + timedelta(minutes=2))
    receiver.now = START + timedelta(minutes=5)
    both = await receiver(said("m3", place=room_of_thread, minute=3), said("m4", place=thread, minute=4))
    assert len(both.new) == 2, "who left a public room comes back by speaking there, and may close it then"
