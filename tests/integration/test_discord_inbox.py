"""The Discord inbox on its own: a failure of one event affects no other."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from bot.discord.inbox import DiscordInbox
from bot.discord.reading import PLATFORM, read_files
from bot.platform.events import MessageReceived
from bot.platform.inbox import InboxListeners
from bot.platform.retry import Backoff
from composer.errors import Unavailable
from composer.model import ConversationKind, Incoming, Place
from composer.workspace import Workspace
from tests.support.harness import AppHarness
from tests.support.receiver import connection_of
from tests.support.waiting import TIMEOUT_SECONDS

pytestmark = pytest.mark.integration

AT_ONCE = Backoff(first_seconds=0.0)
ROOM = Place(ConversationKind.ROOM, "77", private=False)


def message(harness: AppHarness, id: int, text: str) -> MessageReceived:
    return MessageReceived(
        "77", Incoming(PLATFORM, "1", ROOM, "5", "Ada", str(id), text, harness.clock.tick()), answer=False
    )


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

    async def found() -> list[MessageReceived]:
        fail("channel")
        return [message(harness, 2, "from a channel that was unknown")]

    await process(harness, workspace, message(harness, 1, "by somebody unknown"), found)
    assert await texts(harness) == ["by somebody unknown", "from a channel that was unknown"]


async def test_an_unexpected_error_loses_only_its_own_message_of_a_batch(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = harness.app.receive

    async def receive_or_fail(where: Workspace, batch: Any, **options: Any) -> Any:
        if any(each.text == "strange" for each in batch):
            raise RuntimeError("nobody foresaw this")
        return await receive(where, batch, **options)

    class FailingApp:
        receive = staticmethod(receive_or_fail)

        def __getattr__(self, name: str) -> Any:
            return getattr(harness.app, name)

    async def workspace(_: str) -> Workspace:
        return harness.app.directory.workspace(PLATFORM, "1")

    inbox = DiscordInbox(FailingApp(), workspace, InboxListeners())  # type: ignore[arg-type]
    for id, text in enumerate(["before", "strange", "after"], 1):
        inbox.put(message(harness, id, text))
    inbox.release()
    inbox.finish()
    with capture_logs() as logs:
        await inbox.run()
    assert await texts(harness) == ["before", "after"]
    assert [entry["message"] for entry in logs if entry["event"] == "inbox.message_failed"] == ["2"]


async def test_a_failed_download_of_a_text_file_keeps_its_message() -> None:
    class Broken:
        id, filename, content_type, size, url = 1, "notes.txt", "text/plain", 10, "https://cdn.example/notes.txt"
        duration = None

        async def read(self) -> bytes:
            raise aiohttp.ClientPayloadError("Response payload is not completed")

    (file,) = await asyncio.wait_for(read_files([Broken()]), TIMEOUT_SECONDS)  # type: ignore[list-item]
    assert (file.name, file.text) == ("notes.txt", "")
