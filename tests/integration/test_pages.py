"""The pages that people see in a browser: who may open them, what they show of whom, and what no text does to them."""

import gzip
import re
import uuid
from http.cookies import SimpleCookie
from typing import Any, Final

import httpx2
import pytest
from fastapi.routing import APIRoute

from bot.web import app as web
from bot.web import pages
from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.pages.ask import SHOWN_SESSIONS
from bot.web.pages.assets import address_of, assets
from bot.web.pages.memory import PAGE_ITEMS
from composer.repositories.operations import Operation
from tests.support.api import bearer, cookie_of, key_of
from tests.support.harness import AppHarness
from tests.support.pages import BITES, OWN, SCRIPT, Person

ROOM, DM = {"room": "general"}, {"dm": "nexus"}


@pytest.fixture
async def alice(harness: AppHarness, client: httpx2.AsyncClient) -> Person:
    return Person(client, await cookie_of(harness, "alice"))


async def bob_of(harness: AppHarness, client: httpx2.AsyncClient) -> Person:
    return Person(client, await cookie_of(harness, "bob"))


def _pages() -> list[APIRoute]:
    return [route for route in web.ROUTES if route.endpoint.__module__.startswith(pages.__name__)]


def _path(route: APIRoute) -> str:
    return re.sub(r"{\w+}", str(uuid.UUID(int=7)), route.path)


PAGES: Final = [route for route in _pages() if not route.path.startswith(("/static", "/invite"))]


@pytest.mark.parametrize("route", PAGES, ids=lambda route: f"{route.endpoint.__name__} {route.path}")
async def test_a_page_is_for_who_is_signed_in_alone(
    harness: AppHarness, client: httpx2.AsyncClient, route: APIRoute
) -> None:
    method = min(route.methods or {"GET"})
    path, form = _path(route), {"csrf": "0" * 32, "text": "x"}
    sent: Any = {"data": form} if method == "POST" else {}
    nobody = await client.request(method, path, headers=OWN, **sent)
    assert (nobody.status_code, nobody.headers["location"]) == (303, "/login")
    for vendor in (None, "claude"):
        key = await key_of(harness, "alice", vendor)
        tool = await client.request(method, path, headers=OWN | bearer(key), **sent)
        assert tool.status_code == 403
    both = bearer("nx_wrong") | {"Cookie": f"{COOKIE_ON_LOCALHOST}={await cookie_of(harness, 'alice')}"}
    beaten = await client.request(method, path, headers=OWN | both, **sent)
    assert (beaten.status_code, beaten.headers["location"]) == (303, "/login"), "a header beats a cookie"


