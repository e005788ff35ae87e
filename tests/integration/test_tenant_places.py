"""All projects and teams of a workspace, as its admins see them: by figures, with nothing of what is filed there. Of
those without an admin they make a member one, or delete them."""

import re
import uuid
from typing import Any, Final

import httpx2
import pytest

from composer.model import Role, TeamRole
from composer.people.tenant_places import NO_MEMBER, UNKNOWN_ORPHAN
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.entries import Hub
from tests.support.harness import AppHarness
from tests.support.pages import OWN, Person

PROJECTS: Final = "/v1/admin/projects"
TEAMS: Final = "/v1/admin/teams"


async def root(harness: AppHarness) -> dict[str, str]:
    """The key of an admin, who is in no project and no team."""
    found = await person(harness, "root")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(found.id, True)
    return bearer(await key_of(harness, "root"))


async def project_without_admin(harness: AppHarness, name: str = "apollo", *, isolated: bool = False) -> uuid.UUID:
    """A project that alice made and left, with bob, who writes, and carol, who reads."""
    alice, bob, carol = [(await person(harness, each)).id for each in ("alice", "bob", "carol")]
    id = uuid.uuid4()
    async with harness.app.database.transaction(harness.workspace().tenant_id, "alone") as tx:
        await tx.projects.create(id, name, isolated, alice, harness.clock.now())
        await tx.projects.join(id, bob, Role.WRITE)
        await tx.projects.join(id, carol, Role.READ)
    return id


async def team_without_admin(harness: AppHarness, name: str = "herons") -> uuid.UUID:
    """A team of bob's of which nobody is an admin."""
    bob, id = await person(harness, "bob"), uuid.uuid4()
    async with harness.app.database.transaction(harness.workspace().tenant_id, "alone") as tx:
        await tx.teams.create(id, name, bob.id, harness.clock.now())
        await tx.teams.set_role(id, bob.id, TeamRole.MEMBER, bob.id)
    return id


