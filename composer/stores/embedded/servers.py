"""PostgreSQL and Valkey servers in a data folder, shared by all processes that use the folder.

All state is in locks on files of the folder. The kernel releases a lock when its holder dies, so a killed process
leaves nothing to clean up:
`start.lock` is held while a process starts or stops servers; `members.lock` is shared by every process that uses them;
`postgres.lock` and `valkey.lock` are inherited by the servers, so they are held exactly as long as these live.
"""

import asyncio
import errno
import fcntl
import hashlib
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import asyncpg
import psutil

from composer.errors import Misconfigured, Unavailable
from composer.settings.server_urls import ServerUrl
from composer.stores.embedded.daemon import (
    DAEMON_POLL_SECONDS,
    STOP_SECONDS,
    Daemon,
    failure_line,
    open_file,
    spawn,
    try_lock,
)
from composer.stores.embedded.service_account import SystemUser, binaries, service_account

DATABASE = "nexus"
PORT = 5432  # Names the socket file; nothing listens on TCP.
POSTGRES_MAJOR = "18"
CACHE_SOCKET = "valkey.sock"
START_SECONDS = 120.0  # Recovery after a crash may take most of it.
MAX_SOCKET_PATH_BYTES = 103  # macOS accepts 103, Linux 107.
# Drivers split a host at commas and colons, so a folder with other characters has its sockets elsewhere.
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+")

POSTGRES_SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "50",
    # Durability is promised: an acknowledged message is on disk.
    "fsync": "on",
    "synchronous_commit": "on",
    "wal_compression": "on",
    # After an import recall is slower until the first vacuum; checking often costs nothing.
    "autovacuum_naptime": "10s",
    "jit": "off",
    "random_page_cost": "1.1",
    # systemd removes a user's POSIX shared memory at logout, while the server still runs.
    "dynamic_shared_memory_type": "mmap",
    "timezone": "UTC",
    # The log must not contain what people wrote: no statements, no parameters, no key values.
    "log_min_error_statement": "panic",
    "log_parameter_max_length_on_error": "0",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
    "log_timezone": "UTC",
}


@dataclass(frozen=True, slots=True)
class Servers:
    """The addresses of the servers: a PostgreSQL URL (for asyncpg) of the database's owner, and a `unix://` URL (for
    redis). Whoever may enter the sockets' folder needs no password."""

    database_url: ServerUrl
    redis_url: ServerUrl


