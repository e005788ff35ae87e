"""Summaries in tiers: of a thread, a session of messages, a day, and a week of days; each of one namespace alone.

A trigger in SQL records the quarter of an hour of every change as due, and each tier processes the conversations with
due quarters. The sources of a summary are part of its id, so that processing twice changes nothing, a late or erased
message gives another summary, and an interrupted run continues with the marks that are left.
"""

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol

import structlog

from composer.errors import Refused
from composer.memory.index import without_mentions
from composer.model import Agent, ConversationKind, Message, Visibility, derived_id
from composer.ports.clock import EARLIEST
from composer.ports.models import Tokenizer, UsageAccount, WorkKind
from composer.repositories.database import Database, Transaction
from composer.repositories.recall import IndexEntry
from composer.repositories.summaries import DueQuarter, NewSummary, Span
from composer.summaries.texts import SummaryInput, SummaryText, summary_inputs
from composer.text.dates.local_days import day_of, week_of
from composer.text.dates.vocabulary import WEEKDAYS, Period
from composer.text.terms import terms
from composer.text.work import COUNTED_PER_READ, off_loop

logger = structlog.get_logger()

TIERS: Final = ("thread", "session", "day", "week")
QUARTER: Final = timedelta(minutes=15)  # what one due mark covers
SESSION_PAUSE: Final = timedelta(hours=1)  # without a message, after which a session is over
THREAD_STEP: Final = 50  # messages after which an open thread is summarised again
THREAD_QUIET_PERIOD: Final = timedelta(days=3)  # without a message, where no platform says that a thread is closed
MIN_MESSAGES: Final = 3  # of a thread or session that is worth a summary
TIER_SHARE: Final = 0.1  # of the tokens of its sources
MIN_SUMMARY_TOKENS: Final = 150  # which a dozen messages have: a day of so few stands whole
MAX_SUMMARY_TOKENS: Final = {"thread": 300, "session": 250, "day": 400, "week": 400}
MAX_SUMMARY_ATTEMPTS: Final = 3  # at a summary whose sources change while it is written
LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)

OnProgress = Callable[[int, int], None]  # (summaries done, failed) since the last report


class SummaryWriter(Protocol):
    """Writes the text of a summary (composer.summaries.summariser.Summariser)."""

    async def summarise(
        self,
        inputs: Sequence[SummaryInput],
        budget: int,
        tokenizer: Tokenizer,
        account: UsageAccount,
        agent: Agent | None = None,
    ) -> SummaryText:
        """Summarise inputs, oldest first, in at most `budget` tokens, with the model of `agent` if there is one."""
        ...


class _SourcesChanged(Exception):
    """The sources of a summary changed while it was written."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A source of a summary: a message or a summary of the tier below. `version` changes with each edit."""

    id: uuid.UUID
    version: str
    input: SummaryInput


