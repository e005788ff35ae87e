"""The page Ask: stopping an answer, asking again, what was said before, all conversations, what answers are made of."""

import asyncio
import re
from collections.abc import AsyncIterator
from html import unescape

import httpx2
import pytest

from bot.console.operations import set_admin
from bot.web.app import web_app
from bot.web.metrics import Metrics
from bot.web.pages import ask
from composer.settings import AgentSettings, Settings
from composer.turn.drafting import STOPPED
from tests.deep.integration.test_pages_team import joined, shared, team_of
from tests.support.api import bearer, cookie_of, key_of
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness
from tests.support.pages import BITES, OWN, SCRIPT, Person
from tests.support.waiting import until
from tests.support.web import served_at


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    many = {"agents": (AgentSettings(model="gpt-4o"),), "requests_per_minute": 10_000}
    async with open_harness(settings.model_copy(update=many), model=model) as harness:
        yield harness


@pytest.fixture
async def gate(harness: AppHarness, model: Model) -> AsyncIterator[asyncio.Event]:
    """What the model waits for in the middle of an answer."""
    model.gate = asyncio.Event()
    yield model.gate
    model.gate.set()


async def asked(person: Person, text: str, address: str = "") -> str:
    """The address of the conversation in which something was asked."""
    session = {"session": address.rpartition("/")[2]} if address else {}
    answer = await person.press("/ask", text=text, **session)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


@pytest.mark.parametrize("script", [True, False])
async def test_an_answer_is_stopped_by_its_person_alone(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, model: Model, gate: asyncio.Event, script: bool
) -> None:
    await harness.say("bob", "hello", room="general")
    bob = Person(client, await cookie_of(harness, "bob"))
    await bob.page("/ask")
    asking = asyncio.create_task(alice.press("/ask", SCRIPT, text="where is it?"))
    await until(lambda: bool(model.shown))
    conversation = re.search(r'href="(/ask/[0-9a-f-]{36})"', await alice.page("/ask"))
    assert conversation is not None
    waiting = await alice.page(conversation[1])
    found = re.search(r'action="(/ask/turns/[0-9a-f-]{36}/stop)"', waiting)
    assert found is not None, "also who reads without scripts can stop it"
    assert (await bob.press(found[1])).status_code == 404
    assert (await Person(client, alice.cookie, "0" * 32).press(found[1])).status_code == 403
    assert not asking.done()
    stopped = await (alice.press(found[1], SCRIPT) if script else alice.press(found[1]))
    assert stopped.status_code == (204 if script else 303)
    assert STOPPED in (await asking).text
    shown = await alice.page(conversation[1])
    assert STOPPED in shown
    assert "Edit and ask again" in shown
    assert (await alice.press(found[1], SCRIPT)).status_code == 204, "what has ended stays as it is"


async def test_an_answer_is_stopped_over_the_api(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, model: Model, gate: asyncio.Event
) -> None:
    key = bearer(await key_of(harness, "alice"))
    asking = asyncio.create_task(client.post("/v1/chat", json={"content": "where?"}, headers=key))
    await until(lambda: bool(model.shown))
    turn = (await client.get("/v1/episodes", headers=key)).json()["items"][0]["turn"]
    assert (await client.post(f"/v1/chat/turns/{turn}/stop", headers=key)).status_code == 204
    ended = (await asking).json()
    assert (ended["state"], ended["text"]) == ("failed", STOPPED)


async def test_a_question_is_changed_and_asked_again(client: httpx2.AsyncClient, alice: Person, model: Model) -> None:
    bite = BITES[0]
    address = await asked(alice, f"where is {bite} the heron?")
    again = re.search(rf'href="({address}\?again=[0-9a-f-]+)"', await alice.page(address))
    assert again is not None
    shown = await alice.page(again[1])
    box = re.search(r"<textarea[^>]*>(.*?)</textarea>", shown, re.DOTALL)
    assert box is not None
    assert "the heron?" in box[1]
    assert bite not in shown
    plain = await alice.page(f"{address}?again={'0' * 8}-0000-0000-0000-{'0' * 12}")
    assert re.search(r"<textarea[^>]*></textarea>", plain) is not None, "of what is not there nothing"


