"""`nexus mcp`, started by the SDK's client as an AI tool starts it."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.support.mcp_clients import MODES, called
from tests.support.program import Program, forked

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which alice has spoken."""
    home = tmp_path_factory.mktemp("memory") / "home"
    assert Program(home.parent, {"NEXUS_HOME": str(home)}).run("chat", input="hello\n").status == 0
    return home


@pytest.fixture
def program(home: Path, tmp_path: Path) -> Program:
    return Program(tmp_path, {"NEXUS_HOME": str(home)})


def made_key(program: Program, vendor: str) -> str:
    ran = program.run("keys", "create", "--user", "alice", "--vendor", vendor)
    assert ran.status == 0
    return ran.out.split()[0]


@asynccontextmanager
async def started(program: Program, key: str, mode: str) -> AsyncIterator[Client]:
    environment = program.environment | {"NEXUS_KEY": key}
    command, *words = forked("mcp")
    parameters = StdioServerParameters(command=command, args=words, env=environment, cwd=str(program.folder))
    with open(os.devnull, "w") as silent:  # noqa: ASYNC230 - opened at once
        transport = stdio_client(parameters, errlog=silent)
        async with Client(transport, mode=mode, cache=None) as client:
            yield client


@pytest.mark.parametrize("mode", MODES)
async def test_a_tool_that_starts_the_program_has_its_persons_memory(program: Program, mode: str) -> None:
    key = made_key(program, "claude")
    async with started(program, key, mode) as client:
        assert len((await client.list_tools()).tools) == 10
        written = await called(client, "write_entry", content=f"We deploy on {mode} Fridays")
        assert (await called(client, "fetch", id=written["id"]))["text"] == f"We deploy on {mode} Fridays"
        assert (await called(client, "browse_entries"))["entries"][0]["origin"] == "claude"


async def test_a_key_that_is_revoked_opens_nothing_more(program: Program) -> None:
    key = made_key(program, "cursor")
    async with started(program, key, "auto") as client:
        assert (await called(client, "browse_entries"))["total_tokens"] >= 0
        listed = [json.loads(line) for line in program.run("keys", "list", "--json").out.splitlines()]
        [id] = [each["id"] for each in listed if each["vendor"] == "cursor"]
        assert program.run("keys", "revoke", id).status == 0
        said = await called(client, "browse_entries")
        assert said == "The key in NEXUS_KEY opens nothing: it is wrong, has expired or was revoked."


def test_without_a_key_or_with_a_wrong_one_the_program_says_so_on_standard_error(program: Program) -> None:
    ran = program.run("mcp")
    assert (ran.status, ran.out) == (2, "")
    assert "NEXUS_KEY is not set" in ran.err
    ran = program.run("mcp", NEXUS_KEY=f"nx_default_{'0' * 64}")
    assert (ran.status, ran.out) == (1, "")
    assert "The key in NEXUS_KEY opens nothing" in ran.err
