"""Fixtures for every test: real Postgres and Valkey from the wheels, one pair for each worker of the run.

Each test gets an empty, migrated database and an empty Valkey. The tests of a worker share that database, unless one is
marked `own_database` (tests/support/kept_database.py). What else is expensive and keeps nothing of a test is made once:
the cluster's files for a run, the network of MiniLM for a worker.
"""

import asyncio
import functools
import gc
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import hypothesis
import pytest
import pytest_asyncio
import redis
import structlog
from execnet import XSpec

from bot.web import limits
from composer.app import composition
from composer.settings import Settings
from composer.stores.database.postgres import SERVICE_ROLE
from composer.stores.embedded.servers import EmbeddedServers, Servers
from composer.stores.models import configured, minilm
from composer.text.digests import text_digest
from tests.support import runs
from tests.support.cpu_times import CpuTimes
from tests.support.databases import clone, copy_cluster, make_cluster, shared_folder, shared_type_lookups, start_fast
from tests.support.delays import delay_everything
from tests.support.forked_workers import fork_workers
from tests.support.harness import AppHarness, open_harness
from tests.support.kept_database import KeptDatabase, connecting, lending, preparing
from tests.support.made_once import shared_certificates

# By the time that they take, so that no worker is left alone with a long one at the end.
LONGEST_FILES = (
    "deep/e2e/test_slack_faults.py",
    "deep/property/test_worlds.py",
    "deep/e2e/test_discord_faults.py",
    "deep/integration/test_canaries.py",
    "deep/property/test_non_interference.py",
    "deep/e2e/",
    "deep/property/",
    "deep/integration/",
    "integration/test_command_rights.py",
    "property/test_worlds.py",
    "e2e/",
    "integration/",
    "wires/",
)
# An example may take as long as a busy machine makes it take.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")

_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu", action="store_true", help="print the processor's time of each file; with -n 0")
    parser.addoption("--delays", metavar="SEED", help="delay statements and requests at random: races show")


def pytest_configure(config: pytest.Config) -> None:
    """Give the run its folder, after what killed runs left was swept; each worker marks it as in use."""
    # Whatever a shell set in the background: programs would inherit it. With Python's own handler, asyncio would put
    # its own in its place for each test and each fixture, and describe it with its task to find out which it is.
    signal.signal(signal.SIGINT, _interrupt)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup: the run goes on without a terminal, as it is to
        signal.signal(signal.SIGHUP, _go_on)
    is_worker = hasattr(config, "workerinput")
    if (seed := config.getoption("--delays")) and (is_worker or not config.getoption("numprocesses")):
        delay_everything(seed)
    if is_worker:
        gc.disable()  # until all is imported
        runs.hold(runs.current())
    else:
        config.stash[RUN] = runs.begin(runs.base_folder())
        if config.getoption("--cpu"):
            config.pluginmanager.register(CpuTimes())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: Sequence[XSpec]) -> None:
    """Let the workers be forks of this process, which import nothing anew."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    fork_workers(config, specs, patch)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the run's folder; after failures it stays, to be looked at, until the next run."""
    if (folder := config.stash.get(RUN, None)) is None:
        return
    if config.stash.get(FAILED, False):
        runs.end_processes(folder)
    else:
        runs.remove(folder)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[FAILED] = exitstatus != pytest.ExitCode.OK


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _go_on(number: int, frame: object) -> None:
    """Ignore a signal. A program that is started does not inherit this, as it would SIG_IGN."""


RUN = pytest.StashKey[Path]()
FAILED = pytest.StashKey[bool]()


def pytest_collection_finish() -> None:
    """Let garbage collection pass over what the imports made, and come seldom: it would look at all of a test's objects
    again and again, for a tenth of the time of the property tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, where several workers share the tests; one process keeps the order it was given."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return

    def place(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((n for n, part in enumerate(LONGEST_FILES) if f"tests/{part}" in path), len(LONGEST_FILES))

    items.sort(key=place)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a database cluster with a migrated database `template`, to be copied. Several runs of the same
    migrations share one in the folder that NEXUS_TESTS_CLUSTER names (tests/mutants)."""
    shared = os.environ.get("NEXUS_TESTS_CLUSTER")
    return make_cluster(Path(shared) if shared else shared_folder(tmp_path_factory))


@pytest.fixture(scope="session")
def servers(cluster: Path) -> Iterator[Servers]:
    """Postgres and Valkey of this worker, with a migrated database `template`. Runs that come one after another use
    the same ones, in the data folder that NEXUS_TESTS_SERVERS names (tests/mutants)."""
    if kept := os.environ.get("NEXUS_TESTS_SERVERS"):
        joined = EmbeddedServers(Path(kept))
        try:
            yield joined.start()
        finally:
            joined.stop()
        return
    home = Path(tempfile.mkdtemp(prefix="nexus-worker-"))
    home.chmod(0o755)
    own = EmbeddedServers(copy_cluster(home, cluster))
    try:
        yield start_fast(own)
    finally:
        own.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def one_network() -> Iterator[None]:
    """Load the network of MiniLM once for all apps of a worker: it keeps nothing of a text. It runs in one thread, for
    three quarters of the processor's time of two, and with the same result. Each text runs once, as three of four come
    up again. Tests of the network itself use `without_kept_vectors`. Where no embedder is set, it is this one."""
    network, vectors = minilm._LoadedModel, dict[bytes, Any]()
    prepare = network.prepared

    @functools.wraps(prepare)
    def prepared(self: minilm._LoadedModel, text: str) -> minilm.Prepared:
        key = text_digest(text)
        if key not in vectors:
            vectors[key] = prepare(self, text)()
        return lambda: vectors[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "prepared", prepared)
        patch.setattr(minilm, "_LoadedModel", functools.lru_cache(network))
        patch.setattr(minilm, "MOST_THREADS", 1)
        patch.setattr(configured, "default_embedder", minilm.MiniLM)
        yield


