"""The working layer: a cache that shows what the log shows, or nothing."""

import random
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest
import redis
from structlog.testing import capture_logs

from composer.errors import Unavailable, for_operator
from composer.layers import working
from composer.layers.working import (
    BUSY_READ_MESSAGES,
    BUSY_SHOWN_MESSAGES,
    READ_MESSAGES,
    RELATED_MESSAGES,
    SHOWN_MESSAGES,
    WINDOW_STEP,
)
from composer.model import (
    Attachment,
    Conversation,
    ConversationKind,
    Incoming,
    Message,
    Trust,
    Visibility,
    message_id,
    room_id,
    user_id,
)
from composer.ports.working_cache import Appended
from composer.settings import Settings
from composer.settings.server_urls import ServerUrl
from composer.stores.database import working_cache
from composer.stores.database.working_cache import RedisWorkingCache
from composer.visibility import readable_conversation
from tests.support.harness import START
from tests.support.receiver import GENERAL, HERE, TENANT, Receiver, said

ROOM = room_id(HERE, "general")


def numbered_messages(first: int, last: int, *, text: str = "text") -> list[Incoming]:
    """Messages m<first> to m<last> of #general, a minute apart."""
    return [said(f"m{n}", f"{text} {n}", minute=n) for n in range(first, last + 1)]


def question(minute: float = 10_000, seq: int = 2**62) -> Message:
    """A question in #general that is not stored."""
    at = START + timedelta(minutes=minute)
    return Message(
        uuid.uuid4(), "q", seq, at, user_id(HERE, "alice"), None, "Alice", "?", f"room:{ROOM}", Visibility.PUBLIC
    )


async def view(
    receiver: Receiver, trigger: Message | None = None, *, cache: RedisWorkingCache | None = None
) -> list[Message]:
    """What a turn in #general sees, from the cache if that is valid."""
    async with receiver.database.transaction(TENANT, "read") as tx:
        access = await tx.conversations.access_context(ROOM, user_id(HERE, "alice"), Trust.MEMBER)
        assert access is not None
        found = await working.read(
            tx.messages,
            cache or receiver.cache,
            readable_conversation(access),
            access.conversation,
            trigger or question(),
        )
        return found.shown


async def logged(receiver: Receiver, trigger: Message | None = None) -> list[Message]:
    """The same, from the log alone."""
    async with receiver.database.transaction(TENANT, "read") as tx:
        access = await tx.conversations.access_context(ROOM, user_id(HERE, "alice"), Trust.MEMBER)
        assert access is not None
        own, about = readable_conversation(access), trigger or question()
        last = await tx.messages.latest(own, access.conversation, READ_MESSAGES, about)
        if not working.is_busy_room(access.conversation, last):
            return working.latest_window(last).shown
        return working.busy_room_window(
            await tx.messages.latest(own, access.conversation, BUSY_READ_MESSAGES, about), about
        ).shown


async def cached(receiver: Receiver) -> list[str] | None:
    """What the cache holds of this version, by external ids."""
    found = await receiver.cache.read(await receiver.conversation(ROOM), BUSY_READ_MESSAGES)
    return None if found is None else [message.external_id for message in found]


def ids(messages: Sequence[Message]) -> list[str]:
    return [message.external_id for message in messages]


async def test_the_cache_follows_the_log_and_keeps_the_last_two_hundred_messages(
    receiver: Receiver,
) -> None:
    await receiver(*numbered_messages(1, 195))
    for n in range(196, 206):
        await receiver(*numbered_messages(n, n))
    assert await cached(receiver) == [f"m{n}" for n in range(6, 206)]
    assert await view(receiver) == await logged(receiver)


async def test_of_a_batch_larger_than_the_cache_the_last_messages_are_cached(receiver: Receiver) -> None:
    await receiver(*numbered_messages(1, 3))
    await receiver(*numbered_messages(4, 230))
    assert await cached(receiver) == [f"m{n}" for n in range(31, 231)]


async def test_a_message_from_the_cache_equals_the_one_in_the_log(receiver: Receiver) -> None:
    files = (Attachment("a.txt", "text/plain", "\U0001f600 text"), Attachment("b", ""))
    await receiver(said("m1", 'line\n"two"\u2028 \U0001f600', attachments=files, mentions=("bob", "carol")))
    await receiver(replace(said("m2"), at=START + timedelta(microseconds=1_234), reply_to="m1"))
    assert await cached(receiver) == ["m1", "m2"]
    assert await receiver.cache.read(await receiver.conversation(ROOM), BUSY_READ_MESSAGES) == await receiver.log()


