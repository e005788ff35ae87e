"""The SDK's client in each of its modes, over HTTP on a real port: every tool, resource and prompt."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2
import pytest
from mcp.types import LATEST_PROTOCOL_VERSION

from bot.web.app import web_app
from bot.web.metrics import Metrics
from tests.support.api import bearer, key_of
from tests.support.harness import AppHarness
from tests.support.mcp_clients import called, mcp_client
from tests.support.web import served_at

SHARES: Final = ["entries:read", "entries:write", "teams:read", "teams:write", "projects:read"]


@pytest.fixture
async def url(harness: AppHarness) -> AsyncIterator[str]:
    async with served_at(web_app(harness.app, Metrics([]), {}, None)) as url:
        yield url


async def _prepared(harness: AppHarness) -> None:
    """A project with a landmark, a fact, and a team, all of alice's."""
    for line in (
        "/nexus project create apollo",
        "/nexus project assign apollo --yes",
        "/nexus landmark add we launch in May --project --yes",
        '/nexus fact set ship.name "Argo" --everywhere --yes',
    ):
        await harness.command("alice", line, dm="nexus")


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_every_tool_resource_and_prompt_answers_the_sdks_client(harness: AppHarness, url: str, mode: str) -> None:
    await _prepared(harness)
    own, key = await key_of(harness, "alice"), await key_of(harness, "alice", "claude", SHARES)
    async with httpx2.AsyncClient(base_url=url, headers=bearer(own), timeout=60) as http:
        assert (await http.post("/v1/teams", json={"name": "kitchen"})).status_code == 201
    async with mcp_client(url, key, mode) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else LATEST_PROTOCOL_VERSION)
        used: set[str] = set()

        async def use(tool: str, **given: Any) -> Any:
            used.add(tool)
            return await called(client, tool, **given)

        id = (await use("write_entry", content="We deploy on Fridays", tags=["ops"], kind="decision"))["id"]
        await harness.app.indexer.catch_up(harness.workspace().tenant_id)
        assert (await use("search", query="when do we deploy?"))["results"][0]["id"] == id
        assert (await use("fetch", id=id))["text"] == "We deploy on Fridays"
        assert [entry["id"] for entry in (await use("browse_entries"))["entries"]] == [id]
        assert [entry["id"] for entry in (await use("entries_by_tag", tag="ops"))["entries"]] == [id]
        assert (await use("latest_entry", kind="decision"))["id"] == id
        assert (await use("facts"))["facts"][0]["value"] == "Argo"
        assert (await use("share_entry", id=id, team="kitchen"))["state"] == "shared"
        assert [entry["id"] for entry in (await use("team_entries", team="kitchen"))["entries"]] == [id]
        await use("write_entry", content="of no use")
        assert (await use("forget_own", kind="note"))["counts"] == {"memory": 1}
        assert {tool.name for tool in (await client.list_tools()).tools} == used
        read = {
            template.uri_template: (await client.read_resource(filled)).contents[0]
            for template, filled in zip(
                (await client.list_resource_templates()).resource_templates,
                (f"nexus://entries/{id}", "nexus://projects/apollo/landmarks", f"nexus://days/{_today(harness)}"),
                strict=True,
            )
        }
        shown = [json.loads(content.text) for content in read.values()]  # type: ignore[union-attr]
        assert (shown[0]["id"], shown[1]["landmarks"][0]["text"]) == (id, "we launch in May")
        assert [entry["id"] for entry in shown[2]["entries"]] == [id]
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert prompts == ["recall", "remember"]
        [begun] = (await client.get_prompt("recall", {"topic": "deploys"})).messages
        assert id in begun.content.text  # type: ignore[union-attr]
        assert (await client.get_prompt("remember")).messages


def _today(harness: AppHarness) -> str:
    return harness.clock.now().date().isoformat()
