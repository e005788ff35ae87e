"""An agent framework (openai-agents) whose tools are our MCP server's, with the tests' scripted model behind it: asked
directly, and through our gateway."""

import importlib
import json
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any

import openai
import pytest

from composer.settings import Settings
from tests.support.api import bearer, key_of
from tests.support.gateway import MODEL, UPSTREAM_KEY, GatewayStage, gateway_stage
from tests.support.model_server import Say
from tests.support.waiting import TIMEOUT_SECONDS


@pytest.fixture(scope="module")
def agents() -> ModuleType:
    """The framework. It is imported where its tests run: with all workers that list the tests, it would take as long as
    a quarter of all other imports."""
    importlib.import_module("agents.mcp")
    return importlib.import_module("agents")


@pytest.fixture
async def stage(settings: Settings) -> AsyncIterator[GatewayStage]:
    async with gateway_stage(settings) as stage:
        yield stage


def memory(agents: ModuleType, stage: GatewayStage, key: str) -> Any:
    """Our MCP server as the framework connects to one."""
    params = {"url": f"{stage.url}/mcp", "headers": bearer(key), "timeout": TIMEOUT_SECONDS}
    return agents.mcp.MCPServerStreamableHttp(params=params, client_session_timeout_seconds=TIMEOUT_SECONDS)


async def asked(agents: ModuleType, agent: Any, question: str) -> str:
    """What an agent answers. The framework would else report each run to its maker."""
    quiet = agents.RunConfig(tracing_disabled=True)
    return str((await agents.Runner.run(agent, question, run_config=quiet)).final_output)


async def test_an_agent_writes_finds_and_fetches_by_tools_over_mcp(agents: ModuleType, stage: GatewayStage) -> None:
    key = await key_of(stage.harness, "alice", "claude")
    client = openai.AsyncOpenAI(base_url=stage.upstream.url, api_key=UPSTREAM_KEY, max_retries=0)
    async with memory(agents, stage, key) as server:
        model = agents.OpenAIChatCompletionsModel(MODEL, client)
        agent = agents.Agent(name="helper", model=model, mcp_servers=[server])
        stage.upstream.script += [
            Say(calls=[("write_entry", {"content": "We deploy on Fridays", "tags": ["ops"]})]),
            Say(("Noted.",)),
        ]
        assert await asked(agents, agent, "Remember that we deploy on Fridays.") == "Noted."
        await stage.harness.app.indexer.catch_up(stage.harness.workspace().tenant_id)
        [entry] = await stage.hub.find("alice")
        assert (entry.content, entry.origin) == ("We deploy on Fridays", "claude")
        stage.upstream.script += [
            Say(calls=[("search", {"query": "when do we deploy?"})]),
            Say(calls=[("fetch", {"id": str(entry.id)}), ("fetch", {"id": "of nobody"})]),
            Say(("On Fridays.",)),
        ]
        answer = await asked(agents, agent, "When do we deploy?")
    assert answer == "On Fridays."
    offered = [tool["function"]["name"] for tool in stage.upstream.requests[0].body["tools"]]
    assert offered[:3] == ["search", "fetch", "write_entry"]
    assert not [tool for tool in stage.upstream.requests[0].body["tools"] if not tool["function"]["description"]]
    given = [_text(each) for each in stage.upstream.requests[-1].body["messages"] if each["role"] == "tool"]
    found, fetched, refused = given
    assert json.loads(found)["results"][0]["id"] == str(entry.id)
    assert json.loads(fetched)["text"] == "We deploy on Fridays"
    assert "There is no such entry." in refused


@pytest.mark.parametrize("kind", ["OpenAIChatCompletionsModel", "OpenAIResponsesModel"])
async def test_an_agent_asks_its_model_through_the_gateway(agents: ModuleType, stage: GatewayStage, kind: str) -> None:
    entry = (await stage.hub.write("alice", "We deploy on Fridays", title="Deploys")).entry
    key = await key_of(stage.harness, "alice", "cursor")
    gateway = openai.AsyncOpenAI(base_url=f"{stage.url}/v1", api_key=key, max_retries=0)
    async with memory(agents, stage, key) as server:
        model = getattr(agents, kind)(MODEL, gateway)
        agent = agents.Agent(name="helper", instructions="Be brief.", model=model, mcp_servers=[server])
        stage.upstream.script += [Say(calls=[("fetch", {"id": str(entry.id)})]), Say(("On Fridays.",))]
        answer = await asked(agents, agent, "When do we deploy?")
    assert answer == "On Fridays."
    first, second = [request for request in stage.upstream.requests if "models" not in request.path]
    assert key not in json.dumps([first.body, {**first.headers}])
    for request in (first, second):  # what the question recalled is put in, and the same once more
        assert json.dumps(request.body).count("We deploy on Fridays") == (1 if request is first else 2)


def _text(message: Any) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
