"""Decisions on the boards of rooms and projects, on the page of what waits and over the API: who accepts, amends and
retires them, where each is shown, and that nobody else learns of one."""

import re
import uuid
from typing import Any, Final

import httpx2

from composer.model import Visibility, project_namespace
from composer.repositories.landmarks import Landmark, LandmarkState
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness
from tests.support.pages import BITES, OWN, Person

BELOW: Final = "It suits all of us, also those who were not there."  # on a line of its own, which is not learnt
ROOM, DM = {"room": "general"}, {"dm": "nexus"}
SECRET: Final[dict[str, Any]] = {"room": "vault", "private": True}
FRIDAYS: Final = "We decided to ship on Fridays."


async def member(harness: AppHarness, client: httpx2.AsyncClient, name: str) -> Person:
    await harness.say(name, "hello", **ROOM)
    return Person(client, await cookie_of(harness, name))


async def room_of(viewer: Person, words: str = "") -> str:
    """The page of the room that the viewer is in and on whose board these words stand."""
    paths = dict.fromkeys(re.findall(r'href="(/rooms/[0-9a-f-]{36})"', await viewer.page("/rooms")))
    [found] = [path for path in paths if words in await viewer.page(f"{path}?view=decisions")]
    return str(found)


def addresses(page: str) -> list[str]:
    """Where the forms of decisions lead."""
    return list(dict.fromkeys(re.findall(r'action="(/(?:room|project)s/[0-9a-f-]{36}/decisions/[0-9a-f-]{36})"', page)))


def columns(board: str) -> list[str]:
    """What is proposed, holds, and does so no more."""
    return board.split('<section class="column"')[1:]


async def proposed_in_project(harness: AppHarness, name: str, text: str, by: str = "alice") -> uuid.UUID:
    """A decision that was found in messages and is filed for a project now. Returns the project."""
    user, now = await person(harness, by), harness.clock.now()
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        [project] = await tx.projects.named(name)
        namespace, state = project_namespace(project), LandmarkState.PROPOSED
        found = Landmark(uuid.uuid4(), namespace, Visibility.SHARED, user.id, text, by, now, state)
        await tx.landmarks.add([found])
    return project


