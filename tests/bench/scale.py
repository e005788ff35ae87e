"""`python -m tests.bench.scale [SIZE...] [--json FILE] [--hnsw ROWS]`: recall over large databases.

Databases of several sizes are measured alternately. In each, scopes of 100 to 50,000 rows in 1 to 50
rooms are queried: by Nexus's compose (without embedding and model), by Mem0's search, and by exact SQL.
"""

import argparse
import asyncio
import gc
import json
import os
import signal
import sys
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import asyncpg
import numpy as np

from bot.console.conversations import question
from bot.console.logs import configure_logs
from bot.script.places import place_of
from composer import visibility
from composer.layers.semantic import MAX_CANDIDATES
from composer.model import Trust
from composer.ports.database import Vector
from composer.repositories.readable import readable_parameters
from composer.stores.database.postgres import register_codecs
from composer.visibility import Readable
from tests.bench.cpu import Cpu
from tests.bench.mem0_search import Mem0Search
from tests.bench.planted import NEAR_ROW, SPEAKER, Planted, PlantedEmbedder, Scope, near, plant
from tests.bench.report import Report, quantile
from tests.bench.world import SEED, data_folder, opened, settled, stores

SIZES: Final = (10_000, 100_000, 1_000_000)
ASKED: Final = 40  # questions a scope
ASKED_SLOWLY: Final = 5  # of Mem0 and of exact SQL
TOP: Final = 10
GROWN: Final = ("compose", "semantic", "compose cpu", "meaning cpu")
LARGEST_HNSW: Final = 100_000  # rows that Mem0's default index is built over by default
AIMS: Final = (
    "aims: compose p95 up to 10 ms for scopes to 10,000 rows; at most 1.3 times the time at 100 times the rows; "
    "0.99 of the exact 10 nearest; 10 times faster than Mem0"
)
EXACT: Final = """
SELECT id FROM recall_index
WHERE tenant_id = $1 AND namespace = ANY ($2::text[])
      AND may_read(namespace, visibility, user_id, vendors, $3::text[], $4::text[], $5::uuid[], $6)
ORDER BY embedding <=> $7::vector, id LIMIT 10
"""


@dataclass
class Asked:
    """The results of one scope at one size: milliseconds by measurement, and shares of the exact 10 nearest."""

    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    shares: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def p(self, what: str, share: float) -> float:
        """A quantile of one of the times; nan where nothing was measured."""
        return quantile(self.times[what], share) if self.times[what] else float("nan")

    def found(self, what: str) -> float:
        """The mean share."""
        return float(np.mean(self.shares[what])) if self.shares[what] else float("nan")


Results = dict[int, dict[tuple[int, int], Asked]]


async def measure(sizes: list[int], largest_hnsw: int) -> Report:
    """Write databases of all sizes, then ask in them alternately."""
    results: Results = {size: defaultdict(Asked) for size in sizes}
    built: dict[int, float] = {}
    with data_folder() as home:
        async with stores(home) as servers, AsyncExitStack() as stack:
            worlds: list[tuple[Planted, Mem0Search]] = []
            for size in sizes:
                started = time.monotonic()
                embedder = PlantedEmbedder()
                app = await stack.enter_async_context(opened(home, servers, f"scale{size}", embedder=embedder))
                planted = await plant(app, embedder, size, _note)
                _note(f"{size:,} rows: the same for Mem0")
                mem0 = Mem0Search(planted)
                stack.callback(mem0.close)
                await mem0.open()
                await settled(app)
                built[size] = time.monotonic() - started
                _note(f"{size:,} rows: ready after {built[size]:.0f} s")
                worlds.append((planted, mem0))
            gc.collect()
            gc.freeze()  # as `nexus run` does: else a question now and then pays for all that is loaded
            await _ask_all(worlds, results)
            sys.stderr.write("\n".join(_report(sizes, results, built, {}, "not measured yet").text) + "\n")
            await _ask_mem0(worlds, results, "mem0")
            hnsw: dict[int, float] = {}
            for planted, mem0 in worlds:
                if planted.size <= largest_hnsw:
                    _note(f"{planted.size:,} rows: building Mem0's default index")
                    hnsw[planted.size] = await mem0.index()
            await _ask_mem0([w for w in worlds if w[0].size in hnsw], results, "mem0 hnsw")
            driver = worlds[0][1].driver
    return _report(sizes, results, built, hnsw, driver)


