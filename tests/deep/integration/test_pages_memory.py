"""My memory as pages and over the API: narrowed down, sorted, by day and by meaning, many at once, and as a file."""

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from html import unescape
from typing import Any, Final

import httpx2
import numpy as np
import pytest

from bot.script.places import incoming, place_of
from composer.entries.draft import ENTRY_KINDS
from composer.model import Trust
from composer.people import own_memory
from composer.people.projection import in_two_dimensions
from composer.settings import Settings
from composer.stores.database.statements import PostgresStatements
from composer.visibility import Grants
from tests.deep.integration.test_pages_waiting import project, proposed
from tests.integration.test_api_sessions import fetch
from tests.integration.test_teams import team_of
from tests.support.api import bearer, cookie_of, key_of
from tests.support.entries import OF_TOOL, Hub
from tests.support.harness import AppHarness
from tests.support.pages import OWN, SCRIPT, Person

ROOM, DM = {"room": "general"}, {"dm": "nexus"}
ITEM: Final = re.compile(r"(/memory/[0-9a-f-]{36})")


@dataclass
class Shown:
    """Which of some words a page shows."""

    alice: Person
    words: tuple[str, ...]

    async def of(self, path: str) -> set[str]:
        found = await self.alice.page(path)
        rows = found[found.index('id="rows"') :]
        return {word for word in self.words if word in rows}


async def filled(harness: AppHarness, alice: Person) -> Shown:
    """What alice stored herself, by a tool, in a room and for a project, a minute after each other."""
    hub = Hub(harness)
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    for text, kind, tags in (
        ("zqdeploy on friday", "procedural", "ops, web"),
        ("zqtea is better", "preference", "ops"),
    ):
        harness.clock.tick(60)
        assert (await alice.press("/memory", text=text, kind=kind, tags=tags)).status_code == 303
    harness.clock.tick(60)
    await hub.write("alice", "zqclaude wrote this", "claude", tags=["web"])
    harness.clock.tick(60)
    await harness.command("alice", "/nexus fact set zqday Friday --yes", **ROOM)
    return Shown(alice, ("zqdeploy", "zqtea", "zqclaude", "zqday"))


async def test_the_list_is_narrowed_down_by_each_label(harness: AppHarness, alice: Person) -> None:
    shown = await filled(harness, alice)
    assert "· how-to" in await alice.page("/memory"), "kinds have words of people"
    form = await alice.page("/memory/add")
    offered = re.findall(r'<option value="([^"]+)"', form)
    assert {*offered, "factual"} == {*ENTRY_KINDS}, "of two that say the same one is offered"
    assert len(offered) == len(set(re.findall(r'<option value="[^"]+"[^>]*>([^<]+)<', form)))
    today = harness.clock.now().date().isoformat()
    for query, expected in {
        "": {"zqdeploy", "zqtea", "zqclaude", "zqday"},
        "?tag=ops": {"zqdeploy", "zqtea"},
        "?tag=web&tool=claude": {"zqclaude"},
        "?place=%23general": {"zqday"},
        "?place=your+entries": {"zqdeploy", "zqtea", "zqclaude"},
        "?place=somewhere": set(),
        "?project=apollo": set(),
        "?by=alice+(app+claude)": {"zqclaude"},
        "?shelf=preferences": {"zqtea"},
        f"?since={today}&until={today}": {"zqdeploy", "zqtea", "zqclaude", "zqday"},
        "?until=2001-01-01": set(),
        "?since=nonsense": {"zqdeploy", "zqtea", "zqclaude", "zqday"},
        "?view=table&q=ZQT": {"zqtea"},
    }.items():
        assert await shown.of(f"/memory{query}") == expected, query
    page = await alice.page("/memory")
    for option in ("ops (2)", "web (2)", "claude (1)", "#general (1)", "your entries (3)"):
        assert option in page


async def walked(client: httpx2.AsyncClient, key: dict[str, str], **params: Any) -> tuple[list[str], int]:
    """All the texts that a list over the API has, and over how many pages."""
    found, pages, cursor = list[str](), 0, None
    while cursor is not None or not pages:
        asked = params | ({"cursor": cursor} if cursor is not None else {})
        answer = (await client.get("/v1/memory", params=asked, headers=key)).json()
        assert "items" in answer, (asked, answer)
        found += [each["text"] for each in answer["items"]]
        pages, cursor = pages + 1, answer["next"]
        assert pages < 30, "it goes on for ever"
    return found, pages


