"""What language a text is in, as far as stems depend on it, and the stems of its words. Pure.

A script decides where it can; among Latin letters the commonest words do. A text that has none of them counts as
English, whose stems all texts in Latin letters get besides their own, so that a question of two words finds them too.
"""

import re
import threading
from collections import Counter
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

import Stemmer

ENGLISH: Final = "english"
# By the script of a word's first letter; Snowball's name of the stemmer.
_SCRIPTS: Final = (
    (re.compile("[\u0400-\u052f]"), "russian"),
    (re.compile("[\u0370-\u03ff]"), "greek"),
    (re.compile("[\u0600-\u06ff]"), "arabic"),
    (re.compile("[\u0900-\u097f]"), "hindi"),
    (re.compile("[\u0b80-\u0bff]"), "tamil"),
    (re.compile("[\u0530-\u058f]"), "armenian"),
)
_HEBREW: Final = re.compile("[\u05d0-\u05ea]{4}")
_HEBREW_PREFIXES: Final = frozenset("\u05d4\u05d5\u05d1\u05dc\u05de\u05e9\u05db")  # the, and, in, to, from, that, as
_MIN_LETTERS: Final = 3  # of what is left of a word in Hebrew
_STEMMED: Final = frozenset(Stemmer.algorithms())  # Vietnamese, whose words do not change, is none of them
MAX_WORDS_READ: Final = 400  # by which the language of a text is told

_stemmers = threading.local()  # a Stemmer must not be used by two threads at once


def stem(word: str, language: str = ENGLISH) -> str:
    """The stem of a word in a language, by Snowball's name of it."""
    own: dict[str, Stemmer.Stemmer] = _stemmers.__dict__
    if language not in own:
        own[language] = Stemmer.Stemmer(language, 0)  # without a cache, which would hold forgotten words
    return str(own[language].stemWord(word))


@cache
def function_words() -> dict[str, frozenset[str]]:
    """The commonest words by language, for those in Latin letters but English."""
    lines = Path(__file__).with_name("function_words.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split() for line in lines if line and not line.startswith("#"))
    return {language: frozenset(words) for language, *words in rows}


@cache
def _languages_of_words() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for language, words in function_words().items():
        for word in (each for each in words if len(each) > 1):  # a letter alone may be anything
            found[word] = (*found.get(word, ()), language)
    return found


def language_of(words: AbstractSet[str], english: AbstractSet[str]) -> str:
    """The language of a text in Latin letters, by its folded words: that with most of the commonest ones; `english` are
    those of English, which it is in doubt. Of several the first of the list."""
    by_word = _languages_of_words()
    common = words & by_word.keys()
    if not common:
        return ENGLISH
    counts = Counter(chain.from_iterable(by_word[word] for word in common))
    best = max(counts.values())
    if len(words & english) >= best:
        return ENGLISH
    return next(language for language in function_words() if counts[language] == best)


def stems(word: str, language: str) -> tuple[str, ...]:
    """The stems of a folded word, the best one first: that of its own script or language, then those by which it may
    be found as well."""
    if word.isascii() or word < "\u0370":
        in_english = stem(word)
        if language == ENGLISH or language not in _STEMMED:
            return (in_english,)
        return tuple(dict.fromkeys((stem(word, language), in_english)))
    for script, name in _SCRIPTS:
        if script.match(word):
            return (stem(word, name),)
    if _HEBREW.match(word) and word[0] in _HEBREW_PREFIXES and len(word) > _MIN_LETTERS:
        return word, word[1:]
    return (word,)
