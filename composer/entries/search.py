"""Search entries by a question: recall over what its bearer may read, within a number of tokens. Nothing of rooms, DMs
and sessions is searched, whoever asks."""

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import partial
from typing import Final

import structlog

from composer import visibility
from composer.entries.access import access_for_reading
from composer.errors import BadInput, BudgetUsedUp, NotFound, Refused, Unavailable, for_operator
from composer.layers import semantic, structured
from composer.layers.retrieval_settings import RETRIEVAL, STRATEGIES
from composer.memory.index import embed_next, embedding_text, without_mentions
from composer.model import Item, entries_namespace, project_namespace
from composer.ports.clock import Clock
from composer.ports.models import MeteredEmbedder, UsageAccount, Vectors, WorkKind
from composer.repositories.database import Database, Transaction
from composer.repositories.entries import Entry, EntryValues, tokens_of
from composer.repositories.facts import Fact
from composer.repositories.landmarks import Landmark
from composer.tasks.shares import memory_reads
from composer.text.cleaning import clean_text, is_storable
from composer.text.masking import mask
from composer.text.terms import query_terms, terms
from composer.text.work import off_loop
from composer.visibility import Readable

logger = structlog.get_logger()

MAX_SEARCHED_CHARS: Final = 20_000
DEFAULT_FOUND_ENTRIES: Final = 10
MAX_FOUND_ENTRIES: Final = 50
MAX_ANSWER_TOKENS: Final = 16_000
MAX_FILTERS: Final = 32  # kinds, or tags
FILTERED_CANDIDATES: Final = 600  # by meaning, and as many by words, of which those of some kinds or tags are left
MAX_ANSWER_FACTS: Final = 5  # facts and landmarks of one answer
MIN_ENTRY_TOKENS: Final = 20  # of the last item, which is cut where only a part of it fits
MAX_LATEST: Final = 16  # passages that a question embeds first, of what was written just before it
CUT_SNIPPET: Final = " …"  # ends a text of which a part is shown
FACT: Final = "fact"
LANDMARK: Final = "landmark"


@dataclass(frozen=True, slots=True)
class EntryReader:
    """Who asks: a person, or a tool for them (see EntryAccess). `project`: the one that the request is about."""

    tenant_id: uuid.UUID
    user: uuid.UUID
    vendor: str
    grants: frozenset[str]
    project: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class EntryQuestion:
    """What to search for: at most `limit` items with at most `tokens` tokens together. `tokens` and `strategy` None: as
    the person has set it, and else the tenant's strategy. `kinds` and `tags`: only items of one of these kinds, and
    with all of these tags. `exact` False: no facts and landmarks."""

    text: str
    limit: int = DEFAULT_FOUND_ENTRIES
    tokens: int | None = None
    strategy: str | None = None
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found. `item` has the text as it is shown, which is `cut` where it is only a part. `entry` is
    None for facts and landmarks. `tokens` are an estimate of those of the text. `is_own`: whoever asks wrote it."""

    item: Item
    title: str
    tokens: int
    cut: bool = False
    entry: Entry | None = None
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What was found: facts and landmarks that have words of the question, and then entries, best first."""

    hits: Sequence[Hit] = ()
    tokens: int = field(default=0)


