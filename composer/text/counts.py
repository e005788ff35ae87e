"""Numbers of things in words for people."""

from collections.abc import Mapping
from typing import Final

_IRREGULAR: Final = {"entry": "entries", "memory": "memories", "person": "people", "summary": "summaries"}


def plural(noun: str) -> str:
    """Several of a thing: its last word in the plural."""
    *before, last = noun.split(" ")
    return " ".join((*before, _IRREGULAR.get(last, f"{last}s")))


def counted_all(counts: Mapping[str, int]) -> str:
    """Numbers of things by their nouns in the plural: "1 message, 2 memories"."""
    return ", ".join(counted(count, _singular(nouns)) for nouns, count in counts.items())


def _singular(nouns: str) -> str:
    return next((one for one, several in _IRREGULAR.items() if several == nouns), nouns.removesuffix("s"))


def counted(count: int, noun: str) -> str:
    """A number of things: "1 message", "2 messages"."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"
