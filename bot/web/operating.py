"""What an admin sees of how Nexus runs: health, and where the installation is theirs its jobs."""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bot.web.jobs import JobState
from bot.web.problems import RequestRefused
from bot.web.state import WebState
from composer.operations.health import HealthChecks, HealthLine

CONNECTED_SECONDS: Final = 2.0  # for a platform to say whether it is connected
NOT_OF_ONE: Final = (
    "This Nexus serves several workspaces: whoever runs it sees its jobs and backups, with nexus jobs list and nexus "
    "doctor."
)


@dataclass(frozen=True, slots=True)
class Operating:
    """How Nexus runs. `of_installation`: the admins of this tenant see what concerns all of it; else there are no
    `jobs`."""

    health: Sequence[HealthLine]
    jobs: Sequence[JobState]
    of_installation: bool


async def operating(nexus: WebState, tenant: uuid.UUID) -> Operating:
    """How Nexus runs, for the admins of a tenant."""
    app, checks = nexus.app, _checks(nexus)
    own = await checks.looks_after_installation(tenant)
    connected = {name: await _answers(nexus, name) for name in nexus.connected}
    runs = await app.ledger.latest(app.clock.now()) if own else None
    found = await checks.of(tenant, connected, runs)
    jobs = await _listed(nexus) if own else []
    failed = [each.name for each in jobs if each.failed]
    late = [each.name for each in jobs if each.overdue_since is not None]
    if failed:
        values = {"jobs": ", ".join(failed)}
        found.insert(0, HealthLine("jobs", False, "failed: %(jobs)s. Run them again below", values))
    if late:
        found.insert(0, HealthLine("jobs", False, "overdue: %(jobs)s. Run them below", {"jobs": ", ".join(late)}))
    return Operating(found, jobs, own)


async def is_of_installation(nexus: WebState, tenant: uuid.UUID) -> bool:
    """Whether the admins of a tenant see what concerns the whole installation."""
    return await _checks(nexus).looks_after_installation(tenant)


async def require_installation(nexus: WebState, tenant: uuid.UUID) -> None:
    """Raises RequestRefused where the admins of a tenant see nothing of what concerns the whole installation."""
    if not await is_of_installation(nexus, tenant):
        raise RequestRefused(404, NOT_OF_ONE)


async def installation_jobs(nexus: WebState, tenant: uuid.UUID) -> Sequence[JobState]:
    """The scheduled jobs with their last runs. Raises RequestRefused as `require_installation`."""
    await require_installation(nexus, tenant)
    return await _listed(nexus)


async def start_job(nexus: WebState, tenant: uuid.UUID, name: str) -> None:
    """Begin a run of a job, which goes on by itself. Raises RequestRefused as `require_installation`, and where this
    process runs none; NotFound."""
    await require_installation(nexus, tenant)
    if nexus.jobs is None:
        raise RequestRefused(404, NOT_OF_ONE)
    nexus.jobs.start(name)


def _checks(nexus: WebState) -> HealthChecks:
    app = nexus.app
    return HealthChecks(app.settings, app.directory, app.database, app.cache, app.clock)


async def _listed(nexus: WebState) -> Sequence[JobState]:
    return await nexus.jobs.listed() if nexus.jobs is not None else []


async def _answers(nexus: WebState, name: str) -> bool:
    try:
        async with asyncio.timeout(CONNECTED_SECONDS):
            return await nexus.connected[name]()
    except TimeoutError:
        return False
