"""Conversations over the API, on a real server: answers, streams, lists, and what others and tools may not do."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx2
import pytest

from bot.console import schedule
from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.settings import AgentSettings, Settings
from tests.support.api import bearer, key_of
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness
from tests.support.waiting import until
from tests.support.web import served_at

AGENTS = (AgentSettings(model="gpt-4o"), AgentSettings(slug="scribe", name="Scribe", model="gpt-4o"))
Events = list[tuple[str, dict[str, object]]]


@pytest.fixture
async def harness(settings: Settings, model: Model) -> AsyncIterator[AppHarness]:
    many = {"agents": AGENTS, "requests_per_minute": 10_000}
    async with open_harness(settings.model_copy(update=many), model=model) as harness:
        for user in ("alice", "bob"):
            await harness.say(user, "hello", room="general")
        yield harness


@pytest.fixture
async def client(harness: AppHarness) -> AsyncIterator[httpx2.AsyncClient]:
    async with served(harness) as client:
        yield client


@asynccontextmanager
async def served(harness: AppHarness) -> AsyncIterator[httpx2.AsyncClient]:
    app = web_app(harness.app, Metrics([]), {}, None)
    async with served_at(app) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        yield client


def events_of(text: str) -> Events:
    """The events of a stream, without its heartbeats."""
    found: Events = []
    for block in filter(None, text.split("\n\n")):
        if not block.startswith(":"):
            name, data = block.split("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


async def test_a_person_asks_and_reads_what_was_said(
    harness: AppHarness, client: httpx2.AsyncClient, model: Model
) -> None:
    alice = bearer(await key_of(harness, "alice"))
    model.says = ["It is behind the painting."]
    answer = await client.post("/v1/chat", json={"content": "where is the vault?", "id": "q1"}, headers=alice)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["text"], body["state"]) == ("It is behind the painting.", "answered")
    assert (body["session"], body["agent"], body["project"]) == ("default", "nexus", None)
    assert body["usage"] == {"model": "gpt-4o", "prompt_tokens": 10, "completion_tokens": 10, "cached_tokens": 0}
    assert (await client.get(f"/v1/chat/turns/{body['turn']}", headers=alice)).json() == body
    [episode] = (await client.get("/v1/episodes", headers=alice)).json()["items"]
    assert (episode["id"], episode["content"], episode["answer"]) == ("q1", "where is the vault?", body["text"])
    [session] = (await client.get("/v1/chat/sessions", headers=alice)).json()["items"]
    assert (session["session"], session["agent"]) == ("default", "nexus")


async def test_a_session_is_shown_with_its_summaries_to_its_person_alone(
    harness: AppHarness, client: httpx2.AsyncClient, model: Model
) -> None:
    alice, bob = [bearer(await key_of(harness, name)) for name in ("alice", "bob")]
    for said in ("the vault is behind the painting", "the key is below the mat", "the door is green"):
        asked = {"content": said, "session": "house"}
        assert (await client.post("/v1/chat", json=asked, headers=alice)).status_code == 200
    await client.post("/v1/chat", json={"content": "something else", "session": "other"}, headers=alice)
    house, other = [
        each["id"]
        for name in ("house", "other")
        for each in (await client.get("/v1/chat/sessions", params={"q": name}, headers=alice)).json()["items"]
    ]
    empty = (await client.get(f"/v1/chat/sessions/{house}", headers=alice)).json()
    assert (empty["session"], empty["summaries"]) == ("house", [])
    harness.clock.tick(timedelta(days=2).total_seconds())
    for tier in ("session", "day"):
        model.says = ["1"]
        assert (await schedule.run(harness.app, tier, harness.clock.now())).done
    found = (await client.get(f"/v1/chat/sessions/{house}", headers=alice)).json()
    assert {"session", "day"} <= {each["tier"] for each in found["summaries"]}
    assert "vault" in str(found["summaries"])
    beside = (await client.get(f"/v1/chat/sessions/{other}", headers=alice)).json()["summaries"]
    assert [(each["tier"], each["text"]) for each in beside] == [("day", "alice: something else")]
    unknown = await client.get(f"/v1/chat/sessions/{uuid.UUID(int=7)}", headers=bob)
    foreign = await client.get(f"/v1/chat/sessions/{house}", headers=bob)
    assert (foreign.status_code, foreign.json()) == (404, unknown.json())
    tool = bearer(await key_of(harness, "alice", "claude"))
    assert (await client.get(f"/v1/chat/sessions/{house}", headers=tool)).status_code == 403


async def test_an_answer_names_what_it_was_made_from(
    harness: AppHarness, client: httpx2.AsyncClient, model: Model
) -> None:
    await harness.command("alice", "/nexus fact set vault zqpainting --everywhere --yes", dm="nexus")
    await harness.command(
        "alice", "/nexus remember the vault is behind the zqorchid painting --everywhere --yes", dm="nexus"
    )
    alice = bearer(await key_of(harness, "alice"))
    model.says = ["Behind the painting (s1)."]
    body = (await client.post("/v1/chat", json={"content": "where is the vault?"}, headers=alice)).json()
    by_kind = {source["kind"]: source for source in body["sources"]}
    assert "zqpainting" in by_kind["fact"]["text"]
    recalled = next(source for source in body["sources"] if source["mark"] == "s1")
    assert "zqorchid" in recalled["text"]
    assert recalled["cited"]


async def test_a_stream_tells_of_its_turn_its_chunks_and_its_end(
    harness: AppHarness, client: httpx2.AsyncClient, model: Model
) -> None:
    alice = bearer(await key_of(harness, "alice"))
    model.says = ["It is behind the painting."]
    answer = await client.post("/v1/chat/stream", json={"content": "where is it?"}, headers=alice)
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = events_of(answer.text)
    assert [name for name, _ in found] == ["start", "chunk", "chunk", "reply", "done"]
    assert "".join(str(data["text"]) for name, data in found if name == "chunk") == "It is behind the painting."
    assert (found[3][1]["text"], found[3][1]["turn"]) == ("It is behind the painting.", found[0][1]["turn"])


async def test_who_leaves_in_mid_stream_reads_the_answer_later(
    harness: AppHarness, client: httpx2.AsyncClient, model: Model
) -> None:
    alice = bearer(await key_of(harness, "alice"))
    model.gate, model.says = asyncio.Event(), ["It is behind the painting."]
    body = {"content": "where is it?"}
    async with client.stream("POST", "/v1/chat/stream", json=body, headers=alice) as stream:
        first = await anext(stream.aiter_text())
    turn = events_of(first)[0][1]["turn"]
    assert (await client.get(f"/v1/chat/turns/{turn}", headers=alice)).json()["state"] == "queued"
    model.gate.set()
    await harness.app.turns.settle()
    assert (await client.get(f"/v1/chat/turns/{turn}", headers=alice)).json()["text"] == "It is behind the painting."


async def test_a_stream_ends_when_the_key_is_revoked(
    harness: AppHarness, client: httpx2.AsyncClient, model: Model
) -> None:
    key = await key_of(harness, "alice")
    model.gate = asyncio.Event()
    body = {"content": "where is it?"}
    asking = asyncio.create_task(client.post("/v1/chat/stream", json=body, headers=bearer(key)))
    await until(lambda: bool(model.shown))
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.api_keys.revoke([stored.id for stored in await tx.api_keys.of(None)], harness.clock.now())
    found = events_of((await asking).text)
    assert [name for name, _ in found if name != "chunk"] == ["start", "failed", "done"]
    assert found[-2][1]["text"] == "The key is not valid any more."
    model.gate.set()


async def test_a_repeat_by_the_header_is_answered_from_what_is_stored(
    harness: AppHarness, client: httpx2.AsyncClient, model: Model
) -> None:
    alice = {**bearer(await key_of(harness, "alice")), "Idempotency-Key": "once"}
    model.says = ["the first", "the second"]
    first = await client.post("/v1/chat", json={"content": "which is it?"}, headers=alice)
    again = await client.post("/v1/chat", json={"content": "which is it?"}, headers=alice)
    assert (first.json()["text"], again.content) == ("the first", first.content)
    other = await client.post("/v1/chat", json={"content": "which is another?"}, headers=alice)
    assert (other.status_code, other.json()["title"]) == (422, "Unprocessable Entity")


async def test_a_failed_answer_says_why(harness: AppHarness, client: httpx2.AsyncClient, model: Model) -> None:
    alice = bearer(await key_of(harness, "alice"))
    model.broken = RuntimeError("zqsecret")
    answer = await client.post("/v1/chat", json={"content": "which is it?"}, headers=alice)
    assert (answer.status_code, answer.json()["state"]) == (200, "failed")
    assert "Something went wrong" in answer.json()["text"]
    streamed = events_of((await client.post("/v1/chat/stream", json={"content": "x"}, headers=alice)).text)
    assert [name for name, _ in streamed][-2:] == ["failed", "done"]


async def test_nobody_else_and_no_tool_reaches_what_was_said(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    alice, bob = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "bob"))
    tool = bearer(await key_of(harness, "alice", "claude"))
    turn = (await client.post("/v1/chat", json={"content": "zqorchid", "id": "q1"}, headers=alice)).json()["turn"]
    mine = await client.post("/v1/chat", json={"content": "what of it?", "id": "q1"}, headers=bob)
    assert "zqorchid" not in mine.text
    for path in (f"/v1/chat/turns/{turn}", f"/v1/chat/turns/{'0' * 8}-0000-4000-8000-{'0' * 12}"):
        answer = await client.get(path, headers=bob)
        assert (answer.status_code, answer.json()["detail"]) == (404, "There is no such turn.")
    assert "zqorchid" not in (await client.get("/v1/episodes", headers=bob)).text
    gone = await client.delete("/v1/chat/session/other", headers=bob)
    never = await client.delete("/v1/chat/session/never", headers=bob)
    assert gone.content.replace(b"other", b"never") == never.content
    for method, path in (
        ("POST", "/v1/chat"),
        ("GET", "/v1/episodes"),
        ("GET", "/v1/chat/sessions"),
        ("GET", f"/v1/chat/turns/{turn}"),
        ("DELETE", "/v1/chat/session/default"),
    ):
        body = {"content": "hello"} if method == "POST" else None
        assert (await client.request(method, path, headers=tool, json=body)).status_code == 403, path
        assert (await client.request(method, path, json=body)).status_code == 401, path
    assert len((await client.get("/v1/episodes", headers=alice)).json()["items"]) == 1


async def test_deleting_a_session_leaves_that_with_another_agent(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = bearer(await key_of(harness, "alice"))
    for agent in ("nexus", "scribe"):
        body = {"content": "the vault is zqorchid", "session": "work/äö", "agent": agent}
        assert (await client.post("/v1/chat", json=body, headers=alice)).status_code == 200
    answer = await client.delete("/v1/chat/session/work/äö", params={"agent": "scribe"}, headers=alice)
    assert answer.status_code == 200, answer.text
    assert answer.json()["erased"]["message"] == 1
    assert answer.json()["receipt"] in answer.json()["text"]
    [left] = (await client.get("/v1/episodes", headers=alice)).json()["items"]
    assert left["agent"] == "nexus"


async def test_a_session_in_a_project_says_what_it_opens(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await harness.command("alice", "/nexus project create apollo", room="general")
    alice, bob = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "bob"))
    body = {"content": "what is the plan?", "project": "apollo"}
    first = (await client.post("/v1/chat", json=body, headers=alice)).json()
    assert "everyone in apollo what is said in this session" in first["opens"]
    project = first["project"]["id"]
    second = (await client.post("/v1/chat", json={**body, "project": project}, headers=alice)).json()
    assert (second["opens"], second["project"]) == ("", first["project"])
    refused = await client.post("/v1/chat", json=body, headers=bob)
    unknown = await client.post("/v1/chat", json={**body, "project": "zeus"}, headers=bob)
    assert refused.status_code == unknown.status_code == 404
    assert refused.content.replace(b"apollo", b"zeus") == unknown.content
    listed = await client.get("/v1/episodes", params={"project": "apollo"}, headers=alice)
    assert len(listed.json()["items"]) == 2
    assert (await client.get("/v1/episodes", params={"project": "apollo"}, headers=bob)).status_code == 404
    await client.post("/v1/chat", json={"content": "outside"}, headers=alice)
    forgotten = await client.delete("/v1/chat/session/default", params={"project": project}, headers=alice)
    assert forgotten.json()["erased"]["message"] == 2
    assert len((await client.get("/v1/episodes", headers=alice)).json()["items"]) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "`content` is missing."),
        ({"content": " "}, "The message is empty: write some text, or attach a file."),
        ({"content": "x", "user": "bob"}, "`user` is not known here."),
        ({"content": "x", "agent": "nobody"}, "There is no such agent: choose one of nexus, scribe."),
        ({"content": "x", "session": "a\x00"}, "The name of the room, agent or session must have 1 to"),
        ({"content": "x", "id": "i" * 1_000}, "The name of the id must have 1 to"),
        ({"content": ["x"]}, "`content` is wrong"),
    ],
)
async def test_bad_input_is_refused_with_a_sentence(
    harness: AppHarness, client: httpx2.AsyncClient, body: dict[str, object], said: str
) -> None:
    answer = await client.post("/v1/chat", json=body, headers=bearer(await key_of(harness, "alice")))
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(said)