async def shown(client: httpx2.AsyncClient, key: dict[str, str], path: str, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get(path, params=query, headers=key)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def listed(client: httpx2.AsyncClient, key: dict[str, str]) -> list[tuple[str, str, list[str]]]:
    """Those without an admin."""
    return [
        (path.rpartition("/")[2], each["name"], [member["names"][0] for member in each["candidates"]])
        for path in (PROJECTS, TEAMS)
        for each in await shown(client, key, path, orphaned=True)
    ]


async def test_those_that_have_no_admin_are_listed_for_admins_alone(
    harness: AppHarness, client: httpx2.AsyncClient, hub: Hub
) -> None:
    key, project = await root(harness), await project_without_admin(harness)
    team = await team_without_admin(harness)
    await harness.command("bob", "/nexus project create managed", room="general")
    assert await listed(client, key) == [("projects", "apollo", ["bob", "carol"]), ("teams", "herons", ["bob"])]
    for name in ("bob", "carol"):
        others = bearer(await key_of(harness, name))
        body = {"user": str((await person(harness, name)).id)}
        for path, id in ((PROJECTS, project), (TEAMS, team)):
            assert (await client.get(path, headers=others)).status_code == 403
            assert (await client.put(f"{path}/{id}/admin", json=body, headers=others)).status_code == 403
            gone = await client.delete(f"{path}/{id}", params={"confirm": "true"}, headers=others)
            assert gone.status_code == 403


async def test_all_are_listed_with_figures_the_newest_first(
    harness: AppHarness, client: httpx2.AsyncClient, hub: Hub
) -> None:
    key = await root(harness)
    await project_without_admin(harness)
    harness.clock.tick()
    await harness.command("bob", "/nexus project create quiet --isolated", room="general")
    await harness.command("bob", "/nexus project assign quiet --yes", room="general")
    await harness.say("carol", "good morning", room="vault", private=True)
    await harness.command("carol", "/nexus project create open", room="vault", private=True)
    await harness.command("carol", "/nexus project assign open --yes", room="vault", private=True)
    found = [
        (each["name"], each["members"], [admin["name"] for admin in each["admins"]], each["isolated"], each["rooms"])
        for each in await shown(client, key, PROJECTS)
    ]
    assert found == [
        ("open", 1, ["carol"], False, 1),
        ("quiet", 1, ["bob"], True, 1),
        ("apollo", 2, [], False, 0),
    ]
    pages, cursor = list[str](), None
    while True:
        answer = await client.get(PROJECTS, params={"limit": 1, **({"cursor": cursor} if cursor else {})}, headers=key)
        pages += [each["name"] for each in answer.json()["items"]]
        cursor = answer.json()["next"]
        if cursor is None:
            break
    assert pages == ["open", "quiet", "apollo"]
    assert (await client.get(PROJECTS, params={"cursor": "x"}, headers=key)).status_code == 422


async def test_they_are_found_by_name_and_by_their_admins(
    harness: AppHarness, client: httpx2.AsyncClient, hub: Hub
) -> None:
    key = await root(harness)
    await project_without_admin(harness)
    await harness.command("bob", "/nexus project create quiet", room="general")
    for words, names in (("POLL", ["apollo"]), ("bob", ["quiet"]), ("a%", []), ("", ["quiet", "apollo"])):
        assert [each["name"] for each in await shown(client, key, PROJECTS, q=words)] == names


async def test_a_team_is_named_to_who_is_in_it_and_where_nobody_manages_it(
    harness: AppHarness, client: httpx2.AsyncClient, hub: Hub
) -> None:
    key, of_bob = await root(harness), bearer(await key_of(harness, "bob"))
    made = await client.post("/v1/teams", json={"name": "Layoffs"}, headers=of_bob)
    [other] = await shown(client, key, TEAMS)
    assert (other["name"], other["members"], other["admins"][0]["name"]) == (None, 1, "bob")
    assert await shown(client, key, TEAMS, q="layoffs") == [], "a search finds only what is told"
    assert len(await shown(client, key, TEAMS, q="bob")) == 1
    me = str((await person(harness, "root")).id)
    path = f"/v1/teams/{made.json()['id']}"
    assert (await client.post(f"{path}/invites", json={"user": me}, headers=of_bob)).is_success
    assert (await client.post(f"{path}/accept", headers=key)).is_success
    assert [each["name"] for each in await shown(client, key, TEAMS, q="layoffs")] == ["Layoffs"]


async def test_members_of_one_name_are_told_apart(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key, project = await root(harness), await project_without_admin(harness)
    other = await person(harness, "c\u0430rol")  # with a letter of another alphabet
    async with harness.app.database.transaction(harness.workspace().tenant_id, "alone") as tx:
        await tx.projects.join(project, other.id, Role.WRITE)
    ((_, _, names),) = await listed(client, key)
    looking_alike = [each for each in names if each != "bob"]
    assert len(looking_alike) == 2
    assert all(re.fullmatch(r"c.rol \[\d{4,}\]", each) for each in looking_alike)


async def test_a_member_is_made_its_admin(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key, project, team = await root(harness), await project_without_admin(harness), await team_without_admin(harness)
    bob, stranger = [str((await person(harness, name)).id) for name in ("bob", "dave")]
    for path in (f"{PROJECTS}/{project}", f"{TEAMS}/{team}"):
        refused = await client.put(f"{path}/admin", json={"user": stranger}, headers=key)
        assert (refused.status_code, refused.json()["detail"]) == (404, NO_MEMBER)
        assert (await client.put(f"{path}/admin", json={"user": bob}, headers=key)).status_code == 204
        again = await client.put(f"{path}/admin", json={"user": bob}, headers=key)
        assert (again.status_code, again.json()["detail"]) == (404, UNKNOWN_ORPHAN)
    assert await listed(client, key) == []
    of_bob = bearer(await key_of(harness, "bob"))
    [shown] = (await client.get("/v1/projects", headers=of_bob)).json()["items"]
    assert shown["role"] == "admin"
    [shown] = (await client.get("/v1/teams", headers=of_bob)).json()["items"]
    assert shown["role"] == "admin"
    events = (await client.get("/v1/admin/audit", headers=key)).json()["items"]
    boss = str((await person(harness, "root")).id)
    acted = {each["act"] for each in events if each["actor"] == boss}
    assert {"project.member", "team.member"} <= acted


async def test_who_may_only_read_is_asked_first(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key, project = await root(harness), await project_without_admin(harness)
    carol, of_carol = str((await person(harness, "carol")).id), bearer(await key_of(harness, "carol"))
    answer = await client.put(f"{PROJECTS}/{project}/admin", json={"user": carol}, headers=key)
    assert answer.status_code == 202
    [shown] = (await client.get("/v1/projects", headers=of_carol)).json()["items"]
    assert shown["role"] == "read"
    accepted = await client.post(f"/v1/projects/{project}/accept", params={"role": "admin"}, headers=of_carol)
    assert accepted.status_code == 204
    assert await listed(client, key) == []


@pytest.mark.parametrize("kind", ["projects", "teams"])
async def test_it_is_deleted_and_what_was_written_goes_back(
    harness: AppHarness, client: httpx2.AsyncClient, kind: str
) -> None:
    key, of_bob = await root(harness), bearer(await key_of(harness, "bob"))
    id = await (project_without_admin(harness) if kind == "projects" else team_without_admin(harness))
    where = {"project": str(id)} if kind == "projects" else {}
    made = await client.post("/v1/entries", json={"content": "zqcanary of bob", **where}, headers=of_bob)
    entry = made.json()["id"]
    if kind == "teams":
        assert (await client.put(f"/v1/entries/{entry}/team", json={"team": str(id)}, headers=of_bob)).is_success
    all_of_kind = f"/v1/admin/{kind}"
    assert "zqcanary" not in (await client.get(all_of_kind, headers=key)).text
    path, of_other_kind = f"{all_of_kind}/{id}", f"{TEAMS if kind == 'projects' else PROJECTS}/{id}"
    assert (await client.delete(of_other_kind, params={"confirm": "true"}, headers=key)).status_code == 404
    assert (await client.delete(path, headers=key)).status_code == 409
    assert len(await listed(client, key)) == 1
    assert (await client.delete(path, params={"confirm": "true"}, headers=key)).status_code == 200
    assert await listed(client, key) == []
    found = (await client.get(f"/v1/entries/{entry}", headers=of_bob)).json()
    assert found["content"] == "zqcanary of bob"
    assert (await client.delete(path, params={"confirm": "true"}, headers=key)).status_code == 404


async def test_it_is_done_on_their_page(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await root(harness)
    boss = Person(client, await cookie_of(harness, "root"))
    assert "Nobody has made a project or a team yet." in await boss.page("/admin/places")
    project, team = await project_without_admin(harness, isolated=True), await team_without_admin(harness, "<b>herons")
    bob = (await person(harness, "bob")).id
    orphaned = await boss.page("/admin/places?show=orphaned")
    assert "Nobody manages these" in orphaned
    assert "<b>herons" not in orphaned
    assert "carol (is asked first)" in orphaned
    assert "apollo" not in await boss.page("/admin/places?show=team")
    made = await boss.press(f"/admin/places/{project}/admin", user=str(bob))
    assert made.headers["location"] == "/admin/places?show=orphaned"
    assert "apollo" not in await boss.page("/admin/places?show=orphaned")
    assert "apollo" in await boss.page("/admin/places?q=bob")
    gone = await boss.press(f"/admin/places/{team}/delete")
    assert gone.status_code == 303
    assert "Every project and every team has an admin." in await boss.page("/admin/places?show=orphaned")
    other: Any = Person(client, await cookie_of(harness, "bob"))
    await other.page("/you")
    assert (await other.press(f"/admin/places/{project}/delete", OWN)).status_code == 404