async def test_a_proposed_decision_waits_once_with_its_source_and_is_accepted(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    bob = await member(harness, client, "bob")
    await harness.say("bob", f"{FRIDAYS}\n{BELOW}", **ROOM)
    shown = await alice.page("/waiting")
    assert "1 thing waits for you." in shown
    assert '<b class="count">1</b>' in await alice.page("/memory")
    [address] = addresses(shown)
    assert BELOW in shown, "the source"
    assert f'{address.partition("/decisions")[0]}?view=decisions">#general</a>' in shown
    room = await room_of(alice, FRIDAYS)
    assert f'href="{room}?view=days&amp;day=2026-05-04#day"' in shown
    assert (await alice.get(f"{room}?view=days&day=2026-05-04")).status_code == 200
    assert shown.count('<p class="said" dir="auto">We decided to ship on Fridays.</p>') == 1
    told = await alice.page((await alice.press(address, act="accept", on="waiting")).headers["location"])
    assert "Accepted: it is a decision of #general." in told
    assert f'<a href="{room}?view=decisions">Show it there</a>' in told
    for viewer in (alice, bob):
        after = await viewer.page("/waiting")
        assert "Nothing waits for you." in after
        assert FRIDAYS not in after
        assert 'class="count"' not in after
    proposed, current, past = columns(await bob.page(f"{room}?view=decisions"))
    assert (FRIDAYS in proposed, FRIDAYS in current, FRIDAYS in past) == (False, True, False)
    assert "accepted by alice" in current
    for act in ("accept", "frobnicate"):
        assert (await alice.press(address, act=act)).status_code in (400, 422)


async def test_it_is_rejected_or_amended_on_the_board(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    bob = await member(harness, client, "bob")
    await harness.say("bob", FRIDAYS, **ROOM)
    await harness.say("bob", "We decided to use Postgres.", **ROOM)
    room = await room_of(alice, FRIDAYS)
    second, first = addresses(await alice.page(f"{room}?view=decisions"))
    answer = await alice.press(first, act="retire")
    assert answer.headers["location"] == f"{room}?view=decisions"
    await bob.page("/waiting")
    for bite in ("", "   "):
        assert (await bob.press(second, act="amend", text=bite, on="waiting")).status_code == 422
    assert (await bob.press(second, act="amend", text="We use Postgres 18.", on="waiting")).status_code == 303
    proposed, current, past = columns(await alice.page(f"{room}?view=decisions"))
    assert "stands here for 14 days" in proposed
    assert ("We use Postgres 18." in current, "1 earlier version" in current) == (True, True)
    assert "retired · by alice" in past
    [held] = addresses(await bob.page(f"{room}?view=decisions"))
    carol = await member(harness, client, "carol")
    assert addresses(await carol.page(f"{room}?view=decisions")) == [], "another person's"
    assert (await carol.press(held, act="retire")).status_code == 403
    assert (await carol.press(held, act="amend", text="We use MySQL.")).status_code == 403
    assert addresses(current) == [held], "alice opened the room, which makes her its admin in the terminal"
    assert (await bob.press(held, act="retire")).status_code == 303
    assert (await bob.press(held, act="retire")).status_code == 404


async def test_of_a_project_whoever_may_write_there_accepts(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    people = {}
    await harness.command("alice", "/nexus project create apollo --isolated", **DM)
    for name, role in (("bob", "write"), ("carol", "read"), ("mallory", "")):
        people[name] = await member(harness, client, name)
        if role:
            await harness.command("alice", f"/nexus project member add apollo {name} {role}", **DM)
            await harness.command(name, "/nexus project accept apollo", **DM)
    before = {name: await people[name].page("/waiting") for name in ("carol", "mallory")}
    project = await proposed_in_project(harness, "apollo", "zqwe fly at noon")
    [address] = addresses(await people["bob"].page("/waiting"))
    assert address.startswith(f"/projects/{project}/")
    for name, page in before.items():
        assert await people[name].page("/waiting") == page, f"{name} decides about nothing there"
    assert "zqwe fly" in await people["carol"].page(f"/projects/{project}?view=decisions")
    assert addresses(await people["carol"].page(f"/projects/{project}?view=decisions")) == []
    for act in ("accept", "retire", "amend"):
        assert (await people["carol"].press(address, act=act, text="x")).status_code == 403
        hers = await people["mallory"].press(address, act=act, text="x")
        nothing = await people["mallory"].press(address.replace(str(project), str(uuid.UUID(int=7))), act=act, text="x")
        assert (hers.status_code, hers.text.replace(str(project), str(uuid.UUID(int=7)))) == (404, nothing.text)
    told = (await people["bob"].press(address, act="accept", on="waiting")).headers["location"]
    assert "Accepted: it is a decision of apollo." in await people["bob"].page(told)
    [held] = addresses(await alice.page(f"/projects/{project}?view=decisions"))
    assert "accepted by bob" in await alice.page(f"/projects/{project}?view=decisions")
    assert addresses(await people["bob"].page(f"/projects/{project}?view=decisions")) == []
    assert (await alice.press(held, act="retire")).status_code == 303, "an admin of the project"


async def test_who_is_not_there_learns_of_no_decision(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    mallory = await member(harness, client, "mallory")
    seen = ("/waiting", "/rooms", "/memory")
    before = [await mallory.page(path) for path in seen]
    await harness.say("alice", "good morning", **SECRET)
    await harness.say("alice", "We decided to open zqvault at nine.", **SECRET)
    [address] = addresses(await alice.page("/waiting"))
    assert [await mallory.page(path) for path in seen] == before
    room = address.split("/")[2]
    for act in ("accept", "retire", "amend"):
        hers = await mallory.press(address, act=act, text="zqopen")
        nothing = await mallory.press(address.replace(room, str(uuid.UUID(int=7))), act=act, text="zqopen")
        assert (hers.status_code, hers.text.replace(room, str(uuid.UUID(int=7)))) == (404, nothing.text)
    own = await room_of(mallory)
    answer = await mallory.press(f"{own}/decisions/{address.rpartition('/')[2]}", act="retire")
    assert answer.status_code == 404, "nor by a room of her own"
    assert addresses(await alice.page("/waiting")) == [address]


async def test_it_is_settled_over_the_api_once(harness: AppHarness, client: httpx2.AsyncClient, alice: Person) -> None:
    await harness.say("alice", FRIDAYS, **ROOM)
    path = f"/v1{await room_of(alice, FRIDAYS)}/landmarks"
    [found] = (await alice.get(path)).json()["items"]
    assert (found["state"], [each["text"] for each in found["sources"]]) == ("proposed", [FRIDAYS])

    async def settle(body: object, **headers: str) -> httpx2.Response:
        sent = OWN | alice._cookie() | headers
        return await client.patch(f"{path}/{found['id']}", json=body, headers=sent)

    for wrong in ({}, {"state": "proposed"}, {"state": "current", "text": "x"}, {"text": ""}):
        assert (await settle(wrong)).status_code == 422, wrong
    once = {"Idempotency-Key": "amend it"}
    made = [await settle({"text": "We ship on Mondays."}, **once) for _ in range(2)]
    assert [each.status_code for each in made] == [200, 200]
    assert made[0].json() == made[1].json()
    assert made[1].headers["idempotency-replayed"] == "true"
    assert (made[0].json()["state"], made[0].json()["replaces"]) == ("current", found["id"])
    assert [each["state"] for each in (await alice.get(path)).json()["items"]] == ["current", "replaced"]
    assert (await settle({"state": "retired"})).status_code == 404
    key = bearer(await key_of(harness, "alice"))
    assert (await client.patch(f"{path}/{found['id']}", json={"state": "current"}, headers=key)).status_code == 403


async def test_over_the_api_of_a_project(harness: AppHarness, client: httpx2.AsyncClient, alice: Person) -> None:
    await harness.command("alice", "/nexus project create apollo", **DM)
    project = await proposed_in_project(harness, "apollo", "we fly at noon")
    key, tool = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "alice", "claude"))
    path = f"/v1/projects/{project}/landmarks"
    [found] = (await client.get(path, headers=key)).json()["items"]
    for headers, status in ((tool, 403), (key, 200)):
        answer = await client.patch(f"{path}/{found['id']}", json={"state": "current"}, headers=headers)
        assert answer.status_code == status, answer.text
    assert (answer.json()["state"], answer.json()["settled_by"]) == ("current", "alice")
    assert (await client.patch(f"{path}/{uuid.uuid4()}", json={"state": "current"}, headers=key)).status_code == 404
    again = await client.patch(f"{path}/{found['id']}", json={"state": "current"}, headers=key)
    assert again.status_code == 422


async def test_words_that_bite_do_nothing_here(harness: AppHarness, alice: Person) -> None:
    for number, bite in enumerate(BITES):
        await harness.say("alice", f"We decided to keep {number} {bite}", **ROOM)
    for path in ("/waiting", f"{await room_of(alice, 'We decided')}?view=decisions"):
        shown = await alice.page(path)
        assert addresses(shown), path
        assert "<script>alert" not in shown
        assert "<img src=x" not in shown
        assert "<b hx-get" not in shown


async def test_what_one_opted_out_said_is_no_source(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await member(harness, client, "bob")
    await harness.say("bob", f"{FRIDAYS}\nIt took zqlong talks.", **ROOM)
    assert "zqlong" in await alice.page("/waiting")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_opted_out((await person(harness, "bob")).id, True)
    shown = await alice.page("/waiting")
    assert "zqlong" not in shown


async def test_forms_of_other_pages_decide_nothing(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person
) -> None:
    await harness.say("alice", FRIDAYS, **ROOM)
    [address] = addresses(await alice.page("/waiting"))
    alice.csrf = "0" * 32
    assert (await alice.press(address, act="accept")).status_code == 403
    answer = await alice.press(address, {"Sec-Fetch-Site": "cross-site"}, act="accept")
    assert answer.headers["location"] == "/login"
    assert addresses(await alice.page("/waiting")) == [address]
