"""Precision of the patterns that extract memories: on real conversations, by labels made by hand.

`python -m tests.bench.extraction DATA` reads `DATA/locomo/*.json` and `DATA/irc/*.ascii.txt`, extracts, and compares
the statements with `extraction_labels.txt`: a digest of the statement, and `keep` or `junk`. The labels were made by
one reader, of everything extracted from LoCoMo's 4 and IRC's 10 logs at that time, by one question: would a
member of the team, weeks later and without its context, learn something lasting about the speaker from it? What was
one sentence then is its whole line now, and kept what the sentence was. The
statements themselves are not in this repository. Statements without a label are counted apart.
"""

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from composer.memory.patterns import extract

LABELS: Final = Path(__file__).with_name("extraction_labels.txt")
_LINE: Final = re.compile(r"\[\d\d:\d\d\] <[^>]+> (.*)")


def messages(data: Path) -> Iterator[tuple[str, str]]:
    """(source, text) of every message."""
    for path in sorted(data.glob("locomo/*.json")):
        for talk in json.loads(path.read_text(encoding="utf-8")):
            for name, session in talk.get("conversation", talk).items():
                if re.fullmatch(r"session_\d+", name):
                    yield from (("locomo", said["text"]) for said in session)
    for path in sorted(data.glob("irc/*.ascii.txt")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if found := _LINE.match(line):
                yield "irc", found.group(1)


def main(data: Path) -> None:
    """Print a table: messages read, statements extracted and labelled, and the precision."""
    labels = dict(line.split() for line in LABELS.read_text(encoding="utf-8").splitlines())
    counts: Counter[tuple[str, str]] = Counter()
    for source, text in messages(data):
        counts[source, "read"] += 1
        for statement in {statement.text: statement for statement in extract(text)}.values():
            digest = hashlib.sha256(statement.text.encode()).hexdigest()[:12]
            counts[source, labels.get(digest, "unlabelled")] += 1
    for source in ("locomo", "irc"):
        keep, junk, other = (counts[source, label] for label in ("keep", "junk", "unlabelled"))
        share = f"{keep / (keep + junk):.1%}" if keep + junk else "none"
        read = counts[source, "read"]
        print(f"{source}: {read} messages, {keep + junk + other} statements ({other} unlabelled), precision {share}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