async def test_what_was_said_before_is_reached(
    harness: AppHarness, alice: Person, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "SHOWN_EXCHANGES", 2)
    address = await asked(alice, "question 1")
    for number in range(2, 6):
        harness.clock.tick()
        await asked(alice, f"question {number}", address)
    seen: list[str] = []
    path = address
    while path:
        shown = await alice.page(path)
        part = re.findall(r'class="said" dir="auto">question (\d)', shown)
        assert len(part) <= 2
        seen = part + seen
        assert ("To the latest" in shown) == (path != address)
        found = re.search(r'href="([^"]*\?before=[^"]*)" hx-get', shown)
        path = found[1] if found else ""
    assert seen == ["1", "2", "3", "4", "5"]
    before = re.search(r'href="([^"]*\?before=[^"]*)" hx-get', await alice.page(address))
    assert before is not None
    piece = (await alice.get(before[1], **{"HX-Request": "true"})).text
    assert "<html" not in piece
    assert "question 3" in piece


async def test_all_conversations_are_found_by_their_titles(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "LISTED_SESSIONS", 2)
    for title in ("Herons of the vault", "The launch", "Paint for the vault", "50% of nothing"):
        await asked(alice, title)
        harness.clock.tick()
    seen: list[str] = []
    path = "/ask/conversations"
    while path:
        shown = await alice.page(path)
        seen += re.findall(r'class="text" dir="auto">([^<]+)<', shown)
        found = re.search(r'href="(/ask/conversations\?[^"]+)"', shown)
        path = found[1].replace("&amp;", "&") if found else ""
    assert seen == ["50% of nothing", "Paint for the vault", "The launch", "Herons of the vault"]
    wanted: list[tuple[str, list[str]]] = [("VAULT", seen[1::2]), ("%", seen[:1]), ("_", []), ("nothing fits", [])]
    for words, titles in wanted:
        part = (await alice.get(f"/ask/conversations?q={words.replace('%', '%25')}", **{"HX-Request": "true"})).text
        assert re.findall(r'class="text" dir="auto">([^<]+)<', part) == titles
    await harness.say("bob", "hello", room="general")
    bob = Person(client, await cookie_of(harness, "bob"))
    assert "vault" not in await bob.page("/ask/conversations")
    key = bearer(await key_of(harness, "alice"))
    listed = (await client.get("/v1/chat/sessions", params={"q": "launch"}, headers=key)).json()["items"]
    assert [each["session"] for each in listed] == ["The launch"]
    assert (await alice.get("/ask/conversations?before=nonsense")).status_code == 422


async def test_an_answer_says_what_it_was_made_of_in_tokens_and_seconds(alice: Person, model: Model) -> None:
    address = await asked(alice, "where is the heron?")
    shown = await alice.page(address)
    drawer = shown[shown.index('<details class="made">') :]
    assert "Instructions of the agent" in drawer
    assert "The question" in drawer
    assert re.search(r"It took [\d.,]+ s\.", drawer)
    assert "The answer has 10 tokens." in drawer
    assert "gpt-4o" in drawer
    rows = [int(each.replace(",", "")) for each in re.findall(r"<td>([\d,]+)</td>", drawer)]
    assert all(rows)
    assert sum(rows[:-1]) == rows[-1], "they add up"
    assert "In all, of 128,000 that the model takes" in drawer
    assert '<th scope="col">Tokens</th>' in drawer.partition("<tbody>")[0]
    assert "visually-hidden" not in drawer.partition("<tbody>")[0]


