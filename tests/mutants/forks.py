"""`python -m tests.mutants.forks MODULES`: runs pytest in forks of a process that has imported modules already.

To import the packages of others takes three quarters of the time of a small test. MODULES is a file that names what to
import, in JSON. Each line of standard input asks for a run (`Request`, in JSON), and is answered by a line (`Run`).
"""

import gc
import importlib
import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

POLL_SECONDS: Final = 0.02
NOT_FORKED: Final = ("onnxruntime",)  # does not survive a fork
ARGUMENTS: Final = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


@dataclass(frozen=True, slots=True)
class Request:
    """Which tests to run, one after another until one fails: arguments of pytest. Of what these name, `only` the tests
    with these ids run, if there are any. `result` and `log` are the files to write."""

    tests: list[str]
    only: list[str]
    environment: dict[str, str]
    seconds: float
    result: str
    log: str


@dataclass(slots=True)
class Run:
    """How a run went: pytest's exit code (None if it took too long), the first test that failed and with what error,
    which tests of `only` there are not, and which modules the run has imported."""

    code: int | None
    failed: str = ""
    error: str = ""
    missing: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)


class _Observer:
    """A plugin of pytest that chooses tests by their ids, and notes what a Run says."""

    def __init__(self, only: list[str]) -> None:
        self._only = frozenset(only)
        self.run = Run(code=None)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._only:
            self.run.missing = sorted(self._only - {item.nodeid for item in items})
            items[:] = [item for item in items if item.nodeid in self._only]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def _note(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.failed and not self.run.failed:
            crash: Any = getattr(report.longrepr, "reprcrash", None)
            said = crash.message if crash is not None else report.longreprtext
            self.run.failed, self.run.error = report.nodeid, said.strip()


def serve(modules: list[str]) -> None:
    """Import the modules, then answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a module prints is no answer
    for name in modules:
        if name.partition(".")[0] not in NOT_FORKED:
            with suppress(Exception):  # one that some other module has put there
                importlib.import_module(name)
    _see_that_no_statement_is_read()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        answers.write(json.dumps(asdict(_forked(Request(**json.loads(line))))) + "\n")
        answers.flush()


def _see_that_no_statement_is_read() -> None:
    """Where our own code is imported before the fork, statements of SQL still change."""
    loader = sys.modules.get("sql.loader")
    assert loader is None or loader.queries.cache_info().currsize == 0


def _forked(request: Request) -> Run:
    Path(request.result).unlink(missing_ok=True)
    process = os.fork()
    if process == 0:
        _run(request)
    deadline = time.monotonic() + request.seconds
    while os.waitpid(process, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            os.killpg(process, signal.SIGKILL)  # the next run of tests ends what else it has started
            os.waitpid(process, 0)
            return Run(code=None)
        time.sleep(POLL_SECONDS)
    try:
        return Run(**json.loads(Path(request.result).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return Run(code=pytest.ExitCode.INTERNAL_ERROR)


def _run(request: Request) -> None:
    """Run the tests, and end this process."""
    code: int = pytest.ExitCode.INTERNAL_ERROR
    try:
        os.setsid()
        output = os.open(request.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for descriptor, place in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
            os.dup2(descriptor, place)
        os.environ.update(request.environment)
        observer = _Observer(request.only)
        code = pytest.main([*ARGUMENTS, *request.tests], plugins=[observer])
        observer.run.code = code
        observer.run.modules = [name for name in sys.modules if name != "__main__"]
        Path(request.result).write_text(json.dumps(asdict(observer.run)), encoding="utf-8")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
