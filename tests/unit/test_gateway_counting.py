"""What of a request counts as tokens: every text wherever it stands, and data of images and files by their size."""

import base64
import json
from typing import Any, Final

import pytest

from composer.gateway.answers import MAX_HEAD_BYTES, AnswerCopy
from composer.gateway.counting import MAX_FILE_TOKENS, sent
from composer.gateway.requests import Api, parse_request
from composer.model import Usage
from composer.ports.models import IMAGE_TOKENS
from composer.usage.reported import is_plausible

LONG: Final = "word " * 1_000
DATA: Final = base64.b64encode(LONG.encode()).decode()
LONGER, LONGEST = (base64.b64encode((LONG * times).encode()).decode() for times in (9, 200))
PNG: Final = f"data:image/png;base64,{DATA}"


def part(**members: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [members]}]}


def of(api: Api, body: dict[str, Any] | str) -> tuple[str, int]:
    text = body if isinstance(body, str) else json.dumps(body)
    found = sent(parse_request(api, b'{"model":"m",' + text[1:].encode()))
    return found.text, found.others


@pytest.mark.parametrize(
    "body",
    [
        part(type="text", text=f"data:{LONG}"),
        {"messages": [{"role": "user", "content": f"data:image/png;base64,{LONG}"}]},
        {"messages": [{"role": "user", "content": {"anything": [[{"deep": LONG}]]}}]},
        {"messages": [{"role": "user", "content": "hi", "name": LONG}]},
        {
            "messages": [
                {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": f'{{"a":"{LONG}"}}'}}]}
            ]
        },
        {"messages": [], "prediction": {"type": "content", "content": LONG}},
        {"messages": [], "prediction": {"type": "content", "content": [{"type": "text", "text": LONG}]}},
        {"messages": [], "tools": [{"type": "function", "function": {"name": "f", "description": LONG}}]},
        {"messages": [], "tools": [{"function": {"parameters": {"properties": {LONG: {"type": "string"}}}}}]},
        {"messages": [], "response_format": {"json_schema": {"schema": {"enum": [LONG]}}}},
        {"messages": [], "metadata": {"a": LONG}},
        {"messages": [], "of_a_later_year": {"file_data": LONG, "data": LONG}},
        {"messages": [], LONG: 1},
        {"messages": [], "stop": LONG.split()},
        # Data where a request has none: another type of part, another place, or no such data.
        part(type="text", text="hi", file_data=DATA * 40),
        part(type="file", file={"data": DATA, "file_data": f"{DATA} "}),
        part(type="image_url", image_url={"url": DATA}),
        part(type="image_url", image_url={"url": f"data:text/plain,{LONG}"}),
        part(type="input_audio", input_audio={"data": f"data:{LONG}"}),
        {"messages": [{"type": "image_url", "role": "user", "content": PNG}]},
        {"messages": [], "metadata": part(type="image_url", image_url={"url": PNG})},
    ],
)
def test_a_text_counts_wherever_it_stands(body: dict[str, Any]) -> None:
    text, _ = of(Api.CHAT, body)
    assert text.count("word") >= 1_000 or DATA in text


@pytest.mark.parametrize(
    "body",
    [
        {"input": LONG},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": f"data:{LONG}"}]}]},
        {"input": [{"type": "function_call_output", "call_id": "c", "output": LONG}]},
        {"input": "hi", "instructions": LONG},
        {"input": "hi", "prompt": {"id": "p", "variables": {"a": LONG}}},
        {"input": "hi", "text": {"format": {"schema": {"description": LONG}}}},
        {"input": "hi", "encrypted_content": LONG},
        {"input": [{"role": "user", "content": "hi", "encrypted_content": DATA}]},
    ],
)
def test_a_text_of_the_responses_api_counts_wherever_it_stands(body: dict[str, Any]) -> None:
    text, _ = of(Api.RESPONSES, body)
    assert text.count("word") >= 1_000 or DATA in text


def test_what_an_object_has_twice_counts_twice() -> None:
    text, _ = of(
        Api.CHAT, '{"messages":[{"role":"user","content":"first","content":"second"}],"x":"third","x":"fourth"}'
    )
    assert all(word in text for word in ("first", "second", "third", "fourth"))
    image = f'{{"type":"image_url","image_url":{{"url":"{LONG}","url":"{PNG}"}}}}'
    text, _ = of(Api.CHAT, f'{{"messages":[{{"role":"user","content":[{image}]}}]}}')
    assert LONG in text
    assert DATA in text


def test_numbers_and_nesting_count() -> None:
    flat, deep = of(Api.CHAT, {"messages": [], "x": 7})[0], of(Api.CHAT, {"messages": [], "x": [[[[7]]]]})[0]
    assert len(deep) >= len(flat) + 4
    assert "3.14159265358979" in of(Api.CHAT, {"messages": [], "x": [3.14159265358979]})[0]
    assert of(Api.CHAT, {"messages": [], "x": [True] * 1_000})[0].count("\n") > 1_000
    assert of(Api.EMBEDDINGS, {"input": [[15339, 1917]] * 50}) == ("\n".join(["model", "m", *["["] * 51]), 100)
    assert LONG in of(Api.EMBEDDINGS, {"input": [LONG, LONG]})[0]


LONGER_TOKENS: Final = len(LONGER) * 3 // 16
SIZE: Final = len(DATA) * 3 // 4


@pytest.mark.parametrize(
    ("api", "body", "tokens"),
    [
        (Api.CHAT, part(type="image_url", image_url={"url": PNG, "detail": "low"}), IMAGE_TOKENS),
        (Api.CHAT, part(type="image_url", image_url=PNG), IMAGE_TOKENS),
        (Api.CHAT, part(type="image_url", image_url={"url": "https://example.com/a.png"}), IMAGE_TOKENS),
        (
            Api.CHAT,
            part(type="image_url", image_url={"url": f"data:text/plain;base64,{LONGER}"}),
            LONGER_TOKENS,
        ),
        (Api.CHAT, part(type="input_audio", input_audio={"data": DATA, "format": "mp3"}), 42),
        (Api.CHAT, part(type="file", file={"file_data": LONGER, "filename": "a.txt"}), LONGER_TOKENS),
        (Api.CHAT, part(type="file", file={"file_data": f"data:application/pdf;base64,{LONGEST}"}), MAX_FILE_TOKENS),
        (Api.CHAT, part(type="file", file={"file_id": "file-1"}), IMAGE_TOKENS),
        (Api.RESPONSES, {"input": [{"content": [{"type": "input_image", "image_url": PNG}] * 3}]}, 3 * IMAGE_TOKENS),
        (Api.RESPONSES, {"input": [{"content": [{"type": "input_file", "file_data": DATA}]}]}, IMAGE_TOKENS),
        (Api.RESPONSES, {"input": [{"output": {"type": "computer_screenshot", "image_url": PNG}}]}, IMAGE_TOKENS),
        (Api.RESPONSES, {"input": [{"type": "reasoning", "encrypted_content": DATA}]}, SIZE // 4),
        (Api.RESPONSES, {"input": [{"type": "image_generation_call", "result": DATA}]}, IMAGE_TOKENS),
    ],
)
def test_data_of_images_sounds_and_files_count_by_their_size(api: Api, body: dict[str, Any], tokens: int) -> None:
    text, others = of(api, body)
    assert DATA[:100] not in text
    assert others == pytest.approx(tokens, abs=9)


@pytest.mark.parametrize(
    ("body", "events"),
    [
        ([{"choices": [{"index": at, "delta": {"content": f"said{at} "}}]} for at in range(3)], True),
        ([{"choices": [{"delta": {"reasoning_content": "said0 said1 "}}, {"delta": {"content": "said2"}}]}], True),
        (
            [{"choices": [{"delta": {"tool_calls": [{"function": {"name": "said0", "arguments": "said1 said2"}}]}}]}],
            True,
        ),
        ([{"type": f"response.{kind}.delta", "delta": f"said{at} "} for at, kind in enumerate("abc")], True),
        ({"choices": [{"message": {"content": f"said{at}"}} for at in range(3)]}, False),
        ({"output": [{"type": "function_call", "name": "said0", "arguments": "said1 said2"}]}, False),
    ],
)
def test_all_that_a_model_has_written_counts(body: Any, events: bool) -> None:
    copy = AnswerCopy()
    lines = [f"data: {json.dumps(each)}\n\n" for each in body] if events else [json.dumps(body)]
    for line in lines:
        copy.add(line.encode())
    api = Api.CHAT if "choices" in str(body) else Api.RESPONSES
    for told in {events, True}:
        generated = copy.read(api, events=told).generated
        assert all(f"said{at}" in generated for at in range(3))


def test_of_an_answer_that_breaks_off_what_came_counts() -> None:
    copy = AnswerCopy()
    copy.add(b'{"choices":[{"message":{"content":"said and not')
    assert "said and not" in copy.read(Api.CHAT, events=False).generated
    assert copy.read(Api.EMBEDDINGS, events=False).generated == ""


def test_what_is_left_out_of_a_copy_counts_as_much_as_what_is_kept() -> None:
    copy = AnswerCopy()
    event = b'data: {"choices":[{"delta":{"content":"said "}}]}\n\n'
    for _ in range(4 * MAX_HEAD_BYTES // len(event)):
        copy.add(event)
    answer = copy.read(Api.CHAT, events=True)
    assert answer.generated.count("said") * answer.scale == pytest.approx(4 * MAX_HEAD_BYTES // len(event), rel=0.01)


@pytest.mark.parametrize(
    ("reported", "prompt", "answer", "plausible"),
    [
        (Usage(), 0, 0, True),
        (Usage(), 2, 0, False),
        (Usage(1, 0), 2, 2, False),
        (Usage(1, 2), 60, 12, True),
        (Usage(1, 1), 120_000, 12, False),
        (Usage(30_000, 12), 120_000, 40, True),
        (Usage(10, 30_000), 120_000, 40, True),  # a prediction counts as written
        (Usage(900_000, 5), 40, 12, True),  # what the server had kept, images, reasoning
    ],
)
def test_a_report_that_can_not_be_true_is_not_believed(
    reported: Usage, prompt: int, answer: int, plausible: bool
) -> None:
    assert is_plausible(reported, prompt, answer) is plausible
