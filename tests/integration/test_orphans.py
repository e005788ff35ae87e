"""Projects and teams without an admin: an admin of the workspace makes a member one, or deletes them, and sees nothing
of what is filed there."""

import re
import uuid
from typing import Any, Final

import httpx2
import pytest

from composer.model import Role, TeamRole
from composer.people.orphans import NO_MEMBER, UNKNOWN_ORPHAN
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.entries import Hub
from tests.support.harness import AppHarness
from tests.support.pages import OWN, Person

ORPHANS: Final = "/v1/admin/orphans"


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


async def listed(client: httpx2.AsyncClient, key: dict[str, str]) -> list[tuple[str, str, list[str]]]:
    answer = await client.get(ORPHANS, headers=key)
    assert answer.status_code == 200, answer.text
    return [
        (each["kind"], each["name"], [member["names"][0] for member in each["members"]])
        for each in answer.json()["items"]
    ]


async def test_those_that_have_no_admin_are_listed_for_admins_alone(
    harness: AppHarness, client: httpx2.AsyncClient, hub: Hub
) -> None:
    key, project = await root(harness), await project_without_admin(harness)
    await team_without_admin(harness)
    await harness.command("bob", "/nexus project create managed", room="general")
    assert await listed(client, key) == [("project", "apollo", ["bob", "carol"]), ("team", "herons", ["bob"])]
    for name in ("bob", "carol"):
        others = bearer(await key_of(harness, name))
        assert (await client.get(ORPHANS, headers=others)).status_code == 403
        body = {"user": str((await person(harness, name)).id)}
        path = f"{ORPHANS}/{project}"
        assert (await client.put(f"{path}/admin", json=body, headers=others)).status_code == 403
        assert (await client.delete(path, params={"confirm": "true"}, headers=others)).status_code == 403


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
    for path in (project, team):
        refused = await client.put(f"{ORPHANS}/{path}/admin", json={"user": stranger}, headers=key)
        assert (refused.status_code, refused.json()["detail"]) == (404, NO_MEMBER)
        assert (await client.put(f"{ORPHANS}/{path}/admin", json={"user": bob}, headers=key)).status_code == 204
        again = await client.put(f"{ORPHANS}/{path}/admin", json={"user": bob}, headers=key)
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
    answer = await client.put(f"{ORPHANS}/{project}/admin", json={"user": carol}, headers=key)
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
    assert "zqcanary" not in (await client.get(ORPHANS, headers=key)).text
    path = f"{ORPHANS}/{id}"
    assert (await client.delete(path, headers=key)).status_code == 409
    assert len(await listed(client, key)) == 1
    assert (await client.delete(path, params={"confirm": "true"}, headers=key)).status_code == 200
    assert await listed(client, key) == []
    found = (await client.get(f"/v1/entries/{entry}", headers=of_bob)).json()
    assert found["content"] == "zqcanary of bob"
    assert (await client.delete(path, params={"confirm": "true"}, headers=key)).status_code == 404


async def test_it_is_done_on_the_page_of_people(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await root(harness)
    boss = Person(client, await cookie_of(harness, "root"))
    assert "Without an admin" not in await boss.page("/admin/people")
    project, team = await project_without_admin(harness, isolated=True), await team_without_admin(harness, "<b>herons")
    bob = (await person(harness, "bob")).id
    shown = await boss.page("/admin/people")
    assert "Without an admin" in shown
    assert "<b>herons" not in shown
    assert "carol (is asked first)" in shown
    made = await boss.press(f"/admin/people/orphans/{project}/admin", user=str(bob))
    assert made.status_code == 303
    assert "apollo" not in await boss.page("/admin/people")
    gone = await boss.press(f"/admin/people/orphans/{team}/delete")
    assert gone.status_code == 303
    assert "Without an admin" not in await boss.page("/admin/people")
    other: Any = Person(client, await cookie_of(harness, "bob"))
    await other.page("/you")
    assert (await other.press(f"/admin/people/orphans/{project}/delete", OWN)).status_code == 404
