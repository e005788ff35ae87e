"""Token estimates, corrected by what the API counted in the same conversation.

In the same conversation only: a factor learnt from other people's prompts would let their words decide
what fits into this one.
"""

import math
from dataclasses import dataclass
from typing import Final

from composer.ports.models import Tokenizer

LEAST: Final = 0.5
MOST: Final = 3.0  # beyond this an API counts something else than our text


@dataclass(frozen=True, slots=True)
class CorrectedTokenizer:
    """A tokenizer whose estimate is multiplied by what the last answer here showed it to be off by."""

    estimate: Tokenizer
    factor: float

    @property
    def exact(self) -> bool:
        """Never: it is an estimate still."""
        return False

    def count(self, text: str) -> int:
        """Tokens in `text`."""
        return math.ceil(self.estimate.count(text) * self.factor)


def uncorrected(tokenizer: Tokenizer, tokens: int) -> int:
    """A count of `tokenizer` as it was before any correction: what the next correction is measured against."""
    return round(tokens / tokenizer.factor) if isinstance(tokenizer, CorrectedTokenizer) else tokens


def corrected(tokenizer: Tokenizer, counted: int, reported: int) -> Tokenizer:
    """`tokenizer` as corrected by one prompt: `counted` by it, `reported` by the API (0: it reported none)."""
    if tokenizer.exact or counted <= 0 or reported <= 0:
        return tokenizer
    return CorrectedTokenizer(tokenizer, min(max(reported / counted, LEAST), MOST))