class EntrySearch:
    """Searches entries. It keeps nothing of a question."""

    def __init__(
        self,
        database: Database,
        embedder: MeteredEmbedder,
        retrieval: Callable[[uuid.UUID], semantic.Retrieval],
        zone: Callable[[uuid.UUID], tzinfo],
        clock: Clock,
    ) -> None:
        """`retrieval` and `zone` are those of a tenant."""
        self._database = database
        self._embedder = embedder
        self._retrieval = retrieval
        self._zone = zone
        self._clock = clock

    async def search(self, reader: EntryReader, question: EntryQuestion) -> SearchResult:
        """What fits a question, of what its reader may read as of this moment.

        Raises BadInput, NotFound for a project that may not be read, Refused where the person has switched recall off,
        and Unavailable.
        """
        _check(question)
        async with memory_reads.take():
            return await self._search(reader, question)

    async def _search(self, reader: EntryReader, question: EntryQuestion) -> SearchResult:
        text, words = await off_loop(len(question.text), partial(_read, question.text))
        await self._embed_latest(reader)
        vector = await self._vector(reader, text)  # before the transaction: no connection waits for the embedder
        async with self._database.transaction(reader.tenant_id, "read") as tx:
            access = await access_for_reading(
                tx, reader.tenant_id, reader.user, reader.vendor, reader.grants, reader.project
            )
            visibility.require_recall(access)
            now = self._clock.now().astimezone(access.zone or self._zone(reader.tenant_id))
            readable = visibility.readable_entries(access)
            configured = RETRIEVAL.over(self._retrieval(reader.tenant_id), await tx.settings.all())
            strategy = question.strategy or access.settings.strategy or configured.strategy
            filtered = bool(question.kinds or question.tags)
            found = await semantic.read(
                tx.recall,
                readable,
                semantic.SearchQuery(embedding_text(text), vector, words, scale=self._embedder.scale),
                semantic.Shown(),
                replace(configured, strategy=strategy, top_k=FILTERED_CANDIDATES if filtered else question.limit),
                now,
                cut_noise=not filtered,  # what fits best may be of another kind
                candidates=FILTERED_CANDIDATES if filtered else None,
                newer=False,  # a program gets what fits, each with its score
            )
            entries = {
                str(entry.id): entry
                for entry in await tx.entries.find_by_ids(readable, [uuid.UUID(item.id) for item in found], now)
            }
            exact = (
                []
                if strategy == "semantic" or not question.exact
                else await _exact(tx, readable, question, words, self._clock)
            )
        hits = [_entry_hit(item, entries[item.id]) for item in found if item.id in entries]
        wanted = [hit for hit in hits if _is_wanted(hit.entry, question)]
        tokens = access.settings.budget if question.tokens is None else question.tokens
        chosen = (*exact, *wanted)[: question.limit]
        return _within([replace(hit, is_own=hit.item.user_id in access.users) for hit in chosen], tokens)

    async def still_readable(self, reader: EntryReader, found: SearchResult) -> bool:
        """Whether its reader may still read all that was found, and it still says the same. Raises Unavailable."""
        given = {hit.entry.id: hit.entry.values for hit in found.hits if hit.entry is not None}
        if not found.hits:
            return True
        try:
            async with self._database.transaction(reader.tenant_id, "read") as tx:
                access = await access_for_reading(
                    tx, reader.tenant_id, reader.user, reader.vendor, reader.grants, reader.project
                )
                visibility.require_recall(access)
                readable, now = visibility.readable_entries(access), self._clock.now()
                entries = await tx.entries.find_by_ids(readable, list(given), now)
                exact = await structured.read(tx.structured, readable, now) if len(given) < len(found.hits) else None
        except (NotFound, Refused):
            return False
        there = {str(entry.id) for entry in entries if _still_says(entry.values, given[entry.id])}
        lines = [] if exact is None else [*map(structured.fact_item, exact.facts)]
        lines += [] if exact is None else [*map(structured.landmark_item, exact.landmarks)]
        exactly = {item.id: _shown(item) for item in lines}
        return all(
            hit.item.id in there or exactly.get(hit.item.id, "").startswith(hit.item.text.removesuffix(CUT_SNIPPET))
            for hit in found.hits
        )

    async def _embed_latest(self, reader: EntryReader) -> None:
        """Embed what was just written where the question is asked, so that it is found; not a whole import, for which
        the question would wait. Where that fails, its words are searched."""
        asked = [entries_namespace(reader.user)]
        asked += [] if reader.project is None else [project_namespace(reader.project)]
        with suppress(BudgetUsedUp, Unavailable):  # the indexer tries again, and says why it can't
            await embed_next(self._database, self._embedder, reader.tenant_id, asked, MAX_LATEST)

    async def _vector(self, reader: EntryReader, text: str) -> Vectors | None:
        """The question's vector; None when the embedder does not answer, or its budget is used up: then words alone
        are searched."""
        account = UsageAccount(reader.tenant_id, WorkKind.EMBEDDING, user_id=reader.user)
        try:
            vector: Vectors = (await self._embedder.embed([embedding_text(text)], account, questions=True))[0]
        except BudgetUsedUp:
            return None
        except Unavailable as error:
            logger.warning("embedder.unavailable", error=for_operator(error))
            return None
        return vector


def _still_says(present: EntryValues, given: EntryValues) -> bool:
    """Whether an entry still has all the words by which it was found and given to its reader."""
    return present.text == given.text and {*given.tags} <= {*present.tags}


def _read(asked: str) -> tuple[str, list[str]]:
    """The text of a question, and the words to search for."""
    text = clean_text(asked)
    return text, query_terms(without_mentions(text), ())


