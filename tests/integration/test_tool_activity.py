"""What a tool wrote and read, for its person alone, over the API and on its page."""

import re
import secrets
import uuid
from typing import Any

import httpx2

from composer.repositories.gateway_turns import Injected, TurnKey
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.entries import Hub
from tests.support.harness import AppHarness
from tests.support.pages import BITES, Person


async def keys(client: httpx2.AsyncClient, owner: dict[str, str]) -> dict[str | None, str]:
    """The ids of a person's keys, by their tools."""
    found = (await client.get("/v1/keys", headers=owner)).json()["items"]
    return {each["vendor"]: each["id"] for each in found}


async def put_in(harness: AppHarness, name: str, vendor: str, *ids: uuid.UUID) -> None:
    """Let the gateway have put entries into a request of a tool."""
    key = TurnKey((await person(harness, name)).id, vendor, secrets.token_bytes(16))
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.gateway_turns.put(key, Injected((), ids), harness.clock.tick(60))


async def activity(client: httpx2.AsyncClient, key: str, owner: dict[str, str], **params: Any) -> Any:
    answer = await client.get(f"/v1/keys/{key}/activity", headers=owner, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_what_a_tool_wrote_and_read_is_shown_to_its_person(
    harness: AppHarness, client: httpx2.AsyncClient, hub: Hub
) -> None:
    owner, tool = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "alice", "claude"))
    await key_of(harness, "alice", "cursor")
    own = (await hub.write("alice", "zqown of alice")).entry
    for n in range(3):
        harness.clock.tick(60)
        await hub.write("alice", f"zqclaude wrote {n}", "claude")
    await hub.write("alice", "zqcursor wrote", "cursor")
    await put_in(harness, "alice", "claude", own.id)
    assert (await client.post("/v1/query", json={"question": "zqown?"}, headers=tool)).status_code == 200
    ids = await keys(client, owner)
    first = await activity(client, ids["claude"], owner, limit=2)
    assert first["tool"] == "claude"
    assert [each["text"] for each in first["written"]] == ["zqclaude wrote 2", "zqclaude wrote 1"]
    assert [[entry["id"] for entry in each["entries"]] for each in first["read"]] == [[str(own.id)]]
    assert {each["operation"]: each["count"] for each in first["counted"]}["searches"] == 1
    rest = await activity(client, ids["claude"], owner, limit=2, cursor=first["next"])
    assert ([each["text"] for each in rest["written"]], rest["next"]) == (["zqclaude wrote 0"], None)
    other = await activity(client, ids["cursor"], owner)
    assert [each["text"] for each in other["written"]] == ["zqcursor wrote"]
    assert (other["read"], other["counted"]) == ([], [])
    assert (await client.delete(f"/v1/entries/{own.id}", headers=owner)).is_success
    assert (await activity(client, ids["claude"], owner))["read"] == [], "what may not be read now is not counted"


async def test_nobody_else_learns_of_it(harness: AppHarness, client: httpx2.AsyncClient, hub: Hub) -> None:
    owner, tool = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "alice", "claude"))
    await hub.write("alice", "zqclaude wrote this", "claude")
    ids, others = await keys(client, owner), bearer(await key_of(harness, "bob"))
    unknown = await client.get(f"/v1/keys/{uuid.UUID(int=7)}/activity", headers=others)
    foreign = await client.get(f"/v1/keys/{ids['claude']}/activity", headers=others)
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.json() == unknown.json()
    assert (await client.get(f"/v1/keys/{ids['claude']}/activity", headers=tool)).status_code == 403
    assert (await client.get(f"/v1/keys/{ids[None]}/activity", headers=owner)).status_code == 404, "of no tool"
    narrow = bearer(await key_of(harness, "alice", permissions=["manage"]))
    assert (await client.get(f"/v1/keys/{ids['claude']}/activity", headers=narrow)).status_code == 403


async def test_the_page_of_a_tool_shows_it_and_what_it_can_do(
    harness: AppHarness, client: httpx2.AsyncClient, alice: Person, hub: Hub
) -> None:
    await key_of(harness, "alice", "claude")
    [page] = set(re.findall(r'href="(/tools/keys/[0-9a-f-]{36})"', await alice.page("/tools")))
    empty = await alice.page(page)
    assert "It has written nothing that is stored." in empty
    assert "Nothing was put into a request of it lately." in empty
    bitten = (await hub.write("alice", f"zqbitten {BITES[0]}")).entry
    for n in range(21):
        harness.clock.tick(60)
        await hub.write("alice", f"zqclaude wrote {n} {BITES[2]}", "claude")
    await put_in(harness, "alice", "claude", bitten.id)
    shown = await alice.page(page)
    assert not [bite for bite in BITES if bite in shown]
    assert f'href="/memory/{bitten.id}"' in shown
    assert "zqclaude wrote 20" in shown
    assert "zqclaude wrote 0 " not in shown
    earlier = re.search(r'href="([^"]+cursor=[^"]+)">Earlier ones', shown)
    assert earlier is not None
    assert "zqclaude wrote 0 " in await alice.page(earlier[1].replace("&amp;", "&"))
    bob = Person(client, await cookie_of(harness, "bob"))
    assert (await bob.get(page)).status_code == 404
