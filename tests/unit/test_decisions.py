"""Only what is plainly a decision of the group is proposed as a landmark."""

from pathlib import Path

import pytest

from composer.memory.decisions import is_group_decision
from composer.memory.patterns import extract
from tests.bench.decisions import FRESH, HELD_OUT, WRITTEN, held_out

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


@pytest.mark.parametrize(
    ("file", "english", "precision", "recall"),
    [(HELD_OUT, True, 0.93, 0.83), (FRESH, True, 0.92, 0.95), (FRESH, False, 0.99, 0.5)],
)
def test_nine_in_ten_of_what_is_proposed_of_sentences_that_are_no_examples_are_decisions(
    file: Path, english: bool, precision: float, recall: float
) -> None:
    known = {text for _, text in SENTENCES}
    sentences = [(label, text) for label, text in held_out(file, english=english) if text not in known]
    proposed = [label for label, text in sentences if is_group_decision(text)]
    assert proposed.count("yes") / len(proposed) >= precision
    assert proposed.count("yes") / [label for label, _ in sentences].count("yes") >= recall


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
        "Final decision: the roadmap is zx3q",
        "agreed: no deploys on fridays",
        "@bob Decided: pizza is paid by the company",
        "Entscheidung: wir nehmen Postgres.",
        "Unsere Entscheidung: die Domain bleibt",
        "D\u00e9cision finale : on garde le bureau de Lille",
        "Decisi\u00f3n: no renovamos el contrato",
        "Decis\u00e3o: ficamos com a sede",
        "Besluit: de server verhuist",
        "\u0420\u0435\u0448\u0435\u043d\u043e: Postgres \u0438 Redis",
        "\u6c7a\u5b9a\uff1a\u6765\u6708\u304b\u3089\u8acb\u6c42\u66f8\u306fPDF\u3067\u9001\u308a\u307e\u3059",
        "\u6700\u7ec8\u51b3\u5b9a\uff1a\u5e74\u4f1a\u653e\u5728\u4e09\u6708",
        "\uacb0\uc815: \uae08\uc694\uc77c\uc5d0 \ubc30\ud3ec\ud569\ub2c8\ub2e4",
    ],
)
def test_what_is_labelled_as_a_decision_is_one_and_its_authors_own_word(text: str) -> None:
    assert [(each.kind, each.waits) for each in extract(text)] == [("decision", False)]
    assert is_group_decision(text)


@pytest.mark.parametrize(
    "text", ["Decision: maybe later", "Decision: ?", "Entscheidung: wann f\u00e4llt sie?", "decision:"]
)
def test_a_label_makes_no_decision_of_what_is_open(text: str) -> None:
    assert not is_group_decision(text)


@pytest.mark.parametrize(
    "text",
    [
        "We decided to use MongoDB.",
        "We decided to use mongodb",
        "we agreed on kafka for the queue",
        "we're going with zulip",
        "We agreed on Grafana.",
        "We decided to ship on Fridays.",
        "We decided that the password is zx5q",
        "We decided that the roadmap is zx3q",
        "We're going with Mailgun for the receipts.",
    ],
)
def test_a_decision_is_one_whatever_it_names(text: str) -> None:
    assert is_group_decision(text)


@pytest.mark.parametrize("before", ["", "hey ", "hey @bob, ", "@bob ", "hi all, ", "- "])
@pytest.mark.parametrize("decision", ["We decided that we ship on Friday", "we agreed that the demo is on the 14th"])
def test_whom_a_decision_is_told_to_changes_nothing(before: str, decision: str) -> None:
    assert is_group_decision(f"{before}{decision}")
