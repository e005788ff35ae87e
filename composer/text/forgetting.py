"""Whether a message asks in words to have what was said forgotten: "forget that", "please don't remember this". Pure.

By examples in fourteen languages (forgetting.txt): `said`, to forget what was said; `kept`, not to keep it; `all`; and
`around`, what may stand before and after; `verb`, how a word begins that each request has. Such a message is offered
the command, so a wrong yes costs a line and erases nothing. "Forget it" and "forget about that" say "never mind", and
"forget that meeting" names something else.
"""

import re
from enum import StrEnum
from functools import cache
from typing import Final

from composer.text.examples import NONE, SIGNS, WORD_OR_SIGN, Examples, examples, words_and_signs

MAX_WISH_CHARS: Final = 2_000  # of a message in which a request is looked for
MAX_REQUEST_CHARS: Final = 100  # of a sentence that asks for it
FEW_WORDS: Final = 2  # besides the request: more, and the message may speak of itself
MANY_WORDS: Final = 4  # before a request in the same sentence: fewer may say that somebody else asks for it
MIN_KNOWN_WORDS: Final = 0.8  # of the words of a request, which examples of it have
MIN_FORGETTING_MARGIN: Final = 1.0
_FILE: Final = "forgetting.txt"
_SAID, _KEPT, _ALL, _AROUND, _VERB = "said", "kept", "all", "around", "verb"
_ASKS: Final = (_SAID, _KEPT, _ALL)
_SENTENCE_END: Final = re.compile(r"[.!?;\n\u2026\u3002\uff01\uff1f\u061f]+")
_PART_BEGINS: Final = re.compile(r"[,(\u2013\u2014\u3001\uff0c]|\s-\s")
_SIGN: Final = re.compile(f"[{SIGNS}]")
_WORD: Final = re.compile(r"[^\W_]+")
_NAMED: Final = re.compile(r"@[\w.-]{1,80}|\bnexus\b")


class Forgetting(StrEnum):
    """What a message asks to forget: what was said before it, that or what the message says itself, or everything."""

    BEFORE = "before"
    THIS = "this"
    EVERYTHING = "everything"


def asked_to_forget(text: str) -> Forgetting | None:
    """What a message asks to forget; None if it asks for nothing of that."""
    said = _NAMED.sub(" ", text[:MAX_WISH_CHARS].casefold().replace("\u2019", "'"))
    others, asked = 0, False
    for sentence in _SENTENCE_END.split(said):
        kind, before = _request(sentence)
        if kind == _ALL:
            return Forgetting.EVERYTHING
        asked = asked or kind is not None
        others += len(words_and_signs(_bare(before if kind else sentence)))
    if not asked:
        return None
    return Forgetting.BEFORE if others <= FEW_WORDS else Forgetting.THIS


def _request(sentence: str) -> tuple[str | None, str]:
    """The kind of request that a sentence is, and what stands around it there."""
    words = " ".join(["", *_WORD.findall(sentence)])
    if not any(verb in words for verb in _verbs()):
        return None, ""
    known, whole = examples(_FILE), _bare(sentence)
    if len(whole) <= MAX_REQUEST_CHARS and (kind := _kind(known, sentence, whole)) is not None:
        return kind, ""
    first, colon, rest = sentence.partition(":")
    if colon and known.kind_of_example(_bare(first[:MAX_REQUEST_CHARS])) == _KEPT:
        return _KEPT, rest
    for begins in _PART_BEGINS.finditer(sentence):
        before, part = sentence[: begins.start()], sentence[begins.end() :]
        if len(part) > MAX_REQUEST_CHARS or len(words_and_signs(before)) < MANY_WORDS:
            continue
        if (kind := known.kind_of_example(_bare(part))) in _ASKS:
            return kind, before
    return None, ""


def _kind(known: Examples, sentence: str, bare: str) -> str | None:
    """The kind of an example in the same words, or that of examples which have nearly all of these words (all, for
    everything) and are most like the sentence; None where it has a word of those that ask for nothing."""
    same = known.kind_of_example(sentence) or known.kind_of_example(bare)
    if same is not None:
        return same if same in _ASKS else None
    words = set(words_and_signs(bare))
    margins = known.margins(bare) if len(words) > 1 else {}
    best = max(_ASKS, key=lambda kind: (margins.get(kind, 0.0), kind))
    unknown = words - known.words[best]
    most = 0.0 if best == _ALL else (1 - MIN_KNOWN_WORDS) * len(words)
    is_like = margins.get(best, 0.0) > MIN_FORGETTING_MARGIN and len(unknown) <= most
    return best if is_like and unknown.isdisjoint(known.words[NONE]) else None


def _bare(sentence: str) -> str:
    """A sentence without what may stand around a request."""
    spans = [found.span() for found in WORD_OR_SIGN.finditer(sentence)]
    words = tuple(sentence[start:end] for start, end in spans)
    while n := next((n for n in _lengths() if words[:n] in _around()), 0):
        words, spans = words[n:], spans[n:]
    while n := next((n for n in _lengths() if words[-n:] in _around()), 0):
        words, spans = words[:-n], spans[:-n]
    return sentence[spans[0][0] : spans[-1][1]] if spans else ""


@cache
def _around() -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(words_and_signs(text)) for kind, text in examples(_FILE).sentences if kind == _AROUND)


@cache
def _verbs() -> tuple[str, ...]:
    """The beginnings of the words, with the blank before them; signs have none."""
    verbs = (text for kind, text in examples(_FILE).sentences if kind == _VERB)
    return tuple(verb if _SIGN.match(verb) else f" {verb}" for verb in verbs)


@cache
def _lengths() -> tuple[int, ...]:
    """How many words what may stand around a request has, the most first."""
    return tuple(sorted({len(words) for words in _around()}, reverse=True))
