"""The ledger of job runs. It belongs to the installation, not to a tenant, and holds nothing that people wrote."""

from dataclasses import dataclass
from datetime import datetime

from composer.repositories.database import Database


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The last recorded run of a job, which was due at `due_at`. `completed_at`: when the last one was due that is
    done, up to now; `succeeded_at`: when the last one ended that is done."""

    name: str
    due_at: datetime
    state: str
    attempts: int
    started_at: datetime
    ended_at: datetime | None
    done: int
    failed: int
    note: str
    completed_at: datetime | None = None
    succeeded_at: datetime | None = None


class JobLedger:
    """Stored job runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, name: str, due_at: datetime, now: datetime) -> bool:
        """Record the start of a run; False when the run of this time is done."""
        async with self._database.installation() as sql:
            return await sql.fetch_value("job_begin", name=name, due_at=due_at, now=now) is not None

    async def end(
        self, name: str, due_at: datetime, *, state: str, now: datetime, done: int, failed: int, note: str
    ) -> None:
        """Record the end of a run."""
        async with self._database.installation() as sql:
            await sql.execute(
                "job_end", name=name, due_at=due_at, state=state, now=now, done=done, failed=failed, note=note
            )

    async def latest(self, now: datetime) -> list[StoredRun]:
        """The last run of each job."""
        async with self._database.installation() as sql:
            return await sql.fetch_as(StoredRun, "job_latest", now=now)

    async def prune(self, before: datetime) -> None:
        """Delete runs from before a time."""
        async with self._database.installation() as sql:
            await sql.execute("job_prune", before=before)