@pytest.mark.parametrize("script", [True, False])
async def test_a_person_says_what_they_think_of_an_answer_and_admins_see_how_many_do(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, model: Model, script: bool
) -> None:
    address = await asked(alice, "where is the heron?")
    found = re.search(r'action="(/ask/turns/[0-9a-f-]{36}/rating)"', await alice.page(address))
    assert found is not None
    await harness.say("bob", "hello", room="general")
    bob = Person(client, await cookie_of(harness, "bob"))
    await bob.page("/ask")
    assert (await bob.press(found[1], rating="bad")).status_code == 404
    assert (await Person(client, alice.cookie, "0" * 32).press(found[1], rating="bad")).status_code == 403
    assert (await alice.press(found[1], rating="great")).status_code == 422
    await set_admin(harness.app, harness.name, "bob", True)
    root = bearer(await key_of(harness, "bob"))
    for rating, figures in (("good", [1, 0]), ("bad", [0, 1]), ("none", [0, 0])):
        answer = await (
            alice.press(found[1], SCRIPT, rating=rating) if script else alice.press(found[1], rating=rating)
        )
        assert answer.status_code == (200 if script else 303)
        shown = answer.text if script else await alice.page(address)
        assert re.findall(r'value="(\w+)" aria-pressed="true"', shown) == ([] if rating == "none" else ["none"])
        told = (await client.get("/v1/admin/figures", headers=root)).json()
        assert [told["answers_good"], told["answers_bad"]] == figures
        of_page = re.findall(r"called good: (\d+); bad: (\d+)\.", await bob.page("/admin"))
        assert of_page == ([tuple(map(str, figures))] if any(figures) else [])
    key = bearer(await key_of(harness, "alice"))
    turn = found[1].split("/")[3]
    put = await client.put(f"/v1/chat/turns/{turn}/rating", json={"rating": "good"}, headers=key)
    assert put.status_code == 204
    assert 'aria-pressed="true"' in await alice.page(address)


async def test_a_place_for_questions_offers_some_that_can_be_answered_there(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, model: Model
) -> None:
    assert "Something to begin with" not in await alice.page("/ask"), "nothing is there to ask about yet"
    for text in (
        "project create heron",
        "project assign heron --yes",
        "landmark add The heron flies in March --project --yes",
        'fact set flight_day "Monday" --project --yes',
    ):
        await harness.command("alice", text, room="general")
    key = bearer(await key_of(harness, "alice"))
    made = await client.post("/v1/entries", json={"content": f"I feed {BITES[0]} at noon"}, headers=key)
    assert made.status_code == 201, made.text
    shown = await alice.page("/ask")
    assert BITES[0] not in shown
    ways = re.findall(r'<a href="(/ask\?[^"]+)"><span dir="auto">([^<]+)</span>', shown)
    assert [words for _, words in ways] == [
        "What led to this: The heron flies in March",
        "What is the flight day?",
        "What do you know of this: I feed &lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt; at noon",
    ]
    filled = await alice.page(ways[0][0].replace("&amp;", "&"))
    box = re.search(r"<textarea[^>]*>(.*?)</textarea>", filled, re.DOTALL)
    assert box is not None
    assert box[1] == "What led to this: The heron flies in March"
    assert re.search(r'<option value="[0-9a-f-]{36}" selected>In project heron', filled)
    assert not model.shown, "a link asks nothing"
    private = await alice.page(ways[2][0].replace("&amp;", "&"))
    assert "selected>In project" not in private
    await harness.say("bob", "hello", room="general")
    assert "heron" not in await Person(client, await cookie_of(harness, "bob")).page("/ask")


@pytest.mark.parametrize("script", [True, False])
async def test_beside_an_answer_made_of_nothing_stands_what_its_person_has_elsewhere(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, model: Model, script: bool
) -> None:
    await harness.command("alice", "remember My leave begins on 7 December", dm="nexus")
    await harness.command("bob", "remember My leave begins in May", dm="nexus")
    if script:
        shown = (await alice.press("/ask", SCRIPT, text="when is my leave?")).text
    else:
        shown = await alice.page(await asked(alice, "when is my leave?"))
    assert "In your memory, but not read here" in shown
    assert "My leave begins on 7 December" in shown
    assert "your DM with @nexus" in shown
    assert "in May" not in shown
    assert not any("7 December" in each for each in model.shown), "the model is not shown it"
    first = await asked(alice, "why is the sky so blue?")
    other = await alice.page(first)
    assert "In your memory, but not read here" not in other
    assert "Nothing that is remembered fitted this question." in other
    harness.clock.tick(60)
    again = await alice.page(await asked(alice, "and at night?", first))
    assert "made of what was said before in this conversation" in again


