"""An answer over the API, and what it is made from is taken away while the model writes.
Forgetting reaches every layer (docs/architecture.md), as in a chat (test_erased_sources_of_answers.py)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from bot.web.routes.query import MADE_OF_TAKEN
from composer.entries import teams
from tests.integration.test_chat_routes import events_of
from tests.support.api import bearer, key_of
from tests.support.discord.harness import Model
from tests.support.entries import Hub
from tests.support.harness import AppHarness
from tests.support.receiver import connection_of
from tests.support.waiting import until

QUESTION = {"question": "where is the vault?", "answer": True}
Act = Callable[[], Awaitable[object]]


@pytest.fixture
def harness(answering: AppHarness) -> AppHarness:
    return answering


async def asked_while(client: httpx2.AsyncClient, model: Model, key: str, act: Act, *, stream: bool) -> httpx2.Response:
    """The answer to a question, and something happens while its model is silent."""
    model.gate, before = asyncio.Event(), len(model.shown)
    asking = asyncio.create_task(
        client.post(f"/v1/query{'/stream' if stream else ''}", json=QUESTION, headers=bearer(key))
    )
    await until(lambda: len(model.shown) > before)
    await act()
    model.gate.set()
    return await asking


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("act", ["forget", "forget everything", "trash", "change", "title", "tag", "kept"])
async def test_no_answer_is_given_from_an_entry_that_was_taken_away_meanwhile(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient, model: Model, act: str, stream: bool
) -> None:
    draft: dict[str, Any] = {"title": "of zqorchid", "tags": ["zqorchids"]} if act in ("title", "tag") else {}
    words = "the vault is behind it" if draft else "the vault is behind zqorchid"
    entry = (await hub.write("alice", words, **draft)).entry
    own, tool = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    acts: dict[str, Act] = {
        "forget": lambda: client.post(f"/v1/entries/{entry.id}/forget", headers=bearer(own)),
        "forget everything": lambda: harness.command("alice", "/nexus forget everything --yes", dm="nexus"),
        "trash": lambda: client.delete(f"/v1/entries/{entry.id}", headers=bearer(own)),
        "change": lambda: client.patch(f"/v1/entries/{entry.id}", json={"content": "it is gone"}, headers=bearer(own)),
        "title": lambda: client.patch(f"/v1/entries/{entry.id}", json={"title": "it is gone"}, headers=bearer(own)),
        "tag": lambda: client.patch(f"/v1/entries/{entry.id}", json={"tags": []}, headers=bearer(own)),
        "kept": lambda: client.patch(f"/v1/entries/{entry.id}", json={"tags": ["safe"]}, headers=bearer(own)),
    }
    answer = await asked_while(client, model, tool, acts[act], stream=stream)
    said = events_of(answer.text)[1:] if stream else [("reply", answer.json())]
    if act == "kept":
        assert "zqorchid" in str(said)
        return
    assert "zqorchid" not in str(said)
    assert MADE_OF_TAKEN in answer.text


@pytest.mark.parametrize("corrected", [True, False])
async def test_no_answer_is_given_from_a_landmark_whose_text_was_corrected_meanwhile(
    harness: AppHarness, client: httpx2.AsyncClient, model: Model, corrected: bool
) -> None:
    await harness.say("alice", "hello", dm="nexus")
    await harness.command("alice", "/nexus landmark add the vault is behind zqorchid --everywhere --yes", dm="nexus")
    tenant = harness.workspace().tenant_id

    async def correct() -> None:
        async with harness.app.database.transaction(tenant) as tx:
            (landmark,) = await connection_of(tx).fetch("SELECT id FROM landmarks")
            await tx.landmarks.correct(landmark["id"], "it is gone" if corrected else "the vault is behind zqorchid")

    answer = await asked_while(client, model, await key_of(harness, "alice"), correct, stream=False)
    assert (answer.status_code == 409) is corrected, answer.text
    assert ("zqorchid" in answer.text) is not corrected


async def test_no_answer_is_given_from_what_was_shared_with_a_team_until_then(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient, model: Model
) -> None:
    async with hub.request("bob") as (tx, access):
        team = await teams.create(tx, access, "Ops", "e-team", harness.clock.now())
    entry = (await hub.write("bob", "the vault is behind zqorchid")).entry
    await hub.share("bob", entry.id, team)
    alice, bob = await key_of(harness, "alice"), await key_of(harness, "bob")
    me = (await client.get("/v1/whoami", headers=bearer(alice))).json()["user"]
    await client.post(f"/v1/teams/{team}/invites", json={"user": me}, headers=bearer(bob))
    assert (await client.post(f"/v1/teams/{team}/accept", headers=bearer(alice))).status_code == 204

    async def unshare() -> None:
        assert (await client.delete(f"/v1/entries/{entry.id}/team", headers=bearer(bob))).status_code == 200

    answer = await asked_while(client, model, alice, unshare, stream=False)
    assert (answer.status_code, answer.json()["detail"]) == (409, MADE_OF_TAKEN)


async def test_a_stream_from_what_was_forgotten_ends_before_its_model_does(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient, model: Model
) -> None:
    entry = (await hub.write("alice", "the vault is behind zqorchid")).entry
    own = await key_of(harness, "alice")
    model.gate, before = asyncio.Event(), len(model.shown)
    asking = asyncio.create_task(client.post("/v1/query/stream", json=QUESTION, headers=bearer(own)))
    await until(lambda: len(model.shown) > before)
    await client.post(f"/v1/entries/{entry.id}/forget", headers=bearer(own))
    heard = events_of((await asking).text)
    model.gate.set()
    assert heard[-2][1]["text"] == MADE_OF_TAKEN
