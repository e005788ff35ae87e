"""A server process that outlives the process that started it: start it, find it again, stop it, explain its failure."""

import fcntl
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from composer.errors import Unavailable
from composer.stores.embedded.service_account import SystemUser

STOP_SECONDS = 30.0
KILL_SECONDS = 5.0
DAEMON_POLL_SECONDS = 0.005
MAX_LOG_BYTES = 10 << 20  # a longer log is truncated at the next start
LOG_PREFIX = re.compile(r"^(\S+ \S+ \S+ \[\d+\]|\d+:\w .*? [*#.-]) ")
# Which line of a log to quote: one that names a cause, else the last error that is not a mere consequence.
CAUSE = re.compile(r"No space left|Check free disk space|[Pp]ermission denied|Cannot allocate|Read-only file system")
CULPRIT = re.compile(r"FATAL|PANIC|ERROR|error|could not|cannot|No space|denied|[Ff]ailed")
SYMPTOM = re.compile(r"starting up|not yet accepting|shutting down|does not exist")


@dataclass
class Daemon:
    """A server. It runs exactly as long as its lock file is locked, because it inherits the lock.

    `answers` checks whether it answers at `socket_path`; `stop_signal` stops it without waiting for its clients.
    """

    name: str
    home: Path
    cwd: Path
    socket_path: Path
    command: list[str]
    account: SystemUser | None
    answers: Callable[[Path], bool]
    stop_signal: signal.Signals
    pid_files: tuple[Path, ...] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _log_start: int = field(default=0, init=False)

    @property
    def _lock(self) -> Path:
        return self.home / f"{self.name}.lock"

    @property
    def _log(self) -> Path:
        return self.home / f"{self.name}.log"

    def running(self) -> bool:
        """Whether any process of the server is alive. Call it only while `start.lock` is held."""
        with open_file(self._lock) as lock:
            return not try_lock(lock)

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the server, which then holds the lock. Its process id is written into the lock file."""
        with open_file(self._lock) as lock, open_file(self._log, os.O_APPEND) as log:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _await_exit(os.pread(lock, 32, 0), Path(self.command[0]).name)
            os.ftruncate(lock, 0)
            for path in self.pid_files:
                self._clear_stale(path)
            if os.fstat(log).st_size > MAX_LOG_BYTES:
                os.ftruncate(log, 0)
            self._log_start = os.fstat(log).st_size
            self.process = spawn(self.command, self.cwd, self.account, output=log, inherit=(lock,))
            try:
                os.pwrite(lock, str(self.process.pid).encode(), 0)
            except OSError:  # a full disk: nobody could find this server again, to use or to stop it
                self.process.send_signal(self.stop_signal)
                self.process.wait()
                raise
        return self.process

    def _clear_stale(self, path: Path) -> None:
        """Remove a pid file of the server, which is known to be dead.

        PostgreSQL does not start if the pid in it belongs to any live process (after a container restart it often does)
        or to a zombie (where nothing reaps orphans). The file of a server that someone started by hand is left.
        """
        with suppress(FileNotFoundError):
            with suppress(psutil.Error, ValueError, IndexError):
                process = psutil.Process(int(path.read_text().split(maxsplit=1)[0]))
                if process.name() == Path(self.command[0]).name and process.status() != psutil.STATUS_ZOMBIE:
                    return
            path.unlink()

    def ready(self) -> bool:
        """Whether the server answers."""
        return self.socket_path.exists() and self.answers(self.socket_path)

    def signal(self, number: int) -> None:
        """Send a signal to the server, if its process is known for certain."""
        with suppress(OSError, ValueError, psutil.Error):
            pid = int(self._lock.read_text())
            if self.running() and psutil.Process(pid).name() == Path(self.command[0]).name:
                os.kill(pid, number)

    def await_end(self) -> None:
        """Wait until the server has ended, and kill it when that takes too long."""
        for seconds in (STOP_SECONDS, KILL_SECONDS):
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                if not self.running():
                    if self.process is not None:
                        self.process.wait()
                    return
                time.sleep(DAEMON_POLL_SECONDS)
            self.signal(signal.SIGKILL)

    def failure(self) -> Unavailable:
        """The error for a server that did not start, with the most telling line of its log."""
        log = self._log.read_bytes()[self._log_start :] if self._log.exists() else b""
        return Unavailable(f"The embedded {self.name} does not start in {self.home}: {failure_line(log)}.")


def spawn(
    command: list[str], cwd: Path, account: SystemUser | None, *, output: int, inherit: tuple[int, ...] = ()
) -> subprocess.Popen[bytes]:
    """Start a program in its own session (Ctrl-C must not reach it), without our environment."""
    try:
        return subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=inherit,
            env={"LC_ALL": "C", "PATH": os.defpath},
            start_new_session=True,
            umask=0o077,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
    except OSError as error:
        raise Unavailable(f"{command[0]} cannot be run in {cwd}: {error.strerror or error}.") from error


def _await_exit(pid: bytes, name: str) -> None:
    """Wait until the previous server's process is gone: a killed process releases its lock before its process id."""
    deadline = time.monotonic() + KILL_SECONDS
    with suppress(psutil.Error, ValueError):
        process = psutil.Process(int(pid))
        while process.name() == name and process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(DAEMON_POLL_SECONDS)


@contextmanager
def open_file(path: Path, flags: int = 0) -> Iterator[int]:
    """Open a file for reading and writing; it is created, readable by this user only, if it is missing."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Take an exclusive lock without waiting. Returns False if someone else has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def failure_line(log: bytes) -> str:
    """The line of a server's log that most likely says why it ended."""
    lines = [line.strip() for line in log.decode(errors="replace").splitlines() if line.strip()]
    matching = [line for line in lines if CAUSE.search(line)]
    matching = matching or [line for line in lines if CULPRIT.search(line) and not SYMPTOM.search(line)] or lines
    return LOG_PREFIX.sub("", matching[-1]).rstrip(".") if matching else "its log is empty"
