"""Keeps Discord from showing previews of the links in an answer. Pure.

Discord asks for a preview at the address itself, as soon as an answer is posted: who has brought a model to write what
it knows into an address would learn it, although nobody has followed the link.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from typing import Final

MAX_ADDRESS_CHARS: Final = 500  # a longer one may be cut between two messages, and then loses what makes it a link
FENCE_TICKS: Final = 3
_TOKEN: Final = re.compile(r"<https?://[^\s<>]++>|(?P<address>https?://[^\s<>]++)|(?P<ticks>`++)", re.IGNORECASE)
_TICKS: Final = re.compile(r"`++")
_CLOSING: Final = {")": "(", "]": "[", "}": "{"}
_AFTER: Final = frozenset(".,:;!?\"'*_~|")  # what ends a sentence, or what is written around an address


def without_previews(text: str) -> str:
    """An answer in Markdown in which each address stands in `<…>`, as Discord takes one that is not to be previewed.
    Code stays as it is."""
    if "://" not in text:
        return text
    ends = _ends_of_ticks(text)
    parts, done, at = list[str](), 0, 0
    while (token := _TOKEN.search(text, at)) is not None:
        at = token.end()
        if token["ticks"]:
            escaped = text[token.start() - 1 : token.start()] == "\\"
            at = at if escaped else _code_end(ends, at, len(token["ticks"]))
        elif token["address"]:
            at = token.start() + _address_chars(token["address"])
            parts += (text[done : token.start()], _unpreviewed(text[token.start() : at]))
            done = at
    return "".join((*parts, text[done:]))


def _unpreviewed(address: str) -> str:
    return f"<{address}>" if len(address) <= MAX_ADDRESS_CHARS else address.replace("://", ":")


def _ends_of_ticks(text: str) -> dict[int, list[int]]:
    """Where runs of backticks end, in order, by their length; those of fences together."""
    ends: dict[int, list[int]] = defaultdict(list)
    for run in _TICKS.finditer(text):
        ends[min(len(run[0]), FENCE_TICKS)].append(run.end())
    return ends


def _code_end(ends: dict[int, list[int]], begins: int, ticks: int) -> int:
    """The end of the code that begins after a run of backticks; that position itself where they begin none."""
    closing = ends[min(ticks, FENCE_TICKS)]
    number = bisect_right(closing, begins)
    return closing[number] if number < len(closing) else begins


def _address_chars(found: str) -> int:
    """How much of what looks like an address is one: without the signs behind it, and without a bracket that it does
    not open itself."""
    size = len(found)
    brackets = {bracket: found.count(bracket) for pair in _CLOSING.items() for bracket in pair}
    while size:
        last = found[size - 1]
        if last in _CLOSING and brackets[last] > brackets[_CLOSING[last]]:
            brackets[last] -= 1
        elif last not in _AFTER:
            break
        size -= 1
    return size
