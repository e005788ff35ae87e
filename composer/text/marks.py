"""Source marks of an answer, such as (s1): where they stand in Markdown, outside code, addresses and links. Pure."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final

_MARKS: Final = re.compile(r"(?P<gap>[ \t]?)(?<!\])\((?P<marks>s[1-9]\d{0,2}(?:, ?s[1-9]\d{0,2}){0,11})\)")
_BEGINNING: Final = "(s"  # of every mark; looked for first, for a hundredth of the time of a pattern
_ANYWHERE: Final = re.compile(r"[ \t]?\(s[1-9]\d{0,2}(?>(?:, ?s[1-9]\d{0,2})*)\)")
_PASSES: Final = 3  # that take marks out before what is left of nested ones is replaced
# What can begin a region without marks. Ends of code are looked for apart, so that each text is read once.
_REGION: Final = re.compile(
    r"(?P<ticks>`++)|^[ \t>]*+(?P<tildes>~{3,}+)|^(?P<indent> {4}|\t)(?P<line>[^\n]*+)"
    r"|\b(?:\w{1,20}://|www\.)[^\s<>]++|\[[^\[\]\n]*+\]\([^\s()]*+(?>(?:\([^\s()]*+\)[^\s()]*+){0,4})\)",
    re.MULTILINE,
)
_TICKS: Final = re.compile(r"`++")
_TILDES: Final = re.compile(r"^[ \t>]*+(~{3,}+)", re.MULTILINE)
_FENCE: Final = 3  # signs from which a run of them is a fence
_BLANK_LINE: Final = re.compile(r"\n[ \t]*+\n")
_LIST_ITEM: Final = re.compile(r"\A[ \t]*+(?:[-*+]|\d{1,9}[.)])[ \t]")
_NOTHING_ELSE: Final = "\u2026"  # in place of an answer that was nothing but marks

Run = tuple[int, int, int]  # of backticks or tildes: where it begins and ends, and how many signs it has


def replace_marks(text: str, replaced: Callable[[re.Match[str]], str]) -> str:
    """An answer in which each group of marks in parentheses is replaced. `replaced` gets its match: `marks` without the
    parentheses, and the `gap` before them. Code (in backticks, between fences, indented), addresses and links stay.
    """
    if _BEGINNING not in text or _MARKS.search(text) is None:
        return text
    parts, end = list[str](), 0
    for start, stop in _regions(text):
        parts += (_MARKS.sub(replaced, text[end:start]), text[start:stop])
        end = stop
    return "".join((*parts, _MARKS.sub(replaced, text[end:])))


def without_marks(text: str) -> str:
    """An earlier answer as later prompts show it, without its marks: they stand for sources of another prompt."""
    return replace_marks(text, lambda _: "") or (text and _NOTHING_ELSE)


def without_any_marks(text: str) -> str:
    """A text of others without all that looks like marks, also in code and links. Where taking them out makes new ones,
    again and again, an ellipsis stands for them, so that this takes linear time."""
    for _ in range(_PASSES):
        if _BEGINNING not in text:
            return text
        text, count = _ANYWHERE.subn("", text)
        if not count:
            return text
    return _ANYWHERE.sub(_NOTHING_ELSE, text)


def marks_in(text: str) -> list[str]:
    """The marks of an answer in their order, each once."""
    found: list[str] = []

    def seen(match: re.Match[str]) -> str:
        found.extend(mark.strip() for mark in match["marks"].split(","))
        return match[0]

    replace_marks(text, seen)
    return list(dict.fromkeys(found))


def _regions(text: str) -> Iterator[tuple[int, int]]:
    """Where code, addresses and links begin and end, in order."""
    ticks = [(match.start(), match.end(), match.end() - match.start()) for match in _TICKS.finditer(text)]
    tildes = [(match.start(), match.end(), len(match[1])) for match in _TILDES.finditer(text)]
    indented, at = _indented_code(text), 0
    while (match := _REGION.search(text, at)) is not None:
        start, end = match.span()
        if match["ticks"]:
            end = _code_end(text, ticks, start, end)
        elif match["tildes"]:
            end = _fence_end(text, tildes, bisect_left(tildes, (start,)))
        elif match["indent"] and start not in indented:
            end = at = match.start("line")
            continue
        at = match.end() if end < 0 else end
        if end >= 0:
            yield start, end


def _code_end(text: str, runs: Sequence[Run], start: int, end: int) -> int:
    """The end of the code that begins with a run of backticks; -1 where it begins none."""
    number, length = bisect_left(runs, (start,)), end - start
    if length >= _FENCE:
        return _fence_end(text, runs, number)
    later = (runs[n] for n in range(number + 1, len(runs)))
    closing = next((run for run in later if run[2] == length), None)
    return -1 if closing is None or _BLANK_LINE.search(text, end, closing[0]) else closing[1]


def _fence_end(text: str, runs: Sequence[Run], number: int) -> int:
    """The end of the code that begins with a fence: the next that is as long, or the end of the text."""
    later = (runs[n] for n in range(number + 1, len(runs)))
    return next((end for _, end, length in later if length >= runs[number][2]), len(text))


def _indented_code(text: str) -> set[int]:
    """Where the lines begin that are code by their indent: after a blank line, and in no list."""
    found, at = set[int](), 0
    after_blank, code, in_list = True, False, False
    for line in text.split("\n"):
        indented = line.startswith((" " * 4, "\t"))
        if not line.strip():
            after_blank = True
        elif indented:
            code = not in_list and (code or after_blank)
            found |= {at} if code else set()
            after_blank = False
        else:
            in_list = _LIST_ITEM.match(line) is not None or (in_list and line.startswith(" "))
            after_blank = code = False
        at += len(line) + 1
    return found