async def _ask_all(worlds: list[tuple[Planted, Mem0Search]], results: Results) -> None:
    """Compose, and compare candidates with exact SQL; the same scope in all sizes consecutively."""
    labels = sorted({scope.label for planted, _ in worlds for scope in planted.scopes})
    for label in labels:
        _note(f"asking in {label[0]:,} rows of {label[1]} rooms")
        here = [(planted, s) for planted, _ in worlds for s in planted.scopes if s.label == label]
        cpus = [Cpu(planted.app.settings.database_url or "") for planted, _ in here]
        for number in range(-2, ASKED):  # two that are not measured
            for (planted, scope), cpu in zip(here, cpus, strict=True):
                if number == 0:
                    await cpu.look()
                asked = results[planted.size][label] if number >= 0 else Asked()
                await _ask(planted, scope, number, asked, cpu, exactly=number < ASKED_SLOWLY)


async def _ask(planted: Planted, scope: Scope, number: int, asked: Asked, cpu: Cpu, *, exactly: bool) -> None:
    text, vector = question_of(scope, number)
    planted.embedder.next = vector
    app, here, place = planted.app, planted.workspace, place_of(scope.rooms[0], None, None)
    wanted, _ = await question(app, here, place, SPEAKER, text, app.clock.now(), top_k=None, id="question")
    started, before = time.perf_counter(), cpu.now()
    composed = await app.composer.compose(wanted)
    total = (time.perf_counter() - started) * 1000
    asked.times["compose cpu"].append(cpu.now() - before)
    asked.times["compose"].append(total - composed.timings_ms["embed"])
    asked.times["semantic"].append(composed.timings_ms["semantic"])
    async with app.database.transaction(here.tenant_id, "read") as tx:
        access = await tx.conversations.access_context(wanted.conversation_id, wanted.asker, Trust.MEMBER)
        assert access is not None
        readable = visibility.readable(access, [])
        started, before = time.perf_counter(), cpu.now()
        found = await tx.recall.search(readable, vector, [], MAX_CANDIDATES, [], app.clock.now())
        asked.times["meaning cpu"].append(cpu.now() - before)
        asked.times["meaning"].append((time.perf_counter() - started) * 1000)
    if not exactly:
        return
    nearest, took = await exact(planted, readable, vector)
    asked.times["exact"].append(took)
    held = {f.item.id for f in found.candidates}
    asked.shares["nexus"].append(sum(id in held for id in nearest) / len(nearest))


async def exact(planted: Planted, readable: Readable, vector: Any) -> tuple[list[str], float]:
    """Return the ids of the 10 nearest that a viewer may read, by plain SQL, and milliseconds."""
    async with planted.app.database.connection() as connection, connection.transaction(readonly=True):
        await connection.execute(f"SET LOCAL nexus.tenant = '{planted.workspace.tenant_id}'")
        started = time.perf_counter()
        rows = await connection.fetch(
            EXACT, readable.tenant_id, *readable_parameters(readable).values(), Vector(vector)
        )
        took = (time.perf_counter() - started) * 1000
    return [str(row["id"]) for row in rows], took


async def _ask_mem0(worlds: list[tuple[Planted, Mem0Search]], results: Results, name: str) -> None:
    for planted, mem0 in worlds:
        for scope in planted.scopes:
            _note(f"{name} at {planted.size:,}: {scope.rows:,} rows of {len(scope.rooms)} rooms")
            asked, runs = results[planted.size][scope.label], planted.runs(scope)
            for number in range(-1, ASKED_SLOWLY):
                text, vector = question_of(scope, number)
                found, took = await mem0.search(text, vector, runs)
                if number < 0:
                    continue
                asked.times[name].append(took)
                nearest = await nearest_in(planted, runs, vector)
                asked.shares[name].append(len(set(found) & set(nearest)) / len(nearest))


