"""Fixtures of tests that only receive, with no agent behind it, of those that ask the API, and of those that make an
MCP server each."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import httpx2
import pytest

from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.settings import AgentSettings, Settings
from composer.stores.database.statements import PostgresStatements
from tests.support.api import cookie_of
from tests.support.discord.harness import Model
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.made_once import shared_tools
from tests.support.pages import Person
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
async def url(harness: AppHarness) -> AsyncIterator[str]:
    """The address of the web port of `harness`, a real one."""
    async with served_at(web_app(harness.app, Metrics([]), {}, None)) as url:
        yield url


@pytest.fixture
async def client(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """Requests to the API of `harness`, on a real port."""
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
        yield client


@pytest.fixture
async def alice(harness: AppHarness, client: httpx2.AsyncClient) -> Person:
    """alice in a browser, who has said something in a room and has a page open."""
    await harness.say("alice", "good morning", room="general")
    person = Person(client, await cookie_of(harness, "alice"))
    await person.page("/you")
    return person


@pytest.fixture
async def raw(settings: Settings) -> AsyncIterator[asyncpg.Connection]:
    """The test's database, past the app and its rules."""
    connection = await asyncpg.connect(settings.database_url)
    yield connection
    await connection.close()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each statement is run."""
    counts: Counter[str] = Counter()
    for method in ("fetch", "fetch_one", "fetch_value", "execute"):
        doing = getattr(PostgresStatements, method)

        async def counted(self: object, *args: object, _doing: Any = doing, **options: object) -> object:
            counts[str(args[0])] += 1
            return await _doing(self, *args, **options)

        monkeypatch.setattr(PostgresStatements, method, counted)
    return counts


@pytest.fixture(scope="session")
def tools_made_once() -> Iterator[None]:
    """Let the MCP servers of a worker share what is the same for each, from here on."""
    with shared_tools():
        yield
