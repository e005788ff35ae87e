"""What a page costs: bytes as they are sent, requests and first paint of a browser that has nothing yet, and the CPU of
the server and of the database's backends, for somebody with 1,000 entries and with 100,000; and how soon one sees there
what another changes."""

import asyncio
import json
import os
import secrets
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from html import unescape
from typing import Any, Final

import asyncpg
import httpx2

from bot.script.places import incoming, place_of
from bot.web.app import web_app
from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.metrics import Metrics
from bot.web.server import open_port
from composer.app import App
from composer.model import CONSOLE
from composer.people.credentials.sign_in import make_login_link, sign_in
from composer.repositories.ordering import Order
from tests.bench.api import stored_person
from tests.bench.cpu import Cpu
from tests.bench.live_pages import Seen, TwoPeople, seen, two_people
from tests.bench.report import Report, quantile
from tests.bench.world import START, HashEmbedder, data_folder, opened, settled, stores
from tests.deep.browser.conftest import CHROMIUM, NODE

SIZES: Final = (1_000, 100_000)
QUICK_SIZES: Final = (200, 2_000)
WRITTEN: Final = 1_000  # entries that are written; the others are copies of their rows
REQUESTS: Final = 20  # of a page, whose CPU is taken
QUICK_REQUESTS: Final = 3
LOADS: Final = 5  # of a page in a browser that has nothing yet, of which the middle counts
QUICK_LOADS: Final = 1
CHANGES: Final = 60  # that another waits for
QUICK_CHANGES: Final = 3
PAGES: Final = (
    *("/ask", "/memory", "/memory?q=ba", "/memory?shelf=notes&tag=tag3", "/memory?place=your+entries"),
    *(f"/memory?sort={each}" for each in Order if each is not Order.NEWEST),
    *("/memory?view=table", "/memory/timeline", "/memory/map"),
    *("/waiting", "/rooms", "/team", "/tools", "/usage", "/privacy"),
)
ADMIN_PAGES: Final = ("/admin", "/admin/people", "/admin/audit", "/admin/settings")
AIM: Final = (
    "aims: at most 15 ms of the server's own CPU a page, 100 ms to its answer; at the first load 100 kB, and 300 ms to "
    "the first paint; what another changes within a second"
)
FIRST_PAINT: Final = """new Promise(found => new PerformanceObserver(list => {
    const first = list.getEntries().find(each => each.name === 'first-contentful-paint');
    if (first) found(first.startTime);
}).observe({type: 'paint', buffered: true}))"""
SENT: Final = (
    "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))"
    ".reduce((sum, each) => sum + each.transferSize, 0)"
)
_COPY: Final = """
INSERT INTO memories SELECT (jsonb_populate_record(m, jsonb_build_object('id', gen_random_uuid(), 'key', NULL,
    'created_at', (m).created_at - n * interval '7 minutes'))).*
FROM (SELECT e AS m FROM memories AS e WHERE e.namespace LIKE 'entries:%'
      ORDER BY e.created_at DESC, e.id LIMIT $2) AS found
CROSS JOIN generate_series(1, $1) AS n
"""
Note = Callable[[str], None]


@dataclass(frozen=True)
class PageCost:
    """A page: bytes of its own, compressed; ms of CPU of the server and with that of the database; the middle of how
    many ms it took; and of a browser without a cache: requests, bytes of all of them, and the middle of how many ms it
    took to the first paint."""

    sent: int
    server: float
    with_database: float
    took: float
    requests: int = 0
    loaded: int = 0
    painted: float = float("nan")


async def measure(quick: bool, note: Note) -> Report:
    """Open each page as somebody with few entries, and as somebody with many."""
    report = Report("pages")
    for size in QUICK_SIZES if quick else SIZES:
        found, others = await _with_entries(size, quick, note)
        rows = [
            (path.partition("cursor=")[0], c.sent, c.server, c.with_database, c.took, c.requests, c.loaded, c.painted)
            for path, c in found.items()
        ]
        head = ("page", "bytes", "server ms", "with database", "p50 ms", "requests", "all bytes", "first paint ms")
        report.table(f"{size:,} entries", head, rows)
        ways = {"told by the stream of the page": others.told, "shown in their browser": others.shown}
        report.table(
            "from a change by one, sent, to another who has the page open (a team's page)",
            ("", "changes", "p50 ms", "p95 ms", "most ms"),
            [
                (way, len(took), *(quantile(took, share) for share in (0.5, 0.95, 1)))
                for way, took in ways.items()
                if took
            ],
        )
        report.figures[str(size)] = {path: vars(cost) for path, cost in found.items()} | {"seen": vars(others)}
    report.text.append(AIM)
    return report