class SummaryTiers:
    """Updates the summaries of a tenant, tier by tier."""

    def __init__(
        self, database: Database, writer: SummaryWriter, tokenizer: Callable[[Agent | None], Tokenizer]
    ) -> None:
        self._database = database
        self._writer = writer
        self._tokenizer = tokenizer
        self._asking: set[uuid.UUID] = set()  # people for whom a summary is being written

    async def catch_up(
        self, tenant: uuid.UUID, tier: str, now: datetime, zone: tzinfo, agent: Agent | None, report: OnProgress
    ) -> None:
        """Write, rewrite or delete the summaries of one tier that are due, the earliest first.

        `agent` names the model that chooses; with None a summary is the end of what it sums up. A summary that fails
        is logged and stays due; the others go on.
        """
        async with self._database.transaction(tenant, "read") as tx:
            marks = await tx.summaries.due(tier)
        for span, quarters in await self._spans(tenant, tier, marks, now, zone):
            try:
                await self._update_with_retries(tenant, span, quarters, now, agent)
                report(1, 0)
            except Exception:
                logger.exception("summary.failed", tier=tier, conversation=str(span.conversation_id))
                report(0, 1)

    async def summarise(
        self,
        tenant: uuid.UUID,
        messages: Sequence[tuple[Message, str]],
        budget: int,
        agent: Agent | None,
        asker: uuid.UUID,
        room: uuid.UUID,
    ) -> str:
        """Summarise messages, each with its place, for one person, in at most `budget` tokens, and store nothing.
        `agent` names the model that writes, in the asker's name and within the budgets; without one, and where it
        fails, it is their end.
        Raises Refused while another is written for the same person."""
        if asker in self._asking:
            raise Refused("I am still summing up for you: wait for that answer, and then ask again.")
        account = UsageAccount(tenant, WorkKind.SUMMARY, agent, room, asker)
        inputs, tokenizer = summary_inputs(messages), self._tokenizer(agent)
        self._asking.add(asker)
        try:
            return (await self._writer.summarise(inputs, budget, tokenizer, account, agent)).text
        finally:
            self._asking.discard(asker)

    async def _spans(
        self, tenant: uuid.UUID, tier: str, marks: Sequence[DueQuarter], now: datetime, zone: tzinfo
    ) -> list[tuple[Span, list[datetime]]]:
        """The spans to process, in order, each with the quarters of its marks."""
        if tier == "day":
            return _past_periods(tier, marks, now, lambda at: day_of(at, zone))
        if tier == "week":
            return _past_periods(tier, marks, now, lambda at: week_of(at, zone))
        by_conversation: defaultdict[tuple[uuid.UUID, str], list[DueQuarter]] = defaultdict(list)
        for mark in marks:
            by_conversation[mark.conversation_id, mark.namespace].append(mark)
        if tier == "thread":
            return [
                (_span(tier, own[0], EARLIEST, LATEST), [mark.quarter for mark in own])
                for own in by_conversation.values()
            ]
        spans: list[tuple[Span, list[datetime]]] = []
        for own in by_conversation.values():
            spans += await self._session_windows(tenant, own)
        return sorted(spans, key=lambda entry: entry[0].starts_at)

    async def _session_windows(
        self, tenant: uuid.UUID, marks: Sequence[DueQuarter]
    ) -> list[tuple[Span, list[datetime]]]:
        """The spans of a conversation in which sessions may have changed; each covers whole sessions."""
        windows: list[tuple[Span, list[datetime]]] = []
        async with self._database.transaction(tenant, "read") as tx:
            for mark in marks:
                if windows and mark.quarter + QUARTER <= windows[-1][0].ends_at:
                    windows[-1][1].append(mark.quarter)
                    continue
                start, end = await tx.summaries.activity_around(
                    mark.conversation_id, mark.namespace, mark.quarter, mark.quarter + QUARTER, SESSION_PAUSE
                )
                # A span does not include its end, so it ends just after the last message.
                span = _span("session", mark, start, max(end, mark.quarter + QUARTER) + timedelta(microseconds=1))
                windows.append((span, [mark.quarter]))
        return windows

    async def _update_with_retries(
        self, tenant: uuid.UUID, span: Span, quarters: list[datetime], now: datetime, agent: Agent | None
    ) -> None:
        for attempt in range(MAX_SUMMARY_ATTEMPTS):
            try:
                await self._update_span(tenant, span, quarters, now, agent)
                return
            except _SourcesChanged:
                if attempt == MAX_SUMMARY_ATTEMPTS - 1:
                    raise

    async def _update_span(
        self, tenant: uuid.UUID, span: Span, quarters: list[datetime], now: datetime, agent: Agent | None
    ) -> None:
        """Make the stored summaries of a span what they should be.

        They are written while no connection is held. Raises _SourcesChanged when a source changed meanwhile.
        """
        async with self._database.transaction(tenant, "read") as tx:
            sources = await _sources(tx, span)
            stored = {summary.id for summary in await tx.summaries.overlapping(span)}
        parts, settled = _parts(span, sources, quarters, now)
        new: list[NewSummary] = []
        for part, part_sources in parts:
            id = summary_id(part, part_sources)
            if id not in stored:
                new.append(await self._write(tenant, part, part_sources, id, now, agent))
        async with self._database.transaction(tenant) as tx:
            await tx.serialize()
            await tx.summaries.mark_processed(span, settled)
            if _versions(await _sources(tx, span)) != _versions(sources):
                raise _SourcesChanged
            await _replace_summaries(tx, span, parts, new, open_from=_open_from(span, sources, now))

    async def _write(
        self,
        tenant: uuid.UUID,
        span: Span,
        sources: Sequence[_Source],
        id: uuid.UUID,
        now: datetime,
        agent: Agent | None,
    ) -> NewSummary:
        tokenizer = self._tokenizer(agent)
        inputs = [source.input for source in sources]
        chars = sum(len(source.text) for source in inputs)
        tokens = await off_loop(
            chars // COUNTED_PER_READ, lambda: sum(tokenizer.count(source.text) for source in inputs)
        )
        budget = summary_budget(span.tier, tokens)
        account = UsageAccount(tenant, WorkKind.SUMMARY, agent, span.conversation_id, span.user_id)
        written = await self._writer.summarise(inputs, budget, tokenizer, account, agent)
        return NewSummary(
            id=id,
            span=span,
            text=written.text,
            tokens=written.tokens,
            model=written.model,
            source_kind="summary" if span.tier == "week" else "message",
            sources=tuple(source.id for source in sources),
            at=now,
        )


