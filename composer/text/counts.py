"""Numbers of things in words for people."""

from typing import Final

_IRREGULAR: Final = {"memory": "memories", "person": "people", "summary": "summaries"}


def plural(noun: str) -> str:
    """Several of a thing: its last word in the plural."""
    *before, last = noun.split(" ")
    return " ".join((*before, _IRREGULAR.get(last, f"{last}s")))


def counted(count: int, noun: str) -> str:
    """A number of things: "1 message", "2 messages"."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"
