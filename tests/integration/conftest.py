"""Fixtures of tests that only receive, with no agent behind it, and of those that make an MCP server each."""

from collections.abc import AsyncIterator, Iterator

import pytest

from composer.settings import Settings
from tests.support.made_once import shared_tools
from tests.support.receiver import Receiver, open_receiver


@pytest.fixture
async def receiver(settings: Settings) -> AsyncIterator[Receiver]:
    """The log and its cache, on a fresh database."""
    async with open_receiver(settings) as receiver:
        yield receiver


@pytest.fixture(scope="session")
def tools_made_once() -> Iterator[None]:
    """Let the MCP servers of a worker share what is the same for each, from here on."""
    with shared_tools():
        yield
