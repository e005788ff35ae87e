"""Scripts and batches of questions: every line is validated, with its number, before any of them takes effect."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.script.events import (
    CommandEvent,
    DeleteEvent,
    EditEvent,
    JobEvent,
    MessageEvent,
    MoveEvent,
    SettleEvent,
    read_questions,
    read_script,
)
from bot.script.places import external, mentions, place_of
from composer.errors import BadInput
from composer.model import ConversationKind, Place

MESSAGE: dict[str, Any] = {"type": "message", "room": "general", "user": "alice", "id": "m1", "text": "hello"}


def script(folder: Path, *lines: str | dict[str, Any]) -> Path:
    path = folder / "script.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def test_every_kind_of_event_is_read_with_its_file_and_line(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        MESSAGE,
        {**MESSAGE, "type": "command", "text": "/nexus help"},
        "",
        {"type": "edit", "id": "m1", "text": "hi"},
        {"type": "delete", "id": "m1"},
        {"type": "join", "room": "general", "user": "carol"},
        {"type": "leave", "room": "general", "user": "carol"},
        {"type": "join", "room": "board", "user": "carol", "private": True},
        {"type": "job", "name": "day"},
        {"type": "settle"},
    )
    lines = read_script(path)
    assert [type(line.event) for line in lines] == [
        MessageEvent,
        CommandEvent,
        EditEvent,
        DeleteEvent,
        MoveEvent,
        MoveEvent,
        MoveEvent,
        JobEvent,
        SettleEvent,
    ]
    assert [line.number for line in lines] == [1, 2, 4, 5, 6, 7, 8, 9, 10]
    assert {line.file for line in lines} == {str(path)}
    assert {line.event.workspace for line in lines} == {"default"}


def test_times_become_utc(tmp_path: Path) -> None:
    [line] = read_script(script(tmp_path, {**MESSAGE, "at": "2026-05-04T11:00:00+02:00"}))
    assert line.event.at == datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
    assert str(line.event.at) == "2026-05-04 09:00:00+00:00"


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(MESSAGE).encode())
    assert len(read_script(path)) == 1


PLACES = [
    ({"room": "#General"}, Place(ConversationKind.ROOM, "general")),
    ({"room": "general", "private": True}, Place(ConversationKind.ROOM, "general", private=True)),
    ({"room": "general", "thread": "t1"}, Place(ConversationKind.THREAD, "general", "t1")),
    ({"room": "general", "thread": "t1", "private": True}, Place(ConversationKind.THREAD, "general", "t1", True)),
    ({"dm": "@Nexus"}, Place(ConversationKind.DM, "nexus")),
    ({"session": "S1"}, Place(ConversationKind.SESSION, "S1")),
    ({"session": "s1", "agent": "@Scout"}, Place(ConversationKind.SESSION, "s1", agent="scout")),
]


@pytest.mark.parametrize(("named", "place"), PLACES)
def test_a_place_is_a_room_a_thread_a_dm_or_a_session(tmp_path: Path, named: dict[str, Any], place: Place) -> None:
    without = {key: value for key, value in MESSAGE.items() if key != "room"}
    event = read_script(script(tmp_path, {**without, **named}))[0].event
    assert isinstance(event, MessageEvent)
    assert event.place() == place


MALFORMED = [
    ("{", "this is not JSON: Expecting property name"),
    ("hello", "this is not JSON: Expecting value at column 1"),
    ('{"type":"settle"', "this is not JSON: Expecting ',' delimiter at column 17"),
    ("[" * 100_000, "this is nested too deeply"),
    ("[]", "a line must be a JSON object"),
    ('"x"', "a line must be a JSON object"),
    ("{}", "`type` must be one of message, command, edit, delete, join, leave, job, settle"),
    ('{"type":"shout"}', "`type` must be one of message, command"),
    ('{"type":"settle","x":1}', "`x`: extra inputs are not permitted"),
    ({**MESSAGE, "at": "yesterday"}, "`at`: "),
    ({**MESSAGE, "text": 5}, "`text`: input should be a valid string"),
    ({**MESSAGE, "user": ""}, "`user`: string should have at least 1 character"),
    ({**MESSAGE, "user": "x" * 201}, "`user`: string should have at most 200 characters"),
    ({**MESSAGE, "dm": "nexus"}, "name exactly one of room, dm and session"),
    ({**MESSAGE, "room": None}, "name exactly one of room, dm and session"),
    ({**MESSAGE, "room": None, "dm": "nexus", "thread": "t1"}, "a thread belongs to a room"),
    ({**MESSAGE, "attachments": [{"type": "text/plain"}]}, "`attachments.0.name`: field required"),
    ({**MESSAGE, "attachments": [{"name": "a", "size": 3}]}, "`attachments.0.size`: extra inputs"),
    ({**MESSAGE, "room": "sales/hush"}, "`room`: the name of a room has no slash: 'sales/hush'"),
    ({**MESSAGE, "type": "command", "room": "#sales/hush"}, "`room`: the name of a room has no slash"),
    ({"type": "join", "user": "x", "room": "sales/hush"}, "`room`: the name of a room has no slash"),
    ({"type": "join", "user": "x", "room": "sales", "thread": "hush"}, "only a private thread has members of its own"),
    ({"type": "edit", "text": "x"}, "`id`: field required"),
    ({"type": "join", "user": "x"}, "`room`: field required"),
    ({"type": "job"}, "`name`: field required"),
]


@pytest.mark.parametrize(("line", "sentence"), MALFORMED)
def test_a_malformed_line_is_refused_with_its_file_its_number_and_what_is_wrong(
    tmp_path: Path, line: str | dict[str, Any], sentence: str
) -> None:
    path = script(tmp_path, MESSAGE, line, MESSAGE)
    with pytest.raises(BadInput) as refused:
        read_script(path)
    assert str(refused.value).startswith(f"{path}:2: {sentence}")
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")


def test_a_file_that_is_missing_or_not_text_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nothing\.jsonl can't be read: No such file"):
        read_script(tmp_path / "nothing.jsonl")
    with pytest.raises(BadInput, match="can't be read: Is a directory"):
        read_script(tmp_path)
    path = tmp_path / "picture.jsonl"
    path.write_bytes(b'{"type":\xff')
    with pytest.raises(BadInput, match=r"picture\.jsonl is not UTF-8 text"):
        read_script(path)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*MESSAGE, "at", "x"]), inner, max_size=5)
    ),
    max_leaves=8,
)


@given(ANYTHING)
def test_any_line_is_either_read_or_refused(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = script(tmp_path_factory.getbasetemp(), json.dumps(value))
    with suppress(BadInput):
        assert len(read_script(path)) == 1


def test_questions_are_read_with_their_numbers(tmp_path: Path) -> None:
    asked = {"id": "q1", "user": "alice", "room": "general", "text": "what?"}
    [(first, one), (third, three)] = read_questions(script(tmp_path, asked, "", {**asked, "id": "q3", "thread": "t1"}))
    assert (first, third) == (1, 3)
    assert one.place() == Place(ConversationKind.ROOM, "general")
    assert three.place() == Place(ConversationKind.THREAD, "general", "t1")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ({"id": "q", "user": "alice", "text": "what?"}, "name exactly one of room, dm and session."),
        (
            {"id": "q", "user": "a", "text": "?", "room": "r", "dm": "nexus"},
            "name exactly one of room, dm and session.",
        ),
        ({"id": "q", "room": "r", "text": "what?"}, "`user`: field required."),
        ({"room": "r", "user": "a", "text": "what?"}, "`id`: field required."),
        ({"id": "q", "room": "r", "user": "a", "text": "?", "top_k": 3}, "`top_k`: extra inputs are not permitted."),
        ("{", "this is not JSON"),
    ],
)
def test_a_malformed_question_is_refused_with_its_number(
    tmp_path: Path, line: str | dict[str, Any], sentence: str
) -> None:
    path = script(tmp_path, "", line)
    with pytest.raises(BadInput) as refused:
        read_questions(path)
    assert str(refused.value).startswith(f"{path}:2: {sentence}")


def test_names_are_compared_without_punctuation_and_case() -> None:
    assert external("@Alice") == external(" alice ") == "alice"
    assert external("#General") == "general"
    assert external("STRASSE") == external("straße")
    assert place_of("#X", None, None) == place_of("x", None, None)


def test_mentions_in_a_text_are_found() -> None:
    assert mentions("@Bob, ask @carol! and @bob again; mail me a@b.org") == ("bob", "carol")
    assert mentions("nobody here") == ()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("form", ["{0}\n{1}\n", "{0}\r\n\r\n{1}", "[{0},{1}]", "[\n  {0},\n  {1}\n]\n"])
def test_lines_of_other_programs_are_read(tmp_path: Path, encoding: str, form: str) -> None:
    lines = [json.dumps({**MESSAGE, "id": id, "text": "für alle\u2028x"}, ensure_ascii=False) for id in (17, "18")]
    path = tmp_path / "s.jsonl"
    mark = b"\xff\xfe" if encoding == "utf-16-le" else b""
    path.write_bytes(mark + form.format(*lines).encode(encoding))
    events = [line.event for line in read_script(path)]
    assert [(event.id, event.text) for event in events if isinstance(event, MessageEvent)] == [
        ("17", "für alle\u2028x"),
        ("18", "für alle\u2028x"),
    ]
