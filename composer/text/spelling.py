"""Which of the words that were said a misspelt word may stand for. Pure.

Words are compared as search terms, so as stems. A misspelt word often keeps its ending, since no stemmer knows it: a
stem may be followed by that.
"""

from collections.abc import Collection
from typing import Final

from composer.text.terms import STOP_WORDS

MIN_CHARS: Final = 5  # of a word that may be misspelt; a shorter one is another word with one letter changed
TWO_EDITS_CHARS: Final = 8  # from which two letters may be wrong
MAX_ENDING: Final = 4  # letters that may follow a stem
MAX_CORRECTED: Final = 4  # words of a question, the longest first
# Letters that are taken for one another: they sound alike, or their keys lie side by side. Any other letter in place of
# one makes another word more often: "march", "parch".
_ALIKE: Final = (
    *("aeiouy", "ckqsxz", "fvw", "gj", "mn", "td", "bp"),
    *("qw", "we", "er", "rt", "ty", "yu", "ui", "io", "op", "as", "sd", "df", "fg", "gh", "hj", "jk", "kl"),
    *("zx", "xc", "cv", "vb", "bn", "nm"),
)
_TAKEN_FOR: Final = frozenset((one, other) for letters in _ALIKE for one in letters for other in letters)
_RIGHT_LETTERS: Final = 2  # letters that are right, or right but for one too much


def may_be_misspelt(terms: Collection[str]) -> list[str]:
    """Those of some search terms that are worth comparing: words of some length, and no names of files or numbers."""
    words = (term for term in terms if len(term) >= MIN_CHARS and term.isalpha())
    return sorted(words, key=lambda word: (-len(word), word))[:MAX_CORRECTED]


def beginnings(word: str) -> set[str]:
    """What the words begin with that a word is compared with."""
    return {word[:_RIGHT_LETTERS], word[0] + word[_RIGHT_LETTERS]}


def is_swapped_stop_word(term: str) -> bool:
    """Whether a term is a word without meaning of its own, two of whose letters changed places: "teh", "wehn"."""
    return any(term[:n] + term[n + 1] + term[n] + term[n + 2 :] in STOP_WORDS for n in range(len(term) - 1))


def meant(word: str, known: Collection[str]) -> str | None:
    """Which of the `known` terms a word stands for: a stem that it begins with, the longest; else the one with the
    fewest letters wrong, then the first by the alphabet. None if none is like it."""
    letters, best = set(word), list[tuple[int, str]]()
    for term in known:
        if len(term) < MIN_CHARS:
            continue
        edits = 2 if min(len(term), len(word)) >= TWO_EDITS_CHARS else 1
        if word.startswith(term) and len(word) - len(term) <= MAX_ENDING:
            best.append((len(word) - len(term) - MAX_ENDING, term))
        elif abs(len(term) - len(word)) <= edits and len(letters ^ set(term)) <= 2 * edits:
            wrong = _wrong_letters(term, word)
            best += [(wrong, term)] if wrong <= edits else []
    return min(best)[1] if best else None


def _wrong_letters(term: str, word: str) -> int:
    """How many letters are wrong in a word: missing, too much, changed places with the next one (optimal string
    alignment), or another letter, which counts twice where the two are not alike."""
    before, row = list[int](), list(range(len(word) + 1))
    for n, letter in enumerate(term, 1):
        earlier, before, row = before, row, [n]
        for m, other in enumerate(word, 1):
            other_letter = 0 if letter == other else 1 if (letter, other) in _TAKEN_FOR else 2
            value = min(before[m] + 1, row[m - 1] + 1, before[m - 1] + other_letter)
            if n > 1 and m > 1 and letter == word[m - 2] and term[n - 2] == other:
                value = min(value, earlier[m - 2] + 1)
            row.append(value)
    return row[-1]