def summary_budget(tier: str, tokens: int) -> int:
    """The tokens that a summary of so many tokens may have."""
    if tier == "week":  # its days are summed up already
        return MAX_SUMMARY_TOKENS[tier]
    return min(max(int(tokens * TIER_SHARE), MIN_SUMMARY_TOKENS), MAX_SUMMARY_TOKENS[tier])


def summary_id(span: Span, sources: Sequence[_Source]) -> uuid.UUID:
    """The id of a summary: the same for the same sources in the same versions, another when one of them changes."""
    versions = (f"{source.id} {source.version}" for source in sources)
    start, end = span.starts_at.isoformat(), span.ends_at.isoformat()
    return derived_id("summary", span.tier, str(span.conversation_id), span.namespace, start, end, *versions)


def _versions(sources: Sequence[_Source]) -> list[tuple[uuid.UUID, str]]:
    return [(source.id, source.version) for source in sources]


def _past_periods(
    tier: str, marks: Sequence[DueQuarter], now: datetime, period_of: Callable[[datetime], Period]
) -> list[tuple[Span, list[datetime]]]:
    """The days or weeks that are over and have marks, the earliest first, each with the quarters of its marks."""
    found: dict[tuple[datetime, uuid.UUID, str], tuple[Span, list[datetime]]] = {}
    for mark in marks:
        start, end = period_of(mark.quarter)
        if end <= now:
            key = (start, mark.conversation_id, mark.namespace)
            found.setdefault(key, (_span(tier, mark, start, end), []))[1].append(mark.quarter)
    return [found[key] for key in sorted(found)]


def _span(tier: str, mark: DueQuarter, start: datetime, end: datetime) -> Span:
    in_room = mark.kind in (ConversationKind.ROOM, ConversationKind.THREAD)
    return Span(
        tier=tier,
        conversation_id=mark.conversation_id,
        namespace=mark.namespace,
        visibility=Visibility.PUBLIC if in_room else Visibility.PRIVATE,
        user_id=mark.user_id,
        agent_id=mark.agent_id,
        starts_at=start,
        ends_at=end,
        archived_at=mark.archived_at,
    )


async def _sources(tx: Transaction, span: Span) -> list[_Source]:
    if span.tier == "week":
        days = await tx.summaries.overlapping(span, "day")
        return [
            _Source(day.id, "", SummaryInput("", day.starts_at, day.text, day=_weekday(day.starts_at, span)))
            for day in days
        ]
    found = await tx.summaries.messages_in(span)
    inputs = summary_inputs([(message, str(conversation)) for message, conversation in found])
    return [
        _Source(message.id, "" if message.edited_at is None else message.edited_at.isoformat(), input)
        for (message, _), input in zip(found, inputs, strict=True)
    ]


