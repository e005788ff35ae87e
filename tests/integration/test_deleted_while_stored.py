"""A message that one process stores just when another one is told that it was deleted."""

import asyncio
from typing import Any

import pytest

from bot.script.places import incoming, place_of
from composer.ingest.changes import change_message
from composer.memory.forget import Receipt
from composer.repositories.messages import Messages
from composer.settings import Settings
from tests.integration.test_compaction import rows
from tests.support.harness import AppHarness
from tests.support.lock_waits import until_stopped

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("where", [{"room": "general"}, {"room": "general", "thread": "t1"}, {"dm": "nexus"}])
async def test_a_message_that_is_deleted_while_it_is_stored_does_not_stay(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, where: dict[str, Any]
) -> None:
    # Slack tells each process of a part of its events, and an import runs beside the server. The deletion saw no
    # message, and the message no deletion.
    at, append, deletions = harness.workspace(), Messages.append, list[asyncio.Task[Receipt | None]]()
    place = place_of(where.get("room"), where.get("dm"), None, thread=where.get("thread"))
    await harness.say("alice", "good morning", **where)

    async def deletes() -> Receipt | None:
        agents, now = harness.app.directory.agents(at.tenant_id), harness.clock.now()
        return await change_message(harness.app.database, at, agents, place, "alice", "said", None, (), now)

    async def slow(*arguments: Any, **named: Any) -> None:
        await append(*arguments, **named)
        deletions.append(asyncio.create_task(deletes()))
        await until_stopped(settings, deletions[0])

    said = incoming(at, place, "alice", "the vault is zqorchid", harness.clock.tick(), id="said")
    with monkeypatch.context() as patched:
        patched.setattr(Messages, "append", slow)
        await harness.app.receive(at, [said])
    await asyncio.gather(*deletions)
    await harness.app.turns.settle()
    assert await rows(settings, "SELECT 1 FROM messages WHERE text LIKE '%zqorchid%'") == []
    assert not (await harness.app.receive(at, [said])).new, "nor is it stored when it comes again"
