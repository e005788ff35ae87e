"""A room is put into a project and taken out on the pages and over the API, by the rights of the command, with what
that opens to whom said first."""

import re
import uuid
from html import unescape
from typing import Any, Final

import httpx2
import pytest

from composer.errors import NotFound, Refused
from composer.model import ConversationKind, Incoming, Place, Workspace, room_id
from composer.people.projects.rooms import do_move, move, moves_into
from composer.people.rooms import rooms_of
from composer.ports.memberships import Presence
from tests.support.api import bearer, cookie_of, key_of
from tests.support.entries import Hub
from tests.support.harness import AppHarness
from tests.support.pages import OWN, Person

ROOM, DM = {"room": "general"}, {"dm": "nexus"}
VAULT: Final[dict[str, Any]] = {"room": "vault", "private": True}


@pytest.fixture
async def hub(harness: AppHarness) -> Hub:
    return Hub(harness)


async def somebody(harness: AppHarness, client: httpx2.AsyncClient, name: str) -> Person:
    """A person with a browser."""
    return Person(client, await cookie_of(harness, name))


async def project(harness: AppHarness, name: str, *readers: str, by: str = "alice", flags: str = "") -> uuid.UUID:
    """A project, with people who may read it."""
    await harness.command(by, f"/nexus project create {name} {flags}", **DM)
    for reader in readers:
        await harness.command(by, f"/nexus project member add {name} {reader} read", **DM)
        await harness.command(reader, f"/nexus project accept {name}", **DM)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        (found,) = await tx.projects.named(name)
    return found


async def opened(harness: AppHarness, client: httpx2.AsyncClient, **place: Any) -> tuple[Person, Person, str]:
    """A room that alice has opened, with bob in it; their browsers, and its address."""
    await harness.say("alice", "good morning", **place)
    if place.get("private"):
        await harness.move("bob", place["room"], joined=True)
    await harness.say("bob", "good morning", **place)
    alice, bob = [await somebody(harness, client, name) for name in ("alice", "bob")]
    [room] = (await alice.get("/v1/rooms")).json()["items"]
    return alice, bob, f"/rooms/{room['id']}"


