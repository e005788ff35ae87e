"""Which sources of its prompt an answer is made of: those that it cites, and those that it says in other words.
Forgetting one of them retracts the answer (docs/decisions/0003)."""

import re
import uuid
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
import structlog

from composer.errors import BudgetUsedUp, Unavailable, for_operator
from composer.layers.relevance import is_small_talk
from composer.model import Agent, Item, Message, Turn
from composer.ports.models import MeteredEmbedder, UsageAccount, Vectors, WorkKind
from composer.prompt.sections import EARLIER, MESSAGE, RECALL, RELATED, TOOLS, Prompt
from composer.text.marks import marks_in, without_marks
from composer.text.plain_questions import QUESTION_MARKS
from composer.text.terms import sentences
from composer.text.work import CLEANED_PER_READ, off_loop

logger = structlog.get_logger()

# Likeness (Scale) of a sentence of an answer and a source, measured with minilm on answers in other words
# (tests/deep/integration/test_retracted_answers.py).
MIN_LIKENESS: Final = 0.3  # of a sentence alone, for being made of the source
MIN_LIKENESS_AFTER: Final = 0.36  # or after its question
RELIED_ON: Final = 0.45  # of the best score of what is recalled: an answer may rest on what fits as well as that
MIN_LIKENESS_OF_SMALL_TALK: Final = 0.5  # the same in the answer to small talk, which asks for nothing
MIN_OWN_LIKENESS: Final = 0.15  # of the sentence alone: else only its question is like the source
MIN_GAIN: Final = 0.05  # or what the sentence adds to the likeness of its question
UNSURE: Final = 0.06  # two sources that are nearly as near are both taken
# What an agent said, and an earlier question, are like an answer without being where it came from.
NO_STATEMENT: Final = 0.15
MAX_SENTENCES: Final = 40  # of one text that are compared one by one; the rest of it as a whole
MIN_CLAUSE_WORDS: Final = 3
SourceVectors: TypeAlias = Mapping[Hashable, Vectors]  # of sources, a row for each sentence
NOTHING_READ: Final[SourceVectors] = MappingProxyType({})
NOTHING_RETOLD: Final[Mapping[str, Collection[str]]] = MappingProxyType({})
MAX_ASKED_CHARS: Final = 400  # of a question, before a sentence of its answer: a longer one left no room for that
_WITHOUT_MENTION: Final = re.compile(r"(?<!\w)@\S+")
_CLAUSE_END: Final = re.compile(
    r"[;:,\u2014\u2013]\s|[\uff0c\uff1b\u3001]|\s[-\u2013\u2014]\s|\s(?:and|while|but|und|et|y|e|en|\u0438)\s"
)


def embedding_account(turn: Turn, agent: Agent, question: Message) -> UsageAccount:
    """For whom the sources of an answer are looked for."""
    return UsageAccount(turn.tenant_id, WorkKind.EMBEDDING, agent, turn.conversation_id, question.user_id)


