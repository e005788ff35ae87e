"""A room that is made public before an answer is delivered gets none that was made from its private time."""

import pytest

from bot.script.places import PLATFORM
from composer.errors import Unavailable
from composer.ingest.rooms import set_room_private
from composer.model import Turn
from composer.turn.answers import ROOM_OPENED
from composer.turn.delivery import OutgoingAnswer
from tests.support.harness import AppHarness, RecordedDelivery

pytestmark = pytest.mark.integration

CAVE = {"room": "cave"}


async def open_cave(harness: AppHarness) -> None:
    agents = harness.app.directory.agents(harness.workspace().tenant_id)
    await set_room_private(harness.app.database, harness.workspace(), agents, "cave", False, harness.clock.tick())


class AwayOnce(RecordedDelivery):
    """A platform that is away when something is to be delivered first; meanwhile the room is made public."""

    def __init__(self, harness: AppHarness) -> None:
        super().__init__()
        self._harness, self._was_away = harness, False

    async def deliver(self, reply: OutgoingAnswer) -> None:
        if not self._was_away:
            self._was_away = True
            await open_cave(self._harness)
            raise Unavailable("The platform does not answer.")
        await super().deliver(reply)


class OpensWhileStreaming(RecordedDelivery):
    """The room is made public while the model answers."""

    def __init__(self, harness: AppHarness) -> None:
        super().__init__()
        self._harness = harness

    async def on_chunk(self, turn: Turn, text: str) -> None:
        if not self.chunks:
            await open_cave(self._harness)
        await super().on_chunk(turn, text)


@pytest.mark.parametrize("platform", [AwayOnce, OpensWhileStreaming])
async def test_an_answer_from_a_rooms_private_time_is_not_delivered_after_its_opening(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch, platform: type[AwayOnce] | type[OpensWhileStreaming]
) -> None:
    monkeypatch.setattr("composer.turn.worker.RETRY_SECONDS", 0)
    await harness.say("bob", "the code of the vault is zqlynx", private=True, **CAVE)
    delivery = platform(harness)
    harness.app.turns.serve(PLATFORM, delivery)
    await harness.say("bob", "@nexus what is the code of the vault?", **CAVE)
    assert [reply.text for reply in delivery.replies] == [ROOM_OPENED]
    await harness.say("bob", "@nexus what is the code of the vault?", **CAVE)
    assert len(delivery.replies) == 2
    assert "zqlynx" not in delivery.replies[1].text


async def test_a_reminder_that_waits_for_its_delivery_is_not_posted_after_the_opening(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("composer.turn.worker.RETRY_SECONDS", 0)
    await harness.say("bob", "hello", private=True, **CAVE)
    await harness.command("bob", "/nexus remind here in 20 minutes the code is zqlynx", **CAVE)
    delivery = AwayOnce(harness)
    harness.app.turns.serve(PLATFORM, delivery)
    harness.clock.tick(3600)
    assert await harness.app.due_posts.post_due() == 1
    await harness.app.turns.settle()
    assert delivery.replies == []
    assert len(delivery.abandoned) == 1
