"""Measure how long each step of a turn takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def timed(timings: dict[str, float], name: str) -> Iterator[None]:
    """Store in `timings[name]` how many milliseconds the block took, even if it fails."""
    started = time.perf_counter()
    try:
        yield
    finally:
        timings[name] = milliseconds(started)


def milliseconds(started: float) -> float:
    """Milliseconds since `started`, a value of time.perf_counter()."""
    return round((time.perf_counter() - started) * 1000, 3)
