"""What answers plain questions, which name no subject to search for: the latest of a kind, of somebody, of a time.

How a question is judged, in the order in which composer.turn.reading asks:
1. `kind_of`: what it seems to ask for, by examples in many languages; nothing for small talk.
2. `read_people`: whom it names, of those of whom the viewer may read something.
3. `kind_with`: without their names, a question about somebody asks what they said.
4. `has_topic`: what no example says is a subject, which is searched for as in any other question.
5. `read`: the list, from the same index and by the same judge of reading as recall.
"""

import re
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from composer.layers.ranking import asks_agent, is_question, unaddressed
from composer.layers.relevance import asks_nothing, asks_only_for_a_time
from composer.model import Item
from composer.repositories.recall import Recall
from composer.text.dates.vocabulary import Period
from composer.text.first_person import without_genitive
from composer.text.plain_questions import (
    MAX_PLAIN_CHARS,
    QUESTION_MARKS,
    Plain,
    asks_what_was_said,
    is_example,
    plain_kind,
    topic_terms,
)
from composer.text.terms import STOP_WORDS, terms
from composer.visibility import Readable

MAX_TALK: Final = 400  # of the latest messages, in which a last visit and open questions are looked for
FIRST_VISIT: Final = timedelta(days=7)  # what somebody missed who never wrote there
QUESTIONS_OF: Final = timedelta(days=14)
ANSWERED_WITHIN: Final = timedelta(hours=1)
MIN_STATEMENT_WORDS: Final = 3
MAX_NAMING_CHARS: Final = 500  # of a question, in which names are looked for
TIMES_TOP_K: Final = 3  # a list is longer than what is found for a subject; RECALL has a limit of its own
_DETAIL_OF: Final[Mapping[Plain, str]] = {Plain.DECISIONS: "decision", Plain.TASKS: "action item"}
# Asked for whatever else the question names; of the others, a topic is searched for instead.
_ALWAYS: Final = (Plain.MISSED, Plain.ME, Plain.TASKS, Plain.QUESTIONS)
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class PlainQuestion:
    """A question as a plain one. `kind`: None for any other, which names somebody. `own` are the accounts of the
    asker, `scope` what is missed or summed up: this room, or in a DM the rooms that it reads; `since` when the asker
    last wrote there. `people` are those whom it names and of whom the viewer may read. `bare`: it has no topic."""

    kind: Plain | None
    own: Sequence[uuid.UUID]
    scope: Readable
    since: datetime | None = None
    people: frozenset[uuid.UUID] = frozenset()
    bare: bool = False

    @property
    def lists_what_is_shown(self) -> bool:
        """Whether its list is whole, also where the prompt shows something of it elsewhere."""
        return self.kind in (Plain.ME, Plain.DECISIONS, Plain.TASKS, Plain.QUESTIONS)

    @property
    def lists(self) -> bool:
        """Whether it asks for a list."""
        return self.kind is not None and (self.bare or self.kind in _ALWAYS)


async def read_people(
    recall: Recall, readable: Readable, words: frozenset[str], until: datetime
) -> Mapping[uuid.UUID, str]:
    """The people whom these words of a question name, of whom the viewer may read something, with their names."""
    people = await recall.people(readable, words, until)
    matched = {user: frozenset(_WORD.findall(name.lower())) & words for user, name in people.items()}
    return {user: people[user] for user, own in matched.items() if not any(own < other for other in matched.values())}


def words_of_names(names: Collection[str], question: str) -> frozenset[str]:
    """The words of a question that are of one of some names, of a genitive ("Lenas Urlaub") with the name. One without
    its capital is so only where the name has none either ("will Mark mark it?"), or where the question has none but at
    its beginning and it is the name's first word.
    """
    words = _WORD.findall(question)
    careless = not any(word[0].isupper() for word in words[1:])
    found = set[str]()
    for parts in map(_WORD.findall, names):
        told = {part.lower(): part for part in reversed(parts)}
        for word in words:
            part = told.get(word.lower()) or told.get(without_genitive(word.lower()))
            if part and (word[0].isupper() or not part[0].isupper() or (careless and part == parts[0])):
                found.update([word] if word.lower() in told else [word, part])
    return frozenset(word for word in found if word.lower() in words_that_may_name(question))


def kind_of(question: str, agents: Collection[str]) -> Plain | None:
    """What a question asks for, if it is a plain one and no small talk; `agents` are the names of the agent."""
    small_talk = not is_example(question) and asks_nothing(question, agents)
    return None if small_talk else plain_kind(question)


