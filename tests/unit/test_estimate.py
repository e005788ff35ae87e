"""What the API counts corrects what we estimate, in that conversation and within reason."""

from composer.prompt.token_estimate import corrected, uncorrected
from composer.stores.tokens import tokenizer_for

TEXT = "the quick brown fox jumps over the lazy dog " * 20


def test_an_exact_count_is_left_alone() -> None:
    exact = tokenizer_for("gpt-4o")
    assert corrected(exact, 100, 200) is exact


def test_an_estimate_follows_what_the_api_counted() -> None:
    estimate = tokenizer_for("claude-sonnet")
    assert corrected(estimate, 100, 120).count(TEXT) == -(-estimate.count(TEXT) * 120 // 100)
    assert not corrected(estimate, 100, 120).exact


def test_a_count_that_was_not_reported_corrects_nothing() -> None:
    estimate = tokenizer_for("claude-sonnet")
    assert corrected(estimate, 100, 0) is estimate
    assert corrected(estimate, 0, 100) is estimate


def test_an_absurd_report_is_bounded() -> None:
    estimate = tokenizer_for("claude-sonnet")
    assert corrected(estimate, 1, 10_000).count(TEXT) == estimate.count(TEXT) * 3


def test_a_correction_does_not_undo_the_one_before() -> None:
    estimate = tokenizer_for("claude-sonnet")
    first = corrected(estimate, 1000, 1500)
    counted = uncorrected(first, first.count(TEXT))
    assert counted == estimate.count(TEXT)
    again = corrected(estimate, counted, first.count(TEXT))
    assert again.count(TEXT) == first.count(TEXT)
