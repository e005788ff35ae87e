"""The protocol's inspector from the command line, against `/mcp` on a real port: by a URL, and by the file of servers
that AI tools read."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from bot.web.app import web_app
from bot.web.metrics import Metrics
from tests.deep.conformance.programs import Ran, run
from tests.support.api import key_of
from tests.support.entries import Hub
from tests.support.harness import AppHarness
from tests.support.web import served_at

DOCS: Final = Path(__file__).parents[3] / "docs"
INSPECTOR: Final = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"


@pytest.fixture
async def url(harness: AppHarness) -> AsyncIterator[str]:
    async with served_at(web_app(harness.app, Metrics([]), {}, None)) as url:
        yield f"{url}/mcp"


async def inspect(url: str, key: str, folder: Path, method: str, *given: str) -> Ran:
    """Ask by the inspector, with a key."""
    target = (url, "--transport", "http", "--header", f"Authorization: Bearer {key}")
    return await run(INSPECTOR, "--cli", *target, "--method", method, *given, folder=folder)


async def test_the_inspector_lists_calls_and_reads(harness: AppHarness, url: str, tmp_path: Path) -> None:
    key = await key_of(harness, "alice", "claude")
    entry = (await Hub(harness).write("alice", "We deploy on Fridays", title="Deploys", tags=["ops"])).entry

    async def asked(method: str, *given: str) -> Any:
        return (await inspect(url, key, tmp_path, method, *given)).json

    assert [tool["name"] for tool in (await asked("tools/list"))["tools"]][:2] == ["search", "fetch"]
    told = await asked("tools/call", "--tool-name", "search", "--tool-arg", "query=when do we deploy", "limit=2")
    [hit] = json.loads(told["content"][0]["text"])["results"]
    assert (hit["id"], hit["text"]) == (str(entry.id), "We deploy on Fridays")
    written = await asked("tools/call", "--tool-name", "write_entry", "--tool-arg", "content=said", 'tags=["a","b"]')
    assert json.loads(written["content"][0]["text"])["state"] == "written"
    assert (await asked("resources/list"))["resources"] == []
    assert len((await asked("resources/templates/list"))["resourceTemplates"]) == 3
    [read] = (await asked("resources/read", "--uri", f"nexus://entries/{entry.id}"))["contents"]
    assert json.loads(read["text"])["title"] == "Deploys"
    begun = await asked("prompts/get", "--prompt-name", "recall", "--prompt-args", "topic=deploys")
    assert "We deploy on Fridays" in begun["messages"][0]["content"]["text"]


async def test_the_inspector_finds_no_schema_that_some_model_would_refuse(
    harness: AppHarness, url: str, tmp_path: Path
) -> None:
    ran = await inspect(url, await key_of(harness, "alice", "claude"), tmp_path, "tools/list", "--strict")
    assert ran.status == 0, ran.errors
    assert ran.errors == "", ran.errors


async def test_without_a_key_the_inspector_is_refused(harness: AppHarness, url: str, tmp_path: Path) -> None:
    await key_of(harness, "alice", "claude")
    refused = await run(INSPECTOR, "--cli", url, "--transport", "http", "--method", "tools/list", folder=tmp_path)
    assert refused.status != 0
    assert "search" not in refused.output


async def test_the_file_of_servers_in_the_documents_is_one_that_clients_read(
    harness: AppHarness, url: str, tmp_path: Path
) -> None:
    documented = re.findall(r"```json\n(.*?)```", (DOCS / "mcp.md").read_text("utf-8"), re.DOTALL)
    [file] = [each for each in documented if '"url"' in each]
    key = await key_of(harness, "alice", "claude")
    (tmp_path / "mcp.json").write_text(
        file.replace("https://nexus.example.org/mcp", url).replace("nx_…", key), encoding="utf-8"
    )
    chosen = ("--config", str(tmp_path / "mcp.json"), "--server", "nexus")
    listed = (await run(INSPECTOR, "--cli", *chosen, "--method", "tools/list", folder=tmp_path)).json
    assert "search" in [tool["name"] for tool in listed["tools"]]
