"""Records the families of traces, one after another, on stores of their own."""

import asyncio
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import asyncpg

from composer.stores.embedded.servers import Servers
from tests.golden.attacks import record_api, record_attacks
from tests.golden.play import record_play
from tests.golden.recording import FAMILIES, Recorder, note, silence
from tests.golden.rows import columns_of
from tests.golden.stores import stores
from tests.golden.week import record_week
from tests.golden.wires import record_wires
from tests.golden.worlds import FIRST_SEED, record_worlds
from tests.support.databases import TEMPLATE, database_url


def record(into: Path, families: Sequence[str], every: int, worlds: int) -> None:
    """Record these families into a folder: one of `every` so many cases, and so many worlds."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    note(into, commit=head.stdout.strip())
    silence()
    with stores() as (servers, folder):
        note(into, tables=asyncio.run(_tables(database_url(servers.database_url, TEMPLATE))))
        for family in [each for each in FAMILIES if each in families]:
            began, cpu = time.monotonic(), time.process_time()
            with Recorder(into, family) as recorder:
                asyncio.run(_family(family, servers, folder, recorder, every, worlds))
            took = f"{time.monotonic() - began:.0f} s, {time.process_time() - cpu:.0f} s of this process's processor"
            print(f"{family}: {recorder.count} traces in {took}", flush=True)


async def _tables(url: str) -> dict[str, list[str]]:
    raw = await asyncpg.connect(url)
    try:
        return {name: sorted(kinds) for name, kinds in (await columns_of(raw)).items()}
    finally:
        await raw.close()


async def _family(family: str, servers: Servers, folder: Path, recorder: Recorder, every: int, worlds: int) -> None:
    match family:
        case "attacks":
            await record_attacks(servers, folder, recorder, every)
        case "api":
            await record_api(servers, folder, recorder, every)
        case "week":
            await record_week(servers, folder, recorder)
        case "wires":
            await record_wires(servers, folder, recorder)
        case "play":
            await record_play(servers, folder, recorder)
        case "worlds":
            await record_worlds(servers, folder, recorder, range(FIRST_SEED, FIRST_SEED + worlds))
