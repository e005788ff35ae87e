"""Only what is plainly a decision of the group is proposed as a landmark."""

import pytest

from composer.memory.decisions import is_group_decision
from composer.memory.patterns import extract
from tests.bench.decisions import WRITTEN, held_out

SENTENCES = [line.split("\t") for line in WRITTEN.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("text", [text for label, text in SENTENCES if label == "no"])
def test_what_is_not_plainly_decided_is_not_proposed(text: str) -> None:
    assert not is_group_decision(text)


def test_most_decisions_of_a_group_are_recognised_and_extracted_as_such() -> None:
    decisions = [text for label, text in SENTENCES if label == "yes"]
    recognised = [text for text in decisions if is_group_decision(text)]
    assert len(recognised) / len(decisions) >= 0.8
    for text in recognised:
        assert "decision" in [statement.kind for statement in extract(text)], text


def test_nine_in_ten_of_what_is_proposed_of_200_labelled_sentences_are_decisions() -> None:
    assert len({text for _, text in SENTENCES}) >= 200
    proposed = [label for label, text in SENTENCES if is_group_decision(text)]
    assert proposed.count("yes") / len(proposed) >= 0.9


def test_seven_in_eight_of_what_is_proposed_of_sentences_that_are_no_examples_are_decisions() -> None:
    sentences = held_out()
    assert len({text for _, text in sentences} - {text for _, text in SENTENCES}) >= 140
    proposed = [label for label, text in sentences if is_group_decision(text)]
    assert proposed.count("yes") / len(proposed) >= 0.88
    assert proposed.count("yes") / [label for label, _ in sentences].count("yes") >= 0.7


@pytest.mark.parametrize(
    "text",
    [
        "we " * 50_000,
        "@a: " * 30_000 + "we decided to x",
        "we are " + "now just " * 20_000,
        "my " * 40_000,
        "after " * 20_000,
        "in the " * 20_000 + "?",
    ],
)
@pytest.mark.timeout(20)
def test_a_hostile_repetition_takes_no_time(text: str) -> None:
    assert not is_group_decision(text)


@pytest.mark.parametrize(
    "text",
    [
        "We decided to use MongoDB.",
        "We decided to use Postgres.",
        "We agreed on Grafana.",
        "Decision: we use Vue.",
        "We decided that the password is zx5q",
    ],
)
def test_a_statement_that_calls_itself_a_decision_is_one_whatever_it_names(text: str) -> None:
    assert is_group_decision(text)
