"""A database cluster that is made once for a run of the tests: copying its files costs a tenth of `initdb`."""

import asyncio
import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from composer.stores.embedded.servers import EmbeddedServers


def cluster_of(run: Path, fill: Callable[[str], Coroutine[Any, Any, None]]) -> Path:
    """The files of a cluster that `fill` was given the URL of. `run` is a folder that all workers share."""
    home = run / "cluster"
    with (run / "cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "made").exists():
            shutil.rmtree(home, ignore_errors=True)
            servers = EmbeddedServers(home)
            try:
                asyncio.run(fill(servers.start().database_url))
            finally:
                servers.stop()
            (home / "made").touch()
    return home / "postgres"


def furnish(home: Path, cluster: Path) -> Path:
    """Make a data folder that was used before: its servers start on a copy of the cluster."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", str(cluster), str(home / "postgres")], check=True)
    return home


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder of this run; that of a worker lies in the one that all workers share."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
