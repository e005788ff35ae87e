"""Whoever reads an answer slowly is given what holds by then."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.web.sessions import EventKind
from composer.errors import Unavailable
from composer.memory.forget import RETRACTED
from composer.settings import AgentSettings, Settings
from composer.turn.answers import AnswerStore
from tests.support.api_sessions import serve_sessions, valid
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import until


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update={"requests_per_minute": 10_000})) as harness:
        yield harness


# docs/architecture.md: a message is answered once, and when something fails the person is told so. Nothing of somebody
# who has opted out is kept once it is answered: who read that answer slowly was told that their question had been
# erased.
async def test_who_has_opted_out_and_reads_slowly_gets_the_answer(settings: Settings, model: Model) -> None:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),)})
    async with open_harness(plain, model=model) as harness:
        await harness.say("alice", "hello", room="general")
        await harness.command("alice", "/nexus opt-out", dm="nexus")
        sessions = serve_sessions(harness, look_seconds=0.0)
        model.says = ["The harbour opens at nine."]
        asked = await sessions.ask(await sessions.bearer("alice"), "when does the harbour open?")
        await harness.app.turns.settle()
        await harness.app.indexer.catch_up(harness.workspace().tenant_id)  # it is answered, and not kept
        heard = [event async for event in sessions.served.follow(asked, valid)]
    assert (heard[-1].kind, heard[-1].text) == (EventKind.ANSWER, "The harbour opens at nine.")


# docs/architecture.md: forgetting reaches every layer. An answer is written anew where the first one could not be
# stored. Whoever read slowly was given the pieces of the first one while the second was written, without what was
# forgotten between.
async def test_who_reads_slowly_is_given_no_piece_of_an_answer_that_was_thrown_away(
    settings: Settings, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),)})
    async with open_harness(plain, model=model) as harness:
        await harness.say("alice", "hello", room="general")
        sessions = serve_sessions(harness, look_seconds=0.0)
        alice = await sessions.bearer("alice")
        await sessions.answer(alice, "the vault is behind zqorchid")
        store = AnswerStore.store

        async def stored(*_: Any) -> None:
            monkeypatch.setattr(AnswerStore, "store", store)
            await harness.command("alice", "/nexus forget zqorchid --yes", dm="nexus")
            model.gate = asyncio.Event()
            raise Unavailable("The database is away.")

        monkeypatch.setattr(AnswerStore, "store", stored)
        model.says, before = ["Look behind zqorchid.", "I do not know that."], len(model.shown)
        asked = await sessions.ask(alice, "where is the vault?")
        await until(lambda: len(model.shown) == before + 2)
        heard = []
        async for event in sessions.served.follow(asked, valid):
            heard.append(event)
            if len(heard) > 1 and model.gate is not None:
                model.gate.set()
    assert (heard[-1].kind, heard[-1].text) == (EventKind.ANSWER, "I do not know that.")
    assert not any("zqorchid" in event.text for event in heard)


# docs/architecture.md: forgetting reaches every layer. The pieces of an answer are judged while it is written; who read
# it slowly was given the rest of them after it was whole, and retracted.
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
