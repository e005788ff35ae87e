"""Attacks on what was repaired: the same race a little earlier or later, the sibling of what was mended, and what a repeat,
a slow client or a linked account makes of it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from bot.web import sessions as api_sessions
from bot.web.app import web_app
from bot.web.metrics import Metrics
from bot.web.sessions import EventKind
from composer.app import App
from composer.memory.forget import RETRACTED
from composer.settings import AgentSettings, Settings
from tests.integration.test_compaction import rows
from tests.support.api import bearer, key_of
from tests.support.api_sessions import serve_sessions, valid
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness
from tests.support.web import served_at

pytestmark = pytest.mark.integration


@pytest.fixture
async def http(harness: AppHarness) -> AsyncIterator[httpx2.AsyncClient]:
    async with served_at(web_app(harness.app, Metrics([]), {}, None)) as url, httpx2.AsyncClient(
        base_url=url, timeout=60
    ) as http:
        yield http


# docs/keys.md: when its person forgets everything, a key goes with it. DESIGN 8: forgetting reaches every layer. A
# message waited for an erasure that went on; one that began right after that was not seen, and the message was stored
# and answered behind it.
@pytest.mark.parametrize("before", ["it is opened", "it is stored"])
@pytest.mark.parametrize("known", [False, True])
async def test_no_message_is_stored_by_a_key_that_ends_before(
    harness: AppHarness,
    http: httpx2.AsyncClient,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    known: bool,
) -> None:
    key = bearer(await key_of(harness, "alice"))
    if known:
        assert (await http.post("/v1/chat", json={"content": "hello", "session": "zqname"}, headers=key)).is_success
    opened, receive, forgets = api_sessions.open_session, App.receive, [True]

    async def forget() -> None:
        if forgets:
            forgets.clear()
            await harness.command("alice", "/nexus forget everything --yes", dm="nexus")

    async def opens(*arguments: Any) -> Any:
        if before == "it is opened":
            await forget()
        return await opened(*arguments)

    async def receives(app: App, *arguments: Any, **named: Any) -> Any:
        if "admit" in named or arguments[0].platform == "api":
            await forget()
        return await receive(app, *arguments, **named)

    monkeypatch.setattr(api_sessions, "open_session", opens)
    monkeypatch.setattr(App, "receive", receives)
    answer = await http.post("/v1/chat", json={"content": "zqlate", "session": "zqname"}, headers=key)
    assert answer.status_code == 401, answer.text
    await harness.app.turns.settle()
    assert await rows(settings, "SELECT 1 FROM messages WHERE text LIKE '%zqlate%'") == []
    assert await rows(settings, "SELECT 1 FROM conversations WHERE name = 'zqname'") == []


# DESIGN 8: forgetting reaches every layer. The pieces of an answer are judged while it is written; who read it slowly was
# given the rest of them after it was whole, and retracted.
@pytest.mark.parametrize("forgotten", [True, False])
async def test_who_reads_slowly_is_given_no_piece_of_what_was_retracted_since(
    settings: Settings, model: Model, forgotten: bool
) -> None:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),)})
    async with open_harness(plain, model=model) as harness:
        await harness.say("alice", "hello", room="general")
        sessions = serve_sessions(harness, look_seconds=0.0)
        alice = await sessions.bearer("alice")
        await sessions.answer(alice, "the vault is behind zqorchid")
        answer = "As you told me a moment ago: it is behind zqorchid."
        model.says = [answer]
        asked = await sessions.ask(alice, "where is the vault?")
        await harness.app.turns.settle()  # it is whole, and nothing of it was read
        if forgotten:
            await harness.command("alice", "/nexus forget zqorchid --yes", dm="nexus")
        heard = [event async for event in sessions.served.follow(asked, valid)]
    assert (heard[-1].kind, heard[-1].text) == (EventKind.ANSWER, RETRACTED if forgotten else answer)
    assert any("zqorchid" in event.text for event in heard) is not forgotten
