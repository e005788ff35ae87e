"""Runs worlds one after another, and reduces a world that breaks a rule to the events that are needed."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Final

from composer.stores.embedded.servers import Servers
from tests.property.checks import Broken, Viewer, check, check_viewer
from tests.property.product import Product, silence_logs, two_products
from tests.property.reference import Reference
from tests.property.trace import Summarise, Trace
from tests.property.twins import Twins, compare_twins, surroundings, twins_of
from tests.property.worlds import World, make

FEW: Final = 2  # candidates: so few that unreadable ones, if counted, would displace readable ones
FRESH: Final = 500  # worlds on one pair of databases before a new pair is made
Report = tuple[str, Counter[str], str]  # worlds, broken or crashed; counts; a text
DAY: Final = 86_400  # seconds
CUTS: Final = 150  # attempts to make a broken world smaller


async def compare_with_reference(product: Product, seed: int, counts: Counter[str], *, prefix: str = "") -> None:
    """Compare one world with the reference. Raises Broken."""
    await check(product, f"{prefix}{seed}", make(seed), counts)


def by_night(seed: int) -> bool:
    """Return whether the twins of a seed are played with nights, in which the jobs write summaries; this is slower."""
    return seed % 25 == 5


async def compare_with_twin(
    first: Product,
    second: Product,
    seed: int,
    counts: Counter[str],
    *,
    prefix: str = "",
    looks: int = 1,
    nights: bool = False,
) -> None:
    """Compare one world with its twin, for the viewer, and the first with the reference, for `looks` viewers.

    In most worlds recall is limited so far that its limits take effect. `nights`: the jobs write all summaries,
    halfway and at the end; the reference knows none of them. Raises Broken.
    """
    rng, name = random.Random(f"twins {seed}"), f"{prefix}{seed}"
    world = with_nights(make(seed)) if nights else make(seed)
    twins = twins_of(world, counts, rng)
    if twins is None:
        counts["worlds without a twin"] += 1
        return
    rules, _ = await compare_twins(first, second, name, twins, counts, few=FEW if _cut_short(seed) else None)
    if looks and not nights and not _cut_short(seed):
        # The commands of the comparison can change the world, but only the place where they were given.
        viewer = twins.viewer
        if rules.may_take_part("main", viewer.user, rules.conversation_key("main", viewer.user, viewer.spot)):
            await _look_again(first, name, world, rules, viewer, counts)


def with_nights(world: World) -> World:
    """Return the same world without summaries by hand, with one night halfway and one when every week is over."""
    last, end = world.events[-1].at, world.end + 9 * DAY
    events = tuple(event for event in world.events if not isinstance(event, Summarise))
    return replace(world, events=events, end=end, nights=(last // 2, end - 1))


def _cut_short(seed: int) -> bool:
    return seed % 4 != 0


async def _look_again(
    product: Product, name: str, world: World, rules: Reference, viewer: Viewer, counts: Counter[str]
) -> None:
    if viewer.user in world.people:
        await check_viewer(product, name, world, rules, viewer, counts)


async def shrunk_world(product: Product, seed: int) -> World:
    """Reduce the world of a seed that disagrees with the reference to as few events as possible."""
    world = make(seed)

    async def breaks(events: Trace, name: str) -> bool:
        try:
            await check(product, name, replace(world, events=events), Counter())
        except Broken:
            return True
        except Exception:  # fewer events may be impossible, which says nothing about the rule
            return False
        return False

    return replace(world, events=await _shrunk(world.events, breaks, f"cut{seed}"))


async def shrunk_twins(first: Product, second: Product, seed: int, *, nights: bool = False) -> Twins | None:
    """Reduce the twins of a seed that can be distinguished to as few events as possible."""
    world = with_nights(make(seed)) if nights else make(seed)
    twins = twins_of(world, Counter(), random.Random(f"twins {seed}"))
    if twins is None:
        return None

    def without(kept: set[int]) -> Twins:
        one, two = (replace(w, events=tuple(e for e in w.events if e.n in kept)) for w in (twins.first, twins.second))
        return replace(twins, first=one, second=two)

    async def breaks(events: Trace, name: str) -> bool:
        fewer = without({event.n for event in events})
        views = [surroundings(Reference.after(w.events), w, twins.viewer) for w in (fewer.first, fewer.second)]
        if any(one != two for one, two in zip(*views, strict=True)):
            return False
        try:
            await compare_twins(first, second, name, fewer, Counter(), few=FEW if _cut_short(seed) else None)
        except Broken as error:
            return error.method == "interference"
        return False

    every = {event.n: event for event in (*twins.first.events, *twins.second.events)}
    kept = await _shrunk(tuple(sorted(every.values(), key=lambda e: e.at)), breaks, f"cut{seed}")
    return without({event.n for event in kept})


async def _shrunk(events: Trace, breaks: Callable[[Trace, str], Awaitable[bool]], name: str) -> Trace:
    """Reduce events to as few as still break a rule, by leaving out smaller and smaller pieces."""
    kept, size, tries = events, max(len(events) // 2, 1), 0
    while tries < CUTS:
        cut = False
        for start in range(len(kept) - size, -1, -size):
            fewer = kept[:start] + kept[start + size :]
            tries += 1
            if tries > CUTS:
                return kept
            if fewer and await breaks(fewer, f"{name}-{tries}"):
                kept, cut = fewer, True
        if size == 1 and not cut:
            return kept
        size = max(size // 2, 1)
    return kept


def work(seeds: range, job: int, servers: Servers, home: Path, reports: "Queue[Report]") -> None:
    """Run one process of a campaign: compare every world with its twin, and every tenth with the reference alone."""
    silence_logs()
    asyncio.run(_worlds(seeds, job, servers, home, reports))


async def _worlds(seeds: range, job: int, servers: Servers, home: Path, reports: "Queue[Report]") -> None:
    for start in range(0, len(seeds), FRESH):
        async with two_products(servers, home, cache=2 * job) as (first, second):
            for seed in seeds[start : start + FRESH]:
                counts: Counter[str] = Counter()
                try:
                    await compare_with_twin(first, second, seed, counts, nights=by_night(seed))
                    if seed % 10 == 0:
                        await compare_with_reference(first, seed, counts, prefix="alone")
                except Broken as error:
                    smaller = (
                        await shrunk_twins(first, second, seed, nights=by_night(seed))
                        if error.method == "interference"
                        else await shrunk_world(first, seed)
                    )
                    reports.put(("broken", counts, f"seed {seed}: {error}\nin short: {smaller}"))
                except Exception as error:
                    reports.put(("crashed", counts, f"seed {seed}: {type(error).__name__}: {error}"))
                else:
                    reports.put(("worlds", counts, ""))
