"""Summaries in tiers: of a thread, of a stretch of talk, of a day, of a week of days; each of one run alone.

Whatever changes the log leaves a mark (a trigger in SQL does), and a tier looks where there are marks. What a summary
was made from is part of its id: looking twice changes nothing, a late message or an erased one makes another summary,
and a run that was broken off goes on with the marks that are left.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, Protocol

import structlog

from composer.memory.index import searchable_words
from composer.model import Agent, ConversationKind, Visibility, derived_id
from composer.ports.models import Tokenizer
from composer.repositories.database import Database, Transaction
from composer.repositories.recall import IndexEntry
from composer.repositories.summaries import DueQuarter, NewSummary, Span
from composer.summaries.summariser import Said, SummaryText, said
from composer.text.terms import terms

logger = structlog.get_logger()

TIERS: Final = ("thread", "session", "day", "week")
PAUSE: Final = timedelta(hours=1)  # a stretch of talk is over after so long without a word
QUARTER: Final = timedelta(minutes=15)
THREAD_STEP: Final = 50  # messages; an open thread is summarised at every so many
THREAD_CLOSED: Final = timedelta(days=3)  # without a word, where no platform says that a thread is over
FEWEST: Final = 3  # messages that are worth a thread's or a session's summary
SHARE: Final = 0.1  # of the tokens that it is made from
LEAST_TOKENS: Final = 80
MOST_TOKENS: Final = {"thread": 300, "session": 250, "day": 400, "week": 500}
TRIES: Final = 3  # at a summary whose sources change while it is written

Report = Callable[[int, int], None]  # (done, failed) just now
EARLIEST: Final = datetime(1, 1, 2, tzinfo=UTC)
LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)


class Writer(Protocol):
    """Writes the text of a summary (composer.summaries.summariser.Summariser)."""

    async def summarise(
        self, pieces: Sequence[Said], budget: int, tokenizer: Tokenizer, agent: Agent | None = None
    ) -> SummaryText:
        """A text of at most `budget` tokens."""
        ...


class _Changed(Exception):
    """What a summary is made from changed while it was written."""


@dataclass(frozen=True, slots=True)
class _Source:
    """What a summary is made from: a message or a lower summary, and what tells one state of it from another."""

    id: uuid.UUID
    version: str
    piece: Said


def day_of(at: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """The local day of a moment, from midnight to midnight, in UTC: 23, 24 or 25 hours. Pure."""
    day = at.astimezone(zone).date()
    return _midnight(day, zone), _midnight(day + timedelta(days=1), zone)


def week_of(at: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """The local week of a moment, from Monday to Monday, in UTC. Pure."""
    day = at.astimezone(zone).date()
    monday = day - timedelta(days=day.weekday())
    return _midnight(monday, zone), _midnight(monday + timedelta(days=7), zone)


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


def stretches(times: Sequence[datetime], pause: timedelta = PAUSE) -> list[tuple[datetime, datetime]]:
    """Where talk was, without a pause in it: (first, last) of each stretch. Pure; `times` stand in order."""
    found: list[tuple[datetime, datetime]] = []
    for at in times:
        if found and at - found[-1][1] < pause:
            found[-1] = (found[-1][0], at)
        else:
            found.append((at, at))
    return found


class Tiers:
    """Brings the summaries of a tenant up to date."""

    def __init__(self, store: Database, writer: Writer, tokenizer: Callable[[Agent | None], Tokenizer]) -> None:
        self._store = store
        self._writer = writer
        self._tokenizer = tokenizer

    async def catch_up(
        self, tenant: uuid.UUID, tier: str, now: datetime, zone: tzinfo, agent: Agent | None, report: Report
    ) -> None:
        """Write, write again or take away whatever is due in one tier, the earliest first.

        One that fails is logged, keeps its marks and does not stop the others.
        """
        async with self._store.transaction(tenant, snapshot=True) as tx:
            marks = await tx.summaries.due(tier)
        for span, of in await self._spans(tenant, tier, marks, now, zone):
            try:
                await self._bring_up_to_date(tenant, span, of, now, agent)
                report(1, 0)
            except Exception:
                logger.exception("summary.failed", tier=tier, conversation=str(span.conversation_id))
                report(0, 1)

    async def _spans(
        self, tenant: uuid.UUID, tier: str, marks: Sequence[DueQuarter], now: datetime, zone: tzinfo
    ) -> list[tuple[Span, list[datetime]]]:
        """What the marks call for, in order, with the marks that it settles."""
        if tier == "day":
            return _periods(tier, marks, now, lambda at: day_of(at, zone))
        if tier == "week":
            return _periods(tier, marks, now, lambda at: week_of(at, zone))
        places: defaultdict[tuple[uuid.UUID, str], list[DueQuarter]] = defaultdict(list)
        for mark in marks:
            places[mark.conversation_id, mark.namespace].append(mark)
        if tier == "thread":
            return [(_span(tier, of[0], EARLIEST, LATEST), [mark.quarter for mark in of]) for of in places.values()]
        spans: list[tuple[Span, list[datetime]]] = []
        for of in places.values():
            spans += await self._windows(tenant, of)
        return sorted(spans, key=lambda entry: entry[0].starts_at)

    async def _windows(self, tenant: uuid.UUID, marks: Sequence[DueQuarter]) -> list[tuple[Span, list[datetime]]]:
        """The spans of a conversation in which stretches of talk may have changed, whole stretches each."""
        windows: list[tuple[Span, list[datetime]]] = []
        async with self._store.transaction(tenant, snapshot=True) as tx:
            for mark in marks:
                if windows and mark.quarter + QUARTER <= windows[-1][0].ends_at:
                    windows[-1][1].append(mark.quarter)
                    continue
                start, end = await tx.summaries.activity_around(
                    mark.conversation_id, mark.namespace, mark.quarter, mark.quarter + QUARTER, PAUSE
                )
                # A little beyond its last message, so that this is in it.
                span = _span("session", mark, start, max(end, mark.quarter + QUARTER) + timedelta(microseconds=1))
                windows.append((span, [mark.quarter]))
        return windows

    async def _bring_up_to_date(
        self, tenant: uuid.UUID, span: Span, marks: list[datetime], now: datetime, agent: Agent | None
    ) -> None:
        for attempt in range(TRIES):
            try:
                await self._reconcile(tenant, span, marks, now, agent)
                return
            except _Changed:
                if attempt == TRIES - 1:
                    raise

    async def _reconcile(
        self, tenant: uuid.UUID, span: Span, marks: list[datetime], now: datetime, agent: Agent | None
    ) -> None:
        """One span: what should be there, written while no connection is held, and put there if that is still so."""
        async with self._store.transaction(tenant, snapshot=True) as tx:
            sources = await _sources(tx, span)
            stored = {summary.id for summary in await tx.summaries.overlapping(span)}
        parts, settled = _parts(span, sources, marks, now)
        new: list[NewSummary] = []
        for part, of in parts:
            id = summary_id(part, of)
            if id not in stored:
                new.append(await self._write(part, of, id, now, agent))
        async with self._store.transaction(tenant) as tx:
            await tx.summaries.lock()
            await tx.summaries.mark_processed(span, settled)
            if [(s.id, s.version) for s in await _sources(tx, span)] != [(s.id, s.version) for s in sources]:
                raise _Changed
            await _put(tx, span, parts, new, open_from=_open_from(span, sources, now))

    async def _write(
        self, part: Span, of: Sequence[_Source], id: uuid.UUID, now: datetime, agent: Agent | None
    ) -> NewSummary:
        tokenizer = self._tokenizer(agent)
        pieces = [source.piece for source in of]
        whole = sum(tokenizer.count(piece.text) for piece in pieces)
        budget = min(max(int(whole * SHARE), LEAST_TOKENS), MOST_TOKENS[part.tier])
        text = await self._writer.summarise(pieces, budget, tokenizer, agent)
        kind = "summary" if part.tier == "week" else "message"
        return NewSummary(id, part, text.text, text.tokens, text.model, kind, tuple(source.id for source in of), now)


def summary_id(span: Span, sources: Sequence[_Source]) -> uuid.UUID:
    """The id of a summary of these sources in this state: the same in every run, another when one of them changes."""
    marks = (f"{source.id} {source.version}" for source in sources)
    begins, ends = span.starts_at.isoformat(), span.ends_at.isoformat()
    return derived_id("summary", span.tier, str(span.conversation_id), span.namespace, begins, ends, *marks)


def _periods(
    tier: str, marks: Sequence[DueQuarter], now: datetime, period: Callable[[datetime], tuple[datetime, datetime]]
) -> list[tuple[Span, list[datetime]]]:
    """The days or weeks that are over and have marks, the earliest first."""
    found: dict[tuple[datetime, uuid.UUID, str], tuple[Span, list[datetime]]] = {}
    for mark in marks:
        start, end = period(mark.quarter)
        if end <= now:
            key = (start, mark.conversation_id, mark.namespace)
            found.setdefault(key, (_span(tier, mark, start, end), []))[1].append(mark.quarter)
    return [found[key] for key in sorted(found)]


def _span(tier: str, mark: DueQuarter, start: datetime, end: datetime) -> Span:
    rooms = mark.kind in (ConversationKind.ROOM, ConversationKind.THREAD)
    visibility = Visibility.PUBLIC if rooms else Visibility.PRIVATE
    place = (mark.conversation_id, mark.namespace, visibility, mark.user_id, mark.agent_id)
    return Span(tier, *place, start, end, mark.archived_at)


async def _sources(tx: Transaction, span: Span) -> list[_Source]:
    if span.tier == "week":
        days = await tx.summaries.overlapping(span, "day")
        return [_Source(day.id, "", Said("", day.starts_at, day.text)) for day in days]
    return [_Source(message.id, edited, said(message)) for message, edited in await tx.summaries.messages_in(span)]


def _parts(
    span: Span, sources: Sequence[_Source], marks: list[datetime], now: datetime
) -> tuple[list[tuple[Span, Sequence[_Source]]], list[datetime]]:
    """The summaries that a span should have, each with its sources, and the marks that this settles. Pure."""
    if span.tier in ("day", "week"):
        return ([(span, sources)] if sources else []), marks
    times = [source.piece.at for source in sources]
    if span.tier == "thread":
        closed = not times or _is_closed(times[-1], span.archived_at, now)
        count = len(sources) if closed else len(sources) // THREAD_STEP * THREAD_STEP
        worth = count >= FEWEST and (closed or len(sources) > THREAD_STEP)
        part = span.between(times[0], times[count - 1]) if worth else span
        return ([(part, sources[:count])] if worth else []), marks if closed else []
    parts: list[tuple[Span, Sequence[_Source]]] = []
    from_ = _open_from(span, sources, now)
    for first, last in stretches(times):
        of = [source for source in sources if first <= source.piece.at <= last]
        if last < from_ and len(of) >= FEWEST:
            parts.append((span.between(first, last), of))
    return parts, [mark for mark in marks if mark + QUARTER <= from_]


def _is_closed(last: datetime, archived_at: datetime | None, now: datetime) -> bool:
    """Whether a thread is over: archived on its platform after its last word, or quiet for long."""
    return (archived_at is not None and last <= archived_at <= now) or last + THREAD_CLOSED <= now


def _open_from(span: Span, sources: Sequence[_Source], now: datetime) -> datetime:
    """Where the stretch begins that may still go on; far ahead when there is none."""
    if span.tier != "session":
        return LATEST
    return next((a for a, b in stretches([s.piece.at for s in sources]) if b + PAUSE > now), LATEST)


async def _put(
    tx: Transaction,
    span: Span,
    parts: Sequence[tuple[Span, Sequence[_Source]]],
    new: Sequence[NewSummary],
    *,
    open_from: datetime,
) -> None:
    """Let the summaries of a span be these: others that stand there go, and the tier above is told of any change."""
    wanted = {summary_id(part, of) for part, of in parts}
    stored = await tx.summaries.overlapping(span)
    stale = [s.id for s in stored if s.id not in wanted and s.ends_at < open_from]
    present = {summary.id for summary in stored}
    fresh = [summary for summary in new if summary.text and summary.id not in present]
    if stale:
        await tx.recall.remove(stale)
        await tx.summaries.delete(stale)
    for summary in fresh:
        await tx.summaries.add(summary)
    if fresh:
        await tx.recall.index([], [index_entry(summary) for summary in fresh], [])
    if span.tier == "day":
        await tx.summaries.mark_due("week", span)


def index_entry(summary: NewSummary) -> IndexEntry:
    """A summary as recall finds it."""
    words = terms(searchable_words(summary.text))
    span = summary.span
    return IndexEntry(
        summary.id,
        "summary",
        span.namespace,
        span.visibility,
        span.user_id,
        span.ends_at,
        {word: words.count(word) for word in dict.fromkeys(words)},
    )
