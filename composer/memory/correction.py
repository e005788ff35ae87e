"""Recognise corrected spelling between two versions of a message, and correct what was made from it. Pure."""

import re
from typing import Final

MIN_LETTERS: Final = 5  # in a shorter word one letter makes another word: "now" and "not"
_WORD: Final = re.compile(r"\w+")


def correct_spelling(text: str, before: str, after: str) -> str:
    """A text made from a message, with the spelling that was corrected between the message's two versions.

    Only words of letters in which one letter was added, removed or replaced, but the first one, count as corrected:
    anything else may change what is said.
    """
    old, new = set(_WORD.findall(before)), set(_WORD.findall(after))
    fixes: dict[str, str] = {}
    for word in old - new:
        candidates = [other for other in new - old if _is_misspelt(word, other)]
        if len(candidates) == 1:
            fixes[word] = candidates[0]
    return _WORD.sub(lambda found: fixes.get(found[0], found[0]), text)


def _is_misspelt(word: str, other: str) -> bool:
    if min(len(word), len(other)) < MIN_LETTERS or not (word.isalpha() and other.isalpha()) or word[0] != other[0]:
        return False
    same = 0
    while same < min(len(word), len(other)) and word[same] == other[same]:
        same += 1
    rest, other_rest = word[same:], other[same:]
    return rest[1:] == other_rest[1:] or rest[1:] == other_rest or rest == other_rest[1:]
