"""`nexus mcp`, started by the SDK's client as an AI tool starts it."""

import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE
from threading import Timer
from typing import Any, Final

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.support.mcp_clients import MODES, called
from tests.support.program import Program, forked
from tests.support.waiting import TIMEOUT_SECONDS


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


def request(id: object, **more: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping", **more}).encode()


OPENING: Final = request(
    1,
    method="initialize",
    params={"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
)
DEEP: Final = b'{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": {"a": ' + b"[" * 10_000 + b"]" * 10_000 + b"}}"
PARSE_ERROR, INVALID_REQUEST = -32700, -32600


NO_MESSAGES: Final = {
    b"hello": PARSE_ERROR,
    b"": PARSE_ERROR,
    b'{"jsonrpc": "2.0", "id": 3, "method": "pi': PARSE_ERROR,
    b'{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": {"a": "\xff"}}': PARSE_ERROR,
    b'{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": {"a": "\\ud800"}}': PARSE_ERROR,
    DEEP: PARSE_ERROR,
    b'{"jsonrpc": "2.0", "id": ' + b"9" * 5_000 + b', "method": "ping"}': PARSE_ERROR,
    b"[]": INVALID_REQUEST,
    b"[" + request(3) + b"]": INVALID_REQUEST,
    b'"ping"': INVALID_REQUEST,
    b"{}": INVALID_REQUEST,
    request(1.5): INVALID_REQUEST,
    request(None): INVALID_REQUEST,
    request(True): INVALID_REQUEST,
    request([3]): INVALID_REQUEST,
    request(3, jsonrpc="1.0"): INVALID_REQUEST,
    request(3, method=3): INVALID_REQUEST,
    request(3, params=[1]): INVALID_REQUEST,
}


@contextmanager
def lines_to(program: Program, key: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The program, to which lines are written as they are."""
    environment = program.environment | {"NEXUS_KEY": key}
    with subprocess.Popen(
        forked("mcp"), cwd=program.folder, env=environment, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    ) as running:
        watch = Timer(TIMEOUT_SECONDS, running.kill)
        watch.start()
        try:
            yield running
            running.communicate()
            assert running.returncode == 0
        finally:
            watch.cancel()
            running.kill()


def exchange(running: "subprocess.Popen[bytes]", lines: Sequence[bytes], answers: int) -> dict[object, Any]:
    """Write lines, and read as many answers, by their ids."""
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(b"".join(line + b"\n" for line in lines))
    running.stdin.flush()
    read = [json.loads(running.stdout.readline()) for _ in range(answers)]
    return {answer["id"]: answer for answer in read}


@pytest.mark.parametrize("opened", [False, True])
def test_a_line_that_is_no_message_is_answered_as_an_error_and_the_connection_goes_on(
    program: Program, opened: bool
) -> None:
    # Nothing was answered: whoever sent it waited for ever.
    codes = {}
    with lines_to(program, made_key(program, "claude")) as running:
        if opened:
            assert exchange(running, [OPENING], 1)[1]["result"]
        for number, line in enumerate(NO_MESSAGES, 10):
            lines = [line, request(number)] if opened else [line]
            found = exchange(running, lines, len(lines))
            assert not opened or found[number]["result"] == {}
            assert found[None]["error"]["message"]
            codes[line] = found[None]["error"]["code"]
        if not opened:
            assert exchange(running, [OPENING], 1)[1]["result"]
    assert codes == NO_MESSAGES


def test_what_is_sent_is_stored_as_it_is(program: Program) -> None:
    # U+FFFD is a character like others; it stands for unreadable bytes only where somebody has put it there.
    called = {"name": "write_entry", "arguments": {"content": "the sign is \ufffd here, and \xe9"}}
    sent = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": called}
    with lines_to(program, made_key(program, "claude")) as running:
        exchange(running, [OPENING], 1)
        answer = exchange(running, [json.dumps(sent, ensure_ascii=False).encode() + b"\r"], 1)[2]
        id = json.loads(answer["result"]["content"][0]["text"])["id"]
        fetched = {**sent, "id": 3, "params": {"name": "fetch", "arguments": {"id": id}}}
        answer = exchange(running, [json.dumps(fetched).encode()], 1)[3]
    assert json.loads(answer["result"]["content"][0]["text"])["text"] == "the sign is \ufffd here, and \xe9"


def test_an_error_of_the_client_that_names_no_request_is_no_error(program: Program) -> None:
    error = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "what?"}}'
    with lines_to(program, made_key(program, "claude")) as running:
        exchange(running, [OPENING], 1)
        assert set(exchange(running, [error, request(2)], 1)) == {2}