class UsedSources:
    """Finds what answers are made of, with the embedder."""

    def __init__(self, embedder: MeteredEmbedder) -> None:
        self._embedder = embedder

    async def read(self, account: UsageAccount, prompt: Prompt, question: Message) -> SourceVectors:
        """What the sources of a prompt say, for `find`: while the model answers there is time for it. For an answer in
        the language of the question. Nothing where the embedder does not answer: `find` tries again."""
        items = [item for each in prompt.sections if each.name != MESSAGE for item in each.sources]
        try:
            return await self._vectors(account, items, NOTHING_READ, asked=_asked(question))
        except (Unavailable, BudgetUsedUp):
            return NOTHING_READ

    async def find(
        self,
        account: UsageAccount,
        prompt: Prompt,
        question: Message,
        answer: str,
        retold: Mapping[str, Collection[str]] = NOTHING_RETOLD,
        known: SourceVectors = NOTHING_READ,
    ) -> set[uuid.UUID]:
        """The ids of the items that an answer is made of. `retold` are those of which all that they were made of is in
        the prompt as well, with the ids of that: what is said once more comes from there, and from them only where it
        is like none of it, as in another language. `known` is what `read` has brought. Where the embedder does not
        answer, or its budget is used up: all that was chosen for the question."""
        sources = {item.id: item for each in prompt.sections if each.name != MESSAGE for item in each.sources}
        sources.pop(str(question.id), None)
        found = _cited(prompt, answer) & sources.keys()
        found |= {str(image.message.id) for image in prompt.images if image.message.id != question.id}  # in any words
        said = _sentences(without_marks(answer))
        stated = [item for item in sources.values() if found.isdisjoint(retold.get(item.id, ()))]
        if stated and said:
            try:
                found |= await self._said_in_other_words(account, prompt, question, said, stated, retold, known)
            except (Unavailable, BudgetUsedUp) as error:
                logger.warning("answer.sources_unknown", error=for_operator(error))
                found |= {item.id for item in _chosen(prompt)} & sources.keys()
        return {uuid.UUID(id) for id in found}

    async def _said_in_other_words(
        self,
        account: UsageAccount,
        prompt: Prompt,
        question: Message,
        said: Sequence[str],
        sources: Sequence[Item],
        retold: Mapping[str, Collection[str]],
        known: SourceVectors,
    ) -> set[str]:
        asked = _asked(question)
        # A sentence such as "She is, from December on" says what it does together with its question.
        clauses = [clause for sentence in said for clause in _clauses(sentence)]
        texts = [*said, *clauses, *(f"{asked} {sentence}" for sentence in said), asked]
        vectors = await self._embedder.embed(texts, account, compared=True)
        own, scale = await self._own(account, sources, known, asked), self._embedder.scale
        if not scale.compares(vectors, np.concatenate(own)):  # they are in several languages
            vectors = await self._embedder.embed(texts, account)
        if not scale.compares(vectors, np.concatenate(own)):  # the answer is in another one than all its sources
            own = await self._own(account, sources, NOTHING_READ)
        likeness = scale.compare(vectors, np.concatenate(own))
        borders = np.cumsum([len(each) for each in own])[:-1]
        by_source = np.stack([part.max(axis=1) for part in np.split(likeness, borders, axis=1)], axis=1)
        alone, of_question = by_source[: len(said) + len(clauses)], by_source[-1]
        # A clause is compared without the question, which is like the sources of the others.
        after = np.concatenate([by_source[len(alone) : -1], alone[len(said) :]])
        names = () if account.agent is None else (account.agent.name,)
        least = MIN_LIKENESS
        if is_small_talk(question.text, names) and not _is_question(question.text):  # "sure?" asks for something
            after, least = alone, MIN_LIKENESS_OF_SMALL_TALK

        def among(wanted: Collection[str]) -> set[str]:
            at = [n for n, item in enumerate(sources) if item.id in wanted]
            chosen = [sources[n] for n in at]
            return made_of(chosen, alone[:, at], after[:, at], of_question[at], least) if at else set()

        found = among({item.id for item in sources} - retold.keys())
        if repeated := {id for id, made in retold.items() if found.isdisjoint(made)}:
            found |= repeated & among({item.id for item in sources} - (retold.keys() - repeated))
        if least > MIN_LIKENESS:
            return found
        recalled = _best_recalled(prompt)
        if not found and len(recalled) == 1:  # then the answer rests on it alone, if its question is about it
            about = zip(sources, of_question, strict=True)
            found = recalled & {item.id for item, likeness in about if likeness >= MIN_LIKENESS}
        return found

    async def _own(
        self, account: UsageAccount, sources: Sequence[Item], known: SourceVectors, asked: str | None = None
    ) -> list[Vectors]:
        read = await self._vectors(account, sources, known, asked=asked)
        return [read[_said_by(item)] for item in sources]

    async def _vectors(
        self,
        account: UsageAccount,
        sources: Sequence[Item],
        known: SourceVectors,
        *,
        asked: str | None,
    ) -> SourceVectors:
        """The vectors of each source, a row for each of its units: to compare them with an answer in the language of
        what was `asked` or of one of them; without that, with any."""
        unread = {_said_by(item): item for item in sources if _said_by(item) not in known}
        if not unread:
            return known
        chars = sum(len(item.text) + sum(map(len, item.files)) for item in unread.values())
        units = await off_loop(chars // CLEANED_PER_READ, lambda: [_units(item) for item in unread.values()])
        texts = [*chain.from_iterable(units), *([asked] if asked else [])]
        vectors = (await self._embedder.embed(texts, account, compared=asked is not None))[: sum(map(len, units))]
        parts = np.split(vectors, np.cumsum([len(each) for each in units])[:-1])
        return {**known, **dict(zip(unread, parts, strict=True))}


def _asked(question: Message) -> str:
    return _WITHOUT_MENTION.sub(" ", question.text[: 2 * MAX_ASKED_CHARS]).strip()[:MAX_ASKED_CHARS]


def _best_recalled(prompt: Prompt) -> set[str]:
    """The ids of what fits the question best by far, of what is recalled."""
    items = [item for each in prompt.sections if each.name == RECALL for item in each.sources]
    best = max((item.score or 0.0 for item in items), default=0.0)
    return {item.id for item in items if (item.score or 0.0) >= RELIED_ON * best}


def made_of(
    sources: Sequence[Item], alone: Vectors, after: Vectors, question: Vectors, least: float = MIN_LIKENESS
) -> set[str]:
    """The ids of the sources that some sentence is made of. `alone` and `after` have a row for each sentence or clause,
    without and with its question, and a column for each source; `question` is the likeness of the question to each
    source, and `least` that of a sentence to what it is made of."""
    statements = np.array([not _is_no_statement(item) for item in sources])
    score = np.where(statements, np.maximum(alone, after), alone)
    nearest = np.where(statements, score, score - NO_STATEMENT).max(axis=1, keepdims=True)
    own = (alone >= MIN_OWN_LIKENESS) | (statements & (after - question >= MIN_GAIN))
    like = (alone >= least) | (statements & (after >= max(least, MIN_LIKENESS_AFTER)))
    taken = ((score >= nearest - UNSURE) & like & own).any(axis=0)
    return {item.id for item, is_taken in zip(sources, taken, strict=True) if is_taken}


def _is_no_statement(item: Item) -> bool:
    return item.by_agent or _is_question(item.text)


def _is_question(text: str) -> bool:
    return text.rstrip().endswith(QUESTION_MARKS)


def _cited(prompt: Prompt, answer: str) -> set[str]:
    """What an answer cites by marks: those of RECALL, and on from these what tools brought."""
    sections = {each.name: each.sources for each in prompt.sections}
    marked = [*sections.get(RECALL, ()), *sections.get(TOOLS, ())]
    by_mark = {f"s{number}": item.id for number, item in enumerate(marked, start=1)}
    return {by_mark[mark] for mark in marks_in(answer) if mark in by_mark}


def _chosen(prompt: Prompt) -> list[Item]:
    names = (RECALL, RELATED, TOOLS, EARLIER)
    return [item for section in prompt.sections if section.name in names for item in section.sources]


def _said_by(item: Item) -> Hashable:
    """What the units of a source depend on, and its id."""
    return item.id, item.text, item.files, item.author, item.by_agent


def _units(item: Item) -> list[str]:
    """The texts of a source that a sentence may be like: its sentences, each with who said it."""
    found = _sentences("\n".join((item.text, *item.files))) or [item.id]
    said_by = f"{item.author}: " if item.author and not item.by_agent else ""
    return [said_by + _WITHOUT_MENTION.sub(" ", each) for each in found]


def _clauses(sentence: str) -> list[str]:
    """The parts of a sentence that says several things, each of which may be of another source."""
    parts = [part.strip() for part in _CLAUSE_END.split(sentence)]
    return [part for part in parts if len(part.split()) >= MIN_CLAUSE_WORDS] if len(parts) > 1 else []


def _sentences(text: str) -> list[str]:
    found = sentences(text)
    return [*found[:MAX_SENTENCES], *filter(None, (" ".join(found[MAX_SENTENCES:]),))]
