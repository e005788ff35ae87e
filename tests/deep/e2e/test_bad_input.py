"""Given bad input, the program prints one sentence, exits with the right status, and stores nothing partially.

Status 2: the input is wrong. Status 1: the work could not be done.
"""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from composer.stores.embedded.servers import EmbeddedServers
from composer.text.cleaning import clean_text
from tests.support.databases import copy_cluster, database_url
from tests.support.model_server import ModelServer
from tests.support.program import Program, Ran

CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"]


@pytest.fixture(scope="module")
def home(cluster: Path) -> Iterator[Path]:
    """A data folder for the whole module, with running servers; each test has its own workspace in it."""
    above = Path(tempfile.mkdtemp(prefix="nexus-bad-"))
    servers = EmbeddedServers(copy_cluster(above / "home", cluster))
    servers.start()
    yield above / "home"
    servers.stop()
    shutil.rmtree(above, ignore_errors=True)


@pytest.fixture
def program(home: Path, tmp_path: Path) -> Program:
    return Program(tmp_path, {"NEXUS_HOME": str(home)})


@pytest.fixture
def workspace(request: pytest.FixtureRequest) -> str:
    name: str = request.node.originalname
    return name.removeprefix("test_")[:60]


@contextmanager
def open_database(home: Path) -> Iterator[str]:
    """The URL of a data folder's database, which runs during the block."""
    servers = EmbeddedServers(home)
    try:
        yield servers.start().database_url
    finally:
        servers.stop()


def rows(home: Path, query: str, *args: object) -> list[Any]:
    """Query the database as its owner, without row-level security."""

    async def fetch(url: str) -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(query, *args)]
        finally:
            await connection.close()

    with open_database(home) as url:
        return asyncio.run(fetch(url))


def stored(home: Path, workspace: str) -> list[str]:
    """The messages of a workspace, in order."""
    found = rows(
        home, "SELECT text FROM messages JOIN tenants USING (tenant_id) WHERE slug = $1 ORDER BY at, seq", workspace
    )
    return [text for (text,) in found]


def anything_stored(home: Path, workspace: str) -> bool:
    """Whether anything was stored for a workspace."""
    try:
        return bool(rows(home, "SELECT FROM tenants WHERE slug = $1", workspace))
    except asyncpg.UndefinedTableError:
        return False  # nothing was ever stored in this database


def message_event(text: str, id: str, workspace: str, **more: Any) -> dict[str, Any]:
    where = {} if {"dm", "session"} & set(more) else {"room": "general"}
    return {"type": "message", "workspace": workspace, "user": "alice", "id": id, "text": text, **where, **more}


def assert_refused(ran: Ran, status: int, sentence: str) -> None:
    """Check the exit status, and that the program printed one sentence and nothing else."""
    assert ran.sentences == [sentence]
    assert (ran.status, ran.out) == (status, "")


# --- scripts, batches and histories ----------------------------------------------------------------------------------


def test_a_script_with_a_bad_line_is_refused_as_a_whole(program: Program, home: Path, workspace: str) -> None:
    ran = program.play(
        message_event("fine", "m1", workspace),
        message_event("fine", "m2", workspace),
        '{"type": "message",',
        name="s.jsonl",
    )
    path = program.folder / "s.jsonl"
    assert ran.sentences[0].startswith(f"nexus: {path}:3: this is not JSON: ")
    assert (ran.status, ran.out, len(ran.sentences)) == (2, "", 1)
    assert not anything_stored(home, workspace)


def test_a_batch_with_a_bad_line_is_refused_as_a_whole(program: Program) -> None:
    path = program.script({"id": "1", "user": "alice", "room": "a", "dm": "nexus", "text": "x"}, name="b.jsonl")
    ran = program.run("compose", "--batch", path)
    assert_refused(ran, 2, f"nexus: {path}:1: name exactly one of room, dm and session.")
    for beside in (["--as", "alice"], ["--room", "general"], ["what?"]):
        ran = program.run("compose", "--batch", path, *beside)
        assert_refused(
            ran, 2, "nexus: With --batch each line names its user, its place and its question: leave them out here."
        )


