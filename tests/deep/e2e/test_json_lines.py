"""docs/json-lines.md is true: its script can be played, and each command prints the keys that it lists."""

import json
import re
from pathlib import Path

import pytest

from tests.support.program import ROOT, Program

PAGE = (ROOT / "docs" / "json-lines.md").read_text(encoding="utf-8")
KEYS = {
    match[1]: set(re.findall(r"`([a-z_ ]+)`", match[2]))
    for match in re.finditer(r"^\| `nexus ([^`]+) --json` \| (.*) \|$", PAGE, re.MULTILINE)
}
OF_PARTS = {
    "doctor": {"name", "ok", "message"},
    "import FILE": {"estimate", "files_without_messages", "odd"},
}  # keys inside a value, or of another line


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, {"NEXUS_HOME": str(tmp_path / "home")})


def test_the_script_of_the_page_is_played_and_the_commands_print_their_keys(program: Program) -> None:
    block = re.search(r"^## Scripts.*?^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert block is not None
    played = program.play(*block[1].splitlines())
    assert (played.status, played.sentences) == (0, [])
    assert [line["event"] for line in played.lines] == ["reply", "reply", "reply", "command"]
    assert set(played.lines[0]) == {"event", "to", "turn", "text", "prompt", "timings_ms"}
    new = {
        "type": "message",
        "at": "2026-05-04T09:08:00Z",
        "workspace": "acme",
        "id": "new",
        "room": "general",
        "user": "dora",
        "text": "An import that brought nothing is not listed.",
    }
    history = program.script(*block[1].splitlines()[:3], json.dumps(new), name="history.jsonl")
    given: dict[str, tuple[str | Path, ...]] = {
        "migrate": ("migrate",),
        "doctor": ("doctor",),
        "import FILE": ("import", history),
        "import --list": ("import", "--list"),
        "jobs list": ("jobs", "list"),
        "jobs run NAME": ("jobs", "run", "day"),
        "audit list": ("audit", "list", "-w", "acme"),
        "audit verify": ("audit", "verify"),
        "backup": ("backup", program.folder / "backup"),
        "restore FILE": ("restore", "--trust", program.folder / "backup"),
        "export --user alice": ("export", "--user", "alice", "-w", "acme", program.folder / "export.json"),
        "keys create --user alice": ("keys", "create", "--user", "alice", "-w", "acme"),
        "keys list": ("keys", "list"),
        "login alice": ("login", "alice", "-w", "acme"),
        "replay TURN": ("replay", played.lines[0]["turn"]),
        "reembed --status": ("reembed", "--status"),
        "import --undo RUN": ("import", "--undo", "RUN", "--yes"),
    }
    run, made = "", dict[str, object]()
    assert set(given) == set(KEYS)
    for command, words in given.items():
        home = {"NEXUS_HOME": str(program.folder / "restored")} if command == "restore FILE" else {}
        done = program.run(*(run if word == "RUN" else word for word in words), "--json", **home)
        assert done.lines, (command, done.err)
        run = done.lines[0]["run"] if command == "import FILE" else run
        if command == "keys create --user alice":
            made = done.lines[0]
            continue
        assert set(done.lines[0]) == KEYS[command] - OF_PARTS.get(command, set()), command
    [key] = program.run("keys", "list", "--json").lines
    assert (key["tenant"], key["name"]) == ("acme", "alice")
    assert {"key": made["key"], **key} == made, "a new key is printed as it is listed"
    checks = json.loads(program.run("doctor", "--json").out)["checks"]
    assert set(checks[0]) == OF_PARTS["doctor"]
