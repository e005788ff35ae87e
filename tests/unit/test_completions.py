"""Bodies of answers as servers send them, also those that are not quite the protocol."""

import json
from typing import Any

import pytest

from composer.model import Usage
from composer.text.completions import CompletionDecoder, count_of, read_completion


def chunk(content: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """An event with a piece of the answer."""
    delta = {} if content is None else {"content": content}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def data(*events: Any, end: str = "\n\n") -> bytes:
    """Events as a body; texts as they stand."""
    return "".join(f"data: {each if isinstance(each, str) else json.dumps(each)}{end}" for each in events).encode()


WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}]}
HELLO = [chunk("Hel"), chunk("lo.")]
STOP = chunk(None, "stop")


@pytest.mark.parametrize(
    "body",
    [
        data(*HELLO, STOP, "[DONE]"),
        data(*HELLO, STOP, "[DONE]").replace(b"data: ", b"data:"),
        data(*HELLO, STOP, "[DONE]", end="\r\n\r\n"),
        data(*HELLO, STOP, "[DONE]", end="\r\r"),
        data(*HELLO, STOP, "[DONE]", end="\n"),
        b": ping\n\n" + data(*HELLO) + b": ping\n" + data("[DONE]"),
        data(": keepalive", *HELLO, "", "[DONE]"),
        data("ping", "null", "{}", "[]", '"x"', *HELLO, "[DONE]"),
        b"event: ping\ndata: {}\n\n" + data(*HELLO, "[DONE]"),
        b"id: 1\nretry: 3\nevent: message\n" + data(*HELLO, "[DONE]"),
        data({"choices": []}, {"choices": None}, {"choices": [{}]}, {"choices": [None]}, *HELLO, "[DONE]"),
        data({"choices": [{"delta": None}]}, *HELLO, STOP),
        data(chunk([{"type": "thinking", "thinking": [{"type": "text", "text": "no"}]}]), *HELLO, "[DONE]"),
        data(chunk([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo."}]), "[DONE]"),
        data(chunk({"type": "text", "text": "Hello."}), "[DONE]"),
        data(chunk(["Hel", "lo."]), "[DONE]"),
        data(*HELLO).rstrip(),
        b"\xef\xbb\xbf" + data(*HELLO),
        b'data: {"choices": [{"index": 0,\ndata: "delta": {"content": "Hello."}}]}\n\n',
        json.dumps(WHOLE).encode(),
        json.dumps(WHOLE, indent=2).encode(),
        b"\n\n" + json.dumps(WHOLE).encode() + b"\n",
        b"\n".join(json.dumps(each).encode() for each in HELLO),
        data(WHOLE, "[DONE]"),
        data({"choices": [{"index": 0, "text": "Hello."}]}, "[DONE]"),
        data(*HELLO, {"choices": [{"delta": {}, "message": {"content": "Hello."}, "finish_reason": "stop"}]}),
        data({"choices": [{"index": 1, "delta": {"content": "no"}}, HELLO[0]["choices"][0]]}, HELLO[1]),
    ],
)
def test_the_text_is_read_however_the_body_is_made_and_cut(body: bytes) -> None:
    for size in (len(body), 1, 7):
        decoder, text = CompletionDecoder(), ""
        found = [each for at in range(0, len(body), size) for each in decoder.feed(body[at : at + size])]
        for event in (*found, *decoder.end()):
            text += read_completion(event).text
        assert text == "Hello."


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 3}, Usage(7, 3)),
        ({"prompt_tokens": 7.0, "completion_tokens": "3", "total_tokens": None}, Usage(7, 3)),
        ({"prompt_tokens": "7.0", "completion_tokens": None}, Usage(7, 0)),
        ({"input_tokens": 7, "output_tokens": 3, "input_tokens_details": {"cached_tokens": "5"}}, Usage(7, 3, 5)),
        ({"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": None}, Usage(7, 3)),
        ({"prompt_tokens": 7, "completion_tokens": -3, "prompt_tokens_details": {"cached_tokens": []}}, Usage(7, 0)),
        ({"prompt_tokens": "many"}, None),
        ({"prompt_tokens": float("nan")}, None),
        ("none", None),
        (None, None),
        ({}, None),
    ],
)
def test_odd_usage_is_read_as_far_as_it_goes(usage: Any, read: Usage | None) -> None:
    assert read_completion({"choices": [], "usage": usage}).usage == read


def test_counts_are_bounded() -> None:
    assert [count_of(each) for each in (True, "1e999", 10**30, "1e3", "")] == [None, None, None, 1000, None]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_details", "thinking"])
def test_reasoning_in_a_field_of_its_own_is_no_text(field: str) -> None:
    said = read_completion({"choices": [{"delta": {field: "SECRET", "content": "Hello."}}]})
    assert (said.text, said.reasoned) == ("Hello.", True)


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "overloaded", "code": 529}},
        {"error": "overloaded"},
        {"object": "error", "message": "overloaded", "code": 400},
        {"type": "error", "message": "overloaded"},
        {"message": "overloaded", "code": 529},
        {"detail": "overloaded"},
        {"choices": [{"delta": {"content": ""}, "finish_reason": "error", "error": {"message": "overloaded"}}]},
        {"error": {"message": "overloaded"}, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]},
    ],
)
def test_an_error_in_a_stream_is_told_from_an_answer(event: dict[str, Any]) -> None:
    assert "overloaded" in (read_completion(event).error or "")


def test_an_error_line_of_llama_cpp_is_an_error() -> None:
    decoder = CompletionDecoder()
    events = decoder.feed(b'error: {"code": 500, "message": "overloaded"}\n\n')
    assert "overloaded" in (read_completion(events[0]).error or "")


@pytest.mark.parametrize(
    "said",
    [
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "recall", "arguments": '{"query": "x"}'}}]},
        {"tool_calls": [{"id": "a", "function": {"name": "recall", "arguments": {"query": "x"}}}]},
        {"tool_calls": [{"id": "a", "name": "recall", "arguments": '{"query": "x"}'}]},
        {"tool_calls": [None, {"id": "a", "function": {"name": "recall", "arguments": '{"query": "x"}'}}]},
        {"function_call": {"name": "recall", "arguments": '{"query": "x"}'}},
    ],
)
def test_calls_are_read_in_older_and_other_forms(said: dict[str, Any]) -> None:
    for place in ("delta", "message"):
        (call,) = read_completion({"choices": [{place: said}]}).calls
        assert (call.name, json.loads(call.arguments)) == ("recall", {"query": "x"})
