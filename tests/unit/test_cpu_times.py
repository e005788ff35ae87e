"""The processor's time of tests: of their process, and of what they start."""

import subprocess
import sys

from tests.support.cpu_times import others_seconds, own_seconds

WORK = "sum(range(3_000_000))"


def test_the_time_of_this_process_and_of_programs_that_ended_is_counted_apart() -> None:
    here, elsewhere = own_seconds(), others_seconds()
    exec(WORK)
    assert own_seconds() > here
    subprocess.run([sys.executable, "-I", "-S", "-c", WORK], check=True)
    assert others_seconds() > elsewhere
