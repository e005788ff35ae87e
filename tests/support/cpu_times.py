"""The processor's time that tests take, by file: of this process, of its worker's servers, and of programs that ended.

`pytest -n 0 --cpu` prints it. Times on a clock say little: tests wait, and other processes wait for the same cores.
"""

import os
import resource
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from operator import itemgetter
from typing import Final

import psutil
import pytest

FILES: Final = 40  # that are printed


class CpuTimes:
    """A plugin that adds up what each test takes, with its fixtures."""

    def __init__(self) -> None:
        self._here: defaultdict[str, float] = defaultdict(float)
        self._elsewhere: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        folder = os.environ["TMPDIR"]
        elsewhere, here = others_seconds(folder), own_seconds()
        try:
            return (yield)
        finally:
            file = item.nodeid.partition("::")[0]
            self._here[file] += own_seconds() - here
            self._elsewhere[file] += max(others_seconds(folder) - elsewhere, 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        both = {file: seconds + self._elsewhere[file] for file, seconds in self._here.items()}
        terminalreporter.section("seconds of CPU, of which in this process")
        for file, seconds in sorted(both.items(), key=itemgetter(1), reverse=True)[:FILES]:
            terminalreporter.write_line(f"{seconds:8.1f} {self._here[file]:8.1f}  {file}")
        terminalreporter.write_line(f"{sum(both.values()):8.1f} {sum(self._here.values()):8.1f}  in all")


def own_seconds() -> float:
    """What this process has taken, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def others_seconds(folder: str) -> float:
    """What other processes have taken: those that this one waited for, and the servers and programs of a folder that
    live, with what each of these waited for. It falls when such a program ends for which another process waits."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = ended.ru_utime + ended.ru_stime
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and _is_of(process, folder):
                total += sum(process.cpu_times()[:4])
    return total


def _is_of(process: psutil.Process, folder: str) -> bool:
    """Whether a process works below a folder of a run, or was started with it as TMPDIR."""
    return process.cwd().startswith(folder) or process.environ().get("TMPDIR") == folder
