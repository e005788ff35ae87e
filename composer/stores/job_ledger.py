"""What the schedule has done, in Postgres; of the installation, so no tenant is named."""

from datetime import datetime

from composer.ports import JobRun
from composer.stores.postgres import Database
from sql.loader import queries


class JobLedger:
    """composer.ports.Ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, name: str, slot: datetime, now: datetime) -> bool:
        """A run begins; False when this slot is done."""
        async with self._database.connection() as connection:
            return await connection.fetchval(queries()["job_begin"], name, slot, now) is not None

    async def end(
        self, name: str, slot: datetime, state: str, now: datetime, done: int, failed: int, said: str
    ) -> None:
        """A run has ended."""
        async with self._database.connection() as connection:
            await connection.execute(queries()["job_end"], name, slot, state, now, done, failed, said)

    async def latest(self) -> list[JobRun]:
        """The last run of each job."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(queries()["job_latest"])
        return [JobRun(**dict(row)) for row in rows]

    async def last_done(self, now: datetime) -> dict[str, datetime]:
        """The last slot up to now of each job that is done."""
        async with self._database.connection() as connection:
            return {row["name"]: row["slot"] for row in await connection.fetch(queries()["job_last_done"], now)}

    async def prune(self, before: datetime) -> None:
        """Forget runs of long ago."""
        async with self._database.connection() as connection:
            await connection.execute(queries()["job_prune"], before)
