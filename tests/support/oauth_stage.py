"""A Nexus with a public URL, as apps and browsers reach it, for tests of signing in by OAuth."""

import base64
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bot.web.app import web_app
from bot.web.metrics import Metrics
from composer.settings import AgentSettings, Settings
from tests.support.api import cookie_of
from tests.support.browser import Browser
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness
from tests.support.oauth import CALLBACK, App, Rerouted, Site, allow, open_site, parameters
from tests.support.web import served_at

PUBLIC: Final = "https://nexus.example.com"
RESOURCE: Final = f"{PUBLIC}/mcp"
SESSION: Final = "__Host-nexus"
VERIFIER: Final = "v" * 43
CHALLENGE: Final = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
PING: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT: Final = {"Accept": "application/json, text/event-stream"}


@dataclass
class Nexus:
    """A served Nexus with a public URL, and a site on which apps describe themselves."""

    harness: AppHarness
    url: str
    site: Site

    def browser(self) -> Browser:
        """A browser in which nobody is signed in."""
        return Browser(self.url, PUBLIC)

    async def signed_in(self, name: str = "alice") -> Browser:
        """A browser in which a person is signed in."""
        browser = self.browser()
        browser.cookies[SESSION] = await cookie_of(self.harness, name)
        return browser

    def http(self, **options: Any) -> httpx2.AsyncClient:
        """A client of the public URL."""
        return httpx2.AsyncClient(transport=Rerouted({"nexus.example.com": self.url}), timeout=60, **options)

    @asynccontextmanager
    async def mcp(self, app: App, mode: Any = "auto") -> AsyncIterator[Client]:
        """The SDK's client of MCP, signed in by its OAuth client."""
        async with (
            self.http(auth=app.auth()) as http,
            Client(streamable_http_client(RESOURCE, http_client=http), mode=mode, cache=None) as client,
        ):
            yield client

    async def post(self, path: str, values: Mapping[str, Any], **options: Any) -> httpx2.Response:
        """Send a form."""
        async with self.http() as http:
            return await http.post(f"{PUBLIC}{path}", data=dict(values), **options)

    async def registered(self, *redirect_uris: str, **said: Any) -> dict[str, Any]:
        """What a new app gets that registers itself."""
        answer = await self.register(*redirect_uris, **said)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def register(self, *redirect_uris: str, **said: Any) -> httpx2.Response:
        """Register an app."""
        sent = {
            "redirect_uris": list(redirect_uris) or [CALLBACK],
            "client_name": "Claude",
            "token_endpoint_auth_method": "none",
        }
        async with self.http() as http:
            return await http.post(f"{PUBLIC}/oauth/register", json=sent | said)

    async def code(self, browser: Browser, client: str, vendor: str | None = None, **changed: str | None) -> str:
        """The code that an app is given once its person has allowed it."""
        said = parameters(await allow(browser, address_of(client, **changed), vendor))
        assert "code" in said, said
        return said["code"]

    async def tokens(self, client: str, code: str, **changed: str | None) -> httpx2.Response:
        """Ask for tokens for a code."""
        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": client,
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
            "resource": RESOURCE,
        }
        return await self.post("/oauth/token", _without_none(sent | changed))

    async def renew(self, client: str, refresh: str, **changed: str | None) -> httpx2.Response:
        """Ask for tokens for a refresh token."""
        sent = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": client}
        return await self.post("/oauth/token", _without_none(sent | changed))

    async def connected(self, name: str = "alice", vendor: str = "claude", **changed: str | None) -> tuple[str, Any]:
        """The id of a new app that a person has connected, and its tokens."""
        client = (await self.registered())["client_id"]
        answer = await self.tokens(client, await self.code(await self.signed_in(name), client, vendor, **changed))
        assert answer.status_code == 200, answer.text
        return client, answer.json()

    async def ask_mcp(self, token: str | None, **said: Any) -> httpx2.Response:
        """Send a request to `/mcp` with a token."""
        headers = ACCEPT | ({} if token is None else {"Authorization": f"Bearer {token}"})
        async with self.http() as http:
            return await http.post(RESOURCE, json=PING | said, headers=headers)

    async def opens(self, token: str) -> bool:
        """Whether a token opens `/mcp`."""
        return (await self.ask_mcp(token)).status_code == 200


def address_of(client: str, **changed: str | None) -> str:
    """The address of a request of an app; None takes a parameter out."""
    said: dict[str, str | None] = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": CALLBACK,
        "state": "st&te=1",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": RESOURCE,
    }
    return f"/oauth/authorize?{urlencode(_without_none(said | changed))}"


def _without_none(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


@asynccontextmanager
async def open_nexus(settings: Settings, folder: Path, **more: Any) -> AsyncIterator[Nexus]:
    """Serve one."""
    many: dict[str, Any] = {
        "agents": (AgentSettings(model="gpt-4o"),),
        "requests_per_minute": 100_000,
        "admin_requests_per_minute": 100_000,
        "public_url": PUBLIC,
        **more,
    }
    async with AsyncExitStack() as stack:
        harness = await stack.enter_async_context(open_harness(settings.model_copy(update=many), model=Model()))
        site = await stack.enter_async_context(open_site(folder / "site"))
        served = web_app(harness.app, Metrics([]), {}, None, site.documents())
        yield Nexus(harness, await stack.enter_async_context(served_at(served)), site)