def _check(question: EntryQuestion) -> None:
    text = question.text
    if not text.strip() or len(text) > MAX_SEARCHED_CHARS or not is_storable(text):
        raise BadInput(f"A question has 1 to {MAX_SEARCHED_CHARS:,} ordinary characters.")
    if not 1 <= question.limit <= MAX_FOUND_ENTRIES:
        raise BadInput(f"The limit is a number from 1 to {MAX_FOUND_ENTRIES}.")
    if question.tokens is not None and not 0 <= question.tokens <= MAX_ANSWER_TOKENS:
        raise BadInput(f"The budget is a number of tokens from 0 to {MAX_ANSWER_TOKENS:,}.")
    if question.strategy is not None and question.strategy not in STRATEGIES:
        raise BadInput(f"There is no such strategy: choose one of {', '.join(STRATEGIES)}.")
    if len(question.kinds) > MAX_FILTERS or len(question.tags) > MAX_FILTERS:
        raise BadInput(f"At most {MAX_FILTERS} kinds and {MAX_FILTERS} tags can be asked for.")


async def _exact(
    tx: Transaction, readable: Readable, question: EntryQuestion, words: Sequence[str], clock: Clock
) -> list[Hit]:
    """The facts and landmarks that have words of the question, those with most of them first."""
    wanted = {FACT, LANDMARK}.intersection(question.kinds) if question.kinds else {FACT, LANDMARK}
    if question.tags or not wanted or not words:
        return []
    stored = await structured.read(tx.structured, readable, clock.now())
    found = [_fact_hit(fact, words) for fact in stored.facts if FACT in wanted]
    found += [_landmark_hit(landmark, words) for landmark in stored.landmarks if LANDMARK in wanted]
    fitting = [hit for hit in found if hit.item.score]
    return sorted(fitting, key=lambda hit: (-(hit.item.score or 0.0), hit.item.id))[:MAX_ANSWER_FACTS]


def _fact_hit(fact: Fact, words: Sequence[str]) -> Hit:
    item = structured.fact_item(fact)
    text = _shown(item)
    shown = replace(item, text=text, score=_share(f"{fact.key} {fact.value} {fact.subject or ''}", words))
    return Hit(shown, fact.key, tokens_of(len(text.encode())))


def _landmark_hit(landmark: Landmark, words: Sequence[str]) -> Hit:
    item = structured.landmark_item(landmark)
    text = _shown(item)
    return Hit(replace(item, text=text, score=_share(landmark.text, words)), "", tokens_of(len(text.encode())))


def _shown(item: Item) -> str:
    """The line of a fact or a landmark, as a hit shows it."""
    return item.text.removeprefix("- ")


def _share(text: str, words: Sequence[str]) -> float:
    """The share of the words of a question that a text has: 0 to 1."""
    return round(len({*words}.intersection(terms(text))) / len({*words}), 6)


def _entry_hit(item: Item, entry: Entry) -> Hit:
    text = mask(item.text)
    return Hit(
        replace(item, text=text), entry.title, tokens_of(len(text.encode())), item.text != entry.values.text, entry
    )


def _is_wanted(entry: Entry | None, question: EntryQuestion) -> bool:
    if entry is None:
        return False
    values = entry.values
    return (not question.kinds or values.kind in question.kinds) and set(question.tags) <= {*values.tags}


def _within(hits: Sequence[Hit], tokens: int) -> SearchResult:
    """The first hits that have at most so many tokens; the last one is cut where only a part of it fits."""
    taken: list[Hit] = []
    left = tokens
    for hit in hits:
        if hit.tokens > left:
            if left >= MIN_ENTRY_TOKENS:
                taken.append(_part(hit, left))
            break
        taken.append(hit)
        left -= hit.tokens
    return SearchResult(taken, sum(hit.tokens for hit in taken))


def _part(hit: Hit, tokens: int) -> Hit:
    """The beginning of a hit, with at most so many tokens."""
    room = tokens * len(hit.item.text.encode()) // max(1, hit.tokens) - len(CUT_SNIPPET.encode())
    beginning = hit.item.text.encode()[: max(0, room)].decode(errors="ignore").rstrip()
    text = f"{beginning}{CUT_SNIPPET}"
    return replace(hit, item=replace(hit.item, text=text), tokens=min(tokens, tokens_of(len(text.encode()))), cut=True)
