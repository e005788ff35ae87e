"""The text of bytes that nothing names the encoding of: logs, tables, pages. Pure."""

import re
from typing import Final

_MARKS: Final = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)
_JAPANESE: Final = re.compile(rb"\x1b\$[@B]")  # ISO-2022-JP, which is ASCII with escapes
_SAMPLE_BYTES: Final = 100_000


def decode_text(content: bytes) -> str:
    """The text of a file. Lines that are UTF-8 are read so, also beside others; the encoding of these is guessed from
    all of them. What can't be decoded is replaced."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    try:
        text = content.decode("iso2022_jp" if _JAPANESE.search(content) else "utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return text
    lines = content.split(b"\n")
    others = [line for line in lines if not _is_utf8(line)]
    encoding = _guessed(b"\n".join(others)[:_SAMPLE_BYTES])
    return "\n".join(line.decode("utf-8" if _is_utf8(line) else encoding, "replace") for line in lines)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _guessed(text: bytes) -> str:
    """The encoding of a text that is not UTF-8, of those that people's programs wrote: not those of old Macs and of
    mainframes, which fit short texts by chance."""
    import chardet  # noqa: PLC0415 - takes a tenth of a second, and most texts are UTF-8

    eras = ~(chardet.EncodingEra.MAINFRAME | chardet.EncodingEra.LEGACY_MAC)
    return chardet.detect(text, encoding_era=eras & chardet.EncodingEra.ALL)["encoding"] or "cp1252"
