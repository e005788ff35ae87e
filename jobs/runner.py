"""Runs jobs: each due run once however many processes there are, within its time limit, recorded in the ledger."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from composer.app import App
from composer.errors import NexusError, Unavailable, for_operator
from composer.model import derived_id
from composer.summaries.tiers import OnProgress
from jobs.schedule import JOBS, Job
from jobs.work import JobRun

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run that was due at `due_at`.

    `state`: done, failed, late (stopped at its time limit; the next run continues), or skipped (done already, or
    running in another process).
    """

    name: str
    due_at: datetime
    state: str
    done: int = 0
    failed: int = 0
    message: str = ""


class Runner:
    """Runs the jobs of one process. A run's lock ends with its process, so that a killed run is begun again."""

    def __init__(self, app: App, jobs: Sequence[Job] = JOBS) -> None:
        self._app = app
        self._jobs = [job for job in jobs if app.may_back_up or not job.needs_owner]
        self._running: set[str] = set()

    async def run(
        self, job: Job, due_at: datetime, *, repeat: bool = False, on_progress: OnProgress | None = None
    ) -> RunOutcome:
        """Run a job as of `due_at`, unless that run is done or another process is running it. `repeat`: also if it is
        done.

        Running a job twice changes nothing: the lock only saves work.
        """
        lock = derived_id("job", job.name)
        if job.name in self._running or not await self._app.locks.take([lock]):
            return RunOutcome(job.name, due_at, "skipped", message="another process is running it")
        self._running.add(job.name)
        try:
            begun = await self._app.ledger.begin(job.name, due_at, self._app.clock.now())
            if not (begun or repeat):
                return RunOutcome(job.name, due_at, "skipped", message="it is done already")
            return await self._work(job, due_at, on_progress or (lambda done, failed: None))
        finally:
            self._running.discard(job.name)
            with suppress(Unavailable):
                await self._app.locks.release([lock])

    async def _work(self, job: Job, due_at: datetime, on_progress: OnProgress) -> RunOutcome:
        run, state = JobRun(self._app, due_at, on_progress), "failed"
        try:
            async with asyncio.timeout(job.limit_seconds):
                await job.work(run)
            state = "failed" if run.failed else "done"
        except TimeoutError:
            state, run.message = "late", f"stopped after its {job.limit_seconds:.0f} seconds; the next run continues"
        except NexusError as error:
            run.message = for_operator(error)
        except Exception as error:
            logger.exception("job.failed", job=job.name)
            run.message = type(error).__name__
        now = self._app.clock.now()
        await self._app.ledger.end(
            job.name, due_at, state=state, now=now, done=run.done, failed=run.failed, note=run.message
        )
        self._app.observer.job_ended(job.name, state)
        return RunOutcome(job.name, due_at, state, run.done, run.failed, run.message)

    async def catch_up(self) -> list[RunOutcome]:
        """Run the jobs that were missed while no process ran, in the order of the table.

        One run is enough for several missed ones, since a job does everything that is due, earliest first.
        """
        if not await self._app.database.tenants():
            return []  # nobody has written anything yet
        now = self._app.clock.now()
        done, outcomes = {run.name: run.completed_at for run in await self._app.ledger.latest(now)}, []
        for job in self._jobs:
            due_at = job.last_due(now)
            completed_at = done.get(job.name)
            if due_at is not None and (completed_at is None or completed_at < due_at):
                outcomes.append(await self.run(job, due_at))
        return outcomes

    async def serve(self) -> None:
        """Run the schedule until cancelled; missed runs come first. No error of a job or of the ledger ends it."""
        scheduler = AsyncIOScheduler(timezone="UTC")
        for job in self._jobs:
            options = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
            scheduler.add_job(self._run_due, job.trigger, args=(job,), id=job.name, **options)
        try:
            try:
                await self.catch_up()
            except NexusError as error:
                logger.warning("jobs.catch_up_postponed", error=for_operator(error))
            except Exception:  # each job makes up for what it missed at its next due time
                logger.exception("jobs.catch_up_failed")
            scheduler.start()
            await asyncio.Event().wait()
        finally:
            if scheduler.running:
                scheduler.shutdown(wait=False)

    async def _run_due(self, job: Job) -> None:
        due_at = job.last_due(self._app.clock.now())
        if due_at is None:
            return
        try:
            await self.run(job, due_at)
        except NexusError as error:
            logger.warning("job.postponed", job=job.name, error=for_operator(error))
        except Exception:
            logger.exception("job.failed", job=job.name)
