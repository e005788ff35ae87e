"""The pages of teams: what they show to whom, that they show nothing to anybody else, what pressing their buttons does,
and who lately did what."""

import re
import uuid

import httpx2
import pytest

from composer.people import known_people
from tests.support.api import bearer, cookie_of, key_of
from tests.support.harness import AppHarness
from tests.support.pages import BITES, OWN, Person

ROOM, DM = {"room": "general"}, {"dm": "nexus"}


async def person(harness: AppHarness, client: httpx2.AsyncClient, name: str) -> Person:
    await harness.say(name, "hello", **ROOM)
    return Person(client, await cookie_of(harness, name))


async def team_of(alice: Person, name: str = "Ops") -> str:
    await alice.page("/team")
    made = await alice.press("/team", name=name)
    assert made.status_code == 303
    return made.headers["location"].partition("?")[0]


async def joined(alice: Person, team: str, bob: Person, name: str) -> str:
    """Invite somebody, who accepts; return their id."""
    found = await alice.page(f"{team}?view=people&q={name}")
    [user] = re.findall(r'name="user" value="([0-9a-f-]{36})"', found)
    assert (await alice.press(f"{team}/invites", user=user)).status_code == 303
    assert "Withdraw" in await alice.page(f"{team}?view=people")
    assert "invites you to the team" in await bob.page("/team")
    assert (await bob.press(f"{team}/accept")).headers["location"] == team
    return str(user)


async def shared(person: Person, team: str, text: str) -> str:
    """Share a new entry; return its id."""
    headers = OWN | person._cookie()
    made = (await person.client.post("/v1/entries", json={"content": text}, headers=headers)).json()
    put = await person.client.put(f"/v1/entries/{made['id']}/team", json={"team": team[-36:]}, headers=headers)
    assert put.status_code == 200
    return str(made["id"])


async def test_an_empty_page_says_what_a_team_is(harness: AppHarness, alice: Person) -> None:
    shown = await alice.page("/team")
    assert "You are in no team." in shown
    assert "Nothing was shared or decided in the last 30 days" in shown