async def test_its_admin_puts_it_into_a_project_and_reads_first_what_that_opens(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob, room = await opened(harness, client, **ROOM)
    await harness.say("carol", "good morning", room="elsewhere")
    apollo, zeus = await project(harness, "apollo", "bob", "carol"), await project(harness, "zeus", flags="--isolated")
    shown = await alice.page(room)
    assert "Into a project…" in shown
    assert {str(apollo), str(zeus)} <= set(re.findall(r'<option value="([0-9a-f-]{36})"', shown))
    assert f"{room}/project?to={apollo}" in await alice.page(f"/projects/{apollo}")
    told = unescape(await alice.page(f"{room}/project?to={apollo}"))
    assert "Put #general into project apollo?" in told
    assert "everyone in apollo from what is said in #general, also from what was said before" in told
    assert "isolated" not in told
    assert "let the project recall it" not in told, "a public room is recalled anyway"
    assert (await alice.press(f"{room}/project", to=str(apollo))).headers["location"] == f"/projects/{apollo}"
    assert f'<a href="{room}" dir="auto">general</a>' in await bob.page(f"/projects/{apollo}")
    carol = await somebody(harness, client, "carol")
    assert '<span dir="auto">general</span>' in await carol.page(f"/projects/{apollo}"), "she is not in it"
    moving = unescape(await alice.page(f"{room}/project?to={zeus}"))
    assert "zeus is isolated" in moving
    assert "nothing of apollo is used in #general" in moving
    assert "Out of the project…" in await alice.page(room)
    assert "Take #general out of project apollo?" in unescape(await alice.page(f"{room}/project"))
    assert (await alice.press(f"{room}/project")).status_code == 303
    assert "Out of the project…" not in await alice.page(room)
    assert "This room is in no project." in (await alice.press(f"{room}/project")).text


async def test_nobody_else_puts_a_room_anywhere(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    alice, bob, room = await opened(harness, client, **ROOM)
    apollo, others = await project(harness, "apollo", "bob"), await project(harness, "others", by="bob")
    secret = await project(harness, "secret", by="bob")
    assert "Into a project…" not in await bob.page(room)
    assert "Put a room into it…" not in await bob.page(f"/projects/{others}")
    for to in (others, apollo):
        refused = await bob.press(f"{room}/project", to=str(to))
        assert (refused.status_code, "Only an admin of #general" in refused.text) == (403, True)
    await alice.page(room)
    hidden, absent = [await alice.press(f"{room}/project", to=str(to)) for to in (secret, uuid.UUID(int=7))]
    assert (hidden.status_code, hidden.text.replace(str(secret), str(uuid.UUID(int=7)))) == (404, absent.text)
    await harness.say("carol", "good morning", room="elsewhere")
    carol = await somebody(harness, client, "carol")
    unknown = await carol.get(f"/rooms/{uuid.UUID(int=7)}/project")
    assert (await carol.get(f"{room}/project?to={apollo}")).text == unknown.text
    assert unknown.status_code == 404


async def test_who_may_only_read_a_project_puts_nothing_into_it(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, _, room = await opened(harness, client, **ROOM)
    theirs = await project(harness, "theirs", "alice", by="bob")
    assert str(theirs) not in await alice.page(room)
    refused = await alice.press(f"{room}/project", to=str(theirs))
    assert (refused.status_code, "may read theirs but not add to it" in refused.text) == (403, True)


async def test_a_private_room_is_pooled_only_where_its_admin_says_so(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, _, room = await opened(harness, client, **VAULT)
    apollo = await project(harness, "apollo")
    told = unescape(await alice.page(f"{room}/project?to={apollo}"))
    assert "What is said in this private room stays there" in told
    assert "from all that is said in this private room, now and before" in told
    for pooled in ({}, {"pooled": "true"}):
        assert (await alice.press(f"{room}/project", to=str(apollo), **pooled)).status_code == 303
        [shown] = (await alice.get("/v1/rooms")).json()["items"]
        assert (shown["project"], shown["pooled"]) == (str(apollo), bool(pooled))
        assert (await alice.press(f"{room}/project")).status_code == 303


async def test_the_api_says_first_what_it_opens(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    alice, bob, room = await opened(harness, client, **ROOM)
    apollo, path = await project(harness, "apollo", "bob"), f"/v1{room}/project"

    async def sent(who: Person, method: str, **more: Any) -> httpx2.Response:
        body: dict[str, Any] = {"json": {"project": str(apollo)}} if method == "PUT" else {}
        return await client.request(method, path, headers=OWN | who._cookie(), **body, **more)

    asked = await sent(alice, "PUT")
    assert (asked.status_code, "everyone in apollo what is said in #general" in asked.json()["detail"]) == (409, True)
    assert (await sent(bob, "PUT", params={"confirm": "true"})).status_code == 403
    assert (await sent(alice, "PUT", params={"confirm": "true"})).status_code == 204
    assert (await alice.get("/v1/rooms")).json()["items"][0]["project_name"] == "apollo"
    assert (await sent(alice, "DELETE")).status_code == 409
    assert (await sent(bob, "DELETE", params={"confirm": "true"})).status_code == 403
    assert (await sent(alice, "DELETE", params={"confirm": "true"})).status_code == 204
    assert (await sent(alice, "DELETE", params={"confirm": "true"})).status_code == 422
    key = bearer(await key_of(harness, "alice"))
    assert (await client.put(path, json={"project": str(apollo)}, headers=key)).status_code == 403


async def test_an_imported_room_is_put_into_a_project_by_whom_its_platform_calls_its_admin(hub: Hub) -> None:
    """They need not have spoken there; of a private room, and of one that somebody else manages, nothing is told."""
    harness = hub.harness
    slack = Workspace(harness.workspace().tenant_id, harness.workspace().tenant, "slack", "T1")
    for name, private in (("C1", False), ("C2", False), ("C3", True)):
        at = harness.clock.tick()
        place = Place(ConversationKind.ROOM, name, private=private)
        await harness.app.receive(slack, [Incoming("slack", "T1", place, "vic", "vic", f"{at.timestamp()}", "hi", at)])
    first, second, secret = [room_id(slack, name) for name in ("C1", "C2", "C3")]
    await harness.say("alice", "good morning", **DM)
    apollo, now = await project(harness, "apollo"), harness.clock.now()
    presence = Presence(managed=frozenset({first, secret}), asked_at=now)
    async with hub.request("alice") as (tx, access):
        assert await rooms_of(tx, access, presence, now) == [], "she is in none of them"
        assert [each.room.room_id for each in await moves_into(tx, access, apollo, presence)] == [first]
        for other in (second, secret):
            with pytest.raises(NotFound):
                await move(tx, access, other, apollo, presence)
        await do_move(tx, access, await move(tx, access, first, apollo, presence), confirmed=True)
    async with hub.request("alice") as (tx, access):
        assert [room.name for room in await tx.projects.rooms(apollo, [])] == ["C1"]
    async with hub.request("bob") as (tx, access):
        with pytest.raises((NotFound, Refused)):
            await move(tx, access, first, None, Presence())
