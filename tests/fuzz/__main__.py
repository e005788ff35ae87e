"""Send generated requests to the whole API for a while: `python -m tests.fuzz --minutes 10 --examples 50 --seed 1`.

In each round there is a new world (tests/fuzz/world.py), to which schemathesis sends requests as each viewer in turn.
A round is repeated by its seed. Every answer is held against the document of the API, and watched for failures and for
what its asker may not know.
"""

import argparse
import asyncio
import logging
import math
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

import structlog

from composer.settings import Settings
from composer.stores.embedded.servers import EmbeddedServers, Servers
from tests.fuzz.program import fuzz
from tests.fuzz.world import KEYS, World, open_world
from tests.support.databases import clone, make_template

KEPT_LINES: Final = 400  # of what schemathesis says about a run that failed


def main() -> int:
    """Run rounds; returns 1 if one found something."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no run after so long (one round)")
    parser.add_argument("--examples", type=int, default=50, help="generated requests of each phase for each operation")
    parser.add_argument("--seed", type=int, default=1, help="of the first round; the others follow")
    parser.add_argument("--only", default="^/", help="a regular expression for the paths")
    parser.add_argument("--viewer", choices=list(KEYS), action="append", help="as whom, instead of as all in turn")
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    home = Path(tempfile.mkdtemp(prefix="nexus-fuzz-"))
    home.chmod(0o755)
    servers = EmbeddedServers(home)
    try:
        started = servers.start()
        asyncio.run(make_template(started.database_url))
        return asyncio.run(_rounds(asked, started, home))
    finally:
        servers.stop()
        shutil.rmtree(home, ignore_errors=True)


async def _rounds(asked: argparse.Namespace, servers: Servers, home: Path) -> int:
    until, seed, found = time.monotonic() + asked.minutes * 60, asked.seed, 0
    succeeded, asked_at_all = Counter[str](), Counter[str]()
    while True:
        async with clone(servers.database_url, f"round{seed}") as url:
            settings = Settings(home=home / f"round{seed}", database_url=url, redis_url=servers.redis_url)
            try:
                async with open_world(settings) as world:
                    found += await _round(world, asked, home, seed, until)
                    for (_, operation, status), count in world.findings.asked.items():
                        asked_at_all[operation] += count
                        succeeded[operation] += count if status < 300 else 0
            except AssertionError as error:  # an answer differs from the document
                found += 1
                print(f"seed {seed}: {error}", flush=True)
        seed += 1
        if asked.minutes == math.inf or time.monotonic() >= until:
            break
    never = sorted(each for each in asked_at_all if each and not succeeded[each])
    print(
        f"\n{sum(asked_at_all.values()):,} requests, {found} findings. Never successful: {', '.join(never) or 'none'}"
    )
    return 1 if found else 0


async def _round(world: World, asked: argparse.Namespace, home: Path, seed: int, until: float) -> int:
    """Fuzz a world as each viewer; returns how many findings there are."""
    before = found = 0
    for viewer in asked.viewer or KEYS:
        if time.monotonic() >= until:
            break
        began, folder = time.monotonic(), home / f"files of {viewer} {seed}"
        folder.mkdir()
        ran = await fuzz(world, folder, viewer, examples=asked.examples, seed=seed, only=asked.only)
        sent, spread = sum(world.findings.asked.values()), len(world.findings.spread)
        left = len(world.findings.canaries) - spread
        took = time.monotonic() - began
        print(f"seed {seed}, {viewer}: {sent - before:,} requests in {took:.0f} s, {left} canaries left", flush=True)
        before = sent
        if ran.failed:
            found += 1
            print("\n".join(ran.output.splitlines()[-KEPT_LINES:]), flush=True)
    for sentence in world.findings.found:
        print(f"seed {seed}: {sentence}", flush=True)
    return found + len(world.findings.found)


if __name__ == "__main__":
    sys.exit(main())
