"""Compose the prompt that answers a question: resolve the viewer, read the layers, pack the prompt.

Composing stores nothing, except the compaction of a view that has outgrown the agent's context window.
"""

import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog
from cachetools import LRUCache

from composer import visibility
from composer.errors import NotFound, Unavailable, for_operator
from composer.layers import episodic, semantic, structured, working
from composer.layers.retrieval_settings import with_overrides
from composer.memory.index import embedding_text, without_mentions
from composer.model import Agent, Conversation, ConversationKind, Item, Message
from composer.ports.models import Embedder, Tokenizer, Vectors
from composer.ports.working_cache import WorkingCache
from composer.prompt.borders import came_from, profile_owners
from composer.prompt.budget import pack
from composer.prompt.sections import Prompt, PromptInput
from composer.prompt.token_estimate import corrected, uncorrected
from composer.repositories.compactions import Compaction
from composer.repositories.database import Database, Transaction
from composer.summaries.compaction import Compactor, Plan, View, compaction_item, current_view, plan
from composer.text.names import in_quotes
from composer.text.terms import query_terms, without_names
from composer.text.work import COUNTED_PER_READ, off_loop
from composer.turn.timing import timed
from composer.visibility import AccessContext, Readable, Tagged

logger = structlog.get_logger()

MAX_CACHED_CONVERSATIONS: Final = 10_000  # conversations
MAX_QUESTION_CHARS: Final = 20_000  # of a question, that search terms are taken from


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """A question to compose a prompt for: where it is asked, by whom, and which agent answers.

    `message` is the question; it need not be stored. Messages after it are not read. `top_k` overrides the tenant's
    setting.
    """

    tenant_id: uuid.UUID
    conversation_id: uuid.UUID
    asker: uuid.UUID
    agent: Agent
    message: Message
    top_k: int | None = None


@dataclass(frozen=True, slots=True)
class ComposedPrompt:
    """A finished prompt, the conversation it is for, and the time of each step (ms).

    `counted_tokens` is our own count, before it was corrected by what the API reported for the last prompt.
    `asker_users` are all the users that the asker is.
    """

    prompt: Prompt
    conversation: Conversation
    timings_ms: dict[str, float]
    counted_tokens: int
    asker_users: tuple[uuid.UUID, ...]


