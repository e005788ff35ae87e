"""The Discord inbox on its own: what goes wrong with one event costs no other."""

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
from tests.conftest import Stage

pytestmark = pytest.mark.integration

AT_ONCE = Backoff(first_seconds=0.0)
ROOM = Place(ConversationKind.ROOM, "77", private=False)


def message(stage: Stage, id: int, text: str) -> MessageReceived:
    return MessageReceived(
        "77", Incoming(PLATFORM, "1", ROOM, "5", "Ada", str(id), text, stage.clock.tick()), answer=False
    )


async def texts(stage: Stage) -> list[str]:
    here = stage.app.directory.workspace(PLATFORM, "1")
    async with stage.app.store.transaction(here.tenant_id) as tx:
        rows = await tx.log._sql._connection.fetch("SELECT text FROM messages ORDER BY seq")
    return [row["text"] for row in rows]


async def take(stage: Stage, workspace: Callable[[str], Awaitable[Workspace]], *items: Any) -> None:
    """Let an inbox take all of these."""
    inbox = DiscordInbox(stage.app, workspace, InboxListeners(), backoff=AT_ONCE)
    for item in items:
        inbox.put(item)
    inbox.release()
    inbox.finish()
    await inbox.run()


async def test_what_discord_must_be_asked_for_first_is_asked_for_until_it_answers(
    stage: Stage,
) -> None:
    failures = {"workspace": 2, "channel": 2}

    def fail(what: str) -> None:
        failures[what] -= 1
        if failures[what] >= 0:
            raise Unavailable("Discord can't be reached at the moment.")

    async def workspace(_: str) -> Workspace:
        fail("workspace")
        return stage.app.directory.workspace(PLATFORM, "1")

    async def found() -> list[MessageReceived]:
        fail("channel")
        return [message(stage, 2, "from a channel that was unknown")]

    await take(stage, workspace, message(stage, 1, "by somebody unknown"), found)
    assert await texts(stage) == ["by somebody unknown", "from a channel that was unknown"]


async def test_a_message_that_nobody_foresaw_costs_no_other_of_its_batch(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = stage.app.receive

    async def choosy(where: Workspace, batch: Any, **options: Any) -> Any:
        if any(each.text == "strange" for each in batch):
            raise RuntimeError("nobody foresaw this")
        return await receive(where, batch, **options)

    class Choosy:
        receive = staticmethod(choosy)

        def __getattr__(self, name: str) -> Any:
            return getattr(stage.app, name)

    async def workspace(_: str) -> Workspace:
        return stage.app.directory.workspace(PLATFORM, "1")

    inbox = DiscordInbox(Choosy(), workspace, InboxListeners())  # type: ignore[arg-type]
    for id, text in enumerate(["before", "strange", "after"], 1):
        inbox.put(message(stage, id, text))
    inbox.release()
    inbox.finish()
    with capture_logs() as logs:
        await inbox.run()
    assert await texts(stage) == ["before", "after"]
    assert [entry["message"] for entry in logs if entry["event"] == "inbox.message_failed"] == ["2"]


async def test_a_text_file_whose_download_breaks_off_leaves_its_message_whole() -> None:
    class Broken:
        id, filename, content_type, size, url = 1, "notes.txt", "text/plain", 10, "https://cdn.example/notes.txt"

        async def read(self) -> bytes:
            raise aiohttp.ClientPayloadError("Response payload is not completed")

    (file,) = await asyncio.wait_for(read_files([Broken()]), 5)  # type: ignore[list-item]
    assert (file.name, file.text) == ("notes.txt", "")
