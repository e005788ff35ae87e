"""Finding by a few words: pages, rooms, projects, people and memories of what the person may open, and nothing else."""

import re

import httpx2

from bot.web.pages.rendering import links_with
from tests.support.api import cookie_of, person
from tests.support.entries import Hub
from tests.support.harness import AppHarness
from tests.support.pages import BITES, SCRIPT, Person

ROOM, DM = {"room": "general"}, {"dm": "nexus"}


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


async def admin_browser(harness: AppHarness, client: httpx2.AsyncClient, name: str) -> Person:
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin((await person(harness, name)).id, True)
    return Person(client, await cookie_of(harness, name))


async def test_it_finds_what_others_decided_in_one_s_rooms_and_projects(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    for name in ("alice", "carol"):
        await harness.say(name, "good morning", **ROOM)
    await harness.command("bob", "/nexus landmark add zqpnpm for 100% of packages", **ROOM)
    await harness.command("bob", "/nexus landmark add zqpnpm is secret", room="leads", private=True)
    await harness.command("bob", "/nexus project create apollo", **DM)
    await harness.command("bob", "/nexus project member add apollo alice read", **DM)
    alice, carol = [Person(client, await cookie_of(harness, name)) for name in ("alice", "carol")]
    await harness.command("alice", "/nexus landmark add my own zqpnpm", **ROOM)
    shown = await alice.page("/find?q=ZQPNPM+100%25")
    [address] = re.findall(r'href="(/rooms/[0-9a-f-]{36}\?view=decisions)"', shown)
    assert ("zqpnpm for 100% of packages" in shown, "is secret" in shown) == (True, False)
    assert "zqpnpm for 100% of packages" in await alice.page(address)
    assert "zqpnpm for 100%" in await carol.page("/find?q=zqpnpm")
    assert (await alice.page("/find?q=zqpnpm")).count("my own zqpnpm") == 1, "what is one's own is a memory"
    assert "zqpnpm for" not in await alice.page("/find?q=zq_npm"), "an underscore is no letter"


async def test_it_finds_pages_that_the_navigation_does_not_name(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    await harness.say("alice", "good morning", **ROOM)
    root, alice = await admin_browser(harness, client, "root"), Person(client, await cookie_of(harness, "alice"))
    for words, address in (("you", "/you"), ("map", "/memory/map"), ("timel", "/memory/timeline")):
        assert f'href="{address}"' in await alice.page(f"/find?q={words}")
    for words, address in (("audit", "/admin/audit"), ("admin peo", "/admin/people"), ("settings", "/admin/settings")):
        assert f'href="{address}"' in await root.page(f"/find?q={words}")
        assert "/admin" not in await alice.page(f"/find?q={words}")


async def test_a_person_leads_to_what_they_share_with_who_looks(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    hub = Hub(harness)
    people = {name: Person(client, await cookie_of(harness, name)) for name in ("alice", "bob", "carol")}
    for name in people:
        await harness.say(name, "good morning", **ROOM)
        await people[name].page("/team")
    team = (await people["bob"].press("/team", name="Design")).headers["location"].partition("?")[0]
    await people["bob"].press(f"{team}/invites", user=str((await person(harness, "alice")).id))
    await people["alice"].press(f"{team}/accept")
    for name, words in (("bob", "zqblue it is"), ("alice", "zqgreen it is"), ("bob", "zqprivate")):
        made = await hub.write(name, words)
        if words != "zqprivate":
            shared = await people[name].press(f"/memory/{made.entry.id}/share", team=team.rpartition("/")[2])
            assert shared.status_code == 303
    [address] = re.findall(r'href="(/team\?q=bob)"', await people["alice"].page("/find?q=bob"))
    shown = await people["alice"].page(address)
    assert ("zqblue" in shown, "zqgreen" in shown, "zqprivate" in shown) == (True, False, False)
    [his] = re.findall(rf'href="({team}\?by=[0-9a-f-]{{36}})"', shown)
    listed = await people["alice"].page(his)
    assert ("zqblue" in listed, "zqgreen" in listed) == (True, False)
    nothing = await people["carol"].page(address)
    assert ("zqblue" in nothing, "?by=" in nothing) == (False, False)
    assert "Nothing that you may see was shared" in nothing
