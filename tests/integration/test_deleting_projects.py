"""A project that is renamed or deleted: nobody loses what they wrote for it, and nobody else gets it."""

import uuid
from typing import Any

import httpx2
import pytest

from composer.errors import NotFound
from tests.support.api import bearer, key_of, person
from tests.support.entries import Hub
from tests.support.harness import AppHarness

ROOM = {"room": "general"}
BACK = {"team": None, "project": None, "everyone": False, "former_member": False}


async def project_of(harness: AppHarness, client: httpx2.AsyncClient, *, isolated: bool = False) -> str:
    """The project apollo of alice, which bob may write to."""
    key, bob = bearer(await key_of(harness, "alice")), (await person(harness, "bob")).id
    made = await client.post("/v1/projects", json={"name": "apollo", "isolated": isolated}, headers=key)
    project: str = made.json()["id"]
    await client.put(f"/v1/projects/{project}/members/{bob}", json={"role": "write"}, headers=key)
    await client.post(f"/v1/projects/{project}/accept", headers=bearer(await key_of(harness, "bob")))
    return project


async def listed(client: httpx2.AsyncClient, key: str, **params: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await client.get("/v1/entries", params=params, headers=bearer(key))).json()["items"]
    return items


async def delete(client: httpx2.AsyncClient, key: str, project: str, **params: str) -> httpx2.Response:
    return await client.delete(f"/v1/projects/{project}", params=params, headers=bearer(key))


