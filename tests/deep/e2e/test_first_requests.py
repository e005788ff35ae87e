"""The first requests of a process that serves import nothing: it has imported what they need before it is up."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final

import httpcore2
import httpx2
import pytest

from bot.web.gateway.upstreams import Upstreams
from composer.settings import Settings
from composer.settings import Upstream as ModelAddress
from composer.settings.server_urls import ServerUrl
from tests.support.api import bearer, cookie_of, key_of
from tests.support.discord.server import DiscordServer
from tests.support.harness import open_harness
from tests.support.mcp_clients import called, mcp_client
from tests.support.openid_provider import CLIENT_ID, CLIENT_SECRET, open_provider
from tests.support.program import Program
from tests.support.upstream import Upstream
from tests.support.waiting import until

# `nexus`, which says of each module that it is imported (-X importtime), with the addresses of a platform of our own.
PROGRAM: Final = """
import sys, discord, yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route
Route.BASE, gateway = sys.argv[1:3]
DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway)
del sys.argv[1:3]
from bot.console.main import main
main()
"""
IMPORTED: Final = "import time:"
UP: Final = "Nexus is running"
# What is imported later all the same: small modules of Python and of the SDK of MCP.
SMALL: Final = {"encodings.cp437", "encodings.unicode_escape", "rich.logging"}
PAGES: Final = ("/you", "/memory", "/ask", "/find?q=deploy", "/team", "/rooms", "/tools", "/usage", "/privacy")


class Running:
    """A process that serves. `imported` are the modules that it has imported since it said that it is up."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process, self.imported = process, list[str]()
        self.before = 0  # modules that were imported until then
        self._said = list[str]()
        self._reading = asyncio.create_task(self._read())

    @property
    def is_up(self) -> bool:
        """Whether it said so. Fails when it has ended."""
        up = any(UP in line for line in self._said)
        assert up or not self._reading.done(), "\n".join(self._said)
        return up

    async def stop(self) -> None:
        """End it, and read the rest of what it says."""
        if self.process.returncode is None:
            self.process.terminate()
        await self.process.wait()
        await self._reading

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            text = line.decode().rstrip()
            if not text.startswith(IMPORTED):
                self._said.append(text)
            elif any(UP in line for line in self._said):
                self.imported.append(text.rpartition("|")[2].strip())
            else:
                self.before += 1


@asynccontextmanager
async def running(program: Program, server: DiscordServer) -> AsyncIterator[Running]:
    """A process that serves Discord and the web port."""
    words = ("-X", "importtime", "-c", PROGRAM, server.api, server.gateway_url, "run", "--web", "--discord")
    env, pipe = program.environment, asyncio.subprocess.PIPE
    started = Running(await asyncio.create_subprocess_exec(sys.executable, *words, env=env, stderr=pipe))
    try:
        await until(lambda: started.is_up)
        yield started
    finally:
        await started.stop()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.own_database
async def test_the_first_question_call_and_page_of_each_kind_import_nothing(settings: Settings) -> None:
    async with open_harness(settings) as harness:
        harness.clock.set(datetime.now(UTC))
        await harness.say("alice", "we deploy on Fridays", room="general")
        own, tool = bearer(await key_of(harness, "alice")), await key_of(harness, "alice", "cursor")
        cookie, tenant = await cookie_of(harness, "alice"), harness.workspace().tenant
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with Upstream() as model, open_provider(f"{url}/login/openid/done") as provider, DiscordServer() as server:
        given = {
            "home": str(settings.home),
            "database_url": str.__str__(settings.database_url),
            "redis_url": str.__str__(settings.redis_url),
            "openai_base_url": model.url,
            "model": "gpt-4o",
            "extraction": "pattern",
            "gateway_base_url": model.url,
            "web_host": "127.0.0.1",
            "web_port": str(port),
            "public_url": url,
            "oidc_issuer": provider.url,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": CLIENT_SECRET,
            "oidc_tenant": tenant,
            "discord_token": server.token,
        }
        room = await server.add_channel(guild := await server.add_guild(), "general")
        ada = await server.add_member(guild, "Ada")
        program = Program(settings.home, {f"NEXUS_{name.upper()}": value for name, value in given.items()})
        async with (
            running(program, server) as serving,
            httpx2.AsyncClient(base_url=url, timeout=60) as client,
            httpx2.AsyncClient(base_url=url, timeout=60, headers=bearer(tool)) as of_tool,
        ):
            assert (await client.get("/v1/whoami", headers=own)).status_code == 200
            for page in PAGES:
                assert (await client.get(page, headers={"Cookie": f"nexus={cookie}"})).status_code == 200, page
            await server.post(room, ada, f"{server.bot.mention} when did we deploy yesterday?")
            await until(lambda: any("there." in each.content for each in server.messages(room, server.bot)))
            for path, body in asked().items():
                answer = await of_tool.post(path, json=body)
                assert answer.status_code == 200, answer.text
            async with mcp_client(url, tool) as mcp:
                assert (await called(mcp, "write_entry", content="We deploy"))["state"] == "written"
            app = {"redirect_uris": ["http://127.0.0.1:9/callback"], "client_name": "an app"}
            assert (await client.post("/oauth/register", json=app)).status_code == 201
            assert (await client.get("/login/openid")).status_code == 302
            assert (await client.get("/v1/export", headers=own)).status_code == 200
    assert serving.before > 1_000, "each import is told"
    assert set(serving.imported) <= SMALL


def asked() -> dict[str, dict[str, Any]]:
    """What a tool asks: its person's memory, and models through the gateway."""
    return {
        "/v1/query": {"question": "when do we deploy?", "answer": True},
        "/v1/chat/completions": {"model": "gpt-4o", "messages": [{"role": "user", "content": "when do we deploy?"}]},
        "/v1/responses": {"model": "gpt-4o", "input": "when do we deploy?"},
        "/v1/embeddings": {"model": "text-embedding-3-small", "input": "when do we deploy?"},
    }


async def test_the_first_call_of_the_gateway_reads_no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were read before, once for all upstreams."""
    upstreams, read = Upstreams(), list[object]()
    monkeypatch.setattr(httpcore2, "default_ssl_context", lambda **options: read.append(options))
    for host in ("models.example.com", "others.example.com"):
        upstreams.client(ModelAddress(ServerUrl(f"https://{host}/v1"), "", None, None, (), 60.0))
    await upstreams.close()
    assert read == []
