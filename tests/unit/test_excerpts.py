"""Excerpts: the part of a long text that belongs to a question, never longer than an excerpt, in the text's own
words."""

from hypothesis import given
from hypothesis import strategies as st

from composer.text.excerpts import EXCERPT_CHARS, MAX_HEADING_CHARS, MAX_UNCUT_CHARS, excerpt

FILLER = " ".join(f"filler{n}" for n in range(2_000))


def test_a_short_text_is_shown_whole() -> None:
    text = "x" * MAX_UNCUT_CHARS
    assert excerpt(text, ["y"]) == text


def test_the_part_with_most_of_the_terms_is_shown_under_the_first_line() -> None:
    text = f"The title\n{FILLER} launch {FILLER} the launch budget is nine {FILLER}"
    shown = excerpt(text, ["launch", "budget"])
    assert shown.startswith("The title\n… ")
    assert "the launch budget is nine" in shown
    assert shown.endswith(" …")


def test_without_a_term_the_beginning_is_shown() -> None:
    shown = excerpt(f"Begin here {FILLER}", ["absent"])
    assert shown.startswith("Begin here filler0")
    assert shown == excerpt(f"Begin here {FILLER}", [])


@given(st.text(min_size=MAX_UNCUT_CHARS - 50, max_size=6_000), st.lists(st.text(max_size=5), max_size=5))
def test_an_excerpt_is_bounded_and_made_of_the_text(text: str, wanted: list[str]) -> None:
    shown = excerpt(text, wanted)
    assert len(shown) <= max(MAX_UNCUT_CHARS, EXCERPT_CHARS + MAX_HEADING_CHARS + 10)
    body = shown.removesuffix(" …").rpartition("\n… ")[2]
    assert body in text
