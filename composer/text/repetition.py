"""Whether one text repeats words of another: a comparison made for erasure. Pure.

The index's terms leave out what nobody searches for (stop words, emoji, the end of a long text). A secret may be made
of just that, so here every character of a text counts.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from composer.text.cleaning import normalised
from composer.text.languages import stem
from composer.text.terms import STOP_WORDS, folded

PHRASE_WORDS: Final = 4  # stop words in a row that make a phrase: "not now, once again"
MAX_GAP: Final = 3  # characters between digits or letters that are spelled out: "4 7 1 1", "4 - 7"
MAX_SPELLED: Final = 64  # digits of a number that is also found where it is spelled out

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_CONTRACTION = re.compile(r"(?<=\w)['\u2019](?:s|t|d|m|re|ve|ll)\b")
# What phones and other keyboards type in place of ' " and -. Each is also one that is normalised to it.
_PLAIN = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u02bb\u02bc\u2032\u2039\u203a`\xb4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\xab\xbb", '"')
    | dict.fromkeys("\u2010\u2012\u2013\u2014\u2015\u2043\u2212\u05be", "-")
)
_HYPHENS = re.compile("-{2,}")  # phones make one dash of two
_SPACED_QUOTES = re.compile("(?<=[\u2039\xab])\\s++|(?<!\\s)\\s++(?=[\u203a\xbb])")  # French
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
# A word, or one character that is neither a word, space, punctuation nor a skin tone: an emoji or another symbol.
_TOKEN = re.compile("[^\\W_]+|[^\\w\\s!-~\u00a1-\u00bf\u2000-\u206f\u3000-\u303f\U0001f3fb-\U0001f3ff]")
# Scripts without spaces between words; compared by pairs of characters.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+")
_AROUND_UNSPACED = re.compile(f"({_UNSPACED.pattern})")
_NOT_IN_WORDS = re.compile(r"[\W_]")


def words_of(*texts: str) -> frozenset[str]:
    """Everything in these texts that another text may repeat.

    Words (stemmed; stop words left out), emoji, numbers and spelled-out words joined ("4 7 1 1" gives "4711"), and
    phrases of PHRASE_WORDS stop words. A text of at most that many stop words is a phrase as a whole.
    """
    return frozenset(word for text in texts for word in _words(text))


def matches(text: str, wanted: str) -> bool:
    """Whether a text contains `wanted` as whole words, whatever the case, Unicode form or spacing of either: "all" is
    not in "ball". Digits are also found where they are spelled out ("4 7 1 1"). Scripts without spaces between words
    are compared by characters."""
    plain, words = comparable(text), comparable(wanted)
    if not words:
        return False
    if words in plain and _bounded(words) in _bounded(plain):
        return True
    digits = _NOT_IN_WORDS.sub("", words)
    return digits.isdigit() and any(_spells(run, digits) for run in _runs(_tokens(plain)))


def comparable(text: str) -> str:
    """A text in one Unicode form, case and spacing, with plain quotes and hyphens, without invisible characters."""
    typed = _SPACED_QUOTES.sub("", text).translate(_PLAIN)
    folded_case = normalised(typed, "NFKC").casefold().translate(_PLAIN).replace("i\u0307", "i")  # of a capital İ
    return " ".join(_HYPHENS.sub("-", _INVISIBLE.sub("", folded_case)).split())


def _bounded(text: str) -> str:
    """A text with a NUL wherever a word may begin or end, so that whole words are found as a part of it."""
    return "".join(
        f"\0{after}" if _is_border(before, after) else after for before, after in zip(f" {text}", text, strict=False)
    ) + ("\0" if text else "")


def _is_border(before: str, after: str) -> bool:
    """Whether a word may begin or end between two characters: not within a word, nor before a combining mark."""
    if not after.isascii() and unicodedata.category(after).startswith("M"):
        return False
    if _UNSPACED.match(before) or _UNSPACED.match(after):
        return True
    return not (after.isalnum() and _in_word(before))


def _in_word(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char).startswith("M")


def _spells(run: Sequence[str], digits: str) -> bool:
    """Whether some tokens in a row, joined, are `digits`."""
    joined, borders = "".join(run), {0, *accumulate(map(len, run))}
    at = joined.find(digits) if len(digits) <= MAX_SPELLED else -1
    while at >= 0 and not (at in borders and at + len(digits) in borders):
        at = joined.find(digits, at + 1)
    return at >= 0


def _words(text: str) -> Iterator[str]:
    tokens = list(_tokens(_CONTRACTION.sub("", _THOUSANDS.sub("", _INVISIBLE.sub("", folded(text))))))
    yield from _joined(tokens)
    for token in {token for token, _, _ in tokens} - STOP_WORDS:
        yield from _parts(token)
    yield from _phrases([token for token, _, _ in tokens])


def _phrases(tokens: Sequence[str]) -> Iterator[str]:
    run: list[str] = []
    for token in tokens:
        run = [*run[1 - PHRASE_WORDS :], token] if token in STOP_WORDS else []
        if len(run) == PHRASE_WORDS:
            yield " ".join(run)
    if 0 < len(run) == len(tokens) < PHRASE_WORDS:
        yield " ".join(run)


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """The words and symbols of a text, each with its start and end."""
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token[0].isalnum() or unicodedata.category(token).startswith("So"):
            yield token, match.start(), match.end()


def _parts(token: str) -> Iterator[str]:
    if not _UNSPACED.search(token):
        yield stem(token) if token.isalpha() else token
        return
    for part in _AROUND_UNSPACED.split(token):
        if _UNSPACED.match(part):
            yield from (part[at : at + 2] for at in range(max(1, len(part) - 1)))
        elif part:
            yield stem(part) if part.isalpha() else part


def _joined(tokens: Iterable[tuple[str, int, int]]) -> Iterator[str]:
    """Numbers in a row, and single letters in a row, as one word each."""
    return map("".join, _runs(tokens))


def _runs(tokens: Iterable[tuple[str, int, int]]) -> Iterator[list[str]]:
    """Numbers in a row, and single letters in a row, of at least two characters."""
    run, kind, last = list[str](), "", 0
    for token, start, end in tokens:
        own = "digits" if token.isdigit() else "letters" if len(token) == 1 and token.isalpha() else ""
        if own and own == kind and start - last <= MAX_GAP:
            run.append(token)
        else:
            if sum(map(len, run)) > 1:
                yield run
            run, kind = ([token], own) if own else ([], "")
        last = end
    if sum(map(len, run)) > 1:
        yield run
