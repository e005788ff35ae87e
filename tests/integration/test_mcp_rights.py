"""Every tool, resource and prompt of MCP by every kind of viewer: whoever adds one says here what it is called with."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.entries import teams
from composer.settings import AgentSettings, Settings
from tests.support.api import key_of
from tests.support.discord.harness import Model
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.mcp_clients import called, mcp_client
from tests.support.web import served_at

pytestmark = pytest.mark.integration

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


@pytest.fixture
async def url(harness: AppHarness) -> AsyncIterator[str]:
    async with served_at(web_app(harness.app, Metrics([]), {}, None)) as url:
        yield url


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
