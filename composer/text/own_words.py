"""What of a text are its sender's own words: not what they quote, forward or paste. Pure, in linear time.

It is told by structure alone, so in any language. Left out are what stands in a code fence, between rules (lines of
nothing but dashes or the like) or between a tag and its end, lines that begin with `>` (as `as_quotation` makes them)
or with `|`, what follows a line such as "----- Forwarded message -----", copies of mails and chats
(composer/text/copies.py), quoted sentences (over several lines, too, and behind a mark without its end the rest of the
paragraph), prose that is given after a line that ends with a colon, and long text. What stands around these is the
sender's own.
"""

import re
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from composer.text.copies import COLONS, copy_starts

MAX_PARAGRAPH_CHARS: Final = 800  # that people type: a longer one is pasted, and so is what follows it
MAX_OWN_CHARS: Final = 4_000  # of a text that people type: of a longer one only the opening is their own
MAX_OPENING_CHARS: Final = 600
MAX_OWN_LINES: Final = 1_000  # fenced and tagged ones not counted; what is below is pasted
MIN_GIVEN_LINE_CHARS: Final = 60  # of the first line of prose that is given after a colon
MIN_GIVEN_CHARS: Final = 120  # of its lines together
MIN_QUOTED_WORDS: Final = 4  # of a quotation that is a sentence: a shorter one is a title or a term
MAX_QUOTATION_CHARS: Final = MAX_PARAGRAPH_CHARS  # of a quotation in single marks
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
# What begins a quotation, each with what ends it.
_ENDS: Final = {
    '"': ('"',),
    "``": ("``", "''"),
    "''": ("''",),
    "\u201c": ("\u201d", "\u201c"),
    "\u201d": ("\u201d",),
    "\u201e": ("\u201c", "\u201d"),
    "\u00ab": ("\u00bb",),
    "\u00bb": ("\u00ab", "\u00bb"),
    "\u2039": ("\u203a",),
    "\u203a": ("\u2039", "\u203a"),
    "\u300c": ("\u300d",),
    "\u300e": ("\u300f",),
    "\u300a": ("\u300b",),
    "\uff62": ("\uff63",),
    "\uff02": ("\uff02",),
    "\u275d": ("\u275e",),
    "\u301d": ("\u301e", "\u301f"),
    "\u05f4": ("\u05f4",),
}
_SAME_AT_BOTH_ENDS: Final = frozenset(begins for begins, ends in _ENDS.items() if begins in ends) - {"\u201c"}
_ONLY_BEGINS: Final = frozenset("\u201e\u300c\u300e\u300a\uff62\u275d\u301d")
_SINGLE: Final = "'\u2018\u201a"
_MARK: Final = re.compile(
    r"``|''|[\"\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c-\u300f\u300a\u300b\uff62\uff63\uff02\u275d\u275e\u301d-\u301f\u05f4]"
    r"|(?<!\w)['\u2018\u201a]"
)
_MARKS_AROUND: Final = re.compile(rf"\A(?:{_MARK.pattern})|(?:{_MARK.pattern}|['\u2018\u2019])\Z")
_SINGLE_END: Final = re.compile(r"(?<!\w)['\u2019]|['\u2018\u2019](?!\w)|\n")  # not the apostrophe in "don't"
_LETTER: Final = re.compile(r"\w")
_PARAGRAPH_END: Final = re.compile(r"\n[^\S\n]*(?:\n|\Z)")
# Of scripts without spaces, such as Chinese, three signs count as a word.
_WITHOUT_SPACES: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_QUOTED_WORD: Final = re.compile(rf"[{_WITHOUT_SPACES}]{{3}}|[{_WITHOUT_SPACES}]{{2}}|[^\s{_WITHOUT_SPACES}]+")
_ENDS_WITHIN: Final = re.compile(r"[!?](?=\s|\Z)|\w\s\S*\w\.(?=\s|\Z)|\w{2}\.\s|[\u3002\uff01\uff1f]")
# What a decision is labelled with before a colon, in eighteen languages.
DECISION_LABEL: Final = (
    r"(?:decision|decided|agreed|consensus|entscheidung|entschieden|beschluss|beschlossen|vereinbart|d[e\u00e9]cision|d[e\u00e9]cid[e\u00e9]"
    r"|convenu|decisi[o\u00f3]n|decidido|acordado|decisione|deciso|decis[a\u00e3]o|combinado|besluit|besloten|afgesproken|beslut|beslutat"
    r"|beslutning|besluttet|p\u00e4\u00e4t\u00f6s|decyzja|ustalono|rozhodnut\u00ed|\u0440\u0435\u0448\u0435\u043d\u043e|\u0432\u0438\u0440\u0456\u0448\u0435\u043d\u043e|karar|keputusan"
    r"|[\u6c7a\u51b3][\u5b9a\u8bae\u8b70](?:\u4e8b\u9805|\u4e8b\u9879)?|\uacb0\uc815(?:\s?\uc0ac\ud56d)?)"
)
_MAX_BEFORE_COLON: Final = 80
_LABEL: Final = re.compile(
    rf"(?:\b|[\u6700\u7d42\u7ec8]{{2}})(?:to-?do|action\s{{1,4}}items?|task|resolved|resolution|{DECISION_LABEL})(?:\sfinale?)?\s{{0,4}}\Z",
    re.IGNORECASE,
)
_ANY_COLON: Final = re.compile("[:\uff1a]")
_COLON: Final = re.compile(r"\[masked:|:[\w+-]{1,40}:|(?P<colon>:(?=\s)|\uff1a)")  # not that of ":tada:"
_MENTIONS: Final = re.compile(r"\A\s*+(?>(?:@[\w.-]{1,80}+[\s,:]*+)+)")


