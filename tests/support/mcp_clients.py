"""MCP clients of the memory for tests: the SDK's, over HTTP, with a key."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from tests.support.api import bearer

MODES = ("auto", "legacy")


@asynccontextmanager
async def mcp_client(url: str, key: str, mode: Any = "auto") -> AsyncIterator[Client]:
    """A client with a key; `mode` legacy: of the protocol's revisions before 2026-07-28."""
    async with (
        httpx2.AsyncClient(headers=bearer(key), timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode, cache=None) as client,
    ):
        yield client


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    """What a tool answers, read as JSON; its sentence where it fails."""
    answer = await client.call_tool(tool, arguments)
    [text] = answer.content
    assert isinstance(text, TextContent)
    assert answer.structured_content is None
    return text.text if answer.is_error else json.loads(text.text)
