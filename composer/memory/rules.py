"""How a statement stands beside others: is it worth keeping, what does it repeat or replace, how long does it hold?

Pure, and told only what stands in the very scope (run, visibility, owner) that the statement is filed in: what
is remembered elsewhere can neither hide, merge nor supersede it.
"""

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.repositories.memories import StoredMemory
from composer.text.terms import terms

SAME: Final = 0.8  # share of terms in common above which two statements are one
ALIKE: Final = 0.5  # and above which one can supersede the other
# Cosine from which two statements may be one. Alone it can't tell a paraphrase from its opposite: with MiniLM "the old
# logo" and "the new logo" are at 0.95, "over coffee" and "better than coffee" at 0.94. So the words are looked at too.
PARAPHRASE: Final = 0.88
COVERED: Final = 2 / 3  # of the longer one's content that the shorter one must have
# Days that a kind is recalled after it was last stated; what is not here holds until it is superseded or forgotten.
LIFETIME_DAYS: Final = {"action item": 45, "habit": 365}
LONGEST_LIFE: Final = 4  # times its lifetime: stating a thing again lengthens it, once each time

_GREETING: Final = re.compile(
    r"^\W*(?:hi|hey|hello|hiya|yo|good\s+(?:morning|evening|night|day)|thanks?(?:\s+you)?|thx|ty|cheers|bye|goodbye|cya|see\s+(?:you|ya)"
    r"|lol|haha+|ok(?:ay)?|yes|yep|yeah|no|nope|sure|great|nice|cool|welcome|np|brb|gtg)\b(?:[\s,!.]+\w+){0,2}\W*$",
    re.IGNORECASE,
)
# What an extractor says of the talk itself, rather than of the world.
_OF_THE_TALK: Final = re.compile(
    r"\b(?:asked|asks|asking|wants?\s+to\s+know|wanted\s+to\s+know|wonders?|wondered|inquired?|greeted|greets|thanked|thanks\s+\w+"
    r"|said\s+(?:hi|hello|thanks|bye)|is\s+(?:chatting|online|typing|afk)|laughed|agreed\s+with\s+the\s+assistant)\b",
    re.IGNORECASE,
)
_EPHEMERAL: Final = re.compile(
    r"\b(?:right\s+now|at\s+the\s+moment|brb|afk|one\s+sec|a\s+sec(?:ond)?|in\s+a\s+(?:minute|moment|bit|sec)|lol|lmao|rofl)\b",
    re.IGNORECASE,
)
# What points at something that only the talk around it shows.
_POINTING: Final = re.compile(
    r"\b(?:this(?!\s+(?:week|month|year|quarter))|these|those|here)\b|\b(?:it|one)\s*[.!]*$"
    r"|\b(?:love|like|enjoy|hate)\s+(?:all\s+)?the\s+(?![A-Z])|\b(?:love|like|enjoy)\s+(?:it\s+)?when\b",
)
_POINTING_KINDS: Final = ("preference", "habit", "decision")
_FEELING: Final = re.compile(
    r"\b(?:always|never|often|usually)\s+(?:feel|felt|forget|get|do\s+(?:that|it)|seem)\b", re.IGNORECASE
)
# Words that carry a statement but say nothing by themselves.
_CARRYING: Final = """
prefer like love enjoy hate dislike rather would favourite favorite preferred decided decide decision agreed agree
chose chosen picked settled opted went usually always never normally typically often tend every really much also
just think guess thing things stuff something anything everything one ones good bad nice well way lot bit use go
user assistant says said will shall need needs must please todo action item got get try see look anymore longer
now actually instead ok okay yes yeah no
"""
_CARRIERS: Final = frozenset(term for line in _CARRYING.splitlines() for term in terms(line))
# Carriers that may still tell two statements apart: "the coffee is good", "the coffee is bad".
_TELLING: Final = frozenset(terms("good bad nice action item one ones user assistant yes yeah no see look try get now"))
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
# Words that say nothing alone, but turn a statement round: before a migration, or after it.
_TURNING: Final = re.compile(
    r"\b(?:before|after|above|below|under|down|off|out|until|since|against|without)\b", re.IGNORECASE
)
# Where it matters which is named first.
_COMPARING: Final = re.compile(
    r"\b(?:over|than|before|after|from|instead|rather|versus|vs|prefer\b.*\bto)\b", re.IGNORECASE
)
_PREFERRING: Final = re.compile(r"\b(?:over|than|instead\s+of)\b", re.IGNORECASE)
# "our launch is on Friday": what it is about, and what it says of that.
_COPULA: Final = re.compile(
    r"\b(?:is|are|was|will\s+be|equals?|moved\s+to|lives?\s+in|works?\s+(?:at|for|in|as)|becomes?|became)\b|[:=]",
    re.IGNORECASE,
)
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS: Final = tuple(name.lower() for name in calendar.month_name)[1:]
_VALUE: Final = re.compile(rf"\b(?:{'|'.join((*_WEEKDAYS, *_MONTHS))})s?\b|\b\d[\d.,:]*\w*\b", re.IGNORECASE)
_UNTIL: Final = re.compile(
    r"\b(?:until|till|by|before|due(?:\s+on)?|no\s+later\s+than|valid\s+(?:to|until|through)|expires?(?:\s+on)?)\s+(?:the\s+|this\s+|next\s+|end\s+of\s+)*"
    rf"(?P<when>today|tonight|tomorrow|eod|eow|week|month|year|\d{{4}}-\d{{2}}-\d{{2}}|{'|'.join(_WEEKDAYS)}|(?:{'|'.join(_MONTHS)})\b(?:\s+\d{{1,2}}\b)?)",
    re.IGNORECASE,
)
_DATED_KINDS: Final = ("action item", "fact", "decision")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a new statement: it is one with `same`; or it is new, outdates `replaces`, and is itself
    superseded by `replaced_by`, which was said later but read sooner."""

    same: StoredMemory | None = None
    replaces: tuple[StoredMemory, ...] = ()
    replaced_by: StoredMemory | None = None


def is_worth_storing(kind: str, text: str) -> bool:
    """The value gate: greetings, chatter of the moment, questions told again, and what names nothing are not kept."""
    words = text.strip()
    if not words or words.endswith("?") or _GREETING.match(words) or _OF_THE_TALK.search(words):
        return False
    if kind != "action item" and _EPHEMERAL.search(words):
        return False
    if kind in _POINTING_KINDS and (_POINTING.search(words) or _FEELING.search(words)):
        return False
    letters = sum(character.isalpha() for character in words)
    if letters * 2 < len(words.replace(" ", "")):
        return False
    return bool(_content(words))


def standing(kind: str, text: str, at: datetime, held: Sequence[StoredMemory]) -> Verdict:
    """How a statement said at `at` stands beside those of its own scope. The same for every order of `held`."""
    ordered = sorted(held, key=_said)
    for other in ordered:
        if _stood(other, at) and any(repeats(text, wording) for wording in other.wordings):
            return Verdict(same=other)
    standing_now = [other for other in ordered if other.until is None]
    against = [o for o in standing_now if any(contradicts(text, kind, wording, o.kind) for wording in o.wordings)]
    later = [other for other in against if other.at > at]
    return Verdict(None, tuple(other for other in against if other.at <= at), later[0] if later else None)


def merging(one: StoredMemory, alike: Sequence[tuple[StoredMemory, float]]) -> list[tuple[StoredMemory, StoredMemory]]:
    """Which statements become one, as (the one that goes, the one that stays), when `one` is held against those of
    its scope and kind that are near it by meaning, each with its cosine.

    The one said first stays, so that it does not matter which was indexed first: `one` goes into the earliest that
    it repeats in other words, or the later ones go into it. What had been superseded by then is not said again.
    """
    pairs = [other for other, cosine in alike if other.id != one.id and paraphrases(one.text, other.text, cosine)]
    ordered = sorted(pairs, key=_said)
    earlier = [other for other in ordered if _said(other) < _said(one) and _stood(other, one.at)]
    if earlier:
        return [(one, earlier[0])]
    return [(other, one) for other in ordered if _said(other) > _said(one) and _stood(one, other.at)]


def repeats(one: str, other: str) -> bool:
    """Whether two statements say the same: nearly the same terms, the same values, both or neither denied, and what
    is compared in the same order."""
    mine, theirs = set(terms(one)), set(terms(other))
    if _denied(one) != _denied(other) or _values(one) != _values(other) or _turned(one) != _turned(other):
        return False
    if " ".join(one.casefold().split()).rstrip(".! ") == " ".join(other.casefold().split()).rstrip(".! "):
        return True
    alike = bool(mine and theirs) and len(mine & theirs) / len(mine | theirs) >= SAME
    return alike and not _reversed(one, other)


def paraphrases(one: str, other: str, cosine: float) -> bool:
    """Whether two statements of one kind say the same in other words. Rather no than yes: what is merged is recalled
    in the words of one of them alone.

    They must be near by meaning, with the same values, denial, taste and turning words; nothing may stand in one in
    the place of something else in the other, and a little only may be said beside; and where things are compared
    they must come in the same order.
    """
    if cosine < PARAPHRASE or _denied(one) != _denied(other) or _values(one) != _values(other):
        return False
    if (_taste(one) < 0) != (_taste(other) < 0) or _turned(one) != _turned(other):
        return False
    mine, theirs = (set(terms(text)) - (_CARRIERS - _TELLING) for text in (one, other))
    less, more = sorted((mine, theirs), key=len)
    return bool(less) and less <= more and len(less) / len(more) >= COVERED and not _reversed(one, other)


def contradicts(one: str, kind: str, other: str, other_kind: str) -> bool:
    """Whether two statements about one thing can't both hold: one denies what the other says, gives it another
    value, or says that it has changed. When in doubt they both stand."""
    mine, theirs = _content(one), _content(other)
    if not mine or not theirs:
        return False
    alike = len(mine & theirs) / min(len(mine), len(theirs))
    if _denied(one) != _denied(other) and alike >= SAME:
        return True
    if kind != other_kind:
        return False
    if kind == "preference" and alike >= SAME and (_taste(one) * _taste(other) < 0 or _turned_round(one, other)):
        return True
    about, said = _parted(one)
    their_about, their_said = _parted(other)
    if about and about == their_about and said != their_said and not said & their_said:
        return True
    bare, their_bare = mine - _values(one), theirs - _values(other)
    valued = _values(one) and _values(other) and _values(one) != _values(other)
    if valued and bare and len(bare & their_bare) / max(len(bare), len(their_bare)) >= SAME:
        return True
    changed = _CHANGED.search(one) is not None or _CHANGED.search(other) is not None
    return changed and alike >= ALIKE


def ends(kind: str, text: str, at: datetime, stated: int = 1) -> datetime | None:
    """Until when a statement is recalled: as long as it says, else as its kind lasts, longer the more often it was
    stated. None: until something outdates it."""
    said = _UNTIL.search(text) if kind in _DATED_KINDS else None
    if said is not None:
        return _day_after(said.group("when").lower(), at)
    if kind not in LIFETIME_DAYS:
        return None
    return at + timedelta(days=LIFETIME_DAYS[kind] * min(max(stated, 1), LONGEST_LIFE))


def _said(held: StoredMemory) -> tuple[datetime, str]:
    return held.at, str(held.id)


def _stood(held: StoredMemory, at: datetime) -> bool:
    return held.until is None or at < held.until


def _day_after(when: str, at: datetime) -> datetime | None:
    """The end of the day that is named, seen from `at`: a dated statement is still of use on its last day."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if when in ("today", "tonight", "eod"):
        return day + timedelta(days=1)
    if when == "tomorrow":
        return day + timedelta(days=2)
    if when in ("week", "eow"):
        return day + timedelta(days=7 + (6 - day.weekday()) + 1)
    if when in ("month", "year"):
        return day + timedelta(days=62 if when == "month" else 731)
    if when in _WEEKDAYS:  # "next Friday" may mean the one after: so a week more
        return day + timedelta(days=(_WEEKDAYS.index(when) - day.weekday()) % 7 + 8)
    if when[:1].isdigit():
        try:
            return datetime.fromisoformat(when).replace(tzinfo=at.tzinfo) + timedelta(days=1)
        except ValueError:
            return None
    name, _, number = when.partition(" ")
    month = _MONTHS.index(name) + 1
    year = at.year + (month < at.month)
    last = calendar.monthrange(year, month)[1]
    date = min(int(number), last) if number.strip() and int(number) > 0 else last
    return day.replace(year=year, month=month, day=date) + timedelta(days=1)