@dataclass(frozen=True, slots=True)
class _Participants:
    """Who spoke in a conversation's view when it was last read, and whether several discussions were mixed in it."""

    names: frozenset[str]
    busy: bool


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The database as of one moment, opened for one question.

    `own` reads this conversation's namespace and nothing else. `vector` is the question's embedding.
    """

    tx: Transaction
    access: AccessContext
    own: Readable
    window: working.Window
    vector: Vectors | None


@dataclass(frozen=True, slots=True)
class _Material:
    """What one prompt is made from, the view it shows, and the tokenizer that counts it."""

    prompt_input: PromptInput
    view: View
    access: AccessContext
    tokenizer: Tokenizer

    @property
    def chars(self) -> int:
        """How many characters may have to be counted."""
        given = self.prompt_input
        messages = (*given.working, *(message for message, _ in given.related), given.message)
        items = (*given.facts, *given.landmarks, *given.summaries, *given.recall)
        texts = [message.text for message in messages] + [item.text for item in items]
        texts += [attached.text for message in messages for attached in message.attachments]
        return sum(map(len, texts))

    def plan_compaction(self, *, requested: bool) -> Plan | None:
        """The part of the view to compact first; None when none is due. `requested`: a person asked for it."""
        given, conversation = self.prompt_input, self.access.conversation
        items = (*given.facts, *given.landmarks, *given.summaries)
        return plan(
            conversation,
            given.agent,
            self.view,
            items,
            given.recall_tokens,
            given.message.at,
            self.tokenizer,
            requested=requested,
        )


class Composer:
    """Composes prompts.

    It remembers who took part in each conversation the last time it was read. This is only a hint: every turn checks
    it, and reads or embeds again when it was wrong.
    """

    def __init__(
        self,
        database: Database,
        cache: WorkingCache,
        embedder: Embedder,
        tokenizer: Callable[[Agent], Tokenizer],
        retrieval: Callable[[uuid.UUID], semantic.Retrieval],
        compactor: Compactor,
    ) -> None:
        self._database = database
        self._cache = cache
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._retrieval = retrieval
        self._compactor = compactor
        self._participants: LRUCache[uuid.UUID, _Participants] = LRUCache(MAX_CACHED_CONVERSATIONS)

    async def compose(self, request: PromptRequest, *, persist_compaction: bool = False) -> ComposedPrompt:
        """Compose the prompt from what its viewer may read at this moment.

        A view that is too long is compacted first. The compaction is stored with `persist_compaction` (a real turn);
        otherwise it only appears in this prompt. Raises NotFound when the asker may not be in the conversation; then
        nothing was read.
        """
        timings: dict[str, float] = {}
        material = await self._read_material(request, timings)
        prompt_input, tokenizer = material.prompt_input, material.tokenizer
        chars = material.chars // COUNTED_PER_READ
        due = await off_loop(chars, partial(material.plan_compaction, requested=False))
        if due is not None:
            with timed(timings, "compact"):
                compaction = await self._compact(due, tokenizer, persist=persist_compaction)
            if compaction is not None:
                prompt_input = replace(
                    prompt_input, working=due.remaining, compaction=compaction_item(compaction, request.agent)
                )
        with timed(timings, "pack"):
            prompt = await off_loop(chars, partial(pack, prompt_input, tokenizer))
        for note in prompt.notes:
            logger.warning("prompt.over_budget", conversation=str(request.conversation_id), note=note)
        return ComposedPrompt(
            prompt,
            material.access.conversation,
            timings,
            uncorrected(tokenizer, prompt.tokens),
            material.access.linked_users(request.asker),
        )

    async def compact(self, request: PromptRequest) -> Compaction | None:
        """Compact an agent's view of a conversation now, even though it is not due. None when it is too short.

        Raises as `compose`.
        """
        material = await self._read_material(request, {})
        due = await off_loop(material.chars // COUNTED_PER_READ, partial(material.plan_compaction, requested=True))
        return None if due is None else await self._compact(due, material.tokenizer, persist=True)

    async def recall(self, request: PromptRequest) -> list[Item]:
        """Search memory for the request's message, best first. Recent messages are included, unlike in a prompt.

        Raises as `compose`.
        """
        question = request.message
        async with self._snapshot(request, {}) as snapshot:
            tx, view = snapshot.tx, snapshot.window.recent
            speakers = _speakers(question, view)
            access = _with_linked_users(snapshot.access, await tx.people.linked_users(speakers))
            readable = visibility.readable(access, speakers)
            retrieval = self._retrieval_options(request, await tx.settings.all())
            query = _query(question, view, snapshot.vector)
            found = await semantic.read(tx.recall, readable, query, [question], retrieval, question.at)
            origins = await _origins(tx, access, found)
            return [replace(item, came_from=origins[item.namespace]) for item in found]

    async def _read_material(self, request: PromptRequest, timings: dict[str, float]) -> _Material:
        """Read everything that one prompt is made from, as of one moment."""
        async with self._snapshot(request, timings) as snapshot:
            prompt_input, view = await self._read_layers(request, snapshot, timings)
            tokenizer = self._tokenizer(request.agent)
            if not tokenizer.exact:
                counts = await snapshot.tx.turns.last_token_counts(snapshot.access.conversation, request.agent.model)
                tokenizer = corrected(tokenizer, *counts)
        return _Material(prompt_input, view, snapshot.access, tokenizer)

    async def _read_layers(
        self, request: PromptRequest, snapshot: _Snapshot, timings: dict[str, float]
    ) -> tuple[PromptInput, View]:
        """Read the layers in their order: working (in the snapshot already), episodic, semantic, structured."""
        tx, window, question = snapshot.tx, snapshot.window, request.message
        conversation = snapshot.access.conversation
        with timed(timings, "episodic"):
            speakers = _speakers(question, window.recent)
            background = await episodic.read(
                tx.recall, snapshot.own, conversation, request.agent.id, question, speakers
            )
        access = _with_linked_users(snapshot.access, background.linked)
        readable, view = visibility.readable(access, speakers), current_view(window.recent, background.compaction)
        retrieval = self._retrieval_options(request, background.settings)
        with timed(timings, "semantic"):
            query = _query(question, window.recent, snapshot.vector)
            in_view = [*(message for message, _ in window.related), *view.messages, question]
            recall = await semantic.read(tx.recall, readable, query, in_view, retrieval, question.at)
        with timed(timings, "structured"):
            facts, landmarks = await structured.read(tx.facts, tx.landmarks, readable, question.at)
            origins = await _origins(tx, access, (*facts, *landmarks, *recall))
        prompt_input = PromptInput(
            agent=request.agent,
            context=_context(access, question, window.recent),
            message=question,
            facts=[structured.fact_item(fact, origins[fact.namespace]) for fact in facts],
            landmarks=[structured.landmark_item(landmark, origins[landmark.namespace]) for landmark in landmarks],
            summaries=background.summaries,
            working=view.messages,
            recall=[replace(item, came_from=origins[item.namespace]) for item in recall],
            recall_tokens=retrieval.recall_tokens,
            compaction=None if view.compaction is None else compaction_item(view.compaction, request.agent),
            related=window.related,
            candidates=window.candidates,
        )
        return prompt_input, view

    async def _compact(self, due: Plan, tokenizer: Tokenizer, *, persist: bool) -> Compaction | None:
        """Carry out a compaction. A failure is logged and never fails the turn: the prompt is packed without it."""
        where = {"conversation": str(due.conversation.id), "agent": due.agent.slug}
        try:
            compaction = await self._compactor.compact(due, tokenizer, persist=persist)
        except Exception:
            logger.exception("compaction.failed", **where)
            return None
        if persist and compaction is not None:
            counts = {"messages": compaction.messages, "before": compaction.before, "after": compaction.after}
            logger.info("compaction.stored", **where, **counts)
        return compaction

    def _retrieval_options(self, request: PromptRequest, settings: Mapping[str, str]) -> semantic.Retrieval:
        """The tenant's retrieval settings: nexus.toml, then what its admins changed, then the request's `top_k`."""
        retrieval = with_overrides(self._retrieval(request.tenant_id), settings)
        return retrieval if request.top_k is None else replace(retrieval, top_k=request.top_k)

    @asynccontextmanager
    async def _snapshot(self, request: PromptRequest, timings: dict[str, float]) -> AsyncIterator[_Snapshot]:
        """Open a snapshot of the database, with the question's vector. The question is embedded first, so that no
        connection waits for the embedder.

        The participants' names are removed from what is embedded, and they are known only after the view is read. So
        the question is embedded with the names of the last time; if the names are others now, or unknown, both steps
        are repeated.
        """
        question, conversation = request.message, request.conversation_id
        expected = self._participants.get(conversation)
        while True:
            with timed(timings, "embed"):
                vector = None if expected is None else await self._embed(question, expected.names)
            async with self._database.transaction(request.tenant_id, snapshot=True) as tx:
                with timed(timings, "resolve"):
                    access, own = await _resolve(tx, request)
                with timed(timings, "working"):
                    busy = expected is not None and expected.busy
                    window = await working.read(
                        tx.messages, self._cache, own, access.conversation, question, expect_busy=busy
                    )
                actual = _Participants(frozenset(message.author for message in window.recent), window.candidates > 0)
                self._participants[conversation] = actual
                if expected is not None and actual.names == expected.names:
                    yield _Snapshot(tx, access, own, window, vector)
                    return
            expected = actual

    async def _embed(self, question: Message, names: Collection[str]) -> Vectors | None:
        """The question's vector. None when the embedder does not answer: then recall uses words alone."""
        text = without_names(embedding_text(question.text), {question.author, *names})
        try:
            vector: Vectors = (await self._embedder.embed([text]))[0]
        except Unavailable as error:
            logger.warning("embedder.unavailable", error=for_operator(error))
            return None
        return vector


