"""Teams over HTTP: renamed, deleted, and the invitations to them."""

from typing import Any

import httpx2

from tests.support.api import bearer, key_of, person
from tests.support.entries import Hub
from tests.support.harness import AppHarness


async def team_of(
    harness: AppHarness, client: httpx2.AsyncClient, *others: str
) -> tuple[str, dict[str, dict[str, str]]]:
    """A team of alice and others, by its address, with the headers of all."""
    headers = {name: bearer(await key_of(harness, name)) for name in ("alice", *others)}
    made = await client.post("/v1/teams", json={"name": "Ops"}, headers=headers["alice"])
    path = f"/v1/teams/{made.json()['id']}"
    for name in others:
        user = str((await person(harness, name)).id)
        await client.post(f"{path}/invites", json={"user": user}, headers=headers["alice"])
        assert (await client.post(f"{path}/accept", headers=headers[name])).status_code == 204
    return path, headers


async def audited(harness: AppHarness, *acts: str) -> list[tuple[Any, ...]]:
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        rows = [row for row in await tx.audit.find(limit=100) if row.act in acts]
    return sorted((row.act, row.actor, sorted(row.users)) for row in rows)


async def test_an_admin_renames_a_team_that_its_members_see(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    path, headers = await team_of(harness, client, "bob")
    refused = await client.patch(path, json={"name": "Core"}, headers=headers["bob"])
    assert refused.status_code == 403
    assert refused.json()["detail"] == "Only an admin of this team may rename it: ask one."
    renamed = await client.patch(path, json={"name": "  Core "}, headers=headers["alice"])
    assert (renamed.status_code, renamed.json()["name"], renamed.json()["role"]) == (200, "Core", "admin")
    seen = (await client.get(path, headers=headers["bob"])).json()
    assert (seen["name"], seen["role"], seen["members"]) == ("Core", "member", 2)
    assert (await client.patch(path, json={"name": " "}, headers=headers["alice"])).status_code == 422
    alice = (await person(harness, "alice")).id
    assert await audited(harness, "team.renamed") == [("team.renamed", alice, [])]


async def test_what_was_shared_with_a_deleted_team_is_its_owners_alone_again(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    path, headers = await team_of(harness, client, "bob", "carol")
    team = path.rpartition("/")[2]
    ids = {name: str((await hub.write(name, f"of {name}", key="k")).entry.id) for name in ("alice", "bob", "carol")}
    for name, id in ids.items():
        await client.put(f"/v1/entries/{id}/team", json={"team": team}, headers=headers[name])
    await client.delete(f"/v1/entries/{ids['bob']}", headers=headers["bob"])
    await client.post(f"{path}/leave", headers=headers["carol"])
    await client.post(
        f"{path}/invites", json={"user": str((await person(harness, "dora")).id)}, headers=headers["alice"]
    )
    refused = await client.delete(path, headers=headers["bob"])
    assert refused.status_code == 403
    assert refused.json()["detail"] == "Only an admin of this team may delete it: ask one."
    assert (await client.delete(path, headers=headers["alice"])).status_code == 204
    for name in headers:
        assert (await client.get(path, headers=headers[name])).status_code == 404
        trashed = "true" if name == "bob" else "false"
        found = (await client.get("/v1/entries", params={"trashed": trashed}, headers=headers[name])).json()["items"]
        assert [(each["content"], each["key"]) for each in found] == [(f"of {name}", "k")]
        assert found[0]["shared"] == {"team": None, "project": None, "everyone": False, "former_member": False}
    dora = bearer(await key_of(harness, "dora"))
    assert (await client.get("/v1/invites", headers=dora)).json() == {"items": []}
    alice, bob, carol = [(await person(harness, name)).id for name in ("alice", "bob", "carol")]
    assert await audited(harness, "team.deleted") == [("team.deleted", alice, sorted([alice, bob]))]
    back = [users for _, actor, users in await audited(harness, "memory.reach") if actor == alice]
    assert back == sorted([[alice], [alice], [bob], [carol]]), "hers was shared by herself, too"


async def test_an_admin_sees_and_ends_the_open_invitations(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    path, headers = await team_of(harness, client, "bob")
    alice, dora = [(await person(harness, name)).id for name in ("alice", "dora")]
    her = bearer(await key_of(harness, "dora"))
    made = await client.post(f"{path}/invites", json={"user": str(dora)}, headers=headers["alice"])
    invite = made.json()["id"]
    (found,) = (await client.get(f"{path}/invites", headers=headers["alice"])).json()["items"]
    assert (found["id"], found["user"], found["name"], found["by"]) == (invite, str(dora), "dora", "alice")
    for headers_of in (headers["bob"], her):
        assert (await client.get(f"{path}/invites", headers=headers_of)).status_code == 403
        assert (await client.delete(f"{path}/invites/{invite}", headers=headers_of)).status_code == 403
    other = await client.post("/v1/teams", json={"name": "Other"}, headers=headers["alice"])
    elsewhere = f"/v1/teams/{other.json()['id']}/invites/{invite}"
    assert (await client.delete(elsewhere, headers=headers["alice"])).status_code == 404
    assert (await client.delete(f"{path}/invites/{invite}", headers=headers["alice"])).status_code == 204
    again = await client.delete(f"{path}/invites/{invite}", headers=headers["alice"])
    assert (again.status_code, again.json()["detail"]) == (404, "There is no such invitation.")
    assert (await client.post(f"{path}/accept", headers=her)).status_code == 404
    assert await audited(harness, "team.invite_revoked") == [("team.invite_revoked", alice, [dora])]