async def test_forty_to_fifty_nine_messages_are_shown_and_the_first_moves_every_twenty(receiver: Receiver) -> None:
    await receiver(*numbered_messages(1, 38))
    shown = []
    for n in range(39, 73):
        await receiver(*numbered_messages(n, n))
        found = await view(receiver)
        assert ids(found)[-1] == f"m{n}"
        shown.append((ids(found)[0], len(found)))
    assert [length for _, length in shown] == [39, *range(40, 60), *range(40, 53)]
    firsts = [first for first, _ in shown]
    assert firsts == ["m1"] * 21 + ["m21"] * 13


async def test_the_question_and_later_messages_are_not_shown(receiver: Receiver) -> None:
    await receiver(*numbered_messages(1, 60))
    log = await receiver.log()
    for trigger in (log[59], log[58], log[55], log[49], log[30], log[0]):
        seen = await view(receiver, trigger)
        assert seen == await logged(receiver, trigger)
        assert ids(seen)[-1:] == ([f"m{trigger.seq - 1}"] if trigger.seq > 1 else [])
        assert len(seen) == min(trigger.seq - 1, SHOWN_MESSAGES + (trigger.seq - 1) % WINDOW_STEP)


async def test_a_question_at_an_earlier_time_does_not_see_later_messages(receiver: Receiver) -> None:
    await receiver(*numbered_messages(1, 60))
    for minute in (0, 5, 30.5, 45, 59.5):
        seen = await view(receiver, question(minute))
        assert seen == await logged(receiver, question(minute))
        assert all(message.at <= START + timedelta(minutes=minute) for message in seen)
        assert ids(seen)[-1:] == ([f"m{int(minute)}"] if minute >= 1 else [])


async def test_only_short_messages_of_cached_views_stay_decoded(receiver: Receiver) -> None:
    await receiver(said("m1", "short"))
    await receiver(said("m2", "long " * working_cache.MAX_DECODED_CHARS))
    assert await cached(receiver) == ["m1", "m2"]
    room = (await receiver.conversation(ROOM)).id
    kept = receiver.cache._decoded.get(room) or {}
    assert [message.external_id for message in kept.values()] == ["m1"]
    await receiver.cache.drop([room])
    assert receiver.cache._decoded.get(room) is None


async def test_the_view_from_the_cache_always_equals_the_view_from_the_log(receiver: Receiver) -> None:
    """At every step of messages in and out of order, edits, erasures, privacy changes and lost cache writes."""
    chance, number, compared = random.Random(3), 0, 0
    served = redis.Redis(connection_pool=sync_pool(receiver))
    for _ in range(120):
        step = chance.choice(["say", "say", "say", "say", "late", "batch", "forget", "close", "lose", "drop list"])
        if step in ("say", "late", "batch"):
            new = [number + n for n in range(1, 1 + (chance.choice([7, 60]) if step == "batch" else 1))]
            number = new[-1]
            late = -chance.randint(1, 30) if step == "late" else 0
            await receiver(*(said(f"m{n}", f"text {n}", minute=n + late) for n in new))
        elif step == "forget" and number:
            await receiver.forget(f"m{chance.randint(max(1, number - 60), number)}")
        elif step == "close":
            await receiver(
                said(f"m{number + 1}", place=replace(GENERAL, private=chance.random() < 0.5), minute=number + 1)
            )
            number += 1
        elif step == "lose":
            served.flushall()
        elif step == "drop list":
            served.delete(f"nexus:{{{ROOM}}}:working")
        if number and chance.random() < 0.7:
            trigger = chance.choice(
                [question(), question(number - chance.randint(0, 60)), question(number, chance.randint(1, number))]
            )
            assert await view(receiver, trigger) == await logged(receiver, trigger), step
            compared += 1
    assert compared > 50


def sync_pool(receiver: Receiver) -> redis.ConnectionPool:
    """Connections of the test to the cache server."""
    path = receiver.cache._redis.connection_pool.connection_kwargs["path"]
    return redis.ConnectionPool(connection_class=redis.UnixDomainSocketConnection, path=path)


async def test_a_late_message_appears_in_its_place_by_time(receiver: Receiver) -> None:
    await receiver(said("m1", minute=1), said("m3", minute=3))
    await receiver(said("m2", minute=2))
    assert ids(await view(receiver)) == ["m1", "m2", "m3"]
    await receiver(said("m5", minute=5), said("m4", minute=4))
    assert await cached(receiver) == ["m1", "m2", "m3", "m4", "m5"]


