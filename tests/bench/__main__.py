"""`python -m tests.bench [BENCH …] [--quick] [--json FILE]`; without a name, all of them."""

import argparse
import asyncio
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any, Final

from bot.console.logs import configure_logs
from tests.bench import (
    adapters,
    api,
    compose,
    gateway,
    guarantee,
    ingest,
    jobs,
    mcp,
    memory,
    pages,
    processes,
    start,
    turns,
    worst_minute,
)

BENCHES: Final = {
    "start": start.measure,
    "memory": memory.measure,
    "ingest": ingest.measure,
    "compose": compose.measure,
    "guarantee": guarantee.measure,
    "adapters": adapters.measure,
    "api": api.measure,
    "gateway": gateway.measure,
    "mcp": mcp.measure,
    "jobs": jobs.measure,
    "turns": turns.measure,
    "processes": processes.measure,
    "pages": pages.measure,
    "worst": worst_minute.measure,
}


def main() -> None:
    """Run the named benches, or all of them, and print the results."""
    parser = argparse.ArgumentParser(prog="make bench", description="Measures Nexus on its embedded stores.")
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"which of {', '.join(BENCHES)} (all)")
    parser.add_argument("--quick", action="store_true", help="small worlds, to see that it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    given = parser.parse_args()
    unknown = [name for name in given.benches if name not in BENCHES]
    if unknown:
        parser.error(f"there is no bench '{unknown[0]}'; there is {', '.join(BENCHES)}")
    configure_logs("error")
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    load = os.getloadavg()[0]
    print(f"{machine}, load {load:.1f}{', quick' if given.quick else ''}\n")
    figures: dict[str, Any] = {"machine": machine, "load": load, "quick": given.quick}
    started = time.monotonic()
    if not given.benches:
        print(f"All of: {', '.join(BENCHES)}. One alone: make bench BENCH={next(iter(BENCHES))}\n")
    for name in given.benches or BENCHES:
        report = asyncio.run(BENCHES[name](given.quick, _note))
        figures[name] = report.figures
        print("\n".join(report.text), flush=True)
    print(f"measured in {time.monotonic() - started:.0f} s")
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


def _note(text: str) -> None:
    sys.stderr.write(f"… {text}\n")


if __name__ == "__main__":
    main()
