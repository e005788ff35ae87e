"""Requests of the gateway: what is read of them, where memory goes, and that nothing else of them changes."""

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.errors import BadInput
from composer.gateway import requests, turns
from composer.gateway.answers import AnswerCopy, UsageFilter
from composer.gateway.json_text import MAX_VALUES, Part, apply_edits, elements, members
from composer.gateway.requests import MAX_ITEMS, REASONED_TOKENS, REPLY_TOKENS, Api, parse_request, usage_edits
from composer.gateway.turns import find_turn, memory_edits
from composer.model import MemoryRole, Usage

STABLE: Final = 'what "holds"\nalways'
RECALLED: Final = "what fits"

json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def with_memory(
    messages: Any,
    role: MemoryRole = "system",
    api: Api = Api.CHAT,
    standing: str = STABLE,
    recalled: str = RECALLED,
    **more: Any,
) -> Any:
    """What is said once memory was put in."""
    body = json.dumps({"model": "m", api.input_name: messages, **more}, ensure_ascii=False).encode()
    request = parse_request(api, body)
    turn = find_turn(request)
    assert turn is not None
    return json.loads(apply_edits(request.text, memory_edits(request, turn, standing, recalled, role)))[api.input_name]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


CALL: Final = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {}}]}
RESULT: Final = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}


def test_memory_is_merged_into_the_one_system_message_and_stands_before_the_question() -> None:
    system = {"role": "system", "content": "Be brief."}
    assert with_memory([system, user("a"), {"role": "assistant", "content": "b"}, user("c")]) == [
        {"role": "system", "content": f"Be brief.\n\n{STABLE}"},
        user("a"),
        {"role": "assistant", "content": "b"},
        user(RECALLED),
        user("c"),
    ]
    assert with_memory([user("c")]) == [{"role": "system", "content": STABLE}, user(RECALLED), user("c")]
    parts = {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}
    merged = with_memory([parts, user("c")])[0]["content"]
    assert merged == [{"type": "text", "text": "Be brief."}, {"type": "text", "text": STABLE}]


@pytest.mark.parametrize("content", ["", None, [], 5])
def test_an_empty_system_message_is_no_obstacle(content: Any) -> None:
    found = with_memory([{"role": "system", "content": content}, user("c")])
    assert STABLE in json.dumps(found, ensure_ascii=False).replace("\\n", "\n").replace('\\"', '"')
    assert found[-2:] == [user(RECALLED), user("c")]


def test_of_two_system_messages_the_last_one_takes_memory() -> None:
    two = [{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}, user("c")]
    assert with_memory(two)[:2] == [two[0], {"role": "developer", "content": f"b\n\n{STABLE}"}]


def test_memory_as_developer_messages() -> None:
    found = with_memory([{"role": "system", "content": "a"}, user("b"), user("c")], "developer")
    assert found == [
        {"role": "system", "content": "a"},
        {"role": "developer", "content": STABLE},
        user("b"),
        {"role": "user", "content": RECALLED},
        user("c"),
    ]


def test_models_that_refuse_the_system_role_get_no_further_message() -> None:
    assert with_memory([user("c")], "user") == [user(f"{STABLE}\n\n{RECALLED}\n\nc")]
    image = {"type": "image_url", "image_url": {"url": "data:x"}}
    found = with_memory(
        [user("a"), {"role": "assistant", "content": "b"}, {"role": "user", "content": [image]}], "user"
    )
    assert found[0] == user(f"{STABLE}\n\na")
    assert found[2]["content"] == [{"type": "text", "text": RECALLED}, image]


def test_nothing_is_put_between_calls_and_their_results() -> None:
    loop = [user("a"), CALL, RESULT]
    assert with_memory(loop)[1:] == [user(RECALLED), *loop]
    odd = [user("a"), CALL, user("hurry"), RESULT]
    for role in ("system", "developer"):
        found = with_memory(odd, role)
        assert found.index(CALL) + 1 == found.index(user("hurry")), "as it was sent"
        assert found[found.index(CALL) - 1]["content"] == RECALLED
    done = [user("a"), CALL, RESULT, {"role": "assistant", "content": "ok"}, user("b")]
    assert with_memory(done)[-2:] == [user(RECALLED), user("b")]


