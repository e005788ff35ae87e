"""What a person's own program asks to connect tools, to see what the gateway did for these, and for its reminders and
the digests of its rooms."""

import re
from datetime import timedelta

import httpx2

from composer.settings import AgentSettings, Settings
from tests.support.api import bearer, cookie_of, key_of
from tests.support.gateway import MODEL, gateway_stage
from tests.support.harness import AppHarness
from tests.support.pages import Person

DM, ROOM = {"dm": "nexus"}, {"room": "general"}


async def test_agents_are_listed_by_the_names_by_which_they_are_asked(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = bearer(await key_of(harness, "alice"))
    found = (await client.get("/v1/agents", headers=alice)).json()
    assert [each["slug"] for each in found["items"]] == [each.slug for each in harness.app.settings.agents]
    [first, *_] = found["items"]
    asked = {"content": "hello", "agent": first["slug"]}
    assert (await client.post("/v1/chat", json=asked, headers=alice)).status_code == 200
    assert (first["has_model"], first["model"]) == (False, None)


async def test_the_models_of_agents_and_of_the_gateway_are_named(settings: Settings) -> None:
    gateway = {"models": ["gpt-4o", "claude-sonnet"]}
    agents = (AgentSettings(model="gpt-4o"),)
    async with (
        gateway_stage(settings, gateway, uses_upstream=True, agents=agents) as stage,
        httpx2.AsyncClient(base_url=stage.url) as client,
    ):
        key = bearer(await key_of(stage.harness, "alice"))
        [agent] = (await client.get("/v1/agents", headers=key)).json()["items"]
        assert (agent["has_model"], agent["model"]) == (True, "gpt-4o")
        assert (await client.get("/v1/connect", headers=key)).json()["models"] == ["claude-sonnet", "gpt-4o"]
    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url) as client:
        key = bearer(await key_of(stage.harness, "alice"))
        told = (await client.get("/v1/connect", headers=key)).json()
        assert (told["gateway"] is not None, told["models"]) == (True, None), "whatever its server has"


async def test_the_guides_hold_what_the_page_shows_with_the_real_addresses(settings: Settings) -> None:
    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url) as client:
        key = bearer(await key_of(stage.harness, "alice"))
        told = (await client.get("/v1/connect", headers=key)).json()
        alice = Person(client, await cookie_of(stage.harness, "alice"))
        await alice.page("/tools")
        shown = (await alice.press("/tools", vendor="claude")).text
    assert told["mcp"] == f"{told['web']}/mcp"
    assert told["gateway"] == f"{told['web']}/v1"
    [made] = set(re.findall(r"nx_\w+_[0-9a-f]{64}", shown))
    assert {each["tool"] for each in told["guides"]} >= {"claude-code", "codex", "mcp", "openai", "rest"}
    for guide in told["guides"]:
        assert "nx_…" in guide["text"]
        escaped = guide["text"].replace("nx_…", made).replace('"', "&#34;").replace("'", "&#39;")
        assert escaped in shown, guide["tool"]


