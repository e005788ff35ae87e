"""A few generated worlds on the real product; tests/deep/property plays many, and takes a census of them."""

from collections import Counter

import pytest

from tests.property.campaign import by_night, compare_with_reference, compare_with_twin
from tests.property.checks import check
from tests.property.product import Product
from tests.property.trace import Forget, Say, Spot
from tests.property.worlds import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORLDS = 20
PAIRS = 10


async def test_a_prompt_shows_what_the_rules_allow_and_nothing_else(products: tuple[Product, Product]) -> None:
    counts: Counter[str] = Counter()
    for seed in range(WORLDS):
        await compare_with_reference(products[0], seed, counts)
    assert counts["items recalled"]


async def test_worlds_that_differ_only_in_what_a_viewer_may_not_read_are_indistinguishable_to_them(
    products: tuple[Product, Product],
) -> None:
    counts: Counter[str] = Counter()
    for seed in range(100_000, 100_000 + PAIRS):
        await compare_with_twin(*products, seed, counts, nights=by_night(seed))
    assert counts["questions compared"] >= PAIRS


@pytest.mark.parametrize(
    "text", ["@carol We decided that the colour is zx7q", "We decided that the door is zx7q @carol"]
)
async def test_a_decision_stays_its_authors_when_somebody_whom_it_mentions_forgets_everything(
    products: tuple[Product, Product], text: str
) -> None:
    room = Spot("room", "general")
    said = Say(n=1, at=10, user="dave", spot=room, text=text)
    forget = Forget(n=2, at=20, user="carol", spot=room, words="everything")
    world = World(seed=len(text), events=(said, forget), end=4_000, small=True)
    await check(products[0], text, world, Counter())