def test_a_history_with_a_bad_line_is_refused_as_a_whole_but_a_log_is_read(
    program: Program, home: Path, workspace: str
) -> None:
    at = {"at": "2026-05-04T09:00:00Z"}
    path = program.script(
        message_event("fine", "m1", workspace, **at), message_event("no time", "m2", workspace), name="h.jsonl"
    )
    assert_refused(program.run("import", path), 2, f"nexus: {path}:2: history needs a time: set `at`.")
    log = program.folder / "2026-05-04.txt"
    log.write_text("[09:00] <alice> fine\nnonsense\n")
    assert not anything_stored(home, workspace)
    ran = program.run("import", log, "--format", "irc", "-w", workspace)
    odd = f"{log}:2: this is not a line of an IRC log; expected [hh:mm] <nick> text."
    assert (ran.status, ran.sentences[-1]) == (0, f"1 line left out: {odd}")
    log.write_text("nonsense\n")
    assert_refused(
        program.run("import", log, "--format", "irc", "-w", workspace), 2, f"nexus: {odd.replace(':2:', ':1:')}"
    )


@pytest.mark.parametrize("content", [None, b"\xff\xfe not UTF-8"], ids=["missing", "binary"])
def test_a_file_that_cannot_be_read_is_refused(program: Program, content: bytes | None) -> None:
    path = program.folder / "script.jsonl"
    if content is not None:
        path.write_bytes(content)
    why = "can't be read: No such file or directory" if content is None else "is not UTF-8 text (byte 0)"
    assert_refused(program.run("play", path), 2, f"nexus: {path} {why}.")


def test_failed_events_are_named_and_the_others_are_processed(program: Program, home: Path, workspace: str) -> None:
    ran = program.play(
        message_event("first", "m1", workspace),
        message_event("   ", "m2", workspace),
        message_event("hello", "m3", workspace, dm="nobody"),
        {"type": "delete", "workspace": workspace, "id": "no such"},
        {"type": "leave", "workspace": workspace, "room": "no such", "user": "alice"},
        {"type": "command", "workspace": workspace, "room": "general", "user": "alice", "text": "/nexus fact set a"},
        {"type": "command", "workspace": workspace, "room": "general", "user": "alice", "text": "/nexus frobnicate"},
        {"type": "job", "workspace": workspace, "name": "no such"},
        message_event("last", "m9", workspace),
    )
    assert ran.status == 1
    assert ran.sentences == []
    assert [event["event"] for event in ran.lines] == ["error"] * 7
    path = program.folder / "script.jsonl"
    expected = (
        f"{path}:2: The message is empty",
        f"{path}:3: There is no agent 'nobody': choose one of nexus.",
        "There is no message 'no such' here.",
        "There is no room 'no such' here.",
        f"{path}:6: VALUE is missing. Usage: /nexus fact set KEY VALUE ",
        f"{path}:7: There is no command /nexus frobnicate. /nexus help",
        f"{path}:8: There is no job 'no such'",
    )
    for event, beginning in zip(ran.lines, expected, strict=True):
        assert event["text"].startswith(beginning)
    assert stored(home, workspace) == ["first", "last"]
    assert rows(home, "SELECT key FROM facts JOIN tenants USING (tenant_id) WHERE slug = $1", workspace) == []


# --- messages --------------------------------------------------------------------------------------------------------


def test_control_characters_are_neither_stored_nor_shown(program: Program, home: Path, workspace: str) -> None:
    said_so = "".join(f"wom{control}bat{control}" for control in CONTROLS) + " \x1b[2J\x1b]0;owned\x07 the vault"
    expected_text = clean_text(said_so)
    played = program.play(
        message_event(said_so, "m1", workspace), message_event("@nexus wombat vault?", "m2", workspace)
    )
    assert played.status == 0, played.err
    prompt = played.lines[0]["prompt"]
    shown = "".join(message["content"] for message in prompt["role_messages"]) + played.lines[0]["text"]
    assert "the vault" in shown
    assert not set(CONTROLS) & set(shown)
    assert stored(home, workspace)[0] == expected_text
    ask = ("--as", "alice", "--room", "general", "-w", workspace)
    composed = program.run("compose", *ask, "wombat vault?")
    chatted = program.run("chat", *ask, input="@nexus wombat vault?\n/recall wombat vault\n/why\n")
    for ran in (composed, chatted, program.run("play", program.folder / "script.jsonl")):
        assert ran.status == 0, ran.err
        assert not set(CONTROLS) & set(ran.out + ran.err)
    assert "the vault" in composed.out
    assert "the vault" in chatted.out


