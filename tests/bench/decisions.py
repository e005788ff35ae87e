"""Precision and recall of the rule that proposes landmarks: a statement that is plainly a group's decision.

`python -m tests.bench.decisions DATA` reads the real conversations in `DATA/locomo/*.json` and `DATA/irc/*.ascii.txt`.
Every sentence of them that the rule proposes, and every one that has a label in `decision_labels.txt` (a digest of the
sentence, and `yes` or `no`), is counted. The labels were made by one reader of what an earlier rule proposed, of
near misses and of other sentences about what "we" do, by one question: is this plainly a decision that the people who
talk here have taken together? The sentences themselves are not in this repository. Real talk of this kind has hardly
any decision in it, so recall is measured on sentences of work talk written for it: `decision_sentences.txt`, which are
examples of the rule by now (composer/text/decisions.txt), and `decision_more.txt`, which it was not made from. Most
were written to be mistaken for decisions. The rule knows shapes in English, and no other language.
"""

import hashlib
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from composer.memory.decisions import is_group_decision
from composer.text.terms import sentences
from tests.bench.extraction import messages

LABELS: Final = Path(__file__).with_name("decision_labels.txt")
WRITTEN: Final = Path(__file__).with_name("decision_sentences.txt")
HELD_OUT: Final = WRITTEN.with_name("decision_more.txt")  # a label, a language and a sentence


def digest(sentence: str) -> str:
    """The first 12 hexadecimal digits of a sentence's SHA-256."""
    return hashlib.sha256(sentence.encode()).hexdigest()[:12]


def held_out(language: str = "en") -> list[tuple[str, str]]:
    """The sentences of a language that the rule was not made from, each with its label."""
    rows = (line.split("\t") for line in HELD_OUT.read_text(encoding="utf-8").splitlines())
    return [(label, text) for label, spoken, text in rows if spoken == language]


def main(data: Path) -> None:
    """Print what is proposed of the labelled sentences, of all others, and of the written ones."""
    labels = dict(line.split() for line in LABELS.read_text(encoding="utf-8").splitlines())
    counts: Counter[tuple[str, bool]] = Counter()
    read = 0
    for _, text in messages(data):
        read += 1
        for sentence in {" ".join(part.split()) for part in sentences(text)}:
            counts[labels.get(digest(sentence), "unlabelled"), is_group_decision(sentence)] += 1
    labelled = sum(count for (label, _), count in counts.items() if label != "unlabelled")
    right, wrong = counts["yes", True], counts["no", True]
    print(f"{read} messages, {labelled} labelled sentences: proposed {right} that are decisions, {wrong} that are not;")
    print(f"  not proposed: {counts['yes', False]} decisions; proposed without a label: {counts['unlabelled', True]}")
    examples = [line.split("\t") for line in WRITTEN.read_text(encoding="utf-8").splitlines()]
    print(f"examples: {_judged([(label, text) for label, text in examples])}")
    print(f"held out: {_judged(held_out())}")


def _judged(rows: Sequence[Sequence[str]]) -> str:
    verdicts = Counter((label, is_group_decision(text)) for label, text in rows)
    right, wrong, missed = verdicts["yes", True], verdicts["no", True], verdicts["yes", False]
    return f"recall {right}/{right + missed} ({right / (right + missed):.0%}), wrongly proposed {wrong}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
