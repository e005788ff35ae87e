"""From a question to the prompt that answers it: resolve the viewer, read the layers, pack. Stores nothing."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from composer import visibility
from composer.errors import NotFound, Unavailable
from composer.estimate import corrected, uncorrected
from composer.index import searchable, searchable_words
from composer.layers import episodic, semantic, structured, working
from composer.model import Agent, Conversation, ConversationKind, Item, Message
from composer.ports import Embedder, Store, Tokenizer, Transaction, Vectors, WorkingCache
from composer.prompt import Ingredients, Prompt, pack, quoted
from composer.terms import query_terms
from composer.timing import timed
from composer.visibility import Circumstances

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be answered, where, for whom and by which agent. `message` need not be stored; what was said
    after it is not read."""

    tenant_id: uuid.UUID
    conversation_id: uuid.UUID
    asker: uuid.UUID
    agent: Agent
    message: Message
    top_k: int | None = None


@dataclass(frozen=True, slots=True)
class Composed:
    """A finished prompt, the conversation as it was resolved, how long each step took (ms), and the prompt's
    tokens before what the API said last time corrected the count."""

    prompt: Prompt
    conversation: Conversation
    timings_ms: dict[str, float]
    counted_tokens: int


class Composer:
    """Composes prompts. Holds what it reads from, and no state of its own."""

    def __init__(
        self,
        store: Store,
        cache: WorkingCache,
        embedder: Embedder,
        tokenizer: Callable[[Agent], Tokenizer],
        retrieval: Callable[[uuid.UUID], semantic.Retrieval],
    ) -> None:
        self._store = store
        self._cache = cache
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._retrieval = retrieval

    async def compose(self, question: Question) -> Composed:
        """The prompt that answers a question, from what its viewer may read at this moment.

        Raises NotFound when the asker may not be in the conversation: then nothing was read.
        """
        timings: dict[str, float] = {}
        with timed(timings, "embed"):
            vector = await self._vector(question.message.text)
        async with self._store.transaction(question.tenant_id, snapshot=True) as tx:
            with timed(timings, "resolve"):
                now, own = await _resolve(tx, question)
            given = await self._read(tx, question, now, own, vector, timings)
            tokenizer = self._tokenizer(question.agent)
            if not tokenizer.exact:
                counts = await tx.turns.last_counts(now.conversation, question.agent.model)
                tokenizer = corrected(tokenizer, *counts)
        with timed(timings, "pack"):
            prompt = pack(given, tokenizer)
        for note in prompt.notes:
            logger.warning("prompt.squeezed", conversation=str(question.conversation_id), note=note)
        return Composed(prompt, now.conversation, timings, uncorrected(tokenizer, prompt.tokens))

    async def recall(self, question: Question) -> list[Item]:
        """What is recalled about something, best first; unlike in a prompt, also what was said just now.

        Raises as `compose`.
        """
        vector, asked = await self._vector(question.message.text), question.message
        async with self._store.transaction(question.tenant_id, snapshot=True) as tx:
            now, own = await _resolve(tx, question)
            view = await working.read(tx.log, self._cache, own, now.conversation, asked)
            now = await _with_links(tx, now, asked, view)
            readable = visibility.readable(now, _speakers(asked, view))
            query, retrieval = _query(asked, view, vector), self._wanted(question)
            return await semantic.read(tx.recall, readable, query, [asked], retrieval, asked.at)

    def _wanted(self, question: Question) -> semantic.Retrieval:
        retrieval = self._retrieval(question.tenant_id)
        return retrieval if question.top_k is None else replace(retrieval, top_k=question.top_k)

    async def _read(
        self,
        tx: Transaction,
        question: Question,
        now: Circumstances,
        own: visibility.Readable,
        vector: Vectors | None,
        timings: dict[str, float],
    ) -> Ingredients:
        """The layers, in their order."""
        asked, retrieval = question.message, self._wanted(question)
        with timed(timings, "working"):
            view = await working.read(tx.log, self._cache, own, now.conversation, asked)
            now = await _with_links(tx, now, asked, view)
        readable = visibility.readable(now, _speakers(asked, view))
        with timed(timings, "episodic"):
            summaries = await episodic.read(tx.recall, own, asked.at)
        with timed(timings, "semantic"):
            query = _query(asked, view, vector)
            recall = await semantic.read(tx.recall, readable, query, [*view, asked], retrieval, asked.at)
        with timed(timings, "structured"):
            facts, landmarks = await structured.read(tx.structured, readable, asked.at)
            about = [person for person in _people(now, asked, view) if person is not None]
            names = await tx.log.names(about) if facts else {}
        return Ingredients(
            question.agent,
            _header(now, asked, view),
            asked,
            [structured.fact_item(fact, names) for fact in facts],
            [structured.landmark_item(landmark) for landmark in landmarks],
            summaries,
            view,
            recall,
            retrieval.recall_tokens,
        )

    async def _vector(self, text: str) -> Vectors | None:
        """The question's vector; None when the embedder does not answer: then words alone must do."""
        try:
            vector: Vectors = (await self._embedder.embed([searchable(text)]))[0]
        except Unavailable as error:
            logger.warning("embedder.unavailable", error=str(error))
            return None
        return vector


