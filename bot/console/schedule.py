"""The jobs of the command line: for `nexus jobs list`, `nexus jobs run`, `nexus run` and `nexus play`."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from composer.app import App
from composer.errors import BadInput
from composer.repositories.job_ledger import StoredRun
from composer.summaries.tiers import OnProgress
from jobs.runner import Runner, RunOutcome
from jobs.schedule import JOBS, JOBS_BY_NAME

NAME_WIDTH: Final = max(len(job.name) for job in JOBS)
CRON_WIDTH: Final = max(len(job.cron) for job in JOBS)
GRACE: Final = timedelta(minutes=5)  # after a job's time limit, before it is overdue


def scheduler(app: App) -> Callable[[], Coroutine[Any, Any, None]]:
    """A function that runs the schedule until cancelled."""
    return Runner(app).serve


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


def health(latest: Sequence[StoredRun], now: datetime) -> tuple[bool | None, str]:
    """Whether the jobs run and succeed, and a sentence: False when a job's last run failed, or when a run that was due
    is not done after the time that it may take; None when the schedule was never served."""
    failed = {run.name: run for run in latest if run.state == "failed"}
    known = {run.name for run in latest} | {job.name for job in JOBS if not job.needs_owner}
    since = min((run.started_at for run in latest), default=now)
    overdue, done = [], {run.name: run.completed_at for run in latest}
    for job in JOBS if is_served(latest) else ():
        due = job.last_due(now - timedelta(seconds=job.limit_seconds) - GRACE)
        completed_at = done.get(job.name)
        missed = due is not None and due > since and (completed_at is None or completed_at < due)
        if due is not None and missed and job.name in known - failed.keys():
            overdue.append(f"{job.name} since {due:%Y-%m-%d %H:%M} UTC")
    said = [f"{run.name} at {run.due_at:%Y-%m-%d %H:%M} UTC ({run.note or 'see the log'})" for run in failed.values()]
    sentences = [f"failed: {'; '.join(said)}. Run it again: nexus jobs run NAME"] if failed else []
    sentences += [f"overdue: {'; '.join(overdue)}. Leave nexus run running: it makes up for them"] if overdue else []
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
