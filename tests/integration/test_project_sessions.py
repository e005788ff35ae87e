"""The sessions of a project: one's own by name, the others that it reads by whose they are, and none that it does not
read."""

import re
import uuid
from typing import Any

import httpx2
import pytest

from composer.model import Role
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness
from tests.support.pages import Person


async def apollo(harness: AppHarness, **roles: Role) -> uuid.UUID:
    """A project of alice's, and who else is in it."""
    await harness.command("alice", "/nexus project create apollo", room="general")
    people = [((await person(harness, name)).id, role) for name, role in roles.items()]
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        [project] = await tx.projects.named("apollo")
        for user, role in people:
            await tx.projects.join(project, user, role)
    return project


async def said(harness: AppHarness, client: httpx2.AsyncClient, name: str, session: str, **more: Any) -> None:
    """Ask in a session of the project."""
    harness.clock.tick(60)
    key = bearer(await key_of(harness, name))
    body = {"content": "where is the heron?", "session": session, "project": "apollo"} | more
    assert (await client.post("/v1/chat", json=body, headers=key)).status_code == 200


async def listed(harness: AppHarness, client: httpx2.AsyncClient, name: str, id: uuid.UUID, **params: Any) -> Any:
    answer = await client.get(f"/v1/projects/{id}/sessions", headers=bearer(await key_of(harness, name)), params=params)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    return [(each["session"], each["person"]) for each in found["items"]], found["next"]


async def test_members_see_their_own_by_name_and_whose_the_others_are(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    project = await apollo(harness, bob=Role.WRITE, carol=Role.READ)
    for name in ("alice", "bob", "carol"):
        await said(harness, client, name, f"zq{name}s title")
    await said(harness, client, "alice", "zqelsewhere", project=None)
    alice, bob, carol = ("zqalices title", "alice"), ("zqbobs title", "bob"), ("zqcarols title", "carol")
    of_alice, of_bob = (None, "alice"), (None, "bob")
    assert await listed(harness, client, "alice", project) == ([of_bob, alice], None), "of carol's nothing is read"
    assert await listed(harness, client, "bob", project) == ([bob, of_alice], None)
    assert await listed(harness, client, "carol", project) == ([carol, of_bob, of_alice], None)
    first, cursor = await listed(harness, client, "carol", project, limit=2)
    assert first == [carol, of_bob]
    assert await listed(harness, client, "carol", project, limit=2, cursor=cursor) == ([of_alice], None)
    await harness.command("bob", "/nexus opt-out --yes", dm="nexus")
    assert await listed(harness, client, "alice", project) == ([alice], None)


async def test_nobody_else_learns_that_there_are_any(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    project = await apollo(harness, bob=Role.WRITE)
    await said(harness, client, "bob", "zqbobs title")
    for name in ("dave", "alice"):
        key = bearer(await key_of(harness, name))
        unknown = await client.get(f"/v1/projects/{uuid.UUID(int=7)}/sessions", headers=key)
        assert unknown.status_code == 404
        if name == "dave":
            foreign = await client.get(f"/v1/projects/{project}/sessions", headers=key)
            assert foreign.json() == {**unknown.json(), "detail": foreign.json()["detail"]}
            assert foreign.status_code == 404
    tool = bearer(await key_of(harness, "alice", "claude"))
    assert (await client.get(f"/v1/projects/{project}/sessions", headers=tool)).status_code == 403
    await client.post(f"/v1/projects/{project}/leave", headers=bearer(await key_of(harness, "bob")))
    assert await listed(harness, client, "alice", project) == ([], None), "a session leaves with its person"


async def test_the_page_leads_to_ones_own_and_begins_a_new_one(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = await apollo(harness, bob=Role.WRITE)
    page = f"/projects/{project}?view=sessions"
    assert "Nobody has asked anything in the project yet." in await alice.page(page)
    await said(harness, client, "alice", "zqalices title")
    await said(harness, client, "bob", "zqbobs title")
    shown = await alice.page(page)
    assert "A conversation of bob" in shown
    assert "zqbobs" not in shown
    [own] = set(re.findall(r'href="(/ask/[0-9a-f-]{36})"', shown))
    opened = await alice.page(own)
    assert "zqalices title" in opened
    assert f'href="/projects/{project}?view=sessions"' in opened
    assert f'href="/ask?project={project}"' in opened
    assert f'href="/ask?project={project}"' in shown
    assert f'<option value="{project}" selected>' in await alice.page(f"/ask?project={project}")
    harness.clock.tick(60)
    asked = await alice.press("/ask", text="a new one", project=str(project))
    assert asked.headers["location"] in await alice.page(page)
    bob = Person(client, await cookie_of(harness, "bob"))
    assert (await bob.get(own)).status_code == 404
    monkeypatch.setattr("bot.web.pages.projects.SHOWN_SESSIONS", 1)
    older = re.search(r'href="([^"]+cursor=[^"]+)">Older ones', await alice.page(page))
    assert older is not None
    assert "A conversation of bob" in await alice.page(older[1].replace("&amp;", "&"))
