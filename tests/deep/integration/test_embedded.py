"""The embedded servers are shared, survive killed processes, and explain why they do not start."""

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest
import redis

from composer.errors import Misconfigured, Unavailable
from composer.operations.doctor import Doctor
from composer.settings import Settings
from composer.stores.embedded.daemon import failure_line, open_file, try_lock
from composer.stores.embedded.servers import EmbeddedServers, Servers
from composer.stores.embedded.service_account import service_account
from tests.support.databases import copy_cluster

ROOT = Path(__file__).resolve().parents[3]
# Starts the servers of a data folder, prints the database's URL, and stops using them when its input ends.
CLIENT = """
import sys
from pathlib import Path
from composer.stores.embedded.servers import EmbeddedServers
servers = EmbeddedServers(Path(sys.argv[1]))
print(servers.start().database_url[:], flush=True)
sys.stdin.read()
servers.stop()
"""
# Drops root permanently, then tries to start the servers of a data folder.
UNPRIVILEGED = """
import os, sys
from pathlib import Path
from composer.errors import Unavailable
from composer.stores.embedded.servers import EmbeddedServers
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    EmbeddedServers(Path(sys.argv[1])).start()
except Unavailable as error:
    print(error)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A data folder in a folder that only its owner may enter, as in a private home."""
    parent = Path(tempfile.mkdtemp(prefix="nx"))
    yield parent / "home"
    for pid in server_pids(parent / "home").values():
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def used(home: Path, cluster: Path) -> None:
    """Prepare a data folder that was used before: most tests need no first start."""
    copy_cluster(home, cluster)


on_a_used_folder = pytest.mark.usefixtures("used")


@pytest.fixture
def servers(home: Path) -> Iterator[EmbeddedServers]:
    embedded = EmbeddedServers(home)
    yield embedded
    embedded.stop()


