"""A turn, from a stored message to a sent reply: the story of the product.

    resolve the viewer → read the layers → pack the prompt → ask the model → store the reply → send it

`compose` is the first half and stores nothing; `respond` is the whole.
"""

import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

import structlog

from composer import visibility
from composer.errors import NexusError, NotFound, Unavailable
from composer.estimate import corrected, uncorrected
from composer.index import searchable, searchable_words
from composer.layers import episodic, semantic, structured, working
from composer.model import Agent, Conversation, ConversationKind, Item, Message, Turn, Usage, derived_id
from composer.ports import (
    Answer,
    Appended,
    ChatModel,
    Clock,
    Embedder,
    Store,
    Tokenizer,
    Transaction,
    Vectors,
    WorkingCache,
)
from composer.prompt import Ingredients, Prompt, pack, quoted
from composer.terms import query_terms
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


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, or the sentence that says why there is none (`failed`). `key` makes sending idempotent."""

    key: uuid.UUID
    text: str
    turn: Turn
    to: str
    prompt: str | None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    failed: bool = False


class Delivery(Protocol):
    """The way back through the door that a message came in by."""

    async def piece(self, turn: Turn, text: str) -> None:
        """A piece of the answer as it streams in; may be shown at once, need not be."""
        ...

    async def send(self, reply: Reply) -> None:
        """The whole answer. Called again with the same key after a crash: show it once."""
        ...


class Responder:
    """Answers turns. Holds what it works with, and no state of its own."""

    def __init__(
        self,
        store: Store,
        cache: WorkingCache,
        embedder: Embedder,
        model: ChatModel,
        tokenizer: Callable[[Agent], Tokenizer],
        clock: Clock,
        retrieval: Callable[[uuid.UUID], semantic.Retrieval],
    ) -> None:
        self._store = store
        self._cache = cache
        self._embedder = embedder
        self._model = model
        self._tokenizer = tokenizer
        self._clock = clock
        self._retrieval = retrieval

    async def compose(self, question: Question) -> Composed:
        """The prompt that answers a question, from what its viewer may read at this moment.

        Raises NotFound when the asker may not be in the conversation: then nothing was read.
        """
        timings: dict[str, float] = {}
        with _timed(timings, "embed"):
            vector = await self._vector(question.message.text)
        async with self._store.transaction(question.tenant_id, snapshot=True) as tx:
            with _timed(timings, "resolve"):
                now, own = await _resolve(tx, question)
            given = await self._read(tx, question, now, own, vector, timings)
            tokenizer = self._tokenizer(question.agent)
            if not tokenizer.exact:
                counts = await tx.turns.last_counts(now.conversation, question.agent.model)
                tokenizer = corrected(tokenizer, *counts)
        with _timed(timings, "pack"):
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
        with _timed(timings, "working"):
            view = await working.read(tx.log, self._cache, own, now.conversation, asked)
            now = await _with_links(tx, now, asked, view)
        readable = visibility.readable(now, _speakers(asked, view))
        with _timed(timings, "episodic"):
            summaries = await episodic.read(tx.recall, own)
        with _timed(timings, "semantic"):
            query = _query(asked, view, vector)
            recall = await semantic.read(tx.recall, readable, query, [*view, asked], retrieval, asked.at)
        with _timed(timings, "structured"):
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

    async def respond(self, turn: Turn, agent: Agent, delivery: Delivery) -> None:
        """Answer a turn and deliver the answer, taking up where an earlier try was cut off.

        Whatever fails is told to the person in one sentence; only a database that is down leaves the turn
        queued (raises Unavailable), and it is answered when that is back.
        """
        async with self._store.transaction(turn.tenant_id, snapshot=True) as tx:
            stored = await tx.turns.get(turn.id)
            found = await tx.log.message(turn.message_id)
            earlier = None
            if stored is not None and stored.reply_id is not None:
                earlier = await tx.log.message(stored.reply_id)
        if stored is None or found is None or stored.state == "sent":
            return  # erased before it was answered, or done
        message = found[0]
        if stored.state == "answered":
            text = earlier[0].text if earlier is not None else stored.failure or ""
            reply = Reply(turn.id, text, turn, message.external_id, stored.prompt, failed=stored.failure is not None)
        else:
            answered = await self._answer(turn, agent, message, delivery)
            if answered is None:
                return  # erased while it was being answered, or answered by someone else
            reply = answered
        await delivery.send(reply)
        async with self._store.transaction(turn.tenant_id) as tx:
            await tx.turns.sent(turn.id, self._clock.now())

    async def _answer(self, turn: Turn, agent: Agent, message: Message, delivery: Delivery) -> Reply | None:
        started = time.perf_counter()
        composed: Composed | None = None
        usage, failure, text = Usage(), None, ""
        try:
            composed = await self.compose(_question(turn, agent, message))
            with _timed(composed.timings_ms, "model"):
                async for chunk in self._pieces(agent, composed.prompt, turn, delivery):
                    text, usage = text + chunk[0], chunk[1] or usage
        except NexusError as error:
            failure = str(error)
        except Exception:
            logger.exception("turn.failed", turn=str(turn.id), conversation=str(turn.conversation_id))
            failure = "Something went wrong while I was answering; it is in the log under this turn's id."
        timings = {} if composed is None else composed.timings_ms
        timings["total"] = _ms(started)
        prompt = None if composed is None else composed.prompt
        if not await self._store_answer(turn, agent, message, composed, failure or text, failure, usage, timings):
            return None
        shown = None if prompt is None else prompt.as_text()
        return Reply(turn.id, failure or text, turn, message.external_id, shown, timings, failure is not None)

    async def _pieces(
        self, agent: Agent, prompt: Prompt, turn: Turn, delivery: Delivery
    ) -> AsyncIterator[tuple[str, Usage | None]]:
        async for chunk in self._model.stream(agent, prompt.role_messages):
            if chunk.text:
                await delivery.piece(turn, chunk.text)
            yield chunk.text, chunk.usage

    async def _store_answer(
        self,
        turn: Turn,
        agent: Agent,
        message: Message,
        composed: Composed | None,
        text: str,
        failure: str | None,
        usage: Usage,
        timings: Mapping[str, float],
    ) -> bool:
        """The reply as a message of the log, with its prompt and what it was made from, in one transaction.

        False when the turn is not open any more: then nothing is stored, and nothing may be sent.
        """
        now = self._clock.now()
        prompt = None if composed is None else composed.prompt
        async with self._store.transaction(turn.tenant_id) as tx:
            row = (await tx.log.lock([turn.conversation_id]))[turn.conversation_id]
            reply = (
                None if failure else _reply_message(turn, agent, message, row.conversation, row.last_seq + 1, text, now)
            )
            answer = Answer(
                turn,
                None if prompt is None else prompt.as_text(),
                json.dumps(timings),
                agent.model,
                usage,
                now,
                reply,
                failure,
                () if prompt is None else _lineage(prompt, message),
                0 if composed is None else composed.counted_tokens,
            )
            first = await tx.turns.answer(answer)
            if first and reply is not None:
                await tx.log.append([(row.conversation.id, reply)], {row.conversation.id: 1}, indexed=True)
        if first and reply is not None:
            version = row.conversation.version
            try:
                await self._cache.append(
                    Appended(row.conversation.id, version, version + 1, () if reply.passing else (reply,))
                )
            except Unavailable:
                logger.warning("working.cache_unavailable", conversation=str(row.conversation.id))
        return first


REPLY_PREFIX: Final = "reply:"


def _reply_message(
    turn: Turn, agent: Agent, asked: Message, conversation: Conversation, seq: int, text: str, now: datetime
) -> Message:
    """The answer as part of the conversation's log: in the same run, with the same mark, as what it answers."""
    return Message(
        derived_id("reply", str(turn.id)),
        f"{REPLY_PREFIX}{asked.external_id}:{agent.slug}",
        seq,
        max(now, asked.at),
        conversation.user_id,
        turn.agent_id,
        agent.name,
        text,
        asked.run_id,
        asked.visibility,
        passing=asked.passing,
    )


def _question(turn: Turn, agent: Agent, message: Message) -> Question:
    if message.user_id is None:
        raise NotFound("An agent's own message is not answered.")
    return Question(turn.tenant_id, turn.conversation_id, message.user_id, agent, message)


def _lineage(prompt: Prompt, asked: Message) -> tuple[tuple[str, uuid.UUID], ...]:
    """Everything that stood in the prompt, as sources of the answer: what a forgotten word flowed into."""
    items = [item for section in prompt.sections for item in section.sources]
    return tuple(dict.fromkeys([("message", asked.id), *((item.kind, uuid.UUID(item.id)) for item in items)]))


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


@contextmanager
def _timed(timings: dict[str, float], name: str) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        timings[name] = _ms(started)


def _ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
