"""`nexus chat` as a person uses it: in a terminal, and with lines from a file."""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.support.program import NEXUS, Program
from tests.support.waiting import TIMEOUT_SECONDS

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[=>()][0B]?)")


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    above = Path(tempfile.mkdtemp(prefix="nexus-chat-"))
    yield above / "home"
    shutil.rmtree(above, ignore_errors=True)


@pytest.fixture
def program(home: Path, tmp_path: Path) -> Program:
    masked = {"NEXUS_SLACK_SIGNING_SECRET": "masked-in-the-terminal-too"}  # output passes the mask of secrets
    return Program(tmp_path, {"NEXUS_HOME": str(home), **masked})


class Terminal:
    """A terminal that runs `nexus chat --sample`."""

    def __init__(self, program: Program, width: int = 160) -> None:
        shown_by = {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": str(width)}
        environment = program.environment | shown_by
        self.process: pexpect.spawn[str] = pexpect.spawn(
            sys.executable,
            [*NEXUS[1:], "chat", "--sample"],
            cwd=str(program.folder),
            env=environment,
            timeout=TIMEOUT_SECONDS,
            encoding="utf-8",
            dimensions=(50, width),
        )

    def type(self, line: str) -> str:
        """Type a line, and return what the terminal shows until the next prompt, without escape codes."""
        self.process.send(f"{line}\r/agents\r")
        self.process.expect_exact("window 128,000 tokens")
        return ESCAPES.sub("", str(self.process.before))


def test_a_terminal_shows_a_conversation(program: Program) -> None:
    terminal = Terminal(program)
    try:
        terminal.process.expect_exact("You are talking to Nexus")
        assert "3 December" in terminal.type("when is the launch?")
        table = terminal.type("/why --details")
        for word in ("section", "tokens", "source", "because", "LANDMARKS", "3 December", "\nTurn "):
            assert word in table
        assert "Porto" in terminal.type("where is my sister getting married?")
        assert "(bob @nexus)" in terminal.type("/as bob")
        assert "Porto" not in terminal.type("where is the sister of alice getting married?")
        assert "(bob #general)" in terminal.type("/room general")
        assert "Porto" not in terminal.type("@nexus where is the sister of alice getting married?")
        assert "91k" not in terminal.type("@nexus what raise did bob ask for?")
        assert "(bob @nexus)" in terminal.type("/dm")
        assert "91k" in terminal.type("what raise did I ask for?")
        assert "There is no command" in terminal.type("/frobnicate")
        terminal.process.send("/quit\r")
        terminal.process.expect(pexpect.EOF)
    finally:
        terminal.process.close()
    assert terminal.process.exitstatus == 0


def test_lines_from_a_file_give_the_same_conversation(program: Program) -> None:
    ran = program.run(
        *("chat", "--sample", "--room", "general", "--as", "carol"),
        input="we ship the wombat on Tuesday\n@nexus when do we ship the wombat?\n/why\n/as bob\n\n/quit\nnever said\n",
    )
    assert (ran.status, ran.sentences) == (0, [])
    assert "(stored; to get an answer, write @nexus in the message)" in ran.out
    assert "wombat on Tuesday" in ran.out
    assert "(bob #general)" in ran.out
    assert "\x1b" not in ran.out
    ran = program.run("chat", "--sample", "--as", "carol", input="/frobnicate\n/remember we like the yak\n")
    assert ran.status == 1
    assert "There is no command /nexus frobnicate" in ran.err
    assert ran.err.splitlines()[-1] == "nexus: 1 line was not done: see above."
    assert "Remembered" in ran.out
    ran = program.run("chat", "--sample", "--room", "general", input="/dm nobody\n/remember the yak is grey\n")
    assert ran.status == 1
    assert "Stopped at '/dm nobody': the lines after it could go to the wrong place." in ran.err
    assert "Remembered" not in ran.out
    shown = program.run("compose", "-w", "sample", "--as", "alice", "--room", "general", "what of the wombat?")
    assert "we ship the wombat on Tuesday" in shown.out
    assert "never said" not in shown.out


def test_the_sample_company_shares_nothing_with_yours(program: Program) -> None:
    assert program.run("chat", "--sample", "--as", "carol", input="/remember we like the yak\n").status == 0
    assert program.run("chat", "--as", "carol", input="/remember we like the emu\n").status == 0
    ours = program.run("chat", "--as", "carol", input="/recall yak emu launch\n")
    assert "emu" in ours.out
    assert "we like the yak" not in ours.out
    assert "3 December" not in ours.out
    theirs = program.run("chat", "--sample", "--as", "carol", input="/recall yak emu\n")
    assert "we like the yak" in theirs.out
    assert "we like the emu" not in theirs.out
