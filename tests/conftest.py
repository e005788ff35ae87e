"""Shared ground of the tests: real Postgres and Valkey from the wheels, one pair for each worker of the run.

Each test gets a database of its own, cloned from a migrated template, and an empty Valkey. What is dear and keeps
nothing of a test is made once: the cluster's files for a run, the network of MiniLM for a worker.
"""

import functools
import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import psutil
import pytest
import redis

from bot.commands.command import CommandAnswer
from bot.commands.table import run_command
from bot.console.conversations import question
from bot.script.changes import change_message
from bot.script.places import PLATFORM, incoming, place_of
from composer.app import App, open_app
from composer.ingest.receive import Received, move
from composer.model import Place, Turn
from composer.settings import Settings
from composer.stores import minilm
from composer.stores.embedded import servers as embedded
from composer.stores.embedded.servers import EmbeddedServers, Servers
from composer.stores.postgres import apply_migrations
from composer.turn.compose import Composed
from composer.turn.respond import Reply
from composer.workspace import Workspace
from tests.cluster import cluster_of, furnish, run_folder

# A run makes and deletes some hundred thousand files, and on a disk that took a third of all its time.
IN_MEMORY = Path("/dev/shm")
ROOM = 6 << 30  # bytes, of there and of the memory; a run needs one of them


def _in_memory() -> None:
    """Let everything that is made for a while lie in memory, where there is enough; workers and programs inherit it."""
    if "TMPDIR" in os.environ or not os.access(IN_MEMORY, os.W_OK):
        return
    there = os.statvfs(IN_MEMORY)
    runs_programs = not there.f_flag & os.ST_NOEXEC
    if runs_programs and min(there.f_bavail * there.f_frsize, psutil.virtual_memory().available) >= ROOM:
        os.environ["TMPDIR"] = str(IN_MEMORY)
        tempfile.tempdir = None


_in_memory()

START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
_numbers = itertools.count(1)


class ManualClock:
    """A clock that a test moves; `tick` is a minute unless told otherwise."""

    def __init__(self, now: datetime = START) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def set(self, now: datetime) -> None:
        self._now = now

    def tick(self, seconds: float = 60) -> datetime:
        self._now += timedelta(seconds=seconds)
        return self._now


