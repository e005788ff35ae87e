"""The work of each job. A job goes through all tenants, and one tenant's failure does not stop the others."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from composer.app import App
from composer.errors import Unavailable
from composer.ingest.retention_settings import FOR_EVER, RETENTION, Retention, configured_retention
from composer.ingest.uploads import remove_old_uploads
from composer.layers.tenant_settings import chosen
from composer.memory.forget import forget
from composer.model import DEFAULT_SETTINGS, Agent
from composer.operations.billing import configured_billing
from composer.repositories.database import Transaction
from composer.repositories.gateway_exchanges import EXCHANGE_RETENTION
from composer.repositories.gateway_turns import TURN_LIFETIME
from composer.repositories.oauth_clients import OAuthClients
from composer.repositories.tool_reads import READS_RETENTION
from composer.repositories.usage import INSTALLATION
from composer.summaries.tiers import OnProgress
from composer.tasks.shares import Places, acting_for
from composer.text.counts import counted

logger = structlog.get_logger()

TENANTS_AT_ONCE: Final = 4  # in one job
JOB_BATCH: Final = 200  # items that are erased in one transaction
TRASH_DAYS: Final = DEFAULT_SETTINGS.trash_days  # of who has set nothing else
KEY_RETENTION: Final = timedelta(days=30)  # that a key is still listed after it has ended
RUN_RETENTION: Final = timedelta(days=60)
REMINDER_DAYS: Final = 400  # that a reminder which has ended is kept without `keep_days`


@dataclass(slots=True)
class JobRun:
    """One run of a job as of a time, with its progress. `message` is a sentence for the ledger."""

    app: App
    now: datetime
    on_progress: OnProgress
    done: int = 0
    failed: int = 0
    message: str = ""

    def report(self, done: int, failed: int = 0) -> None:
        """Count further items as done or failed."""
        self.done += done
        self.failed += failed
        self.on_progress(done, failed)


async def embed(run: JobRun) -> None:
    """Index and embed what is not indexed or embedded yet."""

    async def one(tenant: uuid.UUID, slug: str) -> None:
        await run.app.indexer.catch_up(tenant, lambda indexed, embedded: run.report(indexed + embedded))

    await _each_tenant(run, one)


async def extract(run: JobRun) -> None:
    """Extract memories from the messages that are due, where a model is configured for it."""
    extractions = run.app.extractions
    if extractions is None:
        run.message = "no model is configured to extract memories"
        return

    async def one(tenant: uuid.UUID, slug: str) -> None:
        while done := await extractions.learn_due(tenant):
            run.report(done)

    await _each_tenant(run, one)


async def threads(run: JobRun) -> None:
    """Write the summaries of threads."""
    await _summarise(run, ("thread",))


async def sessions(run: JobRun) -> None:
    """Write the summaries of sessions: messages without a pause of an hour."""
    await _summarise(run, ("session",))


async def days(run: JobRun) -> None:
    """Write the summaries of days."""
    await _summarise(run, ("day",))


async def weeks(run: JobRun) -> None:
    """Write the summaries of weeks, and first those of their days, from which they are made."""
    await _summarise(run, ("day", "week"))


async def _summarise(run: JobRun, tiers: tuple[str, ...]) -> None:
    async def one(tenant: uuid.UUID, slug: str) -> None:
        app = run.app
        for tier in tiers:
            await app.tiers.catch_up(
                tenant, tier, run.now, app.settings.zone_of(slug), _writer(app, tenant), run.report
            )
        await app.indexer.catch_up(tenant)

    await _each_tenant(run, one)


def _writer(app: App, tenant: uuid.UUID) -> Agent | None:
    """The agent whose model writes summaries: the first one that has a model."""
    return next((agent for agent in app.directory.agents(tenant) if agent.for_summaries.model), None)


async def expire(run: JobRun) -> None:
    """Erase expired memories and prompts, unused codes, invitations and login links, keys, tokens and web sessions that
    have ended, registrations of apps that nobody connected, and old records of commands, of writes over the
    API and of turns of the gateway; and cached views that nobody reads any more, since something in them was erased
    while the cache was away."""
    cached = await _cached_versions(run)

    async def one(tenant: uuid.UUID, slug: str) -> None:
        async with run.app.database.transaction(tenant) as tx:
            await tx.maintenance.delete_expired(
                run.now,
                keys_before=run.now - KEY_RETENTION,
                turns_before=run.now - TURN_LIFETIME,
                reads_before=run.now - READS_RETENTION,
                exchanges_before=run.now - EXCHANGE_RETENTION,
            )
            current = await tx.conversations.versions(sorted(cached))
        with suppress(Unavailable):  # the next run does it
            await run.app.cache.drop([id for id, version in current.items() if version != cached[id]])
        kept = await _kept(run, tenant, slug)
        await _expire_prompts(run, tenant, run.now - timedelta(days=kept.prompt_days))
        await _forget_memories(run, tenant, slug, lambda tx: tx.maintenance.expired_memories(run.now, JOB_BATCH))

    await asyncio.to_thread(remove_old_uploads, run.app.settings.home, run.now)
    await OAuthClients(run.app.database).delete_unused(run.now)
    await run.app.ledger.prune(run.now - RUN_RETENTION)
    await _each_tenant(run, one)


async def _cached_versions(run: JobRun) -> Mapping[uuid.UUID, int]:
    try:
        return await run.app.cache.versions()
    except Unavailable:
        return {}


async def _expire_prompts(run: JobRun, tenant: uuid.UUID, before: datetime) -> None:
    while True:
        async with run.app.database.transaction(tenant) as tx:
            expired = await tx.maintenance.expire_prompts(before, JOB_BATCH)
        run.report(expired)
        if expired < JOB_BATCH:
            return


async def purge(run: JobRun) -> None:
    """Erase what has been in the trash for 30 days, or as long as its person has set; and entries that tools wrote for
    people who have set for how long they keep such entries."""

    async def one(tenant: uuid.UUID, slug: str) -> None:
        await _forget_memories(
            run, tenant, slug, lambda tx: tx.maintenance.memories_to_purge(run.now, TRASH_DAYS, JOB_BATCH)
        )

    await _each_tenant(run, one)


async def _forget_memories(
    run: JobRun, tenant: uuid.UUID, slug: str, next_: Callable[[Transaction], Awaitable[list[uuid.UUID]]]
) -> None:
    while True:
        async with run.app.database.transaction(tenant, "read") as tx:
            if not await next_(tx):
                return
        async with run.app.database.transaction(tenant, "alone") as tx:
            ids = await next_(tx)
            receipt = await forget(tx, [], [("memory", id) for id in ids], run.now)
        await run.app.forgotten(tenant, receipt)
        run.report(len(ids))


async def _kept(run: JobRun, tenant: uuid.UUID, slug: str) -> Retention:
    """How long a tenant keeps what now."""
    async with run.app.database.transaction(tenant, "read") as tx:
        return await chosen(tx, RETENTION, configured_retention(run.app.settings, slug))


async def retain(run: JobRun) -> None:
    """Erase messages that are older than their tenant's `keep_days`, with all that was made from them, rows of the
    audit log that are older than its `audit_days`, and the figures of days that are older than its `usage_days`."""

    async def messages(tenant: uuid.UUID, slug: str) -> None:
        while (kept := await _kept(run, tenant, slug)).keep_days != FOR_EVER:
            before = run.now - timedelta(days=kept.keep_days)
            async with run.app.database.transaction(tenant, "read") as tx:
                if not await tx.maintenance.messages_before(before, 1):
                    return
            async with run.app.database.transaction(tenant, "alone") as tx:
                if await chosen(tx, RETENTION, configured_retention(run.app.settings, slug)) != kept:
                    continue  # an admin changed it meanwhile
                ids = await tx.maintenance.messages_before(before, JOB_BATCH)
                receipt = await forget(tx, ids, [], run.now, by_age=True)
            await run.app.forgotten(tenant, receipt)
            run.report(len(ids))

    async def audit(tenant: uuid.UUID, slug: str) -> None:
        run.report(await run.app.audit.cut(tenant, run.now - timedelta(days=run.app.settings.audit_days_of(slug))))

    async def usage(tenant: uuid.UUID, slug: str) -> None:
        today = run.now.astimezone(run.app.settings.zone_of(slug)).date()
        async with run.app.database.transaction(tenant) as tx:
            kept = await chosen(tx, RETENTION, configured_retention(run.app.settings, slug))
            before = today - timedelta(days=kept.usage_days)
            run.report(await tx.usage.cut(before, today.replace(day=1)))

    async def reminders(tenant: uuid.UUID, slug: str) -> None:
        kept = timedelta(days=(await _kept(run, tenant, slug)).keep_days or REMINDER_DAYS)
        async with run.app.database.transaction(tenant) as tx:
            run.report(await tx.reminders.delete_ended_before(run.now - kept))

    await _each_tenant(run, messages)
    await _each_tenant(run, reminders)  # after the messages, among which are their posts
    await _each_tenant(run, audit)  # a step of its own: its failure keeps no message
    await _each_tenant(run, usage)
    await usage(INSTALLATION, "")  # the probes of nexus doctor


async def watch_quotas(run: JobRun) -> None:
    """Note for the admins of each tenant which quotas of its plan are nearly used up, once in a month."""

    async def one(tenant: uuid.UUID, slug: str) -> None:
        run.report(await run.app.operations.note_nearly_used_up(tenant))

    await _each_tenant(run, one)


async def follow_payments(run: JobRun) -> None:
    """Ask the billing provider what each tenant has paid for, where billing is on."""
    app = run.app
    billing = configured_billing(app.settings, app.directory, app.database)
    if billing is None:
        run.message = "no plan is sold here"
        return

    async def one(tenant: uuid.UUID, slug: str) -> None:
        run.report(int(await billing.refresh(tenant, run.now)))

    await _each_tenant(run, one)


async def seal(run: JobRun) -> None:
    """Seal the rows of the audit log that have no seal."""

    async def one(tenant: uuid.UUID, slug: str) -> None:
        run.report(await run.app.audit.seal(tenant))

    await _each_tenant(run, one)


async def back_up(run: JobRun) -> None:
    """Write a backup into the data folder, and delete all but the newest ones."""
    if run.app.settings.backups:
        path = run.app.settings.home / "backups" / f"nexus-{run.now:%Y%m%dT%H%M%SZ}.backup"
        manifest = await run.app.backup.write(path, run.app.clock.now())
        run.app.backup.prune(path.parent, run.app.settings.backups)
        run.report(1)
        run.message = f"{path.name}: {counted(manifest.rows, 'row')}"


async def test_restore(run: JobRun) -> None:
    """Restore the newest backup into a separate database, compare it with its manifest, and drop that database."""
    folder = run.app.settings.home / "backups"
    newest = max(folder.glob("nexus-*.backup"), default=None)
    if newest is None:
        run.message = "there is no backup yet"
        return
    manifest = await run.app.backup.test_restore(newest)
    run.report(1)
    run.message = f"{newest.name} is whole: {counted(manifest.rows, 'row')}"


async def _each_tenant(run: JobRun, one: Callable[[uuid.UUID, str], Awaitable[None]]) -> None:
    """Do the work of each tenant, a few side by side: the backlog of one does not hold up the others."""
    places = Places(TENANTS_AT_ONCE, is_background=True)

    async def work(tenant: uuid.UUID, slug: str) -> None:
        with acting_for(tenant, background=True):
            async with places.take():
                try:
                    await one(tenant, slug)
                except Exception:  # the next run tries it again
                    logger.exception("job.tenant_failed", tenant=str(tenant))
                    run.report(0, 1)

    await asyncio.gather(*(work(tenant, slug) for tenant, slug in await run.app.database.tenants()))