def own_words(text: str, *, quoting: bool = False) -> str:
    """The parts of a text that are its sender's own words; empty where all is somebody else's. `quoting`: with what
    they quote within a line, in its quotation marks."""
    addressed = _MENTIONS.match(text)
    address = addressed[0] if addressed else ""
    said = list(_not_quoted(_without_tagged(_FENCED.sub(_TAKEN, text[len(address) :])).splitlines()[:MAX_OWN_LINES]))
    lines = _not_given(iter(said[: copy_starts(said)]))
    own = "\n".join(_not_long(lines))
    taken = (each for each in quotations(own, MIN_QUOTED_WORDS) if not quoting or "\n" in own[slice(*each)])
    space = "\n" if quoting else " "
    own = space.join(_around(own, taken)).replace(_TAKEN, space)
    return f"{address}{own}".strip() if own.strip() else ""


def by_place(own: str) -> tuple[str, str]:
    """Of somebody's own words the first line, as far as a colon, and the rest: what stands there may be somebody else's
    though nothing marks it, such as a mail below a name. "Decided:" and "to-do:" are no such name."""
    first, _, below = own.strip().partition("\n")
    colon = _ANY_COLON.search(first)
    labelled = colon is not None and _LABEL.search(first[max(0, colon.start() - _MAX_BEFORE_COLON) : colon.start()])
    colons = (found.end("colon") for found in _COLON.finditer(first, colon.end() if colon and labelled else 0))
    end = next((each for each in colons if each >= 0), len(first))
    return first[:end], f"{first[end:]}\n{below}".strip()


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
    """The lines that are neither quoted nor between fences or rules; a sign in their places."""
    fence = ""  # in which the line stands
    for line in lines:
        mark = next((found[1] for found in (_FENCE.match(line), _RULE.match(line)) if found), "")
        if mark and fence in ("", mark):
            fence = "" if fence else mark
            yield _TAKEN
        elif fence:
            continue
        elif _NAMED_RULE.match(line) or _QUOTED_REST.match(line):
            return
        elif _QUOTED_LINE.match(line):
            yield _TAKEN
        else:
            yield line


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
    return " ".join(_around(text, quotations(text, min_words)))


def _around(text: str, taken: Iterable[tuple[int, int]]) -> Iterator[str]:
    """The parts of a text before, between and behind those that are taken out of it."""
    at = 0
    for start, end in taken:
        yield text[at:start]
        at = end
    yield text[at:]


