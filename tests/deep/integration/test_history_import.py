"""Importing history: files are stored as they are, once, and nothing is answered."""

import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bot.console.play import Player, ScriptClock
from bot.importers import history
from bot.importers.detection import format_of
from bot.importers.export import MIXED
from bot.importers.history import APART, HistoryResult, import_history, read_history
from bot.script.events import Line, MessageEvent, MoveEvent, read_script
from composer.errors import BadInput
from composer.model import Message, Trust, Workspace, room_id, thread_id, user_id
from composer.visibility import readable_conversation
from tests.support.harness import START, AppHarness
from tests.support.open_turns import open_turns

IRC = """\
=== alice [n=alice@example] has joined #general
[23:58] <alice> good evening
[23:59:30] <bob> @nexus hello
[00:00] * carol waves
=== bob has quit IRC ("bye")

=== alice is now known as alice2
[00:01] <carol>
[00:02] <dave>  two  spaces and \u00e4\u00f6\u00fc
=== carol has left #general []
"""


def irc(folder: Path, text: str = IRC, name: str = "2026-05-04_23.ascii.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def jsonl(folder: Path, *events: dict[str, Any] | str, name: str = "history.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(f"{e if isinstance(e, str) else json.dumps(e)}\n" for e in events), encoding="utf-8")
    return path


def event(kind: str, minute: float = 0, **fields: Any) -> dict[str, Any]:
    at = (START + timedelta(minutes=minute)).isoformat()
    where = {} if kind in ("edit", "delete") else {"room": "general", "user": "alice"}
    return {"type": kind, "at": at, **where, **fields}


def message(id: str | None, text: str, minute: float = 0, **fields: Any) -> dict[str, Any]:
    named = {} if id is None else {"id": id}
    return event("message", minute, text=text, **named, **fields)


async def load(harness: AppHarness, path: Path, format: str = "jsonl", room: str | None = None) -> HistoryResult:
    done: list[int] = []
    lines = read_history(path, format, harness.name, room)
    imported = await import_history(harness.app, lines, done.append, None if format == "irc" else room)
    assert sum(done) == len(lines), "the progress bar reaches its end"
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    return imported


async def log(
    harness: AppHarness, room: str = "general", user: str = "alice", thread: str | None = None
) -> list[Message]:
    workspace = harness.workspace()
    id = room_id(workspace, room)
    async with harness.app.database.transaction(workspace.tenant_id, "read") as tx:
        access = await tx.conversations.access_context(
            id if thread is None else thread_id(id, thread), user_id(workspace, user), Trust.MEMBER
        )
        return (
            []
            if access is None
            else await tx.messages.latest(readable_conversation(access), access.conversation, 10_000, None)
        )


async def texts_in(harness: AppHarness, room: str = "general", user: str = "alice") -> list[tuple[str, str]]:
    return [(m.external_id, m.text) for m in await log(harness, room, user)]


async def has_joined(harness: AppHarness, user: str, room: str = "general") -> bool | None:
    workspace = harness.workspace()
    async with harness.app.database.transaction(workspace.tenant_id, "read") as tx:
        access = await tx.conversations.access_context(room_id(workspace, room), user_id(workspace, user), Trust.MEMBER)
    return None if access is None else access.joined


async def everything(harness: AppHarness, workspace: Workspace | None = None) -> dict[str, list[str]]:
    """Every row of the tenant, as text: what must be the same after a second import."""
    workspace = workspace or harness.workspace()
    found = {}
    async with harness.app.database._pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{workspace.tenant_id}'")
        tables = await connection.fetch(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relrowsecurity"
        )
        for (table,) in tables:
            rows = await connection.fetch(f"SELECT t::text AS row FROM {table} AS t ORDER BY 1")
            found[table] = [row["row"] for row in rows]
    return found


# --- reading ---------------------------------------------------------------------------------------------------------


