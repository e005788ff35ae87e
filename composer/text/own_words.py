"""What of a text are its sender's own words: not what they quote, forward or paste. Pure, in linear time.

It is told by structure alone, so in any language. Left out are what stands in a code fence, between rules (lines of
nothing but dashes or the like) or between a tag and its end, lines that begin with `>` (as `as_quotation` makes them)
or with `|`, what follows a line such as "----- Forwarded message -----", copies of mails and chats
(composer/text/copies.py), quoted sentences, prose that is given after a line that ends with a colon, and long text.
What stands around these is the sender's own.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from composer.text.copies import COLONS, copy_starts

MAX_PARAGRAPH_CHARS: Final = 800  # that people type: a longer one is pasted, and so is what follows it
MAX_OWN_CHARS: Final = 4_000  # of a text that people type: of a longer one only the opening is their own
MAX_OPENING_CHARS: Final = 600
MAX_OWN_LINES: Final = 1_000  # fenced and tagged ones not counted; what is below is pasted
MIN_GIVEN_LINE_CHARS: Final = 60  # of the first line of prose that is given after a colon
MIN_GIVEN_CHARS: Final = 120  # of its lines together
MIN_QUOTED_WORDS: Final = 4  # of a quotation that is a sentence: a shorter one is a title or a term
MAX_QUOTATION_CHARS: Final = MAX_PARAGRAPH_CHARS  # of a quotation within a line
MIN_SINGLE_QUOTED_CHARS: Final = 3

_TAKEN: Final = "\ufffc"  # stands for what was left out, so that no line goes on in another one
_FENCED: Final = re.compile(r"(`{3,20}).*?(?:\1|\Z)", re.DOTALL)
_FENCE: Final = re.compile(r"\A\s*(~{3})")
_RULE: Final = re.compile(r"\A\s*([-=_*~#+\"'])\1{2,}\s*\Z")
_NAMED_RULE: Final = re.compile(r"\A\s*[-=_]{3}[-=_]*\s*[^\W_].*[-=_]{3}\s*\Z")
# What quotes all that follows, as on Discord, and a caption with the times at which it was said.
_QUOTED_REST: Final = re.compile(r"\A\s*(?:(?:>|&gt;){3}\s|\d{1,2}:\d{2}(?::\d{2})?[.,]\d{3}\s-->\s)")
_QUOTED_LINE: Final = re.compile(
    r"\A[\s\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*(?:[>|\u2502\uff1e]|&gt;|(?:[-*+\u2022]|\d{1,3}[.)])\s{1,4}(?:>|&gt;)\s)"
)
_LIST_ITEM: Final = re.compile(r"\A\s*(?:[-*+\u2022\u00b7]|\d{1,3}[.)])\s")
_TAG: Final = re.compile(
    r"<(?P<shuts>/)?(?P<name>[A-Za-z][\w:.-]{0,63})(?:\s[^<>]{0,1000})?>"
    r"|\[(?P<closes>/)?(?P<code>[A-Za-z][\w:.-]{0,63})(?:[ =][^\[\]]{0,1000})?\]"
)
_OPENING_MARKS: Final = ('"', "\u201c", "\u201e", "\u00ab")
_CLOSING_MARKS: Final = ('"', "\u201d", "\u201c", "\u00bb")
_LETTER: Final = re.compile(r"\A\w")
_DOUBLE_END: Final = re.compile(
    r"[\"\u201d\u201c\u00bb\u00ab\u300d\u300f\u300b\uff63\uff02\u275e\u301e\u301f\n]|\u05f4(?!\w)"
)
_SINGLE_END: Final = re.compile(r"(?<!\w)['\u2019]|['\u2018\u2019](?!\w)|\n")  # not the apostrophe in "don't"
_QUOTATION_START: Final = re.compile(
    r"[\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300e\u300a\uff62\uff02\u275d\u301d]|(?<!\w)['\u2018\u201a\u05f4]"
)


def own_words(text: str, *, quoting: bool = False) -> str:
    """The parts of a text that are its sender's own words; empty where all is somebody else's. `quoting`: with what
    they quote within a line, in its quotation marks."""
    said = list(_not_quoted(_without_tagged(_FENCED.sub(_TAKEN, text)).splitlines()[:MAX_OWN_LINES]))
    lines = _not_given(iter(said[: copy_starts(said)]))
    own = "\n".join(_not_long(lines))
    if quoting:
        return own.replace(_TAKEN, "\n").strip()
    return without_quotations(own, MIN_QUOTED_WORDS).replace(_TAKEN, " ").strip()


def as_quotation(text: str) -> str:
    """Words of somebody or something else, as they join a message: every line begins with `> `."""
    return "\n".join(f"> {line}" for line in text.splitlines() if line.strip())


def _without_tagged(text: str) -> str:
    """A text without what stands between the first tag of a name and the last end of it: what is pasted may have such
    ends, too. A tag that fills a line and has no end holds the rest of the text. Others without an end, as in
    `List<String>`, are words."""
    begins, ends = dict[str, re.Match[str]](), dict[str, int]()
    for tag in _TAG.finditer(text):
        name = (tag["name"] or f"[{tag['code']}").casefold()
        if tag["shuts"] or tag["closes"]:
            ends[name] = tag.end()
        elif not tag[0].endswith("/>"):
            begins.setdefault(name, tag)
    spans = []
    for name, tag in begins.items():
        if ends.get(name, 0) > tag.end():
            spans.append((tag.start(), ends[name]))
        elif tag["name"] and _fills_line(text, tag):
            spans.append((tag.start(), len(text)))
    kept, at = list[str](), 0
    for start, end in sorted(spans):
        kept.append(text[at:start])
        at = max(at, end)
    return _TAKEN.join((*kept, text[at:]))


def _fills_line(text: str, tag: re.Match[str]) -> bool:
    before, after = text[text.rfind("\n", 0, tag.start()) + 1 : tag.start()], text[tag.end() : tag.end() + 1]
    return not before.strip() and after in ("", "\n", "\r")


def _not_quoted(lines: Sequence[str]) -> Iterator[str]:
    """The lines that are neither quoted nor between fences, rules or quotation marks; a sign in their places."""
    closing = _last_closing(lines)
    fence = ""  # in which the line stands
    for number, line in enumerate(lines):
        mark = next((found[1] for found in (_FENCE.match(line), _RULE.match(line)) if found), "")
        if mark and fence in ("", mark):
            fence = "" if fence else mark
            yield _TAKEN
        elif fence:
            fence = "" if fence == "quotation" and line.rstrip().endswith(_CLOSING_MARKS) else fence
        elif _NAMED_RULE.match(line) or _QUOTED_REST.match(line):
            return
        elif _QUOTED_LINE.match(line):
            yield _TAKEN
        elif _opens_quotation(line) and number < closing:
            fence = "quotation"
            yield _TAKEN
        else:
            yield line


def _last_closing(lines: Sequence[str]) -> int:
    """The number of the last line that ends with a mark that closes a quotation; -1 for none."""
    return next((n for n in range(len(lines) - 1, -1, -1) if lines[n].rstrip().endswith(_CLOSING_MARKS)), -1)


def _opens_quotation(line: str) -> bool:
    """Whether a line begins a quotation that it does not end."""
    said = line.strip()
    return said.startswith(_OPENING_MARKS) and not any(mark in said[1:] for mark in _CLOSING_MARKS)


def _not_given(lines: Iterator[str]) -> Iterator[str]:
    """The lines before prose that is given after a line with a colon at its end, as after "Translate this:". A list,
    and short lines, are the sender's own."""
    asked, block = False, list[str]()  # whether a line asks for what follows; the lines of it so far
    for line in lines:
        if block or (asked and line.strip()):
            block.append(line)
            if len(block[0]) < MIN_GIVEN_LINE_CHARS or _LIST_ITEM.match(block[0]) or not line.strip():
                yield from block
                asked, block = line.rstrip().endswith(COLONS), []
            elif sum(map(len, block)) >= MIN_GIVEN_CHARS:
                return
        else:
            yield line
            asked = line.rstrip().endswith(COLONS) or (asked and not line.strip())
    yield from block


