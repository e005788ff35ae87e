"""Attacks on rooms that were deleted on their platform: what begins, or stops, in the middle of that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest

from bot.commands.command import Call
from bot.commands.idempotency import begin_command
from bot.commands.table import run_command
from bot.discord.reading import PLATFORM
from bot.platform.events import RoomDeleted
from bot.platform.inbox import InboxListeners, PlatformInbox
from bot.platform.retry import Backoff
from composer.errors import NotFound, Overtaken
from composer.ingest import rooms
from composer.model import ConversationKind, Incoming, Place, Workspace
from composer.repositories.database import Transaction
from composer.settings import Settings
from tests.integration.test_compaction import rows
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import until

ROOM = Place(ConversationKind.ROOM, "77", private=False)
THREAD = Place(ConversationKind.THREAD, "77", thread="t1")


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings) as harness:
        yield harness


def on_discord(harness: AppHarness) -> Workspace:
    return harness.app.directory.workspace(PLATFORM, "1")


def inbox_of(harness: AppHarness, backoff: Backoff | None = None) -> PlatformInbox:
    """An inbox of which each event is stored at once, or fails where it has no backoff."""

    async def workspace(_: str) -> Workspace:
        return on_discord(harness)

    async def is_member(room: str, user: str) -> bool:
        return True

    return PlatformInbox(
        harness.app,
        PLATFORM,
        workspace=workspace,
        is_member=is_member,
        listeners=InboxListeners(),
        backoff=backoff,
    )


def said(harness: AppHarness, text: str, place: Place = ROOM) -> Incoming:
    """A message of Ada's."""
    return Incoming(PLATFORM, "1", place, "5", "Ada", text, text, harness.clock.tick())


async def texts(settings: Settings) -> list[str]:
    return [row["text"] for row in await rows(settings, "SELECT text FROM messages ORDER BY at")]


