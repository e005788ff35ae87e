"""Recognise that an answer says to have stored something, or that it will remind somebody. Pure.

A model may say so and have called nothing. Whether an answer may be such a one is calibrated on examples (claims.txt).
It lets through what it doubts; a model is asked about that, in whatever language.
"""

import math
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from importlib.resources import files
from typing import Final

from composer.text.examples import examples

MAX_JUDGED_CHARS: Final = 1_500  # of an answer's beginning; models say such things at once
MAX_SENTENCE_CHARS: Final = 200
MIN_MARGIN: Final = -2.0  # logarithm of how much likelier a claim is than none, by the root of the number of parts
PRIOR: Final = 12.0  # of that logarithm, for none: few answers claim anything
_SENTENCE: Final = re.compile(r"[^.!?\u2026\u3002\uff01\uff1f\u061f\n]+[.!?\u2026\u3002\uff01\uff1f\u061f]*")
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
    return max(examples("claims.txt").margins(sentence, PRIOR).values(), default=-math.inf)
