"""No cache of the process contains a word that was written or asked over the API and was forgotten. README: forgetting
erases it; docs/architecture.md: it reaches every layer, log, working view and caches."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from composer.settings import AgentSettings, Settings
from tests.integration.test_erased_text import holders, unique_word
from tests.support.api import bearer, key_of
from tests.support.gateway import gateway_stage
from tests.support.harness import AppHarness, open_harness
from tests.support.mcp_clients import called, mcp_client
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("tools_made_once")


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    many = {"agents": (AgentSettings(model="offline"),), "requests_per_minute": 10_000}
    async with open_harness(settings.model_copy(update=many)) as harness:
        yield harness


async def used(harness: AppHarness, url: str, word: str, key: str, tool: str) -> None:
    """A word is written, listed, asked for and answered, by a person and by their tool."""
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:

        async def ask(method: str, path: str, token: str = key, **body: Any) -> httpx2.Response:
            answer = await http.request(method, path, json=body or None, headers=bearer(token))
            assert answer.status_code < 300, answer.text
            return answer

        await ask("POST", "/v1/entries", content=f"the {word} is in the vault", key=word, tags=[word])
        await ask("POST", "/v1/agent/entries", tool, content=f"a {word} is in the safe", title=word)
        assert word in (await ask("GET", f"/v1/entries?q={word}&stats=true")).text
        for token in (key, tool):
            found = await ask("POST", "/v1/query", token, question=f"where is the {word}?", answer=True)
            assert word in found.text
        assert word in (await ask("GET", f"/v1/agent/search?q={word}", tool)).text
        assert word in (await ask("GET", "/v1/entries/export")).text
        await ask("POST", "/v1/chat", content=f"where is the {word}?", session=word)
    async with mcp_client(url, tool) as client:
        assert word in str(await called(client, "search", query=f"what is the {word}?"))


async def test_no_cache_contains_what_was_asked_or_written_over_the_api_and_forgotten(
    harness: AppHarness, url: str
) -> None:
    word = unique_word()
    key, tool = await key_of(harness, "alice"), await key_of(harness, "alice", "claude")
    await used(harness, url, word, key, tool)
    await harness.app.turns.settle()
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    await harness.command("alice", "/nexus forget everything --yes", dm="nexus")
    harness.delivery.replies.clear()
    harness.delivery.chunks.clear()
    assert holders(word) == set()


async def test_no_cache_contains_what_a_tool_passed_through_the_gateway_and_was_forgotten(settings: Settings) -> None:
    word = unique_word()
    async with gateway_stage(settings) as stage:
        client = await stage.client()
        for said in (f"I keep the {word} in the vault.", f"where is the {word}?"):
            await client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": said}])
        await client.close()
        del client, said
        await stage.harness.command("alice", "/nexus forget everything --yes", dm="nexus")
        stage.upstream.requests.clear()
        stage.harness.delivery.replies.clear()

        def is_gone() -> bool:
            return all(each.startswith("aiohttp.") for each in holders(word))  # the model server's own

        await until(is_gone)  # the tasks of the two requests end after their answers
