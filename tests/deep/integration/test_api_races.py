"""Attacks over the API by being fast, slow or many: races, slow bodies, credentials that end in mid-stream, and wrong
keys."""

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from bot.web.limits import LIMIT_KEY_PREFIX
from composer.people.credentials.issuing import MAX_KEYS
from composer.settings import AgentSettings, Settings
from tests.integration.test_chat_routes import events_of
from tests.support.api import bearer, cookie_of, key_of
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import TIMEOUT_SECONDS, until

AT_ONCE = 8


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    many = {"agents": (AgentSettings(model="gpt-4o"),), "requests_per_minute": 400}
    async with open_harness(settings.model_copy(update=many), model=model) as harness:
        yield harness


async def ask(client: httpx2.AsyncClient, token: str, method: str, path: str, /, **body: Any) -> httpx2.Response:
    return await client.request(method, path, json=body or None, headers=bearer(token))


async def made(client: httpx2.AsyncClient, token: str, path: str, /, **body: Any) -> str:
    answer = await ask(client, token, "POST", path, **body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def at_once(*requests: Awaitable[httpx2.Response]) -> Counter[int]:
    """The statuses of requests that are made at once."""
    return Counter(answer.status_code for answer in await asyncio.gather(*requests))


async def stored(client: httpx2.AsyncClient, token: str, **asked: Any) -> list[dict[str, Any]]:
    answer = await client.get("/v1/entries", params={"limit": 100, **asked}, headers=bearer(token))
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def id_of(client: httpx2.AsyncClient, token: str) -> str:
    return str((await ask(client, token, "GET", "/v1/whoami")).json()["user"])


async def team_of(client: httpx2.AsyncClient, admin: str, *members: str) -> str:
    """The id of a new team of these people."""
    team = await made(client, admin, "/v1/teams", name="Ops")
    for member in members:
        await made(client, admin, f"/v1/teams/{team}/invites", user=await id_of(client, member))
        assert (await ask(client, member, "POST", f"/v1/teams/{team}/accept")).status_code == 204
    return team


# --- races ------------------------------------------------------------------------------------------------------------


async def test_writes_with_one_key_at_once_make_one_entry(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    alice = await key_of(harness, "alice")
    writes = [ask(client, alice, "POST", "/v1/entries", content=f"zq{n}", key="k") for n in range(AT_ONCE)]
    assert await at_once(*writes) == {201: 1, 200: AT_ONCE - 1}
    (entry,) = await stored(client, alice)
    assert entry["version"] == AT_ONCE


async def test_of_two_bodies_under_one_idempotency_key_one_is_made(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    headers = bearer(await key_of(harness, "alice")) | {"Idempotency-Key": "one"}
    writes = [client.post("/v1/entries", json={"content": f"zq{n}"}, headers=headers) for n in range(AT_ONCE)]
    assert await at_once(*writes) == {201: 1, 422: AT_ONCE - 1}


async def test_what_is_forgotten_while_it_is_changed_stays_forgotten(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = await key_of(harness, "alice")
    for n in range(6):
        at = f"/v1/entries/{await made(client, alice, '/v1/entries', content='zqfirst', key=f'k{n}')}"
        statuses = await at_once(
            ask(client, alice, "PATCH", at, content="zqsecond"),
            ask(client, alice, "POST", f"{at}/forget"),
            ask(client, alice, "DELETE", at),
            ask(client, alice, "PATCH", at, tags=["x"]),
            ask(client, alice, "POST", f"{at}/restore"),
        )
        assert set(statuses) <= {200, 204, 404, 409}, statuses
        assert (await ask(client, alice, "GET", at)).status_code == 404
    assert await stored(client, alice) + await stored(client, alice, trashed=True) == []


async def test_two_admins_who_remove_each_other_leave_a_team_with_an_admin(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob = await key_of(harness, "alice"), await key_of(harness, "bob")
    team = await team_of(client, alice, bob)
    ids = {alice: await id_of(client, alice), bob: await id_of(client, bob)}
    await ask(client, alice, "PATCH", f"/v1/teams/{team}/members/{ids[bob]}", role="admin")
    statuses = await at_once(
        ask(client, alice, "DELETE", f"/v1/teams/{team}/members/{ids[bob]}"),
        ask(client, bob, "DELETE", f"/v1/teams/{team}/members/{ids[alice]}"),
        ask(client, alice, "POST", f"/v1/teams/{team}/leave"),
        ask(client, bob, "POST", f"/v1/teams/{team}/leave"),
    )
    assert set(statuses) <= {204, 404, 409}
    members = [await ask(client, each, "GET", f"/v1/teams/{team}/members") for each in (alice, bob)]
    (seen,) = [answer.json()["items"] for answer in members if answer.status_code == 200]
    assert [member["role"] for member in seen] == ["admin"]


async def test_who_is_removed_while_sharing_shares_before_or_not_at_all(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob = await key_of(harness, "alice"), await key_of(harness, "bob")
    team = await team_of(client, alice, bob)
    ids = [await made(client, bob, "/v1/entries", content=f"zq{n}") for n in range(AT_ONCE)]
    answers = await asyncio.gather(
        *(ask(client, bob, "PUT", f"/v1/entries/{id}/team", team=team) for id in ids[:4]),
        ask(client, alice, "DELETE", f"/v1/teams/{team}/members/{await id_of(client, bob)}"),
        *(ask(client, bob, "PUT", f"/v1/entries/{id}/team", team=team) for id in ids[4:]),
    )
    shared = {answer.json()["id"] for answer in answers if answer.status_code == 200}
    assert {answer.status_code for answer in answers} <= {200, 204, 404}
    assert {entry["id"] for entry in await stored(client, alice, team=team)} == shared
    assert all(entry["shared"]["former_member"] for entry in await stored(client, alice, team=team))


async def test_an_invitation_that_is_accepted_many_times_makes_one_member(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob = await key_of(harness, "alice"), await key_of(harness, "bob")
    team = await made(client, alice, "/v1/teams", name="Ops")
    await made(client, alice, f"/v1/teams/{team}/invites", user=await id_of(client, bob))
    statuses = await at_once(*(ask(client, bob, "POST", f"/v1/teams/{team}/accept") for _ in range(AT_ONCE)))
    assert statuses[204] == 1
    assert set(statuses) <= {204, 403}
    members = (await ask(client, alice, "GET", f"/v1/teams/{team}/members")).json()["items"]
    assert [member["role"] for member in members] == ["admin", "member"]


async def test_keys_that_are_made_at_once_are_no_more_than_allowed(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = await key_of(harness, "alice")
    statuses = await at_once(*(ask(client, alice, "POST", "/v1/keys", name=str(n)) for n in range(MAX_KEYS + 5)))
    assert statuses[201] == MAX_KEYS - 1
    assert set(statuses) == {201, 403}
    listed = (await ask(client, alice, "GET", "/v1/keys")).json()["items"]
    assert len(listed) == MAX_KEYS


async def test_a_key_that_is_revoked_while_it_writes_writes_before_or_not_at_all(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, claude = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    keys = (await ask(client, alice, "GET", "/v1/keys")).json()["items"]
    of_claude = next(key["id"] for key in keys if key["vendor"] == "claude")
    answers = await asyncio.gather(
        *(ask(client, claude, "POST", "/v1/agent/entries", content=f"zq{n}") for n in range(4)),
        ask(client, alice, "DELETE", f"/v1/keys/{of_claude}"),
        *(ask(client, claude, "POST", "/v1/agent/entries", content=f"zq{n}") for n in range(4)),
    )
    assert {answer.status_code for answer in answers} <= {201, 204, 401}
    assert len(await stored(client, alice)) == sum(answer.status_code == 201 for answer in answers)
    assert (await ask(client, claude, "GET", "/v1/agent/entries")).status_code == 401


# --- credentials that end in mid-stream -------------------------------------------------------------------------------


async def ended_in_mid_stream(
    client: httpx2.AsyncClient,
    model: Model,
    path: str,
    headers: dict[str, str],
    end: Callable[[], Awaitable[object]],
) -> list[str]:
    """What is heard of an answer while its model is silent, and the credential ends."""
    model.gate, before = asyncio.Event(), len(model.shown)
    body = {"content": "where is it?"} if path == "/v1/chat" else {"question": "where is the vault?", "answer": True}
    asking = asyncio.create_task(client.post(f"{path}/stream", json=body, headers=headers))
    await until(lambda: len(model.shown) > before)
    await end()
    heard = events_of((await asking).text)
    model.gate.set()
    assert heard[-2][1]["text"] == "The key is not valid any more."
    return [name for name, _ in heard]


@pytest.mark.parametrize("path", ["/v1/chat", "/v1/query"])
async def test_a_stream_ends_when_its_key_expires(
    harness: AppHarness, client: httpx2.AsyncClient, model: Model, path: str
) -> None:
    alice = await key_of(harness, "alice")
    await made(client, alice, "/v1/entries", content="the vault is behind zqorchid")
    expires = (harness.clock.now() + timedelta(hours=1)).isoformat()
    short = (await ask(client, alice, "POST", "/v1/keys", expires_at=expires)).json()["key"]

    async def expire() -> None:
        harness.clock.tick(3_600)

    heard = await ended_in_mid_stream(client, model, path, bearer(short), expire)
    assert heard[0] == "start"
    assert heard[-2:] == ["failed", "done"]


async def test_a_tools_stream_ends_when_its_person_revokes_it_and_no_other_one_does(
    harness: AppHarness, client: httpx2.AsyncClient, model: Model
) -> None:
    alice, claude = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    await made(client, alice, "/v1/entries", content="the vault is behind zqorchid")
    keys = (await ask(client, alice, "GET", "/v1/keys")).json()["items"]
    ids = {key["vendor"]: key["id"] for key in keys}

    async def revoke() -> None:
        assert (await ask(client, alice, "DELETE", f"/v1/keys/{ids['claude']}")).status_code == 204

    heard = await ended_in_mid_stream(client, model, "/v1/query", bearer(claude), revoke)
    assert heard[-2:] == ["failed", "done"]
    whole = await ask(client, alice, "POST", "/v1/query/stream", question="where is the vault?", answer=True)
    assert [name for name, _ in events_of(whole.text)][-2:] == ["reply", "done"]


async def test_a_browsers_stream_ends_when_it_is_signed_out(
    harness: AppHarness, client: httpx2.AsyncClient, model: Model, url: str
) -> None:
    alice, cookie = await key_of(harness, "alice"), await cookie_of(harness, "alice")
    await made(client, alice, "/v1/entries", content="the vault is behind zqorchid")
    (browser,) = (await ask(client, alice, "GET", "/v1/sessions")).json()["items"]

    async def sign_out() -> None:
        assert (await ask(client, alice, "DELETE", f"/v1/sessions/{browser['id']}")).status_code == 204

    headers = {"Cookie": f"nexus={cookie}", "Origin": url}
    assert (await ended_in_mid_stream(client, model, "/v1/query", headers, sign_out))[-2:] == ["failed", "done"]


# --- slow ones and many -----------------------------------------------------------------------------------------------


async def test_bodies_that_do_not_arrive_keep_nobody_from_being_served(
    harness: AppHarness, client: httpx2.AsyncClient, url: str
) -> None:
    alice = await key_of(harness, "alice")
    host, port = url.removeprefix("http://").split(":")
    head = f"POST /v1/entries HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {alice}\r\nContent-Length: 99\r\n"
    slow = [await asyncio.open_connection(host, int(port)) for _ in range(60)]
    for _, writer in slow:
        writer.write(f'{head}Content-Type: application/json\r\n\r\n{{"content": "zq'.encode())
        await writer.drain()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        assert await made(client, alice, "/v1/entries", content="zqwhole")
    assert [entry["content"] for entry in await stored(client, alice)] == ["zqwhole"]
    for _, writer in slow:
        writer.close()


async def test_wrong_keys_are_counted_by_their_address_and_leave_nothing_behind(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, tenant = await key_of(harness, "alice"), harness.workspace().tenant
    digits = [uuid.uuid4().hex * 2 for _ in range(1_000)]
    with capture_logs() as logs:
        answers = [
            answer
            for start in range(0, len(digits), 20)
            for answer in await asyncio.gather(
                *(ask(client, f"nx_{tenant}_{text}", "GET", "/v1/whoami") for text in digits[start : start + 20])
            )
        ]
        assert (await ask(client, alice, "GET", "/v1/whoami")).status_code == 200, "a right key counts for itself"
    assert {answer.status_code for answer in answers} == {401, 429}
    assert len({answer.content for answer in answers}) == 2
    said = json.dumps(logs)
    assert not any(text in said for text in digits)
    async with Redis.from_url(str.__str__(harness.app.redis_url), decode_responses=True) as redis:
        callers = {key async for key in redis.scan_iter(f"{LIMIT_KEY_PREFIX}*")}
    assert len(callers) <= 4, "a window or two of the address, and of her key"
