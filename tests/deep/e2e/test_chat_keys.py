"""What keys do in `nexus chat`: Ctrl-C stops an answer and not the program, and what is pasted is one message."""

import asyncio
import sys
from collections.abc import AsyncIterator

import pexpect
import pytest

from bot.console.line_editor import LEAVE
from composer.settings import Settings
from composer.turn.drafting import STOPPED
from tests.support.model_server import Hang, ModelServer, Say
from tests.support.program import NEXUS, Program
from tests.support.waiting import TIMEOUT_SECONDS

CTRL_C = "\x03"


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def terminal(model: ModelServer, settings: Settings) -> "AsyncIterator[pexpect.spawn[str]]":
    """A terminal that runs `nexus chat` with a model."""
    assert settings.database_url is not None
    assert settings.redis_url is not None
    of_model = {"NEXUS_OPENAI_BASE_URL": model.url, "NEXUS_OPENAI_API_KEY": "key", "NEXUS_MODEL": "gpt-m1"}
    stores = {"NEXUS_DATABASE_URL": settings.database_url, "NEXUS_REDIS_URL": settings.redis_url}
    program = Program(settings.home, of_model | stores | {"NEXUS_HOME": str(settings.home)})
    process: pexpect.spawn[str] = pexpect.spawn(
        sys.executable,
        [*NEXUS[1:], "chat", "--as", "alice", "--dm", "nexus"],
        cwd=str(settings.home),
        env=program.environment | {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "HOME": str(settings.home)},
        timeout=TIMEOUT_SECONDS,
        encoding="utf-8",
        dimensions=(50, 160),
    )
    try:
        await shows(process, "alice @nexus>")
        yield process
    finally:
        await asyncio.to_thread(process.close)


async def shows(terminal: "pexpect.spawn[str]", text: str) -> None:
    """Wait until the terminal shows a text."""
    await asyncio.to_thread(terminal.expect_exact, text)


async def test_ctrl_c_stops_an_answer_and_not_the_program(terminal: "pexpect.spawn[str]", model: ModelServer) -> None:
    model.script.extend([Hang(("I think ", "that ")), Hang(), Say(("Hello", " there."))])
    terminal.send("what is it?\r")
    await shows(terminal, "think")  # what comes in two pieces may have an escape code between
    terminal.send(CTRL_C)
    await shows(terminal, STOPPED)
    await shows(terminal, "alice @nexus>")
    terminal.send("and now?\r")
    while len(model.requests) < 2:  # noqa: ASYNC110 (the model says nothing)
        await asyncio.sleep(0.02)
    terminal.send(CTRL_C)
    await shows(terminal, STOPPED)
    terminal.send("and at last?\r")
    await shows(terminal, "there.")
    assert "I think" not in str(model.requests[-1].body), "what was stopped is not stored"
    await shows(terminal, "alice @nexus>")
    terminal.send("half a line")
    terminal.send(CTRL_C)
    terminal.send(CTRL_C)
    await shows(terminal, LEAVE)
    terminal.send(CTRL_C)
    await asyncio.to_thread(terminal.expect, pexpect.EOF)
    await asyncio.to_thread(terminal.wait)
    assert terminal.exitstatus == 0


async def test_what_is_pasted_is_one_message_with_its_lines(terminal: "pexpect.spawn[str]", model: ModelServer) -> None:
    terminal.send("\x1b[200~the first line\nthe second line\n\nthe last line\x1b[201~")
    terminal.send("\r")
    await shows(terminal, "there.")
    (request,) = model.requests
    assert "the first line" in str(request.body)
    assert "the last line" in str(request.body)
