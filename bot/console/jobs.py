"""The jobs on the command line: `nexus jobs list` and `jobs run`, and those of `nexus run` and `nexus play`."""

from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any

from composer.app import App
from composer.errors import BadInput
from composer.summaries.tiers import Report
from jobs.runner import Outcome, Runner
from jobs.table import JOBS, NAMES


def keeper(app: App) -> Callable[[], Coroutine[Any, Any, None]]:
    """What keeps to the schedule until cancelled."""
    return Runner(app).serve


async def run(app: App, name: str, at: datetime, shown: Report | None = None) -> Outcome:
    """Run one job as of a time, also if it was run as of that time before. Raises BadInput for an unknown name."""
    if name not in NAMES:
        raise BadInput(f"There is no job '{name}'; there is {', '.join(NAMES)}.")
    return await Runner(app).run(NAMES[name], at, again=True, shown=shown)


def time_of(text: str | None) -> datetime | None:
    """A time as the command line gives it. Raises BadInput."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise BadInput(f"'{text}' is no time with a zone; for example 2026-05-04T09:00:00Z.")
    return at


async def listed(app: App) -> list[dict[str, Any]]:
    """Every job with its schedule and its last run, for a program."""
    latest = {run.name: run for run in await app.ledger.latest()}
    entries = []
    for job in JOBS:
        next_, run = job.slot_after(app.clock.now()), latest.get(job.name)
        entry: dict[str, Any] = {"name": job.name, "when": job.when, "what": job.what, "limit_s": job.limit}
        entry["next"] = None if next_ is None else next_.isoformat()
        entry["last"] = run and {
            "slot": run.slot.isoformat(),
            "state": run.state,
            "attempts": run.attempts,
            "started_at": run.started_at.isoformat(),
            "ended_at": run.ended_at and run.ended_at.isoformat(),
            "done": run.done,
            "failed": run.failed,
            "said": run.note,
        }
        entries.append(entry)
    return entries


def line(entry: Mapping[str, Any]) -> str:
    """One of them for a person."""
    last = entry["last"]
    ran = f"{last['state']} {last['slot'][:16]}, {last['done']:,} done, {last['failed']:,} failed" if last else "never"
    next_ = (entry["next"] or "never")[:16]
    return f"{entry['name']:15} {entry['when']:13} next {next_}  last: {ran}  ({entry['what']})"


def as_json(outcome: Outcome) -> dict[str, Any]:
    """What became of a run, for a program."""
    return {
        "job": outcome.name,
        "at": outcome.slot.isoformat(),
        "state": outcome.state,
        "done": outcome.done,
        "failed": outcome.failed,
        "said": outcome.said,
    }
