"""A key and its value in one clause of a request, such as "the deploy day to Friday". Pure.

All words of the clause must be the key's or the value's: nothing that stands in it may be left out, or the clause might
say something else of them ("the owner is Bob" in "Mallory claims the owner is Bob"). The words that connect the two are
those of a few languages; a clause with others has no pair.
"""

import re
from collections.abc import Iterator
from typing import Final

from composer.text.own_words import MIN_QUOTED_WORDS, quotations
from composer.text.requests import opening, without_thanks

MAX_CLAUSE_CHARS: Final = 500
_PART: Final = re.compile(r"[^\W_]+")
_CONNECTING: Final = re.compile(
    r"(?:(?P<sets>\s{0,4}(?:=|\u2192|:(?=\s))|\s(?:to|auf)(?=[\s:=]))"
    r"|\s(?P<under>as|als|under|unter)(?=\s)"
    r"|\s(?P<tells>is|are|(?:should|must|will)\s{1,4}be|ist|sind|lautet|betr\u00e4gt|est|es|\u00e8|\u00e9|[\u2013\u2014-])(?=[\s:=]))"
    r"(?:\s{0,4}[:=](?=\s)|\s{1,4}(?:now|currently|jetzt|on|at|in|am|um|im)(?=\s)){0,3}",
    re.IGNORECASE,
)
# The verb of "dass der Code 4455 ist".
_VERB_LAST: Final = re.compile(r"\s(?:ist|sind|lautet|betr\u00e4gt)\s*\Z", re.IGNORECASE)
_SPACES: Final = re.compile(r"\s+")
_AND_NEXT: Final = re.compile(r",?\s(?:and|und|&)\s", re.IGNORECASE)
# Articles and the like, which a key may have or not.
_LITTLE: Final = """
the a an our my your its s of for in on at
der die das den dem des ein eine einen einem unser unsere unseren unserem mein meine meinen meinem von f\u00fcr im am
"""
_LITTLE_WORDS: Final = frozenset(_LITTLE.split())
_NAME_LIKE: Final = re.compile(
    r"[\w\s'\u2019./#&\"\u201c\u201d\u201e*`@+()-]*"
)  # "owner !" of "owner != Bob" names nothing
_LEADING: Final = " \t\r\n*`"
_TRAILING: Final = " \t\r\n.,;:!*`"
_QUOTATION_MARKS: Final = "\"'\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019\u201a"


def paired_value(clause: str, key: str, value: str) -> str | None:
    """The value in its own words, if the clause is this key and this value, with nothing but words between them that
    connect the two, and little ones (articles, "our", "of"). Case and punctuation don't count."""
    if len(clause) > MAX_CLAUSE_CHARS:
        return None
    for part in _parts(without_thanks(clause.rstrip(_TRAILING))):
        for named, said in _halves(part):
            if _joined(_PART.findall(said)) == _joined(_PART.findall(value)) != "" and _is_key(key, named):
                return _plain(said)
    return None


def _parts(clause: str) -> Iterator[str]:
    """The clause, and where it is a list of settings ("a to 1 and b to 2") each of them."""
    yield clause
    parts = [part[found.end :] if (found := opening(part, 0, len(part))) else part for part in _AND_NEXT.split(clause)]
    if len(parts) > 1 and all(
        [each["sets"] is not None for each in _CONNECTING.finditer(part)] == [True] for part in parts
    ):
        yield from parts


def _halves(part: str) -> Iterator[tuple[str, str]]:
    """What may be a key and a value: on either side of a word that connects them; with the verb at the end, or after a
    key of one word without any, of each gap."""
    quoted = list(quotations(part, MIN_QUOTED_WORDS))
    connecting = list(_CONNECTING.finditer(part))
    for each in connecting:
        if any(start < each.start() < end for start, end in quoted):
            continue
        halves = part[: each.start()], part[each.end() :]
        yield halves
        if each["under"]:  # "save 34 as the budget", "save the budget as 34"
            yield halves[::-1]
    last = _VERB_LAST.search(part)
    if last or not connecting:
        body = part[: last.start()] if last else part
        for gap in _SPACES.finditer(body):
            named = body[: gap.start()]
            if last or len([word for word in named.split() if word.casefold() not in _LITTLE_WORDS]) == 1:
                yield named, body[gap.end() :]


def _is_key(key: str, named: str) -> bool:
    """Whether a key is made of the words that name it. Their order, and little ones, don't count."""
    words, said = _content(key), _content(named)
    if not said or _NAME_LIKE.fullmatch(named) is None:
        return False
    return sorted(words) == sorted(said) or _joined(words) == _joined(said)


def _content(text: str) -> list[str]:
    return [word for word in map(str.casefold, _PART.findall(text)) if word not in _LITTLE_WORDS]


def _joined(words: list[str]) -> str:
    return "".join(words).casefold()


def _plain(said: str) -> str:
    """A value without what stands around it; of a sentence that is quoted, with its marks."""
    text = said.lstrip(_LEADING).rstrip(_TRAILING)
    inner = text.strip(_QUOTATION_MARKS)
    return text if len(inner.split()) >= MIN_QUOTED_WORDS or _joined(_PART.findall(inner)) == "" else inner
