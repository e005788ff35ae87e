"""Entries over HTTP: people write, change, share and forget theirs; tools append and read what they may."""

import asyncio
import uuid
from typing import Any

import httpx2

from tests.support.api import bearer, key_of, person
from tests.support.harness import AppHarness


async def written(client: httpx2.AsyncClient, token: str, path: str = "/v1/entries", /, **entry: Any) -> dict[str, Any]:
    answer = await client.post(path, json={"content": "we deploy on fridays", **entry}, headers=bearer(token))
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


async def listed(client: httpx2.AsyncClient, key: str, path: str = "/v1/entries", **asked: Any) -> list[str]:
    answer = await client.get(path, params=asked, headers=bearer(key))
    assert answer.status_code == 200, answer.text
    return [item.get("content") or item["snippet"] for item in answer.json()["items"]]


async def test_an_entry_is_stored_exactly_as_sent_and_comes_back_with_its_version(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key, content = await key_of(harness, "alice"), "  Zoë\u200b ships\r\n\ton Fridays 🦊 \n"
    answer = await client.post("/v1/entries", json={"content": content, "tags": ["ops"]}, headers=bearer(key))
    assert answer.status_code == 201
    made = answer.json()
    assert (made["content"], made["version"], made["origin"]) == (content, 1, "api")
    assert answer.headers["etag"] == '"1"'
    again = await client.get(answer.headers["location"], headers=bearer(key))
    assert again.json() == {name: value for name, value in made.items() if name != "pending"}
    assert made["owner"]["you"] is True
    assert made["shared"] == {"team": None, "project": None, "everyone": False, "former_member": False}


async def test_a_time_at_the_end_of_the_calendar_is_refused(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key = await key_of(harness, "alice")
    for path in ("/v1/entries", "/v1/memory", "/v1/memory/days", "/v1/memory/map"):
        for at in ("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+14:00"):
            answer = await client.get(path, params={"since": at}, headers=bearer(key))
            assert answer.status_code == 422, f"{path}: {answer.text}"
            assert "is not within the years 1970 to 2200" in answer.json()["detail"]


async def test_a_change_holds_for_the_version_that_it_names(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key = await key_of(harness, "alice")
    at = f"/v1/entries/{(await written(client, key, title='Ops', metadata={'a': 1}))['id']}"

    async def change(match: str | None, **values: Any) -> httpx2.Response:
        headers = bearer(key) | ({} if match is None else {"If-Match": match})
        return await client.patch(at, json=values, headers=headers)

    first = await change('"1"', tags=["a"], title=None)
    assert (first.status_code, first.headers["etag"], first.json()["title"]) == (200, '"2"', "we deploy on fridays")
    assert (await change('"1"', tags=["b"])).status_code == 412
    assert (await change("*", tags=["c"])).status_code == 200
    assert (await change(None, metadata={"b": 2})).json()["metadata"] == {"b": 2}
    assert (await change('W/"4"', tags=["d"])).status_code == 400
    assert (await change(None, owner="bob")).status_code == 422
    races = await asyncio.gather(*(change('"4"', tags=[f"t{n}"]) for n in range(6)))
    assert sorted(answer.status_code for answer in races) == [200, 412, 412, 412, 412, 412]


async def test_whoever_may_read_an_entry_sees_who_changed_what_of_it_when(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key, bob, tool = (
        await key_of(harness, "alice"),
        await key_of(harness, "bob"),
        await key_of(harness, "alice", "claude"),
    )
    at = f"/v1/entries/{(await written(client, tool, '/v1/agent/entries', content='zqold', key='day'))['id']}"
    harness.clock.tick(60)
    await written(client, tool, "/v1/agent/entries", content="zqnew", key="day")
    await client.patch(at, json={"tags": ["a"], "title": "Day"}, headers=bearer(key))
    team = (await client.post("/v1/teams", json={"name": "Ops"}, headers=bearer(key))).json()["id"]
    await client.put(f"{at}/team", json={"team": team}, headers=bearer(key))
    await client.delete(at, headers=bearer(key))
    await client.post(f"{at}/restore", headers=bearer(key))
    await client.delete(f"/v1/teams/{team}", headers=bearer(key))
    answer = await client.get(f"{at}/versions", headers=bearer(key))
    found = [(each["version"], each["by"], each["changed"]) for each in answer.json()["items"]]
    assert found == [
        (7, None, ["unshared"]),
        (6, "api", ["restored"]),
        (5, "api", ["trashed"]),
        (4, "api", ["shared"]),
        (3, "api", ["tags", "title"]),
        (2, "claude", ["content"]),
        (1, "claude", ["created"]),
    ]
    times = [each["at"] for each in answer.json()["items"]]
    assert times == sorted(times, reverse=True)
    assert times[-1] < times[-2]
    assert "zq" not in answer.text, "an edit erases the words that it takes out"
    assert (await client.get(f"{at}/versions", headers=bearer(bob))).status_code == 404
    for _ in range(60):
        await client.patch(at, json={"tags": [str(uuid.uuid4())]}, headers=bearer(key))
    many = (await client.get(f"{at}/versions", headers=bearer(key))).json()["items"]
    assert [each["version"] for each in many] == [*range(67, 17, -1), 1]
    assert (await client.post(f"{at}/forget", headers=bearer(key))).status_code == 200
    assert (await client.get(f"{at}/versions", headers=bearer(key))).status_code == 404


async def test_the_trash_is_recalled_nowhere_and_an_entry_comes_back_from_it(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key, tool = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    id = (await written(client, key))["id"]
    assert (await client.delete(f"/v1/entries/{id}", headers=bearer(key))).status_code == 204
    assert await listed(client, key) == []
    assert await listed(client, key, trashed=True) == ["we deploy on fridays"]
    assert (await client.get(f"/v1/agent/entries/{id}", headers=bearer(tool))).status_code == 404
    assert (await client.get("/v1/agent/entries", params={"trashed": True}, headers=bearer(tool))).status_code == 403
    assert (await client.post(f"/v1/entries/{id}/restore", headers=bearer(key))).status_code == 200
    assert await listed(client, key) == ["we deploy on fridays"]


async def test_what_may_not_be_read_and_what_does_not_exist_are_the_same_answer(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob = await key_of(harness, "alice"), await key_of(harness, "bob")
    other = await key_of(harness, "alice", workspace="umbrella")
    tool = await key_of(harness, "alice", "cursor")
    id = (await written(client, alice, allowed_vendors=["claude"]))["id"]
    for method, rest, body in (
        ("GET", "", None),
        ("PATCH", "", {"tags": ["x"]}),
        ("DELETE", "", None),
        ("POST", "/restore", None),
        ("DELETE", "/team", None),
    ):
        for key in (bob, other):
            asked = [
                await client.request(method, f"/v1/entries/{which}{rest}", json=body, headers=bearer(key))
                for which in (id, uuid.uuid4())
            ]
            assert [answer.status_code for answer in asked] == [404, 404], (method, rest, asked[0].text)
            assert asked[0].content == asked[1].content
    asked = [await client.get(f"/v1/agent/entries/{which}", headers=bearer(tool)) for which in (id, uuid.uuid4())]
    assert [answer.status_code for answer in asked] == [404, 404]
    assert asked[0].content == asked[1].content
    assert (await client.get(f"/v1/entries/{id}", headers=bearer(alice))).status_code == 200


async def test_tools_append_under_their_own_name_and_read_what_lists_them(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = await key_of(harness, "alice")
    claude, cursor = await key_of(harness, "alice", "claude"), await key_of(harness, "alice", "cursor")
    mine = "/v1/agent/entries"
    made = await written(client, claude, mine, content="from claude", key="k", tags=["x"])
    assert made["origin"] == "claude"
    refused = await client.post(mine, json={"content": "x", "origin": "cursor"}, headers=bearer(claude))
    assert refused.status_code == 422
    await written(client, cursor, mine, content="from cursor", key="k")
    await written(client, alice, content="for cursor", allowed_vendors=["cursor"])
    assert sorted(await listed(client, claude, mine)) == ["from claude", "from cursor"]
    assert sorted(await listed(client, cursor, mine)) == ["for cursor", "from claude", "from cursor"]
    assert sorted(await listed(client, alice)) == ["for cursor", "from claude", "from cursor"]
    replaced = await written(client, claude, mine, content="from claude again", key="k", tags=["x"])
    assert (replaced["id"], replaced["version"]) == (made["id"], 2)
    assert await listed(client, claude, mine + "/by-tag/x") == ["from claude again"]
    latest = await client.get(mine + "/latest", params={"vendor": "cursor"}, headers=bearer(claude))
    assert latest.json()["content"] == "from cursor"


async def test_a_tool_that_nobody_has_is_answered_with_the_known_ones(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, claude = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    bob = await key_of(harness, "bob", "bobs-tool")
    await key_of(harness, "alice", "cursor")
    await written(client, claude, "/v1/agent/entries", content="from claude")
    await written(client, bob, "/v1/agent/entries", content="from bob's")

    async def refused(path: str, **asked: Any) -> str:
        answer = await client.get(path, params=asked, headers=bearer(alice))
        assert answer.status_code == 422, answer.text
        return str(answer.json()["detail"])

    known = "known are api, claude, cursor."
    assert await refused("/v1/entries", vendor="cluade") == f'None of your tools is called "cluade": {known}'
    assert known in await refused("/v1/entries", vendor=["claude", "cluade"])
    assert known in await refused("/v1/entries", vendor="bobs-tool")
    assert known in await refused("/v1/memory", tool="cluade")
    assert await listed(client, alice, vendor="claude") == ["from claude"]
    assert await listed(client, alice, vendor="cursor") == [], "it has a key and wrote nothing yet"
    assert await listed(client, alice, vendor="claude", tag="none") == []
    assert await listed(client, alice, vendor="api") == []
    assert await listed(client, claude, "/v1/agent/entries", vendor="cluade") == [], "tools aren't told of others"

    async def write(allowed: str, key: str = alice, path: str = "/v1/entries") -> httpx2.Response:
        body = {"content": "the vault", "allowed_vendors": [allowed, "claude"]}
        return await client.post(path, json=body, headers=bearer(key))

    mistyped = await write("cluade")
    assert mistyped.status_code == 422
    assert "none of your tools is called cluade; did you mean claude?" in mistyped.json()["detail"]
    made = (await write("zed")).json()
    assert made["allowed_vendors"] == ["claude", "zed"], "a tool that is like no other may come yet"
    headers = bearer(alice) | {"If-Match": '"1"'}
    changed = await client.patch(f"/v1/entries/{made['id']}", json={"allowed_vendors": ["cursr"]}, headers=headers)
    assert "did you mean cursor?" in changed.json()["detail"]
    assert (await write("cluade", claude, "/v1/agent/entries")).status_code == 201
    await key_of(harness, "alice", "cluade")
    assert (await write("cluade")).status_code == 201, "a key has named it"


async def test_a_list_is_filtered_counted_and_paged(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key = await key_of(harness, "alice")
    for n in range(7):
        harness.clock.tick()
        await written(client, key, content=f"entry {n}", kind="decision" if n % 2 else "note", tags=[f"t{n % 3}"])
    assert await listed(client, key, kind="decision") == ["entry 5", "entry 3", "entry 1"]
    assert await listed(client, key, tag="t0", kind="note") == ["entry 6", "entry 0"]
    assert await listed(client, key, q="ENTRY 4") == ["entry 4"]
    assert await listed(client, key, page=2, limit=3) == ["entry 3", "entry 2", "entry 1"]
    assert await listed(client, key, page=2, offset=1, limit=2) == ["entry 5", "entry 4"]
    found, cursor = [], None
    while True:
        asked = {"limit": 3, "stats": True} | ({"cursor": cursor} if cursor else {})
        page = (await client.get("/v1/entries", params=asked, headers=bearer(key))).json()
        found += [item["content"] for item in page["items"]]
        assert page["stats"] == {"total": 7, "by_kind": {"decision": 3, "note": 4}, "tokens": 13, "hit_rate": None}
        cursor = page["next"]
        if cursor is None:
            break
    assert found == [f"entry {n}" for n in reversed(range(7))]
    for wrong in ({"cursor": "x"}, {"limit": 0}, {"kind": "gossip"}, {"since": "2026-01-01T00:00:00"}, {"limit": 101}):
        answer = await client.get("/v1/entries", params=wrong, headers=bearer(key))
        assert answer.status_code == 422, wrong
    assert (await client.get("/v1/entries", params={"cursor": "x", "page": 1}, headers=bearer(key))).status_code == 400


async def test_no_number_stands_for_a_time_and_no_truth_for_a_number(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key = await key_of(harness, "alice")
    await written(client, key)
    for path, wrong in (
        ("/v1/entries", {"content": "x", "expires_at": 0}),
        ("/v1/entries", {"content": "x", "expires_at": "1893456000"}),
        ("/v1/entries/forget", {"confirm": True}),
        ("/v1/query", {"question": "x", "limit": "1"}),
        ("/v1/query", {"question": "x", "answer": 1}),
    ):
        answer = await client.post(path, json=wrong, headers=bearer(key))
        assert answer.status_code == 422, (path, wrong)
    answer = await client.get("/v1/entries", params={"since": "0.5"}, headers=bearer(key))
    assert answer.json()["detail"] == "`since` is wrong: a time is written with its zone, as in 2026-01-31T09:00:00Z."
    assert await listed(client, key, since="2026-01-31T09:00:00Z") == ["we deploy on fridays"]


async def test_a_repeated_write_takes_effect_once(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key, other = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    headers = bearer(key) | {"Idempotency-Key": "one"}

    async def send(content: str = "once", headers: dict[str, str] = headers) -> httpx2.Response:
        return await client.post("/v1/entries", json={"content": content}, headers=headers)

    answers = await asyncio.gather(*(send() for _ in range(5)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 4
    assert (await send("twice")).status_code == 422
    tools = await client.post(
        "/v1/agent/entries", json={"content": "once"}, headers=bearer(other) | {"Idempotency-Key": "one"}
    )
    assert tools.status_code == 201
    assert len(await listed(client, key)) == 2
    assert (await send(headers=headers | {"Idempotency-Key": "x" * 256})).status_code == 400


async def test_a_team_reads_what_its_members_share_and_their_tools_too(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob, carol = [await key_of(harness, name) for name in ("alice", "bob", "carol")]
    tool = await key_of(harness, "bob", "claude")
    team = (await client.post("/v1/teams", json={"name": "Ops"}, headers=bearer(alice))).json()["id"]
    invited = await client.post(
        f"/v1/teams/{team}/invites", json={"user": str((await person(harness, "bob")).id)}, headers=bearer(alice)
    )
    assert invited.status_code == 201
    id = (await written(client, alice, content="the vault code is blue"))["id"]
    shared = await client.put(f"/v1/entries/{id}/team", json={"team": team}, headers=bearer(alice))
    assert shared.json()["shared"]["team"] == {"id": team, "name": "Ops"}
    assert await listed(client, bob) == [], "not before bob has accepted"
    assert (await client.get("/v1/invites", headers=bearer(bob))).json()["items"][0]["name"] == "Ops"
    assert (await client.post(f"/v1/teams/{team}/accept", headers=bearer(bob))).status_code == 204
    assert await listed(client, bob) == ["the vault code is blue"]
    assert await listed(client, tool, f"/v1/agent/team/{team}/entries") == ["the vault code is blue"]
    assert (await client.patch(f"/v1/entries/{id}", json={"tags": ["x"]}, headers=bearer(bob))).status_code == 403
    for key in (carol, await key_of(harness, "carol", "claude")):
        answer = await client.get(f"/v1/agent/team/{team}/entries", headers=bearer(key))
        unknown = await client.get(f"/v1/agent/team/{uuid.uuid4()}/entries", headers=bearer(key))
        assert (answer.status_code, answer.content) == (404, unknown.content)
    assert (await client.post(f"/v1/teams/{team}/leave", headers=bearer(alice))).status_code == 409
    assert (await client.post(f"/v1/teams/{team}/leave", headers=bearer(bob))).status_code == 204
    assert await listed(client, bob) == []
    assert (await client.delete(f"/v1/entries/{id}/team", headers=bearer(alice))).json()["shared"]["team"] is None


async def test_people_forget_their_own_and_tools_what_they_wrote_themselves(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob = await key_of(harness, "alice"), await key_of(harness, "bob")
    claude = await key_of(harness, "alice", "claude")
    of_person = (await written(client, alice, content="from alice"))["id"]
    of_tool = (await written(client, claude, "/v1/agent/entries", content="from claude"))["id"]

    async def forget(key: str, path: str, **body: Any) -> httpx2.Response:
        return await client.post(path, json=body or None, headers=bearer(key))

    assert (await forget(bob, f"/v1/entries/{of_person}/forget")).status_code == 404
    assert (await forget(claude, f"/v1/entries/{of_tool}/forget")).status_code == 403
    assert (await forget(claude, f"/v1/agent/entries/{of_person}/forget")).status_code == 403
    receipt = await forget(claude, f"/v1/agent/entries/{of_tool}/forget")
    assert (receipt.status_code, receipt.json()["counts"]) == (200, {"memory": 1})
    assert receipt.json()["id"]
    assert await listed(client, alice) == ["from alice"]
    await client.delete(f"/v1/entries/{of_person}", headers=bearer(alice))
    assert (await forget(alice, f"/v1/entries/{of_person}/forget")).json()["counts"] == {"memory": 1}
    assert await listed(client, alice, trashed=True) == []


async def test_a_tool_forgets_nothing_that_is_shared_by_now(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    alice, claude = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    id = (await written(client, claude, "/v1/agent/entries", content="from claude"))["id"]
    team = (await client.post("/v1/teams", json={"name": "Ops"}, headers=bearer(alice))).json()["id"]
    await client.put(f"/v1/entries/{id}/team", json={"team": team}, headers=bearer(alice))
    assert (await client.post(f"/v1/agent/entries/{id}/forget", headers=bearer(claude))).status_code == 403
    many = await client.post("/v1/agent/forget", json={"everything": True}, headers=bearer(claude))
    assert many.json() == {"id": None, "counts": {}}
    assert await listed(client, alice) == ["from claude"]


async def test_many_entries_are_forgotten_once_their_number_is_confirmed(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob = await key_of(harness, "alice"), await key_of(harness, "bob")
    claude = await key_of(harness, "alice", "claude")
    await written(client, bob, content="of bob")
    for n in range(3):
        harness.clock.tick()
        await written(client, alice, content=f"entry {n}", tags=["old"])
    for n in range(2):
        await written(client, claude, "/v1/agent/entries", content=f"claude {n}", kind="decision")

    async def forget(key: str, path: str = "/v1/entries/forget", **body: Any) -> httpx2.Response:
        return await client.post(path, json=body, headers=bearer(key))

    asked = await forget(alice, tag="old")
    assert asked.status_code == 409
    assert "confirm = 3" in asked.json()["detail"]
    assert (await forget(alice, tag="old", confirm=2)).status_code == 409
    assert len(await listed(client, alice)) == 5
    assert (await forget(alice, tag="old", confirm=3)).json()["counts"] == {"memory": 3}
    mistyped = await forget(alice, vendor="cluade")
    assert (mistyped.status_code, mistyped.json()["detail"]) == (
        422,
        'None of your tools is called "cluade": known are api, claude.',
    )
    assert "confirm = 0" in (await forget(alice, vendor="claude", tag="none")).json()["detail"]
    assert "confirm = 2" in (await forget(alice, vendor=" Claude")).json()["detail"]
    assert (await forget(claude)).status_code == 403
    assert (await forget(claude, "/v1/agent/forget", kind="note")).json()["counts"] == {}
    assert (await forget(claude, "/v1/agent/forget", older_than="2020-01-01T00:00:00Z")).json()["counts"] == {}
    assert (await forget(claude, "/v1/agent/forget", kind="decision")).json()["counts"] == {"memory": 2}
    assert await listed(client, alice) == []
    assert await listed(client, bob) == ["of bob"]
    readers = await key_of(harness, "alice", permissions=["entries:read"])
    assert (await forget(readers, confirm=0)).status_code == 403


async def test_a_key_that_may_not_see_teams_is_not_told_what_they_are_called(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = await key_of(harness, "alice")
    team = (await client.post("/v1/teams", json={"name": "zqteam"}, headers=bearer(alice))).json()["id"]
    id = (await written(client, alice))["id"]
    await client.put(f"/v1/entries/{id}/team", json={"team": team}, headers=bearer(alice))
    narrow = await key_of(harness, "alice", "claude", ["entries:read"])
    seen = await client.get(f"/v1/agent/entries/{id}", headers=bearer(narrow))
    assert seen.status_code == 200
    assert "zqteam" not in seen.text


async def test_a_change_of_the_tools_that_read_an_entry_is_in_the_audit_log(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key, tool = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    alice = (await person(harness, "alice")).id
    path = f"/v1/entries/{(await written(client, key, key='style'))['id']}"
    long = [f"a-tool-of-thirty-two-characters-{n}"[:32] for n in range(10)]
    for vendors in (["claude"], ["claude"], ["claude", "cursor"], [f"{n}{name[1:]}" for n, name in enumerate(long)]):
        changed = await client.patch(path, json={"allowed_vendors": vendors, "tags": ["x"]}, headers=bearer(key))
        assert changed.status_code == 200, changed.text
    await written(client, tool, "/v1/agent/entries", key="own")
    await written(client, tool, "/v1/agent/entries", key="own", allowed_vendors=["claude"])
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        rows = [row for row in await tx.audit.find(limit=100) if row.act == "entry.vendors"]
    assert {(row.actor, row.users) for row in rows} == {(alice, (alice,))}
    assert sorted((row.details["vendor"], row.details["from"], row.details["to"]) for row in rows) == [
        ("claude", "all", "claude"),
        ("person", "all", "claude"),
        ("person", "claude", "claude:cursor"),
        ("person", "claude:cursor", "10:tools"),
    ]
