"""Projects over the API: the rules of /nexus project, with the same answers in the audit log."""

import uuid
from collections import Counter
from typing import Any

import httpx2

from tests.support.api import bearer, key_of, person
from tests.support.harness import AppHarness

ROOM = {"room": "general"}


async def made(client: httpx2.AsyncClient, key: str, name: str = "apollo", **more: Any) -> dict[str, Any]:
    answer = await client.post("/v1/projects", json={"name": name, **more}, headers=bearer(key))
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def audited(harness: AppHarness, act: str) -> list[tuple[Any, ...]]:
    """(actor, users, project) of the rows of an act, by their users."""
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        rows = await tx.audit.find(limit=100)
    return sorted((row.actor, row.users, row.project) for row in rows if row.act == act)


async def test_who_makes_a_project_is_its_admin_there_and_in_the_chat(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key = await key_of(harness, "alice")
    project = await made(client, key, "Apollo", isolated=True)
    assert project == {"id": project["id"], "name": "apollo", "isolated": True, "role": "admin", "members": 1}
    one = await client.get(f"/v1/projects/{project['id']}", headers=bearer(key))
    assert (one.status_code, one.json()) == (200, project)
    assert (await client.get("/v1/projects", headers=bearer(key))).json() == {"items": [project]}
    listed = (await harness.command("alice", "/nexus project list", **ROOM)).text
    assert listed.startswith("apollo (isolated)  your role: admin; 1 member; ")
    alice = (await person(harness, "alice")).id
    assert await audited(harness, "project.created") == [(alice, (), uuid.UUID(project["id"]))]


async def test_a_name_that_one_has_or_that_is_none_makes_no_project(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key, bob = await key_of(harness, "alice"), await key_of(harness, "bob")
    await made(client, key)
    again = await client.post("/v1/projects", json={"name": "APOLLO"}, headers=bearer(key))
    assert (again.status_code, again.json()["detail"]) == (
        409,
        "You are in a project called apollo already; choose another name.",
    )
    wrong = await client.post("/v1/projects", json={"name": "a b"}, headers=bearer(key))
    assert (wrong.status_code, wrong.json()["detail"]) == (
        422,
        "A project's name is 1 to 32 characters of a-z, 0-9, - and _.",
    )
    await made(client, bob)  # a name that was refused would tell that the project exists
    assert len((await client.get("/v1/projects", headers=bearer(key))).json()["items"]) == 1


async def test_a_project_that_is_sent_again_is_made_once(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    headers = bearer(await key_of(harness, "alice")) | {"Idempotency-Key": "one"}
    first = await client.post("/v1/projects", json={"name": "apollo"}, headers=headers)
    again = await client.post("/v1/projects", json={"name": "apollo"}, headers=headers)
    assert (first.status_code, again.status_code, first.json()) == (201, 201, again.json())
    assert again.headers["Idempotency-Replayed"] == "true"


async def test_an_admin_invites_somebody_changes_the_role_and_removes_them(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key, other = await key_of(harness, "alice"), await key_of(harness, "bob")
    alice, bob = [(await person(harness, name)).id for name in ("alice", "bob")]
    project = (await made(client, key))["id"]
    member = f"/v1/projects/{project}/members/{bob}"
    assert (await client.get(f"/v1/projects/{project}", headers=bearer(other))).status_code == 404
    assert (await client.put(member, json={"role": "read"}, headers=bearer(key))).status_code == 202
    (invited,) = (await client.get(f"/v1/projects/{project}/invites", headers=bearer(key))).json()["items"]
    assert (invited["user"], invited["name"], invited["role"], invited["by"]) == (str(bob), "bob", "read", "alice")
    assert (await client.post(f"/v1/projects/{project}/accept", headers=bearer(other))).status_code == 204
    for role, answered in (("read", 204), ("write", 202)):
        assert (await client.put(member, json={"role": role}, headers=bearer(key))).status_code == answered
        if answered == 202:
            assert (await client.get(f"/v1/projects/{project}", headers=bearer(other))).json()["role"] == "read"
            assert (await client.post(f"/v1/projects/{project}/accept", headers=bearer(other))).status_code == 204
        assert (await client.get(f"/v1/projects/{project}", headers=bearer(other))).json()["role"] == role
    people = (await client.get(f"/v1/projects/{project}/members", headers=bearer(other))).json()["items"]
    assert people == [
        {"id": str(alice), "names": ["alice"], "role": "admin"},
        {"id": str(bob), "names": ["bob"], "role": "write"},
    ]
    for act in (
        client.put(member, json={"role": "admin"}, headers=bearer(other)),
        client.delete(f"/v1/projects/{project}/members/{alice}", headers=bearer(other)),
    ):
        refused = await act
        assert refused.status_code == 403
        assert refused.json()["detail"].startswith("Only an admin of apollo may change its memb")
    assert (await client.delete(member, headers=bearer(key))).status_code == 204
    assert (await client.get(f"/v1/projects/{project}", headers=bearer(other))).status_code == 404
    assert (await client.delete(member, headers=bearer(key))).status_code == 404
    id = uuid.UUID(project)
    added = [
        (alice, (alice,), id),
        (bob, (bob,), id),
        (alice, (bob,), id),
        (bob, (bob,), id),
    ]  # at one time, so in any order
    assert await audited(harness, "project.invited") == [(alice, (bob,), id)] * 2
    assert Counter(await audited(harness, "project.member")) == Counter(added)
    assert await audited(harness, "project.member_removed") == [(alice, (bob,), id)]


async def test_a_member_leaves_and_the_only_admin_does_not(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key, other = await key_of(harness, "alice"), await key_of(harness, "bob")
    alice, bob = [(await person(harness, name)).id for name in ("alice", "bob")]
    project = f"/v1/projects/{(await made(client, key))['id']}"
    members = f"{project}/members"
    await client.put(f"{members}/{bob}", json={"role": "read"}, headers=bearer(key))
    await client.post(f"{project}/accept", headers=bearer(other))
    assert (await client.delete(f"{members}/{bob}", headers=bearer(other))).status_code == 204
    for act in (
        client.delete(f"{members}/{alice}", headers=bearer(key)),
        client.put(f"{members}/{alice}", json={"role": "write"}, headers=bearer(key)),
    ):
        refused = await act
        assert refused.status_code == 409, refused.text
        assert "alice is the only admin of apollo" in refused.json()["detail"]


async def test_a_key_changes_only_the_projects_that_it_may_write_to(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    own = await key_of(harness, "alice")
    bob = (await person(harness, "bob")).id
    first, second = [(await made(client, own, name))["id"] for name in ("apollo", "ares")]
    reading = bearer(await key_of(harness, "alice", permissions=["projects:read"]))
    one = bearer(await key_of(harness, "alice", permissions=[f"project-{first}:write"]))
    none = bearer(await key_of(harness, "alice", permissions=["entries:read"]))
    assert [each["name"] for each in (await client.get("/v1/projects", headers=reading)).json()["items"]] == [
        "apollo",
        "ares",
    ]
    assert [each["id"] for each in (await client.get("/v1/projects", headers=one)).json()["items"]] == [first]
    assert (await client.get("/v1/projects", headers=none)).json() == {"items": []}
    adding = [
        (await client.put(f"/v1/projects/{project}/members/{bob}", json={"role": "read"}, headers=headers)).status_code
        for headers in (reading, none, one)
        for project in (first, second)
    ]
    assert adding == [403, 403, 404, 404, 202, 404]
    for headers in (reading, one, none):
        refused = await client.post("/v1/projects", json={"name": "x"}, headers=headers)
        assert (refused.status_code, "projects:write" in refused.json()["detail"]) == (403, True)


async def test_nobody_outside_the_workspace_is_added(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key = await key_of(harness, "alice")
    stranger = (await person(harness, "carol", workspace="umbrella")).id
    members = f"/v1/projects/{(await made(client, key))['id']}/members"
    for user in (stranger, uuid.uuid4()):
        answer = await client.put(f"{members}/{user}", json={"role": "read"}, headers=bearer(key))
        assert (answer.status_code, answer.json()["detail"]) == (404, "There is no such user.")
