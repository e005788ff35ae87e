"""Clean people's text before it is stored: messages, names, titles, keys and file names. Pure.

The cleaned text is what counts as said: it is stored, compared with an edit and shown. Cleaning it again changes
nothing. Ids of platforms never pass through here; they are checked and left as they are.

Taken out: control characters, and characters that nobody sees and that can hide words from a reader or turn a line
around (bidirectional marks, tags, zero-width characters, fillers, loose variation selectors). Kept: what makes an
emoji, and the joiners of scripts that are written with them, such as Persian and Hindi.
"""

import re
import unicodedata
from typing import Final, Literal

MAX_NAME_CHARS: Final = 200
MAX_MARKS: Final = 30  # combining marks in a row (UAX #15, stream-safe format); sorting more is not linear
REPLACEMENT: Final = "\ufffd"

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_LINE_BREAK: Final = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

# Scripts that need joiners: Arabic, Syriac, N'Ko, the scripts of India, Sri Lanka and Tibet, Myanmar, Khmer, Mongolian.
_JOINED_SCRIPTS: Final = (
    "\u0620-\u06d3\u06d5-\u06dc\u06de-\u06ff\u0710-\u07ff\u0840-\u088f\u08a0-\u08e1\u08e3-\u0dff\u0f00-\u109f\u1780-\u17b3"
    "\u17b6-\u180a\u1810-\u18af\u1900-\u1cff\ua840-\ua87f\ua8e0-\ua9ff\uaa00-\uaadf\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    "\U00010e80-\U0001193f"
)
_EMOJI: Final = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297"
    "\u3299\U0001f000-\U0001faff"
)
_IDEOGRAPHS: Final = "\u2e80-\u2fff\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# Characters that nobody sees: what Unicode calls default ignorable, and the other format characters without a shape.
_INVISIBLE: Final = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_CONTROL: Final = "\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f"
# First what is kept, in groups of its own; each part of it is of a fixed length, so one look from the left decides.
_KEPT: Final = "|".join(
    (
        # The flags of England, Scotland and Wales, the only ones that are written with tags.
        "\U0001f3f4(?:\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
        "|\U000e0077\U000e006c\U000e0073))\U000e007f",
        f"(?:(?<=[{_EMOJI}])|(?<=[{_EMOJI}]\ufe0f))\u200d(?=[{_EMOJI}])",
        f"(?<=[{_JOINED_SCRIPTS}])[\u200c\u200d](?=[{_JOINED_SCRIPTS}])",
        f"(?<=[{_EMOJI}#*0-9])[\ufe0e\ufe0f]",
        f"(?<=[{_IDEOGRAPHS}])[\ufe00-\ufe02\U000e0100-\U000e01ef]",
        "(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]",
    )
)
_HIDDEN: Final = re.compile(f"({_KEPT})|[{_INVISIBLE}{_CONTROL}]+")
_NEEDS_CARE: Final = re.compile(f"[{_INVISIBLE}{_CONTROL}\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029\ud800-\udfff]")
_BLANK: Final = "\u2800"  # the empty Braille cell: a symbol that looks like a space


def _ranges(wanted: list[int]) -> str:
    """Code points as the inside of a character class."""
    spans: list[tuple[int, int]] = []
    for code in wanted:
        if spans and code == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], code)
        else:
            spans.append((code, code))
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in spans)


# Marks that are sorted when a text is normalised. A composed character may end with one, and a few (U+0344) are two.
_MARK_CODES: Final = [code for code in range(0x300, 0x1F000) if unicodedata.combining(chr(code))]
_BMP_MARK: Final = _ranges([code for code in _MARK_CODES if code < 0x10000])
_MARK: Final = _ranges(_MARK_CODES)
_SOME_MARKS: Final = re.compile(f"[{_BMP_MARK}]{{2}}|[{chr(0x10000)}-{chr(_MARK_CODES[-1])}]")  # ten times as fast
_MANY_MARKS: Final = re.compile(f"(?<![{_MARK}])([{_MARK}]{{{MAX_MARKS}}})[{_MARK}]+")


def is_storable(text: str) -> bool:
    """Whether a database can store a text: it has no NUL and no half of a surrogate pair."""
    return _UNSTORABLE.search(text) is None


def storable(text: str) -> str:
    """A text with U+FFFD in place of each character that can't be stored."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def clean_text(text: str) -> str:
    """A text as it is stored and shown, in Unicode NFC, in any number of lines.

    Every line break becomes a newline; NUL and lone surrogates become U+FFFD, so that a text is never refused for them.
    Takes linear time.
    """
    if text.isascii() and text.isprintable():
        return text
    if _NEEDS_CARE.search(text) is not None:
        text = _LINE_BREAK.sub("\n", storable(text))
        text = _HIDDEN.sub(lambda found: found[1] or "", _composed(text))
    return _composed(text)


def clean_line(text: str, max_chars: int = MAX_NAME_CHARS) -> str:
    """A name, title or key as it is stored and shown: `clean_text` on one line, without outer spaces; one space for any
    run of white space. A longer one ends with an ellipsis after `max_chars` - 1 characters. May be empty."""
    if len(text) <= max_chars and text.isascii() and text.isprintable():
        return " ".join(text.split())
    line = shorten(clean_text(text[: max_chars * 20]).replace(_BLANK, " "), max_chars)
    return shorten(clean_text(line), max_chars)  # the cut may have gone through an emoji


def shorten(text: str, max_chars: int) -> str:
    """A text on one line of at most `max_chars` characters; an ellipsis at the end says that it was longer."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"


def normalised(text: str, form: NormalForm = "NFC") -> str:
    """A text in a normal form, in linear time: of a run of combining marks the first 30 count."""
    return text if text.isascii() else unicodedata.normalize(form, _with_few_marks(text))


def _composed(text: str) -> str:
    """A text in NFC with at most MAX_MARKS combining marks in a row, also where composing makes two of one."""
    return text if text.isascii() else _with_few_marks(normalised(text))


def _with_few_marks(text: str) -> str:
    return text if _SOME_MARKS.search(text) is None else _MANY_MARKS.sub(r"\1", text)
