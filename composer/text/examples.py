"""What kind of sentence a text is, by examples in many languages. Pure.

A file has a line for each example: its kind, its language and the sentence, between tabs. A text is judged by the parts
of words that it shares with them: naive Bayes over two to four letters. `none` is the kind of all others. A {word} in
braces in an example stands for any words, and a [word] in brackets for others of its kind.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

NONE: Final = "none"
SMOOTHING: Final = 0.3
_DIGITS: Final = re.compile(r"\d+(?:[:.]\d+)?")
_BRACES: Final = re.compile(r"\{\w+\}")
_BRACKETS: Final = re.compile(r"[\[\]]")
_PLACEHOLDER: Final = re.compile(r"\{\w+\}|\[[^\[\]]+\]")
_WORD: Final = re.compile(r"[^\W_]+")
_LENGTHS: Final = (2, 3, 4)


@dataclass(frozen=True, slots=True)
class Examples:
    """How often each part of a word is in the examples of a kind, how many parts there are, the sentences without what
    stands for other words, the kinds of those that have no braces by their words, and all words of a kind."""

    parts: dict[str, Counter[str]]
    totals: dict[str, int]
    distinct: int
    sentences: tuple[tuple[str, str], ...]  # (kind, sentence)
    kinds: dict[str, str]
    words: dict[str, frozenset[str]]

    def kind_of_example(self, sentence: str) -> str | None:
        """The kind of an example in the same words."""
        return self.kinds.get(_plain(sentence))

    def has_all_words(self, kind: str, sentence: str) -> bool:
        """Whether each word of a sentence stands in some example of a kind."""
        return self.words[kind].issuperset(_plain(sentence).split())

    def margins(self, sentence: str, prior: float = 0.0) -> dict[str, float]:
        """By kind, how much likelier a sentence is of it than of none: the logarithm, less `prior`, by the root of the
        number of known parts. Empty where no part is known."""
        known = [part for part in set(_parts(sentence)) if any(part in each for each in self.parts.values())]
        if not known:
            return {}

        def likelihood(kind: str) -> float:
            counts, total = self.parts[kind], self.totals[kind]
            return sum(math.log((counts[part] + SMOOTHING) / (total + SMOOTHING * self.distinct)) for part in known)

        none = likelihood(NONE) + prior
        return {kind: (likelihood(kind) - none) / math.sqrt(len(known)) for kind in self.parts if kind != NONE}


@cache
def examples(name: str, against: str = "") -> Examples:
    """The examples of a file of this package. Those of the file `against`, if there is one, are of no kind here, unless
    they stand in the first."""
    read = _lines(name)
    own = {_plain(sentence) for _, _, sentence in read}
    others = ((language, sentence) for _, language, sentence in _lines(against) if _plain(sentence) not in own)
    read += [[NONE, language, sentence] for language, sentence in others]
    parts: dict[str, Counter[str]] = {NONE: Counter()}
    for kind, _, sentence in read:
        parts.setdefault(kind, Counter()).update(set(_parts(_BRACKETS.sub("", _BRACES.sub(" ", sentence)))))
    distinct = len({part for each in parts.values() for part in each})
    totals = {kind: sum(each.values()) for kind, each in parts.items()}
    sentences = tuple((kind, _PLACEHOLDER.sub(" ", text)) for kind, _, text in read)
    kinds = {_plain(text): kind for kind, _, text in read if not _BRACES.search(text)}
    words = {
        of: frozenset(word for kind, _, text in read if kind == of for word in _plain(text).split()) for of in parts
    }
    return Examples(parts, totals, distinct, sentences, kinds, words)


def _lines(name: str) -> list[list[str]]:
    texts = files("composer.text").joinpath(name).read_text("utf-8").splitlines() if name else []
    return [line.split("\t") for line in texts]


def _plain(sentence: str) -> str:
    return " ".join(_WORD.findall(sentence.casefold()))


def _parts(sentence: str) -> Iterator[str]:
    text = f" {' '.join(_DIGITS.sub('0', sentence.casefold()).split())} "
    for length in _LENGTHS:
        for start in range(len(text) - length + 1):
            yield text[start : start + length]
