"""From a question to the prompt that answers it: resolve the viewer, read the layers, pack.

Stores nothing but the compaction of a view that has become too long for a turn.
"""

import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

import structlog

from composer import visibility
from composer.errors import NotFound, Unavailable
from composer.layers import episodic, semantic, structured, working
from composer.layers.retrieval_settings import tuned
from composer.memory.index import embedding_text, without_mentions
from composer.model import Agent, Conversation, ConversationKind, Item, Message
from composer.ports import Compaction, Embedder, Store, Tokenizer, Transaction, Vectors, WorkingCache
from composer.prompt.packing import Prompt, PromptInput, pack, quoted
from composer.prompt.token_estimate import corrected, uncorrected
from composer.summaries.compaction import Compactor, Plan, View, compaction_item, current_view, plan
from composer.text.terms import query_terms, without_names
from composer.turn.timing import timed
from composer.visibility import AccessContext

logger = structlog.get_logger()

HEARD: Final = 10_000  # conversations of which is kept who spoke there


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
class _Heard:
    """Who spoke in a conversation's view when it was read last, and whether several talks were mixed there."""

    names: frozenset[str]
    busy: bool


@dataclass(frozen=True, slots=True)
class _Reading:
    """One moment of the store, read for one question: where it is asked, the right to read that conversation, the
    view of it, and the question's vector."""

    tx: Transaction
    access: AccessContext
    own: visibility.Readable
    window: working.Window
    vector: Vectors | None


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What a prompt is made from, the view of it, and what counts its tokens."""

    given: PromptInput
    view: View
    access: AccessContext
    tokenizer: Tokenizer

    def plan(self, *, requested: bool) -> Plan | None:
        """What of the view is to be compacted first."""
        given, conversation = self.given, self.access.conversation
        items = (*given.facts, *given.landmarks, *given.summaries)
        recall, at = given.recall_tokens, given.message.at
        return plan(conversation, given.agent, self.view, items, recall, at, self.tokenizer, requested=requested)


class Composer:
    """Composes prompts. Holds what it reads from, and of each conversation who was last heard there: a guess,
    checked in every turn, that decides nothing but when a question is embedded and how much is read at once."""

    def __init__(
        self,
        store: Store,
        cache: WorkingCache,
        embedder: Embedder,
        tokenizer: Callable[[Agent], Tokenizer],
        retrieval: Callable[[uuid.UUID], semantic.Retrieval],
        compactor: Compactor,
    ) -> None:
        self._store = store
        self._cache = cache
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._retrieval = retrieval
        self._compactor = compactor
        self._heard: dict[uuid.UUID, _Heard] = {}

    async def compose(self, question: Question, *, keep: bool = False) -> Composed:
        """The prompt that answers a question, from what its viewer may read at this moment.

        When its view must be compacted first, that is stored with `keep` (the turn itself), and else only shown.
        Raises NotFound when the asker may not be in the conversation: then nothing was read.
        """
        timings: dict[str, float] = {}
        gathered = await self._gather(question, timings)
        given, tokenizer = gathered.given, gathered.tokenizer
        due = gathered.plan(requested=False)
        if due is not None:
            with timed(timings, "compact"):
                made = await self._compact(due, tokenizer, keep=keep)
            if made is not None:
                given = replace(given, working=due.remaining, earlier=compaction_item(made, question.agent))
        with timed(timings, "pack"):
            prompt = pack(given, tokenizer)
        for note in prompt.notes:
            logger.warning("prompt.squeezed", conversation=str(question.conversation_id), note=note)
        return Composed(prompt, gathered.access.conversation, timings, uncorrected(tokenizer, prompt.tokens))

    async def compact(self, question: Question) -> Compaction | None:
        """Compact the view that an agent has where a question is asked, though it is not due; None when there is
        too little to compact. Raises as `compose`."""
        gathered = await self._gather(question, {})
        due = gathered.plan(requested=True)
        return None if due is None else await self._compact(due, gathered.tokenizer, keep=True)

    async def _compact(self, due: Plan, tokenizer: Tokenizer, *, keep: bool) -> Compaction | None:
        """Carry a plan out. It never fails a turn: without a compaction the prompt is packed as it is."""
        place = {"conversation": str(due.conversation.id), "agent": due.agent.slug}
        try:
            made = await self._compactor.compact(due, tokenizer, persist=keep)
        except Exception:
            logger.exception("compaction.failed", **place)
            return None
        if keep and made is not None:
            logger.info("compaction.made", **place, messages=made.messages, before=made.before, after=made.after)
        return made

    async def _gather(self, question: Question, timings: dict[str, float]) -> "_Gathered":
        """Everything that one prompt is made from, read as of one moment."""
        async with self._reading(question, timings) as reading:
            given, view = await self._read(question, reading, timings)
            tokenizer = self._tokenizer(question.agent)
            if not tokenizer.exact:
                counts = await reading.tx.turns.last_counts(reading.access.conversation, question.agent.model)
                tokenizer = corrected(tokenizer, *counts)
        return _Gathered(given, view, reading.access, tokenizer)

    async def recall(self, question: Question) -> list[Item]:
        """What is recalled about something, best first; unlike in a prompt, also what was said just now.

        Raises as `compose`.
        """
        asked = question.message
        async with self._reading(question, {}) as reading:
            tx, view = reading.tx, reading.window.recent
            speakers = _speakers(asked, view)
            access = _with_links(reading.access, await tx.doors.linked(speakers))
            readable = visibility.readable(access, speakers)
            retrieval = self._wanted(question, await tx.settings.all())
            query = _query(asked, view, reading.vector)
            return await semantic.read(tx.recall, readable, query, [asked], retrieval, asked.at)

    def _wanted(self, question: Question, settings: Mapping[str, str]) -> semantic.Retrieval:
        """How recall is done, as the tenant's admins have it at this moment."""
        retrieval = tuned(self._retrieval(question.tenant_id), settings)
        return retrieval if question.top_k is None else replace(retrieval, top_k=question.top_k)

    async def _read(self, question: Question, reading: _Reading, timings: dict[str, float]) -> tuple[PromptInput, View]:
        """The layers, in their order."""
        tx, own, window, asked = reading.tx, reading.own, reading.window, question.message
        view = window.recent
        with timed(timings, "episodic"):
            speakers = _speakers(asked, view)
            found = await episodic.read(tx.recall, own, reading.access.conversation, question.agent.id, asked, speakers)
        access, shown = _with_links(reading.access, found.linked), current_view(view, found.compaction)
        readable, retrieval = visibility.readable(access, speakers), self._wanted(question, found.settings)
        with timed(timings, "semantic"):
            query = _query(asked, view, reading.vector)
            in_view = [*(message for message, _ in window.talk), *shown.messages, asked]
            recall = await semantic.read(tx.recall, readable, query, in_view, retrieval, asked.at)
        with timed(timings, "structured"):
            facts, landmarks = await structured.read(tx.structured, readable, asked.at)
        given = PromptInput(
            question.agent,
            _header(access, asked, view),
            asked,
            [structured.fact_item(fact) for fact in facts],
            [structured.landmark_item(landmark) for landmark in landmarks],
            found.summaries,
            shown.messages,
            recall,
            retrieval.recall_tokens,
            None if shown.compaction is None else compaction_item(shown.compaction, question.agent),
            window.talk,
            window.among,
        )
        return given, shown

    @asynccontextmanager
    async def _reading(self, question: Question, timings: dict[str, float]) -> AsyncIterator[_Reading]:
        """The store as of one moment, with the question embedded before: no connection waits for the embedder.

        Names of who is in the talk are taken out of what is embedded, and they are known only once it is read: so
        the names heard last are taken, and where they are others by now (or none are known) it is done again.
        """
        asked, place = question.message, question.conversation_id
        heard = self._heard.get(place)
        while True:
            with timed(timings, "embed"):
                vector = None if heard is None else await self._vector(asked.text, {asked.author, *heard.names})
            async with self._store.transaction(question.tenant_id, snapshot=True) as tx:
                with timed(timings, "resolve"):
                    access, own = await _resolve(tx, question)
                with timed(timings, "working"):
                    busy = heard is not None and heard.busy
                    window = await working.read(tx.log, self._cache, own, access.conversation, asked, busy=busy)
                here = _Heard(frozenset(message.author for message in window.recent), window.among > 0)
                if heard is not None and here.names == heard.names:
                    self._hear(place, here)
                    yield _Reading(tx, access, own, window, vector)
                    return
            heard = self._hear(place, here)

    def _hear(self, place: uuid.UUID, here: _Heard) -> _Heard:
        """Keep what was heard in a conversation; that of the conversation asked longest ago goes."""
        self._heard.pop(place, None)
        if len(self._heard) >= HEARD:
            del self._heard[next(iter(self._heard))]
        self._heard[place] = here
        return here

    async def _vector(self, text: str, here: Collection[str]) -> Vectors | None:
        """The question's vector; None when the embedder does not answer: then words alone must do."""
        try:
            vector: Vectors = (await self._embedder.embed([without_names(embedding_text(text), here)]))[0]
        except Unavailable as error:
            logger.warning("embedder.unavailable", error=str(error))
            return None
        return vector