async def _resolve(tx: Transaction, request: PromptRequest) -> tuple[AccessContext, Readable]:
    """The viewer's access as it is at this moment, and the right to read the conversation itself."""
    access = await tx.conversations.access_context(request.conversation_id, request.asker, request.message.trust)
    if access is None:
        raise NotFound("There is no such conversation here.")
    return access, visibility.readable_conversation(access)


async def _origins(tx: Transaction, access: AccessContext, rows: Iterable[Tagged]) -> dict[str, str]:
    """For each namespace of some rows, the words for where they came from (see composer.prompt.borders)."""
    namespaces = {row.namespace for row in rows}
    owners = profile_owners(namespaces)
    names = await tx.people.names(owners) if owners else {}
    return {namespace: came_from(namespace, access, names) for namespace in namespaces}


def _with_linked_users(access: AccessContext, linked: Mapping[uuid.UUID, tuple[uuid.UUID, ...]]) -> AccessContext:
    """In a room, add the other users that its people are. In a DM or session the asker's own are known already."""
    return access if access.conversation.user_id is not None else replace(access, linked={**linked, **access.linked})


def _query(question: Message, view: Sequence[Message], vector: Vectors | None) -> semantic.Query:
    """What to search for. Participants' names are left out: in short messages they outweigh what is asked."""
    names = {question.author, *(message.author for message in view)}
    words = query_terms(without_mentions(question.text[:MAX_QUESTION_CHARS]), names)
    return semantic.Query(embedding_text(question.text), vector, words)


