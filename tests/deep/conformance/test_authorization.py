"""The protocol's conformance tests of authorization servers against our OAuth, where a person allows the app in a
browser."""

import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from bot.web.app import web_app
from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.metrics import Metrics
from bot.web.server import open_port
from composer.settings import AgentSettings, Settings
from tests.deep.conformance.programs import CONFORMANCE_2026, expected_failures, run
from tests.support.api import cookie_of
from tests.support.browser import Browser
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness
from tests.support.oauth import allow

ADDRESS: Final = re.compile(r"http://localhost:\d+/\S*[?&]client_id=\S+")


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


@dataclass
class Issuer:
    """A served Nexus with a public URL, and a browser in which alice is signed in."""

    public: str
    browser: Browser

    async def registered(self, callback: str, method: str) -> dict[str, Any]:
        """An app that registers itself."""
        sent = {"client_name": "Suite", "redirect_uris": [callback], "token_endpoint_auth_method": method}
        async with httpx2.AsyncClient(trust_env=False) as http:
            answer = await http.post(f"{self.public}/oauth/register", json=sent)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture
async def issuer(settings: Settings) -> AsyncIterator[Issuer]:
    port = free_port()
    public = f"http://localhost:{port}"
    many = {"agents": (AgentSettings(model="gpt-4o"),), "requests_per_minute": 100_000, "public_url": public}
    async with AsyncExitStack() as stack:
        harness: AppHarness = await stack.enter_async_context(
            open_harness(settings.model_copy(update=many), model=Model())
        )
        served = web_app(harness.app, Metrics([]), {}, None)
        await open_port(Settings(home=Path("unused"), web_port=port), served, stack)
        browser = Browser(f"http://127.0.0.1:{port}", public)
        browser.cookies[COOKIE_ON_LOCALHOST] = await cookie_of(harness, "alice")
        yield Issuer(public, browser)


@pytest.mark.parametrize("method", ["none", "client_secret_post", "client_secret_basic"])
async def test_the_conformance_tests_of_authorization_servers_pass_but_for_what_is_listed(
    issuer: Issuer, method: str, tmp_path: Path
) -> None:
    port = free_port()
    app = await issuer.registered(f"http://127.0.0.1:{port}/callback", method)
    came_back: list[int] = []

    async def open_what_is_asked_for(line: str) -> None:
        if found := ADDRESS.search(line):
            async with httpx2.AsyncClient(trust_env=False) as http:
                back = await allow(issuer.browser, found[0].removeprefix(issuer.public))
                came_back.append((await http.get(back)).status_code)

    secret = ("--client-secret", app["client_secret"]) if "client_secret" in app else ()
    given = ("--url", issuer.public, "--client-id", app["client_id"], *secret, "--resource", f"{issuer.public}/mcp")
    results = tmp_path / "results"
    more = ("--port", str(port), "--output-dir", str(results))
    said = await run(CONFORMANCE_2026, "authorization", *given, *more, folder=tmp_path, heard=open_what_is_asked_for)
    checks = [check for path in results.glob("*/checks.json") for check in json.loads(path.read_text("utf-8"))]
    failed = {check["id"] for check in checks if check["status"] not in ("SUCCESS", "INFO")}
    assert came_back == [200], said.output
    assert failed == ({"authorization-code-grant"} if method in expected_failures("authorization") else set()), checks
    assert len(checks) - len(failed) >= 1 + (not failed), checks
    assert (said.status == 0) == (not failed), said.output