# docs/architecture.md: what is deleted on its platform is gone from every layer. A command that came while its room was
# being erased, and had been judged before that was known, stored what it says for good.
@pytest.mark.parametrize("place", [ROOM, THREAD])
async def test_a_command_that_begins_while_its_room_is_being_erased_stores_nothing(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    at, go, judged = on_discord(harness), asyncio.Event(), asyncio.Event()
    await harness.app.receive(at, [said(harness, "zqgone", place)])
    call = said(harness, "/nexus remember zqnew", place)
    require = Call._require_standing
    running = list[asyncio.Task[Any]]()

    async def held(of: Call, tx: Transaction) -> None:
        try:
            await require(of, tx)
        finally:
            judged.set()
        await go.wait()

    note = rooms.note_room_deleted

    async def noted(*arguments: Any) -> None:
        await note(*arguments)
        assert await begin_command(harness.app, at, call, {})
        running.append(asyncio.create_task(run_command(harness.app, at, call)))
        await until(judged.is_set)

    monkeypatch.setattr(Call, "_require_standing", held)
    monkeypatch.setattr("bot.platform.inbox.note_room_deleted", noted)
    harness.clock.tick()
    await inbox_of(harness).apply(RoomDeleted("77"))
    go.set()
    with pytest.raises(NotFound):
        await running[0]
    assert await rows(settings, "SELECT text FROM memories") == []


# The same for what a message says that came late, where the platform deleted the room twice: it had been wrong.
async def test_of_two_deletions_of_a_room_the_later_one_counts(harness: AppHarness, settings: Settings) -> None:
    at, inbox = on_discord(harness), inbox_of(harness)
    await harness.app.receive(at, [said(harness, "zqfirst")])
    await inbox.apply(RoomDeleted("77"))
    between = [said(harness, "zqbetween"), said(harness, "zqlate")]
    await harness.app.receive(at, between[:1])
    assert await texts(settings) == ["zqbetween"]
    await inbox.apply(RoomDeleted("77"))
    await harness.app.receive(at, between[1:])
    await harness.app.receive(at, [said(harness, "zqafter")])
    assert await texts(settings) == ["zqafter"]


# The same where the platform's clock is ahead of ours; it says when that was, or does not.
@pytest.mark.parametrize("seconds", [20, None])
async def test_a_room_counts_as_deleted_by_the_clock_of_its_messages(
    harness: AppHarness, settings: Settings, seconds: int | None
) -> None:
    at, now = on_discord(harness), harness.clock.now()
    await harness.app.receive(at, [said(harness, "zqearly")])
    harness.clock.set(now)
    stated = None if seconds is None else now + timedelta(seconds=seconds)
    late = Incoming(PLATFORM, "1", ROOM, "5", "Ada", "2", "zqlate", (stated or now + timedelta(seconds=3)))
    after = Incoming(PLATFORM, "1", ROOM, "5", "Ada", "3", "zqafter", now + timedelta(seconds=60))
    await inbox_of(harness).apply(RoomDeleted("77", at=stated))
    await harness.app.receive(at, [late, after])
    assert await texts(settings) == ["zqafter"]


# README: stopping it, or a crash, loses nothing. A platform that has told of a deletion does not tell it once more.
@pytest.mark.parametrize("thread", [None, "t1"])
async def test_a_room_that_was_being_erased_when_nexus_stopped_is_erased_after_the_restart(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, thread: str | None
) -> None:
    at, inbox = on_discord(harness), inbox_of(harness)
    places = (ROOM, THREAD)
    await harness.app.receive(at, [said(harness, f"zqsaid {place.kind}", place) for place in places])
    elsewhere = Place(ConversationKind.ROOM, "78", private=False)
    await harness.app.receive(at, [said(harness, "zqelsewhere", elsewhere)])
    facts = Place(ConversationKind.ROOM, "79", private=False)
    call = said(harness, "/nexus fact set code zqorchid", facts)
    assert await begin_command(harness.app, at, call, {})
    await run_command(harness.app, at, call)

    async def killed(*_: object, **__: object) -> None:
        raise RuntimeError("this stands for a kill")

    with monkeypatch.context() as patch:
        patch.setattr(rooms, "forget", killed)
        for deleted in (RoomDeleted("77", thread), RoomDeleted("79")):
            harness.clock.tick()
            with pytest.raises(RuntimeError):
                await inbox.apply(deleted)
    harness.clock.tick()
    await inbox_of(harness).finish_erasing()
    kept = [] if thread is None else ["zqsaid room"]
    assert await texts(settings) == [*kept, "zqelsewhere"]
    assert await rows(settings, "SELECT key FROM facts") == []
    await harness.app.receive(at, [said(harness, "zqafter", ROOM if thread is None else THREAD)])
    await inbox_of(harness).finish_erasing()  # what is said later, where the platform was wrong, is not taken
    assert "zqafter" in await texts(settings)


# The same where the database refuses for good to erase one of them, for a bug of Nexus. On Discord, the whole history
# was read again and again, and never compared; on Slack, none of the others was erased.
@pytest.mark.parametrize("backoff", [None, Backoff(first_seconds=0.0)])
async def test_a_room_that_the_database_refuses_to_erase_keeps_no_other_from_being_erased(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, backoff: Backoff | None
) -> None:
    at, inbox = on_discord(harness), inbox_of(harness, backoff)
    names = ("77", "78", "79")
    for name in names:
        await harness.app.receive(at, [said(harness, f"zq{name}", Place(ConversationKind.ROOM, name, private=False))])
        harness.clock.tick()
        await rooms.note_room_deleted(harness.app.database, at, name, None, harness.clock.now())
    (first, _), *others = await rooms.unerased_rooms(harness.app.database, at)
    erase = rooms.erase_room

    async def refused(*arguments: Any) -> Any:
        if first in arguments:
            raise Overtaken("A foreign key is not there.")
        return await erase(*arguments)

    monkeypatch.setattr("bot.platform.inbox.erase_room", refused)
    with pytest.raises(Overtaken) if backoff is None else nullcontext():
        await inbox.finish_erasing()
    assert len(others) == 2
    assert await texts(settings) == [f"zq{first}"]
