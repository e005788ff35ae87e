"""Correct token estimates by what the API counted for the last prompt in the same conversation.

Only in the same conversation: a factor learned from other people's prompts would let their words decide what fits into
this one.
"""

import math
from dataclasses import dataclass
from typing import Final

from composer.ports.models import Tokenizer

MIN_FACTOR: Final = 0.5
MAX_FACTOR: Final = 3.0  # a larger factor means that the API counts something other than our text


@dataclass(frozen=True, slots=True)
class CorrectedTokenizer:
    """A tokenizer whose estimate is multiplied by a factor learned from the last answer."""

    estimate: Tokenizer
    factor: float

    @property
    def exact(self) -> bool:
        """Always False: a corrected estimate is still an estimate."""
        return False

    def count(self, text: str) -> int:
        """Tokens in `text`, rounded up."""
        return math.ceil(self.estimate.count(text) * self.factor)


def uncorrected(tokenizer: Tokenizer, tokens: int) -> int:
    """A count as it was before the correction: the next correction is measured against it."""
    return round(tokens / tokenizer.factor) if isinstance(tokenizer, CorrectedTokenizer) else tokens


def corrected(tokenizer: Tokenizer, counted: int, reported: int) -> Tokenizer:
    """A tokenizer corrected by one prompt: we `counted` so many tokens, the API `reported` so many (0: unknown)."""
    if tokenizer.exact or counted <= 0 or reported <= 0:
        return tokenizer
    return CorrectedTokenizer(tokenizer, min(max(reported / counted, MIN_FACTOR), MAX_FACTOR))
