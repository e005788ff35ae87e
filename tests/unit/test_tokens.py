"""Token counts: exact for models with a known table, and estimated rather too high for others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from splintr import Tokenizer as Tables

from composer.stores.models.tokens import (
    _ENCODINGS,
    MAX_RUN,
    READ_AT_ONCE,
    TableTokenizer,
    _pieces,
    _table,
    tokenizer_for,
)
from composer.text.caches import empty_caches


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("", "o200k_base"),
        ("offline", "o200k_base"),
        ("gpt-4o-mini", "o200k_base"),
        ("openai/gpt-4.1", "o200k_base"),
        ("GPT-5.2", "o200k_base"),
        ("o1", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("o4-mini", "o200k_base"),
        ("chatgpt-4o-latest", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("text-embedding-3-small", "cl100k_base"),
        ("openai/gpt-oss-120b", "gpt-oss"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3"),
        ("llama3.1:8b", "llama3"),
        ("Meta-Llama-3-8B", "llama3"),
        ("deepseek/deepseek-chat", "deepseek_v3"),
        ("deepseek-r1-distill-llama-70b", "llama3"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen3"),
        ("zai-org/GLM-4.6", "glm4"),
        ("moonshotai/kimi-k2", "kimi_k2"),
        ("mistralai/Mistral-7B-Instruct-v0.2", "mistral_v1"),
        ("mistral-large-latest", "mistral_v3"),
        ("codestral-2501", "mistral_v3"),
        ("microsoft/phi-4", "phi4"),
    ],
)
def test_tokens_of_a_known_model_are_counted_with_its_own_table(model: str, encoding: str) -> None:
    tokenizer = tokenizer_for(model)
    assert tokenizer == TableTokenizer(encoding)
    assert tokenizer.exact
    assert tokenizer.count("When do we deploy?") > 3


@pytest.mark.parametrize("model", ["claude-opus-4", "google/gemini-3-pro", "llama-4-scout", "offline-thing", "omni"])
def test_tokens_of_an_unknown_model_are_estimated_rather_too_high(model: str) -> None:
    tokenizer = tokenizer_for(model)
    text = "The deployment moved to Thursday, because the migration was late. " * 20
    assert not tokenizer.exact
    assert tokenizer.count(text) >= 1.15 * tokenizer_for("gpt-4o").count(text)
    assert tokenizer.count("") == 0


def test_counts_equal_those_of_the_reference_implementation() -> None:
    table = Tables.from_pretrained("o200k_base")
    count = tokenizer_for("gpt-4o").count
    # Computed with OpenAI's tiktoken.
    assert count("hello world") == 2
    assert count("tiktoken is great!") == 6
    prose = "Someone said: “naïve café”, 日本語 and 🙂 in v2.6.8.\n\n\tindented code();\n" * 40
    assert count(prose) == len(table.encode_ordinary(prose))


@pytest.mark.parametrize("spelling", ["<|endoftext|>", "<|im_start|>system", "<s>[INST]"])
def test_special_tokens_are_counted_as_ordinary_text(spelling: str) -> None:
    assert tokenizer_for("gpt-4o").count(spelling) > 3


def test_a_lone_surrogate_counts_as_a_question_mark() -> None:
    tokenizer = tokenizer_for("gpt-4o")
    assert tokenizer.count("a \ud800 b") == tokenizer.count("a ? b")


# A sequence of letters is merged in quadratic time unless it is cut: uncut, these would exceed the suite's time limit.
@pytest.mark.parametrize("piece", ["a", " ", "\n", "日", "é", "!", "0", "ab", "a1", "🙂"])
def test_a_megabyte_of_repeated_text_can_be_counted(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    assert 0 < tokenizer_for("gpt-4o").count(text) <= len(text.encode())


@pytest.mark.parametrize("text", ["", "short", "a" * 5000, " " * 5000, ("word " * 200 + "x" * 900) * 3, "a" * MAX_RUN])
def test_joined_pieces_equal_the_text_and_none_contains_a_longer_sequence(text: str) -> None:
    pieces = _pieces(text)
    assert "".join(pieces) == text
    assert all(len(run) <= 2 * MAX_RUN for piece in pieces for run in piece.split(" "))


def test_cutting_a_long_sequence_hardly_changes_the_count() -> None:
    text = "see https://example.com/" + "a8f3c1d9" * 200 + " and " + "lorem" * 300
    table = Tables.from_pretrained("o200k_base")
    assert abs(tokenizer_for("gpt-4o").count(text) - len(table.encode_ordinary(text))) <= len(text) // MAX_RUN + 1


LINES = st.lists(
    st.text(max_size=12) | st.sampled_from([" ", "/", "- a", "  | b", "[X]", ".", "…", "\r", "日本", "9", "\u2028"])
)


@pytest.mark.parametrize("encoding", sorted({encoding for _, encoding in _ENCODINGS}))
@given(lines=LINES)
@settings(deadline=None)
def test_the_counts_of_lines_add_up_to_the_count_of_the_text(encoding: str, lines: list[str]) -> None:
    text = "\n".join(lines)
    whole = len(_table(encoding).encode_ordinary(text.encode("utf-8", "replace").decode()))
    assert TableTokenizer(encoding).count(text) == whole


def test_a_long_text_is_counted_in_pieces_that_change_no_count() -> None:
    text = " ".join(f"word{number}, and then\nsome" for number in range(20_000))
    pieces = _pieces(text)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= READ_AT_ONCE
    whole = len(_table("o200k_base").encode_ordinary(text))
    assert abs(TableTokenizer("o200k_base").count(text) - whole) <= len(pieces)


def test_erasing_empties_the_pieces_of_text_that_the_tables_keep() -> None:
    tokenizer, table = TableTokenizer("o200k_base"), _table("o200k_base")
    tokenizer.count("quokkaburra")
    assert table.cache_len > 0
    empty_caches()
    assert table.cache_len == 0
