"""Source marks of an answer, such as (s1), as links to the messages that they refer to. Pure."""

import re
from collections.abc import Mapping

from composer.text.marks import replace_marks


def link_marks(text: str, links: Mapping[str, str]) -> str:
    """An answer in which each mark in parentheses that has one of `links` (Markdown, by mark) is that link. Code,
    addresses and links stay as they are: "(s1)" in them is no mark."""
    if not links:
        return text

    def linked(match: re.Match[str]) -> str:
        marks = (mark.strip() for mark in match["marks"].split(","))
        return f"{match['gap']}({', '.join(links.get(mark, mark) for mark in marks)})"

    return replace_marks(text, linked)
