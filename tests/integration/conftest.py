"""The fixture of tests that only receive, with no agent behind it."""

from collections.abc import AsyncIterator

import pytest

from composer.settings import Settings
from tests.support.receiver import Receiver, open_receiver


@pytest.fixture
async def receiver(settings: Settings) -> AsyncIterator[Receiver]:
    """The log and its cache, on a fresh database."""
    async with open_receiver(settings) as receiver:
        yield receiver