def test_an_irc_log_is_read_with_dates_across_midnight_and_line_numbers(tmp_path: Path) -> None:
    lines = read_history(irc(tmp_path), "irc", None, "general")
    messages = [(e.id, e.at, e.user, e.text) for e in (line.event for line in lines) if isinstance(e, MessageEvent)]
    day = datetime(2026, 5, 4, tzinfo=UTC)
    assert messages == [
        ("2026-05-04_23:1", day + timedelta(hours=23, minutes=58), "alice", "good evening"),
        ("2026-05-04_23:2", day + timedelta(hours=23, minutes=59, seconds=30), "bob", "@nexus hello"),
        ("2026-05-04_23:3", day + timedelta(hours=24), "carol", "waves"),
        ("2026-05-04_23:8", day + timedelta(hours=24, minutes=2), "dave", " two  spaces and \u00e4\u00f6\u00fc"),
    ]
    moves = [(e.type, e.user, line.number) for line in lines if isinstance(e := line.event, MoveEvent)]
    assert moves == [("join", "alice", 1), ("leave", "bob", 5), ("leave", "carol", 10)]


def test_an_irc_log_of_several_days_advances_its_date_at_each_midnight(tmp_path: Path) -> None:
    text = "".join(f"[{hour:02}:00] <alice> hour {hour}\n" for _ in range(3) for hour in (1, 9, 17))
    lines = read_history(irc(tmp_path, text), "irc", None, None)
    assert [line.event.at for line in lines] == [
        datetime(2026, 5, 4 + day, hour, tzinfo=UTC) for day in range(3) for hour in (1, 9, 17)
    ]


def test_a_clock_of_12_hours_goes_on_after_noon_and_midnight(tmp_path: Path) -> None:
    shown = ("12:18", "12:59", "01:00", "04:49", "11:59", "12:00", "11:58", "12:30", "01:00", "12:01")
    text = "".join(f"[{time}] <alice> {time}\n" for time in shown)
    lines = read_history(irc(tmp_path, text), "irc", None, None)
    assert [
        f"{line.event.at:%d %H:%M}" for line in lines if isinstance(line.event, MessageEvent) and line.event.at
    ] == [
        *("04 12:18", "04 12:59", "04 13:00", "04 16:49", "04 23:59"),
        *("05 00:00", "04 23:58", "05 00:30", "05 01:00", "05 00:01"),
    ]


@pytest.mark.parametrize("shown", [("00:10", "12:18", "01:00"), ("12:18", "11:30"), ("11:00", "13:00", "09:00")])
def test_a_log_with_an_hour_of_0_or_above_12_or_without_a_step_back_has_24_hours(
    tmp_path: Path, shown: tuple[str, ...]
) -> None:
    text = "".join(f"[{time}] <alice> {time}\n" for time in shown)
    lines = read_history(irc(tmp_path, text), "irc", None, None)
    assert [
        f"{line.event.at:%d %H:%M}" for line in lines if isinstance(line.event, MessageEvent) and line.event.at
    ] == [f"04 {time}" for time in shown]


def test_a_clock_that_goes_back_a_little_does_not_advance_the_date(tmp_path: Path) -> None:
    lines = read_history(irc(tmp_path, "[10:05] <a> x\n[10:03] <b> y\n"), "irc", None, None)
    assert [line.event.at for line in lines] == [
        datetime(2026, 5, 4, 10, 5, tzinfo=UTC),
        datetime(2026, 5, 4, 10, 3, tzinfo=UTC),
    ]


def test_a_file_of_another_format_is_refused_with_the_option_that_takes_it(tmp_path: Path) -> None:
    export, folder, table = tmp_path / "export.zip", tmp_path / "export", tmp_path / "town.json"
    with zipfile.ZipFile(export, "w") as archive:
        archive.writestr("channels.json", "[]")
    folder.mkdir()
    table.write_text('{\n  "guild": {}\n}\n')
    row = tmp_path / "row.json"
    row.write_text('{"guild": {}}\n')
    for path, format, option in (
        (irc(tmp_path), "jsonl", "--format irc"),
        (export, "jsonl", "--format slack-export"),
        (folder, "jsonl", "--format slack-export"),
        (folder, "irc", "--format slack-export"),
        (table, "jsonl", "--format discord-export"),
        (row, "jsonl", "--format discord-export"),
    ):
        with pytest.raises(BadInput) as refused:
            read_history(path, format, None, None)
        assert str(refused.value).startswith(str(path))
        assert option in str(refused.value)