@pytest.fixture
def client(home: Path) -> Iterator[Callable[[], "subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []

    def start() -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(home)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("postgresql://")
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def server_pids(home: Path) -> dict[str, int]:
    """The running servers of a data folder, by the pid each one has in its lock file."""
    found = {}
    for name, program in (("postgres", "postgres"), ("valkey", "valkey-server")):
        try:
            pid = int((home / f"{name}.lock").read_text())
            if psutil.Process(pid).name() == program and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found[name] = pid
        except (OSError, ValueError, psutil.NoSuchProcess):
            continue
    return found


def query_database(servers: Servers, statement: str) -> object:
    async def run() -> object:
        connection = await asyncpg.connect(servers.database_url)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(run())


def cache_answers(servers: Servers) -> bool:
    with redis.Redis.from_url(servers.redis_url) as connection:
        return bool(connection.ping())


def test_both_servers_answer_and_listen_on_no_tcp_port(servers: EmbeddedServers, home: Path) -> None:
    started = servers.start()
    assert query_database(started, "SELECT current_database()") == "nexus"
    assert query_database(started, "SELECT current_setting('fsync') || current_setting('synchronous_commit')") == "onon"
    assert query_database(started, "SELECT encoding FROM pg_database WHERE datname = 'nexus'") == 6  # UTF8
    assert cache_answers(started)
    for pid in server_pids(home).values():
        assert psutil.Process(pid).net_connections(kind="inet") == []
        assert os.getsid(pid) != os.getsid(0), "Ctrl-C in our terminal would reach the server"


def test_doctor_reads_a_database_that_nothing_has_migrated_yet(servers: EmbeddedServers, home: Path) -> None:
    async def look() -> tuple[str, list[str]]:
        async with Doctor(Settings(home=home)) as probe:
            await probe.servers()
            return await probe.database(), await probe.pending()

    version, pending = asyncio.run(look())
    assert version.startswith("PostgreSQL")
    assert pending


@on_a_used_folder
def test_starting_again_in_one_process_changes_nothing(servers: EmbeddedServers, home: Path) -> None:
    first = servers.start()
    pids = server_pids(home)
    assert servers.start() == first
    assert server_pids(home) == pids


@on_a_used_folder
def test_only_the_requested_server_is_started(servers: EmbeddedServers, home: Path) -> None:
    servers.start(postgres=False)
    assert set(server_pids(home)) == {"valkey"}
    servers.start()
    assert set(server_pids(home)) == {"postgres", "valkey"}


@on_a_used_folder
def test_two_processes_share_the_servers_and_the_last_one_stops_them(
    servers: EmbeddedServers, client: Callable[[], "subprocess.Popen[str]"], home: Path
) -> None:
    other = client()
    pids = server_pids(home)
    started = servers.start()
    assert server_pids(home) == pids
    other.communicate()
    assert server_pids(home) == pids, "the first process to exit stopped servers that are still in use"
    assert cache_answers(started)
    servers.stop()
    assert server_pids(home) == {}


@on_a_used_folder
def test_servers_left_by_a_killed_process_are_reused(
    servers: EmbeddedServers, client: Callable[[], "subprocess.Popen[str]"], home: Path
) -> None:
    other = client()
    pids = server_pids(home)
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert query_database(servers.start(), "SELECT 1") == 1
    assert server_pids(home) == pids
    servers.stop()
    assert server_pids(home) == {}, "a killed process is still counted as a member"


@on_a_used_folder
def test_killed_servers_are_restarted_with_their_data(servers: EmbeddedServers, home: Path) -> None:
    started = servers.start()
    query_database(started, "CREATE TABLE kept AS SELECT 42 AS answer")
    dead = server_pids(home)
    for pid in dead.values():
        os.kill(pid, signal.SIGKILL)
    again = servers.start()
    assert query_database(again, "SELECT answer FROM kept") == 42
    assert cache_answers(again)
    assert not set(dead.values()) & set(server_pids(home).values())


@on_a_used_folder
def test_starting_waits_for_a_killed_server_to_exit(servers: EmbeddedServers, home: Path) -> None:
    servers.start()
    servers.stop()
    account = service_account()
    scripts = Path(tempfile.mkdtemp(prefix="nx"))
    scripts.chmod(0o755)
    # Has the server's name and user, and exits a moment after its lock is free.
    dying = scripts / "postgres"
    dying.write_text("#!/bin/sh\nsleep 1\n")
    dying.chmod(0o755)
    with subprocess.Popen([str(dying)], user=account.uid if account else None) as process:
        (home / "postgres.lock").write_text(str(process.pid))
        (home / "postgres" / "postmaster.pid").write_text(f"{process.pid}\n{home / 'postgres'}\n")
        assert query_database(servers.start(), "SELECT 1") == 1
    shutil.rmtree(scripts)


@on_a_used_folder
def test_servers_start_after_every_process_was_killed_at_once(
    servers: EmbeddedServers, client: Callable[[], "subprocess.Popen[str]"], home: Path
) -> None:
    other = client()
    for pid in [*server_pids(home).values(), other.pid]:
        os.kill(pid, signal.SIGKILL)
    other.wait()
    started = servers.start()
    assert query_database(started, "SELECT 1") == 1
    assert cache_answers(started)


@on_a_used_folder
def test_a_stale_pid_file_whose_pid_was_reused_is_ignored(servers: EmbeddedServers, home: Path) -> None:
    servers.start()
    servers.stop()
    (home / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n{home / 'postgres'}\n")
    assert query_database(servers.start(), "SELECT 1") == 1


def test_an_interrupted_first_start_is_repeated(servers: EmbeddedServers, home: Path) -> None:
    (home / "postgres.new").mkdir(parents=True)
    (home / "postgres.new" / "PG_VERSION").write_text("18\n")
    assert query_database(servers.start(), "SELECT 1") == 1


@on_a_used_folder
def test_deleted_sockets_are_created_again(servers: EmbeddedServers, home: Path) -> None:
    started = servers.start()
    shutil.rmtree(Path(started.redis_url.removeprefix("unix://")).parent)
    again = EmbeddedServers(home)
    try:
        assert query_database(again.start(), "SELECT 1") == 1
    finally:
        again.stop()


@pytest.mark.parametrize("name", ["x" * 150, "a folder, with: 'odd' ünïcode & signs?"])
def test_a_folder_of_any_name_works(home: Path, name: str) -> None:
    servers = EmbeddedServers(home / name)
    started = servers.start()
    try:
        assert query_database(started, "SELECT 1") == 1
        assert cache_answers(started)
    finally:
        servers.stop()
    assert server_pids(home / name) == {}


@on_a_used_folder
def test_the_data_folder_and_its_parent_stay_closed_to_other_users(servers: EmbeddedServers, home: Path) -> None:
    servers.start()
    for folder in (home.parent, home, home / "postgres"):
        assert folder.stat().st_mode & 0o077 == 0


def test_a_read_only_folder_is_refused_in_one_sentence(home: Path) -> None:
    home.parent.chmod(0o755)
    home.mkdir(mode=0o755)
    home.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED, str(home)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == (
        f"Nexus cannot use its data folder {home} (Permission denied): "
        "make it writable, free space on its disk, or set NEXUS_HOME to another folder."
    ), done.stderr


@on_a_used_folder
def test_the_error_of_a_server_that_does_not_start_is_quoted(servers: EmbeddedServers, home: Path) -> None:
    servers.start()
    servers.stop()
    (home / "postgres" / "pg_hba.conf").write_text("nonsense\n")
    with pytest.raises(Unavailable, match=r"postgres does not start in .*home: FATAL: .*pg_hba\.conf"):
        servers.start()
    assert server_pids(home) == {}, "a failed start left a server behind"


@on_a_used_folder
def test_a_server_whose_id_cannot_be_noted_on_a_full_disk_does_not_stay(
    servers: EmbeddedServers, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(Unavailable, match="No space left on device"):
        servers.start()
    for name in ("valkey", "postgres"):  # what runs holds its lock, and nothing knows its id
        with open_file(home / f"{name}.lock") as lock:
            assert try_lock(lock), f"a failed start left {name} behind"


def test_a_full_disk_is_named_where_postgresql_names_it_in_a_hint() -> None:
    log = b"""running bootstrap script ... 2026-11-26 18:21:48 UTC [17] FATAL:  could not extend file "base/1/2691"
2026-11-26 18:21:48.582 UTC [17149] HINT:  Check free disk space.
2026-11-26 18:21:48.582 UTC [17149] PANIC:  cannot abort transaction 1, it was already committed
Aborted
"""
    assert failure_line(log) == "HINT:  Check free disk space"


def test_data_of_another_postgres_version_is_refused_and_left_unchanged(servers: EmbeddedServers, home: Path) -> None:
    (home / "postgres").mkdir(parents=True)
    (home / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(Misconfigured, match="version 17"):
        servers.start()
    assert (home / "postgres" / "PG_VERSION").read_text() == "17\n"


@on_a_used_folder
def test_the_servers_of_a_deleted_folder_are_stopped(servers: EmbeddedServers, home: Path) -> None:
    sockets = Path(servers.start().redis_url.removeprefix("unix://")).parent
    pids = server_pids(home)
    shutil.rmtree(home)
    servers.stop()
    assert not any(psutil.pid_exists(pid) for pid in pids.values())
    assert not sockets.exists()
