"""What somebody may not read changes nothing in what they, or a tool of theirs, read over the API: not a byte.

Each world is played with its twin, which differs only in what the viewer may not read, and every read of the document
is asked in both; a list of the first holds what the rules allow, nothing more and nothing less. Bugs planted in each
kind of read must be found.
"""

import itertools
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import httpx2
import pytest
import pytest_asyncio

from composer.visibility import Owned, Readable
from tests.property.checks import Broken
from tests.property.entry_product import Hub, Read, document_of, open_clients, reads
from tests.property.entry_worlds import (
    PROJECTS,
    VIEWERS,
    Asker,
    EntryWorld,
    listed,
    make,
    too_few,
    twin_of,
)
from tests.property.product import Product, both
from tests.support.planted_bugs import Patch, in_sql, replacing

pytestmark = pytest.mark.asyncio(loop_scope="module")
WORLDS = 10
_numbers = itertools.count(1)
MOST_WORLDS = 12  # that may pass without finding a planted bug


Apis = tuple[tuple[Product, Product], list[httpx2.AsyncClient]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def apis(products: tuple[Product, Product]) -> AsyncIterator[Apis]:
    async with open_clients(products) as clients:
        yield products, clients


async def compare(apis: Apis, seed: int, counts: Counter[str], viewer: Asker | None = None) -> None:
    """Play a world and its twin, and read in both. Raises Broken."""
    world = make(seed)
    viewer = viewer or VIEWERS[seed % len(VIEWERS)]
    twin = twin_of(world, viewer, counts)
    name = f"entries{next(_numbers)}"
    one, two = (Hub(product, name, client) for product, client in zip(*apis, strict=True))
    await both(one.play(world), two.play(twin))
    await both(_compare_with_rules(one, world, viewer), _compare_with_rules(two, twin, viewer))
    waiting = reads(document_of(one.client), one, world, viewer, random.Random(f"reads of entries {seed}"))
    while waiting:
        asked = waiting.pop(0)
        answers = await both(one.read(viewer, asked), two.read(viewer, asked))
        counts[f"{answers[0][:3]} {asked.method} {asked.path.rpartition('/')[0]}"] += 1
        if answers[0] != answers[1]:
            raise Broken("interference", f"{seed}", f"{viewer} {asked}: {_difference(*answers)}")
        waiting += _next_page(asked, answers[0])


async def _compare_with_rules(hub: Hub, world: EntryWorld, viewer: Asker) -> None:
    """The list of what may be read is what the rules say, for a request that names no project, and for each."""
    at = "/v1/agent/entries" if viewer.tool else "/v1/entries"
    for project in (None, *PROJECTS):
        named = () if project is None else (("project", project),)
        answer = await hub.read(viewer, Read("GET", at, (("limit", "100"), ("snippets", "false"), *named)))
        expected = [f"entry {entry.n}" for entry in listed(world, viewer, project)]
        if project is not None:  # such a list holds what is written for the project alone
            expected = [f"entry {e.n}" for e in listed(world, viewer, project) if e.project == project]
        if project is not None and not (hub.may_name(viewer, project)):
            assert answer.startswith("404"), answer
            continue
        names = {id: name for name, id in hub.ids.items()}
        found = [names.get(item["id"], item["id"]) for item in json.loads(answer.rpartition("\n")[2])["items"]]
        if found != expected:
            raise Broken("reference", f"{world.seed}", f"{viewer} in {project}: {found}, not {expected}")


def _next_page(asked: Read, answer: str) -> list[Read]:
    """The read of the page that follows, where there is one."""
    if "cursor" in dict(asked.query) or not answer.startswith("200") or "page" in str(asked.query):
        return []
    body = answer.rpartition("\n")[2]
    found = json.loads(body) if body.startswith("{") else {}
    cursor = found.get("next")
    kept = tuple((name, value) for name, value in asked.query if name not in ("page", "offset"))
    return [] if cursor is None else [Read("GET", asked.path, (*kept, ("cursor", cursor)))]


def _difference(one: str, two: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    heads = [answer.split("\n", 2) for answer in (one, two)]
    if heads[0][2] != heads[1][2]:  # the length of the body differs then, too
        one, two = heads[0][2], heads[1][2]
        at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    return f"'…{one[max(at - 160, 0) : at + 200]}' or '…{two[max(at - 160, 0) : at + 200]}'"


async def test_what_a_viewer_may_not_read_changes_no_byte_of_what_they_read_over_the_api(apis: Apis) -> None:
    counts: Counter[str] = Counter()
    for seed in range(WORLDS):
        await compare(apis, seed, counts)
    few = too_few(counts, WORLDS // 2)
    assert not few, f"too poor: {few} {counts}"
    statuses = Counter(kind[:3] for kind in counts.elements() if kind[0].isdigit())
    assert statuses["200"] > 10 * WORLDS, f"too few reads succeeded: {counts}"


# --- planted bugs, each of which must be found -------------------------------------------------------------------


OF_OWN = "c.user_id = ANY (:user_ids::uuid[])"
ALICE, TOOL = Asker("alice"), Asker("alice", "claude")


@dataclass(frozen=True)
class Bug:
    """A bug in one kind of read, the viewer who is to find it, and the first of the worlds that do."""

    name: str
    plant: Callable[[Patch], None]
    viewer: Asker = ALICE
    seed: int = 0

    def __str__(self) -> str:
        return self.name


MAY_READ = """may_read(m.namespace, m.visibility, m.user_id, m.allowed_vendors, :pooled::text[], :visibilities::text[],
                  :readers::uuid[], :vendor)"""
COUNTED = """may_read(m.namespace, m.visibility, m.user_id, m.allowed_vendors, :pooled::text[], :visibilities::text[],
          :readers::uuid[], :vendor)"""
ONE = """may_read(e.namespace, e.visibility, e.user_id, e.vendors, :pooled::text[], :visibilities::text[],
          :readers::uuid[], :vendor)"""


def unchecked(*plants: Callable[[Patch], None]) -> Callable[[Patch], None]:
    """Plant bugs behind the second check in code, which is taken away."""

    def plant(patch: Patch) -> None:
        patch.setattr(Readable, "admits", lambda readable, row: True)
        for each in plants:
            each(patch)

    return plant


def unowned(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
    """The same, for the check of what is one's own."""

    def both_walls(patch: Patch) -> None:
        patch.setattr(Owned, "admits", lambda owned, user: True)
        plant(patch)

    return both_walls


def no_matter(clause: str) -> Callable[[str], str]:
    """Let a clause of a statement say nothing."""
    return replacing(clause, f"(true OR {clause})")


BUGS = (
    Bug("a list of any namespace", unchecked(in_sql("entries_list", no_matter("m.namespace = scope.namespace")))),
    Bug("a list for any tool", unchecked(in_sql("entries_list", no_matter(MAY_READ))), TOOL, 3),
    Bug("a page is cut before it is filtered", in_sql("entries_list", no_matter(MAY_READ)), TOOL, 9),
    Bug(
        "counts of any namespace",
        in_sql("entries_count", no_matter("m.namespace = ANY (:namespaces::text[])")),
        seed=10,
    ),
    Bug("counts for any tool", in_sql("entries_count", no_matter(COUNTED)), TOOL, 3),
    Bug(
        "an entry by its id alone",
        unchecked(in_sql("entries_get", no_matter("e.namespace = ANY (:namespaces::text[])"), no_matter(ONE))),
        seed=1,
    ),
    Bug("an entry by its id for any tool", unchecked(in_sql("entries_get", no_matter(ONE))), TOOL, 9),
    Bug("teams of everybody", in_sql("team_list", no_matter("m.user_id = ANY (:user_ids::uuid[])")), seed=1),
    Bug("sessions of everybody", unowned(in_sql("sessions_list", no_matter(OF_OWN)))),
    Bug("episodes of everybody", unowned(in_sql("session_messages", no_matter(OF_OWN)))),
)


@pytest.mark.parametrize("bug", BUGS, ids=str)
async def test_a_planted_bug_is_found(apis: Apis, bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = await _with_bug(apis, bug, monkeypatch)
    assert planted, f"{MOST_WORLDS} worlds did not find it"


async def _with_bug(apis: Apis, bug: Bug, patch: pytest.MonkeyPatch) -> bool:
    bug.plant(patch)
    for seed in range(bug.seed, bug.seed + MOST_WORLDS):
        try:
            await compare(apis, seed, Counter(), bug.viewer)
        except Broken:
            return True
    return False
