"""Precision and recall of the rule that proposes landmarks: a statement that is plainly a group's decision.

`python -m tests.bench.decisions DATA` reads the real conversations in `DATA/locomo/*.json` and `DATA/irc/*.ascii.txt`.
Every sentence of them that the rule proposes, and every one that has a label in `decision_labels.txt` (a digest of the
sentence, and `yes` or `no`), is counted. The labels were made by one reader of what an earlier rule proposed, of
near misses and of other sentences about what "we" do, by one question: is this plainly a decision that the people who
talk here have taken together? The sentences themselves are not in this repository. Real talk of this kind has hardly
any decision in it, so recall is measured on `decision_sentences.txt`: sentences of work talk in the shapes of real
ones, written for it. Half of the first, by their digest, were held out while the rule was written. The others were
written later by somebody else, most of them to be mistaken for decisions, and the rule was mended by them: of 51 that
it proposed at first, 31 were decisions.

The rule knows shapes and no weight. Whoever writes "We adopted a kitten" writes a decision for it.
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
FIRST: Final = 70  # of those that were written; half of them were held out


def digest(sentence: str) -> str:
    """The first 12 hexadecimal digits of a sentence's SHA-256."""
    return hashlib.sha256(sentence.encode()).hexdigest()[:12]


def held_out(sentence: str) -> bool:
    """Whether a sentence was not looked at while the rule was written."""
    return int(digest(sentence)[-1], 16) % 2 == 1


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
    rows = [line.split("\t") for line in WRITTEN.read_text(encoding="utf-8").splitlines()]
    first, later = rows[:FIRST], rows[FIRST:]
    for half in (False, True):
        written = [(label, text) for label, text in first if held_out(text) is half]
        print(f"written, {'held out' if half else 'seen'}: {_judged(written)}")
    print(f"written later: {_judged(later)}")


def _judged(rows: Sequence[Sequence[str]]) -> str:
    verdicts = Counter((label, is_group_decision(text)) for label, text in rows)
    right, wrong, missed = verdicts["yes", True], verdicts["no", True], verdicts["yes", False]
    return f"recall {right}/{right + missed} ({right / (right + missed):.0%}), wrongly proposed {wrong}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
