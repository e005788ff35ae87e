"""Recognise that an answer says to have stored something, or that it will remind somebody. Pure.

A model may say so and have called nothing. Whether an answer may be such a one is calibrated on examples (claims.txt:
the kind, the language and a sentence each), by the parts of words that they have: naive Bayes over two to four letters.
It lets through what it doubts; a model is asked about that, in whatever language.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Final

MAX_JUDGED_CHARS: Final = 1_500  # of an answer's beginning; models say such things at once
MAX_SENTENCE_CHARS: Final = 200
MIN_MARGIN: Final = -2.0  # logarithm of how much likelier a claim is than none, by the root of the number of parts
PRIOR: Final = 12.0  # of that logarithm, for none: few answers claim anything
SMOOTHING: Final = 0.3
_SENTENCE: Final = re.compile(r"[^.!?\u2026\u3002\uff01\uff1f\u061f\n]+[.!?\u2026\u3002\uff01\uff1f\u061f]*")
_DIGITS: Final = re.compile(r"\d+(?:[:.]\d+)?")
_LENGTHS: Final = (2, 3, 4)
_VERDICT: Final = re.compile(r"\b(REMIND|STORE)\b(?:[^\w\n]{0,4}([a-zA-Z]{2})\b)?")

# By language: that no reminder was set, and that nothing was stored.
_NOTICES: Final[Mapping[str, Sequence[str]]] = {
    language: sentences
    for line in files("composer.text").joinpath("claim_notices.txt").read_text("utf-8").splitlines()
    for language, *sentences in [line.split("\t")]
}
CLAIM_NOTICES: Final = tuple(sentence for each in _NOTICES.values() for sentence in each)
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|^[^\S\r\n]*>.*$", re.DOTALL | re.MULTILINE)


class Claim(StrEnum):
    """What an answer says that it has done, or will do."""

    REMIND = "remind"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class _Examples:
    """How often each part of a word is in the examples of a kind, and how many parts there are."""

    parts: dict[str, Counter[str]]
    totals: dict[str, int]
    kinds: int


def may_claim(text: str) -> bool:
    """Whether an answer may claim something: then a model is asked. Of 257 claims in fourteen languages 10% are missed,
    each judged without itself among the examples; of ordinary lines 4% are taken for a claim."""
    sentences = _SENTENCE.findall(_CODE.sub(" ", text)[:MAX_JUDGED_CHARS])
    return any(_margin(each) >= MIN_MARGIN for each in sentences if len(each) <= MAX_SENTENCE_CHARS)


def read_verdict(said: str) -> tuple[Claim, str] | None:
    """What a model says that an answer claims, with the code of the answer's language; None for nothing."""
    found = _VERDICT.search(said)
    return None if found is None else (Claim(found[1].lower()), (found[2] or "en").lower())


def claim_notice(claim: Claim, language: str, command: str) -> str:
    """The sentence for the asker that what an answer claims was not done, and the command that does it."""
    return f"{_NOTICES.get(language, _NOTICES['en'])[claim is Claim.STORE]} {command}"


def _margin(sentence: str) -> float:
    """How much likelier a sentence is a claim than none."""
    if sentence.rstrip().endswith(("?", "\uff1f", "\u061f")):
        return -math.inf
    examples = _examples()
    known = [part for part in set(_parts(sentence)) if any(part in each for each in examples.parts.values())]
    if not known:
        return -math.inf

    def likelihood(kind: str) -> float:
        counts, total = examples.parts[kind], examples.totals[kind]
        return sum(math.log((counts[part] + SMOOTHING) / (total + SMOOTHING * examples.kinds)) for part in known)

    return (max(map(likelihood, Claim)) - likelihood("none") - PRIOR) / math.sqrt(len(known))


def _parts(sentence: str) -> Iterator[str]:
    text = f" {' '.join(_DIGITS.sub('0', sentence.casefold()).split())} "
    for length in _LENGTHS:
        for start in range(len(text) - length + 1):
            yield text[start : start + length]


@cache
def _examples() -> _Examples:
    parts: dict[str, Counter[str]] = {"none": Counter(), **{kind: Counter() for kind in Claim}}
    for line in files("composer.text").joinpath("claims.txt").read_text("utf-8").splitlines():
        kind, _, sentence = line.split("\t")
        parts[kind].update(set(_parts(sentence)))
    kinds = len({part for each in parts.values() for part in each})
    return _Examples(parts, {kind: sum(each.values()) for kind, each in parts.items()}, kinds)
