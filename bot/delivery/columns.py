"""Fits tables of two columns, such as the list of the commands, into the width of a chat's window. Pure."""

import re
from collections import Counter
from typing import Final

WIDTH: Final = 80  # characters of a line that a chat's window shows without breaking it
_GAP = re.compile(r"\S( {2,})\S")
_MARGIN: Final = "    "


def in_columns(text: str) -> bool:
    """Whether a text has lines of columns, with two spaces or more between these."""
    return "\n" in text and _GAP.search(text) is not None


def fitted(text: str) -> str:
    """The text, in which the second column of a table stands under the first where it would begin behind the middle of
    the window. Two lines or more whose second columns begin at the same place are a table."""
    lines = text.split("\n")
    gaps = [_GAP.search(line) for line in lines]
    begins = Counter(gap.end(1) for gap in gaps if gap is not None and gap.end(1) > WIDTH // 2)
    for number, gap in enumerate(gaps):
        if gap is not None and begins[gap.end(1)] > 1:
            line = lines[number]
            lines[number] = f"{line[: gap.start(1)]}\n{_MARGIN}{line[gap.end(1) :]}"
    return "\n".join(lines)