def test_an_irc_log_whose_name_contains_no_valid_date_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="its name contains no valid date"):
        read_history(irc(tmp_path, name="2026-13-40.txt"), "irc", None, None)
    with pytest.raises(BadInput, match="can't be read: No such file"):
        read_history(tmp_path / "2026-05-04.txt", "irc", None, None)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("{", "this is not JSON"),
        ({"type": "message", "room": "r", "user": "a", "text": "x"}, "history needs a time: set `at`."),
        (event("command", text="/nexus help"), "history can't contain 'command' events: use nexus play for scripts."),
        ({"type": "job", "name": "day"}, "history can't contain 'job' events: use nexus play for scripts."),
        ({"type": "settle"}, "history can't contain 'settle' events: use nexus play for scripts."),
    ],
)
def test_a_line_that_is_not_history_is_refused_with_its_number(
    tmp_path: Path, bad: dict[str, Any] | str, sentence: str
) -> None:
    path = jsonl(tmp_path, message("m1", "fine"), bad)
    with pytest.raises(BadInput) as refused:
        read_history(path, "jsonl", None, None)
    assert str(refused.value).startswith(f"{path}:2: {sentence}")


def test_a_given_workspace_overrides_those_of_the_file(tmp_path: Path) -> None:
    path = jsonl(tmp_path, message("m1", "x", room=None, dm="nexus"), message(None, "y"), event("join"))
    lines = read_history(path, "jsonl", "other", None)
    assert [line.event.workspace for line in lines] == ["other"] * 3
    assert getattr(lines[1].event, "id", None) == "history:2"


async def test_nothing_private_is_loaded_into_a_given_room(harness: AppHarness, tmp_path: Path) -> None:
    await harness.say("carol", "cave word", room="vault", private=True)
    path = jsonl(
        tmp_path,
        message("m1", "public line", room="lobby"),
        message("m2", "my salary is zqsalary", 1, room=None, dm="nexus"),
        message("m3", "session word zqsess", 2, room=None, session="s1"),
        message("m4", "word before it is called private zqearly", 3, room="Cave"),
        message("m5", "cave word zqcave", 4, room="#cave", private=True),
        message("m6", "vault word zqvault", 5, room="vault"),
        event("join", 6, room="cave", user="mallory"),
    )
    done = await load(harness, path, room="general")
    assert done == HistoryResult(6, 1, 0, {APART: 2, MIXED: 3})
    assert await texts_in(harness) == [("m1", "public line")]
    assert not await has_joined(harness, "mallory")
    prompt = (await harness.compose("alice", "@nexus what is the salary, the word?", room="general")).prompt
    assert "zq" not in prompt.as_text()
    assert (await load(harness, path, room="cave")).skipped == {APART: 2, MIXED: 1}, (
        "a room's own messages are not mixed"
    )


async def test_no_private_thread_is_loaded_into_a_given_room(harness: AppHarness, tmp_path: Path) -> None:
    await harness.say("alice", "hello", room="hall")
    await harness.say("alice", "the code is here", room="hall", thread="t", private=True)
    path = jsonl(
        tmp_path,
        message("m1", "of the stored thread zqstored", room="hall", thread="t"),
        message("m2", "before it is called private zqearly", 1, room="hall", thread="u"),
        message("m3", "called private zqcalled", 2, room="#Hall", thread="u", private=True),
        message("m4", "public line", 3, room="hall"),
        message("m5", "public thread", 4, room="hall", thread="v"),
        message("m6", "of a private room zqroom", 5, room="cave", thread="w"),
        message("m7", "in it", 6, room="cave", private=True),
        event("join", 7, room="hall", thread="u", user="mallory", private=True),
    )
    assert await load(harness, path, room="general") == HistoryResult(7, 2, 0, {MIXED: 5})
    assert await texts_in(harness) == [("m4", "public line")]
    assert [m.text for m in await log(harness, thread="v")] == ["public thread"]
    for thread in "tuw":
        assert not await log(harness, thread=thread)
    assert not await has_joined(harness, "mallory")
    prompt = (await harness.compose("mallory", "@nexus what is the code, stored, called?", room="general")).prompt
    assert "zq" not in prompt.as_text()


# --- storing ---------------------------------------------------------------------------------------------------------


async def test_an_irc_log_becomes_a_room_with_its_members_and_is_not_answered(
    harness: AppHarness, tmp_path: Path
) -> None:
    assert await load(harness, irc(tmp_path), "irc", "general") == HistoryResult(4, 4, 0)
    stored = await log(harness)
    assert [(m.external_id, m.author, m.text) for m in stored] == [
        ("2026-05-04_23:1", "alice", "good evening"),
        ("2026-05-04_23:2", "bob", "@nexus hello"),
        ("2026-05-04_23:3", "carol", "waves"),
        ("2026-05-04_23:8", "dave", " two  spaces and \u00e4\u00f6\u00fc"),
    ]
    assert [await has_joined(harness, name) for name in ("alice", "bob", "carol", "dave")] == [True, False, False, True]
    assert harness.delivery.replies == []
    assert await open_turns(harness.app.database, harness.workspace().tenant_id) == []


