"""Questions to entries over the API, on a real server: what is found, by whom, within how many tokens, and answers."""

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.settings import Settings
from composer.text.offline import OFFLINE
from tests.integration.test_chat_routes import events_of
from tests.support.api import bearer, key_of
from tests.support.discord.harness import Model
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.projects import join_project
from tests.support.waiting import until
from tests.support.web import served_at


@pytest.fixture
def harness(answering: AppHarness) -> AppHarness:
    return answering


async def query(client: httpx2.AsyncClient, key: str, question: str, **options: Any) -> Mapping[str, Any]:
    answer = await client.post("/v1/query", json={"question": question, **options}, headers=bearer(key))
    assert answer.status_code == 200, answer.text
    found: Mapping[str, Any] = answer.json()
    return found


def texts(found: Mapping[str, Any]) -> str:
    return "\n".join(item["text"] for item in found["items"])


async def test_a_search_by_address_finds_what_a_question_finds(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    await hub.write("alice", "The vault is behind the zqorchid painting.", title="Where the vault is", tags=("safe",))
    await hub.write("alice", "The vault is opened at noon.", kind="decision")
    await hub.write("bob", "The vault of bob is zqhidden.")
    for key in (await key_of(harness, "alice"), await key_of(harness, "alice", "claude")):
        same: list[tuple[dict[str, Any], dict[str, Any]]] = [
            ({}, {}),
            ({"limit": 1}, {"limit": 1}),
            ({"budget": 5}, {"budget": 5}),
            ({"strategy": "recent"}, {"strategy": "recent"}),
            ({"kind": ["decision"]}, {"kinds": ["decision"]}),
            ({"tag": ["safe"]}, {"tags": ["safe"]}),
        ]
        for given, options in same:
            asked = {"q": "where is the vault?", **given}
            answer = await client.get("/v1/agent/search", params=asked, headers=bearer(key))
            assert answer.status_code == 200, answer.text
            assert answer.json() == await query(client, key, "where is the vault?", **options)
            assert "zqhidden" not in answer.text
    refused: list[dict[str, Any]] = [{}, {"q": ""}, {"q": " "}, {"q": "x", "limit": 51}, {"q": "x", "kind": "secret"}]
    for wrong in refused:
        assert (await client.get("/v1/agent/search", params=wrong, headers=bearer(key))).status_code == 422
    elsewhere = await client.get("/v1/agent/search", params={"q": "x", "project": "artemis"}, headers=bearer(key))
    assert elsewhere.status_code == 404


async def test_a_question_finds_entries_by_meaning_and_words(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    await hub.write("alice", "The vault is behind the zqorchid painting.", title="Where the vault is", tags=("safe",))
    await hub.write("alice", "We eat lunch at noon.")
    key = await key_of(harness, "alice")
    found = await query(client, key, "where is the vault?")
    [item] = found["items"]
    assert (item["title"], item["tags"], item["origin"], item["cut"]) == ("Where the vault is", ["safe"], "api", False)
    assert "zqorchid" in item["text"]
    assert item["shared_with"] == {"who": "nobody", "id": None}
    assert found["tokens"] == item["tokens"] > 0
    assert (found["answer"], found["usage"]) == (None, None)
    for strategy in ("hybrid", "semantic", "recent"):
        assert "zqorchid" in texts(await query(client, key, "where is the vault?", strategy=strategy)), strategy
    assert (await query(client, key, "thanks!"))["items"] == []


async def test_a_question_finds_nothing_of_rooms_dms_sessions_and_others(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    for place in ({"room": "general"}, {"dm": "nexus"}, {"session": "s1"}):
        await harness.say("alice", "@nexus the vault is behind zqsaid", **place)
        await harness.command("alice", "/nexus remember the vault is behind zqnoted", **place)
        await harness.command("alice", "/nexus fact set vault zqfact", **place)
    await hub.write("bob", "the vault is behind zqbobs")
    key, tool = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    for each in (key, tool):
        assert (await query(client, each, "what is the vault behind?"))["items"] == []
    await hub.write("alice", "the vault is behind zqmine")
    for each in (key, tool):
        assert texts(await query(client, each, "what is the vault behind?")) == "the vault is behind zqmine"


async def test_a_tool_finds_what_its_person_lets_it_read(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    await hub.write("alice", "the vault is behind zqall")
    await hub.write("alice", "the vault is behind zqclaude", vendors=("claude",))
    await hub.write("alice", "the vault is behind zqcursor", vendors=("cursor",))
    trashed = await hub.write("alice", "the vault is behind zqtrashed")
    assert trashed.entry is not None
    await hub.trash("alice", trashed.entry.id)
    found = texts(await query(client, await key_of(harness, "alice", "claude"), "what is the vault behind?"))
    assert [word for word in ("zqall", "zqclaude", "zqcursor", "zqtrashed") if word in found] == ["zqall", "zqclaude"]
    whole = texts(await query(client, await key_of(harness, "alice"), "what is the vault behind?"))
    assert [w for w in ("zqall", "zqclaude", "zqcursor", "zqtrashed") if w in whole] == [
        "zqall",
        "zqclaude",
        "zqcursor",
    ]
    less = await key_of(harness, "alice", "claude", ["projects:read"])
    assert (await query(client, less, "what is the vault behind?"))["items"] == []


async def test_facts_and_landmarks_that_have_words_of_the_question_come_first(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    await hub.write("alice", "the vault was painted green")
    await harness.command("alice", "/nexus fact set vault_code zq4711 --everywhere --yes", dm="nexus")
    await harness.command("alice", "/nexus fact set lunch zqnoon --everywhere --yes", dm="nexus")
    key = await key_of(harness, "alice")
    first, second = (await query(client, key, "what of the vault?"))["items"]
    assert (first["kind"], "zq4711" in first["text"], first["shared_with"]["who"]) == ("fact", True, "everyone")
    assert "green" in second["text"]
    assert [i["kind"] for i in (await query(client, key, "what of the vault?", kinds=["fact"]))["items"]] == ["fact"]


async def test_a_project_is_read_by_its_members_and_an_isolated_one_alone(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    await harness.say("alice", "hello", room="general")
    await harness.command("alice", "/nexus project create apollo", room="general")
    await harness.command("alice", "/nexus project create ares --isolated", room="general")
    async with hub.request("alice") as (_, access):
        projects = {each.slug: each.id for each in access.projects}
    await hub.write("alice", "the vault is behind zqown")
    await hub.write("alice", "the vault is behind zqapollo", project=projects["apollo"])
    await hub.write("alice", "the vault is behind zqares", project=projects["ares"])
    alice, bob = await key_of(harness, "alice"), await key_of(harness, "bob")

    async def words(**options: Any) -> list[str]:
        found = texts(await query(client, alice, "what is the vault behind?", **options))
        return [word for word in ("zqown", "zqapollo", "zqares") if word in found]

    assert await words() == ["zqown", "zqapollo"]
    assert await words(project="apollo") == ["zqown", "zqapollo"]
    assert await words(project=str(projects["ares"])) == ["zqares"]
    for named in ("apollo", str(projects["ares"]), "zeus", str(uuid.uuid4())):
        body = {"question": "what is the vault behind?", "project": named}
        answer = await client.post("/v1/query", json=body, headers=bearer(bob))
        assert (answer.status_code, answer.json()["detail"]) == (404, f"There is no project '{named}' here.")


async def test_what_is_ones_own_is_told_from_what_a_namesake_wrote(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    namesake = "al\u0456ce"  # with a Cyrillic letter
    await hub.user(namesake)
    await harness.command("alice", "/nexus project create apollo", dm="nexus")
    await join_project(harness, "alice", "apollo", namesake)
    async with hub.request("alice") as (_, access):
        (apollo,) = [each.id for each in access.projects]
    await hub.write("alice", "I prefer tea in the morning", kind="preference")
    await hub.write(namesake, "I prefer zqcoffee in the morning", kind="preference", project=apollo)
    found = await query(client, await key_of(harness, "alice"), "what do I prefer in the morning?", project=str(apollo))
    assert {item["text"].split()[2]: item["yours"] for item in found["items"]} == {"tea": True, "zqcoffee": False}


async def test_kinds_and_tags_leave_what_has_them(harness: AppHarness, hub: Hub, client: httpx2.AsyncClient) -> None:
    await hub.write("alice", "the vault is behind zqone", kind="procedural", tags=("a", "b"))
    await hub.write("alice", "the vault is behind zqtwo", kind="factual", tags=("a",))
    key = await key_of(harness, "alice")
    asked = "what is the vault behind?"
    assert texts(await query(client, key, asked, kinds=["factual"])) == "the vault is behind zqtwo"
    assert texts(await query(client, key, asked, tags=["b"])) == "the vault is behind zqone"
    assert len((await query(client, key, asked, tags=["a"]))["items"]) == 2
    assert (await query(client, key, asked, tags=["c"]))["items"] == []


async def test_what_is_found_has_at_most_as_many_tokens_as_wanted(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    for number in range(6):
        await hub.write("alice", f"vault number {number} is behind " + f"painting{number} " * 20)
    key = await key_of(harness, "alice")
    for budget in (0, 19, 20, 50, 100, 1_000, 16_000):
        found = await query(client, key, "which painting is the vault behind?", budget=budget)
        assert found["tokens"] == sum(item["tokens"] for item in found["items"]) <= budget
        assert all(len(item["text"].encode()) <= 4 * item["tokens"] for item in found["items"])
        assert (budget < 20) == (found["items"] == [])
    assert [item["cut"] for item in (await query(client, key, "which painting?", budget=100))["items"]][-1]


async def test_an_answer_is_made_from_what_was_found_alone_and_recorded(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient, model: Model
) -> None:
    await harness.say("alice", "the vault is behind zqdm", dm="nexus")
    await hub.write("alice", "the vault is behind zqorchid")
    await hub.write("bob", "the vault is behind zqbobs")
    key, shown = await key_of(harness, "alice", "claude"), len(model.shown)
    model.says = ["Behind zqorchid (s1)."]
    found = await query(client, key, "what is the vault behind?", answer=True)
    assert found["answer"] == "Behind zqorchid (s1)."
    assert [(item["mark"], item["cited"]) for item in found["items"]] == [("s1", True)]
    assert found["usage"]["model"] == "gpt-4o"
    [prompt] = model.shown[shown:]
    assert "zqorchid" in prompt
    assert "zqdm" not in prompt
    assert "zqbobs" not in prompt
    nothing = await query(client, key, "who won the cricket cup?", answer=True)
    assert (nothing["answer"], nothing["usage"]["model"]) == ("I remember nothing that fits your question.", "")
    assert len(model.shown) == shown + 1, "no model is asked without a source"
    usage = (await harness.command("alice", "/nexus usage", dm="nexus")).text
    assert "2 calls, 20 + 20 tokens" in usage, "the answer in the DM, and this one"


async def test_a_streamed_answer_tells_what_was_found_first(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient, model: Model
) -> None:
    await hub.write("alice", "the vault is behind zqorchid")
    key = await key_of(harness, "alice")
    model.says = ["Behind zqorchid (s1)."]
    body = {"question": "what is the vault behind?", "answer": True}
    found = events_of((await client.post("/v1/query/stream", json=body, headers=bearer(key))).text)
    assert [name for name, _ in found] == ["start", "chunk", "chunk", "reply", "done"]
    start, reply = found[0][1], found[3][1]
    assert isinstance(start["items"], list)
    assert len(start["items"]) == 1
    assert reply["answer"] == "Behind zqorchid (s1)."


async def test_a_streamed_answer_ends_with_its_key(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient, model: Model
) -> None:
    await hub.write("alice", "the vault is behind zqorchid")
    key, shown = await key_of(harness, "alice"), len(model.shown)
    model.gate = asyncio.Event()
    body = {"question": "what is the vault behind?", "answer": True}
    asking = asyncio.create_task(client.post("/v1/query/stream", json=body, headers=bearer(key)))
    await until(lambda: len(model.shown) > shown)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.api_keys.revoke([stored.id for stored in await tx.api_keys.of(None)], harness.clock.now())
    found = events_of((await asking).text)
    assert [name for name, _ in found if name != "chunk"] == ["start", "failed", "done"]


async def test_without_a_model_the_answer_quotes_and_costs_nothing(settings: Settings) -> None:
    async with open_harness(settings) as harness:
        hub, key = Hub(harness), await key_of(harness, "alice")
        await hub.write("alice", "The vault is behind the zqorchid painting.")
        app = web_app(harness.app, Metrics([]), {}, None)
        async with served_at(app) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
            found = await query(client, key, "where is the vault?", answer=True)
        assert OFFLINE in found["answer"]
        assert "zqorchid" in found["answer"]
        assert found["items"][0]["cited"]
        usage = found["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (0, 0)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "`question` is missing."),
        ({"question": " "}, "A question has 1 to 20,000 ordinary characters."),
        ({"question": "a\x00"}, "A question has 1 to 20,000 ordinary characters."),
        ({"question": "x" * 20_001}, "A question has 1 to 20,000 ordinary characters."),
        ({"question": "x", "limit": 51}, "The limit is a number from 1 to 50."),
        ({"question": "x", "limit": 0}, "The limit is a number from 1 to 50."),
        ({"question": "x", "budget": 16_001}, "The budget is a number of tokens from 0 to 16,000."),
        ({"question": "x", "budget": -1}, "The budget is a number of tokens from 0 to 16,000."),
        ({"question": "x", "strategy": "best"}, "`strategy` is wrong"),
        ({"question": "x", "tags": ["t"] * 33}, "At most 32 kinds and 32 tags"),
        ({"question": "x", "vendor": "claude"}, "`vendor` is not known here."),
    ],
)
async def test_bad_input_is_refused_with_a_sentence(
    harness: AppHarness, client: httpx2.AsyncClient, body: dict[str, object], said: str
) -> None:
    answer = await client.post("/v1/query", json=body, headers=bearer(await key_of(harness, "alice")))
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(said)
