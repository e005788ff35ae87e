"""What a tool wrote and read, for its person alone, over the API and on its page."""

import re
import uuid
from datetime import datetime
from typing import Any

import httpx2
import pytest

from composer.errors import Unavailable
from composer.repositories.tool_reads import MAX_TOOL_READS, READS_RETENTION, ReadRoute
from composer.settings import Settings
from composer.usage.operations import Actor
from composer.visibility import owned_by_user
from jobs.work import JobRun, expire
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.databases import run_sql
from tests.support.entries import Hub
from tests.support.gateway import MODEL, gateway_stage
from tests.support.harness import AppHarness
from tests.support.mcp_clients import called, mcp_client
from tests.support.pages import BITES, Person


async def keys(client: httpx2.AsyncClient, owner: dict[str, str]) -> dict[str | None, str]:
    """The ids of a person's keys, by their tools."""
    found = (await client.get("/v1/keys", headers=owner)).json()["items"]
    return {each["vendor"]: each["id"] for each in found}


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
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    assert (await client.get(f"/v1/agent/entries/{own.id}", headers=tool)).status_code == 200
    assert (await client.post("/v1/query", json={"question": "zqown?", "limit": 1}, headers=tool)).status_code == 200
    ids = await keys(client, owner)
    first = await activity(client, ids["claude"], owner, limit=2)
    assert first["tool"] == "claude"
    assert [each["text"] for each in first["written"]] == ["zqclaude wrote 2", "zqclaude wrote 1"]
    assert [[entry["id"] for entry in each["items"]] for each in first["read"]] == [[str(own.id)]]
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
    tool = bearer(await key_of(harness, "alice", "claude"))
    [page] = set(re.findall(r'href="(/tools/keys/[0-9a-f-]{36})"', await alice.page("/tools")))
    empty = await alice.page(page)
    assert "It has written nothing that is stored." in empty
    assert "It has read nothing lately that you may read now." in empty
    bitten = (await hub.write("alice", f"zqbitten {BITES[0]}")).entry
    unread = (await hub.write("alice", "zqunread")).entry
    for n in range(21):
        harness.clock.tick(60)
        await hub.write("alice", f"zqclaude wrote {n} {BITES[2]}", "claude")
    assert (await client.get(f"/v1/agent/entries/{bitten.id}", headers=tool)).status_code == 200
    shown = await alice.page(page)
    assert not [bite for bite in BITES if bite in shown]
    assert f'href="/memory/{bitten.id}"' in shown
    assert "over the API" in shown
    item = await alice.page(f"/memory/{bitten.id}")
    assert "Which of your AI tools read it" in item
    assert "Which of your AI tools read it" not in await alice.page(f"/memory/{unread.id}")
    assert "zqclaude wrote 20" in shown
    assert "zqclaude wrote 0 " not in shown
    earlier = re.search(r'href="([^"]+cursor=[^"]+)">Earlier ones', shown)
    assert earlier is not None
    assert "zqclaude wrote 0 " in await alice.page(earlier[1].replace("&amp;", "&"))
    bob = Person(client, await cookie_of(harness, "bob"))
    assert (await bob.get(page)).status_code == 404


async def reads(client: httpx2.AsyncClient, id: uuid.UUID, owner: dict[str, str]) -> list[tuple[str, str]]:
    """By which tools and routes an item was read."""
    answer = await client.get(f"/v1/memory/{id}", headers=owner)
    assert answer.status_code == 200, answer.text
    return [(each["tool"], each["route"]) for each in answer.json()["reads"]]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/agent/entries",
        "/v1/agent/entries?snippets=false",
        "/v1/agent/entries/latest",
        "/v1/agent/entries/by-tag/ops",
        "/v1/agent/entries/{id}",
        "/v1/agent/search?q=zqread",
    ],
)
async def test_each_route_that_hands_an_entry_to_a_tool_notes_it(
    harness: AppHarness, client: httpx2.AsyncClient, hub: Hub, path: str
) -> None:
    owner, tool = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "alice", "claude"))
    entry = (await hub.write("alice", "zqread by a tool", tags=("ops",))).entry
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    assert (await client.get(path.format(id=entry.id), headers=owner)).is_success
    await harness.app.operations.settle()
    assert await reads(client, entry.id, owner) == [], "a key of one's own is no tool"
    answer = await client.get(path.format(id=entry.id), headers=tool)
    assert str(entry.id) in answer.text
    await harness.app.operations.settle()
    assert await reads(client, entry.id, owner) == [("claude", "api")]


