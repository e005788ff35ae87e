"""Many generated worlds, compared with the reference: a prompt shows what the rules allow, and less membership never
shows more. tests/property/test_worlds.py plays a few of them."""

import random
from collections import Counter

import pytest

from composer.stores.embedded.servers import Servers
from composer.stores.models.minilm import MiniLM
from tests.property.campaign import compare_with_reference, compare_with_twin
from tests.property.census import ACTIONS, VIEW_SIZES, report, too_few
from tests.property.checks import Broken, Viewer, check, everyone
from tests.property.product import Product, two_products
from tests.property.reference import Reference
from tests.property.setting import EVERYTHING
from tests.property.trace import MAIN, Event, Member, Move, Unassign, canaries
from tests.property.worlds import World, busy, large

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORLDS = 700  # compared with the reference alone; 300 more, each with a twin, are in test_non_interference
DEMOTED = 30


async def test_a_prompt_shows_what_the_rules_allow_and_nothing_else(products: tuple[Product, Product]) -> None:
    counts: Counter[str] = Counter()
    for seed in range(WORLDS):
        await compare_with_reference(products[0], seed, counts)
    few = too_few(counts, WORLDS, ACTIONS, VIEW_SIZES)
    assert not few, f"too poor: {few}\n{report(counts)}"


async def test_a_prompt_shows_what_the_rules_allow_with_a_real_embedder(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    counts: Counter[str] = Counter()
    async with two_products(servers, tmp_path_factory.mktemp("home"), embedder=MiniLM()) as pair:
        for seed in range(70_000, 70_010, 2):
            await compare_with_reference(pair[0], seed, counts)
            await compare_with_twin(*pair, seed, counts, prefix="twin")
    assert counts["items recalled"] >= 1
    assert counts["questions compared"] >= 4


# --- less membership never shows more -------------------------------------------------------------------------


async def test_the_view_of_a_busy_room_has_the_latest_messages_and_related_ones_from_before_them(
    products: tuple[Product, Product],
) -> None:
    counts: Counter[str] = Counter()
    for seed in range(2):
        await check(products[0], f"busy{seed}", busy(seed), counts)
    assert counts["views with gaps"]


async def test_a_person_who_loses_membership_is_shown_no_more_than_before(products: tuple[Product, Product]) -> None:
    tried, shown_less = 0, 0
    for seed in range(50_000, 50_000 + DEMOTED):
        world, product = large(seed), products[0]
        rng, name = random.Random(f"demoted {seed}"), f"demoted{seed}"
        rules = Reference.after(world.events)
        loss = _loss(world, rules, rng)
        if loss is None:
            continue
        await product.play(name, world.events, rules.accepted)
        inside, _ = everyone(world, rules)
        theirs = [v for v in inside if v.user == _loser(loss)]
        others = [v for v in inside if v.user != _loser(loss) and rng.random() < 0.1]
        chosen = rng.sample(theirs, min(3, len(theirs))) + others[:1]
        before = [await _shown(product, name, world, viewer) for viewer in chosen]
        await product.play(name, (loss,), [False])
        for viewer, had in zip(chosen, before, strict=True):
            tried += 1
            has = await _shown(product, name, world, viewer)
            shown_less += has < had
            if not has <= had:
                raise Broken("reference", name, f"after {loss} {viewer} is shown {sorted(has - had)} more")
    assert tried > DEMOTED
    assert shown_less >= DEMOTED // 10


async def _shown(product: Product, name: str, world: World, viewer: Viewer) -> frozenset[str]:
    asked = await product.ask(name, MAIN, viewer.user, viewer.spot, EVERYTHING, world.end + 60)
    return canaries(asked.text())


def _loser(loss: Event) -> str:
    return loss.who if isinstance(loss, Member) else loss.user


def _loss(world: World, rules: Reference, rng: random.Random) -> Event | None:
    """Choose a loss: someone leaves a room or a project, or a room or session leaves its project. Isolated projects
    are excepted: who leaves one may read more than before."""
    here = rules.tenant(MAIN)
    losses: list[Event] = []
    for room in here.rooms.values():
        losses += [
            Move(n=90_000, at=world.end, user=user, room=room.name, joined=False)
            for user, is_in in room.members.items()
            if is_in
        ]
    for project in here.projects.values():
        managers = [user for user, role in project.members.items() if role == "admin"]
        if project.isolated or not managers:
            continue
        spot = world.spots[0]
        losses += 3 * [
            Member(n=90_000, at=world.end, user=managers[0], spot=spot, slug=project.slug, who=user, role=None)
            for user in project.members
        ]
        for viewer in everyone(world, rules)[0]:
            conversation_key = rules.conversation_key(MAIN, viewer.user, viewer.spot)
            if rules.assigned(MAIN, conversation_key) is project and viewer.spot.kind in ("dm", "session"):
                losses.append(Unassign(n=90_000, at=world.end, user=viewer.user, spot=viewer.spot))
    return rng.choice(losses) if losses else None