def _content(text: str) -> set[str]:
    """The terms that say something, beside those that every statement of the kind has."""
    return set(terms(text)) - _CARRIERS


def _turned(text: str) -> set[str]:
    return {word.casefold() for word in _TURNING.findall(text)}


def _turned_round(one: str, other: str) -> bool:
    """Whether two preferences prefer the same things the other way round."""
    return bool(_PREFERRING.search(one) and _PREFERRING.search(other)) and _reversed(one, other)


def _reversed(one: str, other: str) -> bool:
    """Whether two texts compare the same things, in another order: tea over coffee, coffee over tea."""
    if _COMPARING.search(one) is None and _COMPARING.search(other) is None:
        return False
    shared = _content(one) & _content(other)
    mine, theirs = ([term for term in dict.fromkeys(terms(text)) if term in shared] for text in (one, other))
    return mine != theirs


def _values(text: str) -> set[str]:
    return {term for found in _VALUE.findall(text) for term in terms(found.rstrip(".,:"))}


def _denied(text: str) -> bool:
    """Whether it says that something is not, or is no more; "never" alone is how habits are told."""
    return bool(_ENDED.search(text) or _NEGATION.search(text))


def _taste(text: str) -> int:
    return (1 if _LIKED.search(text) else 0) - (1 if _DISLIKED.search(text) else 0)


def _parted(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a statement is about and what it says of that, each as terms; nothing where there is no such verb."""
    verb = _COPULA.search(text)
    if verb is None:
        return frozenset(), frozenset()
    about = set(terms(text[: verb.start()])) - {"decid", "agre", "actual", "now"}
    return frozenset(about), frozenset(set(terms(text[verb.end() :])) - {"now", "actual", "instead"})