async def test_an_admin_renames_a_project(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    project, key, other = (
        await project_of(harness, client),
        await key_of(harness, "alice"),
        await key_of(harness, "bob"),
    )
    path = f"/v1/projects/{project}"
    refused = await client.patch(path, json={"name": "artemis"}, headers=bearer(other))
    assert refused.status_code == 403
    assert refused.json()["detail"] == "Only an admin of apollo may rename it: ask one."
    renamed = await client.patch(path, json={"name": "Artemis"}, headers=bearer(key))
    assert (renamed.status_code, renamed.json()["name"]) == (200, "artemis")
    assert (await client.patch(path, json={"name": "artemis"}, headers=bearer(key))).status_code == 200
    assert "artemis" in (await harness.command("bob", "/nexus project list", **ROOM)).text
    await client.post("/v1/projects", json={"name": "ares"}, headers=bearer(key))
    assert (await client.patch(path, json={"name": "ares"}, headers=bearer(key))).status_code == 409
    assert (await client.patch(path, json={"name": "a b"}, headers=bearer(key))).status_code == 422


async def test_deleting_asks_first_and_only_an_admin_may(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    project, key, other = (
        await project_of(harness, client),
        await key_of(harness, "alice"),
        await key_of(harness, "bob"),
    )
    refused = await delete(client, other, project, confirm="true")
    assert refused.status_code == 403
    assert refused.json()["detail"] == "Only an admin of apollo may delete it: ask one."
    asked = await delete(client, key, project)
    assert asked.status_code == 409
    assert asked.json()["detail"].startswith(
        "This deletes apollo for everybody in it. Its rooms, DMs and sessions leave"
    )
    assert asked.json()["detail"].endswith("To confirm, send it with confirm=true.")
    assert (await client.get(f"/v1/projects/{project}", headers=bearer(key))).status_code == 200
    done = await delete(client, key, project, confirm="true")
    assert (done.status_code, done.json()) == (200, {"id": None, "counts": {}})
    for each in (key, other):
        assert (await client.get(f"/v1/projects/{project}", headers=bearer(each))).status_code == 404
    assert (await delete(client, key, project, confirm="true")).status_code == 404


async def test_what_was_written_for_a_project_goes_back_to_whoever_wrote_it(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    project, key, other = (
        await project_of(harness, client),
        await key_of(harness, "alice"),
        await key_of(harness, "bob"),
    )
    id = uuid.UUID(project)
    await hub.write("alice", "the launch is on friday", project=id, key="launch")
    await hub.write("alice", "my own launch is on monday", key="launch")
    await hub.write("bob", "the budget is zqbudget", project=id)
    gone = await hub.write("bob", "an old note", project=id)
    await hub.trash("bob", gone.entry.id)
    assert len(await listed(client, key)) == 3
    assert (await delete(client, key, project, confirm="true")).status_code == 200
    hers, his = await listed(client, key), await listed(client, other)
    assert [(each["content"], each["key"]) for each in hers] == [
        ("my own launch is on monday", "launch"),
        ("the launch is on friday", None),
    ]
    assert [(each["content"], each["shared"]) for each in his] == [("the budget is zqbudget", BACK)]
    assert [each["content"] for each in await listed(client, other, trashed="true")] == ["an old note"]
    asked = {"question": "what is the budget?"}
    assert "zqbudget" in (await client.post("/v1/query", json=asked, headers=bearer(other))).text
    assert "zqbudget" not in (await client.post("/v1/query", json=asked, headers=bearer(key))).text
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        rows = [row for row in await tx.audit.find(limit=100) if row.act in ("project.deleted", "memory.reach")]
    alice, bob = [(await person(harness, name)).id for name in ("alice", "bob")]
    assert {(row.act, row.actor, row.details.get("entries"), frozenset(row.users)) for row in rows} == {
        ("project.deleted", alice, None, frozenset({alice, bob})),
        ("memory.reach", alice, 1, frozenset({alice})),
        ("memory.reach", alice, 2, frozenset({bob})),
    }


async def test_its_rooms_leave_it_and_recall_nothing_of_each_other(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    await harness.command("alice", "/nexus project create apollo", room="moon")
    for room in ("moon", "sun"):
        await harness.command("alice", "/nexus project assign apollo --yes", room=room)
    await harness.say("alice", "the code of the vault is zqcode", room="moon")
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)

    async def shown() -> str:
        composed = await harness.compose("alice", "what is the code of the vault?", room="sun")
        return "\n".join(section.text for section in composed.prompt.sections)

    assert "zqcode" in await shown()
    key = await key_of(harness, "alice")
    (project,) = (await client.get("/v1/projects", headers=bearer(key))).json()["items"]
    assert (await delete(client, key, project["id"], confirm="true")).status_code == 200
    assert "zqcode" not in await shown()
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        left = [row.project for row in await tx.audit.find(limit=100) if row.act == "project.unassigned"]
    assert left == [uuid.UUID(project["id"])] * 2
    with pytest.raises(NotFound):
        await harness.command("alice", "/nexus project assign apollo --yes", room="sun")


async def test_its_facts_and_decisions_are_forgotten(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await harness.command("alice", "/nexus project create apollo", **ROOM)
    await harness.command("alice", "/nexus project assign apollo --yes", **ROOM)
    await harness.command("alice", "/nexus fact set deploy fridays --project --yes", **ROOM)
    await harness.command("alice", "/nexus landmark add we deploy on fridays --project --yes", **ROOM)
    key = await key_of(harness, "alice")
    (project,) = (await client.get("/v1/projects", headers=bearer(key))).json()["items"]
    done = await delete(client, key, project["id"], confirm="true")
    assert done.status_code == 200, done.text
    assert done.json()["counts"] == {"fact": 1, "landmark": 1}
    assert done.json()["id"] is not None
    exported = (await client.get("/v1/export", headers=bearer(key))).json()
    assert (exported["facts"], exported["landmarks"]) == ([], [])


async def test_nothing_leaves_an_isolated_project(harness: AppHarness, hub: Hub, client: httpx2.AsyncClient) -> None:
    project, key = await project_of(harness, client, isolated=True), await key_of(harness, "alice")
    other = await key_of(harness, "bob")
    entry = (await hub.write("bob", "the budget is zqbudget", project=uuid.UUID(project))).entry
    assert "apollo is isolated" in (await delete(client, key, project)).json()["detail"]
    refused = await delete(client, key, project, confirm="true")
    assert refused.status_code == 409
    assert refused.json()["detail"].startswith("apollo is isolated, so the memories that are filed in it may not leave")
    assert [each["id"] for each in await listed(client, other, project=project)] == [str(entry.id)]
    trashed = await client.delete(f"/v1/entries/{entry.id}", params={"project": project}, headers=bearer(other))
    assert trashed.status_code == 204
    done = await delete(client, key, project, confirm="true")
    assert (done.status_code, done.json()["counts"]) == (200, {"memory": 1})
    assert await listed(client, other, trashed="true") == []