async def test_without_a_gateway_none_is_told(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    told = (await client.get("/v1/connect", headers=bearer(await key_of(harness, "alice")))).json()
    assert told["gateway"] is None
    assert told["oauth"] is False
    assert "openai" not in {each["tool"] for each in told["guides"]}


async def test_reminders_are_listed_and_cancelled_by_their_person_alone(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    await harness.command("alice", "/nexus remind me in 20 minutes stretch", **DM)
    await harness.command("alice", "/nexus remind here every weekday at 9:30 stand-up", **ROOM)
    alice, bob = [bearer(await key_of(harness, name)) for name in ("alice", "bob")]
    found = (await client.get("/v1/reminders", headers=alice)).json()["items"]
    assert [(each["text"], each["place"]) for each in found] == [
        ("stretch", "your DM with @nexus"),
        ("stand-up", "#general"),
    ]
    assert found[0]["repeats"] is None
    assert found[1]["repeats"] == "every weekday at 09:30"
    path = f"/v1/reminders/{found[0]['id']}"
    assert (await client.get("/v1/reminders", headers=bob)).json()["items"] == []
    assert (await client.delete(path, headers=bob)).status_code == 404
    assert (await client.delete(path, headers=alice)).status_code == 204
    assert (await client.delete(path, headers=alice)).status_code == 404
    left = (await client.get("/v1/reminders", headers=alice)).json()["items"]
    assert [each["text"] for each in left] == ["stand-up"]
    reader = bearer(await key_of(harness, "alice", permissions=["entries:read"]))
    assert (await client.get("/v1/reminders", headers=reader)).status_code == 403


async def test_a_room_s_digest_is_shown_to_who_is_there_and_set_by_its_admins(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    await harness.say("alice", "good morning", **ROOM)  # who opened it is its admin here
    await harness.say("bob", "good morning", **ROOM)
    await harness.say("carol", "good morning", room="secret", private=True)
    alice, bob, carol = [Person(client, await cookie_of(harness, name)) for name in ("alice", "bob", "carol")]
    [room] = (await alice.get("/v1/rooms")).json()["items"]
    path = f"/v1/rooms/{room['id']}/digest"

    async def put(person: Person, **body: object) -> httpx2.Response:
        headers = {"Sec-Fetch-Site": "same-origin"} | person._cookie()
        return await client.put(path, json=body, headers=headers)

    assert (await bob.get(path)).json() == {"period": None, "hour": None, "next_at": None}
    assert (await put(bob, period="daily")).status_code == 403
    assert (await put(carol, period="daily")).status_code == 404
    assert (await carol.get(path)).status_code == 404
    made = (await put(alice, period="weekly", hour=17)).json()
    assert (made["period"], made["hour"]) == ("weekly", 17)
    assert (await bob.get(path)).json() == made
    answer = await harness.command("alice", "/nexus digest", **ROOM)
    assert "the week before" in answer.text
    assert (await put(alice, period="daily", hour=24)).status_code == 422
    assert (await put(alice, period=None)).json() == {"period": None, "hour": None, "next_at": None}
    assert (await client.get(path, headers=bearer(await key_of(harness, "alice")))).status_code == 403


async def test_the_log_of_the_gateway_has_what_was_put_in_for_one_s_own_tools(settings: Settings) -> None:
    async with gateway_stage(settings) as stage, httpx2.AsyncClient(base_url=stage.url) as client:
        await stage.hub.write("alice", "the vault is behind the painting", "claude")
        await stage.hub.write("bob", "the vault is behind zqbob")
        asked = [{"role": "user", "content": "what is the vault behind?"}]
        for name in ("alice", "bob"):
            tool = await stage.client(name)
            await tool.chat.completions.create(model=MODEL, messages=asked)  # type: ignore[arg-type]
        alice = bearer(await key_of(stage.harness, "alice"))
        items = (await client.get("/v1/gateway/requests", headers=alice)).json()["items"]
        [put] = [each for each in items if each["what"] == "put"]
        assert (put["tool"], put["items"]) == ("cursor", 1)
        assert [(each["title"], each["standing"]) for each in put["entries"]] == [
            ("the vault is behind the painting", False)
        ]
        [said] = [each for each in items if each["what"] == "said"]
        assert (said["tool"], said["learnt_at"], said["entries"]) == ("cursor", None, [])
        await client.delete(f"/v1/entries/{put['entries'][0]['id']}", headers=alice)
        items = (await client.get("/v1/gateway/requests?limit=100", headers=alice)).json()["items"]
        [put] = [each for each in items if each["what"] == "put"]
        assert (put["items"], put["entries"]) == (1, []), "what may not be read now is counted alone"
        stage.harness.clock.tick(timedelta(hours=1).total_seconds())
        assert (await client.get("/v1/gateway/requests?limit=201", headers=alice)).status_code == 422
