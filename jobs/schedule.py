"""The schedule: every job with its times, its work and its time limit."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from apscheduler.triggers.cron import CronTrigger

from jobs import work
from jobs.work import JobRun

_HORIZONS: Final = (timedelta(hours=2), timedelta(days=2), timedelta(days=40))  # searched for the last due time


@dataclass(frozen=True, slots=True)
class Job:
    """One job. `cron` is a crontab line, in UTC. A run is stopped after `limit_seconds`; the next one continues.

    `needs_owner`: only processes with the login of the database's owner have it on their schedule.
    """

    name: str
    cron: str
    help: str
    limit_seconds: float
    work: Callable[[JobRun], Awaitable[None]]
    needs_owner: bool = False

    @property
    def trigger(self) -> CronTrigger:
        """The times at which the job is due, for the scheduler."""
        return CronTrigger.from_crontab(self.cron, timezone=UTC)

    def last_due(self, now: datetime) -> datetime | None:
        """The latest time up to `now` at which the job was due; None if it was not due in 40 days."""
        trigger = self.trigger
        for horizon in _HORIZONS:
            due = trigger.get_next_fire_time(None, now - horizon)
            last: datetime | None = None
            while due is not None and due <= now:
                last = due
                due = trigger.get_next_fire_time(due, due)
            if last is not None:
                return last.astimezone(UTC)
        return None

    def next_due(self, now: datetime) -> datetime | None:
        """The next time at which the job is due."""
        due = self.trigger.get_next_fire_time(None, now)
        return None if due is None else due.astimezone(UTC)


# Missed runs are made up for in this order. Every quarter of an hour it is midnight in some time zone.
JOBS: Final[tuple[Job, ...]] = (
    Job("embedding", "*/10 * * * *", "index messages by words and by meaning", 540, work.embed),
    Job(
        "extraction",
        "*/10 * * * *",
        "extract memories from paused conversations, with a model",
        540,
        work.extract,
    ),
    Job("thread", "*/10 * * * *", "summarise threads that are over, or grew by 50 messages", 540, work.threads),
    Job("session", "*/10 * * * *", "summarise conversations that have paused for an hour", 540, work.sessions),
    Job("day", "*/15 * * * *", "summarise days that are over in the tenant's time zone", 3_600, work.days),
    Job("week", "5,35 * * * *", "summarise weeks that are over, from their days", 3_600, work.weeks),
    Job("expiry", "20 * * * *", "erase expired memories, prompts, codes, keys and web sessions", 600, work.expire),
    Job(
        "retention",
        "40 2 * * *",
        "erase messages, audit rows and usage that are older than the tenant's keep_days, audit_days and usage_days",
        3_600,
        work.retain,
    ),
    Job(
        "quotas", "3-58/5 * * * *", "tell admins, once a month, which quotas are nearly used up", 240, work.watch_quotas
    ),
    Job("billing", "25 3 * * *", "ask the billing provider what tenants have paid for", 1_800, work.follow_payments),
    Job("audit", "*/5 * * * *", "seal new rows of the audit log", 240, work.seal),
    Job(
        "trash",
        "50 2 * * *",
        "erase what has been in the trash for 30 days, or as its person has set, and what is kept no longer",
        1_800,
        work.purge,
    ),
    Job("backup", "0 6 * * *", "back up everything, and delete old backups", 7_200, work.back_up, needs_owner=True),
    Job(
        "restore-test",
        "0 7 * * sun",
        "restore the newest backup into a temporary database, and check it",
        7_200,
        work.test_restore,
        needs_owner=True,
    ),
)
JOBS_BY_NAME: Final = {job.name: job for job in JOBS}
