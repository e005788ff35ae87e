"""Who is in a room: for whoever is in it, by name, a page at a time, and for nobody else."""

import uuid
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from bot.script.places import incoming, place_of
from composer.entries.access import access_for_reading
from composer.model import EVERY_VENDOR, room_id, user_id
from composer.people import rooms
from composer.ports.memberships import Presence
from tests.support.api import bearer, cookie_of, key_of
from tests.support.harness import AppHarness
from tests.support.pages import Person


async def come(harness: AppHarness, user: str, name: str, room: str = "hall") -> None:
    here = harness.workspace()
    said = incoming(here, place_of(room, None, None), user, "hello", harness.clock.tick(), id=f"{user}:{room}")
    await harness.app.receive(here, [replace(said, user_name=name)])


async def signed_in(harness: AppHarness, client: httpx2.AsyncClient, user: str) -> Person:
    return Person(client, await cookie_of(harness, user))


async def hall_of(person: Person) -> str:
    listed: list[dict[str, Any]] = (await person.get("/v1/rooms")).json()["items"]
    return next(str(each["id"]) for each in listed if each["name"] == "hall")


async def test_whoever_is_in_a_room_sees_who_is_in_it_its_admin_and_its_agents(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    for user in ("bob", "carol", "alice"):
        await come(harness, user, user.title())
    await come(harness, "dave", "Dave", room="elsewhere")
    alice = await signed_in(harness, client, "alice")
    room = await hall_of(alice)
    found = (await alice.get(f"/v1/rooms/{room}/members")).json()
    assert [(each["name"], each["admin"], each["own"]) for each in found["items"]] == [
        ("Alice", False, True),
        ("Bob", True, False),
        ("Carol", False, False),
    ]
    assert (found["total"], found["next"]) == (3, None)
    assert [each["slug"] for each in found["agents"]] == [
        each.slug for each in harness.app.directory.agents(harness.workspace().tenant_id)
    ]
    page = await alice.page(f"/rooms/{room}?view=people")
    assert 'href="/team?q=Bob"' in page
    assert 'href="/you"' in page
    assert "Dave" not in page
    assert page.count(">admin<") == 1


async def test_who_has_left_is_not_listed(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    for user in ("alice", "bob"):
        await come(harness, user, user.title())
    alice = await signed_in(harness, client, "alice")
    room = await hall_of(alice)
    listed = (await alice.get(f"/v1/rooms/{room}/members")).json()["items"]
    bob = next(uuid.UUID(each["id"]) for each in listed if each["name"] == "Bob")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.conversations.remove_member(uuid.UUID(room), bob, harness.clock.tick())
    assert [each["name"] for each in (await alice.get(f"/v1/rooms/{room}/members")).json()["items"]] == ["Alice"]


async def test_nobody_else_sees_it_and_no_key_opens_it(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await come(harness, "alice", "Alice")
    await come(harness, "dave", "Dave", room="elsewhere")
    room = await hall_of(await signed_in(harness, client, "alice"))
    dave = await signed_in(harness, client, "dave")
    refused = await dave.get(f"/v1/rooms/{room}/members")
    unknown = await dave.get(f"/v1/rooms/{uuid.UUID(int=7)}/members")
    assert refused.status_code == unknown.status_code == 404
    assert refused.content == unknown.content
    by_key = await client.get(f"/v1/rooms/{room}/members", headers=bearer(await key_of(harness, "alice")))
    assert by_key.status_code == 403


async def test_many_are_listed_a_page_at_a_time(
    harness: AppHarness, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "MAX_PEOPLE", 2)
    for user in ("alice", "bob", "carol", "dave", "erin"):
        await come(harness, user, user.title())
    alice = await signed_in(harness, client, "alice")
    room, names = await hall_of(alice), list[str]()
    page: int | None = 1
    while page is not None:
        found = (await alice.get(f"/v1/rooms/{room}/members?page={page}")).json()
        assert found["total"] == 5
        names, page = [*names, *(each["name"] for each in found["items"])], found["next"]
    assert names == ["Alice", "Bob", "Carol", "Dave", "Erin"]
    assert f'href="/rooms/{room}?view=people&amp;page=2"' in await alice.page(f"/rooms/{room}?view=people")
    past = (await alice.get(f"/v1/rooms/{room}/members?page=9")).json()
    assert (past["items"], past["total"], past["next"]) == ([], 0, None)


async def test_of_a_chat_platform_the_person_alone_is_marked_as_an_admin(harness: AppHarness) -> None:
    """The first who wrote in a channel of Slack is none of its admins by that."""
    slack = replace(harness.workspace(), platform="slack")
    for user in ("bob", "alice"):
        said = incoming(slack, place_of("hall", None, None), user, "hello", harness.clock.tick(), id=f"slack:{user}")
        await harness.app.receive(slack, [replace(said, user_name=user.title())])
    async with harness.app.database.transaction(slack.tenant_id) as tx:
        access = await access_for_reading(tx, slack.tenant_id, user_id(slack, "alice"), EVERY_VENDOR, frozenset())
        here = room_id(slack, "hall")
        for managed, marked in ((frozenset[uuid.UUID](), []), (frozenset({here}), ["Alice"])):
            presence = Presence(frozenset({here}), managed)
            room, _ = await rooms.room_of(tx, access, here, presence, harness.clock.now())
            found = await rooms.room_people(tx, access, room, 1)
            assert [each.called for each in found.people if each.admin] == marked
            assert [each.called for each in found.people] == ["Alice", "Bob"]