@pytest.mark.parametrize("script", [True, False])
async def test_beside_an_answer_made_of_nothing_stands_what_is_shared_with_ones_team(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, model: Model, script: bool
) -> None:
    await harness.say("bob", "hello", room="general")
    bob = Person(client, await cookie_of(harness, "bob"))
    team = await team_of(alice)
    await joined(alice, team, bob, "bob")
    await shared(bob, team, "The heron flies in March")
    headers = SCRIPT if script else OWN
    for person, is_shown in ((alice, True), (Person(client, await cookie_of(harness, "carol")), False)):
        await person.page("/ask")
        answer = await person.press("/ask", headers, text="when does the heron fly?")
        shown = answer.text if script else await person.page(answer.headers["location"])
        assert ("In your team, but not read here" in shown) is is_shown
        assert (f'<a href="{team}"><span dir="auto">The heron flies in March' in shown) is is_shown
    assert not any("flies in March" in each for each in model.shown), "the model is not shown it"


@pytest.mark.parametrize("script", [True, False])
async def test_a_question_that_nothing_fits_is_taken_to_a_project_by_a_link(
    harness: AppHarness, alice: Person, model: Model, script: bool
) -> None:
    await harness.command("alice", "project create harbour", dm="nexus")
    await alice.page("/ask")

    async def after(question: str, **place: str) -> str:
        if script:
            return (await alice.press("/ask", SCRIPT, text=question, **place)).text
        return await alice.page((await alice.press("/ask", text=question, **place)).headers["location"])

    shown = await after("where are the cranes?")
    [link] = re.findall(r'href="(/ask\?project=[^"]+text=[^"]+)"', shown)
    form = await alice.page(unescape(link))
    assert "where are the cranes?</textarea>" in form
    [project] = re.findall(r'value="([^"]+)" selected[^>]*>In project harbour', form)
    assert "text=where" not in await after("where are the boats?", project=project)


async def test_an_agent_is_called_by_the_name_that_admins_gave_it(harness: AppHarness, alice: Person) -> None:
    tenant = harness.workspace().tenant_id
    harness.app.directory.take(tenant, {"agents.nexus.name": '"Heron"'})
    written = (await alice.press("/ask", SCRIPT, text="who are you?")).text
    assert '<b dir="auto">Heron</b>' in written
    assert '<b dir="auto">Heron</b>' in await alice.page(await asked(alice, "who are you?"))


async def test_without_a_model_facts_stand_as_people_write_them_and_admins_read_how_to_get_one(
    settings: Settings,
) -> None:
    async with (
        open_harness(settings) as here,
        served_at(web_app(here.app, Metrics([]), {}, None)) as url,
        httpx2.AsyncClient(base_url=url) as web,
    ):
        await here.command("alice", "project create heron", dm="nexus")
        await here.command("alice", "project assign heron --yes", room="general")
        await here.command("alice", 'fact set flight_day "Monday" --project --yes', room="general")
        alice = Person(web, await cookie_of(here, "alice"))
        told = re.findall(r'value="([0-9a-f-]{36})">In project heron', await alice.page("/ask"))
        shown = await alice.page(
            (await alice.press("/ask", text="when is the flight day?", project=told[0])).headers["location"]
        )
        assert "<li>flight_day = Monday (" in shown
        assert '<p class="said" dir="auto">flight_day = Monday</p>' in shown
        assert "Whoever runs Nexus can connect one." in shown
        assert "Model: offline" not in shown
        await set_admin(here.app, here.name, "alice", True)
        assert 'href="/admin/settings#model"' in await alice.page("/ask")
        assert 'id="model"' in await alice.page("/admin/settings")
