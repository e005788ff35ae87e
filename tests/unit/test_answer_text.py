"""The text of an answer, apart from reasoning, calls and end marks that a model writes into it."""

import json
import random
from collections.abc import Iterator, Sequence

import pytest

from composer.text.answer_text import AnswerText

HELLO = "Hello wörld 😀."
CALL = '{"name": "recall", "arguments": {"query": "x"}}'
OFFERED = {"recall": ("query",), "remember": ("text",), "wiki__search": ()}

HIDDEN = [
    "<think>\nSECRET\n</think>\n\n" + HELLO,
    "SECRET one.\n</think>\n\n" + HELLO,
    "<think>\n\n</think>\n\n" + HELLO,
    "<thinking>SECRET</thinking>" + HELLO,
    "<reasoning>SECRET <b>x</b></reasoning>\n" + HELLO,
    "◁think▷SECRET◁/think▷" + HELLO,
    "[THINK]SECRET[/THINK]" + HELLO,
    "<|channel|>analysis<|message|>SECRET<|end|><|start|>assistant<|channel|>final<|message|>" + HELLO + "<|return|>",
    "<|channel|>analysis<|message|>SECRET<|end|>\n<|start|>assistant<|channel|>final <|constrain|>text<|message|>"
    + HELLO,
    "analysisThe user SECRETassistantfinal" + HELLO,
    "<|START_THINKING|>SECRET<|END_THINKING|>" + HELLO,
    "<seed:think>SECRET<seed:cot_budget_reflect>SECRET</seed:cot_budget_reflect>SECRET</seed:think>" + HELLO,
    "<|begin_of_thought|>\nSECRET\n<|end_of_thought|>\n\n<|begin_of_solution|>\n" + HELLO + "\n<|end_of_solution|>",
    "<unused94>thought\nSECRET<unused95>" + HELLO,
    "<|channel>thought\nSECRET<channel|>" + HELLO,
    '<details type="reasoning" done="true">\n<summary>Thought</summary>\n> SECRET\n</details>\n' + HELLO,
    "<think>SECRET</think><answer>" + HELLO + "</answer>",
    "<think>SECRET <think> again</think>\n" + HELLO,
    HELLO + "<|im_end|>",
    HELLO + "</s>",
    HELLO + "<|eot_id|>",
    HELLO + " </s>",
    HELLO + "<end_of_turn>\n",
    HELLO + "<|endoftext|>",
    HELLO + "<\uff5cend\u2581of\u2581sentence\uff5c>",
    HELLO + "<|im_end|>\n<|im_start|>user\nSECRET",
    "<|im_start|>assistant\n" + HELLO,
    "<|start_header_id|>assistant<|end_header_id|>\n\n" + HELLO + "<|eot_id|>",
    "<start_of_turn>model\n" + HELLO,
    "<s>" + HELLO + "</s>",
    HELLO + "<|im_end|><|im_end|>",
    "```thinking\nSECRET\n```\n" + HELLO,
    HELLO + "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nSECRET",
    "<THINK>SECRET</THINK>" + HELLO,
    "<thought>\nSECRET</thought>\n" + HELLO,
    "SECRET</think>" + HELLO,
    "SECRET. </think>\n" + HELLO,
    "<|assistant|>" + HELLO,
    "<inner_monologue>SECRET</inner_monologue>" + HELLO,
    "<think>SECRET `</x>` ok</think> " + HELLO,
    "  \n<think>SECRET</think>\n" + HELLO,
    "<think>a</think>" + HELLO + "\n<think>SECRET, cut",
    "<antThinking>SECRET</antThinking>\n" + HELLO,
    "<scratch_pad>SECRET</scratch_pad>\n" + HELLO,
    "<|inner_prefix|>SECRET<|inner_suffix|>" + HELLO,
    "<|think|>SECRET<|end|><|begin|>assistant<|content|>" + HELLO + "<|end|>",
    "<think>SECRET<|im_end|>\n<|im_start|>assistant\n" + HELLO,
    "<think>SECRET: `</think>` ends it, but SECRET goes on</think>" + HELLO,
    '<think>SECRET: the tag "</think>" ends it. SECRET</think>\n' + HELLO,
    HELLO + "[|endofturn|]",
    "<answer>" + HELLO + "</answer>",
    "assistant\n\n" + HELLO,
]
KEPT = [
    "Use `<think>` and `</think>` around it.",
    "```\n<think>\nx\n</think>\n```\nThat is it.",
    "R1 writes <think> before its answer and </think> after it.",
    "ChatML ends a turn with <|im_end|> and begins it with <|im_start|>.",
    'The tag "<think>" is special.',
    "Hermes uses <tool_call> tags for calls.",
    "a < b and c > d [THINK about it] [link](http://x)",
    'Here:\n```xml\n<tool_call>\n{"name": "recall", "arguments": {}}\n</tool_call>\n```\nDone.',
    "<b>bold</b> text",
    "`<|im_end|>`",
    "It is ~5 and `x`",
    "x = {1, 2}\ny",
    "the token </s> ends it",
    "List:\n- `[TOOL_CALLS]` Mistral\n- `<|python_tag|>` Llama",
    "I think <thinking> is a tag.",
    '{"a": "done. <think> b"}',
    "analysis of it",
    "A (</think>) b",
    "assistants\nare many",
    ">>> recall = 1\nis Python",
    '```json\n{"name": "app", "version": "1"}\n```\nis a package.',
    '```json\n{"a": 1}\n```',
    "functools[0] is no list",
]
CALLS = [
    '<tool_call>\n{"name": "recall", "arguments": {"query": "x"}}\n</tool_call>',
    '<tool_call>{"name": "recall", "arguments": {"query": "x"}}',
    '<|python_tag|>{"name": "recall", "parameters": {"query": "x"}}',
    '<|python_tag|>recall.call(query="x")',
    '[TOOL_CALLS][{"name":"recall","arguments":{"query":"x"}}]',
    '[TOOL_CALLS]recall[ARGS]{"query": "x"}',
    '[TOOL_CALLS]recall{"query": "x"}',
    '{"name": "recall", "parameters": {"query": "x"}}',
    '```json\n{"name": "recall", "arguments": {"query": "x"}}\n```',
    '[recall(query="x")]',
    'recall(query="x")',
    '```tool_code\nrecall(query="x")\n```',
    '```tool_code\nprint(recall(query="x"))\n```',
    '<function=recall>{"query": "x"}</function>',
    "<tool_call>\n<function=recall>\n<parameter=query>\nx\n</parameter>\n</function>\n</tool_call>",
    "<tool_call>recall\n<arg_key>query</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
    (
        "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function"
        '<\uff5ctool\u2581sep\uff5c>recall\n```json\n{"query": "x"}\n```'
        "<\uff5ctool\u2581call\u2581end\uff5c><\uff5ctool\u2581calls\u2581end\uff5c>"
    ),
    (
        "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>recall"
        '<\uff5ctool\u2581sep\uff5c>{"query": "x"}<\uff5ctool\u2581call\u2581end\uff5c>'
        "<\uff5ctool\u2581calls\u2581end\uff5c>"
    ),
    (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.recall:0"
        '<|tool_call_argument_begin|>{"query": "x"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    '<|channel|>commentary to=functions.recall <|constrain|>json<|message|>{"query": "x"}<|call|>',
    (
        "<|channel|>analysis<|message|>SECRET<|end|><|start|>assistant"
        '<|channel|>commentary to=functions.recall <|constrain|>json<|message|>{"query": "x"}<|call|>'
    ),
    '<minimax:tool_call><invoke name="recall"><parameter name="query">x</parameter></invoke></minimax:tool_call>',
    '<function_calls>\n<invoke name="recall">\n<parameter name="query">x</parameter>\n</invoke>\n</function_calls>',
    (
        '<\uff5cDSML\uff5cfunction_calls><\uff5cDSML\uff5cinvoke name="recall">'
        '<\uff5cDSML\uff5cparameter name="query" string="true">x</\uff5cDSML\uff5cparameter>'
        "</\uff5cDSML\uff5cinvoke></\uff5cDSML\uff5cfunction_calls>"
    ),
    '<|tool_call|>[{"name": "recall", "arguments": {"query": "x"}}]<|/tool_call|>',
    '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "recall", "parameters": {"query": "x"}}]<|END_ACTION|>',
    '<think>SECRET</think>\n<tool_call>\n{"name": "recall", "arguments": {"query": "x"}}\n</tool_call><|im_end|>',
    '<think>SECRET <tool_call>\n{"name": "recall", "arguments": {"query": "x"}}\n</tool_call>',
    '{"type": "function", "function": {"name": "recall", "arguments": "{\\"query\\": \\"x\\"}"}}',
    '{"tool_calls": [{"function": {"name": "recall", "arguments": {"query": "x"}}}]}',
    '{"action": "recall", "action_input": {"query": "x"}}',
    '<tool_call>{"name": "functions.recall", "arguments": "{\\"query\\": \\"x\\"}"}</tool_call>',
    'functools[{"name": "recall", "arguments": {"query": "x"}}]',
    '<|tool_call>call:recall{query:<|"|>x<|"|>}<tool_call|>',
    "<start_function_call>call:recall{query:<escape>x<escape>}<end_function_call>",
    '<|start|>assistant to=functions.recall<|channel|>commentary json<|message|>{"query": "x"}<|call|>',
    'analysisSECRETassistantcommentary to=functions.recall json{"query": "x"}',
    '<|action_start|><|plugin|>\n{"name": "recall", "parameters": {"query": "x"}}<|action_end|>',
    '<|tools_prefix|>[{"recall": {"query": "x"}}]<|tools_suffix|>',
    '>>>recall\n{"query": "x"}',
    (
        "<longcat_tool_call>recall\n<longcat_arg_key>query</longcat_arg_key>\n"
        "<longcat_arg_value>x</longcat_arg_value>\n</longcat_tool_call>"
    ),
]


def pieces(text: str) -> Iterator[Sequence[str]]:
    """The text whole, character by character, and cut at random."""
    yield [text]
    yield list(text)
    chance = random.Random(text)
    for _ in range(6):
        cuts = sorted(chance.sample(range(1, len(text)), min(len(text) - 1, chance.randint(1, 6))))
        yield [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def shown(reader: AnswerText, given: Sequence[str]) -> str:
    """What is shown of an answer at last."""
    text = ""
    for piece in given:
        new, restarted = reader.feed(piece), reader.restarted
        text = new if restarted and not text.startswith("Hello") else text + new
    return text + reader.end()


@pytest.mark.parametrize("tools", [OFFERED, {}], ids=["tools", "none"])
@pytest.mark.parametrize("text", HIDDEN)
def test_reasoning_and_marks_are_taken_out_however_they_are_cut(text: str, tools: dict[str, Sequence[str]]) -> None:
    for given in pieces(text):
        reader = AnswerText(tools, hold=True)
        assert shown(reader, given).strip() == HELLO, given
        assert reader.calls == []


@pytest.mark.parametrize("text", [each for each in HIDDEN if "</think>" not in each or "<think" in each])
def test_what_has_a_beginning_is_never_given_not_even_for_a_moment(text: str) -> None:
    for given in pieces(text):
        reader = AnswerText(OFFERED)
        assert "SECRET" not in "".join([*map(reader.feed, given), reader.end()])
        assert not reader.restarted


def test_reasoning_without_a_beginning_is_taken_back_where_nothing_was_held() -> None:
    reader = AnswerText()
    assert reader.feed("SECRET plans.\n") == "SECRET plans.\n"
    assert (reader.feed("</think>\n\n"), reader.restarted, reader.closed_only) == ("", True, True)
    assert reader.feed(HELLO) + reader.end() == HELLO


@pytest.mark.parametrize("tools", [OFFERED, {}], ids=["tools", "none"])
@pytest.mark.parametrize("text", KEPT)
def test_text_about_marks_stays_as_it_is(text: str, tools: dict[str, Sequence[str]]) -> None:
    for given in pieces(text):
        reader = AnswerText(tools, hold=True)
        assert shown(reader, given) == text, given
        assert (reader.calls, reader.restarted) == ([], False)


@pytest.mark.parametrize("text", CALLS)
def test_a_call_that_is_written_as_text_is_read(text: str) -> None:
    for given in pieces(text):
        reader = AnswerText(OFFERED)
        assert shown(reader, given).strip() == ""
        assert [(name, json.loads(args)) for name, args in reader.calls] == [("recall", {"query": "x"})], given


@pytest.mark.parametrize("text", [each for each in CALLS if each.startswith(("<", "[T")) and "SECRET" not in each])
def test_a_call_of_what_is_not_offered_is_left_out(text: str) -> None:
    for before in ("", "Let me look.\n\n"):
        reader = AnswerText({"other": ()})
        assert shown(reader, [before + text]).strip() == before.strip()
        assert reader.calls == []


def test_several_calls_are_read_in_their_order() -> None:
    both = f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL.replace('x', 'y')}</tool_call>"
    reader = AnswerText(OFFERED)
    assert shown(reader, [both]) == ""
    assert [json.loads(args)["query"] for _, args in reader.calls] == ["x", "y"]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Ada", "age": 3}',
        '```json\n{"memory": []}\n```',
        '{"memory": [{"text": "Bob said: <think> first", "sources": [1]}]}',
        "[the page](https://example.org) has it",
        "```\nx = 1\n```\nThat is all.",
    ],
)
def test_json_and_links_are_no_calls(text: str) -> None:
    for given in pieces(text):
        reader = AnswerText(OFFERED, hold=True)
        assert (shown(reader, given), reader.calls) == (text, [])


def test_long_texts_take_time_in_proportion_to_their_length() -> None:
    for unit in ("<think", "</think> <", "`a", "[THINK ", "<|", "{", "<tool_call>"):
        reader = AnswerText(OFFERED, hold=True)
        for _ in range(40):
            reader.feed(unit * 500)
        reader.end()