def _speakers(question: Message, view: Sequence[Message]) -> list[uuid.UUID]:
    """Users mentioned in the question, then users who speak or are mentioned in the view, latest first."""
    users = list(question.mentions)
    for message in reversed(view):
        if message.user_id is not None:
            users.append(message.user_id)
        users.extend(message.mentions)
    return list(dict.fromkeys(users))


def _context(access: AccessContext, question: Message, view: Sequence[Message]) -> str:
    """The CONTEXT section: where this is, who takes part, and the date. It changes seldom, so it comes early."""
    conversation, project = access.conversation, visibility.effective_project(access)
    name = in_quotes(f"#{conversation.name}")
    where = {
        ConversationKind.ROOM: f"the {'private ' if conversation.private else ''}room {name}",
        ConversationKind.THREAD: f"a thread of the room {name}",
        ConversationKind.DM: f"a private conversation with {in_quotes(question.author)}",
        ConversationKind.SESSION: f"a private session of {in_quotes(question.author)}",
    }[conversation.kind]
    lines = [f"You are in {where}."]
    if project is not None:
        lines.append(f"It belongs to the {'isolated ' if project.isolated else ''}project {in_quotes(project.slug)}.")
    if conversation.kind in (ConversationKind.ROOM, ConversationKind.THREAD):
        people = sorted({in_quotes(m.author) for m in _until_last_step(view) or (*view, question) if not m.by_agent})
        lines.append(f"People in this conversation: {', '.join(people)}.")
    lines.append(f"Today is {question.at:%A, %Y-%m-%d}; times are UTC.")
    return "[CONTEXT]\n" + "\n".join(lines)


def _until_last_step(view: Sequence[Message]) -> list[Message]:
    """The view without the messages since the window last moved:

    stable from turn to turn, so that a provider's prompt cache can reuse the beginning.
    """
    return [m for m in view if m.seq <= view[-1].seq - view[-1].seq % working.WINDOW_STEP]
