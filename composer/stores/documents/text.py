"""The text of files that are text: in UTF-8, or in the encoding that their bytes speak for."""

import codecs
from typing import Final

import chardet

from composer.text.file_kinds import MAX_FILE_CHARS

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES: Final = 50_000
_MOST_BYTES: Final = 4 * (MAX_FILE_CHARS + 2)  # of the beginning, which are enough in any encoding


def decode_text(content: bytes) -> str:
    """The beginning of a text, of more than MAX_FILE_CHARS if it has them, without a byte order mark. What can't be
    decoded is replaced."""
    content = content[:_MOST_BYTES]
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content.decode(encoding, "replace").removeprefix("\ufeff")
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        return decoder.decode(content)  # a character that the limit has cut is left out
    except UnicodeDecodeError:
        guessed = chardet.detect(content[:_SAMPLE_BYTES])["encoding"] or "utf-8"
    try:
        return content.decode(guessed, "replace")
    except LookupError:
        return content.decode("utf-8", "replace")