async def _resolve(tx: Transaction, question: Question) -> tuple[Circumstances, visibility.Readable]:
    """Where and for whom, as it is at this moment, and the right to read the conversation itself."""
    now = await tx.log.circumstances(question.conversation_id, question.asker)
    if now is None:
        raise NotFound("There is no such conversation here.")
    return now, visibility.own_run(now)


async def _with_links(tx: Transaction, now: Circumstances, asked: Message, view: Sequence[Message]) -> Circumstances:
    """The same, with the other users that the people in a room are; the asker's own are known already."""
    if now.conversation.user_id is not None:
        return now
    return replace(now, linked={**await tx.doors.linked(_speakers(asked, view)), **now.linked})


def _query(asked: Message, view: Sequence[Message], vector: Vectors | None) -> semantic.Query:
    """What is searched for: the question without the names of who is here, which outrank what was said."""
    here = [asked.author, *(message.author for message in view)]
    return semantic.Query(searchable(asked.text), vector, query_terms(searchable_words(asked.text), here))


def _speakers(asked: Message, view: Sequence[Message]) -> list[uuid.UUID]:
    """Who is mentioned in the question, then who speaks in or is mentioned in the view, latest first."""
    order = list(asked.mentions)
    for message in reversed(view):
        if message.user_id is not None:
            order.append(message.user_id)
        order.extend(message.mentions)
    return list(dict.fromkeys(order))


def _people(now: Circumstances, asked: Message, view: Sequence[Message]) -> list[uuid.UUID | None]:
    return [now.conversation.user_id, *visibility.people(now, _speakers(asked, view))]


def _header(now: Circumstances, asked: Message, view: Sequence[Message]) -> str:
    """Where we are, who is here and the date; it changes seldom, so it stands near the beginning."""
    conversation, project = now.conversation, visibility.effective_project(now)
    name = quoted(conversation.name)
    where = {
        ConversationKind.ROOM: f"the {'private ' if conversation.private else ''}room #{name}",
        ConversationKind.THREAD: f"a thread of the room #{name}",
        ConversationKind.DM: f"a private conversation with {quoted(asked.author)}",
        ConversationKind.SESSION: f"a private session of {quoted(asked.author)}",
    }[conversation.kind]
    lines = [f"You are in {where}."]
    if project is not None:
        lines.append(f"It belongs to the {'isolated ' if project.isolated else ''}project {quoted(project.slug)}.")
    if conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD):
        speakers = sorted({quoted(m.author) for m in (*view, asked) if not m.by_agent})
        lines.append(f"People in this talk: {', '.join(speakers)}.")
    lines.append(f"Today is {asked.at:%A, %Y-%m-%d}; times are UTC.")
    return "[CONTEXT]\n" + "\n".join(lines)