@pytest.fixture(scope="session", autouse=True)
def refused_at_once() -> Iterator[None]:
    """Nobody who asks too often is kept waiting for the refusal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "HELD_SECONDS", 0.0)
        yield


@pytest.fixture(scope="module")
def without_kept_vectors(one_network: None) -> Iterator[None]:
    """Let the network run for each text, also for one that it has seen."""
    network: Any = vars(minilm)["_LoadedModel"].__wrapped__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "prepared", network.prepared.__wrapped__)
        yield


@pytest.fixture(scope="session", autouse=True)
def plain_tracebacks() -> Iterator[None]:
    """Log exceptions as text. Where nothing configures it, structlog lets rich draw each with its source and variables:
    that took a quarter of the time of the tests in which calls fail."""
    with pytest.MonkeyPatch.context() as patch:
        for processor in structlog.get_config()["processors"]:
            if isinstance(processor, structlog.dev.ConsoleRenderer):
                patch.setattr(processor, "exception_formatter", structlog.dev.plain_traceback)
        yield


@pytest.fixture(scope="session", autouse=True)
def made_once() -> Iterator[None]:
    """Let all connections and clients of a worker share what is the same for each."""
    with shared_type_lookups(), shared_certificates():
        yield


@pytest.fixture
async def no_tasks_left() -> AsyncIterator[None]:
    """Cancel what a test has left running in the loop, which is that of the next test too."""
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@pytest.fixture
async def fresh_url(servers: Servers, no_tasks_left: None) -> AsyncIterator[str]:
    """The URL of a database that is migrated and empty."""
    async with clone(servers.database_url, f"test{next(_numbers)}") as url:
        yield url


@pytest.fixture(scope="session", autouse=True)
def kept() -> Iterator[dict[str, KeptDatabase]]:
    """The database that the tests of this worker share, by its URL, once a test has needed it."""
    databases: dict[str, KeptDatabase] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncpg, "create_pool", lending(lambda url: databases.get(str.__str__(url))))
        patch.setattr(asyncpg, "connect", connecting(lambda url: databases.get(str.__str__(url))))
        patch.setattr(composition, "prepare", preparing(lambda url: databases.get(str.__str__(url))))
        yield databases


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def last_kept(kept: dict[str, KeptDatabase]) -> AsyncIterator[None]:
    """Drop the shared database at the end."""
    yield
    for database in kept.values():
        await database.drop()


@pytest.fixture
async def emptied_url(
    servers: Servers, kept: dict[str, KeptDatabase], last_kept: None, no_tasks_left: None
) -> AsyncIterator[str]:
    """The URL of the database that the tests of this worker share; it is migrated and empty."""
    if not kept:
        made = await KeptDatabase.make(servers.database_url)
        kept[str.__str__(made.url.with_login(SERVICE_ROLE))] = made
    [(key, database)] = kept.items()
    yield database.url
    if not await database.reset():
        del kept[key]
        await database.drop()


@pytest.fixture(scope="session")
def valkey_client(servers: Servers) -> Iterator[redis.Redis]:
    """A client of this worker's Valkey."""
    with redis.Redis.from_url(servers.redis_url) as client:
        yield client


@pytest.fixture
def settings(request: pytest.FixtureRequest, servers: Servers, valkey_client: redis.Redis, tmp_path: Path) -> Settings:
    """Settings over an empty database, the test's own where it asks for that, and an empty Valkey."""
    own = request.node.get_closest_marker("own_database") is not None
    url = request.getfixturevalue("fresh_url" if own else "emptied_url")
    valkey_client.flushall()
    return Settings(home=tmp_path, database_url=url, redis_url=servers.redis_url, embedder="minilm")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_settings(
    servers: Servers, valkey_client: redis.Redis, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Settings]:
    """Settings over a database that tests of a module share: those that see nothing of what the others did, since they
    are refused, or each act as somebody else. To open an app takes longer than most of these. They run in a loop of the
    module's own, which ends with it."""
    valkey_client.flushall()
    async with clone(servers.database_url, f"shared{next(_numbers)}") as url:
        home = tmp_path_factory.mktemp("shared")
        yield Settings(home=home, database_url=url, redis_url=servers.redis_url, embedder="minilm")


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    """An open app on a fresh database."""
    async with open_harness(settings) as opened:
        yield opened