HISTORY: list[dict[str, Any]] = [
    message("m1", "we decided to deploy on Fridays"),
    message("m2", "in private", 1, room=None, dm="nexus"),
    message("m3", "in a thread", 2, thread="t1", user="bob"),
    event("edit", 3, id="m1", text="we decided to deploy on Mondays"),
    event("edit", 4, id="m1", text="we decided to deploy on Tuesdays"),
    message("m4", "secret", 5, user="bob"),
    event("delete", 6, id="m4"),
    message("b1", "the board meets", 7, room="board", private=True, user="carol"),
    event("join", 8, room="board", user="bob"),
    event("leave", 9, room="board", user="carol"),
    message("b2", "the board is open", 10, room="board", private=False, user="bob"),
]


async def test_every_kind_of_event_takes_effect(harness: AppHarness, tmp_path: Path) -> None:
    assert await load(harness, jsonl(tmp_path, *HISTORY)) == HistoryResult(6, 6, 0)
    assert await texts_in(harness) == [("m1", "we decided to deploy on Tuesdays")]
    assert [m.text for m in await log(harness, thread="t1")] == ["in a thread"]
    assert await texts_in(harness, "board", "bob") == [("b2", "the board is open")]
    assert (await has_joined(harness, "bob", "board"), await has_joined(harness, "carol", "board")) == (True, False)
    found = (await harness.command("alice", "/nexus recall deploy", room="general")).text
    assert "Tuesdays" in found
    assert "Fridays" not in found


@pytest.mark.parametrize(
    ("make", "format"),
    [(lambda folder: jsonl(folder, *HISTORY), "jsonl"), (irc, "irc")],
)
async def test_importing_again_changes_nothing(
    harness: AppHarness, tmp_path: Path, make: Callable[[Path], Path], format: str
) -> None:
    path = make(tmp_path)
    room = "general" if format == "irc" else None
    first = await load(harness, path, format, room)
    before = await everything(harness)
    harness.clock.tick(86_400)
    again = await load(harness, path, format, room)
    assert again == HistoryResult(first.read, 0, first.read)
    assert await everything(harness) == before


async def test_importing_again_does_not_undo_later_changes(harness: AppHarness, tmp_path: Path) -> None:
    path = jsonl(tmp_path, message("m1", "old"), message("m2", "gone", 1), event("join", 2, room="board", user="bob"))
    await load(harness, path)
    harness.clock.tick(3_600)
    await harness.change("m1", "new")
    await harness.change("m2", None)
    await harness.move("bob", "board", joined=False)
    await harness.move("alice", "general", joined=False)
    before = await everything(harness)
    await load(harness, path)
    assert await everything(harness) == before
    assert await texts_in(harness) == [("m1", "new")]


async def play(harness: AppHarness, path: Path) -> list[dict[str, Any]]:
    """Play the same events as a script and return the errors."""
    emitted: list[dict[str, Any]] = []
    await Player(harness.app, ScriptClock(), emitted.append).play(read_script(path))
    return [event for event in emitted if event["event"] == "error"]


@pytest.mark.parametrize("how", ["imported", "played"])
@pytest.mark.parametrize("known", [False, True])
async def test_a_join_may_make_a_room_private_but_never_public(
    harness: AppHarness, tmp_path: Path, how: str, known: bool
) -> None:
    if known:
        await harness.say("carol", "we are open", room="board")
    path = jsonl(
        tmp_path,
        event("join", 1, room="board", user="carol", private=True, workspace=harness.name),
        message("b1", "the board meets", 2, room="board", user="carol", workspace=harness.name),
        event("join", 3, room="board", user="carol", private=False, workspace=harness.name),
    )
    for _ in range(2):
        if how == "imported":
            await load(harness, path)
        else:
            assert await play(harness, path) == []
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        room = await tx.conversations.get(room_id(harness.workspace(), "board"))
    assert room is not None
    assert room.private
    assert ("b1", "the board meets") in await texts_in(harness, "board", "carol")


