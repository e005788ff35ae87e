"""Many worlds: `python -m tests.property --worlds 20000 --seed 1`, on servers of its own, in several processes.

Every world is played twice, with what a viewer may not read changed; the viewer asks in both, and the answers
are compared with the reference. A world that breaks a rule is reduced to the events that are needed, and printed.
"""

import argparse
import asyncio
import math
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty
from typing import Final

from composer.stores.embedded.servers import EmbeddedServers, Servers
from tests.property import census
from tests.property.campaign import Report, work
from tests.support.databases import make_template, start_fast

ENOUGH: Final = 300  # worlds, enough for every kind of action to occur
EVERY: Final = 10.0  # seconds between progress lines


def main() -> int:
    """Run the given number of worlds; return 1 if one broke a rule, or if too few kinds of events occurred."""
    parser = argparse.ArgumentParser(prog="python -m tests.property", description=__doc__)
    parser.add_argument("--worlds", type=int, default=20_000, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of the first world; the others follow")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="stop after so long, and report what was played"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and end the servers and processes
    home = Path(tempfile.mkdtemp(prefix="nexus-worlds-"))
    home.chmod(0o755)
    servers = EmbeddedServers(home)
    try:
        started = start_fast(servers)
        asyncio.run(make_template(started.database_url))
        return _run(asked.worlds, asked.seed * 1_000_000, asked.jobs, asked.minutes * 60, started, home)
    finally:
        servers.stop()
        shutil.rmtree(home, ignore_errors=True)


def _run(worlds: int, first: int, jobs: int, seconds: float, servers: Servers, home: Path) -> int:
    context = multiprocessing.get_context("spawn")
    reports: Queue[Report] = context.Queue()
    workers = [
        context.Process(
            target=work, args=(range(first + job, first + worlds, jobs), job, servers, home, reports), daemon=True
        )
        for job in range(jobs)
    ]
    for worker in workers:
        worker.start()
    counts, done, broken, began, reported = Counter[str](), 0, 0, time.monotonic(), 0.0
    while (
        done < worlds
        and time.monotonic() < began + seconds
        and (any(worker.is_alive() for worker in workers) or not reports.empty())
    ):
        try:
            kind, more, text = reports.get(timeout=1)
        except Empty:
            continue
        done += 1
        counts.update(more)
        if kind != "worlds":
            broken += 1
            print(f"\n{kind}: {text}\n", flush=True)
        now = time.monotonic()
        if now - reported > EVERY or done == worlds:
            reported, pace = now, done / (now - began)
            left = (worlds - done) / pace / 60
            print(f"{done:,} of {worlds:,} worlds, {broken} broken, {pace:.1f}/s, {left:.0f} min left", flush=True)
    late = done < worlds and time.monotonic() >= began + seconds
    for worker in workers:
        if late:
            worker.terminate()
        worker.join(timeout=60)
    few = census.too_few(counts, done, census.ACTIONS, census.SECRETS, census.TWINS) if done >= ENOUGH else {}
    print(f"\n{census.report(counts)}\n\n{done:,} worlds, {broken} broken.", flush=True)
    if few:
        print(f"Too poor, so not to be trusted: {few}")
    if done < worlds and not late:
        print(f"Only {done:,} of {worlds:,} were run: a worker stopped.")
    return 1 if broken or few or (done < worlds and not late) else 0


if __name__ == "__main__":
    sys.exit(main())
