"""The jobs of the command line: for `nexus jobs list`, `nexus jobs run`, `nexus run` and `nexus play`."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog

from bot.web.jobs import JobState
from composer.app import App
from composer.errors import BadInput, NexusError, NotFound, for_operator
from composer.repositories.job_ledger import StoredRun
from composer.summaries.tiers import OnProgress
from composer.tasks.signals import end_tasks
from composer.text.cleaning import clean_line
from jobs.runner import Runner, RunOutcome
from jobs.schedule import JOBS, JOBS_BY_NAME, Job

logger = structlog.get_logger()

NAME_WIDTH: Final = max(len(job.name) for job in JOBS)
CRON_WIDTH: Final = max(len(job.cron) for job in JOBS)
GRACE: Final = timedelta(minutes=5)  # after a job's time limit, before it is overdue


class ServedJobs:
    """The jobs of a process that serves (bot.web.jobs.JobSchedule)."""

    def __init__(self, app: App) -> None:
        self._app, self._runner = app, Runner(app)
        self._begun: set[asyncio.Task[RunOutcome]] = set()

    async def serve(self) -> None:
        """Run the schedule until cancelled."""
        await self._runner.serve()

    def start(self, name: str) -> None:
        """Begin a run of a job as of now, which goes on by itself; nothing where one is running. Raises NotFound."""
        if name not in JOBS_BY_NAME or not self._may_run(JOBS_BY_NAME[name]):
            raise NotFound(f"There is no job '{clean_line(name, 40)}' that this process may run.")
        running = asyncio.create_task(self._run(JOBS_BY_NAME[name]))
        self._begun.add(running)
        running.add_done_callback(self._begun.discard)

    async def listed(self) -> list[JobState]:
        """Every job with its schedule and its last run."""
        now = self._app.clock.now()
        latest = await self._app.ledger.latest(now)
        runs, late = {run.name: run for run in latest}, overdue(latest, now)
        return [
            JobState(job.name, job.help, job.next_due(now), runs.get(job.name), late.get(job.name), self._may_run(job))
            for job in JOBS
        ]

    async def close(self) -> None:
        """Stop what was begun by hand; the next run continues it."""
        await end_tasks(self._begun)

    def _may_run(self, job: Job) -> bool:
        return self._app.may_back_up or not job.needs_owner

    async def _run(self, job: Job) -> RunOutcome:
        at = self._app.clock.now()
        try:
            return await self._runner.run(job, at, repeat=True)
        except NexusError as error:
            logger.warning("job.postponed", job=job.name, error=for_operator(error))
            return RunOutcome(job.name, at, "failed", message=for_operator(error))


async def run(app: App, name: str, at: datetime, on_progress: OnProgress | None = None) -> RunOutcome:
    """Run one job as of a time, also if it ran as of that time before. Raises BadInput for an unknown name."""
    if name not in JOBS_BY_NAME:
        raise BadInput(f"There is no job '{name}'; nexus jobs list shows them all.")
    return await Runner(app).run(JOBS_BY_NAME[name], at, repeat=True, on_progress=on_progress)


async def listed(app: App) -> list[dict[str, Any]]:
    """Every job with its schedule and its last run, as JSON."""
    latest = {run.name: run for run in await app.ledger.latest(app.clock.now())}
    entries = []
    for job in JOBS:
        next_, run = job.next_due(app.clock.now()), latest.get(job.name)
        entry: dict[str, Any] = {"name": job.name, "when": job.cron, "what": job.help, "limit_s": job.limit_seconds}
        entry["next"] = None if next_ is None else next_.isoformat()
        entry["last"] = run and {
            "at": run.due_at.isoformat(),
            "state": run.state,
            "attempts": run.attempts,
            "started_at": run.started_at.isoformat(),
            "ended_at": run.ended_at and run.ended_at.isoformat(),
            "done": run.done,
            "failed": run.failed,
            "message": run.note,
        }
        entries.append(entry)
    return entries


def is_served(latest: Sequence[StoredRun]) -> bool:
    """Whether a process has served the schedule: each job that is due every hour has run. A job that somebody ran by
    hand, or in a script, makes no other job overdue."""
    return {job.name for job in JOBS if job.cron.split()[1] == "*"} <= {run.name for run in latest}


def overdue(latest: Sequence[StoredRun], now: datetime) -> dict[str, datetime]:
    """The jobs of which a run that was due is not done after the time that it may take, and since when. None while the
    schedule was never served, and none whose last run failed."""
    failed = {run.name for run in latest if run.state == "failed"}
    known = {run.name for run in latest} | {job.name for job in JOBS if not job.needs_owner}
    since = min((run.started_at for run in latest), default=now)
    found, done = {}, {run.name: run.completed_at for run in latest}
    for job in JOBS if is_served(latest) else ():
        due = job.last_due(now - timedelta(seconds=job.limit_seconds) - GRACE)
        completed_at = done.get(job.name)
        missed = due is not None and due > since and (completed_at is None or completed_at < due)
        if due is not None and missed and job.name in known - failed:
            found[job.name] = due
    return found


def health(latest: Sequence[StoredRun], now: datetime) -> tuple[bool | None, str]:
    """Whether the jobs run and succeed, and a sentence: False when a job's last run failed, or when a run that was due
    is not done after the time that it may take; None when the schedule was never served."""
    failed = {run.name: run for run in latest if run.state == "failed"}
    late = [f"{name} since {due:%Y-%m-%d %H:%M} UTC" for name, due in overdue(latest, now).items()]
    said = [f"{run.name} at {run.due_at:%Y-%m-%d %H:%M} UTC ({run.note or 'see the log'})" for run in failed.values()]
    sentences = [f"failed: {'; '.join(said)}. Run it again: nexus jobs run NAME"] if failed else []
    sentences += [f"overdue: {'; '.join(late)}. Leave nexus run running: it makes up for them"] if late else []
    if not sentences and not is_served(latest):
        return None, "the schedule has not been served yet: leave nexus run running"
    return (False, ". ".join(sentences)) if sentences else (True, "every job's last run succeeded, and none is overdue")


def line(entry: Mapping[str, Any]) -> str:
    """A job's entry as a line of text."""
    last = entry["last"]
    ran = "never"
    if last:
        at, started = _minute(last["at"]), _minute(last["started_at"])
        as_of = f" as of {at}" if at != started else ""
        ran = f"{last['state']} {started}{as_of}, {last['done']:,} done, {last['failed']:,} failed"
    next_ = _minute(entry["next"]) if entry["next"] else "never"
    return f"{entry['name']:{NAME_WIDTH}} {entry['when']:{CRON_WIDTH}} next {next_}  last: {ran}  ({entry['what']})"


def _minute(moment: str) -> str:
    """A moment in ISO 8601 as people read it."""
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def as_json(outcome: RunOutcome) -> dict[str, Any]:
    """The outcome of a run as JSON."""
    return {
        "job": outcome.name,
        "at": outcome.due_at.isoformat(),
        "state": outcome.state,
        "done": outcome.done,
        "failed": outcome.failed,
        "message": outcome.message,
    }
