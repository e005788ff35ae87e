"""Cuts a long answer into messages that a platform takes, at places where a reader would. Pure."""

import re
from typing import Final

FENCE: Final = "```"
_CLOSING = re.compile(r"\n`{3,}[ \t]*\n*$")
_OPENING = re.compile(r"^(`{3,})([\w+#.-]*)")
_BREAKS: Final = ("\n\n", "\n", ". ", "! ", "? ", "; ", ", ", " ")  # best first


def split(text: str, limit: int) -> list[str]:
    """`text` as parts of at most `limit` characters, in order, none of them blank.

    Cuts between blocks, then paragraphs, lines, sentences, words. A code block stays whole where it fits into a
    part; one that does not is closed at the cut and opened again, with its language, in the next part. Joined
    without those added fences and the white space at the cuts, the parts are the text. `limit` is at least 40.
    """
    if limit < 40:
        raise ValueError("a limit below 40 characters leaves no room for a fenced line")
    parts: list[str] = []
    current = ""
    for block in _blocks(text):
        if len(current) + len(block) <= limit:
            current += block
            continue
        code = block.startswith(FENCE)
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
        elif blocks and not blocks[-1].startswith(FENCE):
            blocks[-1] += line
        else:
            blocks.append(line)
    return [block for block in blocks if block]


def _cut_prose(text: str, limit: int) -> list[str]:
    pieces = []
    while len(text) > limit:
        at = _break(text, limit)
        pieces.append(text[:at])
        text = text[at:].lstrip(" ")
    return [*pieces, text]


def _break(text: str, limit: int) -> int:
    """Where to cut: after the best kind of break that leaves the part more than half full."""
    for mark in _BREAKS:
        at = text.rfind(mark, limit // 2, limit - len(mark) + 1)
        if at > 0:
            return at + len(mark)
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
