"""The composition root: settings in, a running Nexus out. Its parts are built in composer/app/composition.py."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

import structlog

from composer.app.composition import (
    Foundation,
    LoadableEmbedder,
    agent_tokenizer,
    build_answering,
    build_due_posts,
    build_extraction,
    build_extractor,
    build_gateway_learner,
    build_models,
    build_reading,
    open_foundation,
    restart_servers,
)
from composer.audit.log import AuditLog
from composer.entries.answering import EntryAnswerer
from composer.entries.search import EntrySearch
from composer.errors import Unavailable, for_operator
from composer.gateway.learning import GatewaySource
from composer.gateway.memory import GatewayMemory
from composer.gateway.metering import GatewayMeter
from composer.ingest import receive as receiving
from composer.ingest.file_texts import FileTexts
from composer.ingest.receive import Received
from composer.ingest.tenants import TenantDirectory
from composer.memory.forget import Receipt
from composer.memory.indexer import Indexer
from composer.memory.learner import MAX_CONCURRENT, Learner
from composer.model import Incoming, Workspace, user_id
from composer.people.changes import CHANGED, ChangesHub
from composer.people.credentials.last_use import LastUse
from composer.people.credentials.resolver import Resolver
from composer.people.export_files import remove_exports
from composer.people.webhook_messages import WebhookMessages
from composer.ports.clock import Clock
from composer.ports.documents import DocumentReader
from composer.ports.extraction import Extraction
from composer.ports.models import ChatModel, Embedder
from composer.ports.observer import NoObserver, Observer
from composer.repositories.database import Transaction
from composer.repositories.erasure import ERASED
from composer.repositories.extraction_queue import ExtractionScope
from composer.repositories.gateway_exchanges import ExchangeOwner
from composer.repositories.imports import ImportRun
from composer.repositories.job_ledger import JobLedger
from composer.repositories.setting_overrides import SETTINGS_CHANGED
from composer.settings import Settings
from composer.settings.server_urls import ServerUrl
from composer.stores.audit_keys import AuditHeadsFile
from composer.stores.backup.backup import DatabaseBackup
from composer.stores.clock import SystemClock
from composer.stores.database.postgres import PostgresDatabase
from composer.stores.database.process_locks import PostgresProcessLocks
from composer.stores.database.working_cache import RedisWorkingCache
from composer.stores.embedded.servers import EmbeddedServers
from composer.stores.models.configured import (
    configured_extraction,
    extraction_notice,
)
from composer.stores.models.tokens import tokenizer_for
from composer.summaries.tiers import SummaryTiers
from composer.tasks.shares import Places, acting_for, current_party
from composer.tasks.signals import ErasureSignal, InteractivePriority, end_tasks
from composer.text.caches import empty_caches
from composer.turn.compose import Composer
from composer.turn.drafting import Drafter
from composer.turn.memberships import Memberships
from composer.turn.respond import Responder
from composer.turn.scheduled.due_posts import DuePosts
from composer.turn.tool_servers import ToolServers
from composer.turn.worker import TurnWorker
from composer.usage.operations import OperationMeter

logger = structlog.get_logger()

TAKE_OVER_SECONDS: Final = 3.0  # between looks at what nobody works on


@dataclass(frozen=True, slots=True)
class App:
    """A running Nexus, as adapters and jobs use it."""

    settings: Settings
    clock: Clock
    directory: TenantDirectory
    database: PostgresDatabase
    cache: RedisWorkingCache
    redis_url: ServerUrl  # of the cache, which also counts requests of the web port
    embedder: Embedder
    composer: Composer
    drafter: Drafter
    responder: Responder
    turns: TurnWorker
    file_texts: FileTexts
    documents: DocumentReader
    tool_servers: ToolServers
    memberships: Memberships
    due_posts: DuePosts
    entry_search: EntrySearch
    entry_answerer: EntryAnswerer
    gateway_meter: GatewayMeter
    gateway_memory: GatewayMemory
    gateway_source: GatewaySource
    gateway_learner: Learner[ExchangeOwner]
    operations: OperationMeter
    indexer: Indexer
    locks: PostgresProcessLocks
    tiers: SummaryTiers
    ledger: JobLedger
    backup: DatabaseBackup
    may_back_up: bool  # whether this process has the login of the database's owner
    erasures: ErasureSignal
    audit: AuditLog
    credentials: Resolver
    changes: ChangesHub
    webhooks: WebhookMessages
    observer: Observer
    extractions: Learner[ExtractionScope] | None = None
    notice: str = ""  # of what the background work does, for whoever starts it

    async def receive(
        self,
        workspace: Workspace,
        batch: Sequence[Incoming],
        *,
        answer: bool = True,
        run: ImportRun | None = None,
        admit: Callable[[Transaction], Awaitable[None]] | None = None,
    ) -> Received:
        """Store a batch of messages, and start answering and indexing them (see composer.ingest.receive), for whoever
        sent the first of them where it is not known for whom that is done."""
        with _acting_for_sender(workspace, batch):
            received = await receiving.receive(
                self.database,
                self.cache,
                workspace,
                self.directory.agents(workspace.tenant_id),
                batch,
                announce=self.turns.announce,
                follow_up=timedelta(minutes=self.settings.follow_up_minutes),
                answer=answer,
                is_unread=lambda each: run is None and self.file_texts.is_unread(each, spoken=answer),
                run=run,
                admit=admit,
                now=self.clock.now(),
            )
            self._read_files(workspace.tenant_id, received)
            self.turns.start(received.turns, received.leases, received.questions)
        if answer and received.new:
            self.indexer.due(workspace.tenant_id)
        return received

    def _read_files(self, tenant: uuid.UUID, received: Received) -> None:
        """Begin to read the files of the messages that are stored now."""
        for each in received.unread:
            self.file_texts.start(tenant, each.message, each.adapter, each.conversation)

    async def take_over(self) -> int:
        """Begin what a dead process was interrupted in, where this one delivers. Returns how many conversations and
        messages with unread files there are. Raises Unavailable."""
        tenants = await self.database.tenants_with_open_work()
        return await self.turns.take_over(tenants) + await self.file_texts.take_over(tenants, self.turns.served)

    async def keep_taking_over(self) -> None:
        """Take over every few seconds what a dead process has left, or one that lives can't do, until cancelled."""
        while True:
            try:
                await self.locks.check()
                await self.take_over()
            except Unavailable as error:
                logger.warning("work.not_taken_over", error=for_operator(error))
            except Exception:
                logger.exception("work.not_taken_over")
            await asyncio.sleep(TAKE_OVER_SECONDS)

    async def forgotten(self, tenant: uuid.UUID, receipt: Receipt) -> None:
        """Drop the cached views of an erasure's conversations, delete the terminal's exports of its owners, schedule
        indexing and wake retractions. A cache that is down is told later: its views have an old version, which no
        reader uses.
        """
        try:
            remove_exports(self.settings.home, receipt.owners)
        except OSError as error:
            logger.warning("exports.not_deleted", error=str(error))
        self.indexer.due(tenant)
        self.erasures.emit()
        empty_caches()
        try:
            await self.cache.erase(sorted(receipt.conversations))
        except Unavailable:
            logger.warning("working.cache_unavailable", conversations=len(receipt.conversations))


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    clock: Clock | None = None,
    model: ChatModel | None = None,
    embedder: LoadableEmbedder | None = None,
    observer: Observer | None = None,
    index: bool = True,
) -> AsyncIterator[App]:
    """Start everything over a migrated database, and stop it at the end, in the opposite order.

    `clock`, `model` and `embedder` replace the configured ones; `observer` is told what the process does. With `index`
    False, nothing runs beside it: call `indexer.catch_up` to index, and `take_over` once for what dead processes left.
    Raises Unavailable or Misconfigured with one sentence; then nothing is left running.
    """
    async with AsyncExitStack() as stack:
        servers = EmbeddedServers(settings.home)
        stack.push_async_callback(asyncio.to_thread, servers.stop)
        base = await open_foundation(
            stack,
            settings,
            servers,
            embedder,
            clock or SystemClock(),
            observer or NoObserver(),
        )
        app = _build(stack, base, model)
        stack.push_async_callback(app.file_texts.stop)
        stack.push_async_callback(app.turns.stop)
        await base.locks.open(partial(_on_notice, app), partial(_on_lost, app))
        stack.push_async_callback(app.directory.stop)
        if index and app.extractions is not None:
            stack.push_async_callback(_cancelled, asyncio.create_task(app.extractions.run()))
        if index:
            stack.push_async_callback(_cancelled, asyncio.create_task(app.indexer.run()))
            stack.push_async_callback(_cancelled, asyncio.create_task(app.gateway_learner.run()))
            stack.push_async_callback(_cancelled, asyncio.create_task(app.keep_taking_over()))
        if settings.database_url is None or settings.redis_url is None:
            stack.push_async_callback(_cancelled, asyncio.create_task(restart_servers(settings, servers)))
        yield app


