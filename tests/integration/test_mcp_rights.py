"""Every tool, resource and prompt of MCP by every kind of viewer: whoever adds one says here what it is called with."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from bot.web.mcp.caller import principal_of_request
from composer.entries import teams
from composer.people.credentials.principal import Principal
from composer.settings import AgentSettings, Settings
from tests.support.api import bearer, key_of
from tests.support.discord.harness import Model
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.mcp_clients import called, mcp_client

pytestmark = pytest.mark.usefixtures("tools_made_once")

# What each is called with, about the things of alice's. What a tool may not be shown, no call may show it.
CALLS: Final[dict[str, dict[str, str]]] = {
    "search": {"query": "zqcanary what is it about the ship"},
    "fetch": {"id": "<entry>"},
    "write_entry": {"content": "mine", "key": "zqkey"},
    "browse_entries": {"words": "zqcanary"},
    "entries_by_tag": {"tag": "zqtag"},
    "latest_entry": {},
    "team_entries": {"team": "<team>"},
    "share_entry": {"id": "<entry>", "team": "<team>"},
    "forget_own": {"kind": "fact"},
    "facts": {"about": "zqfact"},
}
RESOURCES: Final = {
    "nexus://entries/{id}": "nexus://entries/<entry>",
    "nexus://projects/{project}/landmarks": "nexus://projects/zqproject/landmarks",
    "nexus://days/{day}": "nexus://days/<day>",
}
PROMPTS: Final[dict[str, dict[str, str]]] = {"recall": {"topic": "zqcanary about the ship"}, "remember": {}}
SECRETS: Final = ("zqcanary", "zqtag", "zqkeyed", "zqteam", "zqproject", "zqmark", "zqfactvalue", "zqmeta")


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    many = {"agents": (AgentSettings(model="gpt-4o"),), "requests_per_minute": 100_000}
    async with open_harness(settings.model_copy(update=many), model=Model()) as harness:
        yield harness


async def _things(harness: AppHarness) -> dict[str, str]:
    """What alice has: an entry of each kind of place, a team, a project with a landmark, a fact."""
    hub = Hub(harness)
    for line in (
        "/nexus project create zqproject",
        "/nexus project assign zqproject --yes",
        "/nexus landmark add zqmark the ship leaves --project --yes",
        '/nexus fact set zqfact.ship "zqfactvalue" --everywhere --yes',
    ):
        await harness.command("alice", line, dm="nexus")
    values: dict[str, Any] = {"tags": ["zqtag"], "metadata": {"zqmeta": 1}, "title": "of the ship"}
    entry = (await hub.write("alice", "zqcanary is the name of the ship", key="zqkeyed", **values)).entry
    async with hub.request("alice") as (tx, access):
        team = await teams.create(tx, access, "zqteam", "e-team", harness.clock.now())
    shared = (await hub.write("alice", "zqcanary also for the team")).entry
    await hub.share("alice", shared.id, team)
    return {"<entry>": str(entry.id), "<team>": str(team), "<day>": str(harness.clock.now().date())}


async def _everything(client: Client, things: dict[str, str]) -> dict[str, str]:
    """What each tool, resource and prompt answers, with what was asked for taken out."""

    def filled(text: str) -> str:
        for name, value in things.items():
            text = text.replace(name, value)
        return text

    def without(said: str, asked: Any) -> str:
        for value in [asked] if isinstance(asked, str) else asked.values():
            said = said.replace(json.dumps(value)[1:-1], "")
        return said

    said: dict[str, str] = {}
    for tool, arguments in CALLS.items():
        given = {name: filled(value) for name, value in arguments.items()}
        said[tool] = without(json.dumps(await called(client, tool, **given)), given)
    for template, address in RESOURCES.items():
        try:
            [content] = (await client.read_resource(filled(address))).contents
            said[template] = content.text  # type: ignore[union-attr]
        except MCPError as error:
            said[template] = without(str(error), "zqproject")
    for prompt, given in PROMPTS.items():
        [message] = (await client.get_prompt(prompt, given)).messages
        said[prompt] = message.content.text  # type: ignore[union-attr]
    return said


async def test_every_tool_resource_and_prompt_says_what_it_is_called_with(harness: AppHarness, url: str) -> None:
    async with mcp_client(url, await key_of(harness, "alice", "claude")) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(CALLS)
        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == list(RESOURCES)
        assert (await client.list_resources()).resources == []
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == list(PROMPTS)


OTHERS: Final[dict[str, Callable[[AppHarness], Any]]] = {
    "another person's tool": lambda harness: key_of(harness, "bob", "claude"),
    "another person": lambda harness: key_of(harness, "bob"),
    "her tool that may only write": lambda harness: key_of(harness, "alice", "claude", ["entries:write"]),
    "a namesake of another tenant": lambda harness: key_of(harness, "alice", "claude", workspace="umbrella"),
}


async def test_her_own_tool_is_shown_all_of_it(harness: AppHarness, url: str) -> None:
    key = await key_of(harness, "alice", "claude", ["entries:read", "entries:write", "teams:write", "projects:read"])
    things = await _things(harness)
    async with mcp_client(url, key) as client:
        said = json.dumps(await _everything(client, things))
    assert [secret for secret in SECRETS if secret not in said] == []


@pytest.mark.parametrize("viewer", OTHERS)
async def test_what_is_hers_is_shown_to_nobody_else(harness: AppHarness, url: str, viewer: str) -> None:
    await key_of(harness, "alice", "cursor")
    things = await _things(harness)
    async with mcp_client(url, await OTHERS[viewer](harness)) as client:
        said = await _everything(client, things)
    assert {name: secret for name, text in said.items() for secret in SECRETS if secret in text} == {}


# What each sees of hers, over all that can be asked, and nothing else of it.
READ_ENTRIES: Final = {"zqcanary", "zqtag", "zqkeyed", "zqfactvalue", "zqmeta"}
SOME: Final[dict[str, tuple[Callable[[AppHarness], Any], set[str]]]] = {
    "her tool that may read entries alone": (
        lambda harness: key_of(harness, "alice", "claude", ["entries:read"]),
        READ_ENTRIES,
    ),
    "her tool that may read teams alone": (
        lambda harness: key_of(harness, "alice", "claude", ["teams:read"]),
        {"zqcanary", "zqteam"},
    ),
    "her tool that may read projects alone": (
        lambda harness: key_of(harness, "alice", "claude", ["projects:read"]),
        {"zqproject", "zqmark"},
    ),
    "a tool of somebody of her team": (lambda harness: key_of(harness, "carol", "claude"), {"zqcanary", "zqteam"}),
    "a tool of somebody of her project": (lambda harness: key_of(harness, "dave", "claude"), {"zqproject", "zqmark"}),
}


async def _let_others_in(harness: AppHarness, url: str, things: dict[str, str]) -> None:
    """Carol is in her team, and dave in her project."""
    own = bearer(await key_of(harness, "alice"))
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        users = {}
        for name in ("carol", "dave"):
            key = bearer(await key_of(harness, name))
            users[name] = (await http.get("/v1/whoami", headers=key)).json()["user"], key
        team, [project] = things["<team>"], (await http.get("/v1/projects", headers=own)).json()["items"]
        user, key = users["carol"]
        await http.post(f"/v1/teams/{team}/invites", headers=own, json={"user": user})
        assert (await http.post(f"/v1/teams/{team}/accept", headers=key)).status_code == 204
        at = f"/v1/projects/{project['id']}/members/{users['dave'][0]}"
        assert (await http.put(at, headers=own, json={"role": "read"})).status_code == 202
        joined = await http.post(f"/v1/projects/{project['id']}/accept", headers=users["dave"][1])
        assert joined.status_code == 204


@pytest.mark.parametrize("viewer", SOME)
async def test_some_of_hers_is_shown_to_whom_it_is_for(harness: AppHarness, url: str, viewer: str) -> None:
    await key_of(harness, "alice", "cursor")
    things = await _things(harness)
    await _let_others_in(harness, url, things)
    made, expected = SOME[viewer]
    async with mcp_client(url, await made(harness)) as client:
        said = await _everything(client, things)
    assert {secret for secret in SECRETS if secret in json.dumps(said)} == expected, said


async def test_while_she_has_recall_off_her_tools_are_shown_nothing(harness: AppHarness, url: str) -> None:
    key, own = await key_of(harness, "alice", "claude"), bearer(await key_of(harness, "alice"))
    things = await _things(harness)
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        assert (await http.patch("/v1/settings", headers=own, json={"recall": False})).status_code == 200
    async with mcp_client(url, key) as client:
        said = await _everything(client, things)
    assert [secret for secret in SECRETS if secret in json.dumps(said)] == []


# --- calls of several people at once ----------------------------------------------------------------------------------


async def _mixed(harness: AppHarness, url: str) -> list[str]:
    """Names whose calls were answered with something of somebody else, or without their own, when three people and a
    tool that may read nothing call at once over one pool of connections, in both revisions."""
    keys = {}
    for name in ("alice", "bob", "carol"):
        await Hub(harness).write(name, f"zq{name} is the name of the ship")
        keys[name] = await key_of(harness, name, "claude")
    keys["nobody"] = await key_of(harness, "alice", "cursor", ["entries:write"])
    async with httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=4)) as http:

        async def ask(name: str, number: int) -> str:
            params: dict[str, Any] = {"name": "search", "arguments": {"query": "what is the name of the ship"}}
            headers = {**bearer(keys[name]), "Accept": "application/json, text/event-stream"}
            headers["MCP-Protocol-Version"] = "2025-11-25"
            if number % 2:
                meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}
                params["_meta"] = {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}
                headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "search"}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = await http.post(f"{url}/mcp", headers=headers, json=body)
            assert answer.status_code == 200, answer.text
            shown = {each for each in keys if f"zq{each}" in answer.text}
            return "" if shown == {name} - {"nobody"} else name

        found = await asyncio.gather(*(ask(name, number) for number in range(8) for name in keys))
    return [name for name in found if name]


async def test_calls_of_several_people_at_once_are_not_mixed_up(harness: AppHarness, url: str) -> None:
    assert await _mixed(harness, url) == []


async def test_a_server_that_keeps_who_asked_first_is_noticed(
    harness: AppHarness, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Principal] = []

    async def first(context: Any) -> Principal:
        kept.append(await principal_of_request(context))
        return kept[0]

    monkeypatch.setattr("bot.web.mcp.transport.principal_of_request", first)
    assert await _mixed(harness, url) != []
