"""A command that leaves something to do ends with what to do next; with --json it prints JSON alone."""

import json
from pathlib import Path

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.e2e

MESSAGE = {
    "type": "message",
    "at": "2026-05-04T09:00:00Z",
    "room": "general",
    "user": "alice",
    "id": "m1",
    "text": "hi",
}


def test_each_command_leads_to_the_next(tmp_path: Path) -> None:
    program = Program(tmp_path, {"NEXUS_HOME": str(tmp_path / "home")})
    history = tmp_path / "history.jsonl"
    history.write_text(json.dumps(MESSAGE) + "\n", encoding="utf-8")
    told = {
        ("migrate",): "Next: nexus run serves; nexus doctor checks everything first.",
        ("doctor",): "Next: nexus setup connects a model, Discord and Slack; nexus chat talks to the agent here.",
        ("import", str(history)): "Next: ask about it in nexus chat; /why there shows the sources of an answer.",
        ("backup",): "Next: keep a copy of audit.key in another place: nexus restore FILE needs it on a new machine.",
    }
    for words, line in told.items():
        done = program.run(*words)
        assert (done.status, done.out.splitlines()[-1]) == (0, line), words
        assert done.out.count("Next:") == 1
    for words in told:
        done = program.run(*words, "--json")
        assert done.status == 0, words
        assert "Next:" not in done.out + done.err
        assert done.lines
    assert program.run("doctor", NEXUS_DISCORD_TOKEN="a-token").out.splitlines()[-1] == (
        "Next: nexus run serves what is configured."
    )
    wrong = program.run("doctor", NEXUS_MODEL="m")
    assert wrong.status == 1
    last = "Next: do what stands beside each ✗, then run nexus doctor again. docs/troubleshooting.md explains more."
    assert wrong.out.splitlines()[-1] == last
