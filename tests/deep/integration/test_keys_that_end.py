"""A key that ends with all of its person stores, sets and makes nothing after that."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from bot.commands.command import CommandAnswer
from bot.web.sessions import ApiSessions
from composer.app import App
from composer.people.credentials.issuing import require_valid
from composer.settings import Settings
from tests.deep.integration.test_interrupted_commands import answered, interrupt, taken_over
from tests.integration.test_compaction import rows
from tests.support.api import bearer, key_of
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.held_erasure import HeldErasure
from tests.support.lock_waits import until_stopped
from tests.support.waiting import TIMEOUT_SECONDS

BOARD: dict[str, Any] = {"room": "board"}


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update={"requests_per_minute": 10_000})) as harness:
        yield harness


async def did(
    client: httpx2.AsyncClient, method: str, path: str, headers: dict[str, str], **body: Any
) -> httpx2.Response:
    return await client.request(method, path, json=body or None, headers=headers)


async def texts(settings: Settings) -> set[str]:
    return {row["text"] for row in await rows(settings, "SELECT text FROM memories")}


# docs/keys.md: when its person forgets everything, a key goes with it. docs/architecture.md: forgetting reaches every
# layer. A message waited for an erasure that went on; one that began right after that was not seen, and the message was
# stored and answered behind it.
@pytest.mark.parametrize("before", ["it is opened", "it is stored"])
@pytest.mark.parametrize("known", [False, True])
async def test_no_message_is_stored_by_a_key_that_ends_before(
    harness: AppHarness,
    client: httpx2.AsyncClient,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    known: bool,
) -> None:
    key = bearer(await key_of(harness, "alice"))
    if known:
        assert (await client.post("/v1/chat", json={"content": "hello", "session": "zqname"}, headers=key)).is_success
    receive, ask, forgets = App.receive, ApiSessions.ask, [True]

    async def forget() -> None:
        if forgets:
            forgets.clear()
            await harness.command("alice", "/nexus forget everything --yes", dm="nexus")

    async def asks(sessions: ApiSessions, *arguments: Any, **named: Any) -> Any:
        if before == "it is opened":
            await forget()
        return await ask(sessions, *arguments, **named)

    async def receives(app: App, *arguments: Any, **named: Any) -> Any:
        if "admit" in named or arguments[0].platform == "api":
            await forget()
        return await receive(app, *arguments, **named)

    monkeypatch.setattr(ApiSessions, "ask", asks)
    monkeypatch.setattr(App, "receive", receives)
    answer = await client.post("/v1/chat", json={"content": "zqlate", "session": "zqname"}, headers=key)
    assert answer.status_code == 401, answer.text
    await harness.app.turns.settle()
    assert await rows(settings, "SELECT 1 FROM messages WHERE text LIKE '%zqlate%'") == []
    assert await rows(settings, "SELECT 1 FROM conversations WHERE name = 'zqname'") == []


# docs/architecture.md: forgetting reaches every layer. What a key was let in with is stored before an erasure that
# begins after it was looked at: that finds the message, and the name of the session. One that made the person known to
# the API waited for their row, which the erasure had locked, and the erasure for the message.
@pytest.mark.parametrize("command", ["forget everything --yes", "erase user alice --yes"])
@pytest.mark.parametrize("step", [1, 2], ids=["it is opened", "it is stored"])
async def test_what_is_said_by_a_key_while_all_of_its_person_is_forgotten_goes_too(
    harness: AppHarness,
    client: httpx2.AsyncClient,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    command: str,
) -> None:
    seen, forgetting = itertools.count(1), list[asyncio.Task[CommandAnswer]]()

    async def valid(*arguments: Any) -> None:
        await require_valid(*arguments)
        if next(seen) == step:
            forget = harness.command("alice", f"/nexus {command}", dm="nexus")
            forgetting.append(asyncio.create_task(forget))
            await until_stopped(settings, forgetting[0])

    key = bearer(await key_of(harness, "alice"))
    await harness.say("alice", "hello", dm="nexus")
    await rows(settings, "UPDATE users SET admin = true WHERE name = 'alice' RETURNING 1")
    monkeypatch.setattr("bot.web.routes.chat.require_valid", valid)
    await client.post("/v1/chat", json={"content": "zqlate", "session": "zqname"}, headers=key)
    assert (await forgetting[0]).text.startswith("Forgotten for good")
    await harness.app.turns.settle()
    assert await rows(settings, "SELECT 1 FROM messages WHERE text LIKE '%zqlate%'") == []
    assert await rows(settings, "SELECT 1 FROM conversations WHERE name = 'zqname'") == []


# docs/keys.md: when its person forgets everything, a key goes with it, and so does what they have set. A write of
# entries by a key that ends meanwhile was refused; what it set, and the team or project that it made, stayed.
@pytest.mark.parametrize(
    ("method", "path", "body", "left"),
    [
        ("PATCH", "/v1/settings", {"trash_days": 3}, "SELECT 1 FROM users WHERE settings IS NOT NULL"),
        ("POST", "/v1/teams", {"name": "zqteam"}, "SELECT 1 FROM teams"),
        ("POST", "/v1/projects", {"name": "zqproject"}, "SELECT 1 FROM projects"),
    ],
)
async def test_nothing_is_set_or_made_by_a_key_behind_the_erasure_that_ended_it(
    harness: AppHarness,
    client: httpx2.AsyncClient,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    body: dict[str, Any],
    left: str,
) -> None:
    held = HeldErasure(monkeypatch, "store_receipt")
    key = bearer(await key_of(harness, "alice"))
    await harness.say("alice", "hello", dm="nexus")
    erasing = asyncio.create_task(harness.command("alice", "/nexus forget everything --yes", dm="nexus"))
    await held.until_held()
    asking = asyncio.create_task(did(client, method, path, key, **body))
    await asyncio.wait_for(held.lock_wanted.wait(), TIMEOUT_SECONDS)
    held.go.set()
    await erasing
    assert ((await asking).status_code, await rows(settings, left)) == (401, [])


# docs/architecture.md: an erasure that is done late takes what there was when it was asked for. An entry counted as it
# was made first, so that what had been written with its key since then went with it.
async def test_what_is_written_with_a_key_stays_where_all_from_before_is_forgotten_late(
    harness: AppHarness, settings: Settings
) -> None:
    hub = Hub(harness)
    await harness.say("alice", "hello", **BOARD)
    await hub.write("alice", "zqold", "cursor", key="replaced")
    await hub.write("alice", "zqsame", "cursor", key="again")
    await hub.write("alice", "zqpart", "cursor", key="in part", metadata={"from": "before"})
    changed = (await hub.write("alice", "zqchanged", "cursor")).entry
    await interrupt(harness, "alice", "forget everything --yes")
    harness.clock.tick(60)
    await hub.write("alice", "zqnew", "cursor", key="replaced")
    await hub.write("alice", "zqsame", "cursor", key="again")
    await hub.write("alice", "zqother part", "cursor", key="in part")
    await hub.change("alice", changed.id, title="zqtitle")
    [given] = await taken_over(harness, settings)
    assert (await answered(harness, given)).startswith("Forgotten for good")
    assert await texts(settings) == {"zqnew", "zqsame"}
