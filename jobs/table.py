"""The schedule: every job, when it runs, what it does, and for how long it may."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from apscheduler.triggers.cron import CronTrigger

from jobs import work
from jobs.work import Run

HORIZONS: Final = (timedelta(hours=2), timedelta(days=2), timedelta(days=40))  # back from now, to find the last slot


@dataclass(frozen=True, slots=True)
class Job:
    """One line of the schedule. `when` is a crontab line, in UTC; `limit` is in seconds: what is not done by then is
    done by the next run."""

    name: str
    when: str
    what: str
    limit: float
    work: Callable[[Run], Awaitable[None]]

    @property
    def trigger(self) -> CronTrigger:
        """The same for the scheduler."""
        return CronTrigger.from_crontab(self.when, timezone=UTC)

    def slot_before(self, now: datetime) -> datetime | None:
        """The last moment up to `now` at which the job was due."""
        for horizon in HORIZONS:
            due = self.trigger.get_next_fire_time(None, now - horizon)
            last: datetime | None = None
            while due is not None and due <= now:
                last = due
                due = self.trigger.get_next_fire_time(due, due)
            if last is not None:
                return last.astimezone(UTC)
        return None

    def slot_after(self, now: datetime) -> datetime | None:
        """The next moment at which it is due."""
        due = self.trigger.get_next_fire_time(None, now)
        return None if due is None else due.astimezone(UTC)


# What was missed is caught up with in this order. Midnight is somewhere every quarter of an hour.
JOBS: Final[tuple[Job, ...]] = (
    Job("reconciliation", "*/30 * * * *", "what was left while no process ran: answers, indexing", 600, work.reconcile),
    Job("embedding", "*/10 * * * *", "find what was said: words, meanings", 540, work.embed),
    Job(
        "extraction", "*/10 * * * *", "memories from talk that has paused, where a model draws them", 540, work.extract
    ),
    Job("thread", "*/10 * * * *", "summaries of threads that are over, or grew by 50 messages", 540, work.threads),
    Job("session", "*/10 * * * *", "summaries of talk that has paused for an hour", 540, work.sessions),
    Job("day", "*/15 * * * *", "summaries of days that are over where the tenant is", 3_600, work.days),
    Job("week", "5,35 * * * *", "summaries of weeks that are over, from their days", 3_600, work.weeks),
    Job("expiry", "20 * * * *", "memories and codes whose time is over", 600, work.expire),
    Job("retention", "40 2 * * *", "forget messages that are older than a tenant keeps them", 3_600, work.retain),
    Job("trash", "50 2 * * *", "forget what has been in the trash for 30 days", 1_800, work.purge),
    Job("usage", "15 * * * *", "add up turns and tokens by day, agent and model", 600, work.roll_up),
    Job("backup", "0 6 * * *", "a backup of everything; old ones go", 7_200, work.back_up),
    Job("restore-test", "0 7 * * sun", "restore the newest backup aside, and compare it", 7_200, work.rehearse),
)
NAMES: Final = {job.name: job for job in JOBS}
