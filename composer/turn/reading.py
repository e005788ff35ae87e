"""Read everything that a prompt is made from, as of one moment: resolve the viewer, then read the layers in order.

The *window* is the end of a conversation's log that is read. Its `recent` messages are what a prompt can show whole;
where several discussions are mixed, `related` are older messages of the question's own discussion, chosen among
`candidates`. The *view* is what is left of `recent` once its oldest part was replaced by a summary (a *compaction*).
A person may have linked several accounts, of Discord and of Slack: each is a *user*.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Final

import structlog

from composer import visibility
from composer.errors import BudgetUsedUp, NotFound, Unavailable, for_operator
from composer.layers import around, episodic, plain, semantic, structured, working
from composer.layers.retrieval_settings import RETRIEVAL
from composer.memory.index import without_mentions
from composer.model import ROOM_KINDS, Agent, Item, Message, Visibility
from composer.ports.clock import EARLIEST
from composer.ports.memberships import NOWHERE, Presence
from composer.ports.models import MeteredEmbedder, Tokenizer, UsageAccount, Vectors, WorkKind
from composer.ports.working_cache import WorkingCache
from composer.prompt.borders import came_from, profile_owners, rooms_by_name, said_here
from composer.prompt.budget import budget_of, shown_whole
from composer.prompt.sections import OPEN_REMINDER, PromptInput
from composer.prompt.token_estimate import corrected
from composer.repositories.database import Database, Transaction
from composer.summaries.compaction import (
    RECALL_SHARE,
    CompactionPlan,
    View,
    compaction_item,
    current_view,
    plan_compaction,
)
from composer.text.caches import OwnedCache
from composer.text.dates.question_times import QuestionTimes
from composer.text.dates.repeats import Repeat
from composer.text.dates.vocabulary import Period
from composer.text.plain_questions import Plain, may_ask_what_was_said
from composer.text.work import off_loop
from composer.turn.context import context_section
from composer.turn.memberships import Memberships
from composer.turn.question import (
    NO_PARTICIPANTS,
    Participants,
    asked_text,
    search_query,
    speakers_of,
    text_naming_people,
    text_to_embed,
    text_with_times,
)
from composer.turn.timing import timed
from composer.visibility import AccessContext, Readable, Tagged

logger = structlog.get_logger()

MAX_CACHED_CONVERSATIONS: Final = 10_000
_OF_ANOTHER_ZONE: Final = "in the time zone it was set in"


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """A question to compose a prompt for: where it is asked, by whom, and which agent answers.

    `message` is the question; it need not be stored. Messages after it are not read. `top_k` overrides the tenant's
    setting. Without `floor`, recall also returns items of low relevance.
    """

    tenant_id: uuid.UUID
    conversation_id: uuid.UUID
    asker: uuid.UUID
    agent: Agent
    message: Message
    top_k: int | None = None
    floor: bool = True


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The database as of one moment, opened for one question.

    `conversation_only` reads this conversation's namespace and nothing else: what else the viewer may read
    depends on who speaks in it, the `speakers`. `vector` is the question's embedding, `people` are those whom it names
    and of whom the viewer may read something, with their names.
    """

    tx: Transaction
    access: AccessContext
    conversation_only: Readable
    window: working.Window
    speakers: Sequence[uuid.UUID]
    vector: Vectors | None
    people: Mapping[uuid.UUID, str]


@dataclass(frozen=True, slots=True)
class Material:
    """What one prompt is made from, the view it shows, the tokenizer that counts it, and what its viewer may read."""

    prompt_input: PromptInput
    view: View
    access: AccessContext
    tokenizer: Tokenizer
    readable: Readable

    @property
    def chars(self) -> int:
        """How many characters may have to be counted in tokens."""
        given = self.prompt_input
        messages = (*given.working, *(message for message, _ in given.related), given.message)
        items = (*given.facts, *given.landmarks, *given.summaries, *given.recall)
        texts = [message.text for message in messages] + [item.text for item in items]
        texts += [attached.text for message in messages for attached in message.attachments]
        return sum(map(len, texts))

    def plan_compaction(self, *, requested: bool) -> CompactionPlan | None:
        """The part of the view to compact first; None when none is due. `requested`: a person asked for it."""
        given, conversation = self.prompt_input, self.access.conversation
        items = (*given.facts, *given.landmarks, *given.summaries)
        return plan_compaction(
            conversation,
            given.agent,
            self.view,
            items,
            given.recall_tokens,
            given.message.at,
            self.tokenizer,
            requested=requested,
        )


