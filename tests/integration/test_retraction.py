"""The queue of retractions: what a platform does not take now is tried again, and holds up nothing else."""

import uuid
from datetime import timedelta

import pytest

from bot.delivery.retraction import MAX_LOOKED_FOR, MAX_REFUSED, MIN_WAIT, Retraction
from composer.errors import Refused, Unavailable
from composer.ingest.rooms import erase_room
from composer.memory.forget import RETRACTED
from composer.model import CONSOLE, ConversationKind
from composer.repositories.deliveries import Destination
from tests.integration.test_opened_rooms import Screen
from tests.support.harness import AppHarness


class Moody(Screen):
    """A platform that fails at the posts that `errors` names."""

    def __init__(self, **errors: Exception) -> None:
        super().__init__()
        self.errors = errors
        self.replaced: list[str] = []
        self.found: str | None = None

    async def edit(self, to: Destination, message: str, text: str) -> None:
        if message in self.errors:
            raise self.errors[message]
        assert text == RETRACTED
        self.replaced.append(message)

    async def find(self, to: Destination, key: str) -> str | None:
        return self.found


async def queue(
    harness: AppHarness, *posts: str, part: int | None = None, room: str = "general", thread: str | None = None
) -> None:
    await harness.say("alice", "hello", room=room, **({} if thread is None else {"thread": thread}))
    kind = ConversationKind.ROOM if thread is None else ConversationKind.THREAD
    to = Destination(CONSOLE, harness.workspace().name, kind, room, thread, False, "m1", "alice")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        for post in posts:
            await tx.deliveries.queue_retraction(uuid.uuid4(), to, post, part)


async def left(harness: AppHarness, after: timedelta = MAX_REFUSED * 3) -> int:
    """How many are due after a time."""
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        return len(await tx.deliveries.pending_retractions(CONSOLE, 100, harness.clock.now() + after))


async def refused(harness: AppHarness) -> list[int]:
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        return [each.count for each in await tx.deliveries.refused_retractions()]


async def test_what_is_refused_is_tried_again_ever_later_and_given_up_in_the_end(harness: AppHarness) -> None:
    screen = Moody(p1=Refused("The channel is archived."))
    retraction = Retraction(harness.app, CONSOLE, screen)
    await queue(harness, "p1", "p2")
    await retraction.catch_up()
    assert screen.replaced == ["p2"]
    assert await refused(harness) == [1]
    assert (await left(harness, timedelta(0)), await left(harness, MIN_WAIT)) == (0, 1)
    harness.clock.set(harness.clock.now() + timedelta(hours=5))
    await retraction.catch_up()
    assert (await left(harness, timedelta(hours=4)), await left(harness, timedelta(hours=5))) == (0, 1)
    harness.clock.set(harness.clock.now() + MAX_REFUSED)
    await retraction.catch_up()
    assert (await left(harness), await refused(harness)) == (0, [])


async def test_what_is_refused_is_tried_at_once_when_the_platform_may_take_it(harness: AppHarness) -> None:
    screen = Moody(p1=Refused("The channel is archived."))
    retraction = Retraction(harness.app, CONSOLE, screen)
    await queue(harness, "p1")
    await retraction.catch_up()
    screen.errors.clear()
    await retraction.catch_up()
    assert screen.replaced == []
    retraction.wake()
    await retraction.catch_up()
    assert (screen.replaced, await left(harness)) == (["p1"], 0)


async def test_what_is_refused_is_tried_at_once_by_a_process_that_starts(harness: AppHarness) -> None:
    screen = Moody(p1=Refused("The channel is archived."))
    await queue(harness, "p1")
    await Retraction(harness.app, CONSOLE, screen).catch_up()
    screen.errors.clear()
    await Retraction(harness.app, CONSOLE, screen).catch_up()
    assert (screen.replaced, await left(harness)) == (["p1"], 0)


