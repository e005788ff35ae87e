"""`play`, `import` and `compose` keep to the formats that other programs read (docs/json-lines.md)."""

import json
from pathlib import Path
from typing import Any

import pytest

from composer.settings import Settings
from tests.support.program import Program

SECTIONS = ["SYSTEM", "CONTEXT", "FACTS", "LANDMARKS", "SUMMARIES", "WORKING", "RELATED", "RECALL", "MESSAGE"]
LAYERS = {"resolve", "working", "episodic", "semantic", "structured", "pack"}


@pytest.fixture
def program(settings: Settings, tmp_path: Path) -> Program:
    """The program over this worker's servers and a fresh database."""
    assert settings.database_url is not None
    assert settings.redis_url is not None
    urls = {"NEXUS_DATABASE_URL": settings.database_url, "NEXUS_REDIS_URL": settings.redis_url}
    return Program(tmp_path, {"NEXUS_HOME": str(tmp_path / "home"), **urls})


def message(id: str, text: str, **more: Any) -> dict[str, Any]:
    where = {} if {"dm", "session"} & set(more) else {"room": "general"}
    return {"type": "message", "at": "2026-05-04T09:00:00Z", "user": "alice", "id": id, "text": text, **where, **more}


def check_prompt(prompt: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Check what is true of every prompt and return its sections by name."""
    assert [section["name"] for section in prompt["sections"]] == SECTIONS
    assert 0 < prompt["tokens"] <= prompt["window"]
    sent = "\n".join(part["content"] for part in prompt["role_messages"])
    assert {part["role"] for part in prompt["role_messages"]} <= {"system", "user", "assistant"}
    for section in prompt["sections"]:
        assert section["text"] in sent or section["name"] == "WORKING"
        assert (section["tokens"] > 0) is bool(section["text"])
        for source in section["sources"]:
            assert set(source) >= {"layer", "kind", "id", "namespace", "visibility", "messages", "score"}
    scores = [source["score"] for source in prompt["sections"][6]["sources"]]
    assert scores == sorted(scores, reverse=True)
    return {section["name"]: section for section in prompt["sections"]}


def test_play_reports_the_result_of_each_event(program: Program) -> None:
    played = program.play(
        {"type": "join", "room": "general", "user": "carol"},
        message("m1", "we decided to deploy on Fridays"),
        message("m2", "I am carol", user="carol", name="Carol C."),
        {"type": "command", "room": "general", "user": "alice", "text": '/nexus fact set deploy "Friday"'},
        {"type": "edit", "id": "m1", "text": "we decided to deploy on Mondays"},
        {"type": "settle"},
        message("q1", "@nexus when do we deploy?", at="2026-05-04T11:00:00+02:00", thread="t1"),
        message("q2", "and in private?", dm="nexus"),
        message("q3", "and here?", session="s1", agent="nexus", at="2026-05-05T09:00:00Z"),
        {"type": "delete", "id": "m1"},
        {"type": "leave", "room": "general", "user": "carol"},
    )
    assert (played.status, played.sentences) == (0, [])
    command, *replies = played.lines
    assert command == {"event": "command", "text": 'deploy = "Friday", in #general.'}
    assert [(reply["event"], reply["to"]) for reply in replies] == [("reply", "q1"), ("reply", "q2"), ("reply", "q3")]
    for reply in replies:
        assert set(reply) == {"event", "to", "turn", "text", "prompt", "timings_ms"}
        assert set(reply["timings_ms"]) >= LAYERS
    composed = check_prompt(replies[0]["prompt"])
    assert "Mondays" in composed["RECALL"]["text"]
    assert "Fridays" not in json.dumps(replies[0])
    assert composed["RECALL"]["sources"][0]["messages"] == ["m1"]
    assert composed["FACTS"]["text"].startswith('[FACTS]\n- deploy = "Friday"')
    assert composed["MESSAGE"]["text"] == "[MESSAGE]\nalice (2026-05-04 09:00): @nexus when do we deploy?"
    assert "Monday, 2026-05-04" in composed["CONTEXT"]["text"]
    for reply in replies[1:]:
        assert "Mondays" not in json.dumps(check_prompt(reply["prompt"])), (
            "a message of a room in a private conversation"
        )


def test_play_shows_people_the_prompt_and_says_how_to_get_other_files(program: Program) -> None:
    give = {"type": "command", "room": "general", "user": "alice"}
    asked = message("q1", "@nexus when do we deploy?")
    script = program.script(asked, give | {"text": "/nexus why --prompt"}, give | {"text": "/nexus export"})
    played = program.run("play", script)
    assert (played.status, played.sentences) == (0, [])
    assert "as far as you may read it now:\n[system]\nYou are " in played.out
    assert played.out.endswith("pending items.\n  (nexus-export.json: --json shows it)\n")


def test_compose_stores_nothing_and_repeats_its_output(program: Program) -> None:
    program.play(message("m1", "we decided to deploy on Fridays"))
    entry = {"id": "q1", "at": "2026-05-04T10:00:00Z", "room": "general", "user": "bob", "text": "when do we deploy?"}
    batch = program.script(entry, entry | {"id": "q2", "user": "carol"}, entry, name="batch.jsonl")
    first = program.run("compose", "--batch", batch)
    assert (first.status, first.sentences) == (0, [])
    one, other, again = first.lines
    assert set(one) == {"id", "prompt", "timings_ms"}
    assert set(one["timings_ms"]) >= LAYERS
    assert [line["id"] for line in first.lines] == ["q1", "q2", "q1"]
    assert one["prompt"] == again["prompt"]
    assert "bob" not in json.dumps(other["prompt"])
    assert "Fridays" in check_prompt(one["prompt"])["WORKING"]["text"]
    none = program.run("compose", "--batch", batch, "--top-k", "0")
    assert check_prompt(none.lines[0]["prompt"])["RECALL"]["sources"] == []


def test_importing_twice_and_then_playing_changes_nothing(program: Program) -> None:
    events = [
        message("m1", "we decided to deploy on Fridays"),
        message("m2", "@nexus nobody answers history"),
        message("m3", "to be deleted"),
        {"type": "delete", "id": "m3"},
        message("d1", "in private", dm="nexus"),
    ]
    path = program.script(*events, name="history.jsonl")
    first, second = (json.loads(program.run("import", path, "--json").out) for _ in range(2))
    assert first.pop("run") != second.pop("run"), "each run has an id of its own"
    assert first == {"read": 4, "new": 4, "known": 0, "skipped": {}}
    assert second == {"read": 4, "new": 0, "known": 4, "skipped": {}}
    played = program.play(*events[:3])
    assert (played.status, played.out) == (0, "")
    composed = program.run("compose", "--as", "bob", "--room", "general", "when do we deploy?", "--json")
    working = check_prompt(composed.lines[0]["prompt"])["WORKING"]["text"]
    assert [line.partition(": ")[2] for line in working.splitlines()] == [event["text"] for event in events[:2]]


def test_an_irc_log_becomes_a_room(program: Program) -> None:
    log = program.folder / "2004-11-15.ubuntu.txt"
    log.write_text(
        "[23:58] <alice> we deploy on Fridays\n[23:59] * bob nods\n=== carol has joined\n[00:01] <carol> hi\n"
    )
    ran = program.run("import", log, "--format", "irc", "--room", "ubuntu", "--json")
    (done,) = ran.lines
    assert (ran.status, done) == (0, {"run": done["run"], "read": 3, "new": 3, "known": 0, "skipped": {}})
    composed = program.run("compose", "--as", "dave", "--room", "ubuntu", "when do we deploy?", "--json")
    working = check_prompt(composed.lines[0]["prompt"])["WORKING"]
    assert working["text"].splitlines() == [
        "alice (2004-11-15 23:58): we deploy on Fridays",
        "bob (2004-11-15 23:59): nods",
        "carol (2004-11-16 00:01): hi",
    ]
    assert [source["messages"] for source in working["sources"]] == [[f"2004-11-15:{line}"] for line in (0, 1, 3)]
