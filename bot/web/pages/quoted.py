"""Facts and decisions as prompts have them, and answers that no model wrote quote them, taken apart: what they say, and
what stands in brackets about it. Pure."""

import json
from dataclasses import dataclass
from datetime import date
from typing import Final

_PROPOSED: Final = "proposed"
_BEFORE_ORIGIN: Final = f"{_PROPOSED}, "
_CONFLICT: Final = "; conflicts with another value"


@dataclass(frozen=True, slots=True)
class QuotedFact:
    """A fact: `key = value` in `words`, whom or what it is about, who set it and when, and, where another value holds
    too, which one is newer. `day` is None, and only the words are given, for what is no line of a prompt."""

    words: str
    subject: str = ""
    author: str = ""
    day: date | None = None
    conflict: str = ""


@dataclass(frozen=True, slots=True)
class QuotedDecision:
    """A decision: when it was made, by whom, whether it is but proposed, where it came from (empty: from here), and its
    `words`. `day` is None, and only the words are given, for what is no line of a prompt."""

    words: str
    author: str = ""
    day: date | None = None
    proposed: bool = False
    origin: str = ""


def quoted_fact(line: str) -> QuotedFact:
    """A line such as `day = "Friday" (this room; alice, 2026-05-01)`, as `composer.layers.structured.fact_item` makes
    it."""
    head, _, end = line.removesuffix(")").rpartition(", ")
    conflict = ""
    if head.endswith(_CONFLICT):
        conflict = f"{_CONFLICT[2:]}, {end}"
        head, _, end = head.removesuffix(_CONFLICT).rpartition(", ")
    told, _, author = head.rpartition("; ")
    words, _, subject = told.rpartition(" (")
    day = _day(end)
    if day is None or not words or not line.endswith(")"):
        return QuotedFact(_in_words(line))
    return QuotedFact(_in_words(words), subject, author, day, conflict)


def quoted_decision(line: str) -> QuotedDecision:
    """A line such as `2026-05-01 alice (proposed): We ship.`, as `composer.layers.structured.landmark_item` makes
    it."""
    start, _, rest = line.partition(" ")
    head, sign, words = rest.partition(": ")
    day = _day(start)
    if day is None or not sign:
        return QuotedDecision(line)
    author, bracket, about = head.removesuffix(")").rpartition(" (")
    if not bracket or not head.endswith(")"):
        return QuotedDecision(words, head, day)
    proposed = about == _PROPOSED or about.startswith(_BEFORE_ORIGIN)
    origin = "" if about == _PROPOSED else about.removeprefix(_BEFORE_ORIGIN)
    return QuotedDecision(words, author, day, proposed, origin)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _in_words(line: str) -> str:
    """A fact `key = "value"`, with a text as people write it: without quotes."""
    key, sign, rest = line.partition(" = ")
    if not rest.startswith('"'):
        return line
    try:
        value, end = json.JSONDecoder().raw_decode(rest)
    except ValueError:
        return line  # it was cut
    return f"{key}{sign}{value}{rest[end:]}"
