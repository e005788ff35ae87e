"""The pages of rooms and projects: what they show to whom, that they show nothing to anybody else, and what pressing
their buttons does."""

import re
import uuid
from datetime import UTC, datetime
from typing import Any, Final

import httpx2
import pytest

from bot.console import schedule
from composer.model import API
from composer.stores.database.statements import PostgresStatements
from tests.support.api import bearer, cookie_of, key_of
from tests.support.harness import AppHarness
from tests.support.pages import BITES, OWN, Person

ROOM, DM = {"room": "general"}, {"dm": "nexus"}
SECRET: Final[dict[str, Any]] = {"room": "vault", "private": True}
VIEWS: Final = ("", "?view=days", "?view=decisions", "?view=facts", "?view=memories", "?view=people", "?view=entries")


async def other(harness: AppHarness, client: httpx2.AsyncClient, name: str) -> Person:
    await harness.say(name, "hello", **ROOM)
    return Person(client, await cookie_of(harness, name))


def addresses(page: str, kind: str) -> list[str]:
    """The pages of rooms or projects that a page leads to."""
    return list(dict.fromkeys(re.findall(rf'href="(/{kind}/[0-9a-f-]{{36}})"', page)))


async def room_with(person: Person, words: str) -> str:
    """The page of the one room in which these words were said."""
    found = [each for each in addresses(await person.page("/rooms"), "rooms") if words in await person.page(each)]
    assert len(found) == 1
    return found[0]


async def project_of(harness: AppHarness, person: Person, name: str, by: str = "alice", flags: str = "") -> str:
    await harness.command(by, f"/nexus project create {name} {flags}", **DM)
    return addresses(await person.page("/rooms"), "projects")[-1]


