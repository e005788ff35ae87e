"""What several of these tests run against: Nexus with a model, whose limits no program meets."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from composer.settings import AgentSettings, Settings
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness

UNLIMITED: Final[dict[str, Any]] = {"agents": (AgentSettings(model="gpt-4o"),), "requests_per_minute": 100_000}


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update=UNLIMITED), model=Model()) as harness:
        yield harness
