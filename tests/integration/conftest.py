"""What the tests over real stores share beside the stage: receiving alone, with no agent behind it."""

from collections.abc import AsyncIterator

import pytest

from composer.settings import Settings
from tests.support.receiver import Receiving, receiving_on


@pytest.fixture
async def taking(settings: Settings) -> AsyncIterator[Receiving]:
    """The log and its cache, on a fresh database."""
    async with receiving_on(settings) as receiving:
        yield receiving