class Collected:
    """A door that keeps what is delivered (composer.turn.worker.Door)."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.thought_of: list[UUID] = []
        self.pieces: list[str] = []
        self.troubles: list[str] = []

    def on_start(self, turn: Turn) -> None:
        self.thought_of.append(turn.id)

    async def on_chunk(self, turn: Turn, text: str) -> None:
        self.pieces.append(text)

    async def deliver(self, reply: Reply) -> None:
        self.replies.append(reply)

    async def on_delay(self, turn: Turn, sentence: str) -> None:
        self.troubles.append(sentence)


# By the time that they take, so that no worker is left alone with a long one at the end.
LONGEST_FILES = (
    "property/test_non_interference.py",
    "property/test_visibility.py",
    "property/test_planted_bugs.py",
    "e2e/test_bad_input.py",
    "e2e/test_door_kill.py",
    "integration/test_canaries.py",
    "e2e/test_kill.py",
    "integration/test_embedded.py",
    "integration/test_compaction.py",
    "integration/test_jobs.py",
    "integration/test_outages.py",
    "e2e/test_discord_faults.py",
    "e2e/test_discord_once.py",
    "e2e/test_slack_faults.py",
    "e2e/",
    "integration/",
    "wires/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first."""

    def place(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((n for n, part in enumerate(LONGEST_FILES) if f"tests/{part}" in path), len(LONGEST_FILES))

    items.sort(key=place)


@dataclass(frozen=True)
class Stage:
    """An open app with a door and a clock, and short words for what tests do with it.

    A place is `room="general"`, `dm="nexus"` or `session="s1"`, with `thread=` and `private=` where it has them.
    """

    app: App
    door: Collected
    clock: ManualClock
    name: str = "acme"

    def workspace(self, name: str | None = None) -> Workspace:
        return self.app.directory.workspace(PLATFORM, name or self.name)

    async def say(
        self, user: str, text: str, *, id: str | None = None, workspace: str | None = None, **where: Any
    ) -> Received:
        """Say something, wait for the answers, and index it."""
        place, here = _place(where), self.workspace(workspace)
        said = incoming(here, place, user, text, self.clock.tick(), id=id or f"m{next(_numbers)}")
        received = await self.app.receive(here, [said])
        await self.app.turns.settle()
        await self.app.indexer.catch_up(here.tenant_id)
        return received

    async def ask(self, user: str, text: str, **options: Any) -> Reply:
        """Say something that wants an answer, and return the answer."""
        before = len(self.door.replies)
        await self.say(user, text, **options)
        assert len(self.door.replies) == before + 1, "exactly one answer was expected"
        return self.door.replies[-1]

    async def command(self, user: str, text: str, *, workspace: str | None = None, **where: Any) -> CommandAnswer:
        here = self.workspace(workspace)
        said = incoming(here, _place(where), user, text, self.clock.tick(), id=f"c{next(_numbers)}")
        answer = await run_command(self.app, here, said)
        await self.app.indexer.catch_up(here.tenant_id)
        return answer

    async def compose(self, user: str, text: str, *, workspace: str | None = None, **where: Any) -> Composed:
        """The prompt that would answer this, as `nexus compose` shows it."""
        asked, _ = await question(
            self.app,
            self.workspace(workspace),
            _place(where),
            user,
            text,
            self.clock.tick(0),
            top_k=None,
            id="question",
        )
        return await self.app.composer.compose(asked)

    async def move(self, user: str, room: str, *, joined: bool, workspace: str | None = None) -> None:
        here = self.workspace(workspace)
        agents = self.app.directory.agents(here.tenant_id)
        async with self.app.store.transaction(here.tenant_id) as tx:
            await move(tx, here, agents, room, user, user, joined=joined, now=self.clock.tick())

    async def change(self, id: str, text: str | None, *, workspace: str | None = None) -> None:
        """Edit a message, or delete it (None)."""
        self.clock.tick()
        await change_message(self.app, self.workspace(workspace), id, text)
        await self.app.indexer.catch_up(self.workspace(workspace).tenant_id)


def _place(where: dict[str, Any]) -> Place:
    return place_of(
        where.get("room"),
        where.get("dm"),
        where.get("session"),
        where.get("thread"),
        where.get("private"),
        where.get("agent"),
    )


# What is lost when the machine goes down is a matter of tests with servers of their own.
IN_A_HURRY = {"fsync": "off", "full_page_writes": "off", "wal_compression": "off"}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a database cluster with a migrated database `template`, to be copied."""
    return cluster_of(run_folder(tmp_path_factory), _make_template)


@pytest.fixture(scope="session")
def servers(cluster: Path) -> Iterator[Servers]:
    """Postgres and Valkey of this worker, with a migrated database `template`."""
    home = Path(tempfile.mkdtemp(prefix="nexus-test-"))
    home.chmod(0o755)
    own = EmbeddedServers(furnish(home, cluster))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(embedded, "POSTGRES_SETTINGS", embedded.POSTGRES_SETTINGS | IN_A_HURRY)
            started = own.start()
        yield started
    finally:
        own.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def one_network() -> Iterator[None]:
    """The network of MiniLM is loaded once for all apps of a worker: it keeps nothing of a text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minilm, "_Model", functools.lru_cache(minilm._Model))
        yield


def database_url(base: str, name: str) -> str:
    """The URL of another database on the same server."""
    return base.replace("/nexus?", f"/{name}?")


async def _make_template(base: str) -> None:
    await _admin(base, "CREATE DATABASE template")
    await apply_migrations(database_url(base, "template"))


async def _admin(base: str, statement: str) -> None:
    connection = await asyncpg.connect(base)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture
async def fresh_url(servers: Servers) -> AsyncIterator[str]:
    """The URL of a database that is migrated and empty."""
    name = f"test{next(_numbers)}"
    await _admin(servers.database_url, f"CREATE DATABASE {name} TEMPLATE template")
    yield database_url(servers.database_url, name)
    await _admin(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def settings(servers: Servers, fresh_url: str, tmp_path: Path) -> Settings:
    """Settings over a fresh database and an empty Valkey."""
    redis.Redis.from_url(servers.redis_url).flushall()
    return Settings(home=tmp_path, database_url=fresh_url, redis_url=servers.redis_url)


Staging = Callable[..., AbstractAsyncContextManager[Stage]]


@asynccontextmanager
async def stage_on(settings: Settings, **options: Any) -> AsyncIterator[Stage]:
    """An open app on these settings, with a door for the answers; indexing happens when a test says so."""
    clock = options.pop("clock", None) or ManualClock()
    async with open_app(settings, clock=clock, index=False, **options) as app:
        door = Collected()
        app.turns.serve(PLATFORM, door)
        yield Stage(app, door, clock)


@pytest.fixture
async def stage(settings: Settings) -> AsyncIterator[Stage]:
    """An open app on a fresh database."""
    async with stage_on(settings) as staged:
        yield staged
