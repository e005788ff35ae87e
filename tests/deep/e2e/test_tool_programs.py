"""A program that is a tool server, started by `nexus`, ends with it, also where Nexus is killed."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from composer.settings import McpSettings, Settings
from tests.support.mcp_office import PROGRAM, office_with
from tests.support.model_server import Hang, ModelServer, Say
from tests.support.program import ROOT, Program, forked, servers_of
from tests.support.tool_office import LAB, call
from tests.support.waiting import TIMEOUT_SECONDS, until


@pytest.fixture
async def api() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.mark.parametrize("killed", [False, True])
async def test_a_program_that_is_a_tool_server_ends_with_nexus(api: ModelServer, tmp_path: Path, killed: bool) -> None:
    api.script.extend((Say((), calls=[("own__number", {})]), Hang() if killed else Say(("Done.",))))
    arguments = json.dumps(PROGRAM["args"])
    (tmp_path / "nexus.toml").write_text(
        f'model = "m"\nextraction = "off"\nopenai_base_url = "{api.url}"\n[mcp.own]\ncommand = "{PROGRAM["command"]}"\n'
        f'args = {arguments}\nenv = {{ PYTHONPATH = "{ROOT}" }}\ntools = ["number"]\ntenants = ["acme"]\n'
        "timeout = 100\n"
    )
    question = {"type": "message", "at": "2026-05-04T09:00:00Z", "workspace": "acme", "room": "lab", "user": "alice"}
    program = Program(tmp_path, {"NEXUS_HOME": str(tmp_path / "home")})
    script = program.script({**question, "id": "m1", "text": "@nexus hello there"})
    nexus = await asyncio.create_subprocess_exec(
        *forked("play", str(script)), cwd=tmp_path, env=program.environment, stdout=asyncio.subprocess.PIPE
    )
    try:
        await until(lambda: len(api.requests) == 2)
        [result] = [m["content"] for m in api.requests[1].body["messages"] if m["role"] == "tool"]
        number = int(result.partition("  | ")[2])
        if killed:
            assert psutil.pid_exists(number)
            nexus.kill()
        await nexus.communicate()
        await until(lambda: not psutil.pid_exists(number))
        assert nexus.returncode == (-signal.SIGKILL if killed else 0)
    finally:
        if nexus.returncode is None:
            nexus.kill()
        for process in servers_of(tmp_path / "home"):
            process.kill()


async def test_a_program_is_spoken_to_by_its_streams_and_ends_with_nexus(settings: Settings) -> None:
    program = McpSettings(
        **PROGRAM, tools=("echo", "environment", "number", "end"), tenants=("acme",), timeout=TIMEOUT_SECONDS
    )
    async with office_with(settings, program=program) as office:
        asked = Say(
            (), calls=[("program__echo", {"query": "hi"}), ("program__environment", {}), ("program__number", {})]
        )
        await office.ask("alice", "@nexus hello there", asked, **LAB)
        said = [result.partition("  | ")[2] for result in office.last_results]
        assert said[0] == "hi"
        assert not [line for line in said[1].split("\n  | ") if line.startswith(("NEXUS", "PYTEST", "OPENAI"))]
        number = int(said[2])
        await office.ask("alice", "@nexus hello there", call("program__end"), **LAB)
        assert "can't be used now" in office.last_results[0]
        await office.ask("alice", "@nexus hello there", call("program__number"), **LAB)
        again = int(office.last_results[0].partition("  | ")[2])
        assert again != number, "it was started anew"
    assert not psutil.pid_exists(again)
