"""Real conversations for benches: IRC logs with annotations of which message answers which, from an external folder.

The folder holds `NAME.ascii.txt` (`[hh:mm] <nick> text`) and `NAME.annotation.txt` (`a b -`: line b answers line a, and
begins a discussion where a is b).
"""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from composer.summaries.texts import SummaryInput

_SAID: Final = re.compile(r"^\[(\d\d):(\d\d)\] <([^>]+)> (.+)$")
_ANNOTATED: Final = re.compile(r"^(\d+) (\d+)\b")


def read_log(path: Path) -> dict[int, SummaryInput]:
    """Return the messages of a log, by line."""
    found = {}
    for number, line in enumerate(path.read_text("utf-8", errors="replace").split("\n")):
        match = _SAID.match(line)
        if match:
            at = datetime(2026, 1, 5, int(match[1]) % 24, int(match[2]), tzinfo=UTC)
            found[number] = SummaryInput(match[3], at, match[4])
    return found


def links(path: Path) -> list[tuple[int, int]]:
    """Return the links of an annotation: (line, a later line that answers it), both the same where one begins."""
    return [(int(m[1]), int(m[2])) for m in map(_ANNOTATED.match, path.read_text("utf-8").split("\n")) if m]
