"""Starts Python programs for tests by forking a process that has imported them already.

A start of `nexus` takes more than a second, nearly all of it imports, and the suite starts it more than a hundred
times. Here one server of the run imports the programs, loads their tables and files, and forks for each start. What a
test starts is the launcher (`command`), an ordinary process: it hands its arguments, environment, folder and open files
to the server, and ends as the forked program ends, by the same status or signal. If the launcher is killed, the program
is.

Tests that are about the start itself, or send signals other than SIGKILL, run the interpreter.
"""

import atexit
import fcntl
import functools
import gc
import importlib
import marshal
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from bot.console.cli.contents import CONTENTS
from composer.stores.models import minilm
from composer.stores.models.tokens import tokenizer_for
from sql.loader import queries

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAMS: Final = (
    "bot.console.main",
    *(f"tests.support.{name}" for name in ("crash", "adapter_crash", "answering")),
    "tests.week.service",
)
# Imported by the programs when they run. Not onnxruntime: it does not survive a fork.
HEAVY: Final = (
    "bot.console.command_line",
    *sorted({f"bot.console.cli.{entry.file}" for entry in CONTENTS.values()}),
    *("tokenizers", "tokenizers.implementations"),
    *("openai", "openai.resources.chat", "openai.resources.embeddings"),
)
START_SECONDS: Final = 120
# Run by a bare interpreter, which starts in a hundredth of a second. The modules socket and json would take two more.
_LAUNCHER: Final = """
import _socket, marshal, os, sys
server = _socket.socket(_socket.AF_UNIX)
server.connect(sys.argv[1])
request = {"module": sys.argv[2], "words": sys.argv[3:], "cwd": os.getcwd(), "env": dict(os.environ)}
request = marshal.dumps(request)
files = b"".join(descriptor.to_bytes(4, sys.byteorder) for descriptor in (0, 1, 2))
server.sendmsg([len(request).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
server.sendall(request)
for descriptor in (0, 1):
    os.close(descriptor)
status = b""
while not status.endswith(b"\\n") and (more := server.recv(16)):
    status += more
status = int(status or -9)
if status < 0:
    if status != -9:
        import signal
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


def command(module: str, folder: Path) -> list[str]:
    """The command that runs a module of PROGRAMS as `python -m` does; `folder` is that of the run."""
    path = folder / "fork.sock"
    with (folder / "fork.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _start(path)
    return [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(path), module]


def _start(path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NEXUS_")}
    log = path.with_suffix(".log")  # none of our own files: whoever reads our output would wait for the server's end
    with log.open("w") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", __name__, str(path)],
            cwd=ROOT,
            env=environment | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while not path.exists():
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < deadline, "the fork server does not start"
        time.sleep(0.01)


def serve(path: Path) -> None:
    """Import the programs, then fork for each launcher that connects, until killed."""
    for name in (*PROGRAMS, *HEAVY):
        importlib.import_module(name)
    tokenizer_for("offline").count("zyrkol")  # a word of several tokens: only then is the table complete
    queries()
    _load_minilm()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, _reap)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{path}.new")
    listener.listen(64)
    os.rename(f"{path}.new", path)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return _supervise(connection)
        connection.close()


def _reap(*_: object) -> None:
    """Wait for the supervisors that have ended, so that the time of their programs counts as this process's."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _load_minilm() -> None:
    """Read the files of MiniLM and round its matrices, which takes as long as all else that a short command does."""
    for name in ("load_tokenizer", "Weights"):
        setattr(minilm, name, functools.cache(getattr(minilm, name)))
    directory, initial_values = minilm.packaged_directory(), minilm.initial_values
    minilm.load_tokenizer(directory)
    tensors = minilm.Weights(directory / minilm.WEIGHTS_FILE).tensors
    values = initial_values(tensors)
    name = "initial_values"  # a module's function, which only a name by value may replace
    setattr(minilm, name, lambda given: values if given is tensors else initial_values(given))


def _supervise(connection: socket.socket) -> None:
    """Fork the program, and tell its launcher how it ended. Returns in the program alone, to run it."""
    head, descriptors, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as stream:
        request: dict[str, Any] = marshal.loads(stream.read(int.from_bytes(head, "big")))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    program = os.fork()
    if program == 0:
        connection.close()
        return _run(request, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    threading.Thread(target=_kill_with, args=(connection, program), daemon=True).start()
    _, status = os.waitpid(program, 0)
    try:
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    finally:
        os._exit(0)


def _kill_with(connection: socket.socket, program: int) -> None:
    """Kill the program once its launcher is gone."""
    connection.recv(1)
    os.kill(program, signal.SIGKILL)


def _run(request: dict[str, Any], descriptors: list[int]) -> None:
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = [request["module"], *request["words"]]
    sys.modules.pop(request["module"], None)
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        end_process(end.code or 0)
    end_process(0)


def end_process(status: int) -> NoReturn:
    """End this process as Python does, but without removing each object: that would copy all memory of the server."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # nobody reads it any more
        status = 120
    os._exit(status)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
