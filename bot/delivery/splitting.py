"""Cuts a long answer into messages that a platform takes, at places where a reader would. Pure."""

import re
import unicodedata
from itertools import takewhile
from typing import Final

FENCE: Final = "```"
_CLOSING = re.compile(r"\n[ \t]{0,12}`{3,}[ \t]*\n*$")
_OPENING = re.compile(r"^[ \t]{0,12}(`{3,})([\w+#.-]*)")  # in a list it is indented
_BREAKS: Final = (  # best first
    ("\n\n", "\n", ". ", "! ", "? ", "\u3002", "\uff01", "\uff1f", "; ", ", ", "\u3001", "\uff0c", " ")
)
_RULE: Final = re.compile(r"\|[ |:-]{3,500}")  # between the heading of a table and its rows
_WHOLE: Final = re.compile(  # is not cut inside: code, a link, bold words
    r"`[^`\n]{1,500}+`|\[[^\[\]\n]{1,300}+\]\([^()\s]{1,2000}+\)|\*\*[^*\n]{1,500}+\*\*"
)
_JOINER: Final = "\u200d"
_JOINED: Final = frozenset((_JOINER, "\ufe0e", "\ufe0f", *map(chr, range(0x1F3FB, 0x1F400))))  # to what is before


def split(text: str, limit: int) -> list[str]:
    """`text` as parts of at most `limit` characters, in order, none of them blank.

    Cuts between blocks, then paragraphs, lines, sentences, words. A code block stays whole where it fits into a
    part; one that does not is closed at the cut and opened again, with its language, in the next part. A table has
    its heading in each part. Joined without those added fences and headings and the white space at the cuts, the parts
    are the text. Code in a line, a link and bold words are not cut where they fit, nor is a letter with its accents.
    `limit` is at least 40.
    """
    if limit < 40:
        raise ValueError("a limit below 40 characters leaves no room for a fenced line")
    parts: list[str] = []
    current = ""
    for block in _blocks(text):
        if len(current) + len(block) <= limit:
            current += block
            continue
        code = _is_code(block)
        if code and len(block.strip("\n")) <= limit:
            parts.append(current)
            current = block
            continue
        if code or FENCE in current:  # what is fenced already must not be cut again
            parts.append(current)
            current = ""
        pieces = _cut_code(block, limit) if code else _cut_prose(current + block, limit)
        parts.extend(pieces[:-1])
        current = pieces[-1]
    parts.append(current)
    return [part.strip("\n") if part.lstrip().startswith(FENCE) else part.strip() for part in parts if part.strip()]


def _blocks(text: str) -> list[str]:
    """The text in runs of prose and whole fenced blocks; an unclosed fence runs to the end."""
    blocks: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        opening = _OPENING.match(line)
        if fence:
            blocks[-1] += line
            if opening and opening[1].startswith(fence) and not opening[2]:
                fence = ""
                blocks.append("")
        elif opening:
            fence = opening[1]
            blocks.append(line)
        elif blocks and not _is_code(blocks[-1]):
            blocks[-1] += line
        else:
            blocks.append(line)
    return [block for block in blocks if block]


def _is_code(block: str) -> bool:
    return _OPENING.match(block) is not None


def _cut_prose(text: str, limit: int) -> list[str]:
    pieces = []
    while len(text) > limit:
        at = _break(text, limit)
        pieces.append(text[:at])
        rest = text[at:].lstrip(" ")
        text = _table_head(text[:at], rest, limit) + rest
    return [*pieces, text]


def _table_head(cut: str, rest: str, limit: int) -> str:
    """The first two lines of a table that is cut between its rows; "" for any other text."""
    if not (cut.endswith("\n") and rest.startswith("|")):
        return ""
    rows = list(takewhile(lambda line: line.startswith("|"), reversed(cut.splitlines(keepends=True))))[::-1]
    head = "".join(rows[:2])
    return head if len(rows) > 2 and _RULE.fullmatch(rows[1].strip()) and len(head) <= limit // 4 else ""


def _break(text: str, limit: int) -> int:
    """Where to cut: after the best kind of break that leaves the part more than half full, and cuts nothing that
    belongs together."""
    around = text[: 2 * limit]
    wholes = [(whole.start(), whole.end()) for whole in _WHOLE.finditer(around)]
    for mark in _BREAKS:
        at = limit + 1
        while (at := text.rfind(mark, limit // 2, at - 1)) > 0:
            end = at + len(mark)
            inside = next((start for start, stop in wholes if start < end < stop), None)
            if inside is None and end <= limit:
                return end
            if inside is not None:
                at = min(at, inside + len(mark))
    return _before_a_whole_letter(text, limit)


def _before_a_whole_letter(text: str, limit: int) -> int:
    """The limit, or a little before it where it would cut an accent, a vowel sign or a part of an emoji off."""
    for at in range(limit, limit // 2, -1):
        mark = unicodedata.category(text[at]).startswith("M") or text[at] in _JOINED
        if not mark and text[at - 1] != _JOINER:
            return at
    return limit


def _cut_code(block: str, limit: int) -> list[str]:
    first, _, rest = block.partition("\n")
    closing = _CLOSING.search("\n" + rest)
    body = rest[: max(closing.start() - 1, 0)] if closing else rest.rstrip("\n")
    opening = first if len(first) <= limit // 2 else FENCE
    room = limit - len(opening) - len(FENCE) - 2
    pieces: list[str] = []
    current = ""
    for line in body.split("\n"):
        for part in [line[i : i + room] for i in range(0, len(line), room)] or [""]:
            if current and len(current) + 1 + len(part) > room:
                pieces.append(current)
                current = part
            else:
                current = f"{current}\n{part}" if current else part
    pieces.append(current)
    return [f"{opening}\n{piece}\n{FENCE}\n" for piece in pieces]
