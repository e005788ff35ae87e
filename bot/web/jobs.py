"""The scheduled jobs, as the pages and the API show and start them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from composer.repositories.job_ledger import StoredRun


@dataclass(frozen=True, slots=True)
class JobState:
    """A job: what it does, when it is due next, its last run, since when one is overdue. `may_run`: this process may
    start it by hand."""

    name: str
    help: str
    next_at: datetime | None
    last: StoredRun | None
    overdue_since: datetime | None
    may_run: bool

    @property
    def failed(self) -> bool:
        """Whether its last run failed."""
        return self.last is not None and self.last.state == "failed"

    @property
    def running(self) -> bool:
        """Whether a run was begun and has not ended, as far as the ledger says."""
        return self.last is not None and self.last.state == "running"


class JobSchedule(Protocol):
    """The jobs of the process."""

    async def listed(self) -> Sequence[JobState]:
        """Every job. Raises Unavailable."""

    def start(self, name: str) -> None:
        """Begin a run as of now, which goes on by itself. Raises NotFound for a job that this process may not run."""
