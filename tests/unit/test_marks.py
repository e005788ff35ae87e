"""Earlier answers without their marks."""

import pytest

from composer.text.marks import without_marks


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
