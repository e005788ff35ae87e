"""Time of a composition by layer, without embedding the query and without a model, at two sizes side by side."""

import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from bot.console.conversations import question
from composer.stores.embedded.servers import Servers
from tests.bench.report import Report, quantile
from tests.bench.world import (
    BUSY,
    DMS,
    FURNISHED,
    PLAIN,
    POOL,
    SEED,
    SMALL,
    HashEmbedder,
    Vocabulary,
    World,
    asker,
    build,
    data_folder,
    opened,
    person,
    place,
    settled,
    stores,
)

LAYERS: Final = ("resolve", "working", "episodic", "semantic", "structured", "pack", "total")
SIZES: Final = (10_000, 100_000)
QUICK_SIZES: Final = (1_000, 4_000)
# Where questions are asked. The targets apply to the first group: plain rooms, rooms of small projects, DMs.
ORDINARY: Final = "ordinary rooms, small projects and DMs"
GROUPS: Final = {
    ORDINARY: [
        *PLAIN[:FURNISHED],
        *(rooms[0] for rooms in SMALL),
        *(f"dm:{person(number)}" for number in range(DMS // 2)),
    ],
    "the room with a tenth of all messages": [BUSY],
    "a room of a project that pools 20 rooms": POOL[:3],
}
AIM: Final = "aim: p50 under 5 ms, p95 under 12 ms at both sizes"


@dataclass
class Times:
    """Times of the compositions in one group at one size, by layer (ms), and the sizes of the prompts."""

    layers: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in LAYERS})
    tokens: list[int] = field(default_factory=list)

    def p(self, layer: str, share: float) -> float:
        """A quantile of one layer."""
        return quantile(self.layers[layer], share)


async def measure(quick: bool, note: Callable[[str], None]) -> Report:
    """Fill two worlds and compose in both alternately, so that whatever slows the machine slows both."""
    sizes = QUICK_SIZES if quick else SIZES
    with data_folder() as home:
        async with stores(home) as servers, AsyncExitStack() as stack:
            worlds = await _worlds(stack, home, servers, sizes, note)
            fresh = await _asked(worlds, GROUPS[ORDINARY], 80)
            note("waiting for the database to tidy up after the import")
            calm = [await settled(world.app) for world in worlds]
            times = {name: await _asked(worlds, places, 80 if quick else 320) for name, places in GROUPS.items()}
    title = f"{ORDINARY}, right after the import" + ("" if all(calm) else " (the first vacuum has not come)")
    return _report(sizes, times | {title: fresh})


async def _worlds(
    stack: AsyncExitStack, home: Path, servers: Servers, sizes: tuple[int, ...], note: Callable[[str], None]
) -> list[World]:
    vocabulary, worlds = Vocabulary(), []
    for size in sizes:
        app = await stack.enter_async_context(opened(home, servers, f"bench{size}", embedder=HashEmbedder()))
        worlds.append(await build(app, size, vocabulary, note))
    return worlds


async def _asked(worlds: list[World], places: list[str], count: int) -> list[Times]:
    """Ask `count` questions in each world, after one in each place that is not measured."""
    vocabulary, random = Vocabulary(), np.random.default_rng(SEED)
    for world in worlds:
        for name in places:
            await _compose(world, name, "warm up", Times())
    times = [Times() for _ in worlds]
    for number in range(count):
        for world, taken in zip(worlds, times, strict=True):
            name = places[number % len(places)]
            await _compose(world, name, world.question(name, random, vocabulary), taken)
    return times


async def _compose(world: World, name: str, text: str, taken: Times) -> None:
    now = world.app.clock.now()
    asked, _ = await question(
        world.app, world.workspace, place(name), asker(name), text, now, top_k=None, id="question"
    )
    started = time.perf_counter()
    composed = await world.app.composer.compose(asked)
    total = (time.perf_counter() - started) * 1000
    timings = composed.timings_ms | {"total": total - composed.timings_ms["embed"]}
    for layer in LAYERS:
        taken.layers[layer].append(timings[layer])
    taken.tokens.append(composed.prompt.tokens)


def _report(sizes: tuple[int, ...], times: dict[str, list[Times]]) -> Report:
    report = Report("compose")
    small, large = (f"{size // 1000}k" for size in sizes)
    head = ["ms", *(f"{size} {p}" for size in (small, large) for p in ("p50", "p95")), f"p50 {large}/{small}"]
    for number, (group, (a, b)) in enumerate(times.items()):
        rows = [
            [layer, a.p(layer, 0.5), a.p(layer, 0.95), b.p(layer, 0.5), b.p(layer, 0.95), _ratio(a, b, layer)]
            for layer in LAYERS
        ]
        size = f"{np.median(a.tokens):,.0f} and {np.median(b.tokens):,.0f} tokens"
        report.table(f"compose in {group}; prompts of {size}" + ("" if number else f" ({AIM})"), head, rows)
        report.figures[group] = {
            str(size): {layer: {"p50": t.p(layer, 0.5), "p95": t.p(layer, 0.95)} for layer in LAYERS}
            for size, t in zip(sizes, (a, b), strict=True)
        }
    return report


def _ratio(small: Times, large: Times, layer: str) -> str:
    return f"{large.p(layer, 0.5) / max(small.p(layer, 0.5), 1e-6):.2f}"
