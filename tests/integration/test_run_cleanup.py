"""The next test run removes what a killed test run left, and does not touch a live one."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support import runs
from tests.support.databases import copy_cluster
from tests.support.program import ROOT

# Begins a test run in the given folder, starts servers and a program in it, prints their pids, and waits.
RUN = """
import subprocess, sys
from pathlib import Path
from composer.stores.embedded.servers import EmbeddedServers
from tests.support import runs
folder = runs.begin(Path(sys.argv[1]))
print(folder, flush=True)
servers = EmbeddedServers(Path(sys.stdin.readline().strip()))
sockets = Path(servers.start().redis_url.removeprefix("unix://")).parent
program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], stdout=subprocess.DEVNULL)
print(sockets, program.pid, flush=True)
sys.stdin.read()
"""


class Run:
    """A test run in its own process, with servers in a data folder and a program that outlives it."""

    def __init__(self, base: Path, cluster: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(base)],
            cwd=ROOT,
            env={key: value for key, value in os.environ.items() if key != "TMPDIR"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.folder = Path(self._read())
        home = copy_cluster(self.folder / "home", cluster)
        assert self.process.stdin is not None
        print(home, file=self.process.stdin, flush=True)
        sockets, program = self._read().split()
        self.sockets = Path(sockets)
        pids = [int((home / name).read_text()) for name in runs.LOCK_FILES]
        self.started = [psutil.Process(pid) for pid in (*pids, int(program))]

    def _read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def alive(self) -> list[str]:
        """The processes it started that are still alive."""
        return [p.name() for p in self.started if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def run(tmp_path: Path, cluster: Path) -> Iterator[Run]:
    made = Run(tmp_path, cluster)
    yield made
    made.process.kill()
    runs.end_processes(made.folder)
    made.process.communicate()


def test_the_next_run_ends_the_processes_of_a_killed_run_and_removes_its_folder(run: Run, tmp_path: Path) -> None:
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()
    assert len(run.alive()) == 3
    assert run.sockets.exists()
    assert runs.sweep(tmp_path) == [run.folder]
    assert run.alive() == []
    assert not run.sockets.exists()
    assert not run.folder.exists()


def test_a_live_run_is_left_alone(run: Run, tmp_path: Path) -> None:
    assert runs.sweep(tmp_path) == []
    assert len(run.alive()) == 3
    assert run.folder.exists()


def test_a_worker_that_outlives_its_run_keeps_the_folder(run: Run, tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", "import sys; from pathlib import Path; from tests.support import runs;"
         "runs.hold(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()", str(run.folder)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert worker.stdout is not None
    assert worker.stdout.readline() == "held\n"
    run.process.kill()
    run.process.wait()
    assert runs.sweep(tmp_path) == []
    worker.communicate()
    assert runs.sweep(tmp_path) == [run.folder]
