"""What is being stored when it is forgotten: it is either stored before, and found, or it waits."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.script.places import incoming, place_of
from composer.repositories.messages import Messages
from composer.settings import Settings
from tests.integration.test_compaction import rows
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import TIMEOUT_SECONDS, until

pytestmark = pytest.mark.integration


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings) as harness:
        yield harness


# README: forgetting reaches every copy. A message whose transaction was not over when its sender, or an admin, had it
# forgotten from elsewhere was not seen, and stayed for good.
# Nothing of a room or a DM of theirs can be locked before its first message is stored.
@pytest.mark.parametrize(
    ("command", "place", "into"),
    [
        *(
            (command, place, into)
            for command, place in (
                ("forget everything --yes", {"dm": "nexus"}),
                ("forget zqnew --yes", {"dm": "nexus"}),
                ("erase user alice --yes", {"room": "elsewhere"}),
            )
            for into in ({"room": "general"}, {"room": "general", "thread": "t1"}, {"room": "new"}, {"dm": "nexus"})
        ),
        ("forget here --yes", {"room": "general"}, {"room": "general"}),
        ("forget here --yes", {"room": "general"}, {"room": "general", "thread": "t1"}),
        ("erase room --yes", {"room": "general"}, {"room": "general"}),
        ("erase project apollo --yes", {"room": "elsewhere"}, {"room": "general"}),
    ],
)
async def test_a_message_that_is_being_stored_is_forgotten_too(
    harness: AppHarness,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    place: dict[str, str],
    into: dict[str, str],
) -> None:
    at, append = harness.workspace(), Messages.append
    await harness.command("alice", "/nexus project create apollo", room="general")
    await harness.command("alice", "/nexus project assign apollo --yes", room="general")
    await rows(settings, "UPDATE users SET admin = true WHERE name = 'alice' RETURNING 1")
    await harness.say("alice", "zqnew and zqold", room="general")
    appended, forgets = asyncio.Event(), asyncio.Event()

    async def append_and_wait(messages: Messages, *args: Any, **named: Any) -> None:
        await append(messages, *args, **named)
        appended.set()
        await forgets.wait()

    monkeypatch.setattr(Messages, "append", append_and_wait)
    new = incoming(
        at,
        place_of(into.get("room"), into.get("dm"), None, into.get("thread")),
        "alice",
        "zqnew",
        harness.clock.tick(),
        id="new",
    )
    receiving = asyncio.create_task(harness.app.receive(at, [new], answer=False))
    await asyncio.wait_for(appended.wait(), TIMEOUT_SECONDS)
    forgetting = asyncio.create_task(harness.command("alice", f"/nexus {command}", **place))

    async def waits() -> bool:
        return forgetting.done() or bool(await rows(settings, "SELECT 1 FROM pg_locks WHERE NOT granted"))

    await until(waits)
    forgets.set()
    await receiving
    assert "2 messages" in (await forgetting).text
    assert await rows(settings, "SELECT text FROM messages") == []
