"""Who may read an imported history is known before anything is stored: by the file, an option or an answer."""

import json
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest

from composer.settings import Settings
from tests.support.program import NEXUS, Program
from tests.support.waiting import TIMEOUT_SECONDS

LOG = "[12:00] <alice> the release is on Friday\n[12:01] <bob> fine\n=== bob has quit\n"


@pytest.fixture
def program(settings: Settings, tmp_path: Path) -> Program:
    assert settings.database_url is not None
    assert settings.redis_url is not None
    urls = {"NEXUS_DATABASE_URL": settings.database_url[:], "NEXUS_REDIS_URL": settings.redis_url[:]}
    return Program(tmp_path, urls | {"NEXUS_HOME": str(settings.home)})


def said(id: str, room: str, user: str = "alice", **more: Any) -> dict[str, Any]:
    text = f"the zebra lives in {room}"
    return {"type": "message", "at": "2026-05-04T09:00:00Z", "room": room, "user": user, "id": id, "text": text, **more}


def reads(program: Program, user: str, room: str) -> bool:
    """Whether somebody may ask in a room, and is shown what was said there."""
    ran = program.run("compose", "--as", user, "--room", room, "what was said here?", "--json")
    return ran.status == 0 and (f"the zebra lives in {room}" in ran.out or "on Friday" in ran.out)


def test_an_irc_log_that_is_private_is_read_by_those_who_are_in_it(program: Program) -> None:
    log = program.folder / "2004-11-15.txt"
    log.write_text(LOG)
    ran = program.run("import", log, "--format", "irc", "--room", "den", "--private")
    assert ran.status == 0
    assert ran.sentences == [
        "The files don't say who may read these rooms; #den: private, for those who wrote there or join."
    ]
    assert reads(program, "alice", "den")
    assert not reads(program, "carol", "den")
    assert not reads(program, "bob", "den"), "he has left"


def test_an_import_is_listed_and_undone_by_its_id_after_showing_how_much(program: Program) -> None:
    path = program.script(said("m1", "town"), said("m2", "cave", "bob"))
    loaded = program.run("import", path)
    (line,) = [line for line in loaded.out.splitlines() if line.startswith("This is import ")]
    run = line.split()[3].rstrip(".")
    assert line.endswith(f"To undo it: nexus import --undo {run}")
    (listed,) = program.run("import", "--list", "--json").lines
    assert (listed["run"], listed["source"], listed["messages"], listed["rooms"]) == (run, path.name, 2, 2)
    asked = program.run("import", "--undo", run)
    assert asked.status == 2
    assert "brought 2 messages in 2 rooms" in asked.err
    assert reads(program, "alice", "town")
    done = program.run("import", "--undo", run, "--yes")
    assert done.status == 0
    assert f"Import {run} is undone: 2 messages, 2 conversations and 2 people are erased." in done.out
    receipt = done.out.split("Receipt: ")[1].strip().rstrip(".")
    assert program.run("doctor", "--erased", receipt).status == 0
    again = program.run("import", "--undo", run, "--yes")
    assert again.status == 0
    assert "nothing of it is left" in again.out
    assert not reads(program, "alice", "town")
    for words in (("--undo", "nothere"), ("--list", path), ()):
        refused = program.run("import", *words)
        assert (refused.status, len(refused.sentences)) == (1 if "nothere" in words else 2, 1), words


def test_rooms_named_public_are_open_and_all_others_are_closed(program: Program) -> None:
    board = said("m3", "board", private=True)
    path = program.script(said("m1", "town"), said("m2", "cave"), said("m4", "cave", "dave", thread="t1"), board)
    ran = program.run("import", path, "--public", "town", "--json")
    counts = json.loads(ran.out)
    assert counts == {"run": counts["run"], "read": 4, "new": 4, "known": 0, "skipped": {}}
    assert ran.sentences == [
        "The files don't say who may read these rooms; #town: public, for everyone in the workspace; #cave: private, "
        "for those who wrote there or join."
    ]
    assert [reads(program, "carol", room) for room in ("town", "cave", "board")] == [True, False, False]
    assert reads(program, "dave", "cave"), "who wrote in a thread is in the room"
    again = program.run("import", path, "--private", "--json")
    assert json.loads(again.out)["new"] == 0
    assert again.sentences == [], "what is stored is known"
    assert reads(program, "carol", "town")
    refused = program.run("import", path, "--public", "board")
    assert (refused.status, "stored as private" in refused.err) == (2, True)


def test_a_misspelt_name_of_a_public_room_stores_nothing(program: Program) -> None:
    path = program.script(said("m1", "town"), said("m2", "cave"))
    ran = program.run("import", path, "--public", "tonw")
    assert ran.status == 2
    assert ran.sentences == [
        "nexus: --public names tonw, and there is no such room in these files, which have: cave, town."
    ]
    assert program.run("import", "--list").out == "Nothing was imported.\n"


def test_without_a_word_and_without_a_terminal_rooms_are_public_as_in_scripts(program: Program) -> None:
    path = program.script(said("m1", "town"), said("m2", "board", private=True))
    ran = program.run("import", path)
    assert ran.sentences == [
        "The files don't say who may read these rooms; #town: public, for everyone in the workspace."
    ]
    assert [reads(program, "carol", room) for room in ("town", "board")] == [True, False]


def test_public_alone_means_all_that_the_files_leave_open(program: Program) -> None:
    path = program.script(said("m1", "town"), said("m2", "board", private=True))
    assert program.run("import", path, "--public").status == 0
    assert [reads(program, "carol", room) for room in ("town", "board")] == [True, False]
    both = program.run("import", path, "--public", "--private")
    assert both.status == 2
    assert "not both" in both.err


def test_public_says_which_rooms_it_does_not_open(program: Program) -> None:
    path = program.script(said("m1", "town"), said("m2", "board", private=True))
    assert program.run("import", path, "--private").status == 0
    ran = program.run("import", path, "--public")
    assert ran.status == 0
    assert ran.sentences == [
        "Stored as private already, and still so: #town. To open them, undo the import that made them private (nexus "
        "import --list), and load them again."
    ]
    assert not reads(program, "carol", "town")


@pytest.mark.parametrize(("answer", "public"), [("y", True), ("n", False)])
def test_at_a_terminal_it_is_asked_before_anything_is_stored(program: Program, answer: str, public: bool) -> None:
    path = program.script(said("m1", "town"))
    terminal: pexpect.spawn[str] = pexpect.spawn(
        sys.executable,
        [*NEXUS[1:], "import", str(path)],
        cwd=str(program.folder),
        env=program.environment,
        timeout=TIMEOUT_SECONDS,
        encoding="utf-8",
    )
    try:
        terminal.expect_exact("The files don't say who may read #town.")
        terminal.expect_exact("May everyone in the workspace read them?")
        assert not reads(program, "alice", "town"), "nothing is stored yet"
        terminal.sendline(answer)
        terminal.expect_exact("1 message read: 1 new")
        terminal.expect(pexpect.EOF)
    finally:
        terminal.close()
    assert reads(program, "alice", "town")
    assert reads(program, "carol", "town") is public
