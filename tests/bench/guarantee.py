"""What the guarantee costs a composition: CPU with and without the checks of who may read, side by side.

Two worlds hold the same messages. In one of them, nothing is asked of a row but that it is in scope: `may_read` is true
for each, no policy of the database narrows a read to its tenant, and the second check and the quoting of people's text
in code are taken out while it composes. What a question searches, shows and records stays.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import asyncpg
import numpy as np

from bot.console.conversations import question
from composer.prompt import lines, rendering
from composer.visibility import Readable, Tagged
from tests.bench.compose import GROUPS
from tests.bench.cpu import Cpu
from tests.bench.report import Report, quantile
from tests.bench.world import (
    SEED,
    HashEmbedder,
    Vocabulary,
    World,
    asker,
    build,
    data_folder,
    opened,
    place,
    settled,
    stores,
)

SIZE: Final = 10_000
QUICK_SIZE: Final = 1_000
ASKED: Final = 320
AIM: Final = "aim: under 15% more"

_POLICIES: Final = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relrowsecurity"


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Compose the same questions in both worlds, in turns."""
    size, count = (QUICK_SIZE, ASKED // 4) if quick else (SIZE, ASKED)
    vocabulary, report = Vocabulary(), Report("guarantee")
    with data_folder() as home:
        async with (
            stores(home) as servers,
            opened(home, servers, "guarded", embedder=HashEmbedder()) as guarded,
            opened(home, servers, "unguarded", embedder=HashEmbedder()) as unguarded,
        ):
            worlds = [await build(app, size, vocabulary, note) for app in (guarded, unguarded)]
            await _open(servers.database_url.replace("/nexus?", "/unguarded?"))
            note("waiting for the database to tidy up after the import")
            for world in worlds:
                await settled(world.app)
            rows = [_row(group, *await _asked(worlds, places, count)) for group, places in GROUPS.items()]
    head = ["ms of CPU, Python and PostgreSQL", "with p50", "without p50", "with p95", "without p95", "more (p50)"]
    report.table(f"compose over {size:,} messages, with and without the checks ({AIM})", head, rows)
    report.figures = {str(row[0]): row[1:] for row in rows}
    return report


async def _open(url: str) -> None:
    """Take the checks out of a database."""
    connection = await asyncpg.connect(url)
    try:
        [(arguments,)] = await connection.fetch(
            "SELECT pg_get_function_arguments(oid) FROM pg_proc WHERE proname = 'may_read'"
        )
        await connection.execute(
            f"CREATE OR REPLACE FUNCTION may_read({arguments}) RETURNS boolean"
            " LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN true"
        )
        for (table,) in await connection.fetch(_POLICIES):
            await connection.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
    finally:
        await connection.close()


@contextmanager
def _without_checks() -> Iterator[None]:
    """Take the second check and the quoting out of this process."""

    def admits(self: Readable, row: Tagged) -> bool:
        return True

    kept, quote = Readable.admits, lines.quote
    Readable.admits = admits  # type: ignore[method-assign]
    lines.quote = rendering.quote = str  # type: ignore[attr-defined, assignment]
    try:
        yield
    finally:
        Readable.admits = kept  # type: ignore[method-assign]
        lines.quote = rendering.quote = quote  # type: ignore[attr-defined]


async def _asked(worlds: list[World], places: list[str], count: int) -> tuple[list[float], list[float]]:
    """The CPU of each of `count` compositions, in the guarded world and in the other one."""
    vocabulary, random = Vocabulary(), np.random.default_rng(SEED)
    cpus = [Cpu(str.__str__(world.app.settings.database_url or "")) for world in worlds]
    times: tuple[list[float], list[float]] = ([], [])
    for name in places:
        for world in worlds:
            await _compose(world, name, "warm up")
    for cpu in cpus:
        await cpu.look()
    for number in range(count):
        name = places[number % len(places)]
        text = worlds[0].question(name, random, vocabulary)
        for at in (0, 1) if number % 2 else (1, 0):
            before = cpus[at].now()
            if at:
                with _without_checks():
                    await _compose(worlds[at], name, text)
            else:
                await _compose(worlds[at], name, text)
            times[at].append(cpus[at].now() - before)
    return times


async def _compose(world: World, name: str, text: str) -> None:
    now = world.app.clock.now()
    asked, _ = await question(
        world.app, world.workspace, place(name), asker(name), text, now, top_k=None, id="question"
    )
    await world.app.composer.compose(asked)


def _row(group: str, guarded: list[float], unguarded: list[float]) -> list[object]:
    a, b = (quantile(each, 0.5) for each in (guarded, unguarded))
    return [group, a, b, quantile(guarded, 0.95), quantile(unguarded, 0.95), f"{100 * (a / b - 1):+.0f}%"]
