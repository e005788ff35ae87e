"""What kind of sentence a text is, by examples in many languages. Pure.

A file has a line for each example: its kind, its language and the sentence, between tabs. A text is judged by the parts
of words that it shares with them: naive Bayes over two to four letters. `none` is the kind of all others. A {word} in
braces in an example stands for any words, and a [word] in brackets for others of its kind.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

NONE: Final = "none"
SMOOTHING: Final = 0.3
_DIGITS: Final = re.compile(r"\d+(?:[:.]\d+)?")
_BRACES: Final = re.compile(r"\{\w+\}")
_BRACKETS: Final = re.compile(r"[\[\]]")
_PLACEHOLDER: Final = re.compile(r"\{\w+\}|\[[^\[\]]+\]")
_WORD: Final = re.compile(r"[^\W_]+")
# The characters of Chinese, Japanese and Korean, each of which is a word here: nothing stands between their words.
SIGNS: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
WORD_OR_SIGN: Final = re.compile(rf"[{SIGNS}]|[^\W_{SIGNS}]+")
_LENGTHS: Final = (2, 3, 4)


@dataclass(frozen=True, slots=True)
class Examples:
    """How much each part of a word speaks for each of the kinds: the logarithm of how much likelier it is in their
    examples than in those of none; the sentences without what stands for other words, the kinds of those that have no
    braces by their words, and all words of a kind."""

    parts: dict[str, int]  # their rows
    weights: NDArray[np.float64]  # shape (parts, kinds but none)
    sentences: tuple[tuple[str, str], ...]  # (kind, sentence)
    kinds: dict[str, str]
    words: dict[str, frozenset[str]]

    def kind_of_example(self, sentence: str) -> str | None:
        """The kind of an example in the same words."""
        return self.kinds.get(_plain(sentence))

    def known_share(self, kind: str, sentence: str) -> float:
        """The part of the words of a sentence, 0 to 1, that stand in some example of a kind; 0 of one word alone."""
        said = words_and_signs(sentence)
        return sum(word in self.words[kind] for word in said) / len(said) if len(said) > 1 else 0.0

    def margins(self, sentence: str, prior: float = 0.0) -> dict[str, float]:
        """By kind, how much likelier a sentence is of it than of none: the logarithm, less `prior`, by the root of the
        number of known parts. Empty where no part is known."""
        known = [self.parts[part] for part in set(_parts(sentence)) if part in self.parts]
        if not known:
            return {}
        margins = (self.weights[known].sum(axis=0) - prior) / math.sqrt(len(known))
        return dict(zip((kind for kind in self.words if kind != NONE), margins.tolist(), strict=True))


@cache
def examples(name: str, against: str = "", said: Callable[[str], str] = str) -> Examples:
    """The examples of a file of this package, each as `said` gives it. Those of the file `against`, if there is one,
    are of no kind here, unless they stand in the first."""
    read = [[kind, language, said(sentence)] for kind, language, sentence in _lines(name)]
    own = {_plain(sentence) for _, _, sentence in read}
    others = ((language, sentence) for _, language, sentence in _lines(against) if _plain(sentence) not in own)
    read += [[NONE, language, sentence] for language, sentence in others]
    counts: dict[str, Counter[str]] = {NONE: Counter()}
    for kind, _, sentence in read:
        counts.setdefault(kind, Counter()).update(set(_parts(_BRACKETS.sub("", _BRACES.sub(" ", sentence)))))
    parts = {part: row for row, part in enumerate({part: None for each in counts.values() for part in each})}
    likelihoods = {kind: _likelihoods(of_kind, parts) for kind, of_kind in counts.items()}
    none = likelihoods.pop(NONE)
    weights = np.stack([each - none for each in likelihoods.values()], axis=1)
    sentences = tuple((kind, _PLACEHOLDER.sub(" ", text)) for kind, _, text in read)
    kinds = {_plain(text): kind for kind, _, text in read if not _BRACES.search(text)}
    words = {
        of: frozenset(word for kind, _, text in read if kind == of for word in words_and_signs(_BRACES.sub(" ", text)))
        for of in counts
    }
    return Examples(parts, weights, sentences, kinds, words)


def _likelihoods(counts: Counter[str], parts: Iterable[str]) -> NDArray[np.float64]:
    """The logarithm of how likely each of all parts is in the examples of a kind, in the order of `parts`."""
    smoothed = np.array([counts[part] for part in parts], dtype=np.float64) + SMOOTHING
    likelihoods: NDArray[np.float64] = np.log(smoothed / smoothed.sum())
    return likelihoods


def _lines(name: str) -> list[list[str]]:
    texts = files("composer.text").joinpath(name).read_text("utf-8").splitlines() if name else []
    return [line.split("\t") for line in texts]


def words_and_signs(sentence: str) -> list[str]:
    """The words of a sentence, in lower case, and its signs one by one."""
    return WORD_OR_SIGN.findall(sentence.casefold())


def _plain(sentence: str) -> str:
    return " ".join(_WORD.findall(sentence.casefold()))


def _parts(sentence: str) -> Iterator[str]:
    text = f" {' '.join(_DIGITS.sub('0', sentence.casefold()).split())} "
    for length in _LENGTHS:
        for start in range(len(text) - length + 1):
            yield text[start : start + length]