def test_input_of_the_responses_api_gets_developer_items() -> None:
    memory = [{"role": "developer", "content": STABLE}, {"role": "user", "content": RECALLED}]
    assert with_memory("hi", api=Api.RESPONSES) == [*memory, user("hi")]
    call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    items = [user("hi"), call, {"type": "function_call_output", "call_id": "1", "output": "x"}]
    assert with_memory(items, api=Api.RESPONSES) == [*memory, *items]
    chained = with_memory([user("hi")], api=Api.RESPONSES, previous_response_id="resp_1")
    assert chained == [memory[1], user("hi")], "the server keeps the rest with what was said before"
    assert with_memory("hi", api=Api.RESPONSES, standing="", recalled="") == "hi"


def test_a_turn_is_the_same_while_functions_are_called() -> None:
    def turn(*messages: dict[str, Any]) -> Any:
        return find_turn(parse_request(Api.CHAT, json.dumps({"model": "m", "messages": messages}).encode()))

    first, again = turn(user("a")), turn(user("a"), CALL, RESULT)
    assert (first.is_new, again.is_new, first.digest == again.digest) == (True, False, True)
    timed = turn({"role": "system", "content": "it is 10:01"}, user("a"), CALL, RESULT)
    assert timed.digest == first.digest, "system texts may hold the time"
    for other in (turn(user("b")), turn(user("a"), user("a")), turn(user("b"), user("a"))):
        assert other.digest != first.digest
    assert turn({"role": "system", "content": "a"}) is None
    assert turn() is None
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    assert turn({"role": "user", "content": parts}).text == "look"


@given(st.dictionaries(st.text(), json_values, max_size=4), st.lists(st.text(), min_size=1, max_size=3))
def test_everything_but_what_is_said_stays_as_it_was(others: dict[str, Any], said: list[str]) -> None:
    others = {k: v for k, v in others.items() if k.casefold() not in {"model", "messages", "stream", "stream_options"}}
    body = {**others, "model": "m", "messages": [user(text) for text in said], "stream": True}
    text = json.dumps(body, ensure_ascii=True)
    request = parse_request(Api.CHAT, text.encode())
    turn = find_turn(request)
    assert turn is not None
    sent = apply_edits(request.text, [*usage_edits(request), *memory_edits(request, turn, STABLE, RECALLED, "system")])
    read = json.loads(sent)
    assert read.pop("stream_options") == {"include_usage": True}
    assert [each for each in read.pop("messages") if each["content"] not in (STABLE, RECALLED)] == body.pop("messages")
    assert json.dumps(read) == json.dumps({k: v for k, v in body.items() if k != "messages"})
    before = {part.name: text[part.start : part.end] for part in members(text)}
    after = {part.name: sent[part.start : part.end] for part in members(sent)}
    assert {k: v for k, v in after.items() if k not in ("messages", "stream_options")} == {
        k: v for k, v in before.items() if k != "messages"
    }


@pytest.mark.parametrize("twice", ["messages", "Messages", "INPUT", "stream", "\u017ftream", "stream_options"])
def test_what_is_read_may_be_there_once(twice: str) -> None:
    first = twice.casefold()
    body = f'{{"model":"m","{first}":[],"{twice}":[]}}'
    with pytest.raises(BadInput, match="twice"):
        parse_request(Api.CHAT, body.encode())


USAGE_EVENT: Final = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n'
TEXT_EVENT: Final = b'data: {"choices":[{"index":0,"delta":{"content":"hi \\"usage\\""}}],"usage":null}\r\n\r\n'
END_EVENTS: Final = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE: Final = b"data: [DONE]\n\n"


@given(st.lists(st.integers(1, 40), max_size=40))
def test_a_stream_is_passed_on_whole_but_for_its_usage_however_it_is_cut(cuts: list[int]) -> None:
    whole = b": ping\n\n" + TEXT_EVENT + END_EVENTS + USAGE_EVENT + DONE
    passing, copy, out, at = UsageFilter(), AnswerCopy(), b"", 0
    for cut in [*cuts, len(whole)]:
        piece = whole[at : at + cut]
        at += cut
        copy.add(piece)
        out += passing.feed(piece)
    assert out + passing.rest() == whole.replace(USAGE_EVENT, b"")
    read = copy.read(Api.CHAT, events=True)
    assert (read.text, read.usage, read.is_whole) == ('hi "usage"', Usage(5, 2), True)