async def test_the_page_lists_people_before_a_name_is_typed(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await person(harness, client, "zqbob")
    await harness.say("zqcarol", "hello", room="zqsecret", private=True)
    shown = await alice.page("/team")
    assert '<span dir="auto">zqbob</span>' in shown
    assert "zqcarol" not in shown, "nobody whom one may not know of"
    assert "These are the first by name" not in shown
    assert "What changed" in shown
    monkeypatch.setattr(known_people, "MAX_FOUND_PEOPLE", 1)
    monkeypatch.setattr("bot.web.pages.team.MAX_FOUND_PEOPLE", 1)
    assert "These are the first by name" in await alice.page("/team")


async def test_a_team_is_made_joined_managed_and_left(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    bob = await person(harness, client, "bob")
    team = await team_of(alice)
    user = await joined(alice, team, bob, "bob")
    entry = await shared(bob, team, "zqpnpm is used")
    assert "zqpnpm is used" in await alice.page(team)
    assert "1 shared entry" in await alice.page("/team")
    people = f"{team}?view=people"
    assert "Find somebody to invite" not in await bob.page(people)
    for act, form in (
        ("rename", {"name": "x"}),
        (f"members/{user}/role", {"role": "admin"}),
        ("invites", {"user": user}),
    ):
        assert (await bob.press(f"{team}/{act}", **form)).status_code == 403, act
    await alice.page(people)
    assert (await alice.press(f"{team}/rename", name="Operations")).status_code == 303
    assert "Operations" in await bob.page(team)
    assert (await alice.press(f"{team}/leave")).status_code == 409, "its only admin"
    assert (await alice.press(f"{team}/members/{user}/role", role="admin")).status_code == 303
    assert "Find somebody to invite" in await bob.page(people)
    assert (await alice.press(f"{team}/members/{user}/remove")).status_code == 303
    assert (await bob.get(team)).status_code == 404
    assert "of a former member" in await alice.page(team)
    assert (await alice.press(f"{team}/entries/{entry}/unshare")).status_code == 303
    assert "zqpnpm" not in await alice.page(team)
    again = await alice.page(f"{people}&q=bob")
    [user] = re.findall(r'name="user" value="([0-9a-f-]{36})"', again)
    await alice.press(f"{team}/invites", user=user)
    [withdraw] = re.findall(r'action="([^"]+/withdraw)"', await alice.page(people))
    assert (await alice.press(withdraw)).status_code == 303
    await bob.page("/team")
    assert (await bob.press(f"{team}/accept")).status_code == 403 or (await bob.get(team)).status_code == 404


async def test_whoever_is_in_no_team_sees_as_if_it_were_not_there(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    mallory = await person(harness, client, "mallory")
    before = await mallory.page("/team")
    team = await team_of(alice, "zqops")
    entry = await shared(alice, team, "zqpnpm is used")
    await harness.command("alice", "/nexus project create zqapollo", **DM)
    await harness.say("alice", "hello", room="vault", private=True)
    await harness.command("alice", "/nexus landmark add zqred it is", room="vault", private=True)
    assert await mallory.page("/team") == before
    nowhere = uuid.UUID(int=7)
    for path in (team, f"{team}?view=people", f"{team}/leave"):
        hers, nothing = await mallory.get(path), await mallory.get(path.replace(team[-36:], str(nowhere)))
        assert (hers.status_code, hers.text) == (nothing.status_code, nothing.text) == (404, nothing.text)
    user = str(uuid.uuid4())
    acts = ("invites", f"members/{user}/role", f"members/{user}/remove", "rename", "accept", "decline", "leave")
    for act in (*acts, f"entries/{entry}/unshare", f"invites/{user}/withdraw"):
        form = {"user": user, "role": "admin", "name": "mine"}
        hers = await mallory.press(f"{team}/{act}", **form)
        nothing = await mallory.press(f"/team/{nowhere}/{act}", **form)
        assert (hers.status_code, hers.text) == (nothing.status_code, nothing.text), act
        assert hers.status_code == 404, act
    assert "zqops" in await alice.page("/team")


async def test_what_others_did_is_shown_of_what_one_may_read(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    bob = await person(harness, client, "bob")
    team = await team_of(alice)
    await joined(alice, team, bob, "bob")
    await shared(bob, team, "zqpnpm is used")
    await harness.command("bob", "/nexus fact set zqday Friday --yes", **ROOM)
    await harness.command("bob", "/nexus landmark add zqfridays it is", **ROOM)
    await harness.say("bob", "hello", room="vault", private=True)
    await harness.command("bob", "/nexus fact set zqcode red --yes", room="vault", private=True)
    await harness.command("bob", "/nexus project create cellar --isolated", **DM)
    await harness.say("alice", "hello", room="cellar")
    await harness.say("bob", "hello", room="cellar")
    await harness.command("alice", "/nexus remember my knee hurts", **DM)
    shown = await alice.page("/team")
    for word in ("zqpnpm is used", "zqday = Friday", "zqfridays it is", "joined the team", "#"):
        assert word in shown
    for word in ("zqcode", "knee"):
        assert word not in shown
    listed = (await alice.get("/v1/activity")).json()["items"]
    assert {"zqpnpm is used", "zqday = Friday", "zqfridays it is"} <= {each["text"] for each in listed}
    over_key = (await client.get("/v1/activity", headers=bearer(await key_of(harness, "alice")))).json()["items"]
    assert {each["place"]["kind"] for each in over_key} == {"team"}, "no key opens a room"
    harness.clock.tick(40 * 24 * 3600)
    assert "zqpnpm" not in await Person(client, await cookie_of(harness, "alice")).page("/team")


async def test_nothing_of_an_isolated_project_is_shown_beside_others(harness: AppHarness, alice: Person) -> None:
    await harness.command("alice", "/nexus project create cellar --isolated", **DM)
    await harness.say("alice", "hello", room="below")
    await harness.command("alice", "/nexus project assign cellar --yes", room="below")
    await harness.command("alice", "/nexus fact set zqcode red --yes", room="below")
    await harness.command("alice", "/nexus fact set zqother red --project --yes", room="below")
    shown = await alice.page("/team")
    assert "zqcode" not in shown
    assert "zqother" not in shown


async def test_no_text_of_a_team_is_markup(harness: AppHarness, alice: Person) -> None:
    team = await team_of(alice, BITES[0][:80])
    for bite in BITES:
        await shared(alice, team, bite)
        await harness.command("alice", f"/nexus landmark add {bite}", **ROOM)
    for path in ("/team", "/team?q=<script>", team, f"{team}?view=people"):
        shown = await alice.page(path)
        assert "<script>alert" not in shown
        assert "<img src=x" not in shown
        assert "<b hx-get" not in shown
        assert " 49 " not in shown
