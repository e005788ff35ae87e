"""One server process tree: started so that it outlives us, found again, stopped, and made to say why it failed."""

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
from composer.stores.embedded.service_account import Account

STOP_SECONDS = 30.0
KILL_SECONDS = 5.0
POLL_SECONDS = 0.005
LOG_LIMIT = 10 << 20  # Bytes; a longer log is begun anew at the next start.
LOG_PREFIX = re.compile(r"^(\S+ \S+ \S+ \[\d+\]|\d+:\w .*? [*#.-]) ")
# What to quote of a log, best first: the cause itself, else the last complaint that is not a mere consequence.
CAUSE = re.compile(r"No space left|[Pp]ermission denied|Cannot allocate|Read-only file system")
CULPRIT = re.compile(r"FATAL|PANIC|ERROR|error|could not|cannot|No space|denied|[Ff]ailed")
SYMPTOM = re.compile(r"starting up|not yet accepting|shutting down|does not exist")


@dataclass
class Daemon:
    """One server: alive exactly while its lock file is locked, for the server inherits the lock.

    `answers` tells whether it can be used at `socket_path`; `stop_signal` asks it to end without waiting for clients.
    """

    name: str
    home: Path
    cwd: Path
    socket_path: Path
    command: list[str]
    account: Account | None
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
        """Whether any process of the server is alive. Only asked while `start.lock` is held."""
        with opened(self._lock) as lock:
            return not try_lock(lock)

    def launch(self) -> subprocess.Popen[bytes]:
        """Starts the server, which then holds the lock; its process id is the lock file's content."""
        with opened(self._lock) as lock, opened(self._log, os.O_APPEND) as log:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _await_exit(os.pread(lock, 32, 0), Path(self.command[0]).name)
            os.ftruncate(lock, 0)
            for path in self.pid_files:
                self._clear_stale(path)
            if os.fstat(log).st_size > LOG_LIMIT:
                os.ftruncate(log, 0)
            self._log_start = os.fstat(log).st_size
            self.process = spawn(self.command, self.cwd, self.account, output=log, keep=(lock,))
            os.pwrite(lock, str(self.process.pid).encode(), 0)
        return self.process

    def _clear_stale(self, path: Path) -> None:
        """Removes the server's own pid file, whose server is known to be dead.

        PostgreSQL does not start when the pid in it is alive again as any process (after the restart of a container
        it often is) or is a zombie (where nothing reaps orphans). One that someone started by hand stays protected.
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
        """Sends a signal to the server, if it is certain which process that is."""
        with suppress(OSError, ValueError, psutil.Error):
            pid = int(self._lock.read_text())
            if self.running() and psutil.Process(pid).name() == Path(self.command[0]).name:
                os.kill(pid, number)

    def await_end(self) -> None:
        """Waits until the server is gone, and kills it when that takes too long."""
        for seconds in (STOP_SECONDS, KILL_SECONDS):
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                if not self.running():
                    if self.process is not None:
                        self.process.wait()
                    return
                time.sleep(POLL_SECONDS)
            self.signal(signal.SIGKILL)

    def failure(self) -> Unavailable:
        """Why the server is not there, in its own words."""
        log = self._log.read_bytes()[self._log_start :] if self._log.exists() else b""
        return Unavailable(f"The embedded {self.name} does not start in {self.home}: {last_words(log)}.")


def spawn(
    command: list[str], cwd: Path, account: Account | None, *, output: int, keep: tuple[int, ...] = ()
) -> subprocess.Popen[bytes]:
    """Starts a program in a session of its own (Ctrl-C is for the client), with none of our environment."""
    try:
        return subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=keep,
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
    """Waits for the former server, whose lock is free: what is killed drops its locks before its process id."""
    deadline = time.monotonic() + KILL_SECONDS
    with suppress(psutil.Error, ValueError):
        process = psutil.Process(int(pid))
        while process.name() == name and process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)


@contextmanager
def opened(path: Path, flags: int = 0) -> Iterator[int]:
    """A file descriptor for reading and writing; the file is made, for us alone, if it is missing."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Takes the lock for ourselves alone, or tells at once that someone else has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def last_words(log: bytes) -> str:
    """The line of a server's log that says most likely why it ended."""
    lines = [line.strip() for line in log.decode(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if CAUSE.search(line)]
    telling = telling or [line for line in lines if CULPRIT.search(line) and not SYMPTOM.search(line)] or lines
    return LOG_PREFIX.sub("", telling[-1]).rstrip(".") if telling else "it wrote nothing to its log"
