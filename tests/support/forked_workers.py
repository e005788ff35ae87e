"""Workers of pytest-xdist as forks of the process that started the run, once that has imported the tests.

By itself, xdist starts each worker as a bare interpreter, which imports everything anew. Here the run's own process
imports the modules of the tests that it was asked for and forks, while it has a single thread. A worker that takes the
place of one that died is started as ever.
"""

import atexit
import gc
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import pytest
from execnet import XSpec, gateway_io
from execnet.gateway_base import ExecModel, Popen2IO

from tests.support.fork_server import end_process

THREADS: Final = Path("/proc/self/task")


class ForkedWorker(Popen2IO):
    """The pipes to a worker (execnet.gateway_io.Popen2IOMaster)."""

    def __init__(self, process: int, given: BinaryIO, said: BinaryIO, execmodel: ExecModel) -> None:
        super().__init__(given, said, execmodel)
        self._process = process

    def wait(self) -> int | None:
        """Wait for the worker's end; its exit status, None if it was waited for before."""
        try:
            return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        except ChildProcessError:
            return None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)


def fork_workers(config: pytest.Config, specs: Sequence[XSpec], patch: pytest.MonkeyPatch) -> None:
    """Import the tests and fork a worker for each of `specs`, which xdist takes when it would start it."""
    if not THREADS.exists() or not all(spec.popen and not spec.python for spec in specs):
        return
    import_tests(config)
    gc.collect()
    gc.freeze()
    if len(list(THREADS.iterdir())) > 1:
        return
    forked: list[tuple[int, BinaryIO, BinaryIO]] = []
    for _ in specs:
        forked.append(_fork([pipe for _, *pipes in forked for pipe in pipes]))
    start = gateway_io.create_io

    def create_io(spec: XSpec, execmodel: ExecModel) -> Any:
        return ForkedWorker(*forked.pop(0), execmodel) if forked else start(spec, execmodel)

    patch.setattr(gateway_io, "create_io", create_io)


def import_tests(config: pytest.Config) -> None:
    """Import the modules that the workers will collect. What fails is left to them, to be reported."""
    for path in dict.fromkeys(_files(config)):
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(config.rootpath).with_suffix("").parts))


def _files(config: pytest.Config) -> Iterator[Path]:
    left_out = config.getini("norecursedirs")
    for argument in config.args:
        path = Path(config.invocation_params.dir, argument.partition("::")[0])
        for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path]:
            within = file.relative_to(path).parts[:-1] if path.is_dir() else ()
            if not any(fnmatch(part, pattern) for part in within for pattern in left_out):
                yield file


def _fork(others: Sequence[BinaryIO]) -> tuple[int, BinaryIO, BinaryIO]:
    """Fork a worker, which waits for what it shall run. `others`: the pipes to those before; as long as a worker had
    these open, the others would not notice the end of this process."""
    given, give = os.pipe()
    said, say = os.pipe()
    process = os.fork()
    if process == 0:
        for pipe in others:
            pipe.close()
        for descriptor, number in ((given, 0), (say, 1)):
            os.dup2(descriptor, number)
        for descriptor in (given, give, said, say):
            os.close(descriptor)
        _work()
    os.close(given)
    os.close(say)
    return process, os.fdopen(give, "wb"), os.fdopen(said, "rb")


def _work() -> NoReturn:
    """Do what the command does by which execnet starts an interpreter."""
    status = 0
    try:
        atexit._clear()
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        sys.meta_path[:] = [each for each in sys.meta_path if not type(each).__module__.startswith("_pytest")]
        exec(eval(sys.stdin.readline()), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
        status = 1
    end_process(status)
