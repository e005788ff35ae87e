"""Text that is forgotten while its answer is being delivered is retracted where that was posted, too."""

import asyncio
from typing import Any

import asyncpg
import pytest

from bot.delivery.retraction import Retraction
from bot.delivery.streaming import StreamingDelivery
from composer.memory import forget as forgetting
from composer.memory.forget import RETRACTED
from composer.model import CONSOLE, Turn
from composer.repositories.deliveries import Destination
from composer.settings import Settings
from tests.integration.test_opened_while_answering import Screen
from tests.support.harness import AppHarness
from tests.support.waiting import until

pytestmark = pytest.mark.integration

ROOM = {"room": "general"}


class WholeAnswers(StreamingDelivery):
    """Posts an answer once it is whole."""

    async def on_chunk(self, turn: Turn, text: str) -> None:
        pass


async def test_an_answer_that_is_posted_while_its_source_is_being_forgotten_is_retracted(
    harness: AppHarness, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # README, "Forgetting": a notice replaces the answer where it was posted. An erasure looked up what was posted,
    # and then took its time; what was posted meanwhile stayed.
    posted, goes_on = asyncio.Event(), asyncio.Event()
    replace_replies, erasing = forgetting._replace_replies, set[asyncio.Task[Any]]()

    async def take_time(*arguments: Any) -> None:
        posted.set()
        await goes_on.wait()
        await replace_replies(*arguments)

    class Slow(Screen):
        async def post(self, to: Destination, text: str, key: str) -> str:
            erasing.add(asyncio.create_task(harness.change("said", None)))
            await posted.wait()
            return await super().post(to, text, key)

    async def recorded_or_waiting() -> bool:
        return bool(await one(settings, "SELECT state = 'sent' FROM turns")) or bool(
            await one(settings, "SELECT count(*) FROM pg_locks WHERE NOT granted")
        )

    async def no_links(*_: object) -> dict[str, str]:
        return {}

    await harness.say("alice", "the vault is zqorchid", id="said", **ROOM)
    monkeypatch.setattr(forgetting, "_replace_replies", take_time)
    screen = Slow()
    harness.app.turns.serve(CONSOLE, WholeAnswers(harness.app, screen, no_links))
    asked = asyncio.create_task(harness.say("bob", "@nexus what is the vault?", **ROOM))
    await posted.wait()
    await until(recorded_or_waiting)
    goes_on.set()
    await asked
    await asyncio.gather(*erasing)
    assert "zqorchid" in screen.shown[0]
    await Retraction(harness.app, CONSOLE, screen).catch_up()
    assert screen.shown[-1] == RETRACTED


async def one(settings: Settings, query: str) -> Any:
    connection = await asyncpg.connect(settings.database_url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()
