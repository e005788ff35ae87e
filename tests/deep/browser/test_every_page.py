"""Every page that links lead to, in a real browser: what people write does nothing there, wherever they write it."""

import re
import uuid
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pytest

from bot.console.operations import set_admin
from composer.entries import teams
from composer.errors import NexusError
from composer.model import Trust
from composer.settings import AgentSettings, Settings
from composer.visibility import Grants
from tests.deep.browser.conftest import SIZES, Window, Windows
from tests.deep.browser.test_pages_in_a_browser import filled
from tests.support.api import key_of, person
from tests.support.bites import LINES, LINKS, OF_HTMX, corpus
from tests.support.discord.harness import Model
from tests.support.entries import OF_TOOL, Hub
from tests.support.harness import START, AppHarness, open_harness
from tests.support.page_things import ROUTES
from tests.support.stripe import charged_by, open_stripe

DM: Final[dict[str, Any]] = {"dm": "nexus"}
ROOM: Final[dict[str, Any]] = {"room": "general"}
ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
WIDER: Final = "document.documentElement.scrollWidth - window.innerWidth"
EXPORT: Final = "/export"  # at the end of a way to a file
PROPOSED: Final = "We use pnpm for all packages."  # by a tool, for a project of alice's
# Of text that is shown, what would turn around the words beside it: it is taken out before anything is stored.
TURNING: Final = """() => {
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const { data, parentElement } = walk.currentNode;
    if (/[\u202a-\u202e\u2066-\u2069]/.test(data)) found.push(parentElement.outerHTML.slice(0, 300));
  }
  return found;
}"""
# Ways that no page has as a link.
MORE: Final = (
    "/ask",
    "/invitations",
    "/memory?q=nothing+fits",
    "/memory/empty",
    "/find?q=general",
    "/privacy/forget",
    "/ask/conversations",
)
# Pages to which no link leads: files, streams and links that are shown once (test_coming_in.py).
NO_PAGES: Final = {"GET /events", "GET /static/{digest}/{name}", "GET /invite/{code}", "GET /"}


@pytest.fixture
async def model() -> Model:
    return Model()


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    many = {
        "agents": (AgentSettings(model="gpt-4o"),),
        "requests_per_minute": 10**6,
        "admin_requests_per_minute": 10**6,
    }
    async with (
        open_stripe(START) as stripe,
        open_harness(settings.model_copy(update=many | charged_by(stripe)), model=model) as harness,
    ):
        yield harness


async def bitten(harness: AppHarness, model: Model) -> Counter[str]:
    """Everything that root's pages show, written in strings of the corpus: how many of which kind were taken."""
    hub, taken = Hub(harness, quarantined={Trust.TOOL}), Counter[str]()
    root = await person(harness, "root")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(root.id, True)
    await harness.say("root", "good morning", **ROOM)
    await harness.command("root", "/nexus project create apollo", **DM)
    async with hub.request("root") as (_, access):
        (project,) = access.projects
    grants = OF_TOOL | {Grants.WRITE_PROJECTS}

    async def team(bite: str) -> None:
        async with hub.request("root") as (tx, access):
            await teams.create(tx, access, bite, f"made {bite}", harness.clock.tick())

    async def asked(bite: str) -> None:
        model.says.append(bite)
        await harness.ask("root", f"@nexus what of {bite}", **DM)

    kinds = {
        "message": lambda bite: harness.say("root", bite, **ROOM),
        "decision": lambda bite: harness.command("root", f"/nexus landmark add {bite}", **ROOM),
        "fact": lambda bite: harness.command("root", f"/nexus fact set key{taken.total()} {bite} --yes", **ROOM),
        "remembered": lambda bite: harness.command("root", f"/nexus remember {bite}", **DM),
        "entry": lambda bite: hub.write("root", bite),
        "title": lambda bite: hub.write("root", "of a title", title=bite),
        "tag": lambda bite: hub.write("root", "of a tag", tags=[bite]),
        "proposal": lambda bite: hub.write("root", bite, "claude", project=project.id, grants=grants),
        "team": team,
        "name": lambda bite: harness.say(bite, "hello there", **ROOM),
        "answer": asked,
    }
    names = list(kinds)
    for number, bite in enumerate(corpus()):
        kind = names[number % len(names)]
        try:
            await kinds[kind](bite)
        except NexusError:
            continue
        taken[kind] += 1
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    return taken


