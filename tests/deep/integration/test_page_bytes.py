"""How many bytes a browser that has nothing yet loads of each page: page, styles, scripts, font, icon, compressed."""

import re
from typing import Final

import numpy as np

from tests.bench.pages import PAGES
from tests.bench.world import Vocabulary
from tests.support.entries import Hub
from tests.support.harness import AppHarness
from tests.support.pages import Person

FIRST_LOAD: Final = 100_000
HEADERS: Final = 300  # of each answer, as Chromium counts them
FILES: Final = re.compile(r'"(/static/[0-9a-f]+/[^"]+)"')


async def test_no_page_loads_more_than_100_kb(harness: AppHarness, alice: Person) -> None:
    random, vocabulary = np.random.default_rng(1), Vocabulary()
    for number in range(420):  # more than the map has
        await Hub(harness).write("alice", vocabulary.text(random, 20, 60), tags=[f"tag{number % 20}"])
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)

    async def loaded(address: str) -> int:
        answer = await alice.get(address, **{"Accept-Encoding": "gzip"})
        assert answer.status_code == 200, address
        return int(answer.headers["content-length"]) + HEADERS

    sizes = dict[str, int]()
    for page in PAGES:
        files = set(FILES.findall(await alice.page(page)))
        assert len(files) >= 6, files
        sizes[page] = await loaded(page) + sum([await loaded(file) for file in sorted(files)])
    assert {page: size for page, size in sizes.items() if size > FIRST_LOAD} == {}
    assert min(sizes.values()) > 60_000, "all that a page names is counted"
    assert (await alice.page("/memory/map")).count("<circle") == 400