class Reader:
    """Reads what prompts are made from.

    It remembers who took part in each conversation the last time it was read. This is only a hint: every turn checks
    it, and repeats the embedding and the read when the question was embedded with a name that it should be without.
    """

    def __init__(
        self,
        database: Database,
        cache: WorkingCache,
        embedder: MeteredEmbedder,
        tokenizer: Callable[[Agent], Tokenizer],
        retrieval: Callable[[uuid.UUID], semantic.Retrieval],
        zone: Callable[[uuid.UUID], tzinfo],
        agents: Callable[[uuid.UUID], Sequence[Agent]],
        memberships: Memberships,
    ) -> None:
        """`retrieval`, `zone` and `agents` are those of a tenant."""
        self._database = database
        self._cache = cache
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._retrieval = retrieval
        self._zone = zone
        self._agents = agents
        self._memberships = memberships
        self._participants = OwnedCache[Participants](MAX_CACHED_CONVERSATIONS)  # of a conversation

    async def read(self, request: PromptRequest, timings: dict[str, float]) -> Material:
        """Read everything that one prompt is made from, as of one moment."""
        async with self._snapshot(request, timings) as snapshot:
            return await self._read_layers(request, snapshot, timings)

    async def recall(self, request: PromptRequest) -> list[Item]:
        """Search memory for the request's message, best first. Recent messages are included, unlike in a prompt.

        Raises as `compose`.
        """
        async with self._snapshot(request, {}) as snapshot:
            access, readable = await _judged(snapshot, request.message)
            found = await self._search(request, snapshot, access, readable, floor=False)
            here = said_here(access.conversation)
            origins = await _origins(snapshot.tx, access, found)
            return [replace(item, came_from=origins[item.namespace] or here) for item in found]

    async def recall_again(self, request: PromptRequest, turn: Readable) -> list[Item]:
        """Search memory while a turn is being answered: the request's message has the words to search for. Only what
        could be read when the turn began (`turn`) and can be read now is found. Raises as `compose`."""
        async with self._snapshot(request, {}) as snapshot:
            access, readable = await _judged(snapshot, request.message)
            found = await self._search(request, snapshot, access, readable, floor=True)
            found = [item for item in found if turn.admits(item)]
            origins = await _origins(snapshot.tx, access, found)
            return [replace(item, came_from=origins[item.namespace]) for item in found]

    async def _search(
        self, request: PromptRequest, snapshot: _Snapshot, access: AccessContext, readable: Readable, *, floor: bool
    ) -> list[Item]:
        """What recall finds for the request's message, apart from the message itself."""
        tx, question = snapshot.tx, request.message
        retrieval = self._retrieval_options(request, await tx.settings.all())
        query = await self._query(request, snapshot, access, readable)
        now = question.at.astimezone(access.zone or self._zone(request.tenant_id))
        shown = semantic.Shown([question])
        # Who searches by hand gets what fits less well, too, but no noise beside it.
        return await semantic.read(tx.recall, readable, query, shown, retrieval, now, floor=floor, cut_noise=True)

    async def read_around(self, request: PromptRequest, turn: Readable, episode: uuid.UUID, each: int) -> list[Item]:
        """A recalled message with at most `each` before and after it, oldest first, by the same rules. Raises as
        `compose`."""
        question = request.message
        async with self._snapshot(request, {}) as snapshot:
            tx = snapshot.tx
            access, readable = await _judged(snapshot, question)
            retention = self._retrieval_options(request, await tx.settings.all()).retention_days
            since = question.at - timedelta(days=retention) if retention else EARLIEST
            near = await tx.recall.around(readable, [episode], each, since, question.at)
            asked = semantic.episode_id(question)
            found = [i for i in near.get(episode, []) if readable.admits(i) and turn.admits(i) and i.id != str(asked)]
            origins = await _origins(tx, access, found)
            return [replace(item, came_from=origins[item.namespace]) for item in found]

    async def _read_layers(self, request: PromptRequest, snapshot: _Snapshot, timings: dict[str, float]) -> Material:
        """Read the layers in their order: working (in the snapshot already), episodic, semantic, structured."""
        tx, window, question, tokenizer = snapshot.tx, snapshot.window, request.message, self._tokenizer(request.agent)
        conversation, common = snapshot.access.conversation, self._zone(request.tenant_id)
        now = question.at.astimezone(snapshot.access.zone or common)
        asked, names = asked_text(question), (request.agent.name, request.agent.slug)
        times, agents = QuestionTimes(), self._agents(request.tenant_id)
        asked_periods = partial(_asked_periods, times, question, agents, now)  # "yesterday" is the asker's
        periods = await off_loop(len(asked), asked_periods)
        speakers, since = snapshot.speakers, None
        kind = await off_loop(len(asked), lambda: plain.kind_of(without_mentions(asked), names))
        with timed(timings, "episodic"):  # one round trip, which brings all that is known to be needed by now
            if kind is Plain.MISSED and not periods:  # and one before it
                own = snapshot.access.linked_users(request.asker)
                scope = _talked_of(snapshot.access, speakers)
                since = await plain.last_visit(tx.recall, scope, own, question.at)
                periods = [(since, question.at)]
            background = await episodic.read(
                tx.recall,
                snapshot.conversation_only,
                conversation,
                request.agent.id,
                question,
                speakers,
                periods,
                model=None if tokenizer.exact else request.agent.model,
            )
        access = _with_linked_users(snapshot.access, background.linked)
        readable, view = visibility.readable(access, speakers), current_view(window.recent, background.compaction)
        retrieval = self._retrieval_options(request, background.settings)
        summaries = episodic.choose(background, periods, now, retrieval.summary_tokens)
        with timed(timings, "semantic"):
            query = replace(await self._query(request, snapshot, access, readable), times=times)
            query = _as_plain(query, kind, access, readable, speakers, since, snapshot.people)
            in_view = (*(message for message, _ in window.related), *view.messages)
            shown = semantic.Shown([question, *shown_whole(request.agent, in_view)], summaries)
            recall = await semantic.read(tx.recall, readable, query, shown, retrieval, now, floor=request.floor)
            recall = await around.read(tx.recall, readable, query, recall, shown, retrieval, now)
            if kind is Plain.REMINDERS:
                recall = [*await _reminders(tx, access, readable), *recall]
        with timed(timings, "structured"):
            owners = profile_owners(readable.namespaces)
            found = await structured.read(tx.structured, readable, question.at, owners)
            origins = _came_from(access, (*found.facts, *found.landmarks, *recall), found.names)
        prompt_input = PromptInput(
            agent=request.agent,
            context=context_section(access, question, window.recent, question.at.astimezone(common), since),
            message=question,
            facts=structured.fact_items(found.facts, origins),
            landmarks=[structured.landmark_item(each, origins[each.namespace]) for each in found.landmarks],
            summaries=summaries,
            working=view.messages,
            recall=[replace(item, came_from=origins[item.namespace]) for item in recall],
            recall_tokens=min(retrieval.recall_tokens, int(budget_of(request.agent) * RECALL_SHARE)),
            compaction=None if view.compaction is None else compaction_item(view.compaction, request.agent),
            related=window.related,
            candidates=window.candidates,
            here=said_here(conversation),
        )
        if not tokenizer.exact:
            tokenizer = corrected(tokenizer, *background.last_tokens)
        return Material(prompt_input, view, snapshot.access, tokenizer, readable)

    async def _query(
        self, request: PromptRequest, snapshot: _Snapshot, access: AccessContext, readable: Readable
    ) -> semantic.SearchQuery:
        """What to search for."""
        question, agents, rooms = request.message, self._agents(request.tenant_id), rooms_by_name(access, readable)
        recent, vector, people = snapshot.window.recent, snapshot.vector, snapshot.people
        search = partial(search_query, question, request.agent, recent, vector, agents, rooms, people.values())
        return replace(await off_loop(len(asked_text(question)), search), scale=self._embedder.scale)

    def _retrieval_options(self, request: PromptRequest, settings: Mapping[str, str]) -> semantic.Retrieval:
        """The tenant's retrieval settings: nexus.toml, then what its admins changed, then the request's `top_k`."""
        retrieval = RETRIEVAL.over(self._retrieval(request.tenant_id), settings)
        return retrieval if request.top_k is None else replace(retrieval, top_k=request.top_k)

    @asynccontextmanager
    async def _snapshot(self, request: PromptRequest, timings: dict[str, float]) -> AsyncIterator[_Snapshot]:
        """Open a snapshot of the database, with the question's vector.

        In what is embedded "I" stands for participants, because in a short question their names outweigh what is asked.
        They are known only after the window is read, and so are others whom the question names; but no connection may
        wait for the embedder. So the question is embedded without the names known from the last read; if it has
        others, both steps are repeated. Meanwhile platforms are asked where the asker is, if that matters here.
        """
        question, conversation = request.message, request.conversation_id
        remembered = self._participants.get(conversation) or NO_PARTICIPANTS
        asked = text_naming_people(question, self._agents(request.tenant_id))
        words = plain.words_that_may_name(asked)
        while True:
            text = text_to_embed(question, remembered)
            vector, presence = await asyncio.gather(
                self._embed(request, text, timings), presence_of_asker(self._memberships, request)
            )
            async with self._database.transaction(request.tenant_id, "read") as tx:
                with timed(timings, "resolve"):
                    access, conversation_only, names_somebody = await _resolve(tx, request, presence, words)
                with timed(timings, "working"):
                    window = await working.read(
                        tx.messages,
                        self._cache,
                        conversation_only,
                        access.conversation,
                        question,
                        expect_busy=remembered.busy,
                    )
                    speakers = speakers_of(question, window.recent)
                    people: Mapping[uuid.UUID, str] = {}
                    if names_somebody:
                        scope = visibility.readable(access, speakers)
                        people = await plain.read_people(tx.recall, scope, words, question.at)
                seen = Participants.of(window)
                self._participants.put(conversation, seen)
                read_now = replace(seen, named=plain.words_of_names(people.values(), asked))
                if text == text_to_embed(question, read_now):
                    yield _Snapshot(tx, access, conversation_only, window, speakers, vector, people)
                    return
            remembered = read_now

    async def _embed(self, request: PromptRequest, text: str, timings: dict[str, float]) -> Vectors | None:
        """The vector of a question's text. None when the embedder does not answer, or its budget is used up: then
        recall uses words alone."""
        account = UsageAccount(
            request.tenant_id, WorkKind.EMBEDDING, request.agent, request.conversation_id, request.asker
        )
        try:
            with timed(timings, "embed"):
                vector: Vectors = (await self._embedder.embed([text], account, questions=True))[0]
        except BudgetUsedUp:
            return None  # the ledger has said so, once
        except Unavailable as error:
            logger.warning("embedder.unavailable", error=for_operator(error))
            return None
        return vector