async def test_a_header_beats_a_cookie_over_the_api_too(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    cookie = {"Cookie": f"{COOKIE_ON_LOCALHOST}={alice.cookie}"}
    bobs = bearer(await key_of(harness, "bob", "cursor"))
    said = (await client.get("/v1/whoami", headers=OWN | cookie | bobs)).json()
    assert said["vendor"] == "cursor"
    assert (await client.get("/v1/whoami", headers=OWN | cookie | bearer("nx_wrong"))).status_code == 401


async def test_a_form_counts_from_a_page_of_its_person_alone(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await alice.page("/memory")
    bob = await bob_of(harness, client)
    await bob.page("/memory")
    assert alice.csrf != bob.csrf
    token, alice.csrf = alice.csrf, bob.csrf
    assert (await alice.press("/memory", text="forged")).status_code == 403
    alice.csrf = token
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        foreign = await alice.press("/memory", headers, text="forged")
        assert (foreign.status_code, foreign.headers["location"]) == (303, "/login"), "its cookie does not count"
    assert "forged" not in await alice.page("/memory")
    made = await alice.press("/memory", text="I own a red Koga.")
    assert made.status_code == 303
    assert "red Koga" in await alice.page(made.headers["location"])


async def test_another_site_leads_to_no_search(alice: Person) -> None:
    led = await alice.get("/memory?q=salary", **{"Sec-Fetch-Site": "cross-site"})
    assert (led.status_code, led.headers["location"]) == (303, "/memory")


async def test_pages_are_kept_by_nobody_and_run_nothing_of_others(alice: Person) -> None:
    for path in ("/ask", "/memory", "/privacy"):
        answer = await alice.get(path)
        assert answer.headers["cache-control"] == "private, no-store"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|https?://", answer.text)


async def test_files_have_addresses_of_their_content(client: httpx2.AsyncClient) -> None:
    for name in assets():
        answer = await client.get(address_of(name))
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert (await client.get(address_of("nexus.css").replace("/static/", "/static/0"))).status_code == 404
    assert (await client.get("/static/x/../../app.py")).status_code == 404
    first = [name for name in assets() if not name.startswith(("uplot", "memory-map"))]
    loaded = sum(len(assets()[name].compressed or assets()[name].content) for name in first)
    assert loaded + len(gzip.compress(b"x" * 8_000)) <= 100_000, "of a first load"


async def test_my_memory_shows_ones_own_and_who_is_answered_from_it(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await harness.command("alice", "/nexus remember the heron likes the vault", **DM)
    await harness.command("alice", "/nexus fact set deploy_day Friday --yes", **ROOM)
    await harness.command("bob", "/nexus remember my knee hurts", **DM)
    await harness.command("bob", "/nexus fact set bobs_day Monday --yes", **ROOM)
    listed = await alice.page("/memory")
    assert "the heron likes the vault" in listed
    assert "deploy_day" in listed
    assert "knee" not in listed
    assert "bobs_day" not in listed
    facts = await alice.page("/memory?shelf=facts")
    assert ("deploy_day" in facts, "heron" in facts) == (True, False)
    found = await alice.page("/memory?q=HERON+vault")
    assert ("heron" in found, "deploy_day" in found) == (True, False)
    assert "Nothing of yours fits that." in await alice.page("/memory?q=100%25")
    [address] = set(re.findall(r'href="(/memory/[0-9a-f-]{36})\?q=', found))
    item = await alice.page(address)
    assert '<b dir="auto">You</b>: in your DMs with @nexus' in item
    assert "it is used in no room" in item
    assert "they see figures, never these words" in item
    bob = await bob_of(harness, client)
    assert (await bob.get(address)).status_code == 404
    part = (await alice.get(address, **{"HX-Request": "true"})).text
    assert "heron" in part
    assert "<html" not in part


async def test_what_others_have_changes_nothing_of_a_page(harness: AppHarness, alice: Person) -> None:
    await harness.command("alice", "/nexus remember the heron likes the vault", **DM)
    await harness.say("bob", "good morning", **ROOM)
    paths = ("/ask", "/memory", "/memory?q=heron", "/memory?shelf=trash", "/privacy")
    before = [await alice.page(path) for path in paths]
    await harness.command("bob", "/nexus remember the heron of bob", **DM)
    await harness.ask("bob", "who knows the heron?", **DM)
    await harness.command("bob", "/nexus fact set heron grey --yes", **DM)
    assert [await alice.page(path) for path in paths] == before


async def test_a_long_list_has_pages(harness: AppHarness, alice: Person) -> None:
    await alice.page("/memory")
    for n in range(PAGE_ITEMS + 2):
        harness.clock.tick()
        await alice.press("/memory", text=f"thing number {n}.")
    first = await alice.page("/memory")
    assert f"thing number {PAGE_ITEMS + 1}." in first
    assert "thing number 1." not in first
    [more] = set(re.findall(r'href="(/memory\?cursor=[^"]+)"', first))
    second = await alice.page(more.replace("&amp;", "&"))
    assert "thing number 1." in second
    assert f"thing number {PAGE_ITEMS + 1}." not in second
    assert (await alice.get("/memory?cursor=nonsense")).status_code in (400, 422)


async def test_no_text_of_people_is_markup(harness: AppHarness, alice: Person) -> None:
    await alice.page("/memory")
    for bite in BITES:
        made = await alice.press("/memory", text=bite)
        shown = await alice.page(made.headers["location"])
        for text in (shown, await alice.page("/memory")):
            assert "<script>alert" not in text
            assert "<img src=x" not in text
            assert "<b hx-get" not in text
            assert " 49 " not in text
    asked = await alice.press("/ask", text="what of <script>alert(1)</script> {{ 7 * 7 }}?")
    assert "<script>alert" not in await alice.page(asked.headers["location"])


async def test_asking_works_without_a_script(harness: AppHarness, alice: Person) -> None:
    await alice.page("/memory")
    await alice.press("/memory", text="My bike is a red Koga, number 4711.")
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    await alice.page("/ask")
    asked = await alice.press("/ask", text="what is my bike?")
    assert asked.status_code == 303
    shown = await alice.page(asked.headers["location"])
    assert "red Koga" in shown
    assert 'id="source-1"' in shown
    assert 'href="#source-1"' in shown
    assert "what is my bike?" in await alice.page("/ask"), "among the conversations"


async def test_a_script_gets_the_answer_as_it_is_written(alice: Person) -> None:
    await alice.page("/ask")
    answer = await alice.press("/ask", SCRIPT, text="hello there")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["hx-push-url"].startswith("/ask/")
    assert 'class="said" dir="auto">hello there' in answer.text
    assert 'hx-target="#sources"' in answer.text


async def test_a_conversation_of_somebody_else_is_none(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await alice.page("/ask")
    address = (await alice.press("/ask", text="the heron is grey")).headers["location"]
    bob = await bob_of(harness, client)
    assert (await bob.get(address)).status_code == 404
    await bob.page("/ask")
    session = address.rpartition("/")[2]
    assert (await bob.press("/ask", text="and now?", session=session)).status_code == 404


async def test_signing_out_ends_the_session(alice: Person) -> None:
    await alice.page("/memory")
    out = await alice.press("/logout")
    assert (out.status_code, out.headers["location"]) == (303, "/login")
    assert (await alice.get("/memory")).headers["location"] == "/login"


async def test_what_is_forgotten_is_shown_before_and_gone_after(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await harness.command("alice", "/nexus remember the heron likes the vault", **DM)
    await harness.ask("alice", "what does the heron like?", **DM)
    listed = await alice.page("/memory?q=heron")
    [address] = set(re.findall(r'href="(/memory/[0-9a-f-]{36})\?q=', listed))
    bob = await bob_of(harness, client)
    await bob.page("/memory")
    assert (await bob.get(f"{address}/forget")).status_code == 404
    assert (await bob.press(f"{address}/forget")).status_code == 404
    preview = await alice.page(f"{address}/forget")
    assert "An answer to you is replaced by a notice" in preview
    assert "heron" in await alice.page(address), "nothing was erased"
    gone = await alice.press(f"{address}/forget")
    assert (gone.status_code, "Receipt: " in gone.text) == (200, True)
    assert (await alice.get(address)).status_code == 404
    assert "heron" not in await alice.page("/memory")
    receipt = re.search(r"Receipt: ([0-9a-f]+)", gone.text)
    assert receipt is not None
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        assert await tx.erasure.receipt(receipt[1]) is not None


@pytest.mark.parametrize("also", [True, False])
async def test_a_memory_is_forgotten_with_the_message_that_it_came_from_if_its_person_wants(
    harness: AppHarness, alice: Person, also: bool
) -> None:
    """The message was left, and the receipt said that nothing was: agents went on answering from it."""
    await harness.say("alice", "I prefer the quiet heron room for meetings.", **DM)
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    [address] = set(re.findall(r'href="(/memory/[0-9a-f-]{36})\?q=', await alice.page("/memory?q=heron")))
    preview = await alice.page(f"{address}/forget")
    assert "Your message:" in preview
    assert 'name="messages" value="true" checked' in preview
    gone = await alice.press(f"{address}/forget", **({"messages": "true"} if also else {}))
    [command] = re.findall(r"<code>(/nexus forget item [0-9a-f-]+)</code>", gone.text) or [None]
    assert (command is None) == also
    assert ("heron" in str(await harness.compose("alice", "which room do I prefer?", **DM))) == (not also)
    if command is not None:
        await harness.command("alice", command, **DM)
        await harness.command("alice", f"{command} --yes", **DM)
        assert "heron" not in str(await harness.compose("alice", "which room do I prefer?", **DM))


async def test_an_entry_is_edited_put_into_the_trash_and_restored(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await alice.page("/memory")
    address = (await alice.press("/memory", text="I own a red Koga.")).headers["location"]
    await alice.press(f"{address}/edit", text="I own a blue Koga.")
    assert "blue Koga" in await alice.page(address)
    assert "red Koga" not in await alice.page("/memory")
    bob = await bob_of(harness, client)
    await bob.page("/memory")
    for act in ("edit", "trash", "restore"):
        assert (await bob.press(f"{address}/{act}", text="mine")).status_code == 404
    await alice.press(f"{address}/trash")
    assert "blue Koga" not in await alice.page("/memory")
    trashed = await alice.page("/memory?shelf=trash")
    assert "blue Koga" in trashed
    assert "Nobody" in await alice.page(address)
    await alice.press(f"{address}/restore")
    assert "blue Koga" in await alice.page("/memory")


async def test_pages_come_in_the_language_of_the_browser(harness: AppHarness, alice: Person) -> None:
    await harness.command("alice", "/nexus remember the heron likes the vault", **DM)
    german = (await alice.get("/memory", **{"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"})).text
    assert '<html lang="de" dir="ltr"' in german
    assert "Von dir ist 1 Sache gemerkt." in german
    for other in ("fr,it;q=0.5", "*", "xx-invalid-xx-xx;;q=", ""):
        assert "1 thing is remembered of you." in (await alice.get("/memory", **{"Accept-Language": other})).text


async def test_a_conversation_in_a_project_is_answered_from_its_rooms(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    await harness.command("alice", "/nexus project assign apollo --yes", **ROOM)
    await harness.say("bob", "The launch of the rocket is on Thursday.", **ROOM)
    shown = await alice.page("/ask")
    [project] = re.findall(r'<option value="([0-9a-f-]{36})">In project apollo', shown)
    alone = await alice.page((await alice.press("/ask", text="when is the launch?")).headers["location"])
    assert "Thursday" not in alone
    inside = await alice.press("/ask", text="when is the rocket launch?", project=project)
    answered = await alice.page(inside.headers["location"])
    assert "Thursday" in answered
    assert re.search(r"Found by (meaning|words of the question)", answered)
    bob = await bob_of(harness, client)
    assert project not in await bob.page("/ask")
    assert (await bob.press("/ask", text="when is the launch?", project=project)).status_code == 404


async def test_a_conversation_that_is_not_listed_any_more_goes_on_and_keeps_its_name(
    harness: AppHarness, alice: Person
) -> None:
    await alice.page("/ask")
    old = (await alice.press("/ask", text="hello there")).headers["location"]
    for n in range(SHOWN_SESSIONS):
        harness.clock.tick()
        await alice.press("/ask", text=f"question {n}?")
    harness.clock.tick()
    assert old not in await alice.page("/ask")
    assert "hello there" in await alice.page(old)
    new = (await alice.press("/ask", text="hello there")).headers["location"]
    assert new != old, "a new conversation is not the old one of its name"
    await alice.press("/ask", text="and again?", session=old.rpartition("/")[2])
    assert "and again?" in await alice.page(old)


async def test_what_is_asked_and_added_on_pages_counts_as_over_the_api(harness: AppHarness, alice: Person) -> None:
    await alice.page("/memory")
    await alice.press("/memory", text="I own a red Koga.")
    await alice.press("/ask", text="what do I own?")
    await harness.app.operations.settle()
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        used = await tx.operations.used(harness.clock.now().date().replace(day=1))
    assert (used[Operation.WRITES], used[Operation.CHATS]) == (1, 1)


# docs/web.md: You. A person's own time zone was not that of the times on their pages; nothing set language or colours.
async def test_a_person_chooses_language_colours_and_time_zone(harness: AppHarness, alice: Person) -> None:
    await harness.command("alice", "/nexus remember the heron likes the vault", **DM)
    shown = await alice.page("/you")
    assert ('<option value="de" lang="de">Deutsch</option>' in shown, "data-theme" in shown) == (True, False)
    saved = await alice.press("/you", language="de", theme="dark", zone="tokyo")
    assert (saved.status_code, saved.headers["location"]) == (303, "/you")
    chosen = {
        name: value.value for name, value in SimpleCookie("; ".join(saved.headers.get_list("set-cookie"))).items()
    }
    assert chosen == {"nexus-language": "de", "nexus-theme": "dark"}
    cookies = "; ".join(f"{name}={value}" for name, value in {COOKIE_ON_LOCALHOST: alice.cookie, **chosen}.items())
    german = (await alice.client.get("/you", headers={"Cookie": cookies, "Accept-Language": "en"})).text
    assert '<html lang="de" dir="ltr" data-theme="dark">' in german
    assert 'value="Asia/Tokyo"' in german
    assert '<option value="de" lang="de" selected>Deutsch</option>' in german
    assert "Japan Standard Time" in await alice.page("/memory")
    for wrong in ({"language": "xx"}, {"theme": "pink"}, {"zone": "atlantis"}):
        assert (await alice.press("/you", **wrong)).status_code == 422
    cleared = await alice.press("/you")
    assert all("Max-Age=0" in each for each in cleared.headers.get_list("set-cookie"))
    assert 'name="zone" list="zones" maxlength="80" value=""' in await alice.page("/you")


async def test_an_answer_without_a_model_says_so_in_the_reader_s_language(alice: Person) -> None:
    await alice.page("/ask")
    said = {}
    for text in ("when does the heron land?", "thank you!"):
        address = (await alice.press("/ask", text=text)).headers["location"]
        said[text] = (await alice.get(address, **{"Accept-Language": "de"})).text
        english = await alice.page(address)
        assert "remember nothing" in english or "welcome!" in english
    assert "Hier habe ich mir nichts gemerkt, was zu deiner Nachricht passt." in said["when does the heron land?"]
    assert "Gern geschehen!" in said["thank you!"]


async def test_a_bug_shows_a_sentence_and_a_way_on_and_nothing_of_it(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("zqsecret")

    monkeypatch.setattr("bot.web.pages.you.page", broken)
    answer = await alice.get("/you", **{"Accept-Language": "de"})
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (500, "text/html")
    assert "In Nexus ist etwas schiefgegangen" in answer.text
    assert 'class="btn" href="/"' in answer.text
    assert "zqsecret" not in answer.text
