"""Traces of generated worlds (tests/property): what was accepted, every viewer's prompt, and the rows."""

import random
from pathlib import Path
from typing import Any, Final

from composer.stores.embedded.servers import Servers
from tests.golden.names import Names
from tests.golden.recording import Recorder
from tests.golden.rows import columns_of, read_rows, tenants_of
from tests.property.checks import everyone
from tests.property.product import product_on
from tests.property.reference import Reference
from tests.property.setting import EVERYTHING
from tests.property.trace import MAIN
from tests.property.worlds import make

FRESH: Final = 500  # worlds on one database
FIRST_SEED: Final = 3_000_000
MOST: Final = 40  # viewers of one world


async def record_worlds(servers: Servers, folder: Path, recorder: Recorder, seeds: range) -> None:
    """Play the worlds of these seeds."""
    home = folder / "worlds"
    home.mkdir()
    for start in range(0, len(seeds), FRESH):
        async with product_on(servers, home) as product:
            columns = await columns_of(product.raw)
            for seed in seeds[start : start + FRESH]:
                await _record(product, columns, seed, recorder)


async def _record(product: Any, columns: dict[str, dict[str, str]], seed: int, recorder: Recorder) -> None:
    world, name, raw = make(seed), f"golden{seed}", product.raw
    before = set(await tenants_of(raw))
    rules = Reference.after(world.events)
    accepted = await product.play(name, world.events, rules.accepted)
    names = Names()
    rows = await read_rows(raw, columns, sorted(set(await tenants_of(raw)) - before), names)
    inside, outside = everyone(world, rules)
    rng = random.Random(f"golden {seed}")
    viewers = [*inside, *outside]
    if len(viewers) > MOST:
        viewers = rng.sample(viewers, MOST)
    asked: dict[str, Any] = {}
    for viewer in viewers:
        found = await product.ask(name, MAIN, viewer.user, viewer.spot, EVERYTHING, world.end)
        asked[str(viewer)] = names.value(found.refusal if found.prompt is None else found.prompt.as_json())
    recorder.add(
        f"world {seed}",
        input=[str(event) for event in world.events],
        accepted=accepted,
        prompts=asked,
        rows=rows,
    )
