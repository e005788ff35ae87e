"""What is made of a message just when that is deleted or edited goes with it: either the erasure comes before, or it
finds what was made."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from composer.repositories.compactions import Compactions
from composer.repositories.extraction_queue import ExtractionQueue
from composer.repositories.recall import Recall
from composer.settings import Settings
from tests.integration.test_compaction import add_messages, configured
from tests.integration.test_forget import SECRET, tables_with_secret
from tests.integration.test_mem0 import extraction_reply, office_on
from tests.support.embedder import HashedWords
from tests.support.harness import AppHarness, open_harness
from tests.support.lock_waits import until_stopped

pytestmark = pytest.mark.integration

ROOM: dict[str, Any] = {"room": "general"}
SAID = f"We decided that the vault opens with {SECRET}."
CHANGES = pytest.mark.parametrize("text", [None, "That is for later."], ids=["deleted", "edited"])


@asynccontextmanager
async def changed_before_it_ends(
    monkeypatch: pytest.MonkeyPatch,
    harness: AppHarness,
    settings: Settings,
    writer: type,
    method: str,
    text: str | None,
) -> AsyncIterator[None]:
    """The transaction that first calls a method of a repository ends only when a change of the message `said` waits for
    it. That has ended afterwards."""
    changes: list[asyncio.Task[None]] = []
    write = getattr(writer, method)

    async def slow(*arguments: Any, **named: Any) -> Any:
        written = await write(*arguments, **named)
        if not changes:
            changes.append(asyncio.create_task(harness.change("said", text)))
            await until_stopped(settings, changes[0])
        return written

    monkeypatch.setattr(writer, method, slow)
    yield
    await asyncio.gather(*changes)
    assert changes


@CHANGES
async def test_of_a_message_that_is_changed_while_it_is_indexed_nothing_is_kept(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    # The erasure had looked up what was made of the message before it waited for the index to let go of it: the
    # memory and the proposed decision stayed, and were recalled, for as long as the room remembers.
    async with changed_before_it_ends(monkeypatch, harness, settings, Recall, "index", text):
        await harness.say("alice", SAID, id="said", **ROOM)
    assert await tables_with_secret(settings) == set()


@CHANGES
async def test_of_a_message_that_is_changed_while_what_a_model_found_in_it_is_stored_nothing_is_kept(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    async with office_on(settings) as office:
        office.server.script.append(extraction_reply([{"text": f"The vault opens with {SECRET}", "sources": [1]}]))
        await office.harness.say("alice", SAID, id="said", **ROOM)
        async with changed_before_it_ends(monkeypatch, office.harness, settings, ExtractionQueue, "remove", text):
            await office.extract()
        assert await tables_with_secret(settings) == set()


@CHANGES
async def test_of_a_message_that_is_changed_while_a_view_is_compacted_nothing_is_kept(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    async with open_harness(configured(settings, tmp_path), embedder=HashedWords()) as harness:
        await harness.say("alice", SAID, id="said", **ROOM)
        await add_messages(harness, range(30), **ROOM)
        async with changed_before_it_ends(monkeypatch, harness, settings, Compactions, "add", text):
            await harness.ask("alice", "@nexus what now?", **ROOM)
        assert await tables_with_secret(settings) == set()
