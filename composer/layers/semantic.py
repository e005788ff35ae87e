"""The semantic layer: the episodes, memories and summaries that match a question, by meaning and by words."""

import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from composer.layers import plain, relevance
from composer.layers.newer import with_newer
from composer.layers.ranking import meant_shares, rank, sources_of, without_duplicates
from composer.model import Item, Message
from composer.ports.clock import EARLIEST
from composer.ports.models import MINILM_SCALE, Scale, Vectors
from composer.repositories.recall import Candidate, Found, Recall, episode_id_of
from composer.text import spelling
from composer.text.dates.question_times import QuestionTimes
from composer.text.dates.vocabulary import Period
from composer.text.passages import is_whole
from composer.text.plain_questions import Plain
from composer.visibility import Readable

LEAST_SHARE_OF_PEOPLE: Final = 3  # the part of the items, a third, that are theirs of whom it is asked what they said
MAX_WORDS_COMPARED: Final = 2_000  # of a scope, with the words of a question that it has nowhere
LEAST_OF_DAYS: Final = 20  # items that what means a day asked for counts as, at the least: of fewer, anything would fit
MAX_CANDIDATES: Final = 60  # by meaning, and as many by words; ranking chooses from them


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How recall works for a tenant. `strategy` is hybrid, semantic or recent; `recall_tokens` limits RECALL
    and `summary_tokens` SUMMARIES. What is older than `retention_days` is not recalled (0: no limit).
    """

    strategy: str = "hybrid"
    top_k: int = 20
    recall_tokens: int = 4000
    retention_days: int = 0
    summary_tokens: int = 1500


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What to search for. `vector` is None when the embedder does not answer: then words alone count. `agents` are the
    names of the agent that answers, `all_agents` those of every agent that people may have asked here. `rooms` are the
    namespaces of the rooms that the text names, as far as the viewer may read them from here, and `subject` is the text
    without their names: these say where, and not what about. `plain`: what it asks for without naming a subject.
    `scale`: what the cosines of its vector say. `times` reads the times that its texts name."""

    text: str
    vector: Vectors | None
    terms: Sequence[str]
    agents: Collection[str] = ()
    all_agents: Collection[str] = ()
    rooms: frozenset[str] = frozenset()
    subject: str = ""
    plain: "plain.PlainQuestion | None" = None
    scale: Scale = MINILM_SCALE
    times: QuestionTimes = field(default_factory=QuestionTimes, compare=False)

    @property
    def about(self) -> str:
        """What is asked: the subject; the text where nothing else was said."""
        return self.subject or self.text


@dataclass(frozen=True, slots=True)
class Shown:
    """What the prompt shows already, and recall need not find again."""

    messages: Sequence[Message] = ()
    summaries: Sequence[Item] = ()


