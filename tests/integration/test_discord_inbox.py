"""The Discord inbox on its own: a failure of one event affects no other."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.commands.idempotency import begin_command
from bot.commands.table import run_command
from bot.discord.inbox import DiscordInbox
from bot.discord.reading import PLATFORM
from bot.platform.events import RoomDeleted
from bot.platform.inbox import MAX_FAILURES, InboxListeners, PlatformInbox
from bot.platform.retry import Backoff
from composer.errors import Misconfigured, NotFound, Overtaken, Unavailable
from composer.model import ConversationKind, Incoming, Place, Trust, Workspace
from tests.support.harness import AppHarness
from tests.support.receiver import connection_of

AT_ONCE = Backoff(first_seconds=0.0)
ROOM = Place(ConversationKind.ROOM, "77", private=False)


def message(harness: AppHarness, id: int, text: str) -> Incoming:
    at = harness.clock.tick()
    return Incoming(PLATFORM, "1", ROOM, "5", "Ada", str(id), text, at, sender_trust=Trust.TOOL, channel="77")


async def texts(harness: AppHarness) -> list[str]:
    workspace = harness.app.directory.workspace(PLATFORM, "1")
    async with harness.app.database.transaction(workspace.tenant_id) as tx:
        rows = await connection_of(tx).fetch("SELECT text FROM messages ORDER BY seq")
    return [row["text"] for row in rows]


async def process(harness: AppHarness, workspace: Callable[[str], Awaitable[Workspace]], *items: Any) -> None:
    """Let an inbox process all of these items."""
    inbox = DiscordInbox(harness.app, workspace, InboxListeners(), backoff=AT_ONCE)
    for item in items:
        inbox.put(item)
    inbox.release()
    inbox.finish()
    await inbox.run()


async def test_requests_to_discord_are_retried_until_they_succeed(
    harness: AppHarness,
) -> None:
    failures = {"workspace": 2, "channel": 2}

    def fail(what: str) -> None:
        failures[what] -= 1
        if failures[what] >= 0:
            raise Unavailable("Discord can't be reached at the moment.")

    async def workspace(_: str) -> Workspace:
        fail("workspace")
        return harness.app.directory.workspace(PLATFORM, "1")

    async def found() -> list[Incoming]:
        fail("channel")
        return [message(harness, 2, "from a channel that was unknown")]

    await process(harness, workspace, message(harness, 1, "by somebody unknown"), found)
    assert await texts(harness) == ["by somebody unknown", "from a channel that was unknown"]


def failing_app(harness: AppHarness, failure: Exception) -> Any:
    """The app, which fails to store a strange message, and whatever is to be stored with it."""
    receive = harness.app.receive

    async def receive_or_fail(where: Workspace, batch: Any, **options: Any) -> Any:
        if any(each.text == "strange" for each in batch):
            raise failure
        return await receive(where, batch, **options)

    class FailingApp:
        receive = staticmethod(receive_or_fail)

        def __getattr__(self, name: str) -> Any:
            return getattr(harness.app, name)

    return FailingApp()


@pytest.mark.parametrize("failure", [RuntimeError("nobody foresaw this"), Overtaken("Another change was in progress.")])
async def test_an_unexpected_error_loses_only_its_own_message_of_a_batch(
    harness: AppHarness, failure: Exception
) -> None:
    async def workspace(_: str) -> Workspace:
        return harness.app.directory.workspace(PLATFORM, "1")

    inbox = DiscordInbox(failing_app(harness, failure), workspace, InboxListeners(), backoff=AT_ONCE)
    for id, text in enumerate(["before", "strange", "after"], 1):
        inbox.put(message(harness, id, text))
    inbox.release()
    inbox.finish()
    with capture_logs() as logs:
        await inbox.run()
    assert await texts(harness) == ["before", "after"]
    assert [entry["message"] for entry in logs if entry["event"] == "inbox.message_failed"] == ["2"]


async def test_a_message_that_slack_is_to_deliver_again_keeps_no_other_of_its_batch_from_being_stored(
    harness: AppHarness,
) -> None:
    async def workspace(_: str) -> Workspace:
        return harness.app.directory.workspace(PLATFORM, "1")

    async def is_member(room: str, user: str) -> bool:
        return True

    app = failing_app(harness, Overtaken("Another change was in progress."))
    inbox = PlatformInbox(app, PLATFORM, workspace=workspace, is_member=is_member, listeners=InboxListeners())
    with pytest.raises(Overtaken):
        await inbox.store([message(harness, id, text) for id, text in enumerate(["before", "strange", "after"], 1)])
    assert await texts(harness) == ["before", "after"]


REFUSED = Misconfigured("The database refuses Nexus; its admin has to look at that.")


async def test_no_message_is_passed_over_while_the_database_refuses_nexus(harness: AppHarness) -> None:
    # As where the password of its login was changed: what came meanwhile was lost, for good, once that was set right.
    app = failing_app(harness, REFUSED)
    tries = 0

    async def count(_: float) -> None:
        nonlocal tries
        tries += 1
        if tries > 2 * MAX_FAILURES:
            app.receive = harness.app.receive

    async def workspace(_: str) -> Workspace:
        return harness.app.directory.workspace(PLATFORM, "1")

    inbox = DiscordInbox(app, workspace, InboxListeners(), backoff=Backoff(first_seconds=0.0, sleep=count))
    await inbox.store([message(harness, id, text) for id, text in enumerate(["before", "strange", "after"], 1)])
    assert await texts(harness) == ["before", "strange", "after"]


async def test_no_message_that_slack_delivers_again_is_passed_over_while_the_database_refuses_nexus(
    harness: AppHarness,
) -> None:
    async def workspace(_: str) -> Workspace:
        return harness.app.directory.workspace(PLATFORM, "1")

    async def is_member(room: str, user: str) -> bool:
        return True

    app = failing_app(harness, REFUSED)
    inbox = PlatformInbox(app, PLATFORM, workspace=workspace, is_member=is_member, listeners=InboxListeners())
    for _ in range(2 * MAX_FAILURES):
        with pytest.raises(Misconfigured):
            await inbox.store([message(harness, 1, "strange")])


@pytest.mark.parametrize("failure", [RuntimeError("nobody foresaw this"), Overtaken("Another change was in progress.")])
async def test_a_message_that_fails_however_often_it_is_delivered_is_passed_over(
    harness: AppHarness, failure: Exception
) -> None:
    # Slack's history was read again and again from there: nothing behind it was stored, and no channel compared.
    async def workspace(_: str) -> Workspace:
        return harness.app.directory.workspace(PLATFORM, "1")

    async def is_member(room: str, user: str) -> bool:
        return True

    app = failing_app(harness, failure)
    inbox = PlatformInbox(app, PLATFORM, workspace=workspace, is_member=is_member, listeners=InboxListeners())
    history = [message(harness, id, text) for id, text in enumerate(["before", "strange", "after"], 1)]
    for _ in range(MAX_FAILURES - 1):
        with pytest.raises(type(failure)):
            await inbox.store(history)
    with capture_logs() as logs:
        await inbox.store(history)
    assert await texts(harness) == ["before", "after"]
    assert [entry["message"] for entry in logs if entry["event"] == "inbox.message_failed"] == ["2"]


# README: what is deleted on the platform is forgotten. A command that was given before, and began to change something
# after, stored it in a room that nobody sees any more.
@pytest.mark.parametrize(
    ("place", "deleted"),
    [
        (ROOM, RoomDeleted("77")),
        (replace(ROOM, kind=ConversationKind.THREAD, thread="t1"), RoomDeleted("77")),
        (replace(ROOM, kind=ConversationKind.THREAD, thread="t1"), RoomDeleted("77", "t1")),
        (replace(ROOM, name="t1", private=True), RoomDeleted("t1")),
    ],
)
async def test_a_command_changes_nothing_in_a_room_that_was_deleted_since(
    harness: AppHarness, place: Place, deleted: RoomDeleted
) -> None:
    at = harness.app.directory.workspace(PLATFORM, "1")

    async def workspace(_: str) -> Workspace:
        return at

    await process(harness, workspace, message(harness, 1, "hello"))
    call = Incoming(PLATFORM, "1", place, "5", "Ada", "2", "/nexus remember the vault is zqnew", harness.clock.tick())
    assert await begin_command(harness.app, at, call, {})
    await process(harness, workspace, deleted)
    with pytest.raises(NotFound):
        await run_command(harness.app, at, call)
    async with harness.app.database.transaction(at.tenant_id) as tx:
        assert await connection_of(tx).fetch("SELECT text FROM memories") == []


async def test_a_command_elsewhere_is_given_although_a_room_or_a_thread_was_deleted(harness: AppHarness) -> None:
    at = harness.app.directory.workspace(PLATFORM, "1")

    async def workspace(_: str) -> Workspace:
        return at

    call = Incoming(PLATFORM, "1", ROOM, "5", "Ada", "2", "/nexus remember the vault is zqnew", harness.clock.tick())
    assert await begin_command(harness.app, at, call, {})
    await process(harness, workspace, RoomDeleted("78"), RoomDeleted("77", "t1"), RoomDeleted("t1"))
    assert (await run_command(harness.app, at, call)).text.startswith("Remembered")