async def test_a_view_that_missed_a_change_is_never_used(receiver: Receiver) -> None:
    await receiver(*numbered_messages(1, 3))
    before = await receiver.conversation(ROOM)
    async with receiver.database.transaction(TENANT) as tx:
        await tx.conversations.bump_versions([ROOM])
    assert await receiver.cache.read(before, BUSY_READ_MESSAGES) is not None
    assert await cached(receiver) is None
    assert ids(await view(receiver)) == ["m1", "m2", "m3"]
    assert await cached(receiver) == ["m1", "m2", "m3"], "after one read from the log it is cached again"


async def test_a_forgotten_message_is_removed_from_the_view_at_once(receiver: Receiver) -> None:
    await receiver(*numbered_messages(1, 5))
    await receiver.forget("m3")
    assert ids(await view(receiver)) == ["m1", "m2", "m4", "m5"]
    assert await cached(receiver) == ["m1", "m2", "m4", "m5"]


async def test_a_view_whose_list_was_evicted_is_not_used(receiver: Receiver) -> None:
    await receiver(*numbered_messages(1, 5))
    served = redis.Redis(connection_pool=sync_pool(receiver))
    served.delete(f"nexus:{{{ROOM}}}:working")
    assert await cached(receiver) is None
    assert len(await view(receiver)) == 5
    served.delete(f"nexus:{{{ROOM}}}:working")
    await receiver(*numbered_messages(6, 6))
    assert ids(await view(receiver)) == [f"m{n}" for n in range(1, 7)]


def conversation(version: int) -> Conversation:
    return Conversation(ROOM, TENANT, ConversationKind.ROOM, "general", f"room:{ROOM}", version=version)


def message(number: int) -> Message:
    at = START + timedelta(minutes=number)
    id = message_id(ROOM, f"m{number}")
    return Message(
        id, f"m{number}", number, at, user_id(HERE, "alice"), None, "Alice", "x", f"room:{ROOM}", Visibility.PUBLIC
    )


async def test_an_older_view_does_not_replace_a_newer_one(receiver: Receiver) -> None:
    new, old = conversation(5), conversation(4)
    await receiver.cache.replace(new, [message(n) for n in range(1, 6)])
    await receiver.cache.replace(old, [message(1)])
    assert await receiver.cache.read(old, BUSY_READ_MESSAGES) is None
    found = await receiver.cache.read(new, BUSY_READ_MESSAGES)
    assert found is not None
    assert ids(found) == ["m1", "m2", "m3", "m4", "m5"]


async def test_an_append_that_does_not_follow_the_cached_view_drops_it(receiver: Receiver) -> None:
    await receiver.cache.replace(conversation(3), [message(n) for n in range(1, 4)])
    await receiver.cache.append([Appended(ROOM, 4, 5, (message(5),))])  # the append of version 4 was lost
    for version in (3, 4, 5):
        assert await receiver.cache.read(conversation(version), BUSY_READ_MESSAGES) is None
    await receiver.cache.append([Appended(ROOM, 5, 6, (message(6),))])
    assert await receiver.cache.read(conversation(6), BUSY_READ_MESSAGES) is None, "an incomplete view is not returned"


async def test_reordered_appends_leave_no_wrong_view(receiver: Receiver) -> None:
    first, second = Appended(ROOM, 0, 1, (message(1),)), Appended(ROOM, 1, 2, (message(2),))
    await receiver.cache.append([second])
    await receiver.cache.append([first])
    assert await receiver.cache.read(conversation(2), BUSY_READ_MESSAGES) is None
    await receiver.cache.drop([ROOM])
    await receiver.cache.append([first])
    await receiver.cache.append([second])
    found = await receiver.cache.read(conversation(2), BUSY_READ_MESSAGES)
    assert found is not None
    assert ids(found) == ["m1", "m2"]


async def test_views_expire_after_a_silent_week_and_both_keys_are_on_one_node(receiver: Receiver) -> None:
    await receiver(*numbered_messages(1, 2))
    served = redis.Redis(connection_pool=sync_pool(receiver))
    keys = sorted(key.decode() for key in served.scan_iter())
    assert keys == [f"nexus:{{{ROOM}}}:version", f"nexus:{{{ROOM}}}:working"]
    for key in keys:
        assert 6 * 24 * 3600 < served.ttl(key) <= 7 * 24 * 3600


async def test_a_cache_that_refuses_the_login_is_not_taken_for_one_that_is_away(settings: Settings) -> None:
    assert settings.redis_url is not None
    cache = RedisWorkingCache(ServerUrl(settings.redis_url.replace("unix://", "unix://nobody@") + "?password=hunter2"))
    try:
        with pytest.raises(Unavailable) as refused:
            await cache.ping()
    finally:
        await cache.close()
    assert str(refused.value) == "The working cache refuses Nexus; its admin has to look at that."
    told = for_operator(refused.value)
    assert told.endswith("refuses the login: check user and password in NEXUS_REDIS_URL.")
    assert "hunter2" not in told