async def test_a_page_looks_through_so_many_memories_and_the_next_ones_find_the_others(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(harness, alice)  # one fact, later than the first nine
    for number in range(9):
        if number % 4:  # some were stored at one moment
            harness.clock.tick(60)
        await alice.press("/memory", text=f"zqlater {number}", tags="odd" if number % 2 else "even")
    key = bearer(await key_of(harness, "alice"))
    whole, pages = await walked(client, key, limit=5)
    assert (len(whole), pages) == (13, 3)
    assert await walked(client, key, q="zqdeploy") == (["zqdeploy on friday"], 1)
    monkeypatch.setattr(own_memory, "MAX_READ", 4)
    for limit in (1, 3, 4, 5, 100):
        assert (await walked(client, key, limit=limit))[0] == whole, limit
        for tag, most in (("odd", 4), ("even", 5)):
            expected = [text for text in whole if text in {f"zqlater {n}" for n in range(tag == "odd", 9, 2)}]
            assert (len(expected), (await walked(client, key, limit=limit, tag=tag))[0]) == (most, expected)
    assert await walked(client, key, q="zqdeploy") == (["zqdeploy on friday"], 4), "twelve memories, and the end"
    page, told = await alice.page("/memory?q=zqdeploy"), "None of the 4 memories that were looked through fits that."
    steps = 0
    while told in page:
        assert ("zqdeploy on" in page, "Nothing of yours fits" in page) == (False, False)
        page, steps = await alice.page(unescape(re.findall(r'class="more">.*?href="([^"]+)"', page)[0])), steps + 1
    assert ("zqdeploy on" in page, steps) == (True, 2)
    rows = (await alice.get("/memory?q=zqnowhere", **SCRIPT)).text
    while found := re.findall(r'class="more">.*?href="([^"]+)"', rows):
        rows = (await alice.get(unescape(found[0]), **SCRIPT)).text
    assert "Nothing earlier fits that." in rows
    assert told in await alice.page("/memory/timeline?q=zqdeploy")


async def test_pages_of_each_order_and_of_a_place_look_through_so_many_memories_too(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(harness, alice)
    for number in range(6):
        if number % 3:
            harness.clock.tick(60)
        await alice.press("/memory", text=f"zqlater {number}", tags="odd" if number % 2 else "even")
    key = bearer(await key_of(harness, "alice"))
    first = _address(await alice.page("/memory?sort=created"), "zqdeploy")
    harness.clock.tick(60)
    await alice.press(f"{first}/edit", text="zqdeploy on monday", version="1")
    whole, _ = await walked(client, key, limit=100)
    changed, _ = await walked(client, key, limit=100, sort="-updated")
    assert (changed[0], changed[1:]) == (whole[-1], whole[:-1]), "what was written first was changed last"
    monkeypatch.setattr(own_memory, "MAX_READ", 3)
    orders = {"-created": whole, "created": whole[::-1], "-updated": changed, "updated": changed[::-1]}
    for limit, sorts in ((2, ("created", "-updated")), (100, orders)):
        for sort in sorts:
            expected = orders[sort]
            asked = {"limit": limit, "sort": sort}
            assert (await walked(client, key, **asked))[0] == expected, asked
            odd = [text for text in expected if text in {f"zqlater {n}" for n in range(1, 6, 2)}]
            assert (await walked(client, key, **asked, tag="odd"))[0] == odd, asked
            entries = [text for text in expected if text != "zqday = Friday"]
            assert (await walked(client, key, **asked, place="your entries"))[0] == entries, asked
    assert (len(whole), await walked(client, key, place="#general")) == (10, (["zqday = Friday"], 4))
    assert await walked(client, key, q="zqlater 5", sort="created") == (["zqlater 5"], 4), "nine, and the end"


async def test_counts_of_the_latest_memories_look_like_what_they_are(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(harness, alice)  # three memories and a fact
    key = bearer(await key_of(harness, "alice"))
    exact = (await client.get("/v1/memory/labels", headers=key)).json()
    assert (exact["at_least"], {"name": "ops", "count": 2} in exact["tags"]) == (False, True)
    page = await alice.page("/memory")
    assert ("4 things are remembered" in page, "All 4<" in page, "At least" in page) == (True, True, False)
    assert "In trash" not in page
    monkeypatch.setattr(own_memory, "MAX_READ", 2)
    bounded = (await client.get("/v1/memory/labels", headers=key)).json()
    assert (bounded["at_least"], {"name": "ops", "count": 1} in bounded["tags"]) == (True, True)
    page = await alice.page("/memory")
    for shown in ("At least 3 things", "All 3+<", "ops (1+)", "#general (1+)", "In trash<", "Decisions<", "latest 2 "):
        assert shown in page, shown
    german = (await alice.get("/memory", **{"Accept-Language": "de"})).text
    assert "mindestens 3 Sachen" in german
    assert "deine letzten 2 Erinnerungen" in german
    monkeypatch.setattr(own_memory, "MAX_READ", 4)
    assert (await client.get("/v1/memory/labels", headers=key)).json() == exact


async def test_what_waits_is_listed_whatever_is_remembered_since(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub(harness, quarantined={Trust.TOOL})
    await proposed(hub, "bob", "zqwaits", await project(hub, "apollo", "bob"))
    for number in range(4):
        harness.clock.tick(60)
        await hub.write("bob", f"zqlater {number}")
    monkeypatch.setattr(own_memory, "MAX_READ", 2)
    assert await walked(client, bearer(await key_of(harness, "bob")), shelf="waiting") == (["zqwaits"], 1)


# Of these each takes one round trip to the database.
STATEMENTS: Final = {
    "/memory": 9,
    "/memory?q=zq": 9,
    "/memory?q=zqnothing": 9,
    "/memory?shelf=notes&tag=ops": 9,
    "/memory?place=your+entries": 10,
    "/memory?sort=created": 9,
    "/memory?sort=-updated": 9,
    "/memory?sort=used": 9,
    "/memory?view=table": 10,
    "/memory/timeline": 10,
    "/memory/map": 8,
}


async def test_a_page_takes_so_many_statements(
    harness: AppHarness, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(harness, alice)
    calls = list[str]()

    def count(method: str) -> None:
        doing = getattr(PostgresStatements, method)

        async def counted(self: PostgresStatements, name: str, **values: Any) -> Any:
            calls.append(name)
            return await doing(self, name, **values)

        monkeypatch.setattr(PostgresStatements, method, counted)

    for method in ("fetch", "fetch_one", "fetch_value", "execute"):
        count(method)
    for page, most in STATEMENTS.items():
        await alice.page(page)  # then the session was used in this minute
        calls.clear()
        await alice.page(page)
        assert len(calls) <= most, (page, calls)


async def test_the_list_is_sorted(harness: AppHarness, alice: Person) -> None:
    await filled(harness, alice)
    newest = await alice.page("/memory")
    oldest = await alice.page("/memory?sort=created")
    words = ("zqdeploy", "zqtea", "zqclaude", "zqday")
    assert sorted(words, key=oldest.index) == list(words)
    assert sorted(words, key=newest.index) == list(reversed(words))
    first = _address(newest, "zqdeploy")
    harness.clock.tick(60)
    await alice.press(f"{first}/edit", text="zqdeploy on monday", version="1")
    changed = await alice.page("/memory?sort=-updated")
    assert sorted(words, key=changed.index)[0] == "zqdeploy"
    harness.clock.tick(60)
    await harness.say("alice", "what about zqtea?", dm="nexus")
    used = await alice.page("/memory?sort=-used")
    heading = used.index("Never used in an answer to you")
    assert used.index("zqtea") < heading < used.index("zqday")


async def test_what_was_used_stands_before_or_after_all_that_never_was(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long ago it was written, and over pages that look through few memories."""
    shown = await filled(harness, alice)
    for query in ("?sort=-updated", "?sort=used", "?sort=created", ""):
        assert await shown.of(f"/memory{query}") == set(shown.words)
    harness.clock.tick(60)
    await harness.say("alice", "what about zqdeploy on friday?", dm="nexus")
    for number in range(4):
        harness.clock.tick(60)
        await alice.press("/memory", text=f"zqlater {number}")
    key = bearer(await key_of(harness, "alice"))
    newest, _ = await walked(client, key, limit=100)
    used, _ = await walked(client, key, limit=100, sort="-used")
    first = used.index("zqlater 3")
    assert "zqdeploy on friday" in used[:first]
    assert used[first:] == [text for text in newest if text not in used[:first]], "what never was, newest first"
    monkeypatch.setattr(own_memory, "MAX_READ", 2)
    for limit in (1, 2, 3, 100):
        assert (await walked(client, key, limit=limit, sort="-used"))[0] == used, limit
        assert (await walked(client, key, limit=limit, sort="used"))[0] == used[::-1], limit
    rows = (await alice.get("/memory?sort=used", **SCRIPT)).text
    assert ("zqdeploy" in rows, 'class="more"' in rows) == (False, True)
    assert "zqdeploy" in (await alice.get("/memory?sort=-used", **SCRIPT)).text


async def test_a_page_that_old_facts_fill_leaves_out_no_memory_before_them(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        harness.clock.tick(60)
        await harness.command("alice", f"/nexus fact set zqday{number} Friday --yes", **ROOM)
    for number in range(5):
        harness.clock.tick(60)
        await alice.press("/memory", text=f"zqlater {number}")
    key = bearer(await key_of(harness, "alice"))
    whole, _ = await walked(client, key, limit=100)
    assert len(whole) == 9
    monkeypatch.setattr(own_memory, "MAX_READ", 2)
    for limit in (3, 4, 5):
        assert (await walked(client, key, limit=limit))[0] == whole, limit
        assert (await walked(client, key, limit=limit, sort="created"))[0] == whole[::-1], limit


async def test_the_timeline_counts_the_latest_memories_of_its_month(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = harness.clock.now()
    for number, text in enumerate(("zqone", "zqtwo", "zqthree", "zqfour")):
        await alice.press("/memory", text=text)
        if number != 1:
            harness.clock.tick(24 * 60 * 60)
    day = [(first + timedelta(days=n)).date() for n in range(3)]
    assert {each.month for each in day} == {first.month}

    def counts(page: str) -> list[str]:
        return [re.findall(rf'until={each}" aria-label="[^:]+: ([^"]+)"', page)[0] for each in day]

    page = await alice.page(f"/memory/timeline?month={first:%Y-%m}")
    assert (counts(page), "4 things were learnt in this month" in page) == (["1", "2", "1"], True)
    monkeypatch.setattr(own_memory, "MAX_READ", 2)
    page = await alice.page(f"/memory/timeline?month={first:%Y-%m}")
    assert counts(page) == ["not counted", "1+", "1"]
    for told in ("At least 2 things were learnt in this month", "Counted are the latest 2 memories of this month"):
        assert told in page
    assert "zqone" in await alice.page(f"/memory/timeline?since={day[0]}&until={day[0]}")
    found = (await client.get("/v1/memory/days", headers=bearer(await key_of(harness, "alice")))).json()["items"]
    assert [sum(each["shelves"].values()) for each in found] == [1, 2, 1], "the API counts all"


async def test_only_the_version_that_was_shown_is_changed(harness: AppHarness, alice: Person) -> None:
    address = (await alice.press("/memory", text="zqdeploy on friday", tags="ops")).headers["location"]
    assert 'name="version" value="1"' in await alice.page(address)
    assert (await alice.press(f"{address}/edit", text="zqdeploy on monday", tags="", version="1")).status_code == 303
    late = await alice.press(f"{address}/edit", text="zqdeploy never", version="1")
    assert (late.status_code, "changed meanwhile" in late.text) == (409, True)
    shown = await alice.page(address)
    assert ("on monday" in shown, "version 2" in shown, "?tag=ops" in shown) == (True, True, False)
    assert ("its words changed, its tags changed" in shown, "by you" in shown, "friday" in shown) == (True, True, False)


async def test_a_late_edit_shows_what_it_would_replace(harness: AppHarness, alice: Person) -> None:
    address = (await alice.press("/memory", text="zqdeploy on friday", tags="ops")).headers["location"]
    await alice.page(address)
    await alice.press(f"{address}/edit", text="zqdeploy on <monday>", tags="", version="1")
    host = alice.client.base_url.netloc.decode()
    late = await alice.press(
        f"{address}/edit",
        _headers=OWN | {"Host": host, "Referer": f"http://{host}{address}"},
        text="zqdeploy never",
        tags="ops",
        version="1",
    )
    form = late.text[late.text.index(f'action="{address}/edit"') :]
    assert late.status_code == 409
    assert "Saving puts what you typed in its place." in form
    assert form.index('<dd dir="auto">zqdeploy on &lt;monday&gt;</dd>') < form.index("zqdeploy never</textarea>")
    assert "<dt>Tags</dt>" in form
    again = await alice.press(f"{address}/edit", text="zqdeploy never", tags="ops", version="2")
    assert again.status_code == 303
    assert "zqdeploy never" in await alice.page(address)


async def test_an_entry_is_shared_and_taken_back_one_and_many(harness: AppHarness, alice: Person) -> None:
    hub = Hub(harness)
    team = await team_of(hub, "alice", "bob")
    first = (await alice.press("/memory", text="zqtea is better")).headers["location"]
    second = (await alice.press("/memory", text="zqcoffee is worse")).headers["location"]
    assert "Core" in await alice.page(first)
    assert (await alice.press(f"{first}/share", team=str(team))).status_code == 303
    assert "The team" in await alice.page(first)
    await alice.press(f"{first}/share")
    assert "The team" not in await alice.page(first)
    ids = [each.rpartition("/")[2] for each in (first, second)]
    await bulk(alice, ids, act="share", team=str(team))
    assert len(await hub.titles("bob")) == 2
    await bulk(alice, ids, act="unshare")
    assert await hub.titles("bob") == []
    await bulk(alice, ids, act="trash")
    trash = await alice.page("/memory?shelf=trash&view=table")
    assert ("zqtea" in trash, "zqcoffee" in trash, "Erased on" in trash) == (True, True, True)
    await bulk(alice, ids[:1], act="restore")
    assert "zqtea" in await alice.page("/memory")


async def bulk(person: Person, ids: list[str], **values: Any) -> httpx2.Response:
    """Press a button below the table."""
    headers = OWN | person._cookie() | {"Content-Type": "application/x-www-form-urlencoded"}
    body = str(httpx2.QueryParams([("csrf", person.csrf), *(("id", id) for id in ids), *values.items()]))
    return await person.client.post("/memory/bulk", content=body, headers=headers)


async def test_the_trash_is_emptied_of_what_was_shown(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    addresses = [
        (await alice.press("/memory", text=text)).headers["location"] for text in ("zqtea", "zqcoffee", "zqmilk")
    ]
    assert "The trash is empty" in await alice.page("/memory/empty")
    for address in addresses[:2]:
        await alice.press(f"{address}/trash")
    assert "/memory/empty" in await alice.page("/memory?shelf=trash")
    assert "2 entries are erased for good" in await alice.page("/memory/empty")
    assert (await alice.press("/memory/empty", confirm="1")).status_code == 409, "one more came meanwhile"
    bob = Person(client, await cookie_of(harness, "bob"))
    assert "The trash is empty" in await bob.page("/memory/empty")
    gone = await alice.press("/memory/empty", OWN | {"Accept-Language": "de"}, confirm="2")
    assert "Endgültig vergessen: 2 Erinnerungen. Quittung: " in gone.text
    assert [(await alice.get(each)).status_code for each in addresses] == [404, 404, 200]


async def test_what_is_anothers_is_not_chosen(harness: AppHarness, client: httpx2.AsyncClient, alice: Person) -> None:
    address = (await alice.press("/memory", text="zqtea is better")).headers["location"]
    bob = Person(client, await cookie_of(harness, "bob"))
    await bob.page("/memory")
    own = (await bob.press("/memory", text="zqbob")).headers["location"]
    for act in ("trash", "restore", "unshare"):
        refused = await bulk(bob, [address.rpartition("/")[2], own.rpartition("/")[2]], act=act)
        assert (refused.status_code, "There is no such entry." in refused.text) == (422, True)
        assert "zqtea" not in refused.text
    assert "zqtea" in await alice.page("/memory")
    token, alice.csrf = alice.csrf, bob.csrf
    assert (await bulk(alice, [address.rpartition("/")[2]], act="trash")).status_code == 403
    alice.csrf = token
    for path in ("share", "edit"):
        assert (await bob.press(f"{address}/{path}", text="x", team="")).status_code == 404
    assert (await client.post("/memory/import", files={"file": b"{}"}, headers=OWN)).headers["location"] == "/login"


async def test_entries_are_taken_out_and_brought_in(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await alice.press("/memory", text="zqtea is better", tags="ops")
    out = await alice.get("/memory/export")
    assert "attachment" in out.headers["content-disposition"]
    assert [each["content"] for each in out.json()["entries"]] == ["zqtea is better"]
    bob = Person(client, await cookie_of(harness, "bob"))
    await bob.page("/memory/import")

    async def bring(document: bytes, **values: str) -> httpx2.Response:
        form = {"csrf": bob.csrf} | values
        headers = OWN | bob._cookie()
        return await client.post("/memory/import", data=form, files={"file": document}, headers=headers)

    said = await bring(out.content, dry_run="true")
    assert "What would become of it" in said.text
    assert "zqtea" not in await bob.page("/memory")
    assert "Brought in" in (await bring(out.content)).text
    assert "zqtea" in await bob.page("/memory")
    for wrong in (b"", b"[]", b"{", b'{"format": "nexus-entries", "version": 1, "entries": [{"text": 1}]}', b"\xff"):
        refused = await bring(wrong)
        assert 400 <= refused.status_code < 500, wrong
        assert "<html" in refused.text
    assert (await bring(json.dumps({"entries": []}).encode(), csrf="0" * 32)).status_code == 403


async def test_the_timeline_counts_days_of_the_reader(harness: AppHarness, alice: Person) -> None:
    shown = await filled(harness, alice)
    today = harness.clock.now().date()
    page = await alice.page("/memory/timeline")
    assert f"since={today}&amp;until={today}" in page
    assert re.search(rf'aria-label="[^"]*{today.year}: 4"', page)
    assert await shown.of("/memory/timeline") == set(shown.words)
    assert await shown.of("/memory/timeline?month=1999-12") == set()
    assert await shown.of(f"/memory/timeline?since={today}&until={today}") == set(shown.words)
    assert (await alice.get("/memory/timeline?month=9999-99")).status_code == 200
    assert await shown.of("/memory/timeline?view=table") == set(shown.words)


async def test_the_timeline_draws_what_waits_as_well(harness: AppHarness, alice: Person) -> None:
    await harness.command("alice", "/nexus project create apollo", dm="nexus")
    hub = Hub(harness, quarantined={Trust.TOOL})
    async with hub.request("alice") as (_, access):
        (project,) = access.projects
    await hub.write("alice", "zqpnpm", "claude", project=project.id, grants=OF_TOOL | {Grants.WRITE_PROJECTS})
    page = await alice.page("/memory/timeline")
    assert '<rect data-shelf="waiting"' in page
    assert '<span class="dot" data-shelf="waiting"></span>Waiting 1' in page


async def test_the_map_has_all_that_is_indexed_and_nothing_of_others(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    for n in range(5):
        await alice.press("/memory", text=f"zqthing {n} about tea")
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    before = await alice.page("/memory/map")
    assert before.count("<circle") == 5
    bob = Person(client, await cookie_of(harness, "bob"))
    await bob.page("/memory")
    for n in range(5):
        await bob.press("/memory", text=f"zqthing {n} about coffee")
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    assert await alice.page("/memory/map") == before, "to the last digit"
    assert "coffee" not in before
    assert (await alice.page("/memory/map?q=zqthing+1")).count("<circle") == 1


def test_a_projection_is_the_same_each_time_and_separates_what_differs() -> None:
    random = np.random.default_rng(7)
    middles = random.normal(size=(2, 64))
    rows = np.concatenate([middle + random.normal(scale=0.05, size=(50, 64)) for middle in middles])
    sent = [b"\0" * 4 + row.astype(">f4").tobytes() for row in rows]
    found = in_two_dimensions(sent)
    assert found == in_two_dimensions(sent)
    assert all(0 <= each <= 1 for point in found for each in point)
    one, other = np.array(found[:50]), np.array(found[50:])
    assert np.linalg.norm(one.mean(axis=0) - other.mean(axis=0)) > 3 * one.std()
    assert in_two_dimensions(sent[:1] * 3) == [(0.5, 0.5)] * 3
    assert in_two_dimensions([b"\0" * 4 + np.array(each, ">f4").tobytes() for each in ((3, 0), (0, 0), (-3, 0))]) == [
        (0.7449, 0.5),
        (0.5, 0.5),
        (0.2551, 0.5),
    ]


def test_the_map_is_drawn_on_the_plane_in_which_vectors_differ_most() -> None:
    random = np.random.default_rng(3)
    rows = (random.normal(size=(500, 384)) + random.normal(size=(20, 384))[random.integers(20, size=500)]).astype("f4")
    x, y = np.array(in_two_dimensions([b"\0" * 4 + row.astype(">f4").tobytes() for row in rows])).T
    _, deviations, axes = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    best = (rows - rows.mean(axis=0)) @ axes[:2].T
    for drawn, place, deviation in zip((x, y), best.T, deviations, strict=False):
        assert abs(np.corrcoef(drawn, place)[0, 1]) > 0.98, deviation


async def test_the_api_says_what_the_pages_show(harness: AppHarness, client: httpx2.AsyncClient, alice: Person) -> None:
    await filled(harness, alice)
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    own = bearer(await key_of(harness, "alice"))

    async def asked(path: str, **params: Any) -> Any:
        answer = await client.get(f"/v1/memory{path}", params=params, headers=own)
        assert answer.status_code == 200, answer.text
        return answer.json()

    first = await asked("", limit=3)
    assert [each["text"] for each in first["items"]][1:] == ["zqclaude wrote this", "zqtea is better"]
    [last] = (await asked("", limit=3, cursor=first["next"]))["items"]
    assert (last["text"], last["tags"], last["place"]) == ("zqdeploy on friday", ["ops", "web"], "your entries")
    labels = await asked("/labels")
    assert {"name": "ops", "count": 2} in labels["tags"]
    assert {"name": "#general", "count": 1} in labels["places"]
    [day] = (await asked("/days", zone="Europe/Berlin"))["items"]
    assert sum(day["shelves"].values()) == 4
    assert len((await asked("/map"))["items"]) == 3
    one = await asked(f"/{last['id']}")
    assert one["readers"][0] == {"may": True, "who": "You", "why": "in your DMs, your sessions and over the API"}
    assert (await client.get("/v1/memory/days?zone=Mars", headers=own)).status_code == 422
    bobs = bearer(await key_of(harness, "bob"))
    assert (await client.get(f"/v1/memory/{last['id']}", headers=bobs)).status_code == 404
    assert (await client.get("/v1/memory", headers=bobs)).json() == {"items": [], "next": None}


async def test_many_entries_are_changed_over_the_api(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    ids = [
        (await alice.press("/memory", text=text)).headers["location"].rpartition("/")[2]
        for text in ("zqtea is better", "zqcoffee is worse")
    ]
    own = bearer(await key_of(harness, "alice"))
    nobodys = "00000000-0000-0000-0000-000000000007"

    async def change(act: str, **headers: str) -> list[bool]:
        body = {"ids": [*ids, nobodys], "act": act}
        answer = await client.post("/v1/entries/bulk", json=body, headers=own | headers)
        assert answer.status_code == 200, answer.text
        return [each["done"] for each in answer.json()["items"]]

    assert await change("trash", **{"Idempotency-Key": "once"}) == [True, True, False]
    [trashed, _] = (await client.get("/v1/entries?trashed=true", headers=own)).json()["items"]
    assert trashed["purge_at"] > trashed["trashed_at"]
    assert await change("restore") == [True, True, False]
    assert await change("trash", **{"Idempotency-Key": "once"}) == [False, False, False], "it was done once"
    assert len((await client.get("/v1/entries", headers=own)).json()["items"]) == 2
    assert (await client.post("/v1/entries/bulk", json={"ids": ids, "act": "share"}, headers=own)).status_code == 422


async def test_what_others_have_changes_nothing_of_any_view(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await filled(harness, alice)
    await harness.say("bob", "good morning", **ROOM)
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    paths = (
        "",
        "?view=table",
        "?tag=ops",
        "?place=%23general",
        "?sort=-updated",
        "/timeline",
        "/map",
        "/add",
        "/import",
    )
    before = [await alice.page(f"/memory{path}") for path in paths]
    bob = Person(client, await cookie_of(harness, "bob"))
    await bob.page("/memory")
    await bob.press("/memory", text="zqbob has a tag", tags="ops, zqbobs")
    await harness.command("bob", "/nexus fact set zqbobs_day Monday --yes", **ROOM)
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    assert [await alice.page(f"/memory{path}") for path in paths] == before


def _address(page: str, word: str) -> str:
    """The address of the item whose row has a word."""
    return str(ITEM.findall(page[: page.index(word)])[-1])


async def test_a_guest_learns_nothing_of_what_was_asked_where_they_are_not(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    """Not even where everybody else may enter: what is asked of them is in the question. As a member they see it."""
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    for place in (ROOM, {"room": "zqquiet"}):
        await harness.command("alice", "/nexus project assign apollo --yes", **place)
    await harness.move("alice", "zqquiet", joined=False)
    await harness.say("alice", "I prefer durian pudding for dessert", **ROOM)
    key = bearer(await key_of(harness, "alice"))
    [item] = (await client.get("/v1/memory", params={"q": "durian"}, headers=key)).json()["items"]
    await harness.say("bob", "@nexus which durian pudding for dessert? zqcontract ends", room="zqquiet")

    async def told() -> str:
        detail = (await client.get(f"/v1/memory/{item['id']}", headers=key)).text
        return detail + await alice.page(f"/memory/{item['id']}") + await alice.page("/privacy")

    shown = await told()
    assert "zqcontract" in shown
    assert '<span dir="auto">bob</span></p><p class="from">#<span dir="auto">zqquiet</span>' in shown
    at = harness.workspace()
    later = incoming(
        at, place_of("general", None, None), "alice", "hello", harness.clock.tick(), id="g1", trust=Trust.GUEST
    )
    await harness.app.receive(at, [later])
    shown = await told()
    assert "zqcontract" not in shown
    assert "zqquiet" not in shown


async def test_an_answer_that_was_merely_shown_an_item_is_not_what_it_led_to(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, settings: Settings
) -> None:
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    for place in (ROOM, {"room": "zqquiet"}):
        await harness.command("alice", "/nexus project assign apollo --yes", **place)
    await harness.say("alice", "I prefer durian pudding for dessert", **ROOM)
    key = bearer(await key_of(harness, "alice"))
    [item] = (await client.get("/v1/memory", params={"q": "durian"}, headers=key)).json()["items"]
    await harness.say("bob", "@nexus which durian pudding for dessert? zqasked", room="zqquiet")
    assert "zqasked" in await alice.page(f"/memory/{item['id']}")
    await fetch(settings, "DELETE FROM lineage WHERE item_kind = 'answer'")
    shown = await alice.page(f"/memory/{item['id']}")
    assert "zqasked" not in shown
    assert "Nobody was answered from it yet" in shown


async def test_a_private_room_that_one_has_left_is_named_nowhere(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    place: dict[str, Any] = {"room": "zqlayoffs", "private": True}
    await harness.say("alice", "I prefer durian pudding for dessert", **place)
    await harness.say("alice", "@nexus which pudding for dessert do I prefer?", **place)
    key = bearer(await key_of(harness, "alice"))
    [item] = (await client.get("/v1/memory", params={"q": "durian"}, headers=key)).json()["items"]
    paths = (f"/v1/memory/{item['id']}", "/v1/memory")
    assert "zqlayoffs" in (await client.get(paths[0], headers=key)).text
    await harness.move("alice", "zqlayoffs", joined=False)
    for path in paths:
        assert "zqlayoffs" not in (await client.get(path, headers=key)).text
    shown = await alice.page(f"/memory/{item['id']}")
    assert "zqlayoffs" not in shown
    assert "in a private room that you are not in" in shown


async def test_a_decision_that_was_found_is_listed_once_and_forgotten_as_a_whole(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    text = "We'll go with Postgres for the event store."
    await harness.say("alice", text, **ROOM)

    async def listed() -> list[str]:
        shown = await alice.page("/memory")
        counted = re.search(r"<span>All (\d+)</span>", shown)
        assert counted is not None
        found = [
            each
            for each in re.findall(r'<a href="/memory/[0-9a-f-]{36}.*?</li>', shown, re.DOTALL)
            if text in unescape(each)
        ]
        assert len(found) == int(counted[1])
        return found

    [proposed] = await listed()
    assert "proposed decision" in proposed
    key = bearer(await key_of(harness, "alice"))
    [item] = (await client.get("/v1/memory", headers=key)).json()["items"]
    assert (item["kind"], item["label"]) == ("memory", "proposed")
    rooms = (await alice.get("/v1/rooms")).json()["items"]
    board = f"/v1/rooms/{rooms[0]['id']}/landmarks"
    [mark] = (await alice.get(board)).json()["items"]
    assert (await client.get(f"/v1/memory/{mark['id']}", headers=key)).status_code == 200, "it can still be opened"
    accepted = await alice.press(f"/rooms/{rooms[0]['id']}/decisions/{mark['id']}", act="accept")
    assert accepted.status_code == 303, accepted.text
    [pinned] = await listed()
    assert "proposed decision" not in pinned
    assert "decision" in pinned
    await harness.say("bob", text, **ROOM)
    assert len(await listed()) == 1, "what somebody else said is theirs"
    assert "<span>1 decision</span>" in await alice.page(f"/memory/{item['id']}/forget"), "it is said that both go"
    assert (await alice.press(f"/memory/{item['id']}/forget")).status_code == 200
    assert text not in unescape(await alice.page("/memory"))
    left = (await alice.get(board)).json()["items"]
    assert mark["id"] not in [each["id"] for each in left]


async def test_a_decision_says_that_nobody_accepted_it_or_that_it_was_retired(
    harness: AppHarness, alice: Person
) -> None:
    await harness.say("alice", "We decided to ship on Fridays.", **ROOM)
    await harness.say("alice", "We decided to use Postgres.", **ROOM)
    shown = await alice.page("/waiting")
    way = r"action=\"(/rooms/[^\"]+)\">(?:(?!</form>).)*?value=\"retire\""
    address, _ = re.findall(way, shown, re.DOTALL)
    await alice.press(address, act="retire")
    harness.clock.tick(15 * 86_400)
    shown = await alice.page("/memory")
    assert ("retired decision" in shown, "lapsed decision" in shown) == (True, True)
    [room] = re.findall(r"(/rooms/[^/]+)/", address)
    board = await alice.page(f"{room}?view=decisions")
    assert "<h2>No more <small>2</small></h2>" in board
    assert "lapsed: nobody accepted it" in board