def test_a_long_event_passes_before_its_end_and_what_is_cut_is_not_whole() -> None:
    passing, begun = UsageFilter(), b'data: {"choices":[{"index":0,"delta":{"content":"' + b"a" * 200_000
    assert len(passing.feed(begun)) > 190_000
    rest = b'"}}],"usage":{}}\n\n' + USAGE_EVENT
    passed = passing.feed(rest)
    assert passed.endswith(b'"usage":{}}\n\n')
    copy = AnswerCopy()
    copy.add(TEXT_EVENT)
    assert not copy.read(Api.CHAT, events=True).is_whole


@pytest.mark.parametrize("unit", ["[],", "0,", '{"role":"user"},', '{"a":{"b":""}},', '"a",', "["])
def test_more_values_than_a_process_can_hold_are_refused_before_they_are_read(unit: str) -> None:
    many = unit * (MAX_VALUES + 1)
    with pytest.raises(BadInput, match="too many values: 400,000 are taken here"):
        parse_request(Api.CHAT, f'{{"model":"m","messages":[{many}0]}}'.encode())


@pytest.mark.parametrize("api", list(Api))
def test_more_messages_than_anybody_sends_are_refused_before_their_places_are_looked_up(api: Api) -> None:
    """130,000 messages of three words held the interpreter for three seconds."""
    many = ",".join(['{"role":"user"}'] * MAX_ITEMS)
    body = f'{{"model":"m","{api.input_name}":[{many}%s]}}'
    parse_request(api, (body % "").encode())
    if api is Api.EMBEDDINGS:  # whose texts are looked at together
        parse_request(api, (body % ",0").encode())
        return
    with pytest.raises(BadInput, match=f"`{api.input_name}` has 20,001 items; the limit is 20,000"):
        parse_request(api, (body % ",0").encode())


def test_the_places_of_messages_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = list[int]()

    def counted(text: str, start: int) -> list[Part]:
        looked_up.append(start)
        return elements(text, start)

    monkeypatch.setattr(requests, "elements", counted)
    monkeypatch.setattr(turns, "elements", counted)
    assert len(with_memory([user("a"), CALL, RESULT, user("b")])) == 6
    assert len(looked_up) == 1


@pytest.mark.parametrize("unit", [",", "[{", '\\",', "\\\\,", "\\u002c,["])
def test_marks_in_a_text_are_no_values(unit: str) -> None:
    text = unit * (MAX_VALUES + 1)
    request = parse_request(Api.CHAT, f'{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}'.encode())
    turn = find_turn(request)
    assert turn is not None
    assert turn.text == json.loads(f'"{text}"')


def test_a_text_without_an_end_is_read_once() -> None:
    with pytest.raises(BadInput, match="not valid JSON"):
        parse_request(Api.CHAT, b'{"model":"m","messages":"' + b'\\",' * (MAX_VALUES + 1))


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ('"max_tokens":7', 7),
        ('"max_completion_tokens":1,"max_tokens":900', 900),
        ('"max_tokens":1,"max_tokens":900', 900),
        ('"max_tokens":1,"Max_Tokens":900', 900),
        ('"max_tokens":5,"n":1,"n":9', 45),
        ('"max_tokens":null,"max_output_tokens":3', 3),
        ('"n":4', 4 * REPLY_TOKENS),
        ('"n":0,"max_tokens":0', REPLY_TOKENS),
        ('"max_tokens":5,"n":2,"best_of":9', 45),
        ('"reasoning_effort":"high"', REASONED_TOKENS),
        ('"max_tokens":5,"reasoning":{"max_tokens":70}', 70),
        ('"max_tokens":5,"thinking":{"budget_tokens":70,"budget_tokens":1}', 70),
        ('"max_tokens":5,"max_new_tokens":900', 900),
        ('"max_tokens":-1', REPLY_TOKENS),
        ('"max_tokens":1e6', 1_000_000),  # as servers take it: else a budget would be held against a short answer
        ('"max_tokens":50000.0,"n":2.0', 100_000),
        ('"max_tokens":10000000000000000000', 10**9),
        ('"max_tokens":1e999', 10**9),
    ],
)
def test_of_several_limits_the_largest_counts(limits: str, most: int | None) -> None:
    assert parse_request(Api.CHAT, f'{{"model":"m",{limits}}}'.encode()).reply_tokens == most
