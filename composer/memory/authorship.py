"""Whose statement a sentence is that a model wrote down: that of the author whose own words it says. Pure.

What is learnt together is of one author (composer/memory/learner.py), so a model that obeys a message can put nothing
into anybody else's mouth. Here is judged that it puts nothing new into the author's: most words of a statement, and
every number of it, are theirs. A statement without that support is dropped; its messages stay, and are recalled. One
that stands below the first lines of its messages waits for their author: it may be pasted, though nothing marks it.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from composer.memory.patterns import MAX_LEARNT_LINE_CHARS, MAX_PATTERN_STATEMENT_CHARS
from composer.model import Message, Visibility
from composer.ports.extraction import ExtractedStatement
from composer.text.for_oneself import is_for_oneself
from composer.text.own_words import by_place, own_words
from composer.text.terms import MAX_INDEXED_CHARS, sentences, terms

# Of the words of a statement besides its author's name. 95% of the statements that people wrote down of 943 things that
# somebody had said in the course of a conversation share so much with what that person said in it (LoCoMo).
MIN_SUPPORT: Final = 0.5
COMMON_PREFIX: Final = 5  # letters in which two forms of a word agree: prefer, preference
# That somebody says a thing is told by a summary alone. Nothing by which they would decide, agree or promise.
_TELLING: Final = frozenset(
    terms(
        "say said tell told mention express share ask explain discuss discussion talk conversation reply respond note "
        "add report describe state point emphasize inform speak spoke highlight"
    )
)
_RECKONED: Final = re.compile(r"\A(?:19|20)\d\d-[01]\d-[0-3]\d\Z")  # a day: models put it in place of "yesterday"


def in_own_words(messages: Sequence[Message]) -> list[Message]:
    """Those messages in which their senders say something themselves, with that alone, for all who read it there."""
    own = [replace(message, text=own_words(message.text)) for message in messages if may_learn_from(message)]
    return [message for message in own if message.text]


def may_learn_from(message: Message) -> bool:
    """Whether a message may be learnt from: where others read it, none that says that it is for its sender alone."""
    return message.visibility is Visibility.PRIVATE or not is_for_oneself(message.text)


def is_supported(statement: str, messages: Sequence[Message]) -> bool:
    """Whether messages of one author say what a statement says."""
    names = set(terms(" ".join({message.author for message in messages})))
    return support(words_of(*(message.text for message in messages)), statement, names) >= MIN_SUPPORT


def waiting(statements: Sequence[ExtractedStatement], messages: Sequence[Message]) -> list[ExtractedStatement]:
    """Statements of one author's messages, each with whether it waits for them: what stands below the first lines has
    at least as many words of it as these. Which of the messages state it, a model may say wrongly: all of them count.
    """
    firsts, rests = zip(*(by_place(message.text) for message in messages), strict=True)
    names = set(terms(" ".join({message.author for message in messages})))
    first, rest = words_of(*firsts), words_of(*rests)

    def waits(text: str) -> bool:
        return bool(rest) and support(rest, text, names) >= support(first, text, names)

    return [replace(each, waits=waits(each.text)) for each in statements]


def as_said(statements: Sequence[ExtractedStatement], messages: Sequence[Message]) -> list[ExtractedStatement]:
    """Statements of one author's messages; one that is a sentence of a line, a part of one that decides something, or a
    decision in other words than a line of several sentences, as the whole line: what stands beside it may be its
    condition, or take it back. A long line waits. Of one line a decision counts."""
    lines = [" ".join(line.split()) for message in messages for line in message.text.splitlines()]
    several = [line for line in lines if len(sentences(line)) > 1]
    words = {line: words_of(line) for line in several}
    names = set(terms(" ".join({message.author for message in messages})))
    found = dict[str, ExtractedStatement]()
    for each in statements:
        said = " ".join(each.text.split()).casefold().rstrip(".!")
        is_decision = each.kind == "decision"
        holds = [line for line in (lines if is_decision else several) if said in line.casefold()]
        if not holds and is_decision:
            shares = {line: support(own, each.text, names) for line, own in words.items()}
            best = max(shares.values(), default=0.0)
            holds = [line for line, share in shares.items() if share == best >= MIN_SUPPORT]
        if holds:
            waits = each.waits or len(holds[0]) > MAX_LEARNT_LINE_CHARS
            each = replace(each, text=holds[0][:MAX_PATTERN_STATEMENT_CHARS], waits=waits)
        if each.text not in found or is_decision:
            found[each.text] = each
    return list(found.values())


def words_of(*texts: str) -> frozenset[str]:
    """The words of texts, as `support` compares them: each as it stands, and by its beginning."""
    said = set(chain.from_iterable(terms(text, MAX_INDEXED_CHARS) for text in texts))
    return frozenset(said | {_beginning(word) for word in said})


def support(said: Collection[str], statement: str, names: Collection[str] = ()) -> float:
    """The share of a statement's words that are said ones (of `words_of`); 0 where one of its numbers is none, unless
    it is of a day."""
    words = _content(statement, names)
    days = set(chain.from_iterable(terms(word) for word in words if _RECKONED.match(word)))
    words = [word for word in words if word not in days]
    if not words or any(_has_digit(word) and word not in said for word in words):
        return 0.0
    return sum(_beginning(word) in said for word in words) / len(words)


def _content(statement: str, names: Collection[str]) -> list[str]:
    """The words of a statement besides names and verbs of telling, each once."""
    return [word for word in dict.fromkeys(terms(statement)) if word not in names and word not in _TELLING]


def _beginning(word: str) -> str:
    return word[:COMMON_PREFIX] if word.isalpha() else word


def _has_digit(word: str) -> bool:
    return any(char.isdecimal() for char in word)
