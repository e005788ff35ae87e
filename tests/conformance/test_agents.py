"""An agent framework (openai-agents) whose tools are our MCP server's, with the tests' scripted model behind it: asked
directly, and through our gateway."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import openai
import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner
from agents.mcp import MCPServerStreamableHttp

from composer.settings import Settings
from tests.support.api import bearer, key_of
from tests.support.gateway import MODEL, UPSTREAM_KEY, GatewayStage, gateway_stage
from tests.support.model_server import Say
from tests.support.waiting import TIMEOUT_SECONDS

pytestmark = pytest.mark.integration

# The framework would else report each run to its maker.
QUIET: Final = RunConfig(tracing_disabled=True)


@pytest.fixture
async def stage(settings: Settings) -> AsyncIterator[GatewayStage]:
    async with gateway_stage(settings) as stage:
        yield stage


def memory(stage: GatewayStage, key: str) -> MCPServerStreamableHttp:
    """Our MCP server as the framework connects to one."""
    params: Any = {"url": f"{stage.url}/mcp", "headers": bearer(key), "timeout": TIMEOUT_SECONDS}
    return MCPServerStreamableHttp(params=params, client_session_timeout_seconds=TIMEOUT_SECONDS)


async def test_an_agent_writes_finds_and_fetches_by_tools_over_mcp(stage: GatewayStage) -> None:
    key = await key_of(stage.harness, "alice", "claude")
    client = openai.AsyncOpenAI(base_url=stage.upstream.url, api_key=UPSTREAM_KEY, max_retries=0)
    async with memory(stage, key) as server:
        agent: Agent[None] = Agent(name="helper", model=OpenAIChatCompletionsModel(MODEL, client), mcp_servers=[server])
        stage.upstream.script += [
            Say(calls=[("write_entry", {"content": "We deploy on Fridays", "tags": ["ops"]})]),
            Say(("Noted.",)),
        ]
        assert (
            await Runner.run(agent, "Remember that we deploy on Fridays.", run_config=QUIET)
        ).final_output == "Noted."
        await stage.harness.app.indexer.catch_up(stage.harness.workspace().tenant_id)
        [entry] = await stage.hub.find("alice")
        assert (entry.content, entry.origin) == ("We deploy on Fridays", "claude")
        stage.upstream.script += [
            Say(calls=[("search", {"query": "when do we deploy?"})]),
            Say(calls=[("fetch", {"id": str(entry.id)}), ("fetch", {"id": "of nobody"})]),
            Say(("On Fridays.",)),
        ]
        answer = await Runner.run(agent, "When do we deploy?", run_config=QUIET)
    assert answer.final_output == "On Fridays."
    offered = [tool["function"]["name"] for tool in stage.upstream.requests[0].body["tools"]]
    assert offered[:3] == ["search", "fetch", "write_entry"]
    assert not [tool for tool in stage.upstream.requests[0].body["tools"] if not tool["function"]["description"]]
    given = [_text(each) for each in stage.upstream.requests[-1].body["messages"] if each["role"] == "tool"]
    found, fetched, refused = given
    assert json.loads(found)["results"][0]["id"] == str(entry.id)
    assert json.loads(fetched)["text"] == "We deploy on Fridays"
    assert "There is no such entry." in refused


@pytest.mark.parametrize("kind", [OpenAIChatCompletionsModel, OpenAIResponsesModel])
async def test_an_agent_asks_its_model_through_the_gateway(stage: GatewayStage, kind: Any) -> None:
    entry = (await stage.hub.write("alice", "We deploy on Fridays", title="Deploys")).entry
    key = await key_of(stage.harness, "alice", "cursor")
    gateway = openai.AsyncOpenAI(base_url=f"{stage.url}/v1", api_key=key, max_retries=0)
    async with memory(stage, key) as server:
        agent: Agent[None] = Agent(
            name="helper", instructions="Be brief.", model=kind(MODEL, gateway), mcp_servers=[server]
        )
        stage.upstream.script += [Say(calls=[("fetch", {"id": str(entry.id)})]), Say(("On Fridays.",))]
        answer = await Runner.run(agent, "When do we deploy?", run_config=QUIET)
    assert answer.final_output == "On Fridays."
    first, second = [request for request in stage.upstream.requests if "models" not in request.path]
    assert key not in json.dumps([first.body, {**first.headers}])
    for request in (first, second):  # what the question recalled is put in, and the same once more
        assert json.dumps(request.body).count("We deploy on Fridays") == (1 if request is first else 2)


def _text(message: Any) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
