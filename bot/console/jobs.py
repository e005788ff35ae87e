"""The jobs of the command line: for `nexus jobs list`, `nexus jobs run`, `nexus run` and `nexus play`."""

from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any

from composer.app import App
from composer.errors import BadInput
from composer.summaries.tiers import Report
from jobs.runner import Runner, RunOutcome
from jobs.table import JOBS, JOBS_BY_NAME


def scheduler(app: App) -> Callable[[], Coroutine[Any, Any, None]]:
    """A function that runs the schedule until cancelled."""
    return Runner(app).serve


async def run(app: App, name: str, at: datetime, on_progress: Report | None = None) -> RunOutcome:
    """Run one job as of a time, also if it ran as of that time before. Raises BadInput for an unknown name."""
    if name not in JOBS_BY_NAME:
        raise BadInput(f"There is no job '{name}'; nexus jobs list shows them all.")
    return await Runner(app).run(JOBS_BY_NAME[name], at, repeat=True, on_progress=on_progress)


async def listed(app: App) -> list[dict[str, Any]]:
    """Every job with its schedule and its last run, as JSON."""
    latest = {run.name: run for run in await app.ledger.latest()}
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


def line(entry: Mapping[str, Any]) -> str:
    """A job's entry as a line of text."""
    last = entry["last"]
    ran = f"{last['state']} {last['at'][:16]}, {last['done']:,} done, {last['failed']:,} failed" if last else "never"
    next_ = (entry["next"] or "never")[:16]
    return f"{entry['name']:15} {entry['when']:13} next {next_}  last: {ran}  ({entry['what']})"


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
