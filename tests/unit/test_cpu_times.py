"""The processor's time of tests: of their process, and of what they start."""

import subprocess
import sys
from pathlib import Path

from tests.support.cpu_times import others_seconds, own_seconds

WORK = "sum(range(3_000_000))"


def test_the_time_of_this_process_is_counted() -> None:
    before = own_seconds()
    exec(WORK)
    assert own_seconds() > before


def test_the_time_of_a_program_is_counted_while_it_lives_and_after_it_ended(tmp_path: Path) -> None:
    """Of a folder of its own: beside the test, other programs of the whole run may end, and take their time away."""
    folder = str(tmp_path)
    before = others_seconds(folder)
    works_then_waits = f"{WORK}; print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", works_then_waits],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        assert program.stdout
        program.stdout.readline()
        living = others_seconds(folder)
        program.communicate(b"\n")
    assert living > before
    assert others_seconds(folder) >= living
