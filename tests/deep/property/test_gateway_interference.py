"""What somebody may not read changes nothing in what the gateway puts into their requests, or answers: not a byte.

The worlds and their twins are those of entries. In both the same requests are made; what reached the model server, and
what came back, must be the same. Bugs planted in each kind of read must be found.
"""

import itertools
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from pydantic import SecretStr

from composer.settings.server_urls import ServerUrl
from tests.deep.property.test_entry_interference import Bug, no_matter, unchecked
from tests.deep.property.test_mcp_interference import FACT, MARK, OF_NAMESPACES, TOOL, for_everybody
from tests.property.checks import Broken
from tests.property.entry_product import Hub, open_clients
from tests.property.entry_worlds import QUESTION, VIEWERS, Asker, EntryWorld, make, secret_words, too_few, twin_of
from tests.property.product import WHICH, Product, both
from tests.support.api import bearer
from tests.support.gateway import MODEL, UPSTREAM_KEY
from tests.support.planted_bugs import in_sql
from tests.support.upstream import Upstream

pytestmark = pytest.mark.asyncio(loop_scope="module")
WORLDS = 10
MOST_WORLDS = 12  # that may pass without finding a planted bug
FUNCTION = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
_numbers = itertools.count(1)

Gateways = tuple[tuple[Product, Product], list[httpx2.AsyncClient], list[Upstream]]


@dataclass(frozen=True)
class Request:
    """A request to the gateway, with its body as JSON."""

    path: str
    body: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateways(products: tuple[Product, Product]) -> AsyncIterator[Gateways]:
    async with AsyncExitStack() as stack:
        upstreams = [await stack.enter_async_context(Upstream(key=UPSTREAM_KEY)) for _ in products]
        clients = []
        for product, upstream in zip(products, upstreams, strict=True):
            settings = {"gateway_base_url": ServerUrl(upstream.url), "gateway_api_key": SecretStr(UPSTREAM_KEY)}
            clients += await stack.enter_async_context(open_clients([product], **settings))
        yield products, clients, upstreams


async def compare(gateways: Gateways, seed: int, counts: Counter[str], viewer: Asker | None = None) -> None:
    """Play a world and its twin, and ask in both. Raises Broken."""
    world = make(seed)
    viewer = viewer or VIEWERS[seed % len(VIEWERS)]
    twin, name = twin_of(world, viewer, counts), f"gateway{next(_numbers)}"
    products, clients, upstreams = gateways
    one, two = (Hub(product, name, client) for product, client in zip(products, clients, strict=True))
    await both(one.play(world), two.play(twin))
    for asked in _requests(world, viewer, random.Random(f"requests {seed}")):
        for hub in (one, two):
            hub.product.harness.clock.tick(1)
        found = await both(_ask(one, upstreams[0], viewer, asked), _ask(two, upstreams[1], viewer, asked))
        counts.update(_parts(found[0]))
        if found[0] != found[1]:
            raise Broken("interference", f"{seed}", f"{viewer} {asked}: {found[0]} or {found[1]}")


async def _ask(hub: Hub, upstream: Upstream, viewer: Asker, asked: Request) -> str:
    """What reached the model server, and all of the answer."""
    WHICH.set(hub.product.url)
    upstream.requests.clear()
    headers = {**bearer(hub.keys[str(viewer)]), "Content-Type": "application/json"}
    answer = await hub.client.post(asked.path, content=asked.body.encode(), headers=headers)
    await hub._settle()
    assert answer.status_code in (200, 403), f"{viewer} {asked}: {answer.text}"
    sent = [each.raw.decode() for each in upstream.requests]
    return "\n".join([str(answer.status_code), repr(sorted(answer.headers.items())), answer.text, *sent])


def _requests(world: EntryWorld, viewer: Asker, rng: random.Random) -> Iterator[Request]:
    """Requests to both APIs, whole and as streams, about what is known and what is secret, and a turn that goes on
    after a call of a function."""
    secrets = secret_words(world, viewer)
    questions = [QUESTION, "hello", *(f"what of {word}?" for word in rng.sample(secrets, min(2, len(secrets))))]
    for question in questions:
        said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
        yield _request("/v1/chat/completions", messages=said)
        yield _request("/v1/chat/completions", messages=said, stream=True)
        yield _request("/v1/responses", input=question)
    begun = [{"role": "user", "content": f"Look up {QUESTION}"}]
    yield _request("/v1/chat/completions", messages=begun, tools=[FUNCTION])
    gone_on = [*begun, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
    gone_on += [{"role": "tool", "tool_call_id": "c1", "content": "found"}]
    yield _request("/v1/chat/completions", messages=gone_on, tools=[FUNCTION])


def _request(path: str, **body: Any) -> Request:
    return Request(path, json.dumps({"model": MODEL, **body}))


def _parts(found: str) -> Counter[str]:
    """Which parts of memory a request was given."""
    names = {"[FACTS]": "facts", "[DECISIONS]": "landmarks", "[RECALLED FOR THE NEXT MESSAGE]": "recalled"}
    return Counter(name for mark, name in names.items() if mark in found)


async def test_what_a_viewer_may_not_read_changes_no_byte_of_a_request_through_the_gateway(gateways: Gateways) -> None:
    counts: Counter[str] = Counter()
    for seed in range(WORLDS):
        await compare(gateways, seed, counts)
    few = too_few(counts, WORLDS // 2, ("a fact", "a landmark"))
    assert not few, f"too poor: {few} {counts}"
    assert min(counts["facts"], counts["landmarks"], counts["recalled"]) > 0, f"nothing was put in: {counts}"


BUGS = (
    Bug("facts of any namespace", unchecked(in_sql("structured_readable", no_matter(OF_NAMESPACES), no_matter(FACT)))),
    Bug(
        "landmarks of any project", unchecked(in_sql("structured_readable", no_matter(OF_NAMESPACES), no_matter(MARK)))
    ),
    Bug("a search for any tool", unchecked(in_sql("recall_search", for_everybody)), TOOL, 4),
)


@pytest.mark.parametrize("bug", BUGS, ids=str)
async def test_a_planted_bug_is_found_through_the_gateway(
    gateways: Gateways, bug: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug.plant(monkeypatch)
    for seed in range(bug.seed, bug.seed + MOST_WORLDS):
        try:
            await compare(gateways, seed, Counter(), bug.viewer)
        except Broken:
            print(f"{bug}: found in world {seed}")
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not find it")