def _asked_periods(times: QuestionTimes, question: Message, agents: Sequence[Agent], now: datetime) -> Sequence[Period]:
    """The periods that a question names."""
    return times.periods(text_with_times(question, agents), now)


def _talked_of(access: AccessContext, speakers: Sequence[uuid.UUID]) -> Readable:
    """What a person misses, or wants summed up, who names no place: this room; in a DM or a session the rooms that it
    reads, if any, else itself."""
    readable, here = visibility.readable(access, speakers), access.conversation.namespace
    elsewhere = (*readable.rooms, *readable.pooled)
    return readable.within(elsewhere if elsewhere and access.conversation.user_id is not None else (here,))


async def _reminders(tx: Transaction, access: AccessContext, readable: Readable) -> list[Item]:
    """The asker's reminders that may be shown here, the next one first."""
    items = [
        Item(
            layer="structured",
            kind=OPEN_REMINDER,
            id=str(each.id),
            text=each.text if each.repeats is None else f"{each.text} ({_repeats(each.repeats, access)})",
            at=each.due_at,
            namespace=each.namespace,
            visibility=each.visibility,
            user_id=each.user_id,
            author=each.author,
        )
        for each in await tx.reminders.open(visibility.owned_by(access))
    ]
    here = readable.without_pool()  # as facts are
    return [item for item in items if here.admits(item)]


