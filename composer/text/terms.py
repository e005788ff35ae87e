"""Terms of the word index, and sentences. Pure: the same text gives the same result in every process."""

import re
import threading
import unicodedata
from collections.abc import Collection, Iterator
from typing import Final

import Stemmer

from composer.text.cleaning import normalised

MAX_TERM_CHARS: Final = 64
MAX_TERMS: Final = 2000  # of one text, where nothing else is said
MAX_INDEXED_CHARS: Final = 120_000  # the rest of a longer text is ignored
MAX_QUERY_TERMS: Final = 32
MAX_TERM_NAME_CHARS: Final = 80  # of a name in a mention

_STOP = """
a about after again all also am an and any are aren as at be because been before being both but by can could couldn
d did didn do does doesn doing don down each few for from further get got had hadn has hasn have haven having he her
here hers him his how http https i if in into is isn it its just ll m me more most my no nor not now of off on once
only or other our out over own re s same shall she should shouldn so some such t than that the their them then there
these they this those through to too under until up us ve very was wasn we were weren what when where which while
who whom whose why will with won would wouldn www you your yours
"""
STOP_WORDS = frozenset(_STOP.split())

_COMBINING = re.compile("[\u0300-\u036f]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_CONTRACTION = re.compile(r"(?<=\w)['\u2019](?:s|t|d|m|re|ve|ll)\b")
# A word, or words joined by one punctuation mark: foo_bar, v2.6.8, a@b.org, src/app.py, C++.
_COMPOUND = re.compile(r"\w+(?:[.@/:\-]\w+)*(?:\+\+|#(?!\w))?")
_PART = re.compile(r"[^\W_]+")
_MENTION = re.compile(r"<@!?[^<>\s]+>|(?<![\w.])@[\w.\-]+")
_AT = re.compile(r"(?<!\w)@(?=\w)")
_EVERYBODY = ("channel", "here", "everyone")  # as chat platforms mention all who are in a room
# Scripts without spaces between words; indexed by pairs of characters.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+")

# Possessive, and only from the beginning of a run of marks, so that a run is read once: 15,000 dots took 7 seconds.
_SENTENCE_END = re.compile(r"(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019)\]]*+(?=\s+\S)|[\u3002\uff01\uff1f]+")
MAX_ABBREVIATION: Final = 8  # characters that the next pattern looks at, the one before the word included
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|cf|vs|approx|mr|mrs|ms|dr|[a-z])\.$", re.IGNORECASE)
_FENCE = re.compile(r"(```.*?(?:```|\Z))", re.DOTALL)

_stemmers = threading.local()  # a Stemmer must not be used by two threads at once


def stem(word: str) -> str:
    """The stem of an English word (Snowball)."""
    stemmer: Stemmer.Stemmer | None = getattr(_stemmers, "english", None)
    if stemmer is None:
        stemmer = _stemmers.english = Stemmer.Stemmer("english", 0)  # without a cache, which would hold forgotten words
    return str(stemmer.stemWord(word))


def folded(text: str) -> str:
    """NFKC, case-folded, without the accents of Latin, Greek and Cyrillic letters."""
    decomposed = normalised(text, "NFKD").casefold()
    return unicodedata.normalize("NFC", _COMBINING.sub("", decomposed))


def _terms_of_part(part: str) -> Iterator[str]:
    if part in STOP_WORDS:
        return
    end = 0
    for unspaced in _UNSPACED.finditer(part):
        yield from _term_of_word(part[end : unspaced.start()])
        run, end = unspaced.group(), unspaced.end()
        yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
    yield from _term_of_word(part[end:])


def _term_of_word(word: str) -> Iterator[str]:
    if word and word not in STOP_WORDS:
        yield stem(word)[:MAX_TERM_CHARS] if word.isalpha() else word[:MAX_TERM_CHARS]


def _all_terms(text: str) -> Iterator[str]:
    plain = _CONTRACTION.sub("", _THOUSANDS.sub("", folded(text[:MAX_INDEXED_CHARS])))
    for compound in _COMPOUND.finditer(plain):
        whole = compound.group()
        parts = _PART.findall(whole)
        if parts != [whole] and parts:
            yield whole[:MAX_TERM_CHARS]
        for part in parts:
            yield from _terms_of_part(part)


def terms(text: str, limit: int = MAX_TERMS) -> list[str]:
    """The index terms of a text in their order, with repeats; at most `limit`, each of at most MAX_TERM_CHARS.

    English words are stemmed (Snowball) and stop words dropped. An identifier, number or file name gives a term for
    the whole and one for each part.
    """
    found: list[str] = []
    for term in _all_terms(text):
        found.append(term)
        if len(found) == limit:
            break
    return found


def query_terms(text: str, names: Collection[str]) -> list[str]:
    """The terms to search for: unique, longest first, then alphabetical, at most MAX_QUERY_TERMS.

    Mentions and the `names` of participants are left out: a name finds greetings, not evidence.
    """
    name_terms = {term for name in set(names) for term in terms(name)}
    wanted = set(terms(_MENTION.sub(" ", text[:MAX_INDEXED_CHARS]))) - name_terms
    return sorted(wanted, key=lambda term: (-len(term), term))[:MAX_QUERY_TERMS]


def with_plain_mentions(text: str, names: Collection[str]) -> str:
    """A question in which each mention (`@name`) is the name, as if it was typed, unless it is one of these `names` (of
    agents) or of everybody in a room. Only the text and the agents count: whether we know somebody of that name is
    nothing that the answer may depend on. A name is compared without regard to case, whole, and up to MAX_NAME_CHARS.
    """
    left_out = [name.casefold()[:MAX_TERM_NAME_CHARS] for name in (*names, *_EVERYBODY) if name.strip()]

    def plain(match: re.Match[str]) -> str:
        after = text[match.end() : match.end() + MAX_TERM_NAME_CHARS + 1].casefold()
        stays = any(after.startswith(name) and not after[len(name) : len(name) + 1].isalnum() for name in left_out)
        return match[0] if stays else ""

    return _AT.sub(plain, text)


def sentences(text: str) -> list[str]:
    """The sentences of a text, stripped, in their order. A line's end ends a sentence; a fenced code block is one."""
    found: list[str] = []
    for block in _FENCE.split(text):
        if block.startswith("```"):
            found.append(block.strip())
            continue
        for line in block.splitlines():
            found.extend(_line_sentences(line))
    return [sentence for sentence in found if sentence]


def _line_sentences(line: str) -> Iterator[str]:
    start, counted, ticks = 0, 0, 0  # backticks between `start` and `counted`
    for end in _SENTENCE_END.finditer(line):
        stop = end.end()
        ticks, counted = ticks + line.count("`", counted, stop), stop
        if _ABBREVIATION.search(line, max(start, stop - MAX_ABBREVIATION), stop) or ticks % 2:
            continue
        yield line[start:stop].strip()
        start, ticks = stop, 0
    yield line[start:].strip()
