"""The indexer behind the doors: what comes in while it works is not left lying."""

import asyncio
import uuid
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from bot.console.script import incoming, place_of
from composer import worker
from composer.app import App
from composer.ports import Vectors
from composer.receive import Workspace
from composer.settings import Settings
from composer.worker import Indexer
from tests.conftest import stage_on
from tests.property.embedder import HashedWords

pytestmark = pytest.mark.integration


class Interrupted(HashedWords):
    """While it embeds the first time, somebody speaks."""

    app: App
    here: Workspace
    again = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        said = incoming(self.here, place_of("general", None, None), "bob", "me too", self.app.clock.now(), id="late")
        received = await self.app.receive(self.here, [said])
        if not received.new:
            self.again.set()
        return await super().embed(texts)


async def test_what_is_said_while_the_indexer_embeds_is_indexed_without_another_word(settings: Settings) -> None:
    embedder = Interrupted()
    async with stage_on(settings, embedder=embedder) as stage:
        embedder.app, embedder.here = stage.app, stage.workspace()
        working = asyncio.create_task(stage.app.indexer.run())
        try:
            place = place_of("general", None, None)
            said = incoming(embedder.here, place, "alice", "tea is good", stage.clock.now(), id="first")
            await stage.app.receive(embedder.here, [said])
            async with asyncio.timeout(60):
                await embedder.again.wait()  # only the late message's own embedding comes a second time
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def test_an_error_that_nobody_foresaw_ends_no_indexing_and_holds_up_no_other_tenant(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "TRY_AGAIN", 0.01)
    tried: list[uuid.UUID] = []
    enough = asyncio.Event()

    async with stage_on(settings, embedder=HashedWords()) as stage:
        good, bad = uuid.uuid4(), uuid.uuid4()

        async def catch_up(_: Indexer, tenant: uuid.UUID) -> None:
            tried.append(tenant)
            if tried.count(bad) >= 2 and good in tried:
                enough.set()
            if tenant == bad:
                raise RuntimeError("nobody foresaw this")

        monkeypatch.setattr(Indexer, "catch_up", catch_up)
        stage.app.indexer.due(bad)
        stage.app.indexer.due(good)
        with capture_logs() as logs:
            working = asyncio.create_task(stage.app.indexer.run())
            async with asyncio.timeout(60):
                await asyncio.wait({working, asyncio.create_task(enough.wait())}, return_when="FIRST_COMPLETED")
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
    assert enough.is_set()
    assert "index.failed" in [entry["event"] for entry in logs]
