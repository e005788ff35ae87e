"""The text of IRC logs without the codes of colours in them. Pure."""

import re
from typing import Final

_CODES: Final = re.compile(  # mIRC's: colours, and one character for bold, reset, reverse, italics, underline
    "\x03(?:\\d{1,2}(?:,\\d{1,2})?)?|\x04(?:[0-9a-fA-F]{6}(?:,[0-9a-fA-F]{6})?)?|[\x02\x0f\x11\x16\x1d\x1e\x1f]"
    "|\x1b\\[[\\d;]*m|\x19(?:F[\\d@|]*|.)"  # of terminals; of WeeChat
)


def without_colours(line: str) -> str:
    """A line without the codes of colours and styles."""
    return _CODES.sub("", line)
