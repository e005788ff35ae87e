"""`python -m tests.bench.forgetting`: which of the lines of forgetting_lines.txt are taken for a request to forget.

A line is a kind (`said`, `all`, `none`), a language and what somebody writes, between tabs.
"""

from collections import Counter
from pathlib import Path
from typing import Final

from composer.text.forgetting import Forgetting, asked_to_forget

LINES: Final = Path(__file__).with_name("forgetting_lines.txt")
NONE: Final = "none"


def main() -> None:
    """Print precision and recall for each language, and for all."""
    counts = dict[str, Counter[str]]()
    for line in LINES.read_text(encoding="utf-8").splitlines():
        kind, language, text = line.split("\t")
        found = asked_to_forget(text)
        right = found is not None and kind != NONE and (found is Forgetting.EVERYTHING) is (kind == "all")
        outcome = "right" if right else "missed" if kind != NONE else "" if found is None else "wrong"
        for each in (language, "all"):
            counts.setdefault(each, Counter())[outcome] += 1
    for language, count in counts.items():
        precision = count["right"] / max(count["right"] + count["wrong"], 1)
        recall = count["right"] / max(count["right"] + count["missed"], 1)
        print(f"{language}: precision {precision:.0%}, recall {recall:.0%}")


if __name__ == "__main__":
    main()
