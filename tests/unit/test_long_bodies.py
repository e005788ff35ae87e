"""Long bodies of requests: what is done with them on the event loop, and what once for each of their values."""

import json
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from starlette.types import Message

from bot.web import bodies
from bot.web.bodies import BYTES_PER_JOIN, JsonRequest, json_value
from bot.web.problems import RequestRefused
from composer.text.work import MAX_LOOP_CHARS, off_loop

PIECE = b"a" * 64 * 1024


def _request(pieces: int) -> JsonRequest:
    """One whose body comes in so many pieces."""
    sent = iter(range(pieces - 1, -1, -1))

    async def receive() -> Message:
        return {"type": "http.request", "body": PIECE, "more_body": next(sent) > 0}

    return JsonRequest({"type": "http", "method": "POST", "headers": []}, receive)


@pytest.mark.parametrize(("pieces", "beside"), [(MAX_LOOP_CHARS * BYTES_PER_JOIN // len(PIECE), False), (100, True)])
async def test_the_pieces_of_a_long_body_are_joined_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, pieces: int, beside: bool
) -> None:
    joined_by = list[int]()

    async def watched(chars: int, join: Callable[[], bytes]) -> bytes:
        def noted() -> bytes:
            joined_by.append(threading.get_ident())
            return join()

        return await off_loop(chars, noted)

    monkeypatch.setattr(bodies, "off_loop", watched)
    request = _request(pieces)
    assert await request.body() == PIECE * pieces
    assert await request.body() is await request.body()
    assert [thread != threading.get_ident() for thread in joined_by] == [beside]


def _lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python a piece of work takes."""
    count = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("value", [1, "a", None, True])
def test_values_that_hold_no_other_are_not_looked_at_one_by_one(value: object) -> None:
    """Half a million numbers held the interpreter for 70 ms."""
    body = json.dumps({"content": [value] * 100_000}).encode()
    assert _lines_run(lambda: json_value(body)) < 100


@pytest.mark.parametrize(
    "body", ["[1e999]", "[1, 1e999]", "[[1, [1e999]]]", '[1, "a", {"a": [null, -1e999]}]', '{"a": 1e999}']
)
def test_a_number_that_is_too_large_is_found_wherever_it_stands(body: str) -> None:
    with pytest.raises(RequestRefused, match="too large"):
        json_value(body.encode())