async def read(
    recall: Recall,
    readable: Readable,
    query: SearchQuery,
    shown: Shown,
    retrieval: Retrieval,
    now: datetime,
    *,
    floor: bool = True,
    cut_noise: bool | None = None,
    candidates: int | None = None,
    newer: bool = True,
) -> list[Item]:
    """The best `top_k` items, best first, without what the prompt shows already; behind them, with `newer`, what came
    after their statements and is like these (composer.layers.newer). Each is checked again in code.

    With `floor`, small talk finds nothing, nor does a question about something that was never spoken of in this scope;
    what only repeats the question is left out, and so is what is far less relevant than the best (`cut_noise`, by
    default as `floor`). A period that the question names is searched for itself, and what was said then needs no word
    in common with the question; where it names rooms too, in these alone. Days are those of the zone of `now`. Ranking
    chooses from at most `candidates` (None: MAX_CANDIDATES) by meaning, and as many by words.
    """
    listed = await _listed(recall, readable, query, shown, retrieval, now) if floor else []
    if listed and query.plain is not None and query.plain.bare:
        return listed  # it names nothing to search for
    if floor and not listed and relevance.asks_nothing(query.text, query.agents):
        return []
    most = MAX_CANDIDATES if candidates is None else candidates
    found = await _candidates(recall, readable, query, shown, retrieval, now, floor=floor, most=most)
    ranked = rank(
        [candidate for candidate in found.candidates if not candidate.only_newer],
        query.about,
        now,
        retrieval.strategy,
        agents=query.agents,
        all_agents=query.all_agents,
        matching=found.in_periods,
        rooms=query.rooms,
        times=query.times,
    )
    distinct = without_duplicates(ranked, query.text if floor else "", (*query.agents, *query.all_agents))
    seen = {(message.namespace, message.external_id) for message in shown.messages}
    new: Iterator[Item] = (item for item in distinct if not item.messages or not seen.issuperset(sources_of(item)))
    theirs: list[Item] = []
    if people := _people(query):
        new = iter(ranked_items := list(new))
        theirs = [item for item in ranked_items if item.user_id in people and not item.by_agent]
    best = islice(new, retrieval.top_k)  # lazily: no more items are compared than are needed
    cut = floor if cut_noise is None else cut_noise
    ordered_by_score = cut and retrieval.strategy != "recent" and not found.by_time_alone
    by_subject = list(_above_noise(best) if ordered_by_score else best)
    missing = [item for item in theirs[: retrieval.top_k // LEAST_SHARE_OF_PEOPLE] if item not in by_subject]
    by_subject = [*by_subject[: retrieval.top_k - len(missing)], *missing]
    brought = by_subject
    if newer:
        brought = with_newer(by_subject, found.candidates, query.about, seen)
        if [item.id for item in brought] != [item.id for item in by_subject]:
            brought = list(without_duplicates(brought))
    if not listed or (brought and query.plain is not None and query.plain.kind is Plain.ME):
        return brought  # "what do you know about me and the fair?" is about the fair
    return list(_distinct([*brought, *listed], query))


def _people(query: SearchQuery) -> Collection[uuid.UUID]:
    """Those of whom a question asks what they said."""
    return query.plain.people if query.plain is not None and query.plain.kind is Plain.SAID else ()


async def _listed(
    recall: Recall, readable: Readable, query: SearchQuery, shown: Shown, retrieval: Retrieval, now: datetime
) -> list[Item]:
    """What a plain question asks for, without what the prompt shows already."""
    if query.plain is None or not query.plain.lists:
        return []
    asked = query.plain
    oldest = now - timedelta(days=retrieval.retention_days) if retrieval.retention_days else EARLIEST
    if query.rooms:
        readable = readable.within(query.rooms)
        asked = replace(asked, scope=readable)
    periods = [(asked.since, now)] if asked.since else query.times.periods(query.text, now)
    spans = [(max(start, oldest), end) for start, end in periods] or [(oldest, now)]
    excluded = [] if asked.lists_what_is_shown else [*map(episode_id, shown.messages), *_ids(shown.summaries)]
    limit = retrieval.top_k * plain.TIMES_TOP_K
    found = await plain.read(recall, readable, asked, spans, excluded, now, limit, (*query.agents, *query.all_agents))
    if not asked.lists_what_is_shown:
        seen = {(message.namespace, message.external_id) for message in shown.messages}
        found = [item for item in found if not item.messages or not seen.issuperset(sources_of(item))]
    return list(islice(_distinct(found, query), limit))


def _ids(items: Iterable[Item]) -> list[uuid.UUID]:
    return [uuid.UUID(item.id) for item in items]


def _distinct(items: Iterable[Item], query: SearchQuery) -> Iterator[Item]:
    return without_duplicates(items, query.text, (*query.agents, *query.all_agents))


@dataclass(frozen=True, slots=True)
class _SearchResult:
    """What a search found: all candidates, those of them in the periods that the question names, by their ids, and
    whether these were asked for by their time alone."""

    candidates: Sequence[Candidate]
    in_periods: Collection[str]
    by_time_alone: bool


async def _candidates(
    recall: Recall,
    readable: Readable,
    query: SearchQuery,
    shown: Shown,
    retrieval: Retrieval,
    now: datetime,
    *,
    floor: bool,
    most: int,
) -> _SearchResult:
    """Search in each period that the question names, and at any time unless a time is all that is asked for."""
    periods = query.times.periods(query.text, now) if floor else []
    only_time = bool(periods) and relevance.asks_only_for_a_time(query.about, query.agents)
    in_rooms = readable.within(query.rooms) if query.rooms else readable
    excluded = [*map(episode_id, shown.messages), *_ids(shown.summaries)]
    long = [episode_id(each) for each in shown.messages if each.attachments or not is_whole(each.text)]
    long += _ids(shown.summaries)
    since = now - timedelta(days=retrieval.retention_days) if retrieval.retention_days else EARLIEST

    people = _people(query)
    spelt: dict[str, str] = {}

    async def search(
        scope: Readable, start: datetime, end: datetime | None, authors: Collection[uuid.UUID] = ()
    ) -> tuple[list[Candidate], bool]:
        """What may be read and is within the period, and whether it is about the question."""
        terms = [] if retrieval.strategy == "semantic" else query.terms
        found = await recall.search(scope, query.vector, terms, most, excluded, now, start, end, authors, long)
        if unknown := [term for term in found.unknown if term not in spelt]:
            spelt.update(await _spelt(recall, readable, unknown, since, now))
        meant = sorted({spelt.get(term, term) for term in terms} - {""})
        if meant != sorted(terms):
            found = await recall.search(scope, query.vector, meant, most, excluded, now, start, end, authors, long)
        read = [each for each in found.candidates if readable.admits(each.item)]
        if query.scale != MINILM_SCALE:
            read = [each.on(query.scale) for each in read]
        found = replace(found, candidates=read)
        if authors:
            said = [each for each in found.candidates if not each.item.by_agent and not each.only_newer]
            found = replace(found, candidates=said)
        if end is not None:
            found = replace(found, candidates=[each for each in found.candidates if _tells_of(each.item, (start, end))])
        if not floor or relevance.fits(found, query.about, query.agents):
            return found.candidates, True
        if end is not None:
            return found.candidates, False
        of_days = _of_days_asked_for(found, query, now)
        fits = relevance.fits(of_days, query.about, query.agents)
        return of_days.candidates if fits else found.candidates, fits

    in_periods: dict[str, Candidate] = {}
    for start, end in periods:
        found, fits = await search(in_rooms, max(start, since), end)
        in_periods |= {candidate.item.id: candidate for candidate in found if only_time or fits}
    at_any_time: dict[str, Candidate] = {}
    if not (only_time and in_periods):
        for scope in dict.fromkeys((in_rooms, in_rooms if only_time else readable)):
            found, fits = await search(scope, since, None)
            at_any_time |= {candidate.item.id: candidate for candidate in found if fits}
    if people:  # what those said of it whom the question names, also where others said more of it
        for start, end in periods or [(since, now)]:
            found, fits = await search(in_rooms, max(start, since), end, people)
            known = {id for id, candidate in at_any_time.items() if not candidate.only_newer}
            at_any_time |= {each.item.id: each for each in found if fits and each.item.id not in known}
    return _SearchResult(list((in_periods | at_any_time).values()), in_periods, only_time and bool(in_periods))


def _of_days_asked_for(found: Found, query: SearchQuery, now: datetime) -> Found:
    """What was found whose text means a day that the question asks for."""
    likeliest = sorted(found.candidates, key=lambda each: (-(each.meaning or 0.0), -each.words))
    days = meant_shares((each.item for each in likeliest), query.about, now, query.times)
    candidates = [each for each in found.candidates if each.item.id in days]
    return replace(found, candidates=candidates, items=max(LEAST_OF_DAYS, len(candidates)))


async def _spelt(
    recall: Recall, readable: Readable, unknown: Collection[str], since: datetime, now: datetime
) -> dict[str, str]:
    """What search terms that nobody used stand for: words that the viewer may read somewhere, of the nearest spelling;
    "" for those that say nothing by themselves; themselves where nothing is like them."""
    found = {term: "" if spelling.is_swapped_stop_word(term) else term for term in unknown}
    words = spelling.may_be_misspelt([term for term in found.values() if term])
    if words:
        begin = {each for word in words for each in spelling.beginnings(word)}
        known = await recall.words(readable, begin, MAX_WORDS_COMPARED, now, since)
        found |= {word: spelling.meant(word, known) or word for word in words}
    return found


def _tells_of(item: Item, period: Period) -> bool:
    """Whether an item is of a period, whose end is not included. What covers a time itself, such as the summary of a
    day, is dated where that ends, so it is of the period that includes its last moment."""
    start, end = period
    return start <= item.at < end if item.starts_at is None else start < item.at <= end


def _above_noise(items: Iterable[Item]) -> Iterator[Item]:
    """The items, best first, as long as they are not far less relevant than the first."""
    best: float | None = None
    for item in items:
        score = item.score or 0.0
        best = score if best is None else best
        if score < relevance.MIN_SHARE_OF_BEST * best:
            return
        yield item


def episode_id(message: Message) -> uuid.UUID:
    """The id of a message's episode: the message as it is indexed for recall."""
    return episode_id_of(message.id)
