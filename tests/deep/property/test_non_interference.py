"""Two worlds that differ only in what a viewer may not read give this viewer the same prompts and answers."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.property.campaign import by_night, compare_with_twin
from tests.property.census import ACTIONS, SECRETS, TWINS, report, too_few
from tests.property.checks import Viewer
from tests.property.product import Product, both
from tests.property.reference import Reference
from tests.property.setting import PEOPLE, PLACES
from tests.property.trace import MAIN, Edit, Event, Remember, Say, Spot, Trace
from tests.property.twins import surroundings
from tests.property.worlds import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAIRS = 300  # each a world and its twin
GENERAL, VAULT, DM = Spot("room", "general"), Spot("room", "vault"), Spot("dm", "nexus")


async def test_worlds_that_differ_only_in_what_a_viewer_may_not_read_are_indistinguishable_to_them(
    products: tuple[Product, Product],
) -> None:
    counts: Counter[str] = Counter()
    for seed in range(100_000, 100_000 + PAIRS):
        await compare_with_twin(*products, seed, counts, nights=by_night(seed))
    few = too_few(counts, PAIRS, ACTIONS, SECRETS, TWINS)
    assert not few, f"too poor: {few}\n{report(counts)}"
    assert counts["summaries of nights"] > PAIRS // 6


# --- differences that random worlds seldom have, each found once-------------------------------------------------


async def same(
    products: tuple[Product, Product], name: str, first: Trace, second: Trace, viewer: Viewer, question: str
) -> None:
    """Check that the viewer's prompt is the same in both worlds, which are equal for the reference too."""
    rules = [Reference.after(events) for events in (first, second)]
    worlds = [World(0, events, 100_000, PLACES, PEOPLE) for events in (first, second)]
    views = [list(surroundings(each, world, viewer)) for each, world in zip(rules, worlds, strict=True)]
    assert views[0] == views[1], "these worlds differ in what the viewer may read"
    taken = await both(*(p.play(name, w.events, r.accepted) for p, w, r in zip(products, worlds, rules, strict=True)))
    assert all(all(each) for each in taken)
    one, two = [await p.ask(name, MAIN, viewer.user, viewer.spot, question, 100_000) for p in products]
    assert one.prompt is not None
    assert one.text() == two.text()


def said(n: int, user: str, spot: Spot, text: str, private: bool | None = None) -> Say:
    return Say(n=n, at=n, user=user, spot=spot, text=text, private=private, answer=spot.kind == "room")


@pytest.mark.parametrize("more", [1, 5, 9])
async def test_the_window_does_not_reveal_how_much_was_written_before_a_room_was_opened(
    products: tuple[Product, Product], more: int
) -> None:
    def world(before: int) -> Trace:
        secret = [said(n, "alice", VAULT, f"secret {n}", private=True) for n in range(1, before + 1)]
        opened = said(100, "alice", VAULT, "now it is open", private=False)
        return (*secret, opened, *(said(n, "alice", VAULT, f"public {n}") for n in range(101, 150)))

    viewer = Viewer("bob", VAULT)
    await same(products, f"window{more}", world(2), world(2 + more), viewer, "what is public?")


async def test_the_threads_of_a_room_do_not_reveal_how_much_was_written_before(
    products: tuple[Product, Product],
) -> None:
    thread = Spot("thread", "vault", "t2")

    def world(before: int) -> Trace:
        secret = [said(n, "alice", replace(thread), f"secret {n}") for n in range(2, before + 2)]
        closed, opened = (said(n, "alice", VAULT, "the room", private=n == 1) for n in (1, 100))
        return (closed, *secret, opened, *(said(n, "alice", thread, f"public {n}") for n in range(101, 150)))

    viewer = Viewer("bob", thread)
    await same(products, "window in a thread", world(3), world(8), viewer, "what is public?")


async def test_token_estimates_do_not_reveal_the_length_of_a_prompt_of_a_rooms_private_time(
    products: tuple[Product, Product],
) -> None:
    def world(secret: str) -> Trace:
        return (
            said(1, "alice", VAULT, f"@scout {secret}", private=True),
            said(100, "alice", VAULT, "now it is open", private=False),
        )

    long = "the salary of carol is 91k, and that of dave is less; " * 40
    await same(products, "estimate", world("hello"), world(long), Viewer("bob", VAULT), "@scout what is open?")


async def test_a_mention_added_by_an_edit_counts_as_a_participant_whether_or_not_the_person_is_known(
    products: tuple[Product, Product],
) -> None:
    def world(known: bool) -> Trace:
        guests = [f"guest{n}" for n in range(15)]
        events: list[Event] = [said(1, "alice", GENERAL, "hello")]
        if known:
            events.append(said(2, "stranger", DM, "so the agent knows me"))
        for n, guest in enumerate(guests):
            events.append(Remember(n=10 + n, at=10 + n, user=guest, spot=DM, text=f"zx{n}q", scope="everywhere"))
            events.append(said(100 + n, guest, GENERAL, f"hello {n}"))
        events.append(Edit(n=200, at=200, user=guests[-1], target=114, text="hello @stranger"))
        return tuple(sorted(events, key=lambda event: event.at))

    await same(products, "edited", world(False), world(True), Viewer("alice", GENERAL), "who is here?")


async def test_a_memory_is_not_merged_with_a_paraphrase_from_another_namespace(
    products: tuple[Product, Product],
) -> None:
    def world(secret: bool) -> Trace:
        kept, hidden = "I love painting the borealis harbour", "I really enjoy painting the borealis harbour"
        before = [
            said(1, "alice", DM, hidden),
            said(2, "alice", VAULT, hidden, private=True),
            said(3, "alice", Spot("session", "s1"), hidden),
            said(4, "dave", VAULT, "hello", private=True),
        ]
        filler = [said(n, "bob", GENERAL, f"message {n} of something else") for n in range(30, 95)]
        again = said(20, "alice", GENERAL, hidden)
        return (*(before if secret else before[3:]), said(10, "alice", GENERAL, kept), again, *filler)

    viewer = Viewer("bob", GENERAL)
    await same(products, "paraphrase", world(False), world(True), viewer, "who is painting the borealis harbour?")
