"""What the jobs do. Every one goes through the tenants, and one tenant's trouble does not stop the others."""

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from composer.app import App
from composer.memory.forget import forget
from composer.model import Agent
from composer.repositories.database import Transaction
from composer.summaries.tiers import Report
from composer.workspace import Workspace

logger = structlog.get_logger()

AT_ONCE: Final = 200  # items that are forgotten in one transaction
IN_TRASH: Final = timedelta(days=30)
DELIVERED_AGAIN: Final = timedelta(days=30)  # platforms repeat within hours; history is read back for a day
RUNS_KEPT: Final = timedelta(days=60)


@dataclass(slots=True)
class Run:
    """One run of a job: with what, as of when, and how far it has got. `said` is what it has to say at the end."""

    app: App
    now: datetime
    shown: Report
    done: int = 0
    failed: int = 0
    said: str = ""

    def report(self, done: int, failed: int = 0) -> None:
        """So many more are done, or have failed."""
        self.done += done
        self.failed += failed
        self.shown(done, failed)


async def reconcile(run: Run) -> None:
    """Take over what dead processes left unanswered, and index what was never indexed; forget runs of long ago."""
    run.report(await run.app.turns.adopt())
    await embed(run)
    await run.app.ledger.prune(run.now - RUNS_KEPT)


async def embed(run: Run) -> None:
    """Make everything findable."""

    async def one(tenant: uuid.UUID, slug: str) -> None:
        await run.app.indexer.catch_up(tenant, lambda indexed, embedded: run.report(indexed + embedded))

    await _each_tenant(run, one)


async def extract(run: Run) -> None:
    """Draw memories from what is queued and due, where a model does it."""
    extractions = run.app.extractions
    if extractions is None:
        run.said = "no model draws memories here"
        return

    async def one(tenant: uuid.UUID, slug: str) -> None:
        while done := await extractions.extract_due(tenant):
            run.report(done)

    await _each_tenant(run, one)


async def threads(run: Run) -> None:
    """Summaries of threads."""
    await _summarise(run, ("thread",))


async def sessions(run: Run) -> None:
    """Summaries of stretches of talk."""
    await _summarise(run, ("session",))


async def days(run: Run) -> None:
    """Summaries of days."""
    await _summarise(run, ("day",))


async def weeks(run: Run) -> None:
    """Summaries of weeks; of their days first, which they are made from."""
    await _summarise(run, ("day", "week"))


async def _summarise(run: Run, tiers: tuple[str, ...]) -> None:
    async def one(tenant: uuid.UUID, slug: str) -> None:
        app = run.app
        for tier in tiers:
            await app.tiers.catch_up(
                tenant, tier, run.now, app.settings.zone_of(slug), _writer(app, tenant), run.report
            )
        await app.indexer.catch_up(tenant)

    await _each_tenant(run, one)


def _writer(app: App, tenant: uuid.UUID) -> Agent | None:
    """Whose model writes: that of the first agent that has one."""
    return next((agent for agent in app.directory.agents(tenant) if agent.model), None)


async def expire(run: Run) -> None:
    """Forget memories that have run out, codes that nobody entered, and which commands were run long ago."""

    async def one(tenant: uuid.UUID, slug: str) -> None:
        async with run.app.database.transaction(tenant) as tx:
            await tx.maintenance.delete_expired_link_codes(run.now)
            await tx.maintenance.delete_commands_before(run.now - DELIVERED_AGAIN)
        await _forget_memories(run, tenant, slug, lambda tx: tx.maintenance.expired_memories(run.now, AT_ONCE))

    await _each_tenant(run, one)


async def purge(run: Run) -> None:
    """Forget what has been in the trash for long."""

    async def one(tenant: uuid.UUID, slug: str) -> None:
        await _forget_memories(
            run, tenant, slug, lambda tx: tx.maintenance.trashed_memories(run.now - IN_TRASH, AT_ONCE)
        )

    await _each_tenant(run, one)


async def _forget_memories(
    run: Run, tenant: uuid.UUID, slug: str, next_: Callable[[Transaction], Awaitable[list[uuid.UUID]]]
) -> None:
    while True:
        async with run.app.database.transaction(tenant) as tx:
            ids = await next_(tx)
            if not ids:
                return
            receipt = await forget(tx, [], [("memory", id) for id in ids], run.now)
        await run.app.forgotten(Workspace(tenant, slug, "", ""), receipt)
        run.report(len(ids))


async def retain(run: Run) -> None:
    """Forget what was said longer ago than its tenant keeps it, with all that was made from it."""

    async def one(tenant: uuid.UUID, slug: str) -> None:
        days = run.app.settings.keep_days_of(slug)
        while days is not None:
            async with run.app.database.transaction(tenant) as tx:
                ids = await tx.maintenance.messages_before(run.now - timedelta(days=days), AT_ONCE)
                receipt = await forget(tx, ids, [], run.now) if ids else None
            if receipt is None:
                return
            await run.app.forgotten(Workspace(tenant, slug, "", ""), receipt)
            run.report(len(ids))

    await _each_tenant(run, one)


async def roll_up(run: Run) -> None:
    """Add up what was used."""

    async def one(tenant: uuid.UUID, slug: str) -> None:
        async with run.app.database.transaction(tenant) as tx:
            await tx.maintenance.roll_up_usage(run.now)
        run.report(1)

    await _each_tenant(run, one)


async def back_up(run: Run) -> None:
    """A backup into the data folder, and as many old ones as are kept."""
    if run.app.settings.backups:
        path = run.app.settings.home / "backups" / f"nexus-{run.now:%Y%m%dT%H%M%SZ}.backup"
        manifest = await run.app.backup.write(path, run.app.clock.now())
        run.app.backup.prune(path.parent, run.app.settings.backups)
        run.report(1)
        run.said = f"{path.name}: {manifest.rows:,} rows"


async def rehearse(run: Run) -> None:
    """Restore the newest backup into a database beside ours, compare it with its manifest, and drop it."""
    folder = run.app.settings.home / "backups"
    newest = max(folder.glob("nexus-*.backup"), default=None)
    if newest is None:
        run.said = "there is no backup yet"
        return
    manifest = await run.app.backup.rehearse(newest)
    run.report(1)
    run.said = f"{newest.name} is whole: {manifest.rows:,} rows"


async def _each_tenant(run: Run, one: Callable[[uuid.UUID, str], Awaitable[None]]) -> None:
    for tenant, slug in await run.app.database.tenants():
        try:
            await one(tenant, slug)
        except Exception:  # it is tried again with the next run
            logger.exception("job.tenant_failed", tenant=str(tenant))
            run.report(0, 1)
