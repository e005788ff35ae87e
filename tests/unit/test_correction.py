"""Corrected spelling is told from changed words."""

import pytest

from composer.memory.correction import correct_spelling


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("for the biling database", "for the billing database", "use it for billing"),
        ("for biling", "for billing and biliing", "use it for biling"),  # which one is not known
        ("it is not ours", "it is now ours", "use it for biling"),
        ("for biling", "for payment", "use it for biling"),
    ],
)
def test_only_one_letter_of_a_long_word_is_spelling(before: str, after: str, text: str) -> None:
    assert correct_spelling("use it for biling", before, after) == text


@pytest.mark.parametrize(
    ("before", "after"), [("legal", "illegal"), ("room1a", "room2a"), ("cant", "cannt"), ("a", "b")]
)
def test_what_may_change_the_meaning_is_no_spelling(before: str, after: str) -> None:
    assert correct_spelling(before, before, after) == before
