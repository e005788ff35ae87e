"""`nexus compose` reaches the rooms of every platform, by their ids, and only for those who may read them."""

from pathlib import Path

import pytest

from composer.model import ConversationKind, Incoming, Place
from tests.support.harness import AppHarness
from tests.support.program import Program


@pytest.fixture
async def program(harness: AppHarness, tmp_path: Path) -> Program:
    """The program, over a Slack workspace with a public and a private channel in which U0ALICE wrote."""
    there, now = harness.app.directory.workspace("slack", "T0TEAM"), harness.clock.now()
    for name, private in (("C0TOWN", False), ("G0CAVE", True)):
        place = Place(ConversationKind.ROOM, name, private=private)
        said = Incoming("slack", "T0TEAM", place, "U0ALICE", "Alice", f"m-{name}", f"the zebra lives in {name}", now)
        await harness.app.receive(there, [said], answer=False)
    dm = Incoming("slack", "T0TEAM", Place(ConversationKind.DM, "nexus"), "U0ALICE", "Alice", "m-dm", "hi there", now)
    await harness.app.receive(there, [dm], answer=False)
    settings = harness.app.settings
    assert settings.database_url is not None
    assert settings.redis_url is not None
    urls = {"NEXUS_DATABASE_URL": settings.database_url[:], "NEXUS_REDIS_URL": settings.redis_url[:]}
    return Program(tmp_path, urls | {"NEXUS_HOME": str(settings.home)})


def test_the_rooms_of_a_platform_are_named_by_their_ids(program: Program) -> None:
    slack = ("compose", "--platform", "slack", "-w", "T0TEAM")
    for room in ("C0TOWN", "G0CAVE"):
        ran = program.run(*slack, "--as", "U0ALICE", "--room", room, "what was said?", "--json")
        assert f"the zebra lives in {room}" in ran.out
    outsider = program.run(*slack, "--as", "U0BOB", "--room", "G0CAVE", "what was said?")
    assert outsider.status == 1
    assert "zebra" not in outsider.out + outsider.err
    dm = program.run(*slack, "--as", "U0ALICE", "--dm", "nexus", "what was said?", "--json")
    assert dm.status == 0
    assert "hi there" in dm.out
    assert "G0CAVE" not in dm.out
    question = {"id": "q1", "user": "U0ALICE", "room": "C0TOWN", "workspace": "T0TEAM", "text": "what was said?"}
    batch = program.script(question, name="batch.jsonl")
    ran = program.run("compose", "--platform", "slack", "--batch", batch)
    assert "the zebra lives in C0TOWN" in ran.out


def test_a_missing_workspace_is_named(program: Program) -> None:
    ran = program.run("compose", "--platform", "slack", "--as", "U0ALICE", "--dm", "nexus", "what?")
    assert ran.status == 1
    assert "name another one with -w: T0TEAM" in ran.err
    export = program.run("export", "--platform", "slak", "-w", "T0TEAM", "--user", "U0ALICE")
    assert (export.status, "--platform" in export.err) == (2, True)
    wrong = program.run("compose", "--platform", "irc", "--as", "U0ALICE", "--room", "C0TOWN", "what?")
    assert wrong.status == 2


def test_the_platform_of_a_workspace_is_named_where_it_was_left_out(program: Program) -> None:
    for given in (("login", "U0ALICE"), ("export", "--user", "U0ALICE"), ("keys", "create", "--user", "U0ALICE")):
        ran = program.run(*given, "-w", "T0TEAM")
        assert ran.status == 1
        assert "T0TEAM is a workspace of slack: add --platform slack." in ran.err
        there_is_no_default = program.run(*given)
        assert "Nothing is stored in the workspace default; name another one: --platform slack -w T0TEAM." in (
            there_is_no_default.err
        )
    admin = program.run("admin", "U0ALICE", "-w", "T0TEAM")
    assert admin.status == 1
    assert "T0TEAM is a workspace of slack, whose admins slack names (docs/slack.md)." in admin.err


def test_the_audit_log_of_a_platforms_workspace_is_listed(program: Program) -> None:
    slack = ("--platform", "slack", "-w", "T0TEAM")
    assert program.run("keys", "create", *slack, "--user", "U0ALICE").status == 0
    listed = program.run("audit", "list", *slack, "--json")
    assert listed.lines[0]["act"] == "key.created"
    assert "room.joined" in {line["act"] for line in listed.lines}
    hers = program.run("audit", "list", *slack, "--user", "U0ALICE", "--act", "key.created", "--json")
    assert [line["act"] for line in hers.lines] == ["key.created"]
    none = program.run("audit", "list", *slack, "--act", "exported")
    assert (none.status, none.out) == (0, "The audit log of the workspace T0TEAM has no such rows.\n")
    for options in (("-w", "T0TEAM"), ("-w", "T0TEAM", "--json")):
        wrong = program.run("audit", "list", *options)
        assert wrong.status == 1
        assert "T0TEAM is a workspace of slack: add --platform slack." in wrong.err
    nowhere = program.run("audit", "list", "--platform", "slack", "-w", "T0TEM")
    assert nowhere.status == 1
    assert "Nothing is stored in the workspace T0TEM; name another one with -w: T0TEAM." in nowhere.err
