"""Count the tokens of texts, and cut a text to a number of them. Pure."""

from collections.abc import Sequence
from typing import Final

from composer.ports.models import Tokenizer

MAX_CHARS_PER_TOKEN: Final = 16  # no ordinary long text averages more characters per token


class TokenCounter:
    """Counts tokens, each text once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.exact = tokenizer.exact
        self._count = tokenizer.count
        self._known: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        count = self._known.get(text)
        if count is None:
            count = self._known[text] = self._count(text)
        return count

    def lines(self, lines: Sequence[str]) -> int:
        """Tokens of lines with their line ends; a slight overestimate."""
        return sum(self(line) + 1 for line in lines)

    def exceeds(self, text: str, limit: int) -> bool:
        """Whether a text has more than `limit` tokens. A very long text is not counted to find out."""
        return len(text) > limit * MAX_CHARS_PER_TOKEN or self(text) > limit


def cut(text: str, limit: int, counter: TokenCounter) -> str:
    """A text of at most `limit` tokens: its middle is replaced by a mark that says how many characters are missing."""
    if not counter.exceeds(text, limit):
        return text
    size = min(len(text), limit * MAX_CHARS_PER_TOKEN)
    while size > 0:
        head, tail = text[: size * 2 // 3].rstrip("\n |"), text[len(text) - size // 3 :]  # never half of a line's bar
        shorter = f"{head}\n  [… {len(text) - len(head) - len(tail):,} characters cut …]\n  | {tail}"
        if counter(shorter) <= limit:
            return shorter
        size = min(size * 3 // 4, max(size * limit // counter(shorter), size // 4))
    return "…"