async def nearest_in(planted: Planted, runs: list[str], vector: Any) -> list[str]:
    """Return the ids of the 10 nearest among the rows that Mem0 searches."""
    connection = await asyncpg.connect(planted.app.settings.database_url)
    try:
        await register_codecs(connection, "public")
        rows = await connection.fetch(
            "SELECT id FROM recall_index WHERE tenant_id = $1 AND namespace = ANY ($2::text[])"
            " AND embedding IS NOT NULL ORDER BY embedding <=> $3::vector, id LIMIT 10",
            planted.workspace.tenant_id,
            runs,
            Vector(vector),
        )
    finally:
        await connection.close()
    return [str(row["id"]) for row in rows]


def question_of(scope: Scope, number: int) -> tuple[str, Any]:
    """Return a few words of a row in a scope, and a vector near that row's: the same for the same number."""
    random = np.random.default_rng([SEED, scope.rows, len(scope.rooms), number + 2])
    said, vector = scope.remembered[(number + 2) % len(scope.remembered)]
    words = said.rstrip(".").split()
    picked = [words[int(n)] for n in random.choice(len(words), size=min(4, len(words)), replace=False)]
    return f"what about {' '.join(picked)} and the rest?", near(random, vector, NEAR_ROW)


def _report(sizes: list[int], results: Results, built: dict[int, float], hnsw: dict[int, float], driver: str) -> Report:
    report = Report("scale")
    head = ["rows in scope", "rooms", "compose p50", "p95", "semantic p50", "p95"]
    head += ["compose cpu p50", "p95", "meaning cpu p50", "exact p50"]
    head += ["mem0 p50", "mem0/semantic", "mem0 hnsw p50", "found: nexus", "mem0", "mem0 hnsw"]
    for size in sizes:
        rows = []
        for (count, rooms), asked in sorted(results[size].items()):
            row: list[Any] = [count, rooms]
            row += [asked.p(what, share) for what in ("compose", "semantic", "compose cpu") for share in (0.5, 0.95)]
            row += [asked.p("meaning cpu", 0.5), asked.p("exact", 0.5), asked.p("mem0", 0.5)]
            row += [asked.p("mem0", 0.5) / asked.p("semantic", 0.5), asked.p("mem0 hnsw", 0.5)]
            row += [f"{asked.found(what):.3f}" for what in ("nexus", "mem0", "mem0 hnsw")]
            rows.append(row)
        made = f"made in {built[size]:.0f} s"
        if size in hnsw:
            made += f", Mem0's default index in {hnsw[size]:.0f} s more"
        report.table(f"{size:,} rows stored ({made}); ms. {AIMS}", head, rows)
        report.figures[str(size)] = [
            {"rows": c, "rooms": r, "p50": {k: a.p(k, 0.5) for k in list(a.times)}}
            | {"p95": {k: a.p(k, 0.95) for k in list(a.times)}, "found": {k: a.found(k) for k in list(a.shares)}}
            for (c, r), a in sorted(results[size].items())
        ]
    small, large = results[sizes[0]], results[sizes[-1]]
    both = [label for label in sorted(small) if label in large]
    if sizes[0] != sizes[-1] and both:
        rows = [[*label, *(large[label].p(what, 0.5) / small[label].p(what, 0.5) for what in GROWN)] for label in both]
        report.table(f"p50 at {sizes[-1]:,} over p50 at {sizes[0]:,}", ["rows in scope", "rooms", *GROWN], rows)
    report.text += [f"mem0: {driver}", ""]
    return report


def _note(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} … {text}\n")
    sys.stderr.flush()


def main() -> None:
    """Measure the named sizes, or all."""
    parser = argparse.ArgumentParser(prog="make bench-scale", description="Measures recall over large databases.")
    parser.add_argument("sizes", nargs="*", type=int, metavar="SIZE", help=f"rows ({' '.join(map(str, SIZES))})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--hnsw", type=int, default=LARGEST_HNSW, metavar="ROWS", help="the largest size with Mem0's default index"
    )
    given = parser.parse_args()
    configure_logs("error")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the servers stop and the data folder is removed
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    started = time.monotonic()
    report = asyncio.run(measure(sorted(set(given.sizes)) or list(SIZES), given.hnsw))
    print("\n".join(report.text), flush=True)
    print(f"measured in {time.monotonic() - started:.0f} s")
    if given.json is not None:
        given.json.write_text(json.dumps(report.figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
