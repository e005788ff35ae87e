"""Who invites is told from others of that name: by a number where the invited may know of them, and by an id."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from bot.script.places import incoming, place_of
from composer.model import user_id
from composer.prompt.lines import numbers_of_namesakes
from composer.settings import Settings
from tests.support.api import bearer, key_of
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness

pytestmark = pytest.mark.usefixtures("tools_made_once")


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings, model=Model()) as harness:
        yield harness


async def come(harness: AppHarness, user: str, name: str, room: str = "hall") -> None:
    """Somebody writes in a room under a name."""
    here = harness.workspace()
    said = incoming(here, place_of(room, None, None), user, "hello", harness.clock.tick(), id=f"{user}:{room}")
    await harness.app.receive(here, [replace(said, user_name=name)])


def number(harness: AppHarness, user: str) -> str:
    """The number that somebody has wherever they are told from others of their name."""
    ids = [user_id(harness.workspace(), each) for each in (user, "nobody")]
    return numbers_of_namesakes([("x", each) for each in ids])[ids[0]]


async def invited(harness: AppHarness, http: httpx2.AsyncClient, by: str) -> dict[str, Any]:
    """What alice is told of an invitation to a project: by the API, and in the chat."""
    own, key = await key_of(harness, "alice"), await key_of(harness, by)
    project = (await http.post("/v1/projects", headers=bearer(key), json={"name": f"of-{by}"})).json()["id"]
    path = f"/v1/projects/{project}/members/{user_id(harness.workspace(), 'alice')}"
    assert (await http.put(path, headers=bearer(key), json={"role": "read"})).status_code < 300
    items = (await http.get("/v1/invites", headers=bearer(own))).json()["items"]
    found: dict[str, Any] = next(each for each in items if each["project"] == project)
    in_chat = (await harness.command("alice", "/nexus project list", dm="nexus")).text
    assert f"{found['by']} invites you to the project of-{by} " in in_chat
    return found


@pytest.mark.parametrize("name", ["carol", "\u0441arol", "Carol.", "carol and bob", "alice", "carol [1234]", "a b"])
async def test_whoever_invites_under_the_name_of_another_has_their_number(
    harness: AppHarness, url: str, name: str
) -> None:
    for user in ("alice", "carol", "bob"):
        await come(harness, user, user)
    await come(harness, "mallory", name)
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        told = await invited(harness, http, "mallory")
        assert told["by_id"] == str(user_id(harness.workspace(), "mallory"))
        alike = name != "a b"
        label = name.replace("[", " ").replace("]", " ").strip().replace("  ", " ")
        assert told["by"] == (label + number(harness, "mallory") if alike else label)
        real = await invited(harness, http, "carol")
        assert real["by"] == "carol" + ("" if name in ("alice", "a b") else number(harness, "carol"))
        key = bearer(await key_of(harness, "bob"))
        found = (await http.get("/v1/people", params={"q": "carol"}, headers=key)).json()["items"]
        shown = {each["id"]: each["name"] for each in found}
        assert shown[real["by_id"]] == ("carol" if len(found) == 1 else real["by"])


async def test_a_namesake_whom_the_invited_may_not_know_of_changes_nothing(harness: AppHarness, url: str) -> None:
    for user in ("alice", "carol"):
        await come(harness, user, user)
    here = harness.workspace()
    said = incoming(here, place_of("vault", None, None), "hidden", "hello", harness.clock.tick(), id="h")
    place = replace(said.place, private=True)
    await harness.app.receive(here, [replace(said, user_name="carol", place=place)])
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        assert (await invited(harness, http, "carol"))["by"] == "carol"


async def test_a_person_does_not_look_like_an_app_where_they_invite(harness: AppHarness, url: str) -> None:
    await come(harness, "alice", "alice")
    await come(harness, "mallory", "alice (app)")
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        assert (await invited(harness, http, "mallory"))["by"].startswith("a person named alice app [")