async def test_what_is_handed_out_over_mcp_is_noted_but_not_what_the_tool_writes(
    harness: AppHarness, client: httpx2.AsyncClient, url: str, hub: Hub
) -> None:
    owner, claude = bearer(await key_of(harness, "alice")), await key_of(harness, "alice", "claude")
    entry = (await hub.write("alice", "zqread over MCP", tags=("ops",))).entry
    await harness.command("alice", "/nexus fact set zqkey zqvalue --everywhere --yes", dm="nexus")
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    address = harness.app.settings.database_url
    assert address is not None
    asked: list[tuple[str, dict[str, Any]]] = [
        ("search", {"query": "what is zqread?"}),
        ("fetch", {"id": str(entry.id)}),
        ("browse_entries", {}),
        ("entries_by_tag", {"tag": "ops"}),
        ("latest_entry", {}),
    ]
    async with mcp_client(url, claude) as mcp:
        for tool, arguments in asked:
            await run_sql(address, "DELETE FROM tool_reads")
            assert str(entry.id) in str(await called(mcp, tool, **arguments)), tool
            await harness.app.operations.settle()
            assert await reads(client, entry.id, owner) == [("claude", "mcp")], tool
        answer = await mcp.read_resource(f"nexus://entries/{entry.id}")
        assert "zqread" in str(answer)
        written = await called(mcp, "write_entry", content="zqwritten by the tool")
        assert (await called(mcp, "facts"))["facts"][0]["name"] == "zqkey"
    await harness.app.operations.settle()
    assert await reads(client, uuid.UUID(written["id"]), owner) == []
    [fact] = (await client.get("/v1/memory", params={"shelf": "facts"}, headers=owner)).json()["items"]
    assert await reads(client, uuid.UUID(fact["id"]), owner) == [("claude", "mcp")]
    read = (await activity(client, (await keys(client, owner))["claude"], owner))["read"]
    assert {(each["kind"], each["title"]) for reading in read for each in reading["items"]} == {
        ("entry", "zqread over MCP"),
        ("fact", "zqkey = zqvalue"),
    }


async def test_what_the_gateway_puts_into_requests_is_noted_with_its_tool(settings: Settings) -> None:
    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url) as client:
        entry = (await stage.hub.write("alice", "the vault is behind the painting")).entry
        owner = bearer(await key_of(stage.harness, "alice"))
        asked: Any = [{"role": "user", "content": "what is the vault behind?"}]
        for vendor in ("cursor", None):
            tool = await stage.client("alice", vendor)
            await tool.chat.completions.create(model=MODEL, messages=asked)
        await stage.harness.app.operations.settle()
        assert await reads(client, entry.id, owner) == [("cursor", "gateway")]


async def test_what_somebody_s_tool_reads_of_a_shared_entry_is_told_to_them_alone(
    harness: AppHarness, client: httpx2.AsyncClient, hub: Hub
) -> None:
    alice, bob = [bearer(await key_of(harness, name)) for name in ("alice", "bob")]
    tool = bearer(await key_of(harness, "bob", "claude"))
    await key_of(harness, "alice", "claude")
    team = (await client.post("/v1/teams", json={"name": "Ops"}, headers=alice)).json()["id"]
    invited = {"user": str((await person(harness, "bob")).id)}
    assert (await client.post(f"/v1/teams/{team}/invites", json=invited, headers=alice)).is_success
    assert (await client.post(f"/v1/teams/{team}/accept", headers=bob)).is_success
    entry = (await hub.write("alice", "zqshared")).entry
    assert (await client.put(f"/v1/entries/{entry.id}/team", json={"team": team}, headers=alice)).is_success
    assert (await client.get(f"/v1/agent/entries/{entry.id}", headers=tool)).status_code == 200
    of_bob, of_alice = (await keys(client, bob))["claude"], (await keys(client, alice))["claude"]
    [reading] = (await activity(client, of_bob, bob))["read"]
    assert [each["title"] for each in reading["items"]] == ["zqshared"]
    assert (await activity(client, of_alice, alice))["read"] == []
    assert await reads(client, entry.id, alice) == []
    assert (await client.delete(f"/v1/entries/{entry.id}/team", headers=alice)).is_success
    assert (await activity(client, of_bob, bob))["read"] == [], "no title of what may not be read any more"


