"""Generates random worlds, in which secrets resemble what will be asked. A world depends only on its seed."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tests.property import elsewhere
from tests.property.builder import Builder
from tests.property.reference import MINUTE
from tests.property.setting import BUSY_PEOPLE, DEN, HOUR, LOBBY, PEOPLE, PLACES, PUBLIC, Words
from tests.property.trace import MoveUnheard, Outage, Spot, Trace


@dataclass(frozen=True, slots=True)
class World:
    """A trace, and the seed that it came from. `end` is when questions are asked, and `nights` when the jobs write
    summaries, in seconds."""

    seed: int
    events: Trace
    end: int
    spots: tuple[Spot, ...] = PLACES
    people: tuple[str, ...] = PEOPLE
    nights: tuple[int, ...] = ()
    small: bool = False


_ACTIONS: Final[tuple[tuple[Callable[[Builder], None], float], ...]] = (
    (Builder.say, 20),
    (Builder.burst, 7),
    (Builder.say_elsewhere, 2.5),
    (Builder.fact, 9),
    (Builder.pin, 4.2),
    (Builder.remember, 4),
    (Builder.keep, 4),
    (Builder.summarise, 3),
    (Builder.edit, 3),
    (Builder.delete, 3),
    (Builder.repeat, 1.5),
    (Builder.forget, 4.5),
    (Builder.move, 5),
    (Builder.open_or_close, 1.6),
    (Builder.assign, 5),
    (Builder.unassign, 2.5),
    (Builder.member, 4),
    (Builder.admin, 0.6),
    (Builder.opt, 1.5),
    (Builder.edit_unrecorded, 0.8),
    (Builder.record, 1.2),
    (Builder.erase_room, 0.6),
    (Builder.share, 6),
)
LARGE_EVERY: Final = 41  # worlds: one of them is large. Small ones find most bugs, at a tenth of the cost


def make(seed: int) -> World:
    """Return the world of a seed."""
    return large(seed) if seed % LARGE_EVERY == 0 else small(seed)


def small(seed: int) -> World:
    """Return a world of a few rooms, in which about ten things happen."""
    rng = random.Random(f"small world {seed}")
    builder = Builder(rng, Words(rng))
    builder.found_few()
    _act(builder, rng.randint(2, 5))
    _read_rooms(builder, seed, 0.2)
    _talk(builder, seed, 0.35)
    if rng.random() < 0.08:
        builder.opened()
    if rng.random() < 0.5:  # the last events determine the state
        rng.choice((builder.move, builder.expel, builder.unassign, builder.delete, builder.edit))()
    return _with_platforms(World(seed, (), 0, small=True), builder)


def large(seed: int) -> World:
    """Return a world of many rooms and projects, sometimes with a crowd or a long conversation."""
    rng = random.Random(f"world {seed}")
    builder = Builder(rng, Words(rng))
    builder.found()
    if rng.random() < 0.6:
        builder.project_life()
    _act(builder, rng.randint(9, 26))
    _read_rooms(builder, seed, 0.6)
    _talk(builder, seed, 0.5)
    people: tuple[str, ...] = PEOPLE
    special = rng.random()
    if special < 0.05:
        builder.crowd()
        people += BUSY_PEOPLE[:3]
    elif special < 0.10:
        builder.long_talk()
    elif special < 0.20:
        builder.opened()
    if rng.random() < 0.7:  # the last events determine the state
        rng.choice((builder.move, builder.member, builder.unassign, builder.delete, builder.edit))()
    return _with_platforms(World(seed, (), 0, people=people), builder)


def _act(builder: Builder, times: int) -> None:
    """Let that many things happen."""
    actions, weights = zip(*_ACTIONS, strict=True)
    for action in builder.rng.choices(actions, weights=weights, k=times):
        action(builder)


def _talk(builder: Builder, seed: int, chance: float) -> None:
    """Let people ask an agent in a thread and follow up, by chance, drawn apart as well."""
    rng, builder.rng = builder.rng, random.Random(f"talk {seed}")
    if builder.rng.random() < chance:
        builder.follow_up()
    builder.rng = rng


def _read_rooms(builder: Builder, seed: int, chance: float) -> None:
    """Let somebody open their DMs to rooms, by chance, drawn apart so that the rest of a world is as it is without."""
    rng, builder.rng = builder.rng, random.Random(f"rooms {seed}")
    if builder.rng.random() < chance:
        builder.read_rooms()
    builder.rng = rng


# What happens at the end, the name of its own random numbers, and its chance in a small and in a large world.
_AT_THE_END: Final[tuple[tuple[Callable[[Builder], None], str, float, float], ...]] = (
    (elsewhere.link_accounts, "platforms", 0.075, 0.1),
    (elsewhere.visit, "guests", 0.07, 0.1),
    (elsewhere.be_in_private, "members", 0.1, 0.1),
    (Builder.bring_history, "history", 0.06, 0.1),
    (Builder.erase_all, "erasing", 0.06, 0.1),
)


def _with_platforms(world: World, builder: Builder) -> World:
    """Finish a world, by chance with what happens on other platforms. That comes last, and is drawn apart, so that all
    before is as it is without."""
    before, rngs = len(builder.events), (builder.rng, builder.words.rng)
    for happens, name, chance, chance_in_large in _AT_THE_END:
        builder.rng = builder.words.rng = random.Random(f"{name} {world.seed}")
        if builder.rng.random() < (chance if world.small else chance_in_large):
            happens(builder)
    builder.rng, builder.words.rng = rngs
    soon = isinstance(builder.events[-1], MoveUnheard | Outage) and random.Random(f"end {world.seed}").random() < 0.5
    end = builder.at + (MINUTE // 2 if soon else HOUR)  # soon enough for what a platform has said to be used again
    world = replace(world, events=tuple(builder.events), end=end)
    if len(builder.events) == before:
        return world
    return replace(world, people=(*world.people, *elsewhere.PEOPLE), spots=(*world.spots, LOBBY, DEN))


def busy(seed: int) -> World:
    """Return a world with one busy room, in which something is deleted at the end."""
    rng = random.Random(f"busy {seed}")
    builder = Builder(rng, Words(rng))
    builder.found()
    for _ in range(2):
        builder.continue_in(PUBLIC[0])
    builder.delete()
    builder.edit()
    return World(seed, tuple(builder.events), builder.at + HOUR, spots=PUBLIC[:1])