@pytest.mark.parametrize("error", [Unavailable("Slack does not close a stream."), ValueError("no id")])
async def test_a_post_that_always_fails_holds_up_no_other(harness: AppHarness, error: Exception) -> None:
    screen = Moody(p1=error)
    retraction = Retraction(harness.app, CONSOLE, screen)
    await queue(harness, "p1", "p2", "p3")
    for _ in range(2):
        try:
            await retraction.catch_up()
        except Unavailable:
            continue
    assert sorted(screen.replaced) == ["p2", "p3"]
    assert await left(harness) == 1


@pytest.mark.parametrize(
    ("thread", "replaced"), [(None, ["other"]), ("t1", ["channel", "other", "t2"])], ids=["a room", "a thread"]
)
async def test_what_is_posted_elsewhere_is_retracted_though_a_room_or_thread_was_deleted(
    harness: AppHarness, thread: str | None, replaced: list[str]
) -> None:
    await queue(harness, "channel")
    await queue(harness, "other", room="other")
    for each in ("t1", "t2"):
        await queue(harness, each, thread=each)
    await erase_room(harness.app.database, harness.workspace(), "general", thread, harness.clock.now())
    screen = Moody()
    await Retraction(harness.app, CONSOLE, screen).catch_up()
    assert sorted(screen.replaced) == replaced


async def test_a_file_that_is_refused_is_due_at_once_for_a_process_that_starts(harness: AppHarness) -> None:
    await harness.say("alice", "hello", room="general")
    here, now = harness.workspace(), harness.clock.now()
    async with harness.app.database.transaction(here.tenant_id) as tx:
        alice = await tx.people.find_user(here.platform, here.name, "alice")
        assert alice is not None
        await tx.posted_files.record(CONSOLE, here.name, "f1", alice.id, now)
        await tx.posted_files.withdraw([alice.id])
        await tx.posted_files.postpone(CONSOLE, here.name, "f1", now + timedelta(days=1), now)
    await Retraction(harness.app, CONSOLE, Moody()).catch_up()
    async with harness.app.database.transaction(here.tenant_id, "read") as tx:
        assert [file.external_id for file in await tx.posted_files.due(CONSOLE, here.name, now, 9)] == ["f1"]


async def test_files_are_deleted_although_a_post_can_not_be_retracted(harness: AppHarness) -> None:
    deleted: list[str] = []

    async def delete_files() -> None:
        deleted.append("all")

    await queue(harness, "p1")
    with pytest.raises(Unavailable):
        await Retraction(harness.app, CONSOLE, Moody(p1=Unavailable("It is down.")), delete_files).catch_up()
    assert deleted == ["all"]


async def test_a_platform_that_is_down_is_not_asked_for_every_post(harness: AppHarness) -> None:
    posts = [f"p{number}" for number in range(9)]
    screen = Moody(**dict.fromkeys(posts, Unavailable("It is down.")))
    await queue(harness, *posts)
    with pytest.raises(Unavailable):
        await Retraction(harness.app, CONSOLE, screen).catch_up()
    assert await left(harness) == 9
    screen.errors.clear()
    await Retraction(harness.app, CONSOLE, screen).catch_up()
    assert sorted(screen.replaced) == posts


async def test_a_part_that_may_be_posted_is_looked_for_for_a_while(harness: AppHarness) -> None:
    screen = Moody()
    retraction = Retraction(harness.app, CONSOLE, screen)
    await queue(harness, "", part=1)
    await retraction.catch_up()
    assert (await left(harness), await refused(harness)) == (1, [])
    screen.found = "p7"
    harness.clock.set(harness.clock.now() + MIN_WAIT)
    await retraction.catch_up()
    assert (screen.replaced, await left(harness)) == (["p7"], 0)
    screen.found = None
    await queue(harness, "", part=0)
    await retraction.catch_up()
    harness.clock.set(harness.clock.now() + MAX_LOOKED_FOR * 2)
    await retraction.catch_up()
    assert await left(harness) == 0
