"""Golden recordings: what is made up by chance is made equal, and all else is reported as a difference."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.golden.compare import compare
from tests.golden.names import Names
from tests.golden.recording import Recorder, note

PROMPT = {"sections": [{"name": "FACTS", "text": "the day is Friday"}, {"name": "RECALL", "text": "zqvault"}]}
ROW = {"id": "<messages 1>", "text": "hello", "tokens": 3}


def recording(folder: Path, **parts: Any) -> Path:
    """A recording with one trace."""
    with Recorder(folder, "worlds") as recorder:
        recorder.add(
            "world 1", **({"input": ["hello"], "prompts": {"a viewer": PROMPT}, "rows": {"messages": [ROW]}} | parts)
        )
    note(folder, tables={"messages": ["id", "text", "tokens"]})
    return folder


def told(before: Path, after: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed of two recordings."""
    compare(before, after, ["worlds"], explain=False)
    return capsys.readouterr().out


def test_ids_and_keys_get_the_same_names_in_each_run() -> None:
    def text(id: uuid.UUID, key: str) -> str:
        names = Names()
        names.know(id, "memories 1")
        said = f"{id} ({id.hex[:8]}) of {uuid.uuid4()}, key nx_acme_{key}, 12 items, at 2026-05-04T09:00:00+00:00"
        return names.text(said)

    one = text(uuid.UUID("1a2b3c4d" + 24 * "0"), "ab" * 32)
    assert one == text(uuid.UUID("9a8b7c6d" + 24 * "1"), "cd" * 32)
    assert one == (
        "<memories 1> (<memories 1…>) of <id 1>, key nx_acme_<key 1>, 12 items, at 2026-05-04T09:00:00+00:00"
    )


def test_equal_recordings_have_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = recording(tmp_path / "one"), recording(tmp_path / "two")
    assert "1 of 1 traces are equal; 0 kinds of difference." in told(one, two, capsys)
    assert (one / "worlds.jsonl.gz").read_bytes() == (two / "worlds.jsonl.gz").read_bytes()


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        (
            {"prompts": {"a viewer": {"sections": [PROMPT["sections"][0]]}}},
            "worlds: prompts.*.sections[RECALL] is gone: 1 in 1 traces",
        ),
        (
            {"prompts": {"a viewer": {"sections": PROMPT["sections"][::-1]}}},
            "worlds: prompts.*.sections has another order: 1 in 1 traces",
        ),
        ({"rows": {"messages": [ROW | {"tokens": 4}]}}, "worlds: rows: messages.tokens changed: 1 in 1 traces"),
        ({"rows": {}}, "worlds: rows of messages are gone: 1 in 1 traces"),
        ({"input": ["hi"]}, "worlds: the input itself is another (its outcome is not compared): 1 in 1 traces"),
    ],
)
def test_a_difference_is_told_by_its_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], parts: dict[str, Any], line: str
) -> None:
    assert line in told(recording(tmp_path / "one"), recording(tmp_path / "two", **parts), capsys)


def test_a_dropped_table_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = recording(tmp_path / "one"), recording(tmp_path / "two", rows={})
    note(two, tables={})
    said = told(one, two, capsys)
    assert "table messages is gone: 1 in 1 traces" in said
    assert "rows" not in said


def test_what_differs_by_itself_is_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = recording(tmp_path / "one"), recording(tmp_path / "two", rows={"messages": [ROW | {"tokens": 4}]})
    compare(one, two, ["worlds"], explain=False, note_varying=True)
    said = told(one, two, capsys)
    assert "(differs by itself, too: worlds: rows: messages.tokens changed: 1)" in said
    assert "0 kinds of difference." in said