async def stored(harness: AppHarness) -> dict[uuid.UUID, datetime]:
    """What is stored of what tools read, and when they last did."""
    tenant = harness.workspace().tenant_id
    owned = owned_by_user(tenant, (await person(harness, "alice")).id, ())
    async with harness.app.database.transaction(tenant, "read") as tx:
        found = await tx.tool_reads.of_tool(owned, "claude", 10_000)
    return {each.id: each.at for each in found}


async def test_it_goes_with_the_entry_with_its_person_and_after_thirty_days(
    harness: AppHarness, client: httpx2.AsyncClient, hub: Hub
) -> None:
    owner, tool = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "alice", "claude"))
    first, second = [(await hub.write("alice", f"zq{n}")).entry for n in range(2)]

    async def read_all() -> None:
        harness.clock.tick(60)
        assert (await client.get("/v1/agent/entries", headers=tool)).is_success

    await read_all()
    await harness.app.operations.settle()
    before = await stored(harness)
    assert before.keys() == {first.id, second.id}
    await read_all()
    await harness.app.operations.settle()
    after = await stored(harness)
    assert all(after[id] > at for id, at in before.items()), "each once, with the latest time"
    await read_all()
    await client.delete(f"/v1/entries/{first.id}", headers=owner)
    harness.clock.tick(60)
    forgotten = {"trashed": True, "confirm": 1}
    answer = await client.post("/v1/entries/forget", json=forgotten, headers=owner)
    assert answer.is_success, answer.text
    await harness.app.operations.settle()
    assert (await stored(harness)).keys() == {second.id}, "not even what waited to be stored"
    harness.clock.tick(READS_RETENTION.total_seconds() - 300)
    await expire(JobRun(harness.app, harness.clock.now(), print))
    assert (await stored(harness)).keys() == {second.id}
    harness.clock.tick(300)
    await expire(JobRun(harness.app, harness.clock.now(), print))
    assert await stored(harness) == {}
    await read_all()
    await harness.app.operations.settle()
    assert await stored(harness)
    await harness.command("alice", "/nexus forget everything --yes", dm="nexus")
    assert await stored(harness) == {}


async def test_of_who_has_opted_out_nothing_is_noted(harness: AppHarness, client: httpx2.AsyncClient, hub: Hub) -> None:
    tool = bearer(await key_of(harness, "alice", "claude"))
    await hub.write("alice", "zqread")
    await harness.command("alice", "/nexus opt-out", dm="nexus")
    answer = await client.get("/v1/agent/entries", headers=tool)
    assert "zqread" in answer.text
    await harness.app.operations.settle()
    assert await stored(harness) == {}


async def test_of_a_tool_the_latest_are_kept_also_while_they_cannot_be_stored(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, tenant = await person(harness, "alice"), harness.workspace().tenant_id
    operations, actor = harness.app.operations, Actor(tenant, alice.id, "claude")
    ids = [uuid.UUID(int=n) for n in range(MAX_TOOL_READS + 50)]
    for id in ids[:50]:
        operations.note_reads(actor, ReadRoute.API, [id])
    harness.clock.tick(60)
    with monkeypatch.context() as patch:
        patch.setattr(type(harness.app.database), "transaction", _away)
        await operations.settle()
        for id in ids[50:]:
            operations.note_reads(actor, ReadRoute.API, [id])
        await operations.settle()
    await operations.settle()
    assert (await stored(harness)).keys() == set(ids[50:])
    harness.clock.tick(60)
    for id in ids[:50]:
        operations.note_reads(actor, ReadRoute.API, [id])
    await operations.settle()
    harness.clock.tick(60)
    operations.note_reads(actor, ReadRoute.API, ids[:1])
    await operations.settle()
    left = await stored(harness)
    assert left.keys() >= set(ids[:50])
    assert len(left) <= MAX_TOOL_READS + 50


def _away(*_: object, **__: object) -> Any:
    raise Unavailable("The database is away.")
