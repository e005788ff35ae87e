"""A command that leaves something to do ends with what to do next; with --json it prints JSON alone."""

import json
from pathlib import Path

import pytest

from tests.support.program import Program

SOURCES = "/why there shows the sources of an answer."
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
        ("import", str(history)): f"Next: nexus chat --room general, then @nexus …; {SOURCES}",
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
    assert program.run("doctor", NEXUS_MODEL="m", NEXUS_OPENAI_BASE_URL="http://127.0.0.1:1/v1").out.splitlines()[
        -1
    ] == ("Next: nexus chat talks to the agent here; nexus setup connects Discord and Slack.")
    wrong = program.run("doctor", NEXUS_MODEL="m")
    assert wrong.status == 1
    last = "Next: do what stands beside each ✗, then run nexus doctor again. docs/troubleshooting.md explains more."
    assert wrong.out.splitlines()[-1] == last


def test_an_import_leads_to_where_it_was_said_and_an_export_to_its_file(tmp_path: Path) -> None:
    program = Program(tmp_path, {"NEXUS_HOME": str(tmp_path / "home")})
    irc = tmp_path / "2004-11-15.txt"
    irc.write_text("[12:18] <tweaked> hello\n[12:19] <erin> hi\n", encoding="utf-8")
    entries = [MESSAGE, {**MESSAGE, "id": "m2", "room": "ops", "user": "dave"}, {**MESSAGE, "id": "m3", "room": "ops"}]
    history, alone = tmp_path / "history.jsonl", tmp_path / "alone.jsonl"
    history.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    dm = {key: value for key, value in MESSAGE.items() if key != "room"} | {"dm": "nexus", "id": "m4", "user": "bob"}
    alone.write_text(json.dumps(dm) + "\n", encoding="utf-8")

    def step(*words: str) -> str:
        done = program.run("import", *words, "--no-embed")
        assert done.status == 0, done.err
        return done.out.splitlines()[-1]

    into = ("--format", "irc", "-w", "sample", "--room", "ubuntu")
    assert step(str(irc), *into) == f"Next: nexus chat -w sample --room ubuntu, then @nexus …; {SOURCES}"
    assert step(str(history), "--private") == f"Next: nexus chat --room ops, then @nexus …; {SOURCES}"
    closed = ("-w", "closed", "--private", "--room", "new room")
    private = step(str(history), *closed)
    assert private == f"Next: nexus chat -w closed --room 'new room', then @nexus …; {SOURCES}", "alice wrote there"
    only = tmp_path / "only.jsonl"
    only.write_text(json.dumps(entries[1]) + "\n", encoding="utf-8")
    shut = f"Next: nexus chat -w shut --as dave --room ops, then @nexus …; {SOURCES}"
    assert step(str(only), "-w", "shut", "--private") == shut, "alice may not be there"
    assert step(str(alone)) == f"Next: nexus chat --as bob --dm nexus, then ask about it; {SOURCES}"
    empty = tmp_path / "empty.jsonl"
    empty.write_text("", encoding="utf-8")
    nothing = program.run("import", str(empty))
    assert (nothing.status, nothing.out) == (2, "")
    assert nothing.sentences == [
        f"nexus: {empty}: there is no message in it. docs/import.md says which files an import takes."
    ]
    exported = program.run("export", "--user", "bob")
    path = next(tmp_path.glob("nexus-export-*.json"))
    assert exported.out.startswith(f"{path}, which only you may read: ")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("command", [("backup",), ("export", "--user", "alice", "-w", "sample")])
def test_a_file_in_a_folder_that_is_not_there_is_refused(tmp_path: Path, command: tuple[str, ...]) -> None:
    # The folder was made, so who mistyped it, or whose disk was not mounted, had a backup elsewhere.
    program = Program(tmp_path, {"NEXUS_HOME": str(tmp_path / "home")})
    program.run("chat", "--sample", input="")
    ran = program.run(*command, str(tmp_path / "disk" / "file"))
    assert ran.status == 2
    assert ran.sentences == [f"nexus: There is no folder {tmp_path / 'disk'}: make it first, or name another file."]
    assert not (tmp_path / "disk").exists()
    (tmp_path / "disk").mkdir()
    assert program.run(*command, str(tmp_path / "disk" / "file")).status == 0
