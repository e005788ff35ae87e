"""The rooms that a question names: "#ops", "the ops room", "the channel ops". Pure."""

import re
from collections import defaultdict
from collections.abc import Collection
from typing import Final

MAX_CHARS_WITH_ROOM_NAMES: Final = 2_000  # of a question; a room is named in a sentence

_BEFORE: Final = r"(?:\b(?:in|from|of|at|on)\s{1,4})?(?:\bthe\s{1,4})?"
_KIND: Final = r"(?:room|channel)"
_NAME: Final = r"[^\s#\"'?!,;:()<>\u2018-\u201f\u00ab\u00bb\u2026\u3001\u3002\uff01\uff0c\uff1f]{1,100}"
_FORMS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_BEFORE}\"?(?<![\w/#])#(?P<name>{_NAME})\"?(?:\s{{1,4}}{_KIND}\b)?",
        rf"{_BEFORE}(?<![^\s\"'(])(?P<word>{_NAME})\s{{1,4}}{_KIND}\b",
        rf"{_BEFORE}\b{_KIND}\s{{1,4}}(?P<word>{_NAME})",
    )
)
# What stands beside "room" in any sentence: a room that is called so is named by its # alone.
_BESIDE: Final = """
    a about above after all an and another any are as at be because been before below but by can could did do does
    each either every few for from had has have her here his how i if in inside into is it its just least left
    less like many may might mine more most must my near neither next no nor not now of off on one only or other
    our out over own s same say should so some such than that the their them then there these they this those to
    too until up us was we were what when where which while who whose why will with would yet you your
"""
_ORDINARY: Final = frozenset(_BESIDE.split())


def rooms_named(question: str, names: Collection[str]) -> tuple[frozenset[str], str]:
    """Those of the `names` of rooms that a question names, and the question without these; a name that is not among
    them stays an ordinary word. Case does not count: rooms whose names differ by it alone are named together. A bare
    word names no room: "the launch" is no #launch, and "this room" no #this."""
    known = defaultdict[str, set[str]](set)
    for name in names:
        known[name.casefold()].add(name)
    found: set[str] = set()

    def without(match: re.Match[str]) -> str:
        groups = match.groupdict()
        name = (groups.get("name") or groups["word"]).casefold()
        own = known.get(name) or known.get(name.rstrip("."))
        if own is None or ("word" in groups and name in _ORDINARY):
            return match[0]
        found.update(own)
        return " "

    rest = question[:MAX_CHARS_WITH_ROOM_NAMES]
    for form in _FORMS if known else ():
        rest = form.sub(without, rest)
    return frozenset(found), rest + question[MAX_CHARS_WITH_ROOM_NAMES:] if found else question