def test_characters_that_the_database_cannot_store_are_replaced(program: Program, home: Path, workspace: str) -> None:
    line = json.dumps(message_event("a NUL \0 and half a pair \ud800 here", "m1", workspace))
    ran = program.play(line, message_event("@nexus what is here?", "m2", workspace))
    assert ran.status == 0, ran.err
    assert stored(home, workspace)[0] == "a NUL \ufffd and half a pair \ufffd here"
    bad = program.play(
        message_event("x", "m\0", workspace), message_event("x", "m3", workspace, user="al\0ice"), name="names.jsonl"
    )
    assert bad.status == 2  # the whole script is refused, before any of it is played
    assert "names.jsonl:1: `id`: a name must not contain NUL" in bad.err
    assert len(stored(home, workspace)) == 3


def test_bytes_that_are_not_text_do_not_end_a_chat(program: Program, home: Path, workspace: str) -> None:
    ran = program.run(
        "chat", "-w", workspace, "--room", "general", input=b"the vault \xff\xfe opens\n@nexus the vault?\n"
    )
    assert ran.status == 0, ran.err
    assert "Traceback" not in ran.err
    assert len(stored(home, workspace)) == 3


# --- users and places ------------------------------------------------------------------------------------------------


def test_an_unknown_user_place_or_item_is_named(program: Program, home: Path, workspace: str) -> None:
    program.play(message_event("hello", "m1", workspace))
    alice = {"workspace": workspace, "user": "alice", "text": "hi"}
    nobody = f"There is no user 'nobody' in the workspace {workspace}; nobody of that name has written there."
    cases = (
        (alice | {"room": "nosuch"}, "There is no room 'nosuch' here."),
        (alice | {"room": "general", "thread": "nosuch"}, "There is no room 'general' here."),
        (alice | {"session": "nosuch"}, "There is no session 'nosuch' here."),
        (alice | {"dm": "nexus"}, "There is no agent 'nexus' here."),
        (alice | {"dm": "nosuch"}, "There is no agent 'nosuch': choose one of nexus."),
        (alice | {"dm": "nexus", "user": "nobody"}, nobody),
        (alice | {"room": "general", "text": " "}, "The question is empty: write some text."),
        (alice | {"room": "general", "workspace": "nowhere"}, "There is no room 'general' here."),
    )
    path = program.script(*({"id": str(n), **entry} for n, (entry, _) in enumerate(cases)), name="batch.jsonl")
    batch = program.run("compose", "--batch", path)
    assert (batch.status, batch.sentences) == (1, [])
    assert batch.lines == [
        {"id": str(number), "error": f"{path}:{number + 1}: {sentence}"} for number, (_, sentence) in enumerate(cases)
    ]
    where = ("compose", "-w", workspace, "--as", "alice", "--room")
    assert_refused(program.run(*where, "nosuch", "hi"), 1, "nexus: There is no room 'nosuch' here.")
    places = "Name exactly one place: --room ROOM, --dm [AGENT] or --session SESSION."
    assert_refused(program.run(*where, "general", "--session", "s", "hi"), 2, f"nexus: {places}")
    example = 'Name the user and the message; for example: nexus compose --as alice --room general "when do we ship?"'
    assert_refused(program.run("compose", "--room", "general", "hi"), 2, f"nexus: {example}")
    missing = f"nexus: There is no user 'nobody' in the workspace {workspace}."
    assert_refused(program.run("admin", "nobody", "-w", workspace), 1, missing)
    assert stored(home, workspace) == ["hello"]
    assert not anything_stored(home, "nowhere")


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        (
            '[[agents]]\nslug = "a"\n[[agents]]\nslug = "a"\n',
            "In {}, two `agents` have the slug 'a': give each its own.",
        ),
        ("[[agents]\n", "{} is not valid TOML: "),
    ],
    ids=["twins", "no toml"],
)
def test_a_bad_nexus_toml_is_refused(program: Program, toml: str, sentence: str) -> None:
    path = program.folder / "nexus.toml"
    path.write_text(toml)
    ran = program.run("play", program.script())
    assert ran.sentences[0].startswith("nexus: " + sentence.format(path))
    assert (ran.status, ran.out, len(ran.sentences)) == (2, "", 1)


