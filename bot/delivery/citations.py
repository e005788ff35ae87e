"""Source marks of an answer, such as (s1), as links to the messages that they stand for. Pure."""

import re
from collections.abc import Mapping
from typing import Final

_CODE: Final = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)
_MARKS: Final = re.compile(r"(?<!\])\((s[1-9]\d{0,2}(?:, ?s[1-9]\d{0,2}){0,11})\)")


def link_marks(text: str, links: Mapping[str, str]) -> str:
    """An answer in which each mark in parentheses that has one of `links` (Markdown, by mark) is that link. Code stays
    as it is: "(s1)" in it is no mark."""
    if not links:
        return text

    def linked(match: re.Match[str]) -> str:
        return f"({', '.join(links.get(mark.strip(), mark.strip()) for mark in match[1].split(','))})"

    return "".join(part if number % 2 else _MARKS.sub(linked, part) for number, part in enumerate(_CODE.split(text)))
