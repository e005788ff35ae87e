"""However a program ends, it leaves no server running: signals, a terminal that is closed, a shell that is killed."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import psutil
import pytest

from tests.support.program import NEXUS, Program, servers_of
from tests.support.waiting import TIMEOUT_SECONDS

STUCK = """
import asyncio, sys
from pathlib import Path
from bot.console.cli.signals import SignalHandling
from composer.stores.embedded.servers import EmbeddedServers

async def work():
    servers = EmbeddedServers(Path(sys.argv[1]))
    await asyncio.to_thread(servers.start)
    print("started", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("stuck", flush=True)
        await asyncio.Event().wait()

SignalHandling().run(work())
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A data folder; processes left running there are killed at the end."""
    above = Path(tempfile.mkdtemp(prefix="nexus-endings-"))
    yield above / "home"
    for process in servers_of(above / "home"):
        process.kill()
    shutil.rmtree(above, ignore_errors=True)


@pytest.fixture
def program(home: Path, tmp_path: Path) -> Program:
    return Program(tmp_path, {"NEXUS_HOME": str(home)})


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def in_terminal(program: Program) -> "tuple[pexpect.spawn[str], psutil.Process]":
    """`nexus chat` in a shell in a terminal, when it waits for a line; and its process."""
    shell: pexpect.spawn[str] = pexpect.spawn(
        "/bin/sh",
        ["-c", f"{' '.join(NEXUS)} chat; exit 7"],
        cwd=str(program.folder),
        env=program.environment | {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"},
        timeout=TIMEOUT_SECONDS,
        encoding="utf-8",
    )
    shell.expect_exact("alice @nexus")
    [child] = psutil.Process(shell.pid).children()
    return shell, child


def greet(chat: subprocess.Popen[str]) -> None:
    """Say hello, and wait for the answer; before it may come one to a question of the program that was ended before."""
    assert chat.stdin is not None
    assert chat.stdout is not None
    chat.stdin.write("hello\n")
    chat.stdin.flush()
    line = chat.stdout.readline()
    if "earlier question" in line:
        assert chat.stdout.readline().startswith("Hello")
        line = chat.stdout.readline()
    assert line.startswith("Hello")


def ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_closed_terminal_leaves_nothing_running(program: Program, home: Path) -> None:
    shell, nexus = in_terminal(program)
    assert len(servers_of(home)) == 2
    os.close(shell.child_fd)
    wait_for(lambda: ended(nexus))
    assert servers_of(home) == []
    assert shell.pid is not None
    os.waitpid(shell.pid, 0)


def test_a_killed_shell_leaves_nothing_running(program: Program, home: Path) -> None:
    shell, nexus = in_terminal(program)
    assert len(servers_of(home)) == 2
    assert shell.pid is not None
    os.kill(shell.pid, signal.SIGKILL)
    wait_for(lambda: ended(nexus))
    assert servers_of(home) == []
    shell.close(force=True)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_chat_whose_input_stays_open(program: Program, home: Path, number: signal.Signals) -> None:
    command = [*NEXUS, "chat"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=program.folder, env=program.environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as chat:
        greet(chat)
        assert len(servers_of(home)) == 2
        chat.send_signal(number)
        assert chat.wait(TIMEOUT_SECONDS) == 128 + number
        assert chat.stderr is not None
        assert "Traceback" not in chat.stderr.read()
    assert servers_of(home) == []


def test_a_second_interrupt_ends_at_once_and_tells_the_servers_to_stop(program: Program, home: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, str(home)], env=program.environment, stdout=subprocess.PIPE, text=True
    ) as stuck:
        assert stuck.stdout is not None
        assert stuck.stdout.readline() == "started\n"
        stuck.send_signal(signal.SIGHUP)
        assert stuck.stdout.readline() == "stuck\n"
        stuck.send_signal(signal.SIGHUP)  # a terminal that closes may send it twice
        assert stuck.poll() is None
        stuck.send_signal(signal.SIGINT)
        assert stuck.wait(TIMEOUT_SECONDS) == 128 + signal.SIGINT
    wait_for(lambda: servers_of(home) == [])


def test_a_program_that_must_outlive_its_terminal_does(program: Program, home: Path) -> None:
    """nohup: whoever starts it ignores SIGHUP."""
    with subprocess.Popen(
        ["nohup", *NEXUS, "chat"],
        cwd=program.folder,
        env=program.environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as chat:
        greet(chat)
        chat.send_signal(signal.SIGHUP)
        greet(chat)
        assert chat.stdin is not None
        chat.stdin.close()
        assert chat.wait(TIMEOUT_SECONDS) == 0


def test_a_full_disk_and_an_unusable_folder_are_one_sentence(program: Program, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    for home in (tmp_path / "loop" / "x", tmp_path / "file"):
        ran = program.run("chat", NEXUS_HOME=str(home))
        assert ran.status == 1
        [sentence] = ran.sentences
        assert sentence.startswith(f"nexus: Nexus cannot use its data folder {home} (")
    with Path("/dev/full").open("w") as full:
        ran_full = subprocess.run(
            [*NEXUS, "migrate"], env=program.environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ran_full.returncode == 1
    assert ran_full.stderr.startswith("nexus: No space left on device. Free space, or ")
    assert len(ran_full.stderr.splitlines()) == 1


def test_output_that_was_not_written_yet_does_not_change_the_exit_status(program: Program) -> None:
    work = (
        "import sys\nfrom bot.console import main\n"
        "def cli(args):\n    sys.stdout.write('more')\n    raise OSError(28, 'No space left on device')\n"
        "main.cli = cli\nmain.main()"
    )
    buffered = {name: value for name, value in program.environment.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-c", work], env=buffered, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1


def test_a_database_that_is_killed_under_a_chat_is_one_sentence(program: Program, home: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*NEXUS, "chat"],
        cwd=program.folder,
        env=program.environment,
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.STDOUT,
        text=True,
    ) as chat:
        greet(chat)
        assert chat.stdin is not None
        assert chat.stdout is not None
        [database] = [each for each in servers_of(home) if "postgres" in each.name()]
        database.kill()
        chat.stdin.write("/nexus recall hello\n")
        chat.stdin.close()
        rest = chat.stdout.read()
        assert chat.wait(TIMEOUT_SECONDS) in (0, 1)  # the program may have started it again before the command came
    assert "Traceback" not in rest
    assert servers_of(home) == []
