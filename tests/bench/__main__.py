"""`python -m tests.bench [BENCH …] [--data FOLDER] [--quick] [--json FILE]`; without a name, all of them."""

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
    backup,
    compose,
    gateway,
    guarantee,
    importing,
    ingest,
    jobs,
    long_talk,
    mcp,
    memory,
    own_data,
    processes,
    start,
    summaries,
    turns,
    worst_minute,
)

BENCHES: Final = {
    "start": start.measure,
    "memory": memory.measure,
    "import": importing.measure,
    "ingest": ingest.measure,
    "compose": compose.measure,
    "guarantee": guarantee.measure,
    "adapters": adapters.measure,
    "api": api.measure,
    "gateway": gateway.measure,
    "mcp": mcp.measure,
    "jobs": jobs.measure,
    "backup": backup.measure,
    "own_data": own_data.measure,
    "turns": turns.measure,
    "processes": processes.measure,
    "worst": worst_minute.measure,
}
# Benches that read logs of real conversations: without logs, one uses generated words and the other is skipped.
OF_TALK: Final = {"long_talk": long_talk.measure, "summaries": summaries.measure}
NEED_TALK: Final = ("summaries",)
ALL: Final = (*BENCHES, *OF_TALK)


def main() -> None:
    """Run the named benches, or all of them, and print the results."""
    parser = argparse.ArgumentParser(prog="make bench", description="Measures Nexus on its embedded stores.")
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"which of {', '.join(ALL)} (all)")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help=f"logs of real talk, for {', '.join(OF_TALK)}")
    parser.add_argument("--quick", action="store_true", help="small worlds, to see that it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    given = parser.parse_args()
    unknown = [name for name in given.benches if name not in ALL]
    if unknown:
        parser.error(f"there is no bench '{unknown[0]}'; there is {', '.join(ALL)}")
    wordless = [name for name in given.benches if name in NEED_TALK and given.data is None]
    if wordless:
        parser.error(f"{wordless[0]} reads logs of real talk: name their folder with --data")
    if given.data is not None and not any(given.data.glob("*.ascii.txt")):
        parser.error(f"{given.data} holds no logs (NAME.ascii.txt)")
    configure_logs("error")
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    load = os.getloadavg()[0]
    print(f"{machine}, load {load:.1f}{', quick' if given.quick else ''}\n")
    figures: dict[str, Any] = {"machine": machine, "load": load, "quick": given.quick}
    started = time.monotonic()
    if not given.benches:
        print(f"All of: {', '.join(ALL)}. One alone: make bench BENCH={ALL[0]}\n")
    for name in given.benches or ALL:
        if name in NEED_TALK and given.data is None:
            print(f"{name}: left out, it reads logs of real talk (make bench DATA=FOLDER)\n")
            continue
        work = OF_TALK[name](given.quick, _note, given.data) if name in OF_TALK else BENCHES[name](given.quick, _note)
        report = asyncio.run(work)
        figures[name] = report.figures
        print("\n".join(report.text), flush=True)
    print(f"measured in {time.monotonic() - started:.0f} s")
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


def _note(text: str) -> None:
    sys.stderr.write(f"… {text}\n")


if __name__ == "__main__":
    main()
