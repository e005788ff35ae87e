"""Terms of the word index, and sentences. Pure: the same text gives the same result in every process."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final

from composer.text.cleaning import normalised
from composer.text.languages import MAX_WORDS_READ, function_words, language_of, stems

MAX_TERM_CHARS: Final = 64
MAX_TERMS: Final = 2000  # of one text, where nothing else is said
MAX_INDEXED_CHARS: Final = 120_000  # the rest of a longer text is ignored
MAX_QUERY_TERMS: Final = 32
MAX_TONGUE_CHARS: Final = 400  # by which it is told what a text is written in
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
# Accents, points and marks without which a word is spelt as well: of Latin, Greek and Cyrillic letters (but not the
# breve of a Cyrillic short i, a letter of its own), of Hebrew, Arabic and of Indian scripts (nukta); and joiners.
_LEFT_OUT = re.compile(
    "[\u0300-\u0305\u0307-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u093c\u09bc\u0a3c\u0abc\u0b3c\u200c-\u200f]|(?<!\u0438)\u0306"
)
# Letters that have two spellings, as one: of Latin letters, Arabic and Persian, and the digits of other scripts.
_ALIKE: Final = (
    str.maketrans(
        "\u0131\u0142\u00f8\u0111\u00f0\u0649\u06cc\u06a9\u0629\u0671\u06c1",
        "ilodd\u064a\u064a\u0643\u0647\u0627\u0647",
    )
    | {ord("\u00e6"): "ae", ord("\u0153"): "oe", ord("\u00fe"): "th"}
    | {
        zero + digit: str(digit)
        for zero in (0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50, 0xED0, 0x1040, 0x17E0)
        for digit in range(10)
    }
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_CONTRACTION = re.compile(r"(?<=\w)['\u2019](?:s|t|d|m|re|ve|ll)\b")
# Letters of scripts whose words hold vowel signs and marks, which are no letters by themselves, without their stops.
_MARKED: Final = (
    "\u0900-\u0963\u0966-\u096f\u0971-\u0df3\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f"
    "\u1780-\u17d3\u17d7\u17dc\u17dd\u17e0-\u17e9\u0f40-\u0f84\u07a6-\u07b0"
)
_LETTER: Final = rf"[\w{_MARKED}]"
# A word, or words joined by one punctuation mark: foo_bar, v2.6.8, a@b.org, src/app.py, C++.
_COMPOUND = re.compile(rf"{_LETTER}+(?:[.@/:\-]{_LETTER}+)*(?:\+\+|#(?!\w))?")
_PART = re.compile(rf"(?:[^\W_]|[{_MARKED}])+")
# The same for a text in ASCII, which takes half the time.
_ASCII_COMPOUND = re.compile(r"\w+(?:[.@/:\-]\w+)*(?:\+\+|#(?!\w))?", re.ASCII)
_ASCII_PART = re.compile(r"[^\W_]+", re.ASCII)
_MAY_BE_CAMEL = re.compile(r"[a-z][A-Z]")
_MAY_BE_GROUPED = re.compile(r"\d[. \u00a0\u202f]\d")
_CAMEL = re.compile(r"(?<![^\W_])[a-z]+(?:[A-Z][a-z]+)+(?![^\W_])")  # getUserName
_HUMP = re.compile(r"[A-Z]?[a-z]+")
_GROUPED = re.compile(r"(?<![\d.])\d{1,3}(?:[. \u00a0\u202f]\d{3})+(?![\d.])")  # 12.000 and 12 000 for 12000
_NOT_DIGIT = re.compile(r"\D")
_MENTION = re.compile(r"<@!?[^<>\s]+>|(?<![\w.])@[\w.\-]+")
_AT = re.compile(r"(?<!\w)@(?=\w)")
_EVERYBODY = ("channel", "here", "everyone")  # as chat platforms mention all who are in a room
# Scripts without spaces between words, indexed by pairs of characters: Chinese, Japanese, Thai, Lao, Khmer, Burmese.
_UNSPACED = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\U00020000-\U0003ffff]+"
)
# A Chinese character may be a word, but for those that only carry a sentence.
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_CARRYING: Final = frozenset(
    "\u7684\u4e86\u5417\u5462\u5427\u662f\u5728\u548c\u6211\u4f60\u4ed6\u5979\u5b83\u4eec\u4e2a\u8fd9\u90a3\u4e0d\u6709\u5c31\u90fd\u4e5f\u4ec0\u4e48\u8c01\u54ea"
    "\u5f88\u8981\u4f1a\u4e0e\u88ab\u628a\u5bf9\u4ece\u5230\u4e3a\u4ee5\u53ca\u4f55\u4eca\u4e00\u4e0a\u4e0b\u4e2d"
)
_HANGUL = re.compile("[\uac00-\ud7a3]+")
# What ends a Korean word of three syllables and more, and is no part of it; the longer ones first.
_PARTICLES = re.compile(
    "(?:\uc5d0\uc11c|\uc5d0\uac8c|\uc73c\ub85c|\ubd80\ud130|\uae4c\uc9c0|\ucc98\ub7fc|\ubcf4\ub2e4|\ud55c\ud14c|\ud558\uace0|\uc774\ub098|\uc785\ub2c8\ub2e4|"
    "\uc774\uc5d0\uc694|\uc608\uc694|\uc778\uac00\uc694|[\uc740\ub294\uc774\uac00\uc744\ub97c\uc758\uc5d0\ub85c\uc640\uacfc\ub3c4\ub9cc\uc694])\\Z"
)
_MIN_SYLLABLES: Final = 2  # of a Korean word without its particle

# Possessive, and only from the beginning of a run of marks, so that a run is read once: 15,000 dots took 7 seconds.
_SENTENCE_END = re.compile(r"(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019)\]]*+(?=\s+\S)|[\u3002\uff01\uff1f]+")
MAX_ABBREVIATION: Final = 8  # characters that the next pattern looks at, the one before the word included
# A word before a dot that ends no sentence: "12. Juni", "U.S.", "St. Gallen", and "Inc." before a small letter.
_ABBREVIATION = re.compile(
    r"(?:(?:^|[\s(])(?:e\.g|i\.e|etc|cf|vs|approx|mr|mrs|ms|dr|(?:[a-z]\.)*[a-z]|(?-i:[B-DF-HJ-NP-TV-XZ][b-df-hj-np-tv-xz]{1,2}))"
    r"|\s\d{1,2})\.$",
    re.IGNORECASE,
)
_MAY_GO_ON = re.compile(r"[\s(][A-Z]\w{1,2}\.$")
_FENCE = re.compile(r"(```.*?(?:```|\Z))", re.DOTALL)


def folded(text: str) -> str:
    """NFKC, case-folded, without the accents of Latin, Greek and Cyrillic letters."""
    decomposed = normalised(text, "NFKD").casefold()
    return unicodedata.normalize("NFC", _COMBINING.sub("", decomposed))


def _as_indexed(text: str) -> str:
    """NFKC, case-folded, without accents and marks that a word is spelt without as well, and with one spelling of
    letters and digits that have several."""
    decomposed = normalised(text, "NFKD").casefold()
    if decomposed.isascii():
        return decomposed
    return unicodedata.normalize("NFC", _LEFT_OUT.sub("", decomposed)).translate(_ALIKE)


def _terms_of_part(part: str, language: str, searched: bool) -> Iterator[str]:
    if part.isascii():
        yield from _terms_of_word(part, language, searched)
        return
    end = 0
    for run in _UNSPACED.finditer(part):
        yield from _terms_of_spaced(part[end : run.start()], language, searched)
        yield from _pairs(run.group())
        end = run.end()
    yield from _terms_of_spaced(part[end:], language, searched)


def _terms_of_spaced(part: str, language: str, searched: bool) -> Iterator[str]:
    """The terms of a part without unspaced runs: Korean is indexed by pairs as well, since words are joined."""
    end = 0
    for run in _HANGUL.finditer(part):
        yield from _terms_of_word(part[end : run.start()], language, searched)
        word, end = run.group(), run.end()
        without = _PARTICLES.sub("", word)
        yield from _pairs(without if len(without) >= _MIN_SYLLABLES else word)
    yield from _terms_of_word(part[end:], language, searched)


def _pairs(run: str) -> Iterator[str]:
    yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
    if len(run) > 1:
        yield from (sign for sign in _IDEOGRAPH.findall(run) if sign not in _CARRYING)


def _terms_of_word(word: str, language: str, searched: bool) -> Sequence[str]:
    if not word or word in STOP_WORDS:
        return ()
    if not word.isalpha() and word.isascii():
        return (word[:MAX_TERM_CHARS],)
    if searched and word in function_words().get(language, ()):
        return ()
    found = stems(word, language)[: 1 if searched and word < "\u0370" else None]
    return found if len(word) < MAX_TERM_CHARS // 2 else [each[:MAX_TERM_CHARS] for each in found]


def _all_terms(text: str, searched: bool) -> Iterator[str]:
    text = text[:MAX_INDEXED_CHARS]
    plain = _CONTRACTION.sub("", _THOUSANDS.sub("", _as_indexed(text)))
    compound_of, part_of = (_ASCII_COMPOUND, _ASCII_PART) if plain.isascii() else (_COMPOUND, _PART)
    compounds = compound_of.findall(plain)
    first = dict.fromkeys(compounds[:MAX_WORDS_READ])
    language = language_of({part for whole in first for part in part_of.findall(whole)}, STOP_WORDS)
    known = dict[str, Sequence[str]]()  # a word that stands there again is read once
    for whole in compounds:
        if (found := known.get(whole)) is None:
            parts = part_of.findall(whole)
            if parts != [whole] or not whole.isascii():
                if parts and parts != [whole]:
                    yield whole[:MAX_TERM_CHARS]
                for part in parts:
                    yield from _terms_of_part(part, language, searched)
                continue
            found = known[whole] = _terms_of_word(whole, language, searched)
        yield from found
    if _MAY_BE_GROUPED.search(plain):
        for grouped in _GROUPED.finditer(plain):
            yield _NOT_DIGIT.sub("", grouped.group())[:MAX_TERM_CHARS]
    if _MAY_BE_CAMEL.search(text):
        for camel in _CAMEL.finditer(text):
            for hump in _HUMP.findall(camel.group()):
                yield from _terms_of_word(hump.lower(), language, searched)


def tongue(text: str) -> str:
    """What a text is written in, as far as two texts can share words: a script or, among Latin letters, the language
    (English in doubt)."""
    beginning = text[:MAX_TONGUE_CHARS]
    if not beginning.isascii():
        letters = [letter for letter in beginning if letter.isalpha()]
        scripts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in letters if letter >= "\u0370")
        if 2 * scripts.total() >= len(letters) > 0:
            # Japanese is in three scripts, one of them that of Chinese.
            return "HIRAGANA" if scripts["HIRAGANA"] or scripts["KATAKANA"] else scripts.most_common(1)[0][0]
    plain = _CONTRACTION.sub("", _as_indexed(beginning))
    return language_of(set(_PART.findall(plain)), STOP_WORDS)


def terms(text: str, limit: int = MAX_TERMS, *, searched: bool = False) -> list[str]:
    """The index terms of a text in their order, with repeats; at most `limit`, each of at most MAX_TERM_CHARS.

    Words are stemmed as their script or the text's language asks for it (composer.text.languages), and English stop
    words dropped. An identifier, number or file name gives a term for the whole and one for each part. With `searched`
    they are those by which it is searched: of a word with several stems its own alone, and no common word of its
    language.
    """
    return list(islice(_all_terms(text, searched), limit)) if text.strip() else []


def query_terms(text: str, names: Collection[str]) -> list[str]:
    """The terms to search for: unique, longest first, then alphabetical, at most MAX_QUERY_TERMS.

    Mentions and the `names` of participants are left out: a name finds greetings, not evidence.
    """
    name_terms = {term for name in set(names) for term in terms(name)}
    wanted = set(terms(_MENTION.sub(" ", text[:MAX_INDEXED_CHARS]), searched=True)) - name_terms
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
        for line in filter(str.strip, block.splitlines()):
            found.extend(_line_sentences(line))
    return [sentence for sentence in found if sentence]


def _line_sentences(line: str) -> Iterator[str]:
    start, counted, ticks = 0, 0, 0  # backticks between `start` and `counted`
    for end in _SENTENCE_END.finditer(line):
        stop = end.end()
        ticks, counted = ticks + line.count("`", counted, stop), stop
        near = max(start, stop - MAX_ABBREVIATION)
        goes_on = line[stop : stop + 2].strip().islower() and _MAY_GO_ON.search(line, near, stop)
        if goes_on or _ABBREVIATION.search(line, near, stop) or ticks % 2:
            continue
        yield line[start:stop].strip()
        start, ticks = stop, 0
    yield line[start:].strip()
