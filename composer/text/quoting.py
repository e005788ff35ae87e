"""Whether a text is a quote of another one. Pure."""

import re
from typing import Final

MAX_WORDS: Final = 300  # of a quote
_WORD: Final = re.compile(r"\w+")


def find_quote(message: str, words: str) -> tuple[int, int] | None:
    """Where in `message` exactly these words stand, one after the other (start and end); None if they don't, or are
    more than 300. Case and punctuation don't count."""
    spans = list(_WORD.finditer(message))
    said = [span[0].casefold() for span in spans]
    wanted = [word.casefold() for word in _WORD.findall(words)]
    for start in range(len(said) - len(wanted) + 1) if 0 < len(wanted) <= MAX_WORDS else ():
        if said[start] == wanted[0] and said[start : start + len(wanted)] == wanted:
            return spans[start].start(), spans[start + len(wanted) - 1].end()
    return None
