"""The background indexer indexes everything stored, also what arrives while it works, and continues after errors."""

import asyncio
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.console.doctor import run_doctor
from bot.script.places import incoming, place_of
from composer.app import App
from composer.memory import index, indexer
from composer.memory.indexer import Indexer, Left
from composer.model import Message, Workspace
from composer.ports.models import Vectors
from composer.repositories.memories import NewMemory
from composer.settings import Settings
from tests.support.embedder import HashedWords
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import TIMEOUT_SECONDS, until


class InterruptedEmbedder(HashedWords):
    """Receives another message while it embeds for the first time."""

    app: App
    workspace: Workspace
    embedded_again = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        message = incoming(
            self.workspace, place_of("general", None, None), "bob", "me too", self.app.clock.now(), id="late"
        )
        received = await self.app.receive(self.workspace, [message])
        if not received.new:
            self.embedded_again.set()
        return await super().embed(texts)


async def test_a_message_stored_while_the_indexer_embeds_is_indexed_too(settings: Settings) -> None:
    embedder = InterruptedEmbedder()
    async with open_harness(settings, embedder=embedder) as harness:
        embedder.app, embedder.workspace = harness.app, harness.workspace()
        working = asyncio.create_task(harness.app.indexer.run())
        try:
            place = place_of("general", None, None)
            message = incoming(embedder.workspace, place, "alice", "tea is good", harness.clock.now(), id="first")
            await harness.app.receive(embedder.workspace, [message])
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await embedder.embedded_again.wait()  # only the late message's own embedding comes a second time
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def test_an_unexpected_error_neither_ends_indexing_nor_delays_other_tenants(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "INDEXER_RETRY_SECONDS", 0.01)
    tried: list[uuid.UUID] = []
    enough = asyncio.Event()

    async with open_harness(settings, embedder=HashedWords()) as harness:
        good, bad = uuid.uuid4(), uuid.uuid4()

        async def one_round(_: Indexer, tenant: uuid.UUID, progress: None, *, embed: bool) -> Left:
            tried.append(tenant)
            if tried.count(bad) >= 2 and good in tried:
                enough.set()
            if tenant == bad:
                raise RuntimeError("nobody foresaw this")
            return Left.NOTHING

        monkeypatch.setattr(Indexer, "_round", one_round)
        harness.app.indexer.due(bad)
        harness.app.indexer.due(good)
        with capture_logs() as logs:
            working = asyncio.create_task(harness.app.indexer.run())
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await asyncio.wait({working, asyncio.create_task(enough.wait())}, return_when="FIRST_COMPLETED")
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
    assert enough.is_set()
    assert "index.failed" in [entry["event"] for entry in logs]


async def test_a_tenant_with_a_large_backlog_does_not_delay_others(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "EMBED_BATCH_SIZE", 2)
    embedded: list[str] = []
    small = asyncio.Event()

    class RecordingEmbedder(HashedWords):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            embedded.extend(texts)
            if "small" in texts:
                small.set()
            return await super().embed(texts)

    async with open_harness(settings, embedder=RecordingEmbedder()) as harness:
        place = place_of("general", None, None)
        for name, texts in (("much", [f"remark {n}" for n in range(100)]), ("little", ["small"])):
            workspace = harness.workspace(name)
            messages = [
                incoming(workspace, place, "alice", text, harness.clock.tick(), id=f"{name}{n}")
                for n, text in enumerate(texts)
            ]
            await harness.app.receive(workspace, messages, answer=False)
            harness.app.indexer.due(workspace.tenant_id)
        working = asyncio.create_task(harness.app.indexer.run())
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await small.wait()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        assert embedded.index("small") <= 2, "one batch of the others' goes first at most"
        await harness.app.indexer.catch_up(harness.workspace("much").tenant_id)
        assert {text for text in embedded if text.startswith("remark")} == {f"remark {n}" for n in range(100)}


async def nothing_skipped(harness: AppHarness) -> bool:
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        return not await tx.recall.skipped() and (await tx.maintenance.backlog()).indexing == (0, 0)


async def test_a_message_that_fails_is_skipped_and_the_others_are_indexed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = index.extracted_memories

    def failing(message: Message) -> list[NewMemory]:
        if "poison" in message.text:
            raise OverflowError(message.text)
        return real(message)

    monkeypatch.setattr(index, "extracted_memories", failing)
    async with open_harness(settings, embedder=HashedWords()) as harness:
        workspace, place = harness.workspace(), place_of("general", None, None)
        texts = ("I prefer green tea over coffee.", "poison secret-zqorchid", "We decided to use Postgres.")
        messages = [
            incoming(workspace, place, "alice", text, harness.clock.tick(), id=f"m{n}") for n, text in enumerate(texts)
        ]
        await harness.app.receive(workspace, messages, answer=False)
        with capture_logs() as logs:
            await harness.app.indexer.catch_up(workspace.tenant_id)
            await harness.app.indexer.catch_up(workspace.tenant_id)
        async with harness.app.database.transaction(workspace.tenant_id) as tx:
            assert not await tx.recall.unindexed_messages(10)
        prompt = (await harness.compose("alice", "@nexus green tea or Postgres?", room="general")).prompt
        [check] = [each for each in await run_doctor(harness.app.settings) if each.name == "skipped messages"]
        assert check.ok is None
        assert check.detail.startswith("1 message could not be indexed")
        assert "OverflowError at test_indexer.py:" in check.detail
        assert "zqorchid" not in check.detail

        monkeypatch.setattr(index, "extracted_memories", real)  # a newer version
        working = asyncio.create_task(harness.app.indexer.run())
        await until(partial(nothing_skipped, harness))
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        assert "skipped messages" not in [each.name for each in await run_doctor(harness.app.settings)]
    kinds = {source.kind for section in prompt.sections for source in section.sources}
    assert "landmark" in kinds  # the decision that follows the message that failed
    assert [entry["error"] for entry in logs if entry["event"] == "index.message_skipped"] == ["OverflowError"]
    assert "zqorchid" not in str(logs)