def test_days_in_the_wrong_order_are_refused(program: Program) -> None:
    ran = program.run("usage", "--since", "2026-05-04", "--until", "2026-05-01")
    assert (ran.status, ran.sentences) == (
        2,
        ["nexus: --until 2026-05-01 is before --since 2026-05-04: exchange them."],
    )


def test_an_unknown_setting_is_reported_with_the_nearest_name(program: Program) -> None:
    ran = program.run("play", program.script(), NEXUS_MODLE="x")
    assert (ran.status, ran.sentences) == (0, ["NEXUS_MODLE is not a setting of Nexus; did you mean NEXUS_MODEL?"])


@pytest.mark.parametrize(
    ("setting", "value", "status", "sentence"),
    [
        (
            "NEXUS_DATABASE_URL",
            "postgresql://u:sesame@127.0.0.1:1/nexus",
            1,
            "The database at 127.0.0.1:1 does not answer; try again in a moment.",
        ),
        ("NEXUS_DATABASE_URL", "nonsense", 2, "NEXUS_DATABASE_URL "),
        ("NEXUS_DATABASE_URL", "mysql://127.0.0.1/nexus", 2, "NEXUS_DATABASE_URL "),
        ("NEXUS_REDIS_URL", "nonsense", 2, "NEXUS_REDIS_URL is wrong: it must be a URL like redis://"),
        ("NEXUS_WEB_PORT", "many", 2, "NEXUS_WEB_PORT is wrong: "),
        ("NEXUS_EMBEDDER", "text-embedding-3-small", 2, "NEXUS_EMBEDDER is text-embedding-3-small, which needs an API"),
    ],
    ids=["database away", "no database", "not postgres", "no cache", "no port", "no api"],
)
def test_a_wrong_setting_is_named(program: Program, setting: str, value: str, status: int, sentence: str) -> None:
    ran = program.run("play", program.script(), **{setting: value})
    assert len(ran.sentences) == 1, ran.err
    assert ran.sentences[0].startswith(f"nexus: {sentence}")
    assert "sesame" not in ran.err
    assert (ran.status, ran.out) == (status, "")


def test_an_error_of_the_database_is_quoted(program: Program, home: Path) -> None:
    with open_database(home) as url:
        ran = program.run("play", program.script(), NEXUS_DATABASE_URL=database_url(url, "nosuch"))
    assert (ran.status, len(ran.sentences)) == (2, 1), ran.err
    assert 'refused the connection: database "nosuch" does not exist. Check NEXUS_DATABASE_URL.' in ran.sentences[0]


def test_an_unreachable_cache_logs_a_warning_and_the_answer_still_comes(program: Program, workspace: str) -> None:
    script = program.script(
        message_event("the vault opens", "m1", workspace), message_event("@nexus the vault?", "m2", workspace)
    )
    ran = program.run("play", script, "--json", NEXUS_REDIS_URL="redis://127.0.0.1:1")
    assert (ran.status, ran.sentences) == (0, [])
    assert [event["event"] for event in ran.lines] == ["reply"]
    assert "working.cache_unavailable" in ran.err


# --- the model -------------------------------------------------------------------------------------------------------


