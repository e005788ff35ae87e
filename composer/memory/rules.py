"""Memory rules: which statements are worth storing, which repeat or supersede others, and when they expire. Pure.

A statement is only ever judged against memories of its own scope (namespace, visibility, owner), so that memories of
another scope can neither hide, merge nor supersede it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.memory.wording import content_terms, contradicts, paraphrases, repeats
from composer.repositories.memories import StoredMemory
from composer.text.dates.deadlines import deadline_end, named_deadline
from composer.text.terms import sentences

# Days after its last statement for which a memory of this kind is recalled; other kinds do not expire.
LIFETIME_DAYS: Final = {"action item": 45, "habit": 365}
MAX_LIFETIMES: Final = 4  # each statement of a memory adds one lifetime, up to so many

_GREETING: Final = re.compile(
    r"^\W*(?:hi|hey|hello|hiya|yo|good\s+(?:morning|evening|night|day)|thanks?(?:\s+you)?|thx|ty|cheers|bye|goodbye|cya|see\s+(?:you|ya)"
    r"|lol|haha+|ok(?:ay)?|yes|yep|yeah|no|nope|sure|great|nice|cool|welcome|np|brb|gtg)\b(?:[\s,!.]+\w+){0,2}\W*$",
    re.IGNORECASE,
)
# What an extractor says of the conversation itself: "alice asked when the launch is".
_ABOUT_CONVERSATION: Final = re.compile(
    r"\b(?:asked|asks|asking|wants?\s+to\s+know|wanted\s+to\s+know|wonders?|wondered|inquired?|greeted|greets|thanked|thanks\s+\w+"
    r"|said\s+(?:hi|hello|thanks|bye)|is\s+(?:chatting|online|typing|afk)|laughed|agreed\s+with\s+the\s+assistant)\b",
    re.IGNORECASE,
)
_MOMENTARY: Final = re.compile(
    r"\b(?:right\s+now|at\s+the\s+moment|brb|afk|one\s+sec|a\s+sec|in\s+a\s+(?:minute|moment|bit|sec)|lol|lmao|rofl)\b"
    r"|\ba\s+second(?=\s*(?:$|[.,;:!?])|\s+(?:and|before|i|let|please|pls|to|while)\b)",  # not "a second reviewer"
    re.IGNORECASE,
)
# References to something that only the surrounding messages show.
_DANGLING_REFERENCE: Final = re.compile(
    r"\b(?:this(?!\s+(?:week|month|year|quarter))|these|those|here)\b|\b(?:it|one)\s*[.!]*$"
    r"|\b(?:love|like|enjoy|hate)\s+(?:all\s+)?the\s+(?![A-Z])|\b(?:love|like|enjoy)\s+(?:it\s+)?when\b",
)
_FEELING: Final = re.compile(
    r"\b(?:always|never|often|usually)\s+(?:feel|felt|forget|get|do\s+(?:that|it)|seem)\b", re.IGNORECASE
)
_SELF_CONTAINED_KINDS: Final = ("preference", "habit", "decision")  # must make sense without their surroundings
_DATED_KINDS: Final = ("action item", "fact", "decision")  # a deadline that they name is when they expire


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to a new statement.

    With `same` it is merged into that memory. Otherwise it is stored, supersedes `replaces`, and is itself superseded
    by `replaced_by`, a memory that was stated later but stored earlier.
    """

    same: StoredMemory | None = None
    replaces: tuple[StoredMemory, ...] = ()
    replaced_by: StoredMemory | None = None


def is_worth_storing(kind: str, text: str) -> bool:
    """Whether a statement, or a sentence of it, is worth remembering: no greeting or question, nothing momentary,
    nothing without content."""
    return any(_is_worth_storing(kind, sentence) for sentence in sentences(text))


def _is_worth_storing(kind: str, words: str) -> bool:
    if words.endswith("?") or _GREETING.match(words) or _ABOUT_CONVERSATION.search(words):
        return False
    if kind != "action item" and _MOMENTARY.search(words):
        return False
    if kind in _SELF_CONTAINED_KINDS and (_DANGLING_REFERENCE.search(words) or _FEELING.search(words)):
        return False
    letters = sum(character.isalpha() for character in words)
    if letters * 2 < len(words.replace(" ", "")):
        return False
    return bool(content_terms(words))


def judge(kind: str, text: str, at: datetime, stored: Sequence[StoredMemory]) -> Verdict:
    """Judge a statement made at `at` against the stored memories of its scope. Their order does not matter."""
    ordered = sorted(stored, key=_chronological)
    for other in ordered:
        if _in_force(other, at) and any(repeats(text, wording) for wording in other.wordings):
            return Verdict(same=other)
    contradicted = [
        other
        for other in ordered
        if other.until is None and any(contradicts(text, kind, wording, other.kind) for wording in other.wordings)
    ]
    later = [other for other in contradicted if other.at > at]
    return Verdict(None, tuple(other for other in contradicted if other.at <= at), later[0] if later else None)


def paraphrase_merges(
    memory: StoredMemory, similar: Sequence[tuple[StoredMemory, float]]
) -> list[tuple[StoredMemory, StoredMemory]]:
    """The pairs of memories to merge, as (the one that is removed, the one that remains).

    `similar` are memories of the same scope and kind, each with its likeness to `memory`. The memory stated first
    remains, so that the order of indexing does not matter: `memory` is merged into the earliest one that it
    paraphrases, or else the later ones into it. A memory that was superseded by then is not merged.
    """
    paraphrased = [
        other for other, likeness in similar if other.id != memory.id and paraphrases(memory.text, other.text, likeness)
    ]
    ordered = sorted(paraphrased, key=_chronological)
    own = _chronological(memory)
    earlier = [other for other in ordered if _chronological(other) < own and _in_force(other, memory.at)]
    if earlier:
        return [(memory, earlier[0])]
    return [(other, memory) for other in ordered if _chronological(other) > own and _in_force(memory, other.at)]


def expiry_of(kind: str, text: str, at: datetime, stated: int = 1) -> datetime | None:
    """When a statement made at `at` expires: at the deadline that it names, or after the lifetime of its kind.

    `stated` is how often it was stated; each time adds a lifetime. None: it does not expire.
    """
    deadline = named_deadline(text) if kind in _DATED_KINDS else None
    if deadline is not None:
        return deadline_end(deadline, at)
    if kind not in LIFETIME_DAYS:
        return None
    return at + timedelta(days=LIFETIME_DAYS[kind] * min(max(stated, 1), MAX_LIFETIMES))


def _chronological(memory: StoredMemory) -> tuple[datetime, str]:
    return memory.at, str(memory.id)


def _in_force(memory: StoredMemory, at: datetime) -> bool:
    return memory.until is None or at < memory.until