def kind_with(people: Collection[str], question: str, kind: Plain | None) -> Plain | None:
    """What a question asks for that names these people; `kind` is what it seemed to ask for."""
    named = {word for name in people for word in _WORD.findall(name.casefold())}
    unnamed = _WORD.sub(lambda word: " " if word[0].casefold() in named else word[0], question)
    if people and (Plain.ME in (kind, plain_kind(unnamed)) or asks_what_was_said(unnamed)):
        return Plain.SAID  # what is known about somebody is what they said
    return None if kind is Plain.SAID else kind


def has_topic(question: str, names: Collection[str]) -> bool:
    """Whether a question says what it is about, besides a time and these `names`."""
    if len(question) > MAX_PLAIN_CHARS:
        return True
    words = [word for word in question.split() if not asks_only_for_a_time(word, names)]
    return bool(topic_terms(" ".join(words)) - {term for name in names for term in terms(name)})


async def last_visit(recall: Recall, scope: Readable, own: Collection[uuid.UUID], now: datetime) -> datetime:
    """When somebody last wrote there before others did; some days ago if they never did."""
    talk = await recall.latest(scope, ["episode"], MAX_TALK, [], now)
    others = False
    for item in talk:
        if item.user_id in own:
            if others:
                return item.at
        else:
            others = True
    return talk[-1].at if len(talk) == MAX_TALK else now - FIRST_VISIT


async def read(
    recall: Recall,
    readable: Readable,
    asked: PlainQuestion,
    spans: Sequence[Period],
    exclude: Sequence[uuid.UUID],
    now: datetime,
    limit: int,
    names: Collection[str],
) -> list[Item]:
    """What a plain question asks for of some times, in the order in which it matters. `names` are those of agents."""

    async def latest(
        scope: Readable, kinds: Sequence[str], *, details: Sequence[str] = (), authors: Collection[uuid.UUID] = ()
    ) -> list[Item]:
        found = list[Item]()
        for start, end in spans:
            found += await recall.latest(
                scope, kinds, limit, exclude, now, start, end, details=details, authors=authors
            )
        return [item for item in found if scope.admits(item)]

    match asked.kind:
        case Plain.MISSED | Plain.SUMMARY:
            told, said = await latest(asked.scope, ["summary"]), await latest(asked.scope, ["episode"])
            own = asked.own if asked.kind is Plain.MISSED else ()
            return [*told, *(item for item in said if item.user_id not in own and not _is_request(item, names))]
        case Plain.ME:
            stored = await latest(readable, ["memory"], authors=asked.own)
            said = await latest(readable, ["episode"], authors=asked.own)
            return [*stored, *(item for item in said if _is_statement(item, names))]
        case Plain.DECISIONS | Plain.TASKS:
            found = await latest(readable, ["memory"], details=[_DETAIL_OF[asked.kind]])
            own = asked.own if asked.kind is Plain.TASKS else ()
            return sorted(found, key=lambda item: item.user_id not in own)
        case Plain.QUESTIONS:
            since = max(spans[0][0], now - QUESTIONS_OF)
            talk = await recall.latest(readable, ["episode"], MAX_TALK, [], now, since)
            return list(_open_questions([item for item in talk if readable.admits(item)], names))
        case Plain.SAID:
            said = await latest(readable, ["episode", "memory"], authors=asked.people)
            return [item for item in said if not _is_request(item, names)]
    return []


def _is_statement(item: Item, names: Collection[str]) -> bool:
    is_long = len(item.text.split()) >= MIN_STATEMENT_WORDS
    return is_long and not is_question(item.text) and not _is_request(item, names)


def _is_request(item: Item, names: Collection[str]) -> bool:
    """Whether a message only asks an agent for something."""
    return item.kind == "episode" and (asks_agent(item, names) or plain_kind(unaddressed(item.text, names)) is not None)


def _open_questions(talk: Sequence[Item], names: Collection[str]) -> Iterator[Item]:
    """The questions of people that nobody else answered at once, latest first, of what was said, latest first."""
    after = dict[str, Item]()
    for item in talk:
        following = after.get(item.namespace)
        after[item.namespace] = item
        if not item.text.rstrip().endswith(QUESTION_MARKS) or asks_agent(item, names):
            continue
        answered = (
            following is not None
            and following.user_id != item.user_id
            and following.at - item.at <= ANSWERED_WITHIN
            and not is_question(following.text)
        )
        if not answered:
            yield item


def words_that_may_name(question: str) -> frozenset[str]:
    """The words of a question that may be of a name, in lower case, and without a genitive: "will" is one only where it
    is written as one."""
    words = _WORD.findall(question)
    found = [
        word.lower()
        for n, word in enumerate(words)
        if word.casefold() not in STOP_WORDS or (n > 0 and word[0].isupper() and not question.isupper())
    ]
    return frozenset((*found, *map(without_genitive, found)))