async def test_an_unreachable_cache_logs_a_warning_and_loses_no_message(receiver: Receiver, settings: Settings) -> None:
    await receiver(*numbered_messages(1, 5))
    nowhere = RedisWorkingCache("redis://127.0.0.1:1")
    try:
        with capture_logs() as logs:
            seen = await view(receiver, cache=nowhere)
            deaf = replace(receiver, cache=nowhere)
            await deaf(*numbered_messages(6, 6))
            await deaf(*numbered_messages(7, 7), answer=False)
        assert seen == await logged(receiver, question(5.5))
        assert {entry["event"] for entry in logs} == {"working.cache_unavailable"}
        assert {entry["log_level"] for entry in logs} == {"warning"}
        assert len(logs) == 3
        assert "text 6" not in str(logs)
        assert ids(await view(receiver)) == [f"m{n}" for n in range(1, 8)], "and the messages it missed are there later"
    finally:
        await nowhere.close()


async def test_every_message_of_the_view_is_checked_for_access_again(receiver: Receiver) -> None:
    await receiver(*numbered_messages(1, 3))
    now = await receiver.conversation(ROOM)
    stranger = replace(message(2), namespace="room:other", text="not for here")
    await receiver.cache.drop([ROOM])
    await receiver.cache.replace(now, [message(1), stranger, message(3)])
    assert ids(await view(receiver)) == ["m1", "m3"]


async def test_imported_history_is_not_cached_until_the_next_read(receiver: Receiver) -> None:
    await receiver(*numbered_messages(1, 3))
    await receiver(*numbered_messages(4, 60), answer=False)
    assert await cached(receiver) is None
    assert await view(receiver) == await logged(receiver)


def crowd(first: int, last: int) -> list[Incoming]:
    """Messages of eight people who talk in pairs."""
    return [
        said(f"m{n}", f"p{n % 8 ^ 1}: go on" if n // 8 % 2 else f"step {n}", user=f"p{n % 8}", minute=n)
        for n in range(first, last + 1)
    ]


def of_the_talk() -> Message:
    """A question that belongs to the talk of two of them."""
    return replace(question(), text="@nexus what did p1 and p0 do?")


async def test_in_a_busy_room_the_view_from_the_cache_equals_the_view_from_the_log(receiver: Receiver) -> None:
    await receiver(*crowd(1, 199))
    for n in range(200, 222):
        await receiver(*crowd(n, n))
        seen = await view(receiver, of_the_talk())
        assert seen == await logged(receiver, of_the_talk())
        assert len(seen) == SHOWN_MESSAGES + n % WINDOW_STEP
        assert ids(seen)[RELATED_MESSAGES:] == [
            f"m{k}" for k in range(n - BUSY_SHOWN_MESSAGES - n % WINDOW_STEP + 1, n + 1)
        ]
    log = await receiver.log()
    for trigger in (log[-1], log[-2], log[-30], log[-150]):
        assert await view(receiver, trigger) == await logged(receiver, trigger)
    assert ids(seen)[:RELATED_MESSAGES] != [f"m{n}" for n in range(181 - RELATED_MESSAGES, 181)], "there are gaps"


async def test_a_forgotten_message_leaves_the_related_messages_of_a_busy_room_at_once(receiver: Receiver) -> None:
    await receiver(*crowd(1, 205))
    erased = ids(await view(receiver, of_the_talk()))[0]
    await receiver.forget(erased)
    seen = await view(receiver, of_the_talk())
    assert erased not in ids(seen)
    assert seen == await logged(receiver, of_the_talk())
    assert len(seen) == SHOWN_MESSAGES + 5, "another message takes its place"


async def test_a_view_that_an_older_nexus_cached_with_other_fields_is_replaced(receiver: Receiver) -> None:
    await receiver(*numbered_messages(1, 3))
    served = redis.Redis(connection_pool=sync_pool(receiver))
    key = f"nexus:{{{ROOM}}}:working"
    lines = [str(line, "utf-8") for line in cast("list[bytes]", served.lrange(key, 0, -1))]
    served.delete(key)
    served.rpush(key, *(line.replace('"namespace"', '"run"') for line in lines))
    assert ids(await view(receiver)) == ["m1", "m2", "m3"]
    assert await cached(receiver) == ["m1", "m2", "m3"], "after one read from the log it is cached again"