def quotations(text: str, min_words: int = 0) -> Iterator[tuple[int, int]]:
    """Where what stands in quotation marks begins and ends, with the marks, if it has at least so many words or ends a
    sentence: over several lines, too, and without an end as far as its paragraph goes. Reads each mark once."""
    first = last = 0  # of the quotation that is not yielded yet
    for start, end in _between_marks(text):
        if start < last:
            last = max(last, end)
        elif _is_quotation(text[start:end], min_words):
            if first < last:
                yield first, last
            first, last = start, end
    if first < last:
        yield first, last


def _is_quotation(quoted: str, min_words: int) -> bool:
    inner = _MARKS_AROUND.sub("", quoted)
    words = len(_QUOTED_WORD.findall(inner))
    return words >= min_words or _ENDS_WITHIN.search(inner) is not None


def _between_marks(text: str) -> Iterator[tuple[int, int]]:
    """Where quotations begin and end, one after the other; those without an end may overlap what follows."""
    marks = [_Mark.of(found, text) for found in _MARK.finditer(text)]
    singles = _SINGLE_END.finditer(text)
    single = next(singles, None)
    begins, ends = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for mark in marks:
        if mark.is_inner if mark.sign in _SAME_AT_BOTH_ENDS else mark.may_begin:
            begins[mark.sign].append(mark.start)
        if not mark.is_inner:
            ends[mark.sign].append(mark.start)
    end = covered = 0
    for mark in marks:
        if mark.start < end:
            continue  # inside the quotation before
        if mark.sign in _SINGLE:
            while single is not None and single.start() <= mark.start:
                single = next(singles, None)
            if single is not None and _closes(text, single, mark.start + 1):
                end = single.end()
                yield mark.start, end
        elif mark.may_begin and mark.sign in _ENDS:
            again = _after(begins[mark.sign], mark.start)
            closing = min((_after(ends[sign], mark.start), sign) for sign in _ENDS[mark.sign])
            if closing[0] < again:
                end = closing[0] + len(closing[1])
                yield mark.start, end
            elif mark.is_sure and mark.start >= covered:
                paragraph = _PARAGRAPH_END.search(text, mark.start)
                covered = paragraph.start() if paragraph else len(text)
                yield mark.start, covered


def _after(places: Sequence[int], place: int) -> int:
    """The first of places, which are in order, behind a place; a very large number for none."""
    at = bisect_right(places, place)
    return places[at] if at < len(places) else sys.maxsize


@dataclass(frozen=True, slots=True)
class _Mark:
    """A quotation mark. `may_begin`: by what stands around it, it may begin a quotation. `is_sure`: it does so though
    none ends it. `is_inner`: what stands around it is only there where a quotation begins."""

    sign: str
    start: int
    may_begin: bool
    is_sure: bool
    is_inner: bool

    @classmethod
    def of(cls, found: re.Match[str], text: str) -> "_Mark":
        sign, start = found[0], found.start()
        before, after = text[start - 1 : start], text[found.end() : found.end() + 1]
        is_apart = not before or before.isspace() or before in "([{"
        is_ending = not after.strip() or after in ",.;:!?)]}"
        is_inner, is_outer = is_apart and not is_ending, is_ending and not is_apart
        may_begin = sign in _ONLY_BEGINS or not (is_outer or before.isdigit())
        if sign in "\u201d\u05f4":
            may_begin = may_begin and _LETTER.match(before) is None
        elif sign in "\u00bb\u203a":  # not "Menu \u00bb Settings"
            may_begin = may_begin and after.strip() != ""
        in_word = before.lower() != before.upper()  # as in don"t; scripts without case need no space before a mark
        return cls(sign, start, may_begin, may_begin and after.strip() != "" and not in_word, is_inner)


def _closes(text: str, single: re.Match[str], start: int) -> bool:
    """Whether a single mark ends the quotation that begins at `start`: in the same line, and not before a letter."""
    is_last = single.group() != "\n" and _LETTER.match(text, single.end()) is None
    return is_last and MIN_SINGLE_QUOTED_CHARS <= single.start() - start <= MAX_QUOTATION_CHARS
