"""A copy of the code to which mutants are applied, and the processes and servers that run its tests."""

import asyncio
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import asyncpg
import redis

from composer.stores.embedded.servers import EmbeddedServers, Servers
from tests.mutants.forks import Request, Run
from tests.mutants.mutant import QUERIES, ROOT, Mutant
from tests.support.databases import TEMPLATE, copy_cluster, run_sql, start_fast

COPIED: Final = ("composer", "bot", "jobs", "sql", "tests", "docs", "pyproject.toml", "README.md")
OWN: Final = ("composer", "bot", "jobs", "sql", "tests")
SCHEMA: Final = "sql/schema.sql"
TIMEOUT_SECONDS: Final = 900
MANY_MODULES: Final = 50  # that are worth the start of another process
BASE_DATABASES: Final = ("postgres", "template0", "template1", "nexus", TEMPLATE)
# What the databases of a cluster share, and a run could leave changed.
SHARED: Final = """
    SELECT concat_ws('|',
        (SELECT string_agg(to_jsonb(r)::text, ',' ORDER BY rolname) FROM pg_authid AS r),
        (SELECT string_agg(to_jsonb(m)::text, ',' ORDER BY oid) FROM pg_auth_members AS m),
        (SELECT string_agg(to_jsonb(s)::text, ',' ORDER BY setdatabase, setrole) FROM pg_db_role_setting AS s))
"""


class Workplace:
    """A copy of the code below `folder`, in which one run of tests at a time takes place. `cluster` is the folder with
    the files of the database cluster, which all workplaces copy."""

    def __init__(self, folder: Path, cluster: Path) -> None:
        self._folder, self._cluster = folder, cluster
        self._code = folder / "code"
        self._code.mkdir(mode=0o755, parents=True)
        folder.chmod(0o755)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self._code / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
            else:
                shutil.copy(source, self._code / name)
        self._servers = _KeptServers(folder, cluster)
        self._modules: list[str] = []  # that tests import
        self._forking: dict[bool, subprocess.Popen[str]] = {}  # by whether they have imported our own code, too

    def run(self, tests: Sequence[str], only: Sequence[str] = (), mutant: Mutant | None = None) -> Run:
        """Run tests until one fails, with a mutant or without: arguments of pytest, and the ids of those that they name
        which are to run, or all."""
        if mutant is None:
            return self._run(tests, only, environment=self._servers.environment(), own_code=False)
        with self._applied(mutant):
            # The schema needs a cluster of its own. Statements are read when one is needed, so all code may be there.
            migrates = mutant.file == SCHEMA
            environment = {} if migrates else self._servers.environment()
            return self._run(tests, only, environment=environment, own_code=mutant.file.startswith(QUERIES))

    def log(self) -> str:
        """What pytest printed in the latest run."""
        return (self._folder / "log").read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        """End the processes and the servers."""
        self._end_processes()
        self._servers.close()

    @contextmanager
    def _applied(self, mutant: Mutant) -> Iterator[None]:
        path = self._code / mutant.file
        before = mutant.apply(self._code)
        _forget_compiled(path)
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")
            _forget_compiled(path)

    def _run(self, tests: Sequence[str], only: Sequence[str], *, environment: dict[str, str], own_code: bool) -> Run:
        result, log = str(self._folder / "result"), str(self._folder / "log")
        request = Request(list(tests), list(only), environment, TIMEOUT_SECONDS, result, log)
        process = self._process(own_code)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asdict(request)) + "\n")
        process.stdin.flush()
        run = Run(**json.loads(process.stdout.readline()))
        self._servers.reset()
        self._know(run.modules)
        return run

    def _know(self, modules: Sequence[str]) -> None:
        """Import before the next runs what this one has imported, if it was much."""
        new = [name for name in modules if name not in self._modules]
        if len(new) >= MANY_MODULES:
            self._end_processes()
            self._modules += new

    def _process(self, own_code: bool) -> subprocess.Popen[str]:
        if own_code not in self._forking:
            own = {name for name in self._modules if name.partition(".")[0] in OWN}
            modules = [name for name in self._modules if name not in own or (own_code and _is_plain(name))]
            names = self._folder / "modules"
            names.write_text(json.dumps(modules), encoding="utf-8")
            self._forking[own_code] = subprocess.Popen(
                [sys.executable, "-m", "tests.mutants.forks", str(names)],
                cwd=self._code,
                env=os.environ | {"PYTHONPATH": str(self._code), "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self._forking[own_code]

    def _end_processes(self) -> None:
        for process in self._forking.values():
            process.communicate()  # each ends with its input
        self._forking.clear()


@dataclass(slots=True)
class _KeptServers:
    """PostgreSQL and Valkey that stay between runs, as long as each leaves them as it found them."""

    folder: Path
    cluster: Path
    _servers: EmbeddedServers | None = None
    _where: Servers | None = None
    _made: str = ""

    def environment(self) -> dict[str, str]:
        """The variables by which tests use the servers; starts them."""
        home = self.folder / "servers"
        if self._servers is None:
            shutil.rmtree(home, ignore_errors=True)
            self._servers = EmbeddedServers(copy_cluster(home, self.cluster))
            self._where = start_fast(self._servers)
            self._made = asyncio.run(_shared(self._where))
        return {"NEXUS_TESTS_SERVERS": str(home), "NEXUS_TESTS_CLUSTER": str(self.cluster.parent.parent)}

    def reset(self) -> None:
        """Remove what a run has left; servers that it has changed are made anew."""
        if self._where is not None:
            with redis.Redis.from_url(self._where.redis_url) as cache:
                cache.flushall()
            if asyncio.run(_emptied(self._where)) != self._made:
                self.close()

    def close(self) -> None:
        """Stop the servers."""
        if self._servers is not None:
            self._servers.stop()
        self._servers = self._where = None


async def _emptied(where: Servers) -> str:
    """Drop the databases that a run has left; return what those that stay share."""
    connection = await asyncpg.connect(where.database_url)
    try:
        left = await connection.fetch("SELECT datname FROM pg_database WHERE datname <> ALL ($1)", BASE_DATABASES)
    finally:
        await connection.close()
    for row in left:
        await run_sql(where.database_url, f'DROP DATABASE "{row["datname"]}" WITH (FORCE)')
    return await _shared(where)


async def _shared(where: Servers) -> str:
    connection = await asyncpg.connect(where.database_url)
    try:
        return str(await connection.fetchval(SHARED))
    finally:
        await connection.close()


def _forget_compiled(path: Path) -> None:
    """A compiled file counts as that of any text of the same length and second."""
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def _is_plain(module: str) -> bool:
    """Whether a module is none that pytest imports, rewriting its assertions."""
    return not module.rpartition(".")[2].startswith(("test_", "conftest"))