def _acting_for_sender(workspace: Workspace, batch: Sequence[Incoming]) -> AbstractContextManager[None]:
    if not batch or current_party().person is not None:
        return nullcontext()
    return acting_for(workspace.tenant_id, user_id(workspace, batch[0].user))


def _on_notice(app: App, notice: str) -> None:
    """Hear what a process says to all."""
    if notice == ERASED:
        empty_caches()
    elif notice.startswith(f"{CHANGED} "):
        app.changes.on_notice(notice)
    elif notice.startswith(SETTINGS_CHANGED):
        app.directory.on_notice(notice)
    else:
        app.turns.on_notice(notice)


def _on_lost(app: App) -> None:
    """The connection broke by which this process hears the others: something may have been erased or set meanwhile."""
    empty_caches()
    app.directory.on_lost()
    app.turns.on_lost()


def _build(stack: AsyncExitStack, base: Foundation, model: ChatModel | None) -> App:
    """Build every part from those above it. Nothing runs yet."""
    settings, clock, database, directory = base.settings, base.clock, base.database, base.directory
    models = build_models(base, model)
    extraction = configured_extraction(settings)
    memberships = Memberships(database, clock)
    reading = build_reading(base, models, memberships)
    priority = InteractivePriority()
    indexer = Indexer(
        database,
        models.embedder,
        clock,
        priority,
        extraction,
        quarantined=directory.quarantine,
    )
    answering = build_answering(stack, base, models, reading, indexer, priority, memberships)
    extractor = build_extractor(stack, settings, models) if extraction is Extraction.MEM0 else None
    operations = OperationMeter(database, clock, directory.zone, directory.plan)
    stack.push_async_callback(operations.close)
    last_use = LastUse(database, clock)
    stack.push_async_callback(last_use.settle)
    learning = Places(MAX_CONCURRENT, is_background=True)
    gateway_source = GatewaySource(database, operations, clock, directory.plan, is_on=extraction is not Extraction.OFF)
    entry_search = EntrySearch(database, models.embedder, directory.retrieval, directory.zone, clock)
    return App(
        settings=settings,
        clock=clock,
        directory=directory,
        database=database,
        cache=base.cache,
        redis_url=base.addresses.redis,
        embedder=base.embedder,
        composer=reading.composer,
        drafter=answering.drafter,
        responder=answering.responder,
        turns=answering.turns,
        file_texts=answering.file_texts,
        documents=answering.documents,
        tool_servers=answering.tool_servers,
        memberships=memberships,
        due_posts=build_due_posts(base, answering.turns),
        entry_search=entry_search,
        entry_answerer=EntryAnswerer(models.chat, agent_tokenizer),
        gateway_meter=GatewayMeter(models.calls, tokenizer_for),
        gateway_memory=GatewayMemory(database, entry_search, clock),
        gateway_source=gateway_source,
        gateway_learner=build_gateway_learner(base, gateway_source, extractor, indexer, learning),
        operations=operations,
        indexer=indexer,
        locks=base.locks,
        tiers=SummaryTiers(database, reading.summariser, lambda agent: tokenizer_for(agent.model if agent else "")),
        ledger=JobLedger(database),
        backup=DatabaseBackup(base.addresses.for_owner, base.keys),
        may_back_up=base.owner_known,
        erasures=ErasureSignal(),
        audit=AuditLog(database, base.keys, AuditHeadsFile(settings.home), clock),
        credentials=Resolver(database, directory, settings, clock, last_use),
        changes=ChangesHub(),
        webhooks=WebhookMessages(database, directory, memberships, base.locks, base.keys, clock, uuid.uuid4),
        observer=base.observer,
        extractions=None if extractor is None else build_extraction(base, extractor, indexer, learning),
        notice=extraction_notice(settings),
    )


async def _cancelled(task: asyncio.Task[None]) -> None:
    await end_tasks([task])
