"""The part of a long text that belongs to a question. Pure, in linear time."""

from collections.abc import Collection, Iterator
from typing import Final

from composer.text.cleaning import shorten
from composer.text.terms import terms

MAX_UNCUT_CHARS: Final = 2_000  # a text that is not longer is shown whole: as much of it as is embedded
EXCERPT_CHARS: Final = 1_600
PIECE_CHARS: Final = 400  # by which the best part is looked for
MAX_HEADING_CHARS: Final = 200


def excerpt(text: str, wanted: Collection[str]) -> str:
    """A text, or of a long one its first line and the part that has most of the `wanted` index terms: about
    EXCERPT_CHARS characters, with an ellipsis where something is left out. Where none is found, its beginning."""
    if len(text) <= MAX_UNCUT_CHARS:
        return text
    pieces, sought = list(_pieces(text)), set(wanted)
    best, most = 0, 0
    for number, piece in enumerate(pieces if sought else ()):
        found = len(sought.intersection(terms(piece)))
        best, most = (number, found) if found > most else (best, most)
    count = EXCERPT_CHARS // PIECE_CHARS
    first = max(0, min(best - 1, len(pieces) - count))
    part = "".join(pieces[first : first + count]).strip()
    end = "" if first + count >= len(pieces) else " …"
    heading = "" if first == 0 else f"{shorten(text.partition(chr(10))[0], MAX_HEADING_CHARS)}\n… "
    return f"{heading}{part}{end}"


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces of at most PIECE_CHARS characters, which end at white space where there is some."""
    at = 0
    while at < len(text):
        end = at + PIECE_CHARS
        if end < len(text):
            spaces = (text.rfind(space, at + PIECE_CHARS // 2, end) for space in (" ", "\n"))
            end = max((space + 1 for space in spaces if space >= 0), default=end)
        yield text[at:end]
        at = end