def _not_long(lines: Iterator[str]) -> Iterator[str]:
    """The lines before a paragraph that is longer than people type; of a text that is, the opening."""
    said = list(lines)
    left = MAX_OPENING_CHARS if len("\n".join(said)) > MAX_OWN_CHARS else MAX_OWN_CHARS
    for line in said:
        left -= len(line) + 1
        if left < 0 or len(line) > MAX_PARAGRAPH_CHARS:
            return
        yield line


def without_quotations(text: str, min_words: int = 0) -> str:
    """A text with a space in place of everything in quotation marks that has at least so many words."""
    kept, at = list[str](), 0
    for start, end in quotations(text, min_words):
        kept.append(text[at:start])
        at = end
    return " ".join((*kept, text[at:]))


def quotations(text: str, min_words: int = 0) -> Iterator[tuple[int, int]]:
    """Where what stands in quotation marks and has at least so many words begins and ends, with the marks. Reads each
    mark once, in linear time: a pattern would read all that follows."""
    double_ends, single_ends = _DOUBLE_END.finditer(text), _SINGLE_END.finditer(text)
    double, single = next(double_ends, None), next(single_ends, None)
    end = 0
    for opening in _QUOTATION_START.finditer(text):
        start = opening.end()
        if opening.start() < end:
            continue  # inside the quotation before
        if opening.group() in "'\u2018\u201a":
            while single is not None and single.start() < start:
                single = next(single_ends, None)
            closing, minimum = single, MIN_SINGLE_QUOTED_CHARS
        else:
            while double is not None and double.start() < start:
                double = next(double_ends, None)
            closing, minimum = double, 0
        if closing is None or closing.group() == "\n":
            continue
        quoted = text[start : closing.start()][: MAX_QUOTATION_CHARS + 1]
        if not (minimum <= len(quoted) <= MAX_QUOTATION_CHARS and _closes(text, closing)):
            continue
        end = closing.end()
        if len(quoted.split()) >= min_words:
            yield opening.start(), end


def _closes(text: str, closing: re.Match[str]) -> bool:
    """Whether a mark ends a quotation: a single one not before a letter."""
    following = text[closing.end() : closing.end() + 1]
    return closing.group() not in "'\u2019" or _LETTER.match(following) is None
