"""A room that is made public before an answer is delivered gets none that was made from its private time."""

import asyncio
from collections.abc import Sequence

import pytest

from bot.delivery.streaming import EMPTY_PART, StreamingDelivery
from bot.script.changes import change_message
from composer.errors import Unavailable
from composer.ingest.rooms import set_room_private
from composer.memory.forget import RETRACTED
from composer.model import CONSOLE, Offer, Turn
from composer.repositories.deliveries import Destination
from composer.repositories.turns import Answer
from composer.settings import AgentSettings, Settings
from composer.turn.answers import ROOM_OPENED
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, RecordedDelivery, open_harness

CAVE = {"room": "cave"}


async def open_cave(harness: AppHarness) -> None:
    agents = harness.app.directory.agents(harness.workspace().tenant_id)
    await set_room_private(harness.app.database, harness.workspace(), agents, "cave", False, harness.clock.tick())


class AwayOnce(RecordedDelivery):
    """A platform that is away when something is to be delivered first; meanwhile the room is made public."""

    def __init__(self, harness: AppHarness) -> None:
        super().__init__()
        self._harness, self._was_away = harness, False

    async def deliver(self, reply: Answer) -> None:
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
    monkeypatch.setattr("composer.turn.worker.TURN_RETRY_SECONDS", 0)
    await harness.say("bob", "the code of the vault is zqlynx", private=True, **CAVE)
    delivery = platform(harness)
    harness.app.turns.serve(CONSOLE, delivery)
    await harness.say("bob", "@nexus what is the code of the vault?", **CAVE)
    assert [reply.text for reply in delivery.replies] == [ROOM_OPENED]
    await harness.say("bob", "@nexus what is the code of the vault?", **CAVE)
    assert len(delivery.replies) == 2
    assert "zqlynx" not in delivery.replies[1].text


class Screen:
    """A platform on which a part of an answer is shown at once (bot.delivery.outbox.Outbox)."""

    edit_interval, limit = 0.0, 2_000

    def __init__(self) -> None:
        self.shown: list[str] = []  # all that was, in order

    async def find(self, to: Destination, key: str) -> str | None:
        return None

    async def post(self, to: Destination, text: str, key: str, offers: Sequence[Offer] = ()) -> str:
        self.shown.append(text)
        return "part"

    async def edit(self, to: Destination, message: str, text: str) -> None:
        self.shown.append(text)

    async def show_typing(self, to: Destination, key: str) -> None:
        pass


@pytest.mark.parametrize("how", ["opened", "deleted", "source deleted", "source edited", "source forgotten", "none"])
async def test_what_is_shown_of_an_answer_while_it_is_written_is_hidden_once_its_room_is_opened_or_it_is_forgotten(
    settings: Settings, how: str
) -> None:
    # Each piece that the model wrote was shown, until the sentence or the notice took its place in the end.
    model, screen, gate = Model(), Screen(), asyncio.Event()
    model.gate = gate
    answer = "The code of the vault, as was said in here, is zqlynx."
    model.says = [answer]
    settings = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),)})

    async def no_links(*_: object) -> dict[str, str]:
        return {}

    async with open_harness(settings, model=model) as harness:

        class Showing(StreamingDelivery):
            async def on_chunk(self, turn: Turn, text: str) -> None:
                await super().on_chunk(turn, text)
                task = self._streams[turn.id].task
                assert task is not None
                await task
                if not gate.is_set():
                    if how == "opened":
                        await open_cave(harness)
                    if how == "deleted":
                        await change_message(harness.app, harness.workspace(), "asked", None)
                    if how == "source deleted":
                        await change_message(harness.app, harness.workspace(), "said", None)
                    if how == "source edited":
                        await change_message(harness.app, harness.workspace(), "said", "nobody knows it")
                    if how == "source forgotten":
                        await harness.command_without_indexing("ada", "/nexus forget zqlynx --yes", **CAVE)
                    gate.set()

        await harness.say("ada", "the code of the vault is zqlynx", private=True, id="said", **CAVE)
        harness.app.turns.serve(CONSOLE, Showing(harness.app, screen, no_links))
        await harness.say("bob", "@nexus what is the code of the vault?", private=True, id="asked", **CAVE)
    assert any("zqlynx" in text for text in screen.shown) is (how == "none")
    assert (EMPTY_PART in screen.shown) is (how != "none")
    assert screen.shown[-1] == {"opened": ROOM_OPENED, "none": answer}.get(how, RETRACTED)


async def test_a_reminder_that_waits_for_its_delivery_is_not_posted_after_the_opening(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("composer.turn.worker.TURN_RETRY_SECONDS", 0)
    await harness.say("bob", "hello", private=True, **CAVE)
    await harness.command("bob", "/nexus remind here in 20 minutes the code is zqlynx", **CAVE)
    delivery = AwayOnce(harness)
    harness.app.turns.serve(CONSOLE, delivery)
    harness.clock.tick(3600)
    assert await harness.app.due_posts.post_due() == 1
    await harness.app.turns.settle()
    assert delivery.replies == []
    assert len(delivery.abandoned) == 1
