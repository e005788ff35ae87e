"""Long texts are cut into passages that cover all of them and overlap at the bounds of sentences and lines."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.text.passages import (
    MAX_WHOLE_BYTES,
    OVERLAP_BYTES,
    PASSAGE_BYTES,
    Passage,
    bounds_of,
    is_whole,
    passages,
)

PROSE = " ".join(f"Sentence number {n} ends here." for n in range(300))
TABLE = "\n".join(f"row {n} | value {n * 7} | open" for n in range(300))


def test_a_short_text_is_one_passage() -> None:
    assert passages("") == passages("x" * MAX_WHOLE_BYTES) == [Passage()]
    assert Passage().of("all of it") == "all of it"


@given(st.text("ab é日😀", max_size=2_000))
def test_what_is_whole_is_one_passage(text: str) -> None:
    assert is_whole(text) == (len(passages(text)) == 1)
    assert is_whole("é" * (MAX_WHOLE_BYTES // 2))
    assert not is_whole("é" * (MAX_WHOLE_BYTES // 2) + "x")


@pytest.mark.parametrize(("text", "end"), [(PROSE, "."), (TABLE, "\n"), ("日本語の文章です。" * 200, "。")])
def test_a_passage_ends_with_a_sentence_or_line_and_the_next_begins_with_one_before_it(text: str, end: str) -> None:
    found = passages(text)
    for one, following in pairwise(found):
        assert one.of(text).rstrip(" ").endswith(end)
        assert text[: following.start].rstrip(" ").endswith(end)
        assert following.start < one.start + (one.chars or 0)


def _bounds(text: str) -> list[int]:
    """Where lines and sentences end, by a plain reading of what that is."""
    return [
        end.end()
        for end in re.finditer(
            r"\n++|(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019)\]]*+\s++|[\u3002\uff01\uff1f]++", text
        )
    ]


@given(st.text("ab .!?\n\t\u2026\u3002\uff01\"')]", max_size=300))
def test_the_bounds_of_sentences_are_found_from_their_marks(text: str) -> None:
    assert bounds_of(text) == _bounds(text)
    assert bounds_of('it is done.) really!? "yes..." no.x\n\n') == [13, 22, 31, 37]


@given(st.text("ab .\n。é日😀", min_size=MAX_WHOLE_BYTES, max_size=6_000))
def test_passages_cover_the_whole_text_and_are_short(text: str) -> None:
    found = passages(text)
    at = 0
    for number, passage in enumerate(found, 1):
        assert passage.start <= at
        assert passage.part == (number if len(found) > 1 else passage.part)
        at = passage.start + len(passage.of(text))
    assert at == len(text)
    assert all(len(each.of(text)) <= max(PASSAGE_BYTES, MAX_WHOLE_BYTES) for each in found)
    assert len(found) <= 2 + len(text.encode()) // (PASSAGE_BYTES // 2 - OVERLAP_BYTES)
