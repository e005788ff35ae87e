"""How long each step of a turn takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def timed(timings: dict[str, float], name: str) -> Iterator[None]:
    """Note under `name` how many milliseconds the block took, also when it fails."""
    started = time.perf_counter()
    try:
        yield
    finally:
        timings[name] = milliseconds(started)


def milliseconds(started: float) -> float:
    """Milliseconds since `started`, a reading of time.perf_counter()."""
    return round((time.perf_counter() - started) * 1000, 3)