class EmbeddedServers:
    """This process's use of the servers of one data folder. Not thread-safe. `in_use` are those of the process that
    were started and not stopped."""

    in_use: ClassVar[set["EmbeddedServers"]] = set()

    def __init__(self, home: Path) -> None:
        self._home = home
        self._member: int | None = None
        self._daemons: list[Daemon] = []
        self._launched: list[subprocess.Popen[bytes]] = []
        self._cancelled = threading.Event()

    def start(self, *, postgres: bool = True, valkey: bool = True) -> Servers:
        """Start the servers, or join them if they run, and create the database `nexus` if it is missing.

        May be called again. Blocks for seconds, so call it in a thread. Raises Unavailable when a server cannot start
        (folder not writable, disk full, refused), and Misconfigured when the data in the folder belongs to another
        version of PostgreSQL or to another user.
        """
        self._cancelled.clear()
        try:
            self._home = _resolved(self._home)
            self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _exclusive(self._home):
                self._join()
                try:
                    return self._serve(postgres, valkey)
                except BaseException:
                    self._leave()
                    raise
        except OSError as error:
            raise Unavailable(
                f"Nexus cannot use its data folder {self._home} ({error.strerror or error}): "
                "make it writable, free space on its disk, or set NEXUS_HOME to another folder."
            ) from error

    def cancel_start(self) -> None:
        """Cancel a `start` that runs in another thread: it soon raises Unavailable and leaves nothing running."""
        self._cancelled.set()

    def stop(self) -> None:
        """Leave the servers, and stop them if no other process uses them. Does nothing when not started."""
        if self._member is None:
            return
        try:
            with _exclusive(self._home):
                self._leave()
        except FileNotFoundError:
            # The folder was deleted: without it the servers are useless.
            for process in self._launched:
                process.send_signal(signal.SIGINT)
                process.wait(STOP_SECONDS)
            self._remove_sockets()
            self._release_membership()
        self._launched = [process for process in self._launched if process.poll() is None]

    def abandon(self) -> None:
        """Tell the servers to stop if no other process uses them, without waiting for it. For a process that ends at
        once."""
        with suppress(OSError):
            if self._member is not None and try_lock(self._member):
                for daemon in self._daemons:
                    daemon.signal(daemon.stop_signal)

    def _serve(self, postgres: bool, valkey: bool) -> Servers:
        account = service_account()
        _check_owner(self._home, account)
        sockets = _socket_folder(self._home, account)
        server = _postgres(self._home, sockets, account)
        cache = _valkey(self._home, sockets, account)
        self._daemons = [server, cache]
        if not sockets.exists():
            # The sockets of running servers were deleted, so no process can reach these servers any more.
            _stop_all(self._daemons)
        _make_private(sockets, account)
        # Start both before waiting for either.
        if valkey and not cache.running():
            self._launched.append(cache.launch())
        if postgres and not server.running():
            _initialise(self._home, account)
            self._launched.append(server.launch())
        for daemon in [cache] * valkey + [server] * postgres:
            self._await(daemon)
        where = quote(str(sockets))
        return Servers(
            ServerUrl(f"postgresql://postgres@/{DATABASE}?host={where}&port={PORT}"),
            ServerUrl(f"unix://{where}/{CACHE_SOCKET}"),
        )

    def _await(self, daemon: Daemon) -> None:
        """Wait until the server answers. Start it again if it was already stopping when this process joined."""
        deadline = time.monotonic() + START_SECONDS
        while not daemon.ready():
            if not daemon.running():
                if daemon.process is not None:
                    daemon.process.wait()
                    raise daemon.failure()
                self._launched.append(daemon.launch())
            if self._cancelled.is_set():
                raise Unavailable(f"The start of the servers in {self._home} was cancelled.")
            if time.monotonic() > deadline:
                raise daemon.failure()
            time.sleep(DAEMON_POLL_SECONDS)

    def _join(self) -> None:
        if self._member is None:
            member = os.open(self._home / "members.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            fcntl.flock(member, fcntl.LOCK_SH)
            self._member = member
            self.in_use.add(self)

    def _leave(self) -> None:
        """Stop the servers if this process is the last member: if it can lock `members.lock` exclusively."""
        try:
            if self._member is not None and try_lock(self._member):
                _stop_all(self._daemons)
                self._remove_sockets()
        finally:
            self._release_membership()

    def _release_membership(self) -> None:
        if self._member is not None:
            os.close(self._member)
            self._member = None
            self.in_use.discard(self)

    def _remove_sockets(self) -> None:
        for daemon in self._daemons:
            shutil.rmtree(daemon.socket_path.parent, ignore_errors=True)


def _resolved(home: Path) -> Path:
    try:
        return home.expanduser().resolve()
    except RuntimeError as error:  # pathlib's error for a loop of links
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error


def _postgres(home: Path, sockets: Path, account: SystemUser | None) -> Daemon:
    data = home / "postgres"
    settings = POSTGRES_SETTINGS | {
        "unix_socket_directories": str(sockets),
        "shared_buffers": "256MB" if psutil.virtual_memory().total >= 2 << 30 else "64MB",
    }
    command = [str(binaries(account).postgres / "postgres"), "-D", _path_from_inside(data, account)]
    command += [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    path = sockets / f".s.PGSQL.{PORT}"
    pid_files = (data / "postmaster.pid", sockets / f"{path.name}.lock")
    # For PostgreSQL an interrupt is the fast shutdown.
    return Daemon("postgres", home, data, path, command, account, _database_answers, signal.SIGINT, pid_files)


def _valkey(home: Path, sockets: Path, account: SystemUser | None) -> Daemon:
    command = [str(binaries(account).valkey), "--port", "0", "--unixsocket", str(sockets / CACHE_SOCKET)]
    command += ["--unixsocketperm", "700", "--save", "", "--appendonly", "no", "--loglevel", "warning"]
    return Daemon("valkey", home, sockets, sockets / CACHE_SOCKET, command, account, _cache_answers, signal.SIGTERM)


def _stop_all(daemons: list[Daemon]) -> None:
    """Stop servers concurrently."""
    for daemon in daemons:
        daemon.signal(daemon.stop_signal)
    for daemon in daemons:
        daemon.await_end()


def _initialise(home: Path, account: SystemUser | None) -> None:
    """Create the database cluster if there is none. It gets its name last, so an incomplete one never counts."""
    data, new, log_path = home / "postgres", home / "postgres.new", home / "initdb.log"
    if data.exists():
        marker = data / "PG_VERSION"
        version = marker.read_text().strip() if marker.exists() else "unknown"
        if version != POSTGRES_MAJOR:
            raise Misconfigured(
                f"{data} holds PostgreSQL data of version {version}, and this Nexus needs {POSTGRES_MAJOR}: "
                "set NEXUS_HOME to a new folder and restore a backup there."
            )
        return
    shutil.rmtree(new, ignore_errors=True)
    _make_private(new, account)
    command = [str(binaries(account).postgres / "initdb"), "-D", _path_from_inside(new, account)]
    command += ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--locale-provider=builtin"]
    command += ["--builtin-locale=C.UTF-8", "--no-sync", "--no-instructions"]
    with open_file(log_path, os.O_TRUNC) as log:
        status = spawn(command, new, account, output=log).wait()
    if status != 0:
        shutil.rmtree(new, ignore_errors=True)
        reason = failure_line(log_path.read_bytes())
        raise Unavailable(f"PostgreSQL cannot create its data folder {data}: {reason}.")
    new.rename(data)
    # The first start does not wait for the disk. From now on PostgreSQL itself syncs what it acknowledges.
    threading.Thread(target=os.sync, name="sync-new-cluster", daemon=True).start()


def _path_from_inside(folder: Path, account: SystemUser | None) -> str:
    """The path of its working folder as a server must name it.

    A server that root starts enters the folder before it drops root's rights, so it needs no rights on the folders
    above: the data may be in a private home, and nothing is opened to others.
    """
    inside = Path("/proc/self/cwd")
    return str(inside) if account is not None and inside.exists() else str(folder)


def _check_owner(home: Path, account: SystemUser | None) -> None:
    data = home / "postgres"
    if account is None or not data.exists():
        return
    owner = data.stat().st_uid
    if owner not in (account.uid, 0):
        raise Misconfigured(f"{data} belongs to user {owner}: run Nexus as that user, or set NEXUS_HOME.")


def _socket_folder(home: Path, account: SystemUser | None) -> Path:
    """The folder of this data folder's sockets; the same in every process, whatever its environment."""
    name = f"nexus-{hashlib.sha256(os.fsencode(home)).hexdigest()[:12]}"
    if account is not None:
        # The servers' user must be able to enter it, and the data folder may be in a private home.
        return Path("/run" if os.access("/run", os.W_OK) else "/tmp") / name
    near = home / "run"
    longest = near / f".s.PGSQL.{PORT}"
    if PLAIN_PATH.fullmatch(str(near)) and len(os.fsencode(longest)) <= MAX_SOCKET_PATH_BYTES:
        return near
    return Path("/tmp") / name


def _make_private(folder: Path, account: SystemUser | None) -> None:
    """Create a folder that only the servers' user (and root) can enter. Refuse one that belongs to someone else."""
    owner = os.geteuid() if account is None else account.uid
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (owner, os.geteuid()):
        raise Unavailable(f"{folder} is needed for the embedded servers, and belongs to another user: remove it.")
    if account is not None:
        os.chown(folder, account.uid, account.gid)


@contextmanager
def _exclusive(home: Path) -> Iterator[None]:
    """Hold `start.lock`: only one process at a time starts or stops the servers of a folder."""
    deadline = time.monotonic() + START_SECONDS + STOP_SECONDS
    with open_file(home / "start.lock") as lock:
        while not try_lock(lock):
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"Another Nexus process is still starting or stopping the servers of {home}: try again."
                )
            time.sleep(DAEMON_POLL_SECONDS)
        yield


def _database_answers(path: Path) -> bool:
    try:
        return asyncio.run(_ensure_database(str(path.parent)))
    except asyncpg.PostgresError as error:
        raise Unavailable(f"The embedded postgres cannot create its database: {error}.") from error


async def _ensure_database(host: str) -> bool:
    try:
        connection = await asyncpg.connect(host=host, port=PORT, user="postgres", database=DATABASE)
    except asyncpg.InvalidCatalogNameError:
        connection = await asyncpg.connect(host=host, port=PORT, user="postgres", database="postgres")
        try:
            await connection.execute(f"CREATE DATABASE {DATABASE}")
        finally:
            await connection.close()
        return True
    except asyncpg.TooManyConnectionsError:
        return True
    except (OSError, asyncpg.CannotConnectNowError, asyncpg.ConnectionDoesNotExistError):
        return False
    await connection.close()
    return True


def _cache_answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
