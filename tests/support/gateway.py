"""The gateway in tests: served before a model server, with the real client of the OpenAI API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import asyncpg
import openai
from pydantic import SecretStr

from bot.web.app import web_app
from bot.web.metrics import Metrics
from bot.web.state import WebState
from composer.settings import GatewaySettings, Settings
from composer.settings.server_urls import ServerUrl
from tests.support.api import key_of
from tests.support.entries import Hub
from tests.support.harness import AppHarness, open_harness
from tests.support.upstream import Upstream
from tests.support.web import served_at

UPSTREAM_KEY: Final = "sk-upstream-of-the-tests"
MODEL: Final = "gpt-4o"
# What is served only where there is an upstream, each with a body that fits (tests/integration/test_gateway_rights.py).
ROUTES: Final[dict[tuple[str, str], dict[str, Any] | None]] = {
    ("POST", "/v1/chat/completions"): {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]},
    ("POST", "/v1/responses"): {"model": MODEL, "input": "hi"},
    ("POST", "/v1/embeddings"): {"model": MODEL, "input": "hi"},
    ("GET", "/v1/models"): None,
    ("GET", "/v1/models/{name:path}"): None,
}


@dataclass
class GatewayStage:
    """A served gateway: `url` is that of the web port, `upstream` the model server behind it."""

    harness: AppHarness
    upstream: Upstream
    url: str
    web: WebState

    @property
    def hub(self) -> Hub:
        """Entries."""
        return Hub(self.harness)

    async def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What is stored."""
        connection = await asyncpg.connect(self.harness.app.settings.database_url)
        try:
            return [tuple(row) for row in await connection.fetch(statement)]
        finally:
            await connection.close()

    async def client(self, name: str = "alice", vendor: str | None = "cursor", **options: Any) -> openai.AsyncOpenAI:
        """The real client, with a new key; `options` are those of the key, and `headers`."""
        headers = options.pop("headers", None)
        key = await key_of(self.harness, name, vendor, **options)
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, default_headers=headers)


@asynccontextmanager
async def gateway_stage(
    settings: Settings, gateway: dict[str, Any] | None = None, **more: Any
) -> AsyncIterator[GatewayStage]:
    """Serve a gateway with these settings of `[gateway]`, and others. `uses_upstream`: the agents, too, ask the model
    server behind it."""
    async with Upstream(key=UPSTREAM_KEY) as upstream:
        update: dict[str, Any] = {
            "gateway_base_url": ServerUrl(upstream.url),
            "gateway_api_key": SecretStr(UPSTREAM_KEY),
            "gateway": GatewaySettings(**(gateway or {})),
            "requests_per_minute": 100_000,
            **more,
        }
        if update.pop("uses_upstream", False):
            update |= {"openai_base_url": ServerUrl(upstream.url), "openai_api_key": SecretStr(UPSTREAM_KEY)}
        options = {"model": update.pop("chat_model")} if "chat_model" in update else {}
        async with (
            open_harness(settings.model_copy(update=update), **options) as harness,
            served_at(served := web_app(harness.app, Metrics([]), {}, None)) as url,
        ):
            yield GatewayStage(harness, upstream, url, served.state.nexus)
