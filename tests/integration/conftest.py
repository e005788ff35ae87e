"""Fixtures of tests that only receive, with no agent behind it, of those that ask the API, and of those that make an
MCP server each."""

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.settings import AgentSettings, Settings
from tests.support.discord.harness import Model
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.made_once import shared_tools
from tests.support.receiver import Receiver, open_receiver
from tests.support.web import served_at


@pytest.fixture
async def receiver(settings: Settings) -> AsyncIterator[Receiver]:
    """The log and its cache, on a fresh database."""
    async with open_receiver(settings) as receiver:
        yield receiver


@pytest.fixture
async def model() -> Model:
    """A model that says what a test tells it to."""
    return Model()


@pytest.fixture
async def answering(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    """An open app whose agent asks `model`, and which answers far more requests than a test makes."""
    many = {"agents": (AgentSettings(model="gpt-4o"),), "requests_per_minute": 10_000}
    async with open_harness(settings.model_copy(update=many), model=model) as harness:
        yield harness


@pytest.fixture
def hub(harness: AppHarness) -> Hub:
    """Entries of people and their tools in `harness`."""
    return Hub(harness)


@pytest.fixture
async def client(harness: AppHarness) -> AsyncIterator[httpx2.AsyncClient]:
    """Requests to the API of `harness`, on a real port."""
    served = web_app(harness.app, Metrics([]), {}, None)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def tools_made_once() -> Iterator[None]:
    """Let the MCP servers of a worker share what is the same for each, from here on."""
    with shared_tools():
        yield