async def all_indexed(harness: AppHarness) -> bool:
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        return (await tx.maintenance.backlog()).indexing == (0, 0)


async def test_messages_that_another_process_holds_are_indexed_when_it_lets_go(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "INDEXER_RETRY_SECONDS", 0.01)
    rounds: list[int] = []

    async def counted(*arguments: Any) -> int:
        rounds.append(await index.index_next(*arguments))
        return rounds[-1]

    monkeypatch.setattr(indexer, "index_next", counted)
    async with open_harness(settings, embedder=HashedWords()) as harness:
        workspace, place = harness.workspace(), place_of("general", None, None)
        message = incoming(workspace, place, "alice", "green tea", harness.clock.tick(), id="m1")
        await harness.app.receive(workspace, [message], answer=False)
        async with harness.app.database.transaction(workspace.tenant_id) as other:
            assert await other.recall.unindexed_messages(1)  # as the indexer of another process does, which then fails
            working = asyncio.create_task(harness.app.indexer.run())
            waiting = asyncio.create_task(harness.app.indexer.catch_up(workspace.tenant_id))
            await until(lambda: len(rounds) >= 4)
            assert not any(rounds)
            assert not waiting.done()
        await until(partial(all_indexed, harness))
        await waiting
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_messages_that_another_process_holds_are_indexed_though_others_beside_them_were_free(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where a round found any that were free, it took the others for none until the next message came.
    monkeypatch.setattr(indexer, "INDEXER_RETRY_SECONDS", 0.01)
    async with open_harness(settings, embedder=HashedWords()) as harness:
        workspace, place, tenant = harness.workspace(), place_of("general", None, None), harness.workspace().tenant_id
        messages = [
            incoming(workspace, place, "alice", text, harness.clock.tick(), id=text) for text in ("green tea", "coffee")
        ]
        await harness.app.receive(workspace, messages, answer=False)
        async with harness.app.database.transaction(tenant) as other:
            assert await other.recall.unindexed_messages(1)
            working = asyncio.create_task(harness.app.indexer.run())

            async def other_is_indexed() -> bool:
                async with harness.app.database.transaction(tenant) as tx:
                    return (await tx.maintenance.backlog()).indexing == (1, 0)

            await until(other_is_indexed)
        await until(partial(all_indexed, harness))
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_a_message_is_indexed_while_another_process_stores_what_refers_to_it(settings: Settings) -> None:
    async with open_harness(settings, embedder=HashedWords()) as harness:
        workspace, place = harness.workspace(), place_of("general", None, None)
        message = incoming(workspace, place, "alice", "green tea", harness.clock.tick(), id="m1")
        received = await harness.app.receive(workspace, [message], answer=False)
        async with harness.app.database.transaction(workspace.tenant_id) as other:
            await other.extraction_queue.add([received.new[0]])
            await harness.app.indexer.catch_up(workspace.tenant_id)
            assert await all_indexed(harness)


async def test_what_was_answered_is_erased_although_indexing_fails(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: object) -> int:
        raise RuntimeError("nobody foresaw this")

    async with open_harness(settings, embedder=HashedWords()) as harness:
        await harness.command("olga", "/nexus opt-out", dm="nexus")
        monkeypatch.setattr(indexer, "index_next", failing)
        with pytest.raises(RuntimeError):
            await harness.say("bob", "this waits to be indexed", room="general")
        with pytest.raises(RuntimeError):  # of the indexing that follows the answer
            await harness.ask("olga", "my diagnosis is zebraflu", dm="nexus")
        async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
            assert not await tx.messages.answered_ephemeral(10)


async def test_a_tenant_whose_rounds_fail_waits_alone(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "INDEXER_RETRY_SECONDS", 1_000.0)
    monkeypatch.setattr(indexer, "MAX_BACKOFF_SECONDS", 1_000.0)
    good, bad = uuid.uuid4(), uuid.uuid4()
    tried: list[uuid.UUID] = []
    enough = asyncio.Event()

    async def one_round(_: Indexer, tenant: uuid.UUID, progress: None, *, embed: bool) -> Left:
        tried.append(tenant)
        if tenant == bad:
            raise RuntimeError("nobody foresaw this")
        if tried.count(good) == 2:
            enough.set()
        return Left.MORE if tried.count(good) < 2 else Left.NOTHING

    async with open_harness(settings, embedder=HashedWords()) as harness:
        monkeypatch.setattr(Indexer, "_round", one_round)
        harness.app.indexer.due(bad)
        harness.app.indexer.due(good)
        working = asyncio.create_task(harness.app.indexer.run())
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await enough.wait()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
    assert tried.count(bad) == 1
