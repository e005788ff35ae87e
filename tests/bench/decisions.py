"""Precision and recall of the rule that proposes landmarks: a statement that is plainly a group's decision.

`python -m tests.bench.decisions DATA` reads the real conversations in `DATA/locomo/*.json` and `DATA/irc/*.ascii.txt`.
Every sentence of them that the rule proposes, and every one that has a label in `decision_labels.txt` (a digest of the
sentence, and `yes` or `no`), is counted. The labels were made by one reader of what an earlier rule proposed, of
near misses and of other sentences about what "we" do, by one question: is this plainly a decision that the people who
talk here have taken together? The sentences themselves are not in this repository. Real talk of this kind has hardly
any decision in it, so recall is measured on sentences written for it: `decision_sentences.txt`, which are examples of
the rule by now (composer/text/decisions.txt), `decision_more.txt`, by which its bounds were chosen, and
`decision_fresh.txt`, by which nothing was: 50 lines in English and 10 in each of seven other languages. Most were
written to be mistaken for decisions. The rule knows shapes in English, and in other languages only what is labelled.
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
FRESH: Final = WRITTEN.with_name("decision_fresh.txt")


def digest(sentence: str) -> str:
    """The first 12 hexadecimal digits of a sentence's SHA-256."""
    return hashlib.sha256(sentence.encode()).hexdigest()[:12]


def held_out(file: Path = HELD_OUT, *, english: bool = True) -> list[tuple[str, str]]:
    """The sentences in English, or in all other languages, that are no examples of the rule, each with its label."""
    rows = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
    return [(label, text) for label, language, text in rows if (language == "en") is english]


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
    for file in (HELD_OUT, FRESH):
        for english in (True, False):
            print(f"{file.stem}, {'English' if english else 'others'}: {_judged(held_out(file, english=english))}")


def _judged(rows: Sequence[Sequence[str]]) -> str:
    verdicts = Counter((label, is_group_decision(text)) for label, text in rows)
    right, wrong, missed = verdicts["yes", True], verdicts["no", True], verdicts["yes", False]
    return f"recall {right}/{right + missed} ({right / (right + missed):.0%}), wrongly proposed {wrong}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
