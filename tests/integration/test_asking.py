"""A question that is given as a command is answered from what holds when its answer is shown."""

from collections.abc import AsyncIterator, Sequence

import pytest

from bot.commands.command import OUTDATED
from composer.errors import Refused
from composer.model import Agent, Usage
from composer.ports.models import ChatMessage, Chunk
from composer.settings import AgentSettings, Settings
from tests.support.harness import AppHarness, open_harness


class Forgetting:
    """A model in whose time alice forgets something."""

    def __init__(self) -> None:
        self.harness: AppHarness | None = None
        self.forgets = ""

    async def stream(self, agent: Agent, messages: Sequence[ChatMessage]) -> AsyncIterator[Chunk]:
        if self.harness is not None and self.forgets:
            await self.harness.command("alice", f"/nexus forget {self.forgets} --yes", room="general")
        yield Chunk("It is behind the orchid.", Usage(1, 1))


@pytest.mark.parametrize("forgotten", ["orchid", "heron"])
async def test_an_answer_from_what_was_forgotten_meanwhile_is_not_shown(settings: Settings, forgotten: str) -> None:
    model = Forgetting()
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),)})
    async with open_harness(plain, model=model) as harness:
        await harness.say("alice", "the vault is behind the orchid", room="general")
        await harness.say("alice", "a heron nests elsewhere", room="other")
        model.harness, model.forgets = harness, forgotten
        if forgotten == "orchid":
            with pytest.raises(Refused, match=OUTDATED):
                await harness.command("bob", "/nexus where is the vault?", room="general")
        else:
            answer = await harness.command("bob", "/nexus where is the vault?", room="general")
            assert answer.text.startswith("It is behind the orchid.")
