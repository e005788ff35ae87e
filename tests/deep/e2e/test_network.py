"""Nothing leaves the machine but what Nexus sends to its model, its database, its cache, its platforms and its tool
servers."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web

from composer.settings import AgentSettings, McpSettings, Settings
from composer.settings.server_urls import ServerUrl
from tests.support import no_network
from tests.support.addresses import reached
from tests.support.discord.harness import on_discord
from tests.support.discord.model import Channel, Guild, User
from tests.support.discord.server import DiscordServer
from tests.support.harness import open_harness
from tests.support.mcp_office import Wiki, at, serving
from tests.support.model_server import ModelServer, Say
from tests.support.program import ROOT
from tests.support.slack.harness import office_on
from tests.support.tool_office import call
from tests.support.waiting import TIMEOUT_SECONDS

filtered = pytest.mark.skipif(not no_network.supported(), reason="needs Linux's filter of system calls")

LOCAL = {"127.0.0.1"}  # where the tests' platforms and models listen
QUESTION = '{"type":"message","at":"2026-05-04T09:00:00Z","room":"general","user":"alice","id":"m1","text":"@nexus hi"}'
NIGHT = '{"type":"job","at":"2026-05-06T09:00:00Z","name":"day"}'


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program that is killed when it opens an internet socket, with an empty home."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "tests.support.no_network", *words],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "NEXUS_HOME": str(folder / "nexus"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )


@filtered
def test_the_filter_kills_what_opens_an_internet_socket(tmp_path: Path) -> None:
    assert run(tmp_path, "ensurepip", "--version").returncode == 0
    assert run(tmp_path, "http.server", "0").returncode == -signal.SIGSYS


@filtered
def test_an_import_an_answer_and_a_job_without_a_model_use_no_network_and_write_nothing_elsewhere(
    tmp_path: Path,
) -> None:
    history, script = tmp_path / "history.jsonl", tmp_path / "script.jsonl"
    history.write_text(QUESTION + "\n", encoding="utf-8")
    script.write_text(f"{QUESTION}\n{NIGHT}\n", encoding="utf-8")
    for words in (("import", str(history)), ("play", str(script)), ("doctor",)):
        done = run(tmp_path, "bot.console.main", *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file()] == []


async def test_slack_is_the_only_address_of_the_slack_adapter(settings: Settings) -> None:
    with reached() as hosts:
        async with office_on(settings) as office, office.socket() as running:
            await office.slack.post(office.general, office.alice, office.mention("when do we ship?"))
            await office.answered()
            await running.settle()
    assert hosts == LOCAL


async def test_discord_is_the_only_address_of_the_discord_adapter(
    settings: Settings, server: DiscordServer, guild: Guild, room: Channel, ada: User
) -> None:
    with reached() as hosts:
        async with on_discord(settings, server, guild) as here:
            await here.answer(await server.post(room, ada, f"{server.bot.mention} when do we ship?"))
    assert hosts == LOCAL


async def test_the_model_is_the_only_address_of_answers_and_extraction(settings: Settings) -> None:
    with reached() as hosts:
        async with ModelServer() as model:
            ours = {"openai_base_url": model.url, "agents": (AgentSettings(model="m"),)}
            async with open_harness(settings.model_copy(update=ours)) as harness:
                await harness.ask("alice", "@nexus I prefer tabs over spaces", room="general")
                harness.clock.tick(3600)
                assert harness.app.extractions is not None
                await harness.app.extractions.learn_due(harness.workspace().tenant_id)
            assert len(model.requests) > 1
    assert hosts == LOCAL


async def test_a_tool_server_is_reached_at_its_address_only_where_it_may_be_used(settings: Settings) -> None:
    """Under a name of its own, it is told apart from the model, the database and the cache."""
    async with serving(Wiki().add("search", "Here.")) as wiki, ModelServer() as model:
        server = at(wiki, "search").model_copy(update={"url": ServerUrl(wiki.url.replace("127.0.0.1", "localhost"))})
        ours = {"openai_base_url": model.url, "agents": (AgentSettings(model="m"),), "mcp": {"wiki": server}}
        async with open_harness(settings.model_copy(update=ours)) as harness:
            with reached() as hosts:
                await harness.ask("alice", "hello", dm="nexus")
            assert "localhost" not in hosts, "not where it may not be used"
            model.script.extend((call("wiki__search", query="x"), Say(("Done.",))))
            with reached() as hosts:
                await harness.ask("alice", "@nexus hello", room="general")
            assert wiki.calls
            assert hosts - LOCAL - {"::1"} == {"localhost"}


async def test_a_server_that_sends_a_call_elsewhere_is_not_followed(settings: Settings) -> None:
    async def moved(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": f"http://elsewhere.invalid{request.path}"})

    app = web.Application()
    app.router.add_route("*", "/mcp", moved)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    [(_, port, *_)] = runner.addresses
    server = McpSettings(url=ServerUrl(f"http://127.0.0.1:{port}/mcp"), tools=("search",), tenants=("acme",))
    try:
        async with ModelServer() as model:
            ours = {"openai_base_url": model.url, "agents": (AgentSettings(model="m"),), "mcp": {"wiki": server}}
            with reached() as hosts:
                async with open_harness(settings.model_copy(update=ours)) as harness:
                    assert (await harness.ask("alice", "@nexus hello", room="general")).text == "Hello there."
    finally:
        await runner.cleanup()
    assert hosts == LOCAL
