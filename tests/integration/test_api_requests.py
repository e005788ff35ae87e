"""Writes over the API that name an idempotency key take effect once."""

import asyncio
import uuid
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from composer.errors import BadInput
from composer.repositories.requests import Begun, NamedRequest
from jobs.work import JobRun, expire
from tests.support.harness import AppHarness


async def request(harness: AppHarness, key: str = "k1", body: bytes = b"POST /v1/entries {}") -> NamedRequest:
    await harness.say("alice", "hello", room="general")
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        user = await tx.people.find_user("console", harness.workspace().name, "alice")
    assert user is not None
    return NamedRequest("key-1", user.id, key, body)


async def write(harness: AppHarness, named: NamedRequest, *, fails: bool = False) -> Begun | uuid.UUID:
    """Make something under an idempotency key."""
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        before = await tx.requests.begin(named, harness.clock.now())
        if before.made is not None:
            return before
        made = uuid.uuid4()
        await tx.requests.note_made(named, made)
        if fails:
            raise ArithmeticError
        return made


async def stored(harness: AppHarness) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        return list(await connection.fetch("SELECT * FROM requests"))
    finally:
        await connection.close()


async def test_a_repeated_write_is_told_what_the_first_one_made(harness: AppHarness) -> None:
    named = await request(harness)
    made = await write(harness, named)
    harness.clock.tick()
    again = await write(harness, named)
    assert isinstance(again, Begun)
    assert (again.made, again.at) == (made, harness.clock.now() - timedelta(minutes=1))
    assert isinstance(await write(harness, replace(named, key="k2")), uuid.UUID)
    assert isinstance(await write(harness, replace(named, caller="key-2")), uuid.UUID)


async def test_a_key_of_another_request_is_refused(harness: AppHarness) -> None:
    named = await request(harness)
    await write(harness, named)
    with pytest.raises(BadInput, match="used for another request"):
        await write(harness, replace(named, content=b"POST /v1/entries {1}"))


async def test_a_write_that_failed_is_made_when_it_is_repeated(harness: AppHarness) -> None:
    named = await request(harness)
    with pytest.raises(ArithmeticError):
        await write(harness, named, fails=True)
    assert isinstance(await write(harness, named), uuid.UUID)


async def test_of_many_at_once_one_takes_effect(harness: AppHarness) -> None:
    named = await request(harness)
    answers = await asyncio.gather(*(write(harness, named) for _ in range(8)))
    made = [answer for answer in answers if isinstance(answer, uuid.UUID)]
    assert len(made) == 1
    assert [each for each in answers if each != made[0]] == [Begun(harness.clock.now(), made[0])] * 7


async def test_after_a_day_the_same_key_is_that_of_a_new_write(harness: AppHarness) -> None:
    named = await request(harness)
    made = await write(harness, named)
    harness.clock.tick(timedelta(hours=23).total_seconds())
    assert isinstance(await write(harness, named), Begun)
    harness.clock.tick(timedelta(hours=1).total_seconds())
    another = await write(harness, replace(named, content=b"another"))
    assert isinstance(another, uuid.UUID)
    assert another != made
    assert len(await stored(harness)) == 1


async def test_no_text_of_the_request_or_its_key_is_stored_and_a_day_later_nothing(harness: AppHarness) -> None:
    named = await request(harness, key="zqkey \ud800", body=b"zqbody")
    await write(harness, named)
    assert "zq" not in str(await stored(harness))
    harness.clock.tick(timedelta(days=1, seconds=1).total_seconds())
    assert isinstance(await write(harness, replace(named, key="k3")), uuid.UUID)
    await expire(JobRun(harness.app, harness.clock.now(), print))
    assert len(await stored(harness)) == 1
