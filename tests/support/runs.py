"""The folder of a run of the tests, and the removal of what killed runs left behind.

All that a run makes for a while (the workers' servers, the temporary folders of tests, the data of the programs that
tests start) lies in one folder `nexus-tests-…`. Each of the run's processes holds a shared lock on it as long as it
lives, and the kernel drops the lock however the process ends. So a folder that nobody holds belongs to a run that was
killed: the next run ends its processes and removes it.
"""

import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

from composer.stores.embedded.servers import _socket_folder
from composer.stores.embedded.service_account import service_account

PREFIX: Final = "nexus-tests-"
LOCK_NAME: Final = "run.lock"
SERVERS: Final = ("postgres", "initdb", "valkey-server")
LOCK_FILES: Final = ("postgres.lock", "valkey.lock")  # of a data folder whose servers were started
# A run makes and deletes some hundred thousand files; on a disk that takes a third of all its time.
MEMORY_FOLDER: Final = Path("/dev/shm")
MEMORY_BYTES: Final = 6 << 30  # free in that folder and in the machine's memory, or the run lies on the disk
END_SECONDS: Final = 30


def base_folder() -> Path:
    """Where the folders of runs lie: TMPDIR if it is set, else memory if there is enough, else the system's own."""
    if "TMPDIR" not in os.environ and os.access(MEMORY_FOLDER, os.W_OK):
        disk = os.statvfs(MEMORY_FOLDER)
        runs_programs = not disk.f_flag & os.ST_NOEXEC
        if runs_programs and min(disk.f_bavail * disk.f_frsize, psutil.virtual_memory().available) >= MEMORY_BYTES:
            return MEMORY_FOLDER
    return Path(tempfile.gettempdir())


def begin(base: Path) -> Path:
    """Sweep, then make the folder of this run under `base` and hold it; programs and workers inherit it as TMPDIR."""
    with _exclusive(base):
        sweep(base)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        folder.chmod(0o755)  # servers of another user are started in folders below
        hold(folder)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    return folder


def current() -> Path:
    """The folder of the run that this process belongs to."""
    return Path(os.environ["TMPDIR"])


def hold(folder: Path) -> None:
    """Mark the run of this folder as alive until this process ends, however it ends."""
    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def sweep(base: Path) -> list[Path]:
    """End the processes of dead runs under `base` and remove their folders; returns these."""
    dead = [folder for folder in base.glob(f"{PREFIX}*") if folder.is_dir() and not _is_held(folder)]
    for folder in dead:
        remove(folder)
    return dead


def remove(folder: Path) -> None:
    """End every process of a run, then remove its folder."""
    end_processes(folder)
    shutil.rmtree(folder, ignore_errors=True)


def end_processes(folder: Path) -> None:
    """Kill every process of a run, and remove the sockets of its servers, which may lie outside of its folder."""
    account = service_account()
    homes = {lock.parent for name in LOCK_FILES for lock in folder.rglob(name)}
    sockets = {_socket_folder(home, account) for home in homes}
    processes = [process for process in psutil.process_iter() if _belongs(process, folder, sockets)]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    psutil.wait_procs(processes, timeout=END_SECONDS)
    for path in sockets:
        shutil.rmtree(path, ignore_errors=True)


def _is_held(folder: Path) -> bool:
    if not os.access(folder, os.W_OK):
        return True  # another user's
    with (folder / LOCK_NAME).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _belongs(process: psutil.Process, folder: Path, sockets: set[Path]) -> bool:
    """Whether a process is a server of a data folder below, or a program that was started with this TMPDIR.

    Servers get no environment, but work in their data or socket folder; a person's shell may be there too.
    """
    with suppress(psutil.Error):
        if process.pid == os.getpid():
            return False
        if process.name() in SERVERS:
            place = Path(process.cwd())
            return place in sockets or place.is_relative_to(folder)
        return process.environ().get("TMPDIR") == str(folder)
    return False


@contextmanager
def _exclusive(base: Path) -> Iterator[None]:
    """One run at a time sweeps and begins in this place; a run is held as soon as it can be seen."""
    with (base / f".{PREFIX}{os.geteuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
