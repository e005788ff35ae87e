"""When it is certain who is in a private room of a chat platform, and what follows where it is not."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import asyncpg
import pytest

from bot.platform.members import MembershipReader
from bot.platform.retry import Backoff
from composer.ingest.members import (
    begin_connection,
    confirm_members,
    doubt_members,
    end_connection,
    known_people,
    unread_rooms,
)
from composer.ingest.rooms import set_room_members
from composer.model import ConversationKind, Incoming, Place
from composer.settings import Settings
from composer.signals import end_tasks
from composer.workspace import Workspace
from tests.support.harness import AppHarness, open_harness
from tests.support.lock_waits import release_locks
from tests.support.waiting import until

pytestmark = pytest.mark.integration


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    """A Slack workspace with the private room vault, in which alice and bob have written."""
    async with open_harness(settings) as harness:
        for user in ("alice", "bob"):
            await write(harness, user)
        yield harness


def workspace(harness: AppHarness) -> Workspace:
    return harness.app.directory.workspace("slack", "T1")


async def write(harness: AppHarness, user: str, at: datetime | None = None) -> None:
    place = Place(ConversationKind.ROOM, "vault", private=True)
    sent = Incoming("slack", "T1", place, user, user, str(uuid.uuid4()), "hello", at or harness.clock.tick())
    await harness.app.receive(workspace(harness), [sent], answer=False)


async def begin(harness: AppHarness, process: int | None = None) -> uuid.UUID:
    id = uuid.uuid4()
    number = harness.app.locks.number if process is None else process
    await begin_connection(harness.app.database, workspace(harness), number, id)
    return id


async def read(harness: AppHarness, connection: uuid.UUID, *present: str) -> bool:
    return await confirm_members(
        harness.app.database, workspace(harness), connection, "vault", present, harness.clock.tick()
    )


async def rows(harness: AppHarness, query: str) -> list[tuple[object, ...]]:
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        return [tuple(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def certain(harness: AppHarness) -> bool:
    query = "SELECT rooms_with_certain_members(tenant_id) FROM (SELECT DISTINCT tenant_id FROM conversations) AS t"
    return bool(await rows(harness, query))


async def members(harness: AppHarness) -> set[str]:
    query = """SELECT i.external_id FROM members AS m JOIN identities AS i ON i.user_id = m.user_id
               WHERE m.left_at IS NULL"""
    return {str(user) for (user,) in await rows(harness, query)}


async def test_nothing_is_certain_before_the_members_were_read(harness: AppHarness) -> None:
    connection = await begin(harness)
    assert not await certain(harness)
    assert await unread_rooms(harness.app.database, workspace(harness), connection) == ("vault",)
    assert set(await known_people(harness.app.database, workspace(harness))) == {"alice", "bob"}
    assert await read(harness, connection, "alice", "bob", "nobody-knows")
    assert await certain(harness)
    assert await unread_rooms(harness.app.database, workspace(harness), connection) == ()
    assert await members(harness) == {"alice", "bob"}


async def test_who_left_has_left_and_who_came_has_joined(harness: AppHarness) -> None:
    assert await read(harness, await begin(harness), "alice")
    assert await members(harness) == {"alice"}
    assert await read(harness, await begin(harness), "alice", "bob")
    assert await members(harness) == {"alice", "bob"}


async def test_who_was_not_asked_for_stays_and_makes_the_room_uncertain(harness: AppHarness) -> None:
    connection, at = await begin(harness), harness.clock.tick()
    store = harness.app.database
    assert not await confirm_members(store, workspace(harness), connection, "vault", ["alice"], at, asked=["alice"])
    assert await members(harness) == {"alice", "bob"}
    assert not await certain(harness)
    assert await confirm_members(store, workspace(harness), connection, "vault", ["alice"], at, bots=["bob"])
    assert await certain(harness)
    assert await members(harness) == {"alice", "bob"}


async def test_what_was_read_ends_with_the_connection(harness: AppHarness) -> None:
    connection = await begin(harness)
    assert await read(harness, connection, "alice", "bob")
    await end_connection(harness.app.database, workspace(harness), harness.app.locks.number)
    assert not await certain(harness)
    assert not await read(harness, connection, "alice", "bob")  # it was being read when the connection was lost
    assert not await certain(harness)
    assert await read(harness, await begin(harness), "alice", "bob")
    await begin(harness)
    assert not await certain(harness)


async def test_what_a_dead_process_read_counts_no_more(harness: AppHarness, settings: Settings) -> None:
    assert await read(harness, await begin(harness, process=1), "alice", "bob")
    assert not await certain(harness)
    assert await read(harness, await begin(harness), "alice", "bob")
    assert await certain(harness)
    assert len(await rows(harness, "SELECT FROM connections")) == 1
    await release_locks(harness.app, settings)
    assert not await certain(harness)


async def test_one_living_process_is_enough(harness: AppHarness, settings: Settings) -> None:
    assert await read(harness, await begin(harness), "alice", "bob")
    await begin(harness, process=1)
    await end_connection(harness.app.database, workspace(harness), 1)
    assert await certain(harness)


async def test_a_message_from_before_the_reading_makes_it_uncertain(harness: AppHarness) -> None:
    """Who wrote it may have left since, before they were known."""
    early, connection = harness.clock.tick(), await begin(harness)
    assert await read(harness, connection, "alice", "bob")
    await write(harness, "eve", early)
    assert not await certain(harness)
    assert await read(harness, connection, "alice", "bob")
    assert await members(harness) == {"alice", "bob"}
    await set_room_members(harness.app.database, workspace(harness), {"vault": {"eve": True}}, early)
    assert await certain(harness)  # it is known that eve left after that


async def test_somebody_who_becomes_known_after_the_reading_makes_it_uncertain(harness: AppHarness) -> None:
    """Of somebody whom nobody asked for, Discord may tell us nothing: not even that they lost a role."""
    connection = await begin(harness)
    assert await read(harness, connection, "alice", "bob")
    await write(harness, "eve", harness.clock.tick() + timedelta(hours=1))
    assert not await certain(harness)
    assert await unread_rooms(harness.app.database, workspace(harness), connection) == ("vault",)
    await write(harness, "alice", harness.clock.tick() + timedelta(hours=2))
    assert await read(harness, connection, "alice", "bob", "eve")
    await write(harness, "eve", harness.clock.tick() + timedelta(hours=3))
    assert await certain(harness), "who was read may go on writing"


async def test_a_join_from_before_the_reading_makes_it_uncertain(harness: AppHarness) -> None:
    early, connection = harness.clock.tick(), await begin(harness)
    dm = Place(ConversationKind.DM, "nexus")
    sent = Incoming("slack", "T1", dm, "eve", "eve", "1", "hello", early)
    await harness.app.receive(workspace(harness), [replace(sent)], answer=False)
    assert await read(harness, connection, "alice", "bob")
    await set_room_members(harness.app.database, workspace(harness), {"vault": {"eve": True}}, early)
    assert not await certain(harness)


async def test_a_doubt_ends_what_was_read(harness: AppHarness) -> None:
    connection = await begin(harness)
    assert await read(harness, connection, "alice", "bob")
    await doubt_members(harness.app.database, workspace(harness), ["vault"])
    assert not await certain(harness)
    assert await unread_rooms(harness.app.database, workspace(harness), connection) == ("vault",)


class Reading:
    """A reader whose platform is the test: `answer` says what is made of a room that is read."""

    def __init__(self, harness: AppHarness, answer: Callable[[MembershipReader, str], Awaitable[bool]]) -> None:
        async def here() -> Workspace:
            return workspace(harness)

        async def stays(person: str) -> bool:
            return False

        self._answer = answer
        self.read: list[str] = []
        self.reader = MembershipReader(harness.app, here, self._read, stays, Backoff())

    async def _read(self, rooms: Sequence[str]) -> list[str]:
        self.read += rooms
        return [room for room in rooms if not await self._answer(self.reader, room)]

    @asynccontextmanager
    async def follow(self) -> AsyncIterator[None]:
        self.reader.connected()
        self.reader.ready()
        running = asyncio.create_task(self.reader.run())
        yield
        await end_tasks([running])


async def test_a_room_that_may_be_read_again_is_though_the_reading_that_goes_on_fails(harness: AppHarness) -> None:
    at = harness.clock.tick()

    async def answer(reader: MembershipReader, room: str) -> bool:
        if len(reading.read) == 1:
            reader.again(room)  # it can be read from now on; what was asked before that says that it can't
            await reader.unreadable(room)
            return True
        return await reader.confirm(room, ["alice", "bob"], at, reader.doubts_of(room))

    reading = Reading(harness, answer)
    async with reading.follow():
        await until(lambda: certain(harness))
    assert reading.read == ["vault", "vault"]


async def test_a_room_in_which_nothing_was_said_is_not_read_for_ever(harness: AppHarness) -> None:
    at = harness.clock.tick()

    async def answer(reader: MembershipReader, room: str) -> bool:
        settled.append(await reader.confirm(room, ["alice", "bob"], at, reader.doubts_of(room)))
        return settled[-1]

    settled: list[bool] = []
    reading = Reading(harness, answer)
    reading.reader.again("silent")
    async with reading.follow():
        await until(lambda: len(settled) == 2)
    assert reading.read == ["silent", "vault"]
    assert settled == [True, True]
