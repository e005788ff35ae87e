"""Comparison of two statements by their wording: does one repeat, paraphrase or contradict the other? Pure.

When in doubt the answer is no, and both statements remain.
"""

import re
from typing import Final

from composer.text.dates.vocabulary import MONTHS, WEEKDAYS
from composer.text.terms import terms

SAME_SHARE: Final = 0.8  # share of common terms from which two statements are the same
RELATED_SHARE: Final = 0.5  # and from which a stated change makes one supersede the other
# Likeness from which two statements may be paraphrases. Alone it can't tell a paraphrase from its opposite: with MiniLM
# "the old logo" and "the new logo" are at 0.95, "over coffee" and "better than coffee" at 0.94. So the words count too.
PARAPHRASE_LIKENESS: Final = 0.88
COVERED_SHARE: Final = 2 / 3  # of the longer statement's terms, that a paraphrase must share

# Words that carry a statement but have no content of their own.
_CARRIER_WORDS: Final = """
prefer like love enjoy hate dislike rather would favourite favorite preferred decided decide decision agreed agree
chose chosen picked settled opted went usually always never normally typically often tend every really much also
just think guess thing things stuff something anything everything one ones good bad nice well way lot bit use go
user assistant says said will shall need needs must please todo action item got get try see look anymore longer
now actually instead ok okay yes yeah no
"""
_FILLER_TERMS: Final = frozenset(term for line in _CARRIER_WORDS.splitlines() for term in terms(line))
# Carriers that still distinguish two statements: "the coffee is good", "the coffee is bad".
_DISTINGUISHING: Final = frozenset(
    terms("good bad nice action item one ones user assistant yes yeah no see look try get now")
)
_NEGATION: Final = re.compile(
    r"\b(?:not|never|no|cannot|neither|nor|without)\b|n['\u2018\u2019\u02bc\u2032`\u00b4\uff07]t\b", re.IGNORECASE
)
_ENDED: Final = re.compile(r"\b(?:no\s+longer|any\s?more|not\s+any\s+longer|stopped|gave\s+up|quit)\b", re.IGNORECASE)
_CHANGED: Final = re.compile(
    r"\b(?:instead|from\s+now\s+on|changed\s+(?:my|our)\s+minds?|correction|switch(?:ed|ing)?\s+to|after\s+all)\b",
    re.IGNORECASE,
)
_LIKED: Final = re.compile(r"\b(?:prefer|like|love|enjoy|fond|fan)\b", re.IGNORECASE)
_DISLIKED: Final = re.compile(r"\b(?:hate|dislike|stand|avoid)\b", re.IGNORECASE)
# Words without content that reverse a statement: before a migration, after a migration.
_REVERSING: Final = re.compile(
    r"\b(?:before|after|above|below|under|down|off|out|until|since|against|without)\b", re.IGNORECASE
)
# Comparisons, in which the order of the two things matters.
_COMPARISON: Final = re.compile(r"\b(?:over|than|before|after|from|instead|rather|versus|vs)\b", re.IGNORECASE)
_PREFER: Final = re.compile(r"\bprefer\b", re.IGNORECASE)
_TO: Final = re.compile(r"\bto\b", re.IGNORECASE)
_PREFERENCE: Final = re.compile(r"\b(?:over|than|instead\s+of)\b", re.IGNORECASE)
# The verb between a subject and what is stated of it: "our launch is on Friday".
_COPULA: Final = re.compile(
    r"\b(?:is|are|was|will\s+be|equals?|moved\s+to|lives?\s+in|works?\s+(?:at|for|in|as)|becomes?|became)\b|[:=]",
    re.IGNORECASE,
)
# Weekdays, months and numbers.
_VALUE: Final = re.compile(rf"\b(?:{'|'.join((*WEEKDAYS, *MONTHS))})s?\b|\b\d[\d.,:]*\w*\b", re.IGNORECASE)


def content_terms(text: str) -> set[str]:
    """The terms of a statement without those that only carry it, such as "prefer" and "decided"."""
    return set(terms(text)) - _FILLER_TERMS


def repeats(one: str, other: str) -> bool:
    """Whether two statements say the same in nearly the same terms.

    Their values, negation and reversing words must be equal, and compared things must come in the same order.
    """
    mine, theirs = set(terms(one)), set(terms(other))
    if _is_negated(one) != _is_negated(other) or _values(one) != _values(other) or _reversing(one) != _reversing(other):
        return False
    if " ".join(one.casefold().split()).rstrip(".! ") == " ".join(other.casefold().split()).rstrip(".! "):
        return True
    similar = bool(mine and theirs) and len(mine & theirs) / len(mine | theirs) >= SAME_SHARE
    return similar and not _compare_reversed(one, other)


