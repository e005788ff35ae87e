"""Finding by a few words: pages, rooms, projects, people and memories of what the person may open, and nothing else."""

import re
from collections.abc import AsyncIterator

import httpx2
import pytest

from bot.web.app import web_app
from bot.web.metrics import Metrics
from bot.web.pages.rendering import links_with
from tests.support.api import cookie_of
from tests.support.entries import Hub
from tests.support.harness import AppHarness
from tests.support.pages import BITES, SCRIPT, Person
from tests.support.web import served_at

ROOM, DM = {"room": "general"}, {"dm": "nexus"}


@pytest.fixture
async def client(harness: AppHarness) -> AsyncIterator[httpx2.AsyncClient]:
    served = web_app(harness.app, Metrics([]), {}, None)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        yield client


async def test_it_finds_what_the_person_may_open(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    for name in ("alice", "bob", "carol"):
        await harness.say(name, "good morning", **ROOM)
    await harness.say("alice", "in here", room="generals", private=True)
    await harness.command("alice", "/nexus project create generation", **DM)
    await harness.command("alice", "/nexus remember my General likes zqheron", **DM)
    await harness.command("bob", "/nexus remember my General likes zqvault", **DM)
    alice = Person(client, await cookie_of(harness, "alice"))
    shown = await alice.page("/find?q=gener")
    found = dict(re.findall(r'<a href="(/[^"]+)"><svg.*?</svg><span dir="auto">([^<]+)<', shown))
    assert {"general", "generation"} <= set(found.values())
    assert "zqheron" in shown
    assert "zqvault" not in shown
    for address in found:
        assert (await alice.get(address)).status_code == 200, address
    assert "bob" in await alice.page("/find?q=bo")
    bob = Person(client, await cookie_of(harness, "bob"))
    his = await bob.page("/find?q=gener")
    assert ("generation" in his, "generals" in his, "zqheron" in his) == (False, False, False)
    assert "My memory" in await alice.page("/find?q=my+mem")
    assert "Nothing that you may open has these words." in await alice.page("/find?q=zqnothing")


async def test_what_others_have_is_found_by_nobody_else(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await harness.say("alice", "good morning", **ROOM)
    await harness.say("bob", "good morning", **ROOM)
    alice = Person(client, await cookie_of(harness, "alice"))
    paths = ("/find", "/find?q=zq", "/find?q=heron", "/find?q=zqsecret+project")
    before = [await alice.page(path) for path in paths]
    await harness.command("bob", "/nexus project create zqsecret", **DM)
    await harness.say("bob", "hello", room="zqroom", private=True)
    await harness.command("bob", "/nexus remember the zqheron of bob", **DM)
    await Hub(harness).write("bob", "zqheron", tags=["zqtag"])
    assert [await alice.page(path) for path in paths] == before


async def test_a_script_gets_results_alone_and_no_words_are_markup(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = Person(client, await cookie_of(harness, "alice"))
    await alice.page("/memory")
    part = (await alice.get("/find?q=memory", **SCRIPT)).text
    assert ("<html" in part, "/memory" in part) == (False, True)
    for bite in BITES:
        await alice.press("/memory", text=f"zqbite {bite}")
        shown = str((await alice.get(f"/find?q={httpx2.QueryParams(q=bite)['q']}")).text)
        for text in (shown, await alice.page("/find?q=zqbite")):
            assert "<script>alert" not in text
            assert "<img src=x" not in text
            assert "<b hx-get" not in text


def test_pages_are_those_of_the_navigation() -> None:
    navigation = '<ul><li><a href="/a"><svg></svg><span>One &amp; two</span><b class="count">3</b></a></li></ul>'
    assert links_with(navigation, "TWO one") == [("/a", "One & two", "")]
    assert links_with(navigation, "3") == []