def test_a_model_that_does_not_answer_is_reported_in_the_conversation(
    program: Program, home: Path, workspace: str
) -> None:
    model = {"NEXUS_OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "NEXUS_OPENAI_API_KEY": "sesame", "NEXUS_MODEL": "m"}
    ran = program.play(message_event("@nexus hello", "m1", workspace), **model)
    (event,) = ran.lines
    assert (event["event"], event["to"]) == ("error", "m1")
    assert event["text"] == "The model that answers here can't be reached now: try again in a while."
    assert "The model API at 127.0.0.1:1 cannot be reached" in ran.err, "the program log says the place"
    assert "sesame" not in ran.out + ran.err
    assert stored(home, workspace) == ["@nexus hello"]
    turns = rows(home, "SELECT state FROM turns JOIN tenants USING (tenant_id) WHERE slug = $1", workspace)
    assert turns == [("sent",)]


async def test_a_wrong_key_is_reported_in_the_conversation(program: Program, workspace: str) -> None:
    async with ModelServer(key="right") as server:
        model = {"NEXUS_OPENAI_BASE_URL": server.url, "NEXUS_OPENAI_API_KEY": "sesame", "NEXUS_MODEL": "m"}
        ran = await asyncio.to_thread(program.play, message_event("@nexus hello", "m1", workspace), **model)
    (event,) = ran.lines
    assert (event["event"], event["to"]) == ("error", "m1")
    assert event["text"] == "The model that answers here is not set up as it should be: tell whoever runs Nexus."
    assert "refused the key (401). Check NEXUS_OPENAI_API_KEY." in ran.err, "the program log says what is wrong"
    assert "sesame" not in ran.out + ran.err


# --- the state of the database ---------------------------------------------------------------------------------------


async def test_another_embedder_than_the_stored_vectors_is_refused(program: Program) -> None:
    await asyncio.to_thread(program.run, "play", program.script())
    async with ModelServer() as server:
        other = {"NEXUS_EMBEDDER": "text-embedding-x", "NEXUS_OPENAI_BASE_URL": server.url, "NEXUS_MODEL": "m"}
        ran = await asyncio.to_thread(program.run, "play", program.script(), **other)
    assert (ran.status, len(ran.sentences)) == (2, 1), ran.err
    assert ran.sentences[0].startswith("nexus: This database holds vectors of the embedder ")
    assert "NEXUS_EMBEDDER is text-embedding-x (8)" in ran.sentences[0]


@pytest.fixture
def ledger(home: Path) -> Iterator[str]:
    """The URL of a separate database with a ledger of migrations and nothing else."""
    table = (
        "CREATE TABLE schema_migrations (version int PRIMARY KEY, name text NOT NULL,"
        " checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    with open_database(home) as url:
        asyncio.run(execute(url, "CREATE DATABASE ledger"))
        asyncio.run(execute(database_url(url, "ledger"), table))
        yield database_url(url, "ledger")
        asyncio.run(execute(url, "DROP DATABASE ledger WITH (FORCE)"))


async def execute(url: str, statement: str, *args: object) -> list[Any]:
    connection = await asyncpg.connect(url)
    try:
        return list(await connection.fetch(statement, *args))
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        (
            9999,
            "The database has migration 9999 (later), which this version of Nexus does not know: "
            "install the newer version that made it.",
        ),
        (68, "Migration 0068 (later) was changed after it had been applied: restore the file."),
        (
            41,
            "The database was made by an early Nexus (migration 0041), and this version upgrades databases at "
            "migration 0067 only: run nexus migrate of the commit 3f6bbc2b first.",
        ),
    ],
    ids=["newer", "changed", "early"],
)
def test_a_schema_of_another_version_is_left_alone(program: Program, ledger: str, version: int, sentence: str) -> None:
    asyncio.run(execute(ledger, "INSERT INTO schema_migrations VALUES ($1, 'later', 'sum')", version))
    for words in (("migrate",), ("play", program.script())):
        assert_refused(program.run(*words, NEXUS_DATABASE_URL=ledger), 2, f"nexus: {sentence}")
    tables = asyncio.run(execute(ledger, "SELECT FROM information_schema.tables WHERE table_schema = 'public'"))
    assert len(tables) == 1


def test_a_chat_on_a_platform_is_refused_with_what_to_do_instead(program: Program) -> None:
    ran = program.run("chat", "--platform", "slack", input="hello\n")
    assert ran.status == 2
    (sentence,) = ran.sentences
    assert "nexus compose --platform slack" in sentence
