"""Earlier answers without their marks."""

import pytest

from composer.text.marks import without_any_marks, without_marks


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("It is the ninth (s1), as Bob said (s2, s7).", "It is the ninth, as Bob said."),
        ("(s1) first\n  (s2)", " first\n "),
        ("(s1)", "\u2026"),
        ("", ""),
        ("the bucket (S3), s1 and (s0)", "the bucket (S3), s1 and (s0)"),
        ("`(s1)` and https://a.org/(s1) (s1)", "`(s1)` and https://a.org/(s1)"),
    ],
)
def test_marks_are_taken_out_where_they_are_marks(text: str, bare: str) -> None:
    assert without_marks(text) == bare


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("It is the ninth (s1), as Bob said (s2, s7).", "It is the ninth, as Bob said."),
        ("the bucket (S3), s1 and (s0)", "the bucket (S3), s1 and (s0)"),
        ("`(s1)`", "``"),
        ("    (s1)", "   "),
        ("a\n```\n(s1)\n```", "a\n```\n\n```"),
        ("[a](s1) https://a.org/(s1)", "[a] https://a.org/"),
        ("see (s(s1)1)", "see"),
        ("see (s1,(s2) s3)", "see"),
        ("(s" * 5 + "(s1)" + "1)" * 5, "(s(s\u20261)1)"),
    ],
)
def test_of_others_texts_all_marks_are_taken_out(text: str, bare: str) -> None:
    assert without_any_marks(text) == bare


def test_deeply_nested_marks_take_no_longer_than_flat_ones() -> None:
    depth = 300_000
    assert len(without_any_marks("(s" * depth + "(s1)" + "1)" * depth)) > depth
