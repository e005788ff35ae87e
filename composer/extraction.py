"""Memories from plain talk, by pattern: preferences, decisions and habits, as the speaker said them. Pure.

It is the extractor where no model is configured. It sees what a person wrote and nothing else: no
recalled text, no prompt, no answer of the agent.
"""

import re
from dataclasses import dataclass
from typing import Final

from composer.terms import sentences

LONGEST_TEXT: Final = 64 * 1024  # characters; of a longer text the end is looked at, where the conclusion stands
LONGEST_STATEMENT: Final = 500

_AP = r"['\u2019\u02bc\u2032`]"  # apostrophes as keyboards and phones make them
_I_AM = rf"(?:i{_AP}?m|i\s+am|we{_AP}?re|we\s+are)"
_I_WILL = rf"(?:i{_AP}ll|i\s+will|we{_AP}ll|we\s+will|let{_AP}?s)"
_PATTERNS: Final = {
    "preference": re.compile(
        rf"\b(?:(?:i|we)\s+(?:(?:really|much|strongly|always|would)\s+)*(?:prefer|like|love|enjoy|hate|dislike)\b"
        rf"|i{_AP}d\s+rather\b|(?:my|our)\s+(?:favou?rite|preferred)\b[^.!?]*\b(?:is|are)\b"
        rf"|{_I_AM}\s+(?:allergic\s+to|(?:a\s+)?(?:vegan|vegetarian)|fond\s+of|a\s+fan\s+of)\b"
        rf"|(?:i|we)\s+(?:can{_AP}t|cannot)\s+stand\b)",
        re.IGNORECASE,
    ),
    "decision": re.compile(
        rf"\b(?:(?:i|we)(?:{_AP}ve|\s+have)?\s+(?:decided|chose|chosen|agreed|settled|went|picked|opted)\b"
        rf"|{_I_WILL}\s+(?:use|go\s+with|adopt|switch\s+to|move\s+to|ship|stick\s+with|take)\b"
        rf"|{_I_AM}\s+going\s+(?:to\s+(?:use|adopt|switch|move|ship)|with)\b"
        rf"|(?:the\s+)?decision\s*(?::|is\b|was\b)|decided\s*:|it{_AP}?s\s+decided\b)",
        re.IGNORECASE,
    ),
    "habit": re.compile(
        r"\b(?:(?:i|we)\s+(?:usually|always|never|normally|typically|often|tend\s+to)\b"
        r"|every\s+(?:morning|evening|day|week|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\s*,?\s+(?:i|we)\b)",
        re.IGNORECASE,
    ),
}
_HYPOTHETICAL = re.compile(r"^\s*(?:if|unless|suppose|imagine|what\s+if|had|should)\b", re.IGNORECASE)
_REPORTED = re.compile(r"\b(?:he|she|they|someone|who|you)\s+(?:said|says|told|asked|wrote|thinks?)\b", re.IGNORECASE)
_QUOTED_LINE = re.compile(r"^\s*>.*$", re.MULTILINE)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_IN_QUOTES = re.compile(r"[\"“„«][^\"”“»\n]{0,400}[\"”“»]")
_UNSETTLED = re.compile(
    rf"\b(?:not\s+(?:decided|agreed|settled|chosen)|(?:have|has)n{_AP}?t|did\s*n{_AP}?t|do\s*n{_AP}?t\s+(?:know|think)"
    rf"|not\s+sure|maybe|perhaps|might)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """Something a person said of themselves or their team that is worth keeping. `kind` as in the patterns."""

    kind: str
    text: str


def extract(text: str) -> list[Statement]:
    """What is worth remembering of one message, in the order it was said, each sentence once.

    Questions, hypotheticals, what someone else is reported to have said, quotations and code don't count;
    neither do decisions that are denied or left open.
    """
    own_words = _IN_QUOTES.sub(" ", _QUOTED_LINE.sub(" ", _CODE.sub(" ", text[-LONGEST_TEXT:])))
    found: dict[str, Statement] = {}
    for sentence in sentences(own_words):
        words = " ".join(sentence.split())
        if not words or words.endswith("?") or _HYPOTHETICAL.search(words) or _REPORTED.search(words):
            continue
        kind = _kind(words)
        if kind is not None:
            found.setdefault(words.casefold(), Statement(kind, words[:LONGEST_STATEMENT]))
    return list(found.values())


def _kind(words: str) -> str | None:
    for kind, pattern in _PATTERNS.items():
        if pattern.search(words) and not (kind == "decision" and _UNSETTLED.search(words)):
            return kind
    return None
