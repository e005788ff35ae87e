"""Token estimates: the counts that the API reports correct them, for each conversation and within bounds."""

from composer.prompt.token_estimate import corrected, uncorrected
from composer.stores.models.tokens import tokenizer_for

TEXT = "the quick brown fox jumps over the lazy dog " * 20


def test_an_exact_count_is_not_corrected() -> None:
    exact = tokenizer_for("gpt-4o")
    assert corrected(exact, 100, 200) is exact


def test_an_estimate_is_corrected_by_the_count_of_the_api() -> None:
    estimate = tokenizer_for("claude-sonnet")
    assert corrected(estimate, 100, 120).count(TEXT) == -(-estimate.count(TEXT) * 120 // 100)
    assert not corrected(estimate, 100, 120).exact


def test_a_missing_count_corrects_nothing() -> None:
    estimate = tokenizer_for("claude-sonnet")
    assert corrected(estimate, 100, 0) is estimate
    assert corrected(estimate, 0, 100) is estimate


def test_an_absurd_count_is_corrected_within_bounds() -> None:
    estimate = tokenizer_for("claude-sonnet")
    assert corrected(estimate, 1, 10_000).count(TEXT) == estimate.count(TEXT) * 3


def test_a_correction_builds_on_the_previous_one() -> None:
    estimate = tokenizer_for("claude-sonnet")
    first = corrected(estimate, 1000, 1500)
    counted = uncorrected(first, first.count(TEXT))
    assert counted == estimate.count(TEXT)
    again = corrected(estimate, counted, first.count(TEXT))
    assert again.count(TEXT) == first.count(TEXT)