def _repeats(repeats: str, access: AccessContext) -> str:
    """How a reminder repeats, in words. Its zone may be its person's, which nobody else is told of."""
    repeat = Repeat.of(repeats)
    alone = access.conversation.kind not in ROOM_KINDS
    return repeat.words if alone or not repeat.zone else replace(repeat, zone=_OF_ANOTHER_ZONE).words


def _as_plain(
    query: semantic.SearchQuery,
    kind: Plain | None,
    access: AccessContext,
    readable: Readable,
    speakers: Sequence[uuid.UUID],
    since: datetime | None,
    named: Mapping[uuid.UUID, str],
) -> semantic.SearchQuery:
    """The query with what it asks for as a plain question, if it is one. `named` are the people whom it names."""
    people = named if named and may_ask_what_was_said(query.about) else {}
    kind = plain.kind_with(people.values(), query.about, kind)
    if kind is None and not people:
        return query
    own, scope = access.linked_users(access.asker), _talked_of(access, speakers)
    bare = not plain.has_topic(query.about, (*query.agents, *people.values()))
    return replace(query, plain=plain.PlainQuestion(kind, own, scope, since, frozenset(people), bare))


async def presence_of_asker(memberships: Memberships, request: PromptRequest) -> Presence:
    """In which private rooms the asker is, if this is a DM that reads rooms. Raises Unavailable."""
    if request.message.visibility is not Visibility.PRIVATE:  # in a room nobody has to be asked
        return NOWHERE
    return await memberships.of(request.tenant_id, request.asker, dm=request.conversation_id)