def _weekday(at: datetime, week: Span) -> str:
    """The day of a week that begins at a time. Of two days of a year, one has 23 hours, and one 25."""
    return WEEKDAYS[round((at - week.starts_at) / timedelta(days=1)) % len(WEEKDAYS)].capitalize()


def _parts(
    span: Span, sources: Sequence[_Source], quarters: list[datetime], now: datetime
) -> tuple[list[tuple[Span, Sequence[_Source]]], list[datetime]]:
    """The summaries that a span should have, each with its sources, and the quarters that are settled by them. Pure."""
    if span.tier in ("day", "week"):
        return ([(span, sources)] if sources else []), quarters
    if span.tier == "thread":
        return _thread_parts(span, sources, quarters, now)
    parts: list[tuple[Span, Sequence[_Source]]] = []
    open_from = _open_from(span, sources, now)
    for first, last in activity_sessions([source.input.at for source in sources]):
        own = [source for source in sources if first <= source.input.at <= last]
        if last < open_from and len(own) >= MIN_MESSAGES:
            parts.append((span.between(first, last), own))
    return parts, [quarter for quarter in quarters if quarter + QUARTER <= open_from]


def _thread_parts(
    span: Span, sources: Sequence[_Source], quarters: list[datetime], now: datetime
) -> tuple[list[tuple[Span, Sequence[_Source]]], list[datetime]]:
    """A thread's one summary: of all its messages once it is closed, of whole steps of messages before."""
    times = [source.input.at for source in sources]
    closed = not times or _is_closed(times[-1], span.archived_at, now)
    count = len(sources) if closed else len(sources) // THREAD_STEP * THREAD_STEP
    settled = quarters if closed else []
    if count < MIN_MESSAGES or not (closed or len(sources) > THREAD_STEP):
        return [], settled
    return [(span.between(times[0], times[count - 1]), sources[:count])], settled


def _is_closed(last: datetime, archived_at: datetime | None, now: datetime) -> bool:
    """Whether a thread is closed: archived on its platform after its last message, or quiet for long."""
    return (archived_at is not None and last <= archived_at <= now) or last + THREAD_QUIET_PERIOD <= now


def _open_from(span: Span, sources: Sequence[_Source], now: datetime) -> datetime:
    """The beginning of the session that may still continue; LATEST when there is none."""
    if span.tier != "session":
        return LATEST
    sessions = activity_sessions([source.input.at for source in sources])
    return next((first for first, last in sessions if last + SESSION_PAUSE > now), LATEST)


async def _replace_summaries(
    tx: Transaction,
    span: Span,
    parts: Sequence[tuple[Span, Sequence[_Source]]],
    new: Sequence[NewSummary],
    *,
    open_from: datetime,
) -> None:
    """Store the new summaries of a span, remove those that are not wanted any more, and make the tier above due."""
    wanted = {summary_id(part, sources) for part, sources in parts}
    stored = await tx.summaries.overlapping(span)
    stale = [summary.id for summary in stored if summary.id not in wanted and summary.ends_at < open_from]
    present = {summary.id for summary in stored}
    fresh = [summary for summary in new if summary.text and summary.id not in present]
    if stale:
        await tx.recall.remove(stale)
        await tx.summaries.delete(stale)
    for summary in fresh:
        await tx.summaries.add(summary)
    if fresh:
        await tx.recall.index([], [summary_entry(summary) for summary in fresh], [])
    if span.tier == "day":
        await tx.summaries.mark_due("week", span)


def summary_entry(summary: NewSummary) -> IndexEntry:
    """The index entry of a summary."""
    span = summary.span
    return IndexEntry(
        summary.id,
        "summary",
        span.namespace,
        span.visibility,
        span.user_id,
        span.ends_at,
        Counter(terms(without_mentions(summary.text))),
    )


def activity_sessions(times: Sequence[datetime]) -> list[tuple[datetime, datetime]]:
    """Split message times (oldest first) into sessions without a SESSION_PAUSE: the first and last time of each."""
    found: list[tuple[datetime, datetime]] = []
    for at in times:
        if found and at - found[-1][1] < SESSION_PAUSE:
            found[-1] = (found[-1][0], at)
        else:
            found.append((at, at))
    return found
