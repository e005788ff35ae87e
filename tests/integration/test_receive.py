"""Receiving: what an adapter hands in is stored once, in order, in its conversation, and never rewritten."""

import asyncio
import uuid
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from composer.errors import BadInput, NotFound
from composer.ingest.receive import Received
from composer.memory.forget import edit
from composer.model import (
    Attachment,
    ConversationKind,
    Incoming,
    Message,
    Place,
    Trust,
    conversation_id,
    message_id,
    room_id,
    thread_id,
    user_id,
)
from composer.repositories.conversations import ConversationRow, Conversations
from composer.repositories.people import People
from composer.settings import Settings
from composer.visibility import readable_conversation
from tests.support.harness import START
from tests.support.lock_waits import until_stopped
from tests.support.open_turns import open_turns
from tests.support.receiver import AGENTS, BOARD, DM, GENERAL, HERE, TENANT, Receiver, said


async def test_a_message_is_stored_unchanged(receiver: Receiver) -> None:
    files = (Attachment("plan.txt", "text/plain", "the plan"), Attachment("photo.png", "image/png"))
    await receiver(said("m1", "  Hello,\n\tworld \U0001f600 ", attachments=files, mentions=("bob", "alice")))
    [message] = await receiver.log()
    assert message == Message(
        message_id(room_id(HERE, "general"), "m1"),
        "m1",
        1,
        START,
        user_id(HERE, "alice"),
        None,
        "Alice",
        "  Hello,\n\tworld \U0001f600 ",
        f"room:{room_id(HERE, 'general')}",
        message.visibility,
        files,
        (user_id(HERE, "bob"), user_id(HERE, "alice")),
    )
    assert message.visibility == "public"


async def test_a_repeated_message_changes_nothing(receiver: Receiver) -> None:
    first = await receiver(said("m1", "@nexus hello"), said("m2", "hi", user="bob"), said("m3", "x", place=DM))
    assert (len(first.new), len(first.turns), first.skipped) == (3, 2, 0)
    before, log = await receiver.rows(), await receiver.log()
    receiver.now += timedelta(days=1)
    again = await receiver(said("m1", "@nexus changed", user="mallory"), said("m2"), said("m3", "y", place=DM))
    assert (again.new, again.turns, again.skipped) == ((), (), 3)
    # Only the new author of the repeat is added; everything else is unchanged.
    assert await receiver.rows() == before | {"users": before["users"] + 1, "identities": before["identities"] + 1}
    assert await receiver.log() == log


async def test_a_message_twice_in_a_batch_is_stored_once_with_its_first_text(receiver: Receiver) -> None:
    received = await receiver(said("m1", "first"), said("m2", "other"), said("m1", "second"))
    assert (len(received.new), received.skipped) == (2, 1)
    assert [m.text for m in await receiver.log()] == ["first", "other"]


async def test_an_id_in_two_rooms_is_two_messages_but_in_a_room_and_its_thread_one(receiver: Receiver) -> None:
    await receiver(said("m1"), said("m1", place=replace(GENERAL, name="random")), said("m1", place=DM))
    thread = Place(ConversationKind.THREAD, "general", "t1")
    assert (await receiver(said("m1", place=thread))).new == ()
    assert len((await receiver(said("m2", place=thread))).new) == 1


async def test_messages_are_ordered_by_time_and_then_by_arrival(receiver: Receiver) -> None:
    await receiver(said("m1", minute=5), said("m2", minute=1), said("m3", minute=5))
    await receiver(said("m4", minute=3))
    log = await receiver.log()
    assert [(m.external_id, m.seq) for m in log] == [("m2", 2), ("m4", 4), ("m1", 1), ("m3", 3)]