async def _resolve(
    tx: Transaction, request: PromptRequest, presence: Presence, words: Collection[str]
) -> tuple[AccessContext, Readable, bool]:
    """The viewer's access as it is at this moment, the right to read the conversation itself, and whether some words
    may name somebody.

    It depends on the trust of who asks as well: guests and people of other organisations read less."""
    access, names_somebody = await tx.conversations.access_and_names(
        request.conversation_id, request.asker, request.message.trust, presence, words
    )
    if access is None:
        raise NotFound("There is no such conversation here.")
    return access, visibility.readable_conversation(access), names_somebody


async def _judged(snapshot: _Snapshot, question: Message) -> tuple[AccessContext, Readable]:
    """The viewer's access and what they may read, as of the snapshot."""
    speakers = speakers_of(question, snapshot.window.recent)
    access = _with_linked_users(snapshot.access, await snapshot.tx.people.linked_users(speakers))
    return access, visibility.readable(access, speakers)


async def _origins(tx: Transaction, access: AccessContext, rows: Iterable[Tagged]) -> dict[str, str]:
    """For each namespace of some rows, the words for where they came from (see composer.prompt.borders)."""
    rows = list(rows)
    owners = profile_owners(row.namespace for row in rows)
    return _came_from(access, rows, await tx.people.names(owners) if owners else {})


def _came_from(access: AccessContext, rows: Iterable[Tagged], names: Mapping[uuid.UUID, str]) -> dict[str, str]:
    """The same, with the names of those whose profiles are among the rows."""
    return {namespace: came_from(namespace, access, names) for namespace in {row.namespace for row in rows}}


def _with_linked_users(access: AccessContext, linked: Mapping[uuid.UUID, tuple[uuid.UUID, ...]]) -> AccessContext:
    """In a room, add the linked users of its people. In a DM or session those of the asker are known already."""
    return access if access.conversation.user_id is not None else replace(access, linked={**linked, **access.linked})