async def test_old_history_does_not_restore_membership_of_a_private_room(harness: AppHarness, tmp_path: Path) -> None:
    harness.clock.tick(3_600)
    await harness.say("carol", "welcome", room="board", private=True)
    await harness.move("bob", "board", joined=True)
    await harness.move("bob", "board", joined=False)
    words = message("b0", "from before", 1, room="board", user="bob")
    await load(harness, jsonl(tmp_path, event("join", 0, room="board", user="bob"), words))
    assert await has_joined(harness, "bob", "board") is False
    assert ("b0", "from before") in await texts_in(harness, "board", "carol")


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (message("m2", " "), "The message is empty"),
        (message("m2", "x", room="#"), "The name of the room, agent or session"),
        (message("m2", "x", room=None, dm="nobody"), "There is no agent 'nobody': choose one of nexus."),
        (
            message("m2", "x", room=None, session="s1", agent="nobody"),
            "There is no agent 'nobody': choose one of nexus.",
        ),
        (message("m2", "x" * 2_000_001), "The message has 2,000,001 characters"),
        ("{", "this is not JSON"),
    ],
)
async def test_a_file_with_an_invalid_line_stores_nothing(
    harness: AppHarness, tmp_path: Path, bad: dict[str, Any] | str, sentence: str
) -> None:
    path = jsonl(tmp_path, message("m1", "fine"), event("join"), bad)
    before = await everything(harness)
    with pytest.raises(BadInput) as refused:
        await load(harness, path)
    assert str(refused.value).startswith(f"{path}:3: {sentence}")
    assert await everything(harness) == before


async def test_many_batches_keep_the_order_of_the_file(harness: AppHarness, tmp_path: Path) -> None:
    lines = [message(f"m{n}", f"text {n}", n, room=f"room{n % 3}", user=f"user{n % 7}") for n in range(2_500)]
    path = jsonl(tmp_path, *lines)
    imported = await import_history(harness.app, read_history(path, "jsonl", harness.name, None), lambda _: None)
    assert imported == HistoryResult(2_500, 2_500, 0)
    stored = await log(harness, "room1", "user1")
    assert [m.external_id for m in stored] == [f"m{n}" for n in range(1, 2_500, 3)]
    assert [m.seq for m in stored] == list(range(1, len(stored) + 1))


WHAT_JOINS_CHANGE = (  # not `joined_at`: of several messages of a batch the last one counts
    """SELECT r.name, u.name AS person, m.left_at, m.admin
       FROM members AS m JOIN conversations AS r ON r.tenant_id = m.tenant_id AND r.id = m.conversation_id
       JOIN users AS u ON u.tenant_id = m.tenant_id AND u.id = m.user_id ORDER BY 1, 2""",
    "SELECT name, kind, thread, private, generation, last_seq, version FROM conversations ORDER BY 1, 2, 3",
    """SELECT m.external_id, c.name, m.seq, m.at, m.author, m.visibility,
              m.namespace LIKE '%' || c.id || '%' AS own, length(m.namespace)
       FROM messages AS m JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id
       ORDER BY 1""",
)


async def stored_of(harness: AppHarness, workspace: str) -> list[list[tuple[Any, ...]]]:
    tenant = harness.workspace(workspace).tenant_id
    async with harness.app.database._pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL nexus.tenant = '{tenant}'")
        return [[tuple(row) for row in await connection.fetch(query)] for query in WHAT_JOINS_CHANGE]


def busy_log(seed: int) -> list[dict[str, Any]]:
    """A log in which people join and leave between the messages of others, and rooms become private and public."""
    random, lines = Random(seed), list[dict[str, Any]]()
    for n in range(160):
        kind = random.choices(("message", "join", "leave"), (6, 2, 1))[0]
        room = random.choice(("one", "two", "three"))
        said: dict[str, Any] = {"id": f"m{n}", "text": f"text {n}"} if kind == "message" else {}
        if kind == "leave" and not any(each["room"] == room for each in lines):
            continue  # of a room that there is not yet: refused
        if kind == "join" and random.random() < 0.1:
            said["private"] = True
        if kind == "message" and random.random() < 0.1:
            said["private"] = random.random() < 0.3
        lines.append(event(kind, n, room=room, user=f"user{random.randrange(8)}", **said))
    return lines