async def ways(window: Window) -> list[str]:
    """Where the links of a page lead to, within Nexus."""
    found: list[str] = await window.tab.evaluate("[...document.links].map(each => each.getAttribute('href'))")
    return [way.partition("#")[0] for way in found if way.startswith("/") and EXPORT not in way]


def alike(way: str) -> str:
    """A way without the ids in it, and without the values of what it asks for, but for the view."""
    path, _, query = ID.sub("*", way).partition("?")
    parts = (part if part.startswith("view=") else part.partition("=")[0] for part in query.split("&"))
    return f"{path}?{'&'.join(sorted(parts))}"


async def opened(window: Window) -> AsyncIterator[str]:
    """Open every page that links lead to, one of those that are alike. Fails if there is a page that none leads to."""
    waiting, seen = deque(MORE), set[str]()
    while waiting:
        way = waiting.popleft()
        if alike(way) in seen:
            continue
        seen.add(alike(way))
        await window.open(way)
        yield way
        waiting += await ways(window)
    paths = {each.partition("?")[0].replace("*", str(uuid.UUID(int=7))) for each in seen}
    left = {name for name, route in PAGES.items() if not any(route.path_regex.match(path) for path in paths)}
    assert left <= NO_PAGES, f"no link leads to {left - NO_PAGES}: say in MORE how one comes there"


PAGES: Final = {name: route for name, route in ROUTES.items() if name.startswith("GET ") and EXPORT not in route.path}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} wide")
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_page_is_for_everybody_s_eyes(
    harness: AppHarness, windows: Windows, size: tuple[int, int], scheme: str
) -> None:
    await filled(harness)
    await harness.say("alice", "mine alone", room="own", private=True)  # which can be put into a project
    await set_admin(harness.app, harness.name, "alice", True)
    await key_of(harness, "alice", "claude")
    locale = "de-DE" if scheme == "dark" else "en-GB"
    window, wrong = await windows.of("alice", size=size, scheme=scheme, locale=locale), list[str]()
    await window.open("/ask")
    await window.tab.fill("#text", "what do I prefer?")
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_selector(".agent .answer")
    async for way in opened(window):
        wrong += [f"{way}: {each}" for each in (*await window.violations(), *await window.misplaced())]
        if await window.tab.evaluate(WIDER) > 0:
            wrong.append(f"{way} is wider than the window")
    assert wrong + window.faults == []


async def test_no_text_of_people_does_anything_on_any_page(harness: AppHarness, model: Model, windows: Windows) -> None:
    taken = await bitten(harness, model)
    await key_of(harness, "root", "claude")
    assert min(taken.values()) >= 15, taken
    window, asked, wrong = await windows.of("root"), list[str](), list[str]()
    window.tab.on("request", lambda request: asked.append(request.url))
    await window.open("/ask")
    for number, bite in enumerate((*LINKS[:3], *OF_HTMX[7:9], *LINES[2:4]), 1):
        model.says.append(f"{bite} {bite}")
        await window.tab.fill("#text", f"what of {bite}?")
        await window.tab.keyboard.press("Enter")
        await window.tab.wait_for_selector(f":nth-match(.agent .answer, {number})")
    async for way in opened(window):
        if await window.tab.evaluate("window.bitten") is not None:
            wrong.append(f"{way} runs a script")
        if await window.tab.evaluate(WIDER) > 0:
            wrong.append(f"{way} is wider than the window")
        wrong += [f"{way} turns words around: {each}" for each in await window.tab.evaluate(TURNING)]
    wrong += [f"asked for {each}" for each in asked if not each.startswith(window.url) or "logout" in each]
    assert wrong + window.faults == []


