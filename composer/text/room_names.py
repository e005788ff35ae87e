"""The rooms that a question names: "#ops", "the ops room", "the channel ops". Pure."""

import re
from collections.abc import Collection
from typing import Final

MAX_QUESTION_CHARS: Final = 2_000  # of a question; a room is named in a sentence

_BEFORE: Final = r"(?:\b(?:in|from|of|at|on)\s{1,4})?(?:\bthe\s{1,4})?"
_KIND: Final = r"(?:room|channel)"
_NAME: Final = r"[^\s#\"'?!,;:()<>]{1,100}"
_FORMS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_BEFORE}\"?#(?P<name>{_NAME})\"?(?:\s{{1,4}}{_KIND}\b)?",
        rf"{_BEFORE}(?<![^\s\"'(])(?P<name>{_NAME})\s{{1,4}}{_KIND}\b",
        rf"{_BEFORE}\b{_KIND}\s{{1,4}}(?P<name>{_NAME})",
    )
)


def rooms_named(question: str, names: Collection[str]) -> tuple[frozenset[str], str]:
    """Those of the `names` of rooms that a question names, and the question without these; a name that is not among
    them stays an ordinary word. Case does not count. A bare word names no room: "the launch" is no #launch."""
    known = {name.casefold(): name for name in names}
    found: set[str] = set()

    def without(match: re.Match[str]) -> str:
        name = match["name"].casefold()
        own = known.get(name) or known.get(name.rstrip("."))
        if own is None:
            return match[0]
        found.add(own)
        return " "

    rest = question[:MAX_QUESTION_CHARS]
    for form in _FORMS if known else ():
        rest = form.sub(without, rest)
    return frozenset(found), rest + question[MAX_QUESTION_CHARS:] if found else question
