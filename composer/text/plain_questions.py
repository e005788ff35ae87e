"""Plain questions, which name no subject to search for: "what did I miss?", "list the decisions". Pure.

Which kind a question is, is judged by examples in many languages (plain_questions.txt). What it says besides, such as
"the launch" in "what did we decide about the launch?", is its topic.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from composer.text.dates.tongue_words import COMMON, TONGUE_WORDS
from composer.text.examples import NONE, examples
from composer.text.terms import terms
from composer.text.wishes import asks_for_reminder

MAX_PLAIN_CHARS: Final = 200  # of a question that is looked at; a plain one is short
MIN_PLAIN_WORDS: Final = 2  # of a question that is no example: one word says too little
MIN_SAID_MARGIN: Final = -4.0  # from which a question may ask what somebody said, if it names somebody
MIN_NAMED_MARGIN: Final = -1.5  # from which it asks that, once it is known that somebody is named
MAX_TOPIC_SHARE: Final = 0.34  # of the words of a question that asks for a list, whatever its topic
SAME_WORD: Final = 0.8  # of the letters of a word, which its other forms begin with
MIN_SAME_CHARS: Final = 4  # that these are at least
QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f", "\u037e")
_LOGOGRAPHIC: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_FILE: Final = "plain_questions.txt"


class Plain(StrEnum):
    """What a plain question asks for."""

    MISSED = "missed"  # what others said since one last wrote
    ME = "me"  # what is known about the asker
    DECISIONS = "decisions"
    SAID = "said"  # what somebody said
    SUMMARY = "summary"  # of a time or a room
    TASKS = "tasks"
    QUESTIONS = "questions"  # that are open
    REMINDERS = "reminders"


_WITH_TOPIC: Final = (Plain.SAID, Plain.DECISIONS, Plain.SUMMARY)  # a topic is searched for as in any question


def plain_kind(question: str) -> Plain | None:
    """What a question asks for, if it is a plain one; SAID only where somebody is named, which the caller knows."""
    if len(question) > MAX_PLAIN_CHARS or asks_for_reminder(question):
        return None
    if (known := examples(_FILE).kind_of_example(question)) is not None:
        return None if known == NONE else Plain(known)
    if len(question.split()) < MIN_PLAIN_WORDS and not _LOGOGRAPHIC.search(question):
        return None
    found = _margins(question)
    best = max(found, key=lambda kind: (found[kind], kind), default=None)
    if best is None or found[best] <= 0:
        return None
    return Plain(best) if best in _WITH_TOPIC or _topic_share(question) <= MAX_TOPIC_SHARE else None


def is_example(question: str) -> bool:
    """Whether a question has the words of an example."""
    return len(question) <= MAX_PLAIN_CHARS and examples(_FILE).kind_of_example(question) is not None


def may_ask_what_was_said(question: str) -> bool:
    """Whether a question may ask what somebody said or thinks, or what is known about them: whom it names is worth
    looking up."""
    found = _margins(question)
    return bool(found) and (found[Plain.SAID] >= MIN_SAID_MARGIN or found[Plain.ME] >= MIN_NAMED_MARGIN)


def asks_what_was_said(question: str) -> bool:
    """Whether a question about somebody, without their name, asks what they said: less has to speak for it then."""
    found = _margins(question)
    return bool(found) and found[Plain.SAID] >= max(MIN_NAMED_MARGIN, *found.values())


def topic_terms(question: str) -> set[str]:
    """The search terms of a question that no example of a plain question has, nor a form of the same word."""
    return {term for term in terms(question[:MAX_PLAIN_CHARS]) if not _is_frame(term)}


def _topic_share(question: str) -> float:
    """The share of a question's words that no example has: nearly all where there are none of its language."""
    parts = [part for word in question.split() for part in terms(word) or [""]]
    return sum(part != "" and not _is_frame(part) for part in parts) / max(len(parts), 1)


def _is_frame(term: str) -> bool:
    frame = _frame()
    if term in frame.terms:
        return True
    if _LOGOGRAPHIC.search(term):  # no word has an end here, so letters count
        return any(char in frame.letters for char in term)
    same = int(len(term) * SAME_WORD)
    return same >= MIN_SAME_CHARS and term[:same] in frame.beginnings


def _margins(question: str) -> dict[str, float]:
    return {} if len(question) > MAX_PLAIN_CHARS else examples(_FILE).margins(question)


@dataclass(frozen=True, slots=True)
class _Frame:
    """What the examples say: the kind of question, and not what about. Their terms, the beginnings of these, and their
    letters in scripts without a bound between words, or with endings for everything."""

    terms: frozenset[str]
    beginnings: frozenset[str]
    letters: frozenset[str]


@cache
def _frame() -> _Frame:
    sentences = [sentence for kind, sentence in examples(_FILE).sentences if kind != NONE]
    common = [words[COMMON].replace("|", " ") for words in TONGUE_WORDS.values() if COMMON in words]
    known = frozenset(term for text in (*sentences, *common) for term in terms(text))
    beginnings = {term[: int(len(term) * SAME_WORD)] for term in known}
    letters = {char for text in sentences for char in text if _LOGOGRAPHIC.match(char)}
    return _Frame(known, frozenset(each for each in beginnings if len(each) >= MIN_SAME_CHARS), frozenset(letters))
