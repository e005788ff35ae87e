"""What somebody may not read changes nothing in what they, or a tool of theirs, are answered over MCP: not a byte.

The worlds and their twins are those of entries. Every tool, resource and prompt is asked in both, those that write
last, and all that reads once more after them. Facts and landmarks are those that the rules allow. Bugs planted in each
kind of read must be found.
"""

import itertools
import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.deep.property.test_entry_interference import MAY_READ, ONE, Bug, no_matter, unchecked
from tests.property.checks import Broken
from tests.property.entry_product import Hub, open_clients
from tests.property.entry_worlds import PROJECTS, VIEWERS, Asker, EntryWorld, listed, make, may_know, too_few, twin_of
from tests.property.mcp_product import Question, ask, offered, questions, result_of
from tests.property.product import Product, both
from tests.support.planted_bugs import in_sql

pytestmark = pytest.mark.asyncio(loop_scope="module")
WORLDS = 10
MOST_WORLDS = 12  # that may pass without finding a planted bug
_numbers = itertools.count(1)

Apis = tuple[tuple[Product, Product], list[httpx2.AsyncClient]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def apis(products: tuple[Product, Product]) -> AsyncIterator[Apis]:
    async with open_clients(products) as clients:
        yield products, clients


async def compare(apis: Apis, seed: int, counts: Counter[str], viewer: Asker | None = None) -> None:
    """Play a world and its twin, and ask in both. Raises Broken."""
    world = make(seed)
    viewer = viewer or VIEWERS[seed % len(VIEWERS)]
    twin = twin_of(world, viewer, counts)
    name = f"mcp{next(_numbers)}"
    one, two = (Hub(product, name, client) for product, client in zip(*apis, strict=True))
    await both(one.play(world), two.play(twin))
    await both(_compare_with_rules(one, world, viewer), _compare_with_rules(two, twin, viewer))
    found = await offered(one, viewer)
    waiting = list(questions(found, one, world, viewer, random.Random(f"questions over MCP {seed}")))
    while waiting:
        asked = waiting.pop(0)
        for hub in (one, two):
            hub.product.harness.clock.tick(1)  # what is written at one moment is listed in a random order
        answers = await both(ask(one, viewer, asked), ask(two, viewer, asked))
        counts[_kind(asked, answers[0])] += 1
        if answers[0] != answers[1]:
            raise Broken("interference", f"{seed}", f"{viewer} {asked}: {answers[0]} or {answers[1]}")
        waiting[:0] = _next_page(asked, answers[0])


async def _compare_with_rules(hub: Hub, world: EntryWorld, viewer: Asker) -> None:
    """The lists of entries, facts and landmarks hold what the rules say, for a call that names no project, and for
    each."""
    for project in (None, *PROJECTS):
        may_name = project is None or hub.may_name(viewer, project)
        named = {} if project is None else {"project": project}
        entries = [f"entry {e.n}" for e in listed(world, viewer, project) if project in (None, e.project)]
        facts = sorted(f"s{e.n}" for e in world.stated if e.kind == "fact" and may_know(viewer, e, project))
        found = await _answered(hub, viewer, "browse_entries", limit=50, **named)
        names = {id: name for name, id in hub.ids.items()}
        _require(hub, viewer, may_name, found, "entries", lambda e: names.get(e["id"], e["id"]), entries)  # noqa: B023
        found = await _answered(hub, viewer, "facts", **named)
        _require(hub, viewer, may_name, found, "facts", lambda fact: fact["name"], facts)
        if project is not None:
            marks = [e for e in world.stated if e.kind == "landmark" and e.project == project]
            texts = sorted(e.text for e in marks if may_know(viewer, e, project))
            said = await ask(hub, viewer, Question.of("resources/read", uri=f"nexus://projects/{project}/landmarks"))
            shown = json.loads(result_of(said)["contents"][0]["text"]) if '"result"' in said else None
            _require(hub, viewer, may_name, shown, "landmarks", lambda mark: mark["text"], texts)


def _require(hub: Hub, viewer: Asker, may_name: bool, found: Any, of: str, named: Any, expected: list[str]) -> None:
    if not may_name:
        assert found is None, f"{viewer} {hub.name}: {found}"
        return
    names = [named(each) for each in found[of]]
    if (sorted(names) if of != "entries" else names) != expected:
        raise Broken("reference", hub.name, f"{viewer}: {of} {names}, not {expected}")


async def _answered(hub: Hub, viewer: Asker, tool: str, **arguments: Any) -> Any:
    """What a tool answers; None where it fails."""
    said = result_of(await ask(hub, viewer, Question.of("tools/call", name=tool, arguments=arguments)))
    return None if said.get("isError") else json.loads(said["content"][0]["text"])


def _kind(asked: Question, answer: str) -> str:
    params = json.loads(asked.params)
    failed = '"isError":true' in answer or '"error":' in answer
    return f"{'refused' if failed else 'answered'} {params.get('name') or asked.method}"


def _next_page(asked: Question, answer: str) -> list[Question]:
    """The call for the page that follows, where there is one."""
    params = json.loads(asked.params)
    if "cursor" in params.get("arguments", {}) or '"result"' not in answer or asked.method != "tools/call":
        return []
    text = result_of(answer)["content"][0]["text"]
    cursor = json.loads(text).get("next") if text.startswith("{") else None
    return (
        []
        if cursor is None
        else [Question.of(asked.method, name=params["name"], arguments={**params["arguments"], "cursor": cursor})]
    )


async def test_what_a_viewer_may_not_read_changes_no_byte_of_what_they_are_answered_over_mcp(apis: Apis) -> None:
    counts: Counter[str] = Counter()
    for seed in range(WORLDS):
        await compare(apis, seed, counts)
    few = too_few(counts, WORLDS // 2, ("a fact", "a landmark"))
    assert not few, f"too poor: {few} {counts}"
    every = {kind.partition(" ")[2] for kind in counts if kind.startswith(("answered ", "refused "))}
    assert {kind for kind in every if not counts[f"answered {kind}"]} == set(), f"never answered: {counts}"


# --- planted bugs, each of which must be found -------------------------------------------------------------------


def for_everybody(text: str) -> str:
    """A search that does not ask who may read."""
    return re.sub(r"may_read\([^)]*\)", "(true OR \\g<0>)", text)


ALICE, TOOL = Asker("alice"), Asker("alice", "claude")
OF_NAMESPACES = "namespace = ANY (:namespaces::text[])"
FACT = """may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[],
          :vendor)"""
MARK = """may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[],
              :vendor)"""
BUGS = (
    Bug("lists of any namespace", unchecked(in_sql("entries_list", no_matter("m.namespace = scope.namespace")))),
    Bug("lists for any tool", unchecked(in_sql("entries_list", no_matter(MAY_READ))), TOOL, 3),
    Bug(
        "an entry by its id alone",
        unchecked(in_sql("entries_get", no_matter("e.namespace = ANY (:namespaces::text[])"), no_matter(ONE))),
        seed=1,
    ),
    Bug("an entry by its id for any tool", unchecked(in_sql("entries_get", no_matter(ONE))), TOOL, 5),
    Bug("facts of any namespace", unchecked(in_sql("structured_readable", no_matter(OF_NAMESPACES), no_matter(FACT)))),
    Bug(
        "landmarks of any project", unchecked(in_sql("structured_readable", no_matter(OF_NAMESPACES), no_matter(MARK)))
    ),
    Bug("a search for any tool", unchecked(in_sql("recall_search", for_everybody)), TOOL, 4),
    Bug("teams of everybody", in_sql("team_list", no_matter("m.user_id = ANY (:user_ids::uuid[])")), seed=1),
)


@pytest.mark.parametrize("bug", BUGS, ids=str)
async def test_a_planted_bug_is_found_over_mcp(apis: Apis, bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    for seed in range(bug.seed, bug.seed + MOST_WORLDS):
        try:
            await compare(apis, seed, Counter(), bug.viewer)
        except Broken:
            print(f"{bug}: found in world {seed}")
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not find it")
