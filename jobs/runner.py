"""Runs jobs: each slot once however many processes there are, within its time, and with a line in the ledger."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from composer.app import App
from composer.errors import NexusError, Unavailable
from composer.model import derived_id
from composer.summaries.tiers import Report
from jobs.table import JOBS, Job
from jobs.work import Run

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run. `state`: done, failed, late (its time was over; the next run goes on), or skipped (it is
    done already, or another process is at it)."""

    name: str
    slot: datetime
    state: str
    done: int = 0
    failed: int = 0
    said: str = ""


class Runner:
    """Runs jobs of one process. The lock dies with the process, so a run that was killed is begun again."""

    def __init__(self, app: App, jobs: Sequence[Job] = JOBS) -> None:
        self._app = app
        self._jobs = jobs
        self._running: set[str] = set()

    async def run(self, job: Job, slot: datetime, *, again: bool = False, shown: Report | None = None) -> Outcome:
        """Run a job as of `slot`, unless it is done, or being done elsewhere. `again`: also when it is done.

        Everything a job does may be done twice, so nothing hangs on the lock but wasted work.
        """
        lock = derived_id("job", job.name)
        if job.name in self._running or not await self._app.locks.take(lock):
            return Outcome(job.name, slot, "skipped", said="another process is at it")
        self._running.add(job.name)
        try:
            begun = await self._app.ledger.begin(job.name, slot, self._app.clock.now())
            if not (begun or again):
                return Outcome(job.name, slot, "skipped", said="it is done already")
            return await self._work(job, slot, shown or (lambda done, failed: None))
        finally:
            self._running.discard(job.name)
            with suppress(Unavailable):
                await self._app.locks.release(lock)

    async def _work(self, job: Job, slot: datetime, shown: Report) -> Outcome:
        run, state = Run(self._app, slot, shown), "failed"
        try:
            async with asyncio.timeout(job.limit):
                await job.work(run)
            state = "failed" if run.failed else "done"
        except TimeoutError:
            state, run.said = "late", f"its {job.limit:.0f} seconds were over; the next run goes on"
        except NexusError as error:
            run.said = str(error)
        except Exception as error:
            logger.exception("job.failed", job=job.name)
            run.said = type(error).__name__
        now = self._app.clock.now()
        await self._app.ledger.end(
            job.name, slot, state=state, now=now, done=run.done, failed=run.failed, note=run.said
        )
        return Outcome(job.name, slot, state, run.done, run.failed, run.said)

    async def catch_up(self) -> list[Outcome]:
        """Run what was missed while no process ran, in the order of the table. One run makes up for several slots: a
        job does all that is due, the earliest first."""
        if not await self._app.database.tenants():
            return []  # nobody has said anything yet
        now = self._app.clock.now()
        done, outcomes = await self._app.ledger.last_done(now), []
        for job in self._jobs:
            slot = job.slot_before(now)
            if slot is not None and (job.name not in done or done[job.name] < slot):
                outcomes.append(await self.run(job, slot))
        return outcomes

    async def serve(self) -> None:
        """Keep to the schedule until cancelled; what was missed comes first."""
        scheduler = AsyncIOScheduler(timezone="UTC")
        for job in self._jobs:
            options = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
            scheduler.add_job(self._due, job.trigger, args=(job,), id=job.name, **options)
        try:
            try:
                await self.catch_up()
            except NexusError as error:
                logger.warning("jobs.waiting", error=str(error))
            scheduler.start()
            await asyncio.Event().wait()
        finally:
            if scheduler.running:
                scheduler.shutdown(wait=False)

    async def _due(self, job: Job) -> None:
        slot = job.slot_before(self._app.clock.now())
        if slot is None:
            return
        try:
            await self.run(job, slot)
        except NexusError as error:
            logger.warning("job.waiting", job=job.name, error=str(error))
