"""Splitting: a long answer is cut at paragraphs and sentences, and code blocks remain closed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.delivery.splitting import FENCE, split

TEXTS = st.lists(
    st.one_of(
        st.text(alphabet="abc .!?\n", max_size=120),
        st.text(alphabet="xy=\n ", max_size=200).map(lambda code: f"\n```python\n{code}\n```\n"),
        st.text(alphabet="ab", min_size=100, max_size=300),
    ),
    max_size=8,
).map("".join)


@given(TEXTS, st.integers(40, 300))
def test_no_part_is_longer_than_the_limit_or_blank(text: str, limit: int) -> None:
    assert all(0 < len(part) <= limit and part.strip() for part in split(text, limit))


@given(TEXTS, st.integers(40, 300))
def test_only_white_space_is_lost(text: str, limit: int) -> None:
    def bare(some: str) -> str:
        return re.sub(r"\s|`{3,}(python)?", "", some)

    assert bare("".join(split(text, limit))) == bare(text)


@given(TEXTS, st.integers(40, 300))
def test_every_fence_is_closed_in_its_own_part(text: str, limit: int) -> None:
    assert all(part.count(FENCE) % 2 == 0 for part in split(text, limit))


def test_a_short_answer_is_one_part() -> None:
    assert split("hello\n\nworld", 2000) == ["hello\n\nworld"]


def test_a_code_block_that_fits_is_not_cut() -> None:
    code = "```python\n" + "x = 1\n" * 10 + "```"
    parts = split("words " * 20 + "\n" + code + "\nafter", 140)
    assert any(code in part for part in parts)


def test_a_longer_code_block_is_reopened_with_its_language() -> None:
    parts = split("```python\n" + "x = 1\n" * 60 + "```", 120)
    assert len(parts) > 1
    assert all(part.startswith("```python\n") and part.endswith("\n```") for part in parts)


def test_prose_is_cut_at_paragraphs_before_sentences() -> None:
    assert split("a" * 60 + ". b\n\n" + "c" * 60, 100) == ["a" * 60 + ". b", "c" * 60]


def test_a_code_block_in_a_list_is_closed_and_opened_again() -> None:
    code = "".join(f"   echo {n} and some words\n" for n in range(30))
    parts = split(f"1. do this:\n   ```sh\n{code}   ```\n2. done", 200)
    assert len(parts) > 3
    assert all(part.count(FENCE) % 2 == 0 for part in parts)
    assert parts[-1].endswith("2. done")


def test_a_table_has_its_heading_in_each_part() -> None:
    head = "| id | name |\n|----|------|\n"
    parts = split("The list:\n" + head + "".join(f"| {n} | Person {n} |\n" for n in range(40)) + "That is all.", 200)
    assert len(parts) > 3
    assert all(part.startswith(head) for part in parts[1:])
    assert parts[-1].endswith("That is all.")


@pytest.mark.parametrize(
    "whole",
    ["`" + "some code " * 5 + "`", "**" + "bold words " * 5 + "**", "[a page about, well, this](https://a.test/b)"],
)
@pytest.mark.parametrize("before", range(20, 60, 7))
def test_what_belongs_together_is_not_cut(whole: str, before: int) -> None:
    text = f"{'lorem ipsum ' * before}, {whole}, and {'dolor sit ' * 20}"
    assert any(whole in part for part in split(text, 200))


@pytest.mark.parametrize(
    "letter", ["e\u0301", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\u0e40\u0e1e\u0e37\u0e48"]
)
def test_a_letter_is_not_cut(letter: str) -> None:
    parts = split(letter * 200, 100)
    assert all(part.startswith(letter[0]) for part in parts)
    assert "".join(parts) == letter * 200


def test_sentences_without_spaces_are_cut_where_they_end() -> None:
    sentence = "\u3053\u308c\u306f\u9577\u3044\u6587\u7ae0\u3067\u3059\u3002"
    assert all(part.endswith("\u3002") for part in split(sentence * 60, 100))


def test_a_limit_too_small_for_a_fence_is_refused() -> None:
    with pytest.raises(ValueError, match="40"):
        split("x", 10)
