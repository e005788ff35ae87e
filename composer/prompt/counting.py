"""Count the tokens of texts, and cut a text to a number of them. Pure."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from composer.ports.models import Tokenizer

MAX_TOKENS_PER_LETTER: Final = 4  # of ASCII: one, by any table, and more by an estimate that an API's count has raised
MAX_CHARS_PER_TOKEN: Final = 16  # no ordinary long text averages more characters per token


@lru_cache(maxsize=256)
def tokens_of_settings(tokenizer: Tokenizer, text: str) -> int:
    """The tokens of a text that is the same in every prompt of an agent: our rules, and what its settings say."""
    return tokenizer.count(text)


class TokenCounter:
    """Counts tokens, each text once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.exact = tokenizer.exact
        self._tokenizer = tokenizer
        self._known: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        count = self._known.get(text)
        if count is None:
            count = self._known[text] = self._tokenizer.count(text)
        return count

    def of_settings(self, text: str) -> int:
        """Tokens of a text of the agent's settings or of ours."""
        count = self._known[text] = tokens_of_settings(self._tokenizer, text)
        return count

    def lines(self, lines: Sequence[str]) -> int:
        """Tokens of lines with their line ends; a slight overestimate."""
        return sum(self(line) + 1 for line in lines)

    def exceeds(self, text: str, limit: int) -> bool:
        """Whether a text has more than `limit` tokens. A very long or short text is not counted to find out."""
        if len(text) * MAX_TOKENS_PER_LETTER <= limit and text.isascii():
            return False
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