def paraphrases(one: str, other: str, likeness: float) -> bool:
    """Whether two statements of one kind say the same in other words. `likeness` is that of their vectors (Scale).

    Strict, since a merged statement is recalled in the words of one of the two alone. Values, negation, taste and
    reversing words must be equal. The terms of the shorter statement must all be in the longer one, which may add a
    third at most. Compared things must come in the same order.
    """
    if likeness < PARAPHRASE_LIKENESS or _is_negated(one) != _is_negated(other) or _values(one) != _values(other):
        return False
    if (_sentiment(one) < 0) != (_sentiment(other) < 0) or _reversing(one) != _reversing(other):
        return False
    mine, theirs = (set(terms(text)) - (_FILLER_TERMS - _DISTINGUISHING) for text in (one, other))
    shorter, longer = sorted((mine, theirs), key=len)
    covered = bool(shorter) and shorter <= longer and len(shorter) / len(longer) >= COVERED_SHARE
    return covered and not _compare_reversed(one, other)


def contradicts(one: str, kind: str, other: str, other_kind: str) -> bool:
    """Whether two statements about one thing can't both be true.

    One negates what the other states, gives it another value, states the opposite taste, or says that it changed.
    """
    mine, theirs = content_terms(one), content_terms(other)
    if not mine or not theirs:
        return False
    common = len(mine & theirs) / min(len(mine), len(theirs))
    if _is_negated(one) != _is_negated(other) and common >= SAME_SHARE:
        return True
    if kind != other_kind:
        return False
    opposite = _sentiment(one) * _sentiment(other) < 0 or _preferences_reversed(one, other)
    if kind == "preference" and common >= SAME_SHARE and opposite:
        return True
    if _same_subject_other_value(one, other):
        return True
    bare, their_bare = mine - _values(one), theirs - _values(other)
    valued = _values(one) and _values(other) and _values(one) != _values(other)
    if valued and bare and len(bare & their_bare) / max(len(bare), len(their_bare)) >= SAME_SHARE:
        return True
    changed = _CHANGED.search(one) is not None or _CHANGED.search(other) is not None
    return changed and common >= RELATED_SHARE


def _same_subject_other_value(one: str, other: str) -> bool:
    """Whether two statements say different things of the same subject: "the launch is on Friday", "… on Monday"."""
    subject, stated = _split_at_copula(one)
    other_subject, other_stated = _split_at_copula(other)
    return bool(subject) and subject == other_subject and stated != other_stated and not stated & other_stated


def _reversing(text: str) -> set[str]:
    return {word.casefold() for word in _REVERSING.findall(text)}


def _preferences_reversed(one: str, other: str) -> bool:
    """Whether two preferences rank the same things in the opposite order."""
    return bool(_PREFERENCE.search(one) and _PREFERENCE.search(other)) and _compare_reversed(one, other)


def _compare_reversed(one: str, other: str) -> bool:
    """Whether two texts compare the same things in another order: tea over coffee, coffee over tea."""
    if not _compares(one) and not _compares(other):
        return False
    shared = content_terms(one) & content_terms(other)
    mine, theirs = ([term for term in dict.fromkeys(terms(text)) if term in shared] for text in (one, other))
    return mine != theirs


def _compares(text: str) -> bool:
    """Whether a statement compares two things: tea over coffee, or "prefer tea to coffee"."""
    preferred = _PREFER.search(text)
    return _COMPARISON.search(text) is not None or (
        preferred is not None and _TO.search(text, preferred.end()) is not None
    )


def _values(text: str) -> set[str]:
    return {term for value in _VALUE.findall(text) for term in terms(value.rstrip(".,:"))}


def _is_negated(text: str) -> bool:
    """Whether a statement says that something is not so, or no longer so."""
    return bool(_ENDED.search(text) or _NEGATION.search(text))


def _sentiment(text: str) -> int:
    """1 for a liking, -1 for a dislike, 0 for neither or both."""
    return (1 if _LIKED.search(text) else 0) - (1 if _DISLIKED.search(text) else 0)


def _split_at_copula(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The terms of the subject, and of what is stated of it; both empty without such a verb."""
    verb = _COPULA.search(text)
    if verb is None:
        return frozenset(), frozenset()
    subject = set(terms(text[: verb.start()])) - {"decid", "agre", "actual", "now"}
    return frozenset(subject), frozenset(set(terms(text[verb.end() :])) - {"now", "actual", "instead"})