async def _with_entries(size: int, quick: bool, note: Note) -> tuple[dict[str, PageCost], Seen]:
    requests, loads = (QUICK_REQUESTS, QUICK_LOADS) if quick else (REQUESTS, LOADS)
    with data_folder() as home:
        async with stores(home) as servers, opened(home, servers, "api", embedder=HashEmbedder()) as app:
            settings = app.settings.model_copy(update={"requests_per_minute": 1_000_000, "web_port": 0})
            app = replace(app, settings=settings)
            person = await stored_person(app, "alice", min(size, WRITTEN), note)
            await settled(app)
            url = str.__str__(settings.database_url or "")
            note(f"copying them to {size:,}")
            await _copied(url, max(0, size // WRITTEN - 1))
            cookie = await _cookie(app, person.reader.tenant_id, person.reader.user)
            async with AsyncExitStack() as stack:
                address = await open_port(settings, web_app(app, Metrics([]), {}, None), stack)
                cpu = Cpu(url)
                pages = dict.fromkeys((*PAGES, await _second_page(address, cookie)), cookie)
                admin = await _admin_cookie(app, person.reader.tenant_id)
                pages |= dict.fromkeys(ADMIN_PAGES, admin)
                costs = {path: await _cost(address, each, path, requests, cpu, note) for path, each in pages.items()}
                two = await two_people(f"http://{address}", admin, cookie, QUICK_CHANGES if quick else CHANGES)
                return await _in_browser(f"http://{address}", pages, costs, loads, two, note)


async def _copied(url: str, times: int) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET session_replication_role = replica")  # nobody has a page open
        await connection.execute(_COPY, times, WRITTEN)
        await connection.execute("RESET session_replication_role")
        await connection.execute("ANALYZE")  # as the indexer does once there is enough: then plans are kept
    finally:
        await connection.close()


async def _second_page(address: str, cookie: str) -> str:
    """The address of what follows the first page of the list."""
    async with httpx2.AsyncClient(base_url=f"http://{address}", timeout=300) as client:
        answer = await client.get("/memory", headers={"Cookie": f"{COOKIE_ON_LOCALHOST}={cookie}"})
    return unescape(answer.text.partition('class="more"')[2].partition('href="')[2].partition('"')[0])


async def _admin_cookie(app: App, tenant: uuid.UUID) -> str:
    here = app.directory.workspace(CONSOLE, "api")
    hello = incoming(here, place_of("general", None, None), "root", "hello", START, id="of root", name="root")
    await app.receive(here, [hello], answer=False)
    async with app.database.transaction(tenant) as tx:
        user = await tx.people.find_user(here.platform, here.name, "root")
        assert user is not None
        await tx.people.set_admin(user.id, True)
    return await _cookie(app, tenant, user.id)


async def _cookie(app: App, tenant: uuid.UUID, user: uuid.UUID) -> str:
    now, secret = app.clock.now(), secrets.token_bytes(32)
    async with app.database.transaction(tenant) as tx:
        slug = app.directory.slug(tenant)
        assert slug is not None
        code = await make_login_link(tx, slug, user, secret, now, by=None)
    _, cookie = await sign_in(app.database, code, "bench", secret, now)
    return cookie


async def _cost(address: str, cookie: str, path: str, requests: int, cpu: Cpu, note: Note) -> PageCost:
    note(path)
    headers = {"Cookie": f"{COOKIE_ON_LOCALHOST}={cookie}", "Accept-Encoding": "gzip", "Sec-Fetch-Site": "same-origin"}
    async with httpx2.AsyncClient(base_url=f"http://{address}", timeout=300) as client:
        answer = await client.get(path, headers=headers)
    assert answer.status_code == 200, (path, answer.text[:300])
    host, _, port = address.rpartition(":")
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    asked = {
        "host": host,
        "port": int(port),
        "clients": 1,
        "requests": [f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n"] * requests,
    }
    await cpu.look()
    client_program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.api_client"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    server, all_of_it = time.process_time_ns(), cpu.now()
    said, _ = await client_program.communicate(json.dumps(asked).encode() + b"\n")
    spent = (time.process_time_ns() - server) / 1e6
    found = json.loads(said)
    assert not found["wrong"], found["wrong"][0]
    took = quantile([each * 1_000 for each in found["times"]], 0.5)
    sent = int(answer.headers["content-length"])
    return PageCost(sent, spent / requests, (cpu.now() - all_of_it) / requests, took)


async def _in_browser(
    url: str, cookies: Mapping[str, str], costs: dict[str, PageCost], loads: int, two: TwoPeople, note: Note
) -> tuple[dict[str, PageCost], Seen]:
    if CHROMIUM is None or not NODE.exists():
        note("there is no Chromium here, or no .node: make browser and make .node/.ready get them")
        return costs, await seen(two, None)
    sys.path.append(str(NODE))
    from playwright.async_api import async_playwright  # noqa: PLC0415 - it is in .node, for deep tests alone

    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        for path in costs:
            note(f"{path} in a browser")
            tries = [await _loaded(browser, url, cookies[path], path, costs[path]) for _ in range(loads)]
            costs[path] = replace(tries[0], painted=quantile([each.painted for each in tries], 0.5))
        note("changes by another")
        context = await _context(browser, url, two.reader)
        others = await seen(two, await context.new_page())
        await browser.close()
    return costs, others


async def _context(browser: Any, url: str, cookie: str) -> Any:
    context = await browser.new_context(viewport={"width": 1280, "height": 860})
    await context.add_cookies([{"name": COOKIE_ON_LOCALHOST, "value": cookie, "url": url}])
    return context


async def _loaded(browser: Any, url: str, cookie: str, path: str, cost: PageCost) -> PageCost:
    context = await _context(browser, url, cookie)
    tab, asked = await context.new_page(), list[str]()
    tab.on("request", lambda request: asked.append(request.url))
    await tab.goto(f"{url}{path}")
    await tab.wait_for_load_state("load")
    painted = await tab.evaluate(FIRST_PAINT)
    loaded = await tab.evaluate(SENT)
    await context.close()
    requests = sum(not each.endswith("events?page=memory") for each in asked)
    return replace(cost, requests=requests, loaded=loaded, painted=painted)
