"""Whoever is shown to others on a page or in an answer of the API is told from those of nearly that name, by their own
number, which no name can have."""

import re
from dataclasses import replace
from typing import Any, Final

import httpx2
import pytest

from bot.script.places import incoming, place_of
from composer.model import user_id
from composer.prompt.lines import numbers_of_namesakes
from tests.support.api import bearer, cookie_of, key_of
from tests.support.harness import AppHarness
from tests.support.pages import Person

FORGED: Final = ("carol [3634]", "carol\uff3b3634\uff3d", "carol (you)", "carol (app claude)")


async def come(harness: AppHarness, user: str, name: str, text: str) -> None:
    """Somebody writes in the hall under a name."""
    here = harness.workspace()
    said = incoming(here, place_of("hall", None, None), user, text, harness.clock.tick(), id=f"{user}:{text}")
    await harness.app.receive(here, [replace(said, user_name=name)])


def number(harness: AppHarness, user: str) -> str:
    ids = [user_id(harness.workspace(), each) for each in (user, "nobody")]
    return numbers_of_namesakes([("x", each) for each in ids])[ids[0]]


async def test_those_who_speak_in_a_room_under_one_name_are_told_apart(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    await come(harness, "bob", "bob", "hello")
    await come(harness, "carol", "carol", "zqreal")
    await come(harness, "mallory", "c\u0430rol", "zqforged")
    bob = Person(client, await cookie_of(harness, "bob"))
    room = next(each for each in (await bob.get("/v1/rooms")).json()["items"] if each["name"] == "hall")
    day = harness.clock.now().date().isoformat()
    found = (await bob.get(f"/v1/rooms/{room['id']}/messages?day={day}")).json()["items"]
    expected = {"zqreal": f"carol{number(harness, 'carol')}", "zqforged": f"c\u0430rol{number(harness, 'mallory')}"}
    assert {each["text"]: each["author"] for each in found} == {"hello": "bob"} | expected
    page = await bob.page(f"/rooms/{room['id']}?day={day}")
    assert all(name in page for name in expected.values())


@pytest.mark.parametrize("name", FORGED)
async def test_no_name_looks_like_one_with_a_number_a_note_or_a_tool(
    harness: AppHarness, client: httpx2.AsyncClient, name: str
) -> None:
    await come(harness, "bob", "bob", "hello")
    await come(harness, "mallory", name, "zqforged")
    bob = Person(client, await cookie_of(harness, "bob"))
    room = next(each for each in (await bob.get("/v1/rooms")).json()["items"] if each["name"] == "hall")
    day = harness.clock.now().date().isoformat()
    found = (await bob.get(f"/v1/rooms/{room['id']}/messages?day={day}")).json()["items"]
    (shown,) = (each["author"] for each in found if each["text"] == "zqforged")
    assert re.fullmatch(r"carol [a-z0-9 ]+", shown)
    assert shown in await bob.page(f"/rooms/{room['id']}?day={day}")
    assert name not in await bob.page(f"/rooms/{room['id']}?day={day}")


async def test_those_of_a_project_under_one_name_are_told_apart(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    for user, name in (("bob", "bob"), ("carol", "carol"), ("mallory", "carol")):
        await come(harness, user, name, "hello")
    keys = {user: bearer(await key_of(harness, user)) for user in ("bob", "carol", "mallory")}
    project = (await client.post("/v1/projects", headers=keys["mallory"], json={"name": "apollo"})).json()["id"]
    path = f"/v1/projects/{project}"
    for user in ("bob", "carol"):
        member = f"{path}/members/{user_id(harness.workspace(), user)}"
        assert (await client.put(member, headers=keys["mallory"], json={"role": "write"})).status_code == 202
    invited = (await client.get(f"{path}/invites", headers=keys["mallory"])).json()["items"]
    assert sorted(each["name"] for each in invited) == ["bob", f"carol{number(harness, 'carol')}"]
    for user in ("bob", "carol"):
        answer = await client.post(f"{path}/accept", params={"role": "write"}, headers=keys[user])
        assert answer.status_code == 204
    for user in ("carol", "mallory"):
        sent = {"project": "apollo", "content": f"the vault is behind zq{user}", "kind": "decision"}
        assert (await client.post("/v1/entries", headers=keys[user], json=sent)).status_code == 201
    expected = {user: f"carol{number(harness, user)}" for user in ("carol", "mallory")}

    async def got(address: str, **params: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (await client.get(address, params=params, headers=keys["bob"])).json()["items"]
        return items

    assert sorted(each["names"][0] for each in await got(f"{path}/members")) == ["bob", *sorted(expected.values())]
    listed = {each["content"][-6:]: each["owner"]["name"] for each in await got("/v1/entries", project="apollo")}
    assert {name[:6] for name in listed.values()} == {"carol "}
    assert sorted(listed.values()) == sorted(expected.values())
    assert {each["author"] for each in await got("/v1/activity") if each["what"] == "written"} == {*expected.values()}
    asked = {"question": "what is the vault behind?", "project": "apollo"}
    found = (await client.post("/v1/query", headers=keys["bob"], json=asked)).json()["items"]
    assert {each["text"].split()[-1]: each["author"] for each in found} == {
        f"zq{user}": name for user, name in expected.items()
    }
    bob = Person(client, await cookie_of(harness, "bob"))
    for address in (f"/projects/{project}?view=people", f"/projects/{project}?view=entries", "/team"):
        page = await bob.page(address)
        assert all(name in page for name in expected.values()), address
