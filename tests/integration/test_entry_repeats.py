"""What a repeated write is answered with, and what is out of use: in the trash, expired, or in an isolated project."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from composer.settings import Settings
from tests.support.api import bearer, key_of
from tests.support.harness import AppHarness, open_harness

DAY = timedelta(days=1).total_seconds()


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update={"requests_per_minute": 100_000})) as harness:
        yield harness


async def sent(
    client: httpx2.AsyncClient,
    token: str,
    method: str,
    path: str,
    once: str | None = None,
    match: str | None = None,
    /,
    **body: Any,
) -> httpx2.Response:
    """An answer. `once`: the idempotency key; `match`: the version that the request is for."""
    headers = bearer(token)
    headers |= {} if once is None else {"Idempotency-Key": once}
    headers |= {} if match is None else {"If-Match": match}
    return await client.request(method, path, json=body or None, headers=headers)


async def contents(client: httpx2.AsyncClient, key: str, **asked: Any) -> list[str]:
    answer = await client.get("/v1/entries", params=asked, headers=bearer(key))
    return [item["content"] for item in answer.json()["items"]]


async def test_after_a_day_a_used_idempotency_key_makes_a_new_entry(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key = await key_of(harness, "alice")
    first = await sent(client, key, "POST", "/v1/entries", "one", content="zqfirst")
    harness.clock.tick(DAY)
    other = await sent(client, key, "POST", "/v1/entries", "one", content="zqsecond")
    again = await sent(client, key, "POST", "/v1/entries", "one", content="zqsecond")
    assert (other.status_code, "idempotency-replayed" in other.headers) == (201, False)
    assert other.json()["content"] == "zqsecond"
    assert other.json()["id"] == again.json()["id"] != first.json()["id"]
    assert await contents(client, key) == ["zqsecond", "zqfirst"]
    harness.clock.tick(DAY)
    await sent(client, key, "POST", f"/v1/entries/{first.json()['id']}/forget")
    anew = await sent(client, key, "POST", "/v1/entries", "one", content="zqfirst")
    assert anew.status_code == 201
    assert await contents(client, key) == ["zqfirst", "zqsecond"]


@pytest.mark.parametrize("vendor", [None, "claude"])
async def test_who_may_only_write_is_answered_again_as_the_first_time(
    harness: AppHarness, client: httpx2.AsyncClient, vendor: str | None
) -> None:
    writer, alice = await key_of(harness, "alice", vendor, ["entries:write"]), await key_of(harness, "alice")
    path = "/v1/entries" if vendor is None else "/v1/agent/entries"
    entry = {"content": "zqmine", "tags": ["a"], "metadata": {"n": 1.5}, "key": "k", "title": "T"}
    first = await sent(client, writer, "POST", path, "one", **entry)
    harness.clock.tick()
    changed = await sent(client, alice, "PATCH", f"/v1/entries/{first.json()['id']}", content="zqhers")
    assert changed.status_code == 200
    again = await sent(client, writer, "POST", path, "one", **entry)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers["idempotency-replayed"] == "true"
    await sent(client, alice, "POST", f"/v1/entries/{first.json()['id']}/forget")
    assert (await sent(client, writer, "POST", path, "one", **entry)).json() == first.json()
    assert await contents(client, alice) == []


async def test_a_repeat_has_the_status_of_the_first_answer_and_shows_the_entry_as_it_is(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key = await key_of(harness, "alice")
    for n, status in ((1, 201), (2, 200), (1, 201), (2, 200)):
        answer = await sent(client, key, "POST", "/v1/entries", f"once {n}", content=f"zq {n}", key="k")
        assert (answer.status_code, answer.json()["content"]) == (
            status,
            "zq 1" if n == 1 and answer.json()["version"] == 1 else "zq 2",
        )
    id = answer.json()["id"]
    await sent(client, key, "DELETE", f"/v1/entries/{id}")
    trashed = await sent(client, key, "POST", "/v1/entries", "once 1", content="zq 1", key="k")
    assert (trashed.status_code, trashed.json()["trashed_at"] is None) == (201, False)
    await sent(client, key, "POST", f"/v1/entries/{id}/forget")
    gone = await sent(client, key, "POST", "/v1/entries", "once 1", content="zq 1", key="k")
    assert (gone.status_code, gone.json()["detail"]) == (410, "What this request made was forgotten since.")


async def test_a_key_that_is_taken_is_no_matter_of_versions(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key = await key_of(harness, "alice")
    old = (await sent(client, key, "POST", "/v1/entries", content="zqold", key="k")).json()["id"]
    assert (await sent(client, key, "DELETE", f"/v1/entries/{old}")).status_code == 204
    refused = await sent(client, key, "PATCH", f"/v1/entries/{old}", None, '"2"', tags=["x"])
    assert (refused.status_code, refused.json()["detail"][:30]) == (409, "That entry is in the trash: re")
    new = (await sent(client, key, "POST", "/v1/entries", content="zqnew", key="k")).json()["id"]
    for match, status in (('"2"', 409), (None, 409), ('"1"', 412)):
        answer = await sent(client, key, "POST", f"/v1/entries/{old}/restore", None, match)
        assert answer.status_code == status, match
    await sent(client, key, "DELETE", f"/v1/entries/{new}")
    assert (await sent(client, key, "POST", f"/v1/entries/{old}/restore", None, '"2"')).status_code == 200


async def test_a_key_is_taken_in_its_own_place_alone(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key = await key_of(harness, "alice")
    await harness.command("alice", "/nexus project create apollo", room="general")
    own = (await sent(client, key, "POST", "/v1/entries", content="zqown", key="k")).json()["id"]
    await sent(client, key, "DELETE", f"/v1/entries/{own}")
    await sent(client, key, "POST", "/v1/entries", content="zqapollo", key="k", project="apollo")
    assert (await sent(client, key, "POST", f"/v1/entries/{own}/restore")).status_code == 200
    assert sorted(await contents(client, key)) == ["zqapollo", "zqown"]


async def test_a_person_reads_forgets_and_revives_what_has_expired_and_nobody_else(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob, claude = (
        await key_of(harness, "alice"),
        await key_of(harness, "bob"),
        await key_of(harness, "alice", "claude"),
    )
    until = (harness.clock.now() + timedelta(hours=1)).isoformat()
    ids = []
    for n in range(3):
        harness.clock.tick()
        made = await sent(
            client, alice, "POST", "/v1/entries", content=f"zq{n}", key=f"k{n}", tags=["t"], expires_at=until
        )
        ids.append(made.json()["id"])
    team = (await sent(client, alice, "POST", "/v1/teams", name="Ops")).json()["id"]
    of_bob = (await client.get("/v1/whoami", headers=bearer(bob))).json()["user"]
    await sent(client, alice, "POST", f"/v1/teams/{team}/invites", user=of_bob)
    assert (await sent(client, bob, "POST", f"/v1/teams/{team}/accept")).status_code == 204
    await sent(client, alice, "PUT", f"/v1/entries/{ids[0]}/team", team=team)
    assert await contents(client, bob) == ["zq0"]
    harness.clock.tick(3_600)
    assert await contents(client, alice) == []
    assert await contents(client, alice, expired=True, tag="t") == ["zq2", "zq1", "zq0"]
    counted = await client.get("/v1/entries", params={"expired": True, "stats": True}, headers=bearer(alice))
    assert counted.json()["stats"]["total"] == 3
    assert await contents(client, bob, expired=True) == []
    for path, status in ((f"/v1/agent/entries/{ids[0]}", 404), ("/v1/agent/entries?expired=true", 403)):
        assert (await sent(client, claude, "GET", path)).status_code == status
    assert (await sent(client, bob, "GET", f"/v1/entries/{ids[0]}")).status_code == 404
    assert (await sent(client, alice, "GET", f"/v1/entries/{ids[0]}")).json()["content"] == "zq0"
    assert (await sent(client, alice, "POST", f"/v1/entries/{ids[0]}/forget")).json()["counts"] == {"memory": 1}
    revived = await client.patch(f"/v1/entries/{ids[1]}", json={"expires_at": None}, headers=bearer(alice))
    assert revived.status_code == 200
    assert await contents(client, alice) == ["zq1"]
    await sent(client, alice, "POST", "/v1/entries", content="zqnew", key="k2")
    taken = await client.patch(f"/v1/entries/{ids[2]}", json={"expires_at": None}, headers=bearer(alice))
    assert taken.status_code == 409
    assert (await sent(client, alice, "POST", "/v1/entries/forget", tag="t", confirm=2)).json()["counts"] == {
        "memory": 2
    }


async def test_an_entry_of_an_isolated_project_is_reached_by_naming_the_project(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob, claude = (
        await key_of(harness, "alice"),
        await key_of(harness, "bob"),
        await key_of(harness, "alice", "claude"),
    )
    await harness.command("alice", "/nexus project create ares --isolated", room="general")
    own = (await sent(client, alice, "POST", "/v1/entries", content="zqown")).json()["id"]
    made = await sent(client, alice, "POST", "/v1/entries", content="zqares", project="ares")
    at = f"/v1/entries/{made.json()['id']}"
    assert (await sent(client, alice, "GET", at)).status_code == 404
    assert (await sent(client, alice, "GET", made.headers["location"])).json()["content"] == "zqares"
    assert (await sent(client, alice, "GET", f"/v1/entries/{own}?project=ares")).status_code == 404
    assert (await sent(client, claude, "GET", f"/v1/agent{at[3:]}?project=ares")).json()["content"] == "zqares"
    unknown = await sent(client, bob, "GET", f"{at}?project=ares")
    assert (unknown.status_code, unknown.json()["detail"]) == (404, "There is no project 'ares' here.")
    assert (await sent(client, alice, "PATCH", f"{at}?project=ares", tags=["x"])).json()["tags"] == ["x"]
    assert (await sent(client, alice, "DELETE", f"{at}?project=ares")).status_code == 204
    assert (await sent(client, alice, "POST", f"{at}/restore")).status_code == 404
    assert (await sent(client, alice, "POST", f"{at}/restore?project=ares")).status_code == 200
    assert (
        (await sent(client, alice, "POST", "/v1/entries/forget", project="ares"))
        .json()["detail"]
        .startswith("This would forget 1 entry for good.")
    )
    assert (await sent(client, alice, "POST", f"{at}/forget?project=ares")).json()["counts"] == {"memory": 1}
    assert await contents(client, alice) == ["zqown"]


async def test_whoever_writes_finds_it_where_the_answer_says(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    claude = await key_of(harness, "alice", "claude")
    made = await sent(client, claude, "POST", "/v1/agent/entries", content="zqmine")
    assert (await sent(client, claude, "GET", made.headers["location"])).json()["content"] == "zqmine"


async def test_writing_and_restoring_with_one_key_at_once_ends_without_an_error(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key = await key_of(harness, "alice")
    for n in range(6):
        old = (await sent(client, key, "POST", "/v1/entries", content="zqold", key=f"k{n}")).json()["id"]
        await sent(client, key, "DELETE", f"/v1/entries/{old}")
        await sent(client, key, "POST", "/v1/entries", content="zqnew", key=f"k{n}")
        writes = [sent(client, key, "POST", "/v1/entries", content=f"zq{i}", key=f"k{n}") for i in range(3)]
        restores = [sent(client, key, "POST", f"/v1/entries/{old}/restore") for _ in range(3)]
        both = [each for pair in zip(writes, restores, strict=True) for each in pair]
        statuses = [answer.status_code for answer in await asyncio.gather(*both)]
        assert statuses == [200, 409] * 3
    stored = (await client.get("/v1/entries?limit=100", headers=bearer(key))).json()["items"]
    assert sorted(item["key"] for item in stored) == [f"k{n}" for n in range(6)]
    assert uuid.UUID(stored[0]["id"])