async def test_a_room_that_a_join_makes_private_is_not_opened_by_what_was_said_before(
    harness: AppHarness, tmp_path: Path
) -> None:
    events = [event("join"), message("m1", "in public", 1, private=False), event("join", 2, user="bob", private=True)]
    await load(harness, jsonl(tmp_path, *events, message("m2", "in private", 3)))
    async with harness.app.database.transaction(harness.workspace().tenant_id, "read") as tx:
        room = await tx.conversations.get(room_id(harness.workspace(), "general"))
    assert room is not None
    assert room.private
    assert (await log(harness))[-1].text == "in private"


@pytest.mark.parametrize("seed", range(4))
async def test_moves_that_go_before_the_messages_of_others_change_what_they_change_in_their_place(
    harness: AppHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    path = jsonl(tmp_path, *busy_log(seed))
    together = read_history(path, "jsonl", "together", None)
    parts = list(history._parts(together))
    await import_history(harness.app, together, lambda _: None)

    def single(lines: Sequence[Line]) -> Iterator[history._EventBatch]:
        for line in lines:
            yield from in_parts([line])

    in_parts = history._parts
    monkeypatch.setattr(history, "_parts", single)
    singly = read_history(path, "jsonl", "singly", None)
    await import_history(harness.app, singly, lambda _: None)
    assert len(parts) < len(together) * 0.7
    assert any(part.moves and part.messages for part in parts)
    assert await stored_of(harness, "together") == await stored_of(harness, "singly")


async def test_imported_messages_are_shown_and_recalled(harness: AppHarness, tmp_path: Path) -> None:
    lines = [message("d1", "we decided to paint the shed green", 0, user="bob")]
    lines += [message(f"m{n}", f"small talk number {n}", n, user="bob") for n in range(1, 70)]
    await load(harness, jsonl(tmp_path, *lines))
    harness.clock.set(START + timedelta(days=1))
    prompt = (await harness.compose("alice", "@nexus what colour is the shed?", room="general")).prompt
    sources = {section.name: section.sources for section in prompt.sections}
    assert "d1" in [id for source in sources["RECALL"] for id in source.messages]
    assert sources["WORKING"][-1].messages == ("m69",)


def test_a_folder_of_logs_is_read_file_by_file(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    for name, text in {
        "#town/2026-05-04.log": "[23:59:01] <ann> late\n",
        "#town/2026-05-05.log": "[00:01:02] <ann> early\n",
        "lobby/2026-05-04.log": "[12:00:01] <ben> noon\n",
        "#ops.weechatlog": "2026-05-04 12:18:00\t@ann\tzebra day\n",
        "notes.txt": "Dear all,\nthe meeting is at noon.\n",
        "#town/2026-05-06.log": "[09:00:01] <ann> one\nwhat\nis\nthis\n",
        ".DS_Store": "x",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert format_of(folder) == "irc"
    odd: list[str] = []
    events = [line.event for line in read_history(folder, "irc", None, None, odd.append)]
    said = [(e.room, f"{e.at:%d %H:%M}", e.text) for e in events if isinstance(e, MessageEvent)]
    assert sorted(said) == [
        ("#ops", "04 12:18", "zebra day"),
        ("#town", "04 23:59", "late"),
        ("#town", "05 00:01", "early"),
        ("lobby", "04 12:00", "noon"),
    ]
    assert sorted(sentence.partition(": ")[0] for sentence in odd) == [
        f"{folder}/#town/2026-05-06.log:2",
        f"{folder}/notes.txt",
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="no file here is of the format irc"):
        read_history(tmp_path / "empty", "irc", None, None)


@pytest.mark.parametrize(("name", "room"), [("2026-05-04.log", None), ("2026-05-04.log", "town"), ("town.log", None)])
async def test_logs_of_one_name_in_two_folders_are_all_loaded_once(
    harness: AppHarness, tmp_path: Path, name: str, room: str | None
) -> None:
    folder = tmp_path / "logs"
    said = {"libera": "the server has moved", "oftc": "the port is 6697", "copy/libera": "the server has moved"}
    for network, text in said.items():
        path = folder / network / "town" / name
        path.parent.mkdir(parents=True)
        path.write_text(f"[12:00] <ann> {text}\n", encoding="utf-8")
    for new in (2, 0):
        lines = read_history(folder, "irc", harness.name, room)
        assert (await import_history(harness.app, lines, lambda done: None)).new == new
    assert sorted(text for _, text in await texts_in(harness, "town")) == ["the port is 6697", "the server has moved"]
