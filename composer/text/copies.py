"""Where in a text a mail or a chat begins that was copied into it. Pure, in linear time.

It is told by the forms that mail and chat programs give what they copy, in any language: a block of `Word: value`
lines, a line with a date or an address that ends with a colon, lines with a name and a time of day; and by what such
programs call sender, addressee and subject. All that stands below belongs to the copy: what somebody else wrote there
can end it in no way. What is copied in other forms is told by its place (`by_place` in composer/text/own_words.py).
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

MIN_HEADERS: Final = 2  # of a mail, above an empty line: with an address or a time, or after "Forwarded message:"
MIN_SURE_HEADERS: Final = 3  # with an address or a time, whatever stands below
MIN_BARE_HEADERS: Final = 4  # without either
MIN_MAIL_LABELS: Final = 2  # of the words that mail programs use, whatever stands around
MAX_LABEL_WORDS: Final = 3
MAX_SPEAKER_LINE_CHARS: Final = 120
COLONS: Final = (":", "\uff1a")

_LABEL: Final = re.compile(r"\A\s{0,8}[*_]{0,2}([^\W\d_][^\n:\uff1a]{0,30})[:\uff1a](?!//)[*_]{0,2}\s{0,8}\S")
_MAIL_LABEL: Final = re.compile(  # of sender, addressee or subject, in lower case
    "from|to|subject|cc|von|an|betreff|de|\u00e0|objet|para|as+unto|van|aan|onderwerp|da|oggetto|fr\u00e5n|till|\u00e4mne|fra"
    "|til|emne|od|do|temat|kime|konu|\u043e\u0442|\u043a\u043e\u043c\u0443|\u0442\u0435\u043c\u0430"
    "|\u53d1\u4ef6\u4eba|\u6536\u4ef6\u4eba|\u4e3b\u9898|\u5dee\u51fa\u4eba|\u5b9b\u5148|\u4ef6\u540d"
)
_ADDRESS: Final = re.compile(r"[\w.+-]@[\w-]{1,64}\.\w")
_CLOCK: Final = re.compile(r"(?<![\d:])\d{1,2}:\d{2}(?!\d)")
_DATE: Final = re.compile(r"(?<!\d)(?:(?:19|20)\d{2}|\d{1,2}[./-]\s?\d{1,2}[./-]\s?\d{2,4})(?!\d)")
_ITEM: Final = re.compile(r"\A\s{0,20}(?:[-*+\u2022\u00b7]|\d{1,3}[.)])\s")
_MARKS: Final = "[\\s\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # before a line that WhatsApp exports
# "[28.11.26, 10:32:01] Eve: text", "28/11/2026, 10:32 - Eve: text", "[10:32] <eve> text", "[10:32]Eve: text"
_STAMPED: Final = re.compile(
    rf"\A{_MARKS}{{0,8}}(?P<opens>[\[(])?(?P<date>[\d./-]{{5,10}},?\s{{1,2}})?\d{{1,2}}:\d{{2}}(?::\d{{2}})?"
    r"(?:\s?[ap]\.?\s?m\.?)?(?:,\s[\d./-]{5,10})?(?P<shuts>[\])])?(?:\s{1,2}-)?(?:\s{1,4}|(?<=[\])]))(?:<[^<>\n]{1,40}>|[^\n:]{1,40}:)\s",
    re.IGNORECASE,
)
_TIME_OF_DAY: Final = r"\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?\s?m\.?|\s?(?:uhr|uur|h))?"
# "Eve  10:32 AM", "Eve [10:32]", "Eve \u2014 Today at 10:32", "[Monday 10:32] Eve", and "10:32" alone below a name,
# or after the emoji that Slack puts behind it
_SPEAKER: Final = re.compile(
    r"\A\s{0,8}(?:[^\W_][^\n]{0,60}?(?:\s{2,8}|\t|\s[\u2013\u2014]\s|\s?\[)[^\n:]{0,30}" + _TIME_OF_DAY + r"\]?\s{0,8}"
    r"|\s{0,8}[^\W_][^\n\u00b7]{0,60}?\s\u00b7\s\d{1,3}\s?[smhdw]\s{0,8}"  # "Eve \u00b7 2h"
    r"|\[[^\[\]\n:]{0,30}" + _TIME_OF_DAY + r"\]\s{1,4}[^\W\d_][^\n:]{0,60})\Z",
    re.IGNORECASE,
)
_TIME_ALONE: Final = re.compile(
    r"\A\s{0,8}(?::[\w+-]{1,40}:\s{1,4})?\[?" + _TIME_OF_DAY + r"\]?\s{0,8}\Z", re.IGNORECASE
)
_NICK: Final = re.compile(r"\A\s{0,8}<[@+%&~]?[^\W\d_][\w.|`^{}-]{0,40}>\s{1,4}\S")  # of a line of IRC


def copy_starts(lines: Sequence[str]) -> int:
    """The number of the line with which what was copied begins; how many lines there are, for none."""
    return min(_first_headers(lines), _first_introduction(lines), _first_said(lines))


def _first_headers(lines: Sequence[str]) -> int:
    """Where the headers of a mail begin."""
    start = 0
    while start < len(lines):
        end = start
        while end < len(lines) and _label(lines[end]):
            end += 1
        if end - start >= MIN_HEADERS and _is_of_mail(lines, start, end):
            return start
        start = max(end, start + 1)
    return len(lines)


def _is_of_mail(lines: Sequence[str], start: int, end: int) -> bool:
    if sum(_MAIL_LABEL.fullmatch(_label(line)) is not None for line in lines[start:end]) >= MIN_MAIL_LABELS:
        return True
    told = any(_ADDRESS.search(line) or (_CLOCK.search(line) and _DATE.search(line)) for line in lines[start:end])
    if told and end - start >= MIN_SURE_HEADERS:
        return True
    above = lines[start - 2].rstrip() if start > 1 and not lines[start - 1].strip() else ""
    is_apart = end < len(lines) and not lines[end].strip()  # from what they are of
    return is_apart and (told or end - start >= MIN_BARE_HEADERS or above.endswith(COLONS))


def _label(line: str) -> str:
    """What stands before the colon of a `Word: value` line, in lower case; "" for another line."""
    found = _LABEL.match(line)
    if found is None or len(found[1].split()) > MAX_LABEL_WORDS or _ITEM.match(line):
        return ""
    return found[1].strip(" *_").casefold()


def _first_introduction(lines: Sequence[str]) -> int:
    """Where a line stands such as "On 24 Nov 2026 at 10:00, Eve <eve@mail.example> wrote:", which may be two."""
    for number, line in enumerate(lines):
        if line.rstrip().endswith(COLONS):
            whole = f"{lines[number - 1] if number else ''} {line}"
            marks = [bool(pattern.search(whole)) for pattern in (_ADDRESS, _CLOCK, _DATE)]
            below = next((each for each in lines[number + 1 : number + 3] if each.strip()), "")
            if sum(marks) > 1 or (marks[0] and not _ITEM.match(below)):
                return number
    return len(lines)


def _first_said(lines: Sequence[str]) -> int:
    """Where the first line of a chat stands: one with its time or in the form of IRC, one that tells who wrote what
    stands below, and the first of several of one speaker among those of others."""
    stamped = [(number, stamp) for number, line in enumerate(lines) if (stamp := _STAMPED.match(line))]
    found = [number for number, stamp in stamped if len(stamped) > 1 or _is_sure(stamp)][:1]
    for number, line in enumerate(lines[:-1]):
        if not line.strip() or not lines[number + 1].strip() or len(line) > MAX_SPEAKER_LINE_CHARS:
            continue
        below_name = number > 0 and 0 < len(lines[number - 1].split()) <= MAX_LABEL_WORDS
        if _SPEAKER.match(line) or (below_name and _TIME_ALONE.match(line)):
            found.append(number)
            break
    found += [number for number, line in enumerate(lines) if _NICK.match(line)][:1]
    spoken = [(number, label) for number, line in enumerate(lines) if (label := _label(line))]
    counts = Counter(label for _, label in spoken)
    if len(counts) > 1 and len(spoken) > len(counts):
        found.append(spoken[0][0])
    return min(found, default=len(lines))


def _is_sure(stamp: re.Match[str]) -> bool:
    """Whether one such line is of a chat: "10:30 standup: we talked" is none."""
    return bool(stamp["date"] or (stamp["opens"] and stamp["shuts"]) or "<" in stamp[0])