async def test_an_empty_page_says_what_to_do_first(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    nobody = Person(client, await cookie_of(harness, "zoe"))
    shown = await nobody.page("/rooms")
    assert "You are in no project." in shown
    assert "You are in no room that Nexus knows." in shown


async def test_a_room_shows_what_it_remembers_and_who_is_answered_from_it(harness: AppHarness, alice: Person) -> None:
    await harness.command("alice", "/nexus fact set deploy_day Friday --yes", **ROOM)
    await harness.command("alice", "/nexus fact set deploy_day Monday --yes", **ROOM)
    await harness.command("alice", "/nexus landmark add we ship on Fridays", **ROOM)
    await harness.command("alice", "/nexus remember the heron likes the pond", **ROOM)
    [room] = addresses(await alice.page("/rooms"), "rooms")
    shown = await alice.page(room)
    assert "Whoever asks here can be answered from what was said here." in shown
    assert '<b dir="auto">#general</b>: whoever asks there' in shown
    assert "good morning" in shown
    board = await alice.page(f"{room}?view=decisions")
    assert "we ship on Fridays" in board
    assert "the heron likes the pond" in await alice.page(f"{room}?view=memories")
    facts = await alice.page(f"{room}?view=facts")
    assert ("Monday" in facts, "Friday" in facts) == (True, False)
    history = await alice.page(f"{room}?view=facts&key=deploy_day")
    assert history.index(">Monday<") < history.index(">Friday<")
    assert "No fact held on that day." in await alice.page(f"{room}?view=facts&on=2020-01-01")
    assert (await alice.get(f"{room}?view=facts&key=nothing")).status_code == 404
    for wrong in ("?view=facts&on=today", "?day=2026-02-30", "?month=1969-01-01", "?day=2300-01-01"):
        assert (await alice.get(f"{room}{wrong}")).status_code == 422, wrong


async def test_who_is_in_no_project_asks_for_no_counts_of_projects(
    harness: AppHarness, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.say("alice", "hello", **ROOM)
    asked, fetch = list[str](), PostgresStatements.fetch

    async def counted(self: PostgresStatements, query: str, /, **values: Any) -> Any:
        asked.append(query)
        return await fetch(self, query, **values)

    monkeypatch.setattr(PostgresStatements, "fetch", counted)
    assert "general" in await alice.page("/rooms")
    assert asked.count("remembered_counts") == 1


async def test_a_decision_keeps_its_history(harness: AppHarness, alice: Person) -> None:
    await harness.command("alice", "/nexus landmark add we ship on Fridays", **ROOM)
    await harness.command("alice", "/nexus landmark add we drink tea", **ROOM)
    listed = (await harness.command("alice", "/nexus landmark list", **ROOM)).text.splitlines()
    await harness.command("alice", f"/nexus landmark amend {listed[0].split()[0]} we ship on Mondays", **ROOM)
    await harness.command("alice", f"/nexus landmark retire {listed[1].split()[0]}", **ROOM)
    [room] = addresses(await alice.page("/rooms"), "rooms")
    _, _, current, past = (await alice.page(f"{room}?view=decisions")).split('<section class="column"')
    assert "we ship on Mondays" in current
    assert "1 earlier version" in current
    assert "we drink tea" not in current
    assert "we drink tea" in past
    assert "we ship on Fridays" in past
    assert "replaced · by alice" in past
    assert "retired · by alice" in past


async def test_days_open_to_their_summary_and_messages(harness: AppHarness, alice: Person) -> None:
    harness.clock.set(datetime(2026, 5, 5, 9, 0, tzinfo=UTC))
    for text in ("The crane needs a new cable.", "We decided to order it from Rotterdam."):
        await harness.say("bob", text, **ROOM)
    await harness.say("carol", "my knee hurts", **ROOM)
    await harness.command("carol", "/nexus opt-out --yes", **ROOM)
    harness.clock.set(datetime(2026, 5, 8, 9, 0, tzinfo=UTC))
    await schedule.run(harness.app, "day", harness.clock.now())
    [room] = addresses(await alice.page("/rooms"), "rooms")
    shown = await alice.page(f"{room}?day=2026-05-05")
    assert "The day in short" in shown
    assert "2 messages" in shown
    assert "The crane needs a new cable." in shown
    assert "knee" not in shown
    month = await alice.page(f"{room}?month=2026-05-01")
    assert "May 2026" in month
    assert 'day=2026-05-05#day" data-much="3" data-told' in month
    assert "Nothing is stored of this month." in await alice.page(f"{room}?month=2026-04-01")


async def test_whoever_is_not_in_a_room_or_project_sees_as_if_it_were_not_there(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    mallory = await other(harness, client, "mallory")
    seen = ("/rooms", *(f"{room}{view}" for room in addresses(await mallory.page("/rooms"), "rooms") for view in VIEWS))
    before = [await mallory.page(path) for path in seen]
    await harness.say("alice", "the code is zqred", **SECRET)
    await harness.command("alice", "/nexus fact set zqcode red --yes", **SECRET)
    await harness.command("alice", "/nexus landmark add zqred it is", **SECRET)
    await harness.command("alice", "/nexus remember zqred is a colour", **SECRET)
    project = await project_of(harness, alice, "zqapollo")
    await harness.command("alice", "/nexus project assign zqapollo --pool --yes", **SECRET)
    await harness.command("alice", "/nexus fact set zqday Friday --project --yes", **SECRET)
    secret = await room_with(alice, "zqred")
    assert [await mallory.page(path) for path in seen] == before
    for thing in (secret, project):
        for path in (thing, f"/v1{thing}", f"/v1{thing}/facts", f"/v1{thing}/landmarks", f"{thing}/leave"):
            for view in VIEWS if path == thing else ("",):
                unknown = path.replace(thing[-36:], str(uuid.UUID(int=7)))
                hers, nothing = await mallory.get(f"{path}{view}"), await mallory.get(f"{unknown}{view}")
                assert hers.status_code in (404, 405), path
                told = hers.text.replace(thing[-36:], str(uuid.UUID(int=7)))
                assert (hers.status_code, told) == (nothing.status_code, nothing.text), path
    for act in ("members", "rename", "accept", "decline", "leave"):
        form = {"user": str(uuid.uuid4()), "role": "read", "name": "mine"}
        hers = await mallory.press(f"{project}/{act}", **form)
        nothing = await mallory.press(f"/projects/{uuid.UUID(int=7)}/{act}", **form)
        assert (hers.status_code, hers.text.replace(project[-36:], str(uuid.UUID(int=7)))) == (404, nothing.text), act
    await harness.say("alice", "mallory may come", **SECRET)
    assert secret not in await mallory.page("/rooms")


async def test_who_leaves_a_private_room_sees_nothing_of_it_any_more(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    bob = await other(harness, client, "bob")
    await harness.say("alice", "the code is zqred", **SECRET)
    secret = await room_with(alice, "zqred")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        here = harness.workspace()
        member = await tx.people.find_user(here.platform, here.name, "bob")
        assert member is not None
        await tx.conversations._sql.fetch(
            "member_join", room_id=uuid.UUID(secret[-36:]), user_id=member.id, at=harness.clock.tick(), returning=False
        )
    assert "zqred" in await bob.page(secret)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.conversations._sql.fetch(
            "member_leave", room_id=uuid.UUID(secret[-36:]), user_id=member.id, at=harness.clock.tick()
        )
    assert secret not in await bob.page("/rooms")
    assert (await bob.get(secret)).status_code == 404


async def test_no_key_opens_a_room(harness: AppHarness, client: httpx2.AsyncClient, alice: Person) -> None:
    [room] = addresses(await alice.page("/rooms"), "rooms")
    own, tool = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "alice", "claude"))
    for path in ("/v1/rooms", f"/v1{room}", f"/v1{room}/facts", f"/v1{room}/landmarks", "/v1/settings/rooms"):
        for key in (own, tool):
            assert (await client.get(path, headers=key)).status_code == 403, path
        assert (await alice.get(path)).status_code == 200, path
    day = (await alice.get(f"/v1{room}/messages?day=2026-05-04")).json()
    assert [each["text"] for each in day["items"]] == ["good morning"]
    weeks = (await alice.get(f"/v1{room}/days?month=2026-05-04")).json()["items"]
    assert [each["messages"] for week in weeks for each in week["days"] if each["messages"]] == [1]
    assert (await alice.get(f"/v1{room}/days?month=1969-05-04")).status_code == 422


async def test_a_project_is_made_joined_managed_and_left_on_its_pages(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    bob = await other(harness, client, "bob")
    await alice.page("/rooms")
    made = await alice.press("/projects", name="Apollo", isolated="true")
    assert made.status_code == 303
    people = made.headers["location"]
    path = people.partition("?")[0]
    found = await alice.page(f"{people}&q=b")
    [user] = re.findall(r'name="user" value="([0-9a-f-]{36})"><select', found.partition("openers people")[2])[:1]
    assert (await alice.press(f"{path}/members", user=user, role="read")).status_code == 303
    assert "Withdraw" in await alice.page(people)
    invited = await bob.page("/rooms")
    assert "alice invites you to project apollo" in invited
    assert (await bob.get(path)).status_code == 404
    assert (await bob.press(f"{path}/accept", role="read")).headers["location"] == path
    shown = await bob.page(people)
    assert "Find somebody to invite" not in shown
    assert (await bob.press(f"{path}/rename", name="mine")).status_code == 403
    await alice.page(people)
    assert (await alice.press(f"{path}/rename", name="zeus")).status_code == 303
    assert "zeus" in await bob.page(people)
    assert "only admin" not in await bob.page(f"{path}/leave")
    assert (await bob.press(f"{path}/leave")).headers["location"] == "/rooms"
    assert (await bob.get(path)).status_code == 404
    assert "You are its only admin" in await alice.page(f"{path}/leave")
    assert (await alice.press(f"{path}/leave")).headers["location"] == "/rooms"
    assert "You are in no project." in await alice.page("/rooms")


async def test_dms_recall_rooms_once_that_is_turned_on(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    bob = await other(harness, client, "bob")
    shown = await alice.page("/rooms")
    [account] = re.findall(r'name="account" value="([0-9a-f-]{36})"', shown)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        person = {account: (uuid.UUID(account), "alice")}
        await tx.people.ensure_users(API, harness.workspace().name, person, harness.clock.now())  # as who asks on Ask
    assert re.findall(r"alice</b> <small>([^<]*)", await alice.page("/rooms")) == ["Console"]
    assert "not read in your DMs" in (await harness.command("alice", "/nexus rooms", **DM)).text
    assert (await alice.press("/rooms/in-dms", account=account, on="true")).status_code == 303
    assert "I also recall in this DM" in (await harness.command("alice", "/nexus rooms", **DM)).text
    assert "Turn off" in await alice.page("/rooms")
    await bob.page("/rooms")
    assert (await bob.press("/rooms/in-dms", account=account, on="false")).status_code == 404
    assert "Turn off" in await alice.page("/rooms")
    off = await client.put("/v1/settings/rooms", json={"account": account, "on": False}, headers=OWN | alice._cookie())
    assert off.status_code == 204
    assert (await alice.get("/v1/settings/rooms")).json()["items"][0]["on"] is False


async def test_people_are_found_whom_one_may_know_of(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await harness.say("mallory", "nobody knows me", room="hideout", private=True)
    await harness.say("bob", "hello", **ROOM)

    async def found(person: Person, words: str) -> list[str]:
        return [each["name"] for each in (await person.get(f"/v1/people?q={words}")).json()["items"]]

    assert await found(alice, "b") == ["bob"]
    assert await found(alice, "BO") == ["bob"]
    assert await found(alice, "ob") == []
    assert await found(alice, "mal") == []
    assert await found(alice, "alice") == [], "oneself is left out"
    assert await found(alice, "%") == await found(alice, "_") == []
    mallory = Person(client, await cookie_of(harness, "mallory"))
    assert await found(mallory, "bob") == ["bob"]
    assert (await alice.get("/v1/people")).status_code == 422


async def test_no_text_of_a_room_is_markup(harness: AppHarness, alice: Person) -> None:
    for number, bite in enumerate(BITES):
        await harness.say("bob", bite, **ROOM)
        await harness.command("bob", f"/nexus landmark add {bite}", **ROOM)
        await harness.command("bob", f"/nexus remember {bite}", **ROOM)
        await harness.command("bob", f"/nexus fact set key{number} {bite} --yes", **ROOM)
    [room] = addresses(await alice.page("/rooms"), "rooms")
    for view in VIEWS:
        shown = await alice.page(f"{room}{view}")
        assert "<script>alert" not in shown
        assert "<img src=x" not in shown
        assert "<b hx-get" not in shown
        assert " 49 " not in shown


async def test_nobody_is_told_whether_another_person_chats_in_the_browser(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    bob = await other(harness, client, "bob")
    pages = ("/find?q=bob", "/team?q=bob", "/v1/people?q=bob")
    before = [(await alice.get(path)).text for path in pages]
    asked = await client.post("/v1/chat", json={"content": "What is new?"}, headers=OWN | bob._cookie())
    assert asked.status_code == 200, asked.text
    assert [(await alice.get(path)).text for path in pages] == before
