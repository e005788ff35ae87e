"""Digests that are due: the stored summary of a room's last day or week, posted to that room."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, time, timedelta, tzinfo
from typing import Final

from composer import visibility
from composer.model import Agent, Turn
from composer.repositories.database import Transaction
from composer.repositories.digests import Digest, DigestPeriod
from composer.repositories.reminders import Position
from composer.repositories.scheduled import PostKind
from composer.text.dates.local_days import day_of, week_of
from composer.text.dates.repeats import EVERY_DAY, MONDAY, Repeat
from composer.text.dates.vocabulary import Period
from composer.turn.scheduled.due_posts import NotYet
from composer.turn.scheduled.posts import Post, store_post

# For summaries that the jobs have not written, since the first look at a period; then what there is is posted.
MAX_DIGEST_WAIT: Final = timedelta(hours=6)
DEFAULT_HOUR: Final = 9
_TIER: Final = {DigestPeriod.DAILY: "day", DigestPeriod.WEEKLY: "week"}
_MADE_FROM: Final = {DigestPeriod.DAILY: ("day",), DigestPeriod.WEEKLY: ("day", "week")}


def digest_times(period: DigestPeriod, hour: int) -> Repeat:
    """When a digest is posted: every day, or every Monday."""
    return Repeat(EVERY_DAY if period is DigestPeriod.DAILY else MONDAY, time(hour))


async def set_digest(
    tx: Transaction, room: uuid.UUID, period: DigestPeriod | None, hour: int, now: datetime, zone: tzinfo
) -> None:
    """Let a room's digest be posted at an hour (0 to 23) of the tenant's time zone, instead of the one that it has; for
    None of no period any more."""
    if period is None:
        await tx.digests.end(room)
        return
    await tx.digests.set(Digest(room, period, hour, digest_times(period, hour).after(now, zone)))


class DueDigests:
    """The digests that are due (composer.turn.scheduled.due_posts.PostSource)."""

    kind: Final = PostKind.DIGESTS

    def __init__(
        self,
        agents: Callable[[uuid.UUID], tuple[Agent, ...]],
        zone: Callable[[uuid.UUID], tzinfo],
    ) -> None:
        """`agents` and `zone` give a tenant's agents and time zone."""
        self._agents = agents
        self._zone = zone
        self._looked: dict[uuid.UUID, tuple[datetime, datetime]] = {}  # by room: the period that waits, and since when

    async def take(
        self,
        tx: Transaction,
        now: datetime,
        served: Sequence[str],
        position: Position | None,
        excluded: Sequence[uuid.UUID],
    ) -> Digest | None:
        """The earliest digest that is due."""
        return await tx.digests.take_due(now, served, None if position is None else position.conversation_id, excluded)

    def id_of(self, due: Digest) -> uuid.UUID:
        """The room's id."""
        return due.conversation_id

    async def store(self, tx: Transaction, tenant: uuid.UUID, due: Digest, now: datetime) -> Turn | None:
        """Store the digest of the last period as a post, if anything was said. Of several that were missed, only the
        last. Raises NotYet while its summary is still to be written: for six hours since this process could first look
        where there is something to post, else until there is."""
        room, zone = due.conversation_id, self._zone(tenant)
        row = (await tx.conversations.lock([room]))[room]
        times = digest_times(due.period, due.hour)
        start, end = _last_period(due.period, _latest(times, due.due_at, now, zone), zone)
        waits = await tx.digests.awaits_summaries(room, row.conversation.namespace, _MADE_FROM[due.period], start, end)
        if waits and now < self._waits_since(room, start, now) + MAX_DIGEST_WAIT:
            raise NotYet
        readable = visibility.readable_in_room(row.conversation)
        found = await tx.digests.summaries(readable, room, _TIER[due.period], start, end)
        if waits and not found:
            raise NotYet
        self._looked.pop(room, None)
        await tx.digests.set(replace(due, due_at=times.after(now, zone)))
        if not found:
            return None
        post = Post(
            f"digest:{due.period}:{start.isoformat()}",
            digest_text(due.period, start.astimezone(zone), end.astimezone(zone), [each.text for each in found]),
            due.platform,
            tuple(("summary", each.id) for each in found),
            quoting=True,  # without a model a summary is sentences of people
        )
        return await store_post(tx, row, self._agents(tenant)[0], post, now)

    def _waits_since(self, room: uuid.UUID, start: datetime, now: datetime) -> datetime:
        """When this process first looked at the period of a room that begins at `start`: an outage does not count."""
        if self._looked.get(room, (None, now))[0] != start:
            self._looked[room] = (start, now)
        return self._looked[room][1]


def digest_text(period: DigestPeriod, start: datetime, end: datetime, texts: Sequence[str]) -> str:
    """What is posted: the period, in local times with its end excluded, and the summaries of it."""
    last = end - timedelta(microseconds=1)
    of = f"{start:%A}, {start:%Y-%m-%d}"
    if period is DigestPeriod.WEEKLY:
        of = f"the week from {start:%Y-%m-%d} to {last:%Y-%m-%d}"
    return "\n".join((f"Digest of {of}:", *texts))


def _latest(times: Repeat, due: datetime, now: datetime, zone: tzinfo) -> datetime:
    """The last time up to `now` at which it was due."""
    while (following := times.after(due, zone)) <= now:
        due = following
    return due


def _last_period(period: DigestPeriod, due: datetime, zone: tzinfo) -> Period:
    """The day or the week that was over when the digest was due."""
    of = day_of if period is DigestPeriod.DAILY else week_of
    return of(of(due, zone)[0] - timedelta(microseconds=1), zone)
