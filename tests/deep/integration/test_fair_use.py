"""How many requests a person or an address has in a minute: the same in every process, and never without limits."""

import asyncio
import socket
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx2
import pytest
from fastapi import Depends, Request
from redis.asyncio import Redis
from structlog.testing import capture_logs

from bot.web import limits
from bot.web.app import web_app
from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.dependencies import counted_by_address
from bot.web.limits import FairUse, address_of
from bot.web.metrics import Metrics
from bot.web.principal import Admin, Bearer
from bot.web.problems import TooManyRequests, documented
from composer.settings import Settings
from composer.settings.server_urls import ServerUrl
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness
from tests.support.web import served_at

NOBODY = ServerUrl("redis://:hunter2@127.0.0.1:1/0")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process counts alone because Redis is slow on a busy machine."""
    monkeypatch.setattr(limits, "LIMIT_SECONDS", 60.0)


@asynccontextmanager
async def counting(url: ServerUrl, per_minute: int = 3, admin: int = 1) -> AsyncIterator[FairUse]:
    fair_use = FairUse(url, per_minute, admin)
    try:
        yield fair_use
    finally:
        await fair_use.close()


async def admitted(fair_use: FairUse, caller: str, times: int, *, admin: bool = False) -> int:
    """How many of so many requests are admitted; the others are told how many seconds to wait, up to a minute."""
    count, seconds = 0, list[int]()
    for _ in range(times):
        try:
            await fair_use.admit(caller, admin=admin)
        except TooManyRequests as error:
            seconds.append(int((error.headers or {})["Retry-After"]))
        else:
            count += 1
    assert all(1 <= each <= 60 for each in seconds)
    return count


@pytest.fixture
def caller() -> str:
    return f"key:{uuid.uuid4()}"


async def test_processes_count_together_and_callers_apart(harness: AppHarness, caller: str) -> None:
    url = harness.app.redis_url
    async with counting(url, 20) as one, counting(url, 20) as other:
        first = await admitted(one, caller, 15)
        second = await admitted(other, caller, 15)
        assert first == 15
        assert 5 <= second < 15, "of 20 in all; a minute that ends meanwhile gives some back"
        assert await admitted(other, f"{caller}-2", 15) == 15


async def test_what_only_admins_may_do_has_a_limit_of_its_own(harness: AppHarness, caller: str) -> None:
    async with counting(harness.app.redis_url, 50, 10) as fair_use:
        assert 10 <= await admitted(fair_use, caller, 30, admin=True) < 30
        assert await admitted(fair_use, caller, 50) == 50


async def test_what_is_counted_is_gone_after_two_minutes(harness: AppHarness, caller: str) -> None:
    url = harness.app.redis_url
    async with counting(url) as fair_use:
        await admitted(fair_use, caller, 5, admin=True)
        await admitted(fair_use, caller, 5)
    async with Redis.from_url(str.__str__(url), decode_responses=True) as redis:
        found = [key async for key in redis.scan_iter(f"{limits.LIMIT_KEY_PREFIX}*{caller}*")]
        assert found
        assert all([0 < await redis.ttl(key) <= 120 for key in found])


async def test_without_redis_each_process_gives_a_share_and_says_so_once() -> None:
    with capture_logs() as logs:
        async with counting(NOBODY, 10, 4) as fair_use:
            assert await admitted(fair_use, "key:a", 30) == 5
            assert await admitted(fair_use, "key:b", 30) == 5
            assert await admitted(fair_use, "key:c", 30, admin=True) == 2
    [line] = logs
    assert (line["event"], line["log_level"]) == ("web.fair_use_alone", "warning")
    assert "hunter2" not in str(logs)
    assert "127.0.0.1" not in str(logs)


async def test_who_asks_again_at_once_waits_for_the_refusal_while_others_are_admitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "HELD_SECONDS", 3600.0)
    async with counting(NOBODY, 2) as fair_use, asyncio.TaskGroup() as group:
        await fair_use.admit("person:a", credentials=["key"])
        with pytest.raises(TooManyRequests):
            await fair_use.admit("person:a", credentials=["key"])
        again = [
            group.create_task(fair_use.admit("person:a", credentials=["another key"])),
            group.create_task(fair_use.require_not_refused(["key"])),
        ]
        for _ in range(100):
            await asyncio.sleep(0)
        assert not any(each.done() for each in again)
        await fair_use.require_not_refused(["somebody else's key"])
        await fair_use.require_not_refused([])
        await fair_use.admit("person:b")
        for each in again:
            each.cancel()


async def test_a_caller_is_told_of_twenty_refusals_in_a_second_however_many_are_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(limits, "HELD_SECONDS", 1.0)
    monkeypatch.setattr(limits, "MOST_HELD_SECONDS", 4.0)
    async with counting(NOBODY, 2) as fair_use:
        await fair_use.admit("person:a")
        with pytest.raises(TooManyRequests):
            await fair_use.admit("person:a", credentials=["one key"])
        monkeypatch.setattr(asyncio, "sleep", sleep)
        with pytest.raises(TooManyRequests):
            await fair_use.admit("person:a", credentials=["another key"])
        for number in range(100):
            with pytest.raises(TooManyRequests):
                await fair_use.require_not_refused(["one key" if number % 2 else "another key"])
        with pytest.raises(TooManyRequests):
            await fair_use.admit("person:a")
    assert slept[0] == pytest.approx(1.0)
    assert slept[0] < slept[20] < slept[40] <= 3.0
    assert max(slept) == slept[-1] == pytest.approx(4.0)  # nobody is held for longer


async def test_a_long_body_counts_as_several_requests_but_never_as_all(harness: AppHarness, caller: str) -> None:
    async with counting(harness.app.redis_url, 200) as fair_use:
        await fair_use.admit(caller, body_bytes=limits.BYTES_PER_REQUEST * 59)
        await fair_use.admit(caller, body_bytes=2**40)  # half of a minute's
        assert 40 <= await admitted(fair_use, caller, 300) < 160, "a minute that ends meanwhile gives some back"


async def test_a_long_body_counts_as_several_requests_without_redis_too() -> None:
    async with counting(NOBODY, 40) as fair_use:
        await fair_use.admit("key:a", body_bytes=limits.BYTES_PER_REQUEST * 9)
        assert await admitted(fair_use, "key:a", 30) == 10


async def test_a_limit_of_one_is_one_without_redis_too() -> None:
    async with counting(NOBODY, 1) as fair_use:
        assert await admitted(fair_use, "key:a", 5) == 1


async def test_a_redis_that_accepts_and_never_answers_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LIMIT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as mute, capture_logs() as logs:
        async with counting(ServerUrl(f"redis://127.0.0.1:{mute.getsockname()[1]}/0"), 10) as fair_use:
            assert await admitted(fair_use, "key:a", 30) == 5
    assert len(logs) == 1


async def test_redis_is_asked_again_after_a_while(
    harness: AppHarness, caller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ALONE_SECONDS", 0.0)
    async with counting(NOBODY, 10) as fair_use, counting(harness.app.redis_url, 10) as there:
        assert await admitted(fair_use, caller, 3) == 3
        fair_use._shared = there._shared  # Redis is back
        assert await admitted(fair_use, caller, 8) == 8, "what was counted alone does not count there"


async def test_a_process_that_counts_alone_remembers_so_many_callers_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MAX_CALLERS", 100)
    async with counting(NOBODY, 10) as fair_use:
        for number in range(1_000):
            await fair_use.admit(f"address:{number}")
        assert len(fair_use._alone) == 100


@pytest.mark.parametrize(
    ("host", "caller"),
    [
        ("192.0.2.7", "address:192.0.2.7"),
        ("::ffff:192.0.2.7", "address:192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "address:2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "address:2001:db8:1:2::/64"),
        ("not an address", "address:"),
        ("", "address:"),
    ],
)
def test_an_address_is_counted_by_its_network(host: str, caller: str) -> None:
    assert address_of(Request({"type": "http", "client": (host, 1), "headers": []})) == caller
    assert address_of(Request({"type": "http", "client": None, "headers": []})) == "address:"


@pytest.mark.parametrize(
    ("proxies", "forwarded", "caller"),
    [
        (None, "192.0.2.7", "address:192.0.2.7"),
        (None, "198.51.100.1, 192.0.2.7", "address:192.0.2.7"),  # what who asks has written stands first
        (None, "198.51.100.1, 192.0.2.7, 127.0.0.1", "address:192.0.2.7"),
        (None, "2001:db8::7", "address:2001:db8::/64"),
        (None, "nobody", "address:"),
        (None, "", "address:127.0.0.1"),
        ("10.0.0.0/8", "192.0.2.7", "address:127.0.0.1"),
        ("127.0.0.0/8,10.0.0.0/8", "192.0.2.7, 10.1.2.3", "address:192.0.2.7"),
    ],
)
async def test_only_a_trusted_proxy_says_who_asks(
    harness: AppHarness, proxies: str | None, forwarded: str, caller: str
) -> None:
    served = web_app(harness.app, Metrics(()), {}, None)

    @served.get("/v1/caller")
    async def show(request: Request) -> str:
        return address_of(request)

    headers = {"X-Forwarded-For": forwarded}
    async with served_at(served, web_proxies=proxies) as url, httpx2.AsyncClient(base_url=url) as client:
        assert (await client.get("/v1/caller", headers=headers)).json() == caller


async def test_who_asks_too_often_gets_a_problem_that_says_when_to_come_back(
    harness: AppHarness, settings: Settings
) -> None:
    app = replace(
        harness.app, settings=settings.model_copy(update={"requests_per_minute": 2}), redis_url=NOBODY
    )  # alone: the addresses of all tests are one
    served = web_app(app, Metrics(()), {}, None)

    @served.get("/v1/counted", dependencies=[Depends(counted_by_address)], responses=documented(429))
    async def counted() -> None:
        return None

    async with served_at(served) as url, httpx2.AsyncClient(base_url=url) as client:
        answers = await asyncio.gather(*(client.get("/v1/counted") for _ in range(5)))
        assert sorted(answer.status_code for answer in answers) == [200, 429, 429, 429, 429]
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert refused.headers["content-type"] == "application/problem+json"
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.json()["detail"].endswith("as long as the header Retry-After says.")
        assert (await client.get("/ready")).status_code == 200, "what machines inside ask is counted apart"
        assert [(await client.get("/metrics")).status_code for _ in range(2)] == [429] * 2
        assert (await client.get("/health")).status_code == 200, "and this asks nobody"


async def test_a_person_counts_once_with_all_keys_and_tools_and_wrong_keys_for_their_address(
    harness: AppHarness,
) -> None:
    few = harness.app.settings.model_copy(update={"requests_per_minute": 8, "admin_requests_per_minute": 2})
    served = web_app(replace(harness.app, settings=few), Metrics(()), {}, None)

    @served.get("/v1/mine")
    async def mine(principal: Bearer) -> str:
        return str(principal.user)

    @served.get("/v1/ours")
    async def ours(principal: Admin) -> str:
        return str(principal.user)

    admin = await person(harness, "alice")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(admin.id, True)
    alice, bob = await key_of(harness, "alice"), await key_of(harness, "bob")
    many = [await key_of(harness, "carol", vendor) for vendor in (None, None, "claude", "cursor")]
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url) as client:

        async def statuses(path: str, key: str, times: int) -> list[int]:
            return [(await client.get(path, headers=bearer(key))).status_code for _ in range(times)]

        wrong = await statuses("/v1/mine", "nx_wrong", 20)
        assert set(wrong) == {401, 429}
        assert wrong[:8] == [401] * 8
        assert await statuses("/v1/mine", bob, 3) == [200] * 3, "a right key is not counted with them"
        assert await statuses("/v1/ours", bob, 1) == [403]
        assert set(await statuses("/v1/ours", alice, 5)) == {200, 429}
        assert (await statuses("/v1/mine", alice, 1)) == [200], "the lower limit is of what admins may do"
        assert set(await statuses("/v1/mine", alice, 20)) == {200, 429}
        assert [status for key in many for status in await statuses("/v1/whoami", key, 2)] == [200] * 8
        assert 429 in [status for key in many for status in await statuses("/v1/whoami", key, 5)]
        assert await statuses("/v1/mine", bob, 1) == [200]
        browser = {"Cookie": f"{COOKIE_ON_LOCALHOST}={await cookie_of(harness, 'carol')}"}
        assert (await client.get("/v1/mine", headers=browser)).status_code == 200, "where they end a tool that does so"


async def test_a_refused_flood_asks_neither_redis_nor_the_database_whose_it_is(
    harness: AppHarness, statements: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AGAIN_SECONDS", 3_600.0)
    key, other = await key_of(harness, "alice"), await key_of(harness, "bob")
    few = harness.app.settings.model_copy(update={"requests_per_minute": 3})
    served = web_app(replace(harness.app, settings=few), Metrics(()), {}, None)
    async with served_at(served) as url, httpx2.AsyncClient(base_url=url) as client:

        async def flood() -> httpx2.Response:
            answers = [await client.get("/v1/whoami", headers=bearer(key)) for _ in range(20)]
            return answers[-1]

        assert (await flood()).status_code == 429
        statements.clear()
        monkeypatch.setattr(FairUse, "_wait", None)
        refused = await flood()
        assert (refused.status_code, 1 <= int(refused.headers["Retry-After"]) <= 60) == (429, True)
        assert not statements
        monkeypatch.undo()
        assert (await client.get("/v1/whoami", headers=bearer(other))).status_code == 200