async def test_the_latest_messages_are_read_before_a_given_message(receiver: Receiver) -> None:
    await receiver(*(said(f"m{n}", minute=n // 2) for n in range(10)))
    log = await receiver.log()
    async with receiver.database.transaction(TENANT, "read") as tx:
        access = await tx.conversations.access_context(room_id(HERE, "general"), user_id(HERE, "alice"), Trust.MEMBER)
        assert access is not None
        own = readable_conversation(access)
        assert await tx.messages.latest(own, access.conversation, 3, log[7]) == log[4:7]
        assert await tx.messages.latest(own, access.conversation, 100, log[0]) == []
        stranger = replace(access.conversation, namespace="room:other")
        assert await tx.messages.latest(own, stranger, 100, None) == []


async def test_a_message_keeps_the_name_that_its_author_had_then(receiver: Receiver) -> None:
    await receiver(said("m1"))
    await receiver(replace(said("m2", minute=1), user_name="Alice B."))
    assert [m.author for m in await receiver.log()] == ["Alice", "Alice B."]


async def test_a_text_is_stored_as_the_gate_has_cleaned_it(receiver: Receiver) -> None:
    await receiver(said("m1", "a\x00b\ud800c\x07d\u200be"))
    assert [m.text for m in await receiver.log()] == ["a\ufffdb\ufffdcde"]


BAD = [
    (said("m2", "  \n "), "The message is empty"),
    (said("m2", "x" * 2_000_001), "The message has 2,000,001 characters; the limit is 2,000,000"),
    (said("m2", user=" "), "The name of the user"),
    (said(" "), "The name of the id"),
    (said("x" * 201), "The name of the id"),
    (said("m2", place=replace(GENERAL, name="")), "The name of the room, agent or session"),
    (said("m2", place=replace(GENERAL, name="a\x00b")), "The name of the room, agent or session"),
    (said("m2", place=replace(DM, name="nobody")), r"There is no agent 'nobody': choose one of nexus, scout\."),
    (replace(said("m2"), at=datetime(2026, 5, 4)), "A time needs its zone"),  # noqa: DTZ001
]


async def test_a_batch_with_an_invalid_message_is_refused_as_a_whole(receiver: Receiver) -> None:
    await receiver(said("m0"))
    before = await receiver.rows()
    for bad, sentence in BAD:
        with pytest.raises(BadInput, match=sentence):
            await receiver(said("m1", user="bob"), bad)
        assert await receiver.rows() == before, sentence


async def test_an_empty_batch_stores_nothing(receiver: Receiver) -> None:
    assert await receiver() == Received()


async def test_a_message_of_a_megabyte_and_one_with_only_an_attachment_are_stored(receiver: Receiver) -> None:
    await receiver(
        said("m1", "x" * 1_000_000), said("m2", "", attachments=(Attachment("a.png", "image/png"),), minute=1)
    )
    assert [len(m.text) for m in await receiver.log()] == [1_000_000, 0]


# --- rooms and their members -----------------------------------------------------------------------------------------


async def test_posting_in_a_room_makes_a_member_but_being_mentioned_does_not(receiver: Receiver) -> None:
    await receiver(said("m1", mentions=("bob",)))
    assert (await receiver.access_context(user="alice")).joined is True
    assert (await receiver.access_context(user="bob")).joined is None


async def test_the_first_member_of_a_room_is_its_admin_until_they_leave(receiver: Receiver) -> None:
    await receiver(said("m1", user="alice"), said("m2", user="bob"))
    room = room_id(HERE, "general")

    async def admins() -> list[str]:
        async with receiver.database.transaction(TENANT) as tx:
            found = await tx.conversations.get(room)
            assert found is not None
            people = {name: await tx.permissions.facts(found, user_id(HERE, name), []) for name in ("alice", "bob")}
            return [name for name, facts in people.items() if facts.room_admin]

    assert await admins() == ["alice"]
    await receiver.move("alice", "general", joined=False, at=START)
    assert await admins() == []


async def test_a_departed_member_of_a_public_room_rejoins_by_posting(receiver: Receiver) -> None:
    await receiver(said("m1"))
    await receiver.move("alice", "general", joined=False, at=START + timedelta(minutes=1))
    assert (await receiver.access_context()).departed == {user_id(HERE, "alice")}
    receiver.now += timedelta(minutes=2)
    await receiver(said("m2", minute=2))
    assert (await receiver.access_context()).departed == frozenset()


async def test_a_repeated_old_message_does_not_restore_membership(receiver: Receiver) -> None:
    await receiver(said("m1"), said("b1", place=BOARD))
    for room in ("general", "board"):
        await receiver.move("alice", room, joined=False, at=START + timedelta(minutes=1))
    receiver.now += timedelta(minutes=2)
    again = await receiver(said("m1"), said("b1", place=BOARD))
    assert again.skipped == 2
    assert (await receiver.access_context("general")).joined is False
    assert (await receiver.access_context("board")).joined is False


async def test_a_departed_member_of_a_private_room_cannot_post_and_the_batch_is_refused(
    receiver: Receiver,
) -> None:
    await receiver(said("b1", place=BOARD), said("b2", place=BOARD, user="bob"))
    await receiver.move("bob", "board", joined=False, at=START)
    before = await receiver.rows()
    with pytest.raises(NotFound, match=r"^There is no room 'board' here\.$"):
        await receiver(said("m1"), said("b3", place=BOARD, user="bob"))
    assert await receiver.rows() == before
    await receiver.move("bob", "board", joined=True, at=START)
    assert len((await receiver(said("b3", place=BOARD, user="bob"))).new) == 1


async def test_an_older_membership_change_does_not_undo_a_later_one(receiver: Receiver) -> None:
    def at(minute: float) -> datetime:
        return START + timedelta(minutes=minute)

    await receiver.move("bob", "general", joined=True, at=at(1))
    await receiver.move("bob", "general", joined=False, at=at(5))
    await receiver.move("bob", "general", joined=True, at=at(1))
    assert (await receiver.access_context(user="bob")).joined is False
    await receiver.move("bob", "general", joined=True, at=at(6))
    await receiver.move("bob", "general", joined=False, at=at(5))
    assert (await receiver.access_context(user="bob")).joined is True


async def test_leaving_an_unknown_room_is_refused(receiver: Receiver) -> None:
    await receiver(said("m1"))
    with pytest.raises(NotFound, match=r"There is no room 'nowhere' here\."):
        await receiver.move("bob", "nowhere", joined=False, at=START)


async def test_a_room_keeps_its_namespace_when_it_becomes_private_and_gets_a_new_one_when_public(
    receiver: Receiver,
) -> None:
    room = room_id(HERE, "general")
    namespaces = []
    for n, private in enumerate((None, True, None, False, None, True)):
        await receiver(said(f"m{n}", f"text {n}", place=replace(GENERAL, private=private), minute=n))
        current = await receiver.conversation(room)
        namespaces.append((current.private, current.namespace))
    assert namespaces == [
        (False, f"room:{room}"),
        (True, f"room:{room}"),
        (True, f"room:{room}"),
        (False, f"room:{room}.1"),
        (False, f"room:{room}.1"),
        (True, f"room:{room}.1"),
    ]
    assert [m.external_id for m in await receiver.log()] == ["m3", "m4", "m5"], (
        "messages from the private period stay in its namespace"
    )


async def test_a_repeated_message_does_not_change_whether_a_room_is_private(receiver: Receiver) -> None:
    await receiver(said("m1", place=replace(GENERAL, private=True)))
    await receiver(said("m2", place=replace(GENERAL, private=False), minute=1))
    before = await receiver.conversation(room_id(HERE, "general"))
    await receiver(said("m1", place=replace(GENERAL, private=True)))
    await receiver(said("m1", place=replace(GENERAL, private=True)), said("m2", place=replace(GENERAL, private=False)))
    assert await receiver.conversation(room_id(HERE, "general")) == before


async def test_a_mention_is_not_answered_where_its_batch_opens_the_room_after_it(receiver: Receiver) -> None:
    closed, opened = replace(GENERAL, private=True), replace(GENERAL, private=False)
    received = await receiver(
        said("m1", "@nexus hi", place=closed),
        said("m2", "hi", place=opened, minute=1),
        said("m3", "@nexus hi", place=opened, minute=2),
    )
    assert len(received.new) == 3
    assert [turn.message_id for turn in received.turns] == [received.new[2]], "the first was asked in private"
    assert [turn for turn, _ in await open_turns(receiver.database, TENANT)] == list(received.turns)


async def test_a_public_thread_shares_the_namespace_of_its_room_and_a_private_thread_is_a_room(
    receiver: Receiver,
) -> None:
    thread, secret = (
        Place(ConversationKind.THREAD, "general", "t1"),
        Place(ConversationKind.THREAD, "general", "t2", True),
    )
    await receiver(said("m1"), said("m2", place=thread), said("m3", place=secret, minute=1))
    room = room_id(HERE, "general")
    open_thread = await receiver.conversation(thread_id(room, "t1"))
    assert (open_thread.kind, open_thread.namespace, open_thread.room_id) == (
        ConversationKind.THREAD,
        f"room:{room}",
        room,
    )
    own = room_id(HERE, "general/t2")
    closed = await receiver.conversation(own)
    assert (closed.kind, closed.private, closed.namespace) == (ConversationKind.ROOM, True, f"room:{own}")
    assert [m.external_id for m in await receiver.log(open_thread.id)] == ["m2"]


@pytest.mark.parametrize("known_as_public", [False, True])
@pytest.mark.parametrize("together", [True, False])
async def test_a_private_thread_of_a_private_room_is_part_of_it(
    receiver: Receiver, together: bool, known_as_public: bool
) -> None:
    """Also where the message that makes the room private comes with it, as after an outage or from a file."""
    if known_as_public:
        await receiver(said("m0", place=replace(GENERAL, private=False)))
    secret = Place(ConversationKind.THREAD, "general", "t1", True)
    messages = (said("m1", place=replace(GENERAL, private=True), minute=1), said("m2", place=secret, minute=2))
    for batch in [messages] if together else [(each,) for each in messages]:
        await receiver(*batch)
    room = room_id(HERE, "general")
    assert (await receiver.conversation(thread_id(room, "t1"))).namespace == f"room:{room}"


async def test_a_private_thread_of_a_public_room_is_a_room_where_a_message_is_repeated_that_said_it_was_private(
    receiver: Receiver,
) -> None:
    before, secret = (
        said("m1", place=replace(GENERAL, private=True)),
        Place(ConversationKind.THREAD, "general", "t1", True),
    )
    await receiver(before)
    await receiver(said("m2", place=replace(GENERAL, private=False), minute=1))
    await receiver(before, said("m3", place=secret, minute=2))
    own = await receiver.conversation(room_id(HERE, "general/t1"))
    assert (own.kind, own.private) == (ConversationKind.ROOM, True)


@pytest.mark.parametrize("privacy", [None, False])
async def test_a_private_thread_is_a_room_if_its_room_becomes_private_later(
    receiver: Receiver, privacy: bool | None
) -> None:
    secret = Place(ConversationKind.THREAD, "general", "t2", True)
    await receiver(said("m1", place=replace(GENERAL, private=privacy)))
    await receiver(said("m2", place=secret, minute=1), said("m3", place=replace(GENERAL, private=True), minute=2))
    own = await receiver.conversation(room_id(HERE, "general/t2"))
    assert (own.kind, own.private) == (ConversationKind.ROOM, True)


async def test_threads_follow_their_room_into_its_next_namespace(receiver: Receiver) -> None:
    thread = Place(ConversationKind.THREAD, "general", "t1")
    await receiver(said("m1", place=replace(GENERAL, private=True)), said("m2", place=thread))
    await receiver(said("m3", place=replace(GENERAL, private=False)))
    room = room_id(HERE, "general")
    assert (await receiver.conversation(thread_id(room, "t1"))).namespace == f"room:{room}.1"
    await receiver(said("m4", place=thread))
    assert [m.external_id for m in await receiver.log(thread_id(room, "t1"))] == ["m4"]


# --- erasing ---------------------------------------------------------------------------------------------------------


async def test_an_erased_message_is_never_stored_again(receiver: Receiver) -> None:
    await receiver(said("m1", "secret"), said("m2"))
    await receiver.forget("m1")
    before = await receiver.rows()
    assert (await receiver(said("m1", "secret"))).new == ()
    assert (await receiver(said("m1", "secret"), answer=False)).new == ()
    assert await receiver.rows() == before
    assert [m.external_id for m in await receiver.log()] == ["m2"]


async def test_a_sequence_number_is_never_reused_even_after_erasing(receiver: Receiver) -> None:
    await receiver(said("m1"), said("m2"))
    await receiver.forget("m2")
    await receiver(said("m3"))
    assert [m.seq for m in await receiver.log()] == [1, 3]


async def test_an_edited_message_keeps_its_position_and_a_repeat_keeps_the_edit(receiver: Receiver) -> None:
    await receiver(said("m1", "old"), said("m2", minute=1))
    async with receiver.database.transaction(TENANT, "alone") as tx:
        found = await tx.messages.get(message_id(room_id(HERE, "general"), "m1"))
        assert found is not None
        await edit(tx, found, "new", [], (), START)
    await receiver(said("m1", "old"))
    assert [(m.external_id, m.text, m.seq) for m in await receiver.log()] == [("m1", "new", 1), ("m2", "hello", 2)]


# --- turns -----------------------------------------------------------------------------------------------------------


async def test_one_turn_is_queued_for_each_addressed_agent(receiver: Receiver) -> None:
    received = await receiver(
        said("m1", "nobody is called, not even a@nexus.org or @nexusx"),
        said("m2", "@Nexus, @nexus. and @SCOUT: hello", minute=1),
        said("m3", "hello", place=DM, minute=2),
        said("m4", "@scout", place=DM, minute=3),
        said("m5", "x", place=Place(ConversationKind.SESSION, "s1", agent="scout"), minute=4),
        said("m6", "y", place=Place(ConversationKind.SESSION, "s1"), minute=5),
    )
    expected = ["m2>nexus", "m2>scout", "m3>nexus", "m4>nexus", "m5>scout", "m6>nexus"]
    assert sorted(await receiver.turns()) == expected
    assert len(received.turns) == len(expected)
    for _ in range(2):
        await receiver(said("m2", "@nexus @scout"), said("m3", place=DM))
    assert sorted(await receiver.turns()) == expected


async def test_history_is_stored_and_not_answered(receiver: Receiver) -> None:
    received = await receiver(said("m1", "@nexus hello"), said("m2", place=DM), answer=False)
    assert (len(received.new), received.turns) == (2, ())
    assert await receiver.turns() == []


async def test_a_refused_batch_queues_no_turn(receiver: Receiver) -> None:
    with pytest.raises(BadInput):
        await receiver(said("m1", "@nexus hello"), said("m2", place=replace(DM, name="nobody")))
    assert await receiver.turns() == []


# --- concurrency -----------------------------------------------------------------------------------------------------


async def test_concurrent_batches_into_a_new_room_give_each_message_its_own_number(receiver: Receiver) -> None:
    batches = [[said(f"m{n}-{k}", user=f"user{n}", minute=k) for k in range(5)] for n in range(12)]
    received = await asyncio.gather(*(receiver(*batch) for batch in batches))
    assert sum(len(r.new) for r in received) == 60
    log = await receiver.log()
    assert sorted(m.seq for m in log) == list(range(1, 61))
    for n in range(12):
        mine = [m.seq for m in log if m.external_id.startswith(f"m{n}-")]
        assert mine == list(range(mine[0], mine[0] + 5)), "a batch stays together and in order"
    assert (await receiver.conversation(room_id(HERE, "general"))).version == 60


async def test_a_message_received_many_times_at_once_is_stored_and_answered_once(receiver: Receiver) -> None:
    places = [GENERAL, DM, Place(ConversationKind.THREAD, "general", "t1"), Place(ConversationKind.SESSION, "s1")]
    for n, place in enumerate(places):
        received = await asyncio.gather(*(receiver(said(f"m{n}", "@nexus hello", place=place)) for _ in range(8)))
        assert sum(len(r.new) for r in received) == 1
        assert sum(r.skipped for r in received) == 7
    assert sorted(await receiver.turns()) == ["m0>nexus", "m1>nexus", "m2>nexus", "m3>nexus"]


async def test_batches_across_the_same_conversations_do_not_deadlock(receiver: Receiver) -> None:
    rooms = [replace(GENERAL, name=f"room{n}") for n in range(4)]

    def batch(n: int) -> list[Incoming]:
        order = rooms[n % 4 :] + rooms[: n % 4]
        return [said(f"m{n}", user=f"user{(n + k) % 5}", place=place) for k, place in enumerate(order)]

    received = await asyncio.gather(*(receiver(*batch(n)) for n in range(10)))
    assert all(len(r.new) == 4 for r in received)
    for place in rooms:
        log = await receiver.log(room_id(HERE, place.name))
        assert sorted(m.seq for m in log) == list(range(1, 11))


async def test_a_batch_begins_anew_where_others_create_a_room_that_is_locked_before_one_that_it_holds(
    receiver: Receiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each of the two waited for the other, until the database ended one of them: an import, say.
    names = sorted(("red", "blue"), key=lambda name: room_id(HERE, name))
    first, second = (replace(GENERAL, name=name) for name in names)
    await receiver(said("m1", place=second))
    ensure, others = Conversations.ensure, list[asyncio.Task[None]]()

    async def other() -> None:
        async with receiver.database.transaction(TENANT) as tx:
            await tx.conversations.lock([room_id(HERE, name) for name in names])

    async def late(conversations: Conversations, *arguments: Any) -> dict[uuid.UUID, ConversationRow]:
        monkeypatch.setattr(Conversations, "ensure", ensure)
        await receiver(said("m2", user="bob", place=first))
        others.append(asyncio.create_task(other()))
        await until_stopped(settings, others[0])  # it holds the first room, and waits for the second one
        assert not others[0].done()
        return await ensure(conversations, *arguments)

    monkeypatch.setattr(Conversations, "ensure", late)
    received = await receiver(said("m3", place=first), said("m4", place=second))
    assert len(received.new) == 2
    await others[0]
    assert [len(await receiver.log(room_id(HERE, name))) for name in names] == [2, 2]


async def test_two_first_messages_of_one_person_in_a_new_room_do_not_wait_for_each_other(
    receiver: Receiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await receiver(said("m1", place=BOARD))
    ensure_users, others = People.ensure_users, list[asyncio.Task[Received]]()

    async def late(people: People, *arguments: Any) -> None:
        monkeypatch.setattr(People, "ensure_users", ensure_users)
        await ensure_users(people, *arguments)
        await receiver(said("m2"))  # creates the room
        others.append(asyncio.create_task(receiver(said("m3", user="bob"))))
        await until_stopped(settings, others[0])  # it waits until Bob is created
        assert not others[0].done()

    monkeypatch.setattr(People, "ensure_users", late)
    received = [await receiver(said("m4", user="bob")), await others[0]]
    assert [len(each.new) for each in received] == [1, 1]
    assert len(await receiver.log()) == 3


async def test_a_batch_of_somebody_new_locks_all_its_rooms_in_order_though_one_is_closed_in_it(
    receiver: Receiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It locked the rooms of each part of the batch by themselves. A part begins where a room is made private.
    names = sorted(("red", "blue"), key=lambda name: room_id(HERE, name))
    first, second = (replace(GENERAL, name=name, private=False) for name in names)
    await receiver(said("m1", place=first), said("m2", place=second))
    lock, others = Conversations.lock, list[asyncio.Task[Received]]()

    async def other(conversations: Conversations, ids: list[uuid.UUID]) -> dict[uuid.UUID, ConversationRow]:
        monkeypatch.setattr(Conversations, "lock", lock)
        locked = await lock(conversations, ids)
        others.append(asyncio.create_task(receiver(said("m3", place=first), said("m4", place=second))))
        await until_stopped(settings, others[0])
        assert not others[0].done()
        return locked

    monkeypatch.setattr(Conversations, "lock", other)
    closed = replace(second, private=True)
    received = [
        await receiver(
            said("m5", user="bob", place=second),
            said("m6", user="bob", place=closed),
            said("m7", user="bob", place=first),
        ),
        await others[0],
    ]
    assert [len(each.new) for each in received] == [3, 2]


async def test_a_batch_of_somebody_new_records_what_others_are_after_it_has_locked_their_rooms(
    receiver: Receiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A batch in which everybody is known locks the rooms first: the two waited for each other.
    await receiver(said("m1"))
    set_trust, others = People.set_trust, list[asyncio.Task[Received]]()

    async def late(people: People, *arguments: Any) -> None:
        monkeypatch.setattr(People, "set_trust", set_trust)
        await set_trust(people, *arguments)
        others.append(asyncio.create_task(receiver(said("m2", sender_trust=Trust.GUEST))))
        await until_stopped(settings, others[0])
        assert not others[0].done()

    monkeypatch.setattr(People, "set_trust", late)
    received = [
        await receiver(said("m3", user="bob"), said("m4", sender_trust=Trust.GUEST)),
        await others[0],
    ]
    assert [len(each.new) for each in received] == [2, 1]


async def test_a_batch_across_conversations_is_stored_together(receiver: Receiver) -> None:
    session = Place(ConversationKind.SESSION, "s1", agent="scout")
    received = await receiver(said("m1"), said("m2", place=DM), said("m3", place=BOARD), said("m4", place=session))
    assert len(received.new) == 4
    alice = user_id(HERE, "alice")
    for place, agent, id in ((DM, AGENTS[0], "m2"), (session, AGENTS[1], "m4")):
        log = await receiver.log(conversation_id(HERE, place, alice, agent.id))
        assert [(m.external_id, m.seq, str(m.visibility)) for m in log] == [(id, 1, "private")]


async def test_two_workspaces_share_only_their_tenant(receiver: Receiver) -> None:
    other = replace(HERE, name="second")
    await receiver(said("m1"))
    await receiver(replace(said("m1"), workspace="second"), workspace=other)
    assert room_id(HERE, "general") != room_id(other, "general")
    assert user_id(HERE, "alice") != user_id(other, "alice")
    assert len(await receiver.log()) == 1