# --- by keyboard alone -----------------------------------------------------------------------------------------------


async def pressed(window: Window, what: str, typed: str = "") -> None:
    """Reach something by the tab key, and press Enter there, or type into it. `what` is a selector."""
    for _ in range(150):
        await window.tab.keyboard.press("Tab")
        if await window.tab.evaluate("what => document.activeElement.matches(what)", what):
            await (window.tab.keyboard.type(typed) if typed else window.tab.keyboard.press("Enter"))
            return
    raise AssertionError(f"{what} is not reached by the keyboard")


async def ask(window: Window) -> None:
    """Ask a question, and open why it was answered so."""
    await window.open("/ask")
    await pressed(window, "a.skip")
    await pressed(window, "#text", "what do I prefer?")
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_selector(".agent .answer")
    await pressed(window, "a[href*='?turn=']")
    await window.tab.wait_for_selector("#sources h2:focus")


async def accept(window: Window) -> None:
    """Accept what a tool proposes."""
    await window.open("/waiting")
    await window.tab.wait_for_selector(f"text={PROPOSED}")
    await pressed(window, "form[action$='/accept'] button")
    await window.tab.wait_for_selector(f"text={PROPOSED}", state="detached")


async def connect(window: Window) -> None:
    """Make a key for a tool."""
    await window.open("/tools")
    await pressed(window, "#vendor", "cursor")
    await window.tab.keyboard.press("Enter")
    await window.tab.wait_for_selector(".copied.key")


async def remember(window: Window) -> None:
    """Add a memory, and throw it away."""
    await window.open("/memory")
    await pressed(window, "a[href='/memory/add']")
    await window.tab.wait_for_selector("textarea[name=text]")
    await pressed(window, "textarea[name=text]", "I own a red Koga.")
    await pressed(window, "form[action='/memory'] button")
    await window.tab.wait_for_selector("#detail .memory >> text=red Koga")
    await pressed(window, "form[action$='/trash'] button")
    await window.tab.wait_for_selector("text=It is erased for good on")


async def team(window: Window) -> None:
    """Make a team."""
    await window.open("/team")
    await pressed(window, "#new input[name=name]", "Herons")
    await pressed(window, "#new button")
    await window.tab.wait_for_selector("h1:has-text('Herons')")


async def decide(window: Window) -> None:
    """Come from the rooms to the decisions of one."""
    await window.open("/rooms")
    await pressed(window, ".places a[href^='/rooms/']")
    await window.tab.wait_for_selector(".place h1")
    await pressed(window, "a[href$='?view=decisions']")
    await window.tab.wait_for_selector("main >> text=The launch is on Thursday")


@pytest.mark.parametrize("flow", [ask, accept, connect, remember, team, decide], ids=lambda flow: flow.__name__)
async def test_a_flow_goes_by_keyboard_alone(
    harness: AppHarness, windows: Windows, flow: Callable[[Window], Awaitable[None]]
) -> None:
    await filled(harness)
    window = await windows.of("alice")
    await flow(window)
    assert window.faults == []


async def test_two_admins_see_each_other_decide(harness: AppHarness, windows: Windows) -> None:
    await filled(harness)
    await harness.command("alice", "/nexus project member add apollo bob admin", **DM)
    await harness.command("bob", "/nexus project accept apollo", **DM)
    hers, his = await windows.of("alice"), await windows.of("bob", size=SIZES[1])
    for window in (hers, his):
        await window.tab.goto(f"{window.url}/waiting")
        await window.tab.wait_for_selector(f"text={PROPOSED}")
    await his.tab.click(f"li:has-text('{PROPOSED}') button:has-text('Accept')")
    await hers.tab.wait_for_selector(f"text={PROPOSED}", state="detached")
    assert (hers.faults, his.faults) == ([], [])
