"""`nexus chat` in a terminal that is narrower than its texts."""

from pathlib import Path

import pexpect

from tests.e2e.test_chat import Terminal
from tests.support.program import Program


def test_a_narrow_terminal_shows_lines_that_fit_it(tmp_path: Path) -> None:
    program = Program(tmp_path, {"NEXUS_HOME": str(tmp_path / "home")})
    terminal = Terminal(program, 64)
    try:
        terminal.process.expect_exact("You are talking to Nexus")
        assert "3 December" in " ".join(terminal.type("when is the launch?").split())
        for typed, words in (("/why --details", "It is close in meaning"), ("/help", "In the terminal also:")):
            shown = terminal.type(typed)
            lines = [line.rstrip() for line in shown.replace("\r", "").split("\n")]
            assert words in " ".join(shown.split())
            assert typed != "/why --details" or "\nTurn " in shown
            assert max(len(line) for line in lines if not line.startswith("alice @nexus>")) <= 64 + 8
        terminal.process.send("/quit\r")
        terminal.process.expect(pexpect.EOF)
    finally:
        terminal.process.close()