async def _resolve(tx: Transaction, question: Question) -> tuple[AccessContext, visibility.Readable]:
    """Where and for whom, as it is at this moment, and the right to read the conversation itself."""
    access = await tx.log.access_context(question.conversation_id, question.asker)
    if access is None:
        raise NotFound("There is no such conversation here.")
    return access, visibility.conversation_namespace(access)


def _with_links(access: AccessContext, linked: Mapping[uuid.UUID, tuple[uuid.UUID, ...]]) -> AccessContext:
    """The same, with the other users that the people in a room are; the asker's own are known already."""
    return access if access.conversation.user_id is not None else replace(access, linked={**linked, **access.linked})


def _query(asked: Message, view: Sequence[Message], vector: Vectors | None) -> semantic.Query:
    """What is searched for: the question without the names of who is here, which outrank what was said."""
    return semantic.Query(
        embedding_text(asked.text), vector, query_terms(without_mentions(asked.text), _names(asked, view))
    )


def _names(asked: Message, view: Sequence[Message]) -> set[str]:
    return {asked.author, *(message.author for message in view)}


def _speakers(asked: Message, view: Sequence[Message]) -> list[uuid.UUID]:
    """Who is mentioned in the question, then who speaks in or is mentioned in the view, latest first."""
    order = list(asked.mentions)
    for message in reversed(view):
        if message.user_id is not None:
            order.append(message.user_id)
        order.extend(message.mentions)
    return list(dict.fromkeys(order))


def _settled(view: Sequence[Message]) -> list[Message]:
    """The view up to its last whole step: what it says changes when the window moves, and not with every message."""
    return [m for m in view if m.seq <= view[-1].seq - view[-1].seq % working.STEP]


def _header(access: AccessContext, asked: Message, view: Sequence[Message]) -> str:
    """Where we are, who is here and the date; it changes seldom, so it stands near the beginning."""
    conversation, project = access.conversation, visibility.effective_project(access)
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
        speakers = sorted({quoted(m.author) for m in _settled(view) or (*view, asked) if not m.by_agent})
        lines.append(f"People in this talk: {', '.join(speakers)}.")
    lines.append(f"Today is {asked.at:%A, %Y-%m-%d}; times are UTC.")
    return "[CONTEXT]\n" + "\n".join(lines)
